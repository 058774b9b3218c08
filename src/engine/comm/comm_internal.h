/* comm_internal.h - what the files of engine/comm share. */
#ifndef TP_ENGINE_COMM_COMM_INTERNAL_H
#define TP_ENGINE_COMM_COMM_INTERNAL_H

#include <sys/types.h>

#include "engine/comm/comm.h"
#include "trace/trace.h"

enum { FAILURE_TAG = 0, LEAVING_TAG = 1, FIRST_TAG = 2 }; /* of exchanges: from here on */
enum { TAG_KINDS = 3 };
enum { TP_HOST_NAME = 64, TP_COMM_PATH = 4096 + 64, TP_COMM_TEXT = 1024 };

/* Where a rank is. */
typedef struct {
    char host[TP_HOST_NAME];
    int64_t pid;
    uint64_t pid_space;      /* in which that is its number: a container may have one of its own */
    uint8_t processors[128]; /* bits of the processors it may run on */
} tp_rank_place;

/* What a rank that fails sends to all others. */
typedef struct {
    int32_t rank, status;
    char text[TP_COMM_TEXT];
} tp_failure;

/* A collective on its way: rounds of at most one message each way. */
struct tp_exchange {
    tp_exchange *next; /* started after this one */
    tp_exchange_spec c;
    int tag;
    bool is_gathering, is_done;
    int round;              /* of the half it is in */
    int sending, receiving; /* requests of the transport; -1: none */
    int to, from;           /* the ranks of this round's messages */
    void *add_to;           /* what came is added to; NULL: it is in place */
    size_t n_add;
    tp_zone zone; /* of a trace */
    int track;
    uint64_t number;
};

struct tp_comm {
    tp_transport *transport; /* NULL: self */
    bool has_joined;
    int rank, size, local_rank, local_size;
    tp_rank_place *places; /* of all ranks */
    int64_t step;
    int next_tag[TAG_KINDS];
    uint64_t n_started;        /* collectives: the same on all ranks */
    tp_exchange *first, *last; /* on their way */
    tp_failure heard;          /* by the request `listening` */
    int listening;
    bool has_failed, is_torn;
    tp_error failure;
    tp_comm_stats stats;
    uint64_t busy_since, busy_ns, exposed_ns; /* busy_since 0: nothing is on its way */
    void (*say)(void *user, const char *text);
    void *say_user;
};

/* The machine's clock, or that of a simulated network. */
uint64_t tp_comm_now_ns(const tp_comm *c);

/* collective.c: begin, and go on as far as it goes without waiting. */
tp_status tp_exchange_begin(tp_comm *c, tp_exchange *r, tp_error *err);
tp_status tp_exchange_go_on(tp_comm *c, tp_exchange *r, tp_error *err);

/* exchange.c: one that no other of this kind has now: of all ranks, of neighbours, of ranks a
 * stride apart.  Every rank of the group asks for it alike; other groups of the kind may have more.
 */
int tp_exchange_tag(tp_comm *c, const tp_comm_group *group);

/* exchange_trace.c: a collective as an event, from its start until it is done. */
void tp_exchange_trace_begin(tp_comm *c, tp_exchange *r);
void tp_exchange_trace_end(const tp_comm *c, const tp_exchange *r);

/* launcher.c */
tp_status tp_comm_load(tp_comm *c, tp_error *err);
/* 0: by none; -1: unknown how many.  `what`, of `size` bytes, says how that is known. */
int tp_comm_launched_size(char *what, size_t size);
/* What the environment's variable names, else the file beside this code. */
bool tp_comm_find_plug_in(const char *variable, const char *name, char *out, size_t size);

/* waiting.c: naps that grow; looks after the others. */
typedef struct {
    uint64_t polls, since, checked, said;
} tp_waiting;
tp_status tp_comm_pause(tp_comm *c, tp_waiting *w, int for_rank, tp_error *err);
/* What a rank that failed has sent. */
tp_status tp_comm_listen(tp_comm *c, tp_error *err);

#endif
