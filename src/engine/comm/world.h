/* world.h - ranks that are simulated: the interface of the plug-in for SimGrid, and its loading.
 *
 * temper_smpi.so runs a function as every rank of a network that a platform file describes.  Each
 * gets a transport (transport.h) whose messages are MPI's in SimGrid's SMPI, so that the code of
 * this folder runs there as it is.  All ranks are threads of control of one process, one at a
 * time, and share its memory; time is that of the simulator.
 *
 * Data may be left out: messages from and to the addresses of `nothing` have their size and no
 * content. */
#ifndef TP_ENGINE_COMM_WORLD_H
#define TP_ENGINE_COMM_WORLD_H

#include "base/error.h"
#include "engine/comm/comm.h"

enum { TP_WORLD_VERSION = 1, TP_WORLD_LINKS = 4, TP_WORLD_NAME = 96 };

typedef struct {
    const char *platform; /* a file of SimGrid's */
    int ranks;            /* on the first hosts, one on each */
    const char *nothing;
    size_t nothing_bytes;
    const char *slow_link; /* its bandwidth times slow_factor; NULL: none */
    double slow_factor;
} tp_world_spec;

/* A link, by how long its bandwidth was needed for the data that went through it. */
typedef struct {
    char name[TP_WORLD_NAME];
    double bytes_per_s, busy_s;
    double usual_bytes_per_s; /* of most links that were used */
} tp_world_link;

typedef struct {
    char name[64]; /* "SimGrid 3.32" */
    int hosts;     /* of the platform */
    double seconds;
    /* Between the first rank and the one in the middle, over what lies between. */
    double bytes_per_s, latency_s;
    tp_world_link links[TP_WORLD_LINKS]; /* the busiest, in order */
    int n_links;
    double median_busy_s; /* of the links that were used */
} tp_world_result;

/* What a plug-in exports; 0, or why not.  One world for each process: SimGrid has one state. */
#define TP_WORLD_SYMBOL "temper_world"
typedef int tp_world_fn(int version, const tp_world_spec *spec,
                        void (*rank)(tp_transport *transport, void *user), void *user,
                        tp_world_result *ret, char *why, size_t why_size);

/* Runs `rank` as every rank, in a process of its own: what it writes stays there, but for shared
 * memory, and `user` may go when this returns. */
typedef struct tp_world tp_world;
TP_CHECKED tp_status tp_world_start(const tp_world_spec *spec,
                                    void (*rank)(tp_comm *comm, void *user), void *user,
                                    tp_world **ret, tp_error *err);
/* Waits for it.  *ret_took_s: the seconds of a clock that it took.  TP_ERR_UNSUPPORTED without the
 * plug-in, TP_ERR_CONFIG where SimGrid does not take the platform. */
TP_CHECKED tp_status tp_world_finish(tp_world *world, tp_world_result *ret, double *ret_took_s,
                                     tp_error *err);
void *tp_world_share(size_t bytes); /* zeros; NULL: there is no memory */
void tp_world_unshare(void *shared, size_t bytes);

#endif
