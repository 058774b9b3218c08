/* plan_ranks.h - what several processes would take, by strategy, before anything is started.
 *
 * Bytes are those of the schedules that run.  Seconds are an estimate: launches at the machine's
 * measured ceilings, and one message after another on a network of so many bytes a second and so
 * much latency, each begun where the graph begins it. */
#ifndef TP_ENGINE_TRAIN_PLAN_RANKS_H
#define TP_ENGINE_TRAIN_PLAN_RANKS_H

#include "engine/train/plan.h"
#include "text/json/json.h"

/* Where messages of several ranks share a link. */
enum { TP_NETWORK_DIMENSIONS = 6 };
typedef enum { TP_NETWORK_FLAT, TP_NETWORK_TORUS, TP_NETWORK_FAT_TREE } tp_network_kind;
typedef struct {
    tp_network_kind kind;
    int sizes[TP_NETWORK_DIMENSIONS], n; /* of a torus; [0]: hosts of a fat tree's rack */
    double oversubscription; /* what the hosts of a rack could send over what goes out of it */
} tp_network_shape;

typedef struct {
    double bytes_per_s, latency_s; /* NaN: unknown */
    tp_network_shape shape;
    char text[64]; /* "100Gbit/2us"; "" unknown */
} tp_network;

/* What a collective takes that all ranks are in at once.  network.c. */
double tp_network_seconds(const tp_network *network, tp_collective_kind kind,
                          const tp_begun *begun);
/* Of the text of a platform file; flat where it says none that is known. */
tp_network_shape tp_network_shape_of_platform(const char *xml);

/* "ddp", ... */
const char *tp_strategy_name(int strategy);
/* Whether a run with these options can be divided; ranks.c. */
TP_CHECKED tp_status tp_ranks_check(const tp_train_options *o, tp_error *err);
/* Whether a pass is disabled without which ranks would not be one run.  sharing.c. */
bool tp_ranks_lack_pass(const tp_train_options *o, const char *pass);
/* o->ranks counts processes; behind this those that share the layers count as one.  sharing.c. */
TP_CHECKED tp_status tp_ranks_divide(tp_train_options *o, tp_error *err);
/* Behind that: whether those that share the layers share rows, too. */
bool tp_ranks_share_rows(const tp_train_options *o);
/* Whether a model can be shared so. */
TP_CHECKED tp_status tp_ranks_check_model(const tp_train_options *o, const tp_model *model,
                                          tp_error *err);

/* Sets o->ranks.node, where the strategy has nodes. */
TP_CHECKED tp_status tp_ranks_find_nodes(tp_train_options *o, tp_error *err);

/* All of these for o->ranks.ranks processes, on as many to a host as o->ranks.on_host. */
TP_CHECKED tp_status tp_ranks_arrange(tp_train_options *o, tp_error *err);

/* "100Gbit/2us": bits a second (Kbit, Mbit, Gbit, Tbit), then latency (ns, us, ms); behind it
 * "/torus-16x8x8" or "/fat-tree-32:2". */
TP_CHECKED tp_status tp_network_parse(const char *text, tp_network *ret, tp_error *err);
/* How many there may be; of a torus as many as there are, 65536 at most. */
int64_t tp_network_nodes(const tp_network *network);

/* "20TFLOP/400GB": a machine that does so much arithmetic and moves so many bytes a second. */
TP_CHECKED tp_status tp_processor_parse(const char *text, tp_machine *ret, tp_error *err);

typedef struct {
    const char *strategy;
    size_t peak_bytes; /* of a rank */
    bool fits;
    double all_reduce_bytes, reduce_scatter_bytes, all_gather_bytes; /* sent by a rank in a step */
    double plain_bytes; /* of all of it, were it not compressed */
    double rounds;      /* messages in a row */
    double rounds_each; /* those of a micro-batch that is not an update's last */
    /* Seconds of a step; NaN: machine or network unknown. */
    double compute_s, exposed_s, hidden_s, step_s;
    size_t gathered_bytes;   /* of whole copies that generation keeps */
    double generation_bytes; /* or of what it gathers in a step of the run, sent by a rank */
    char why[160];           /* it is the best, or what is better */
} tp_strategy_plan;

typedef struct {
    int ranks, sharers; /* of the layers */
    bool shares_rows;   /* they do, of norms and residuals */
    tp_network network;
    const char *format; /* of gradients; "none": as they are */
    double alone_s;     /* a step of one process with all of the batch */
    tp_strategy_plan v[TP_STRATEGIES];
    int n, best; /* best -1: none fits */
} tp_ranks_plan;

/* `o` without ranks.  Strategies that the optimizer does not allow are left out. */
TP_CHECKED tp_status tp_ranks_plan_make(const tp_train_options *o, const tp_model *model,
                                        const tp_machine *machine, int ranks,
                                        const tp_network *network, tp_ranks_plan *ret,
                                        tp_error *err);

/* One of them: `o` with ranks and strategy.  ret_graphs, unless NULL, gets what it was made of. */
TP_CHECKED tp_status tp_strategy_plan_make(const tp_train_options *o, const tp_model *model,
                                           const tp_machine *machine, const tp_network *network,
                                           tp_strategy_plan *ret, tp_run_graphs *ret_graphs,
                                           tp_error *err);
/* Whether options and number of ranks allow strategy i; *ret: the options with it. */
bool tp_strategy_is_possible(const tp_train_options *o, int ranks, int i, tp_train_options *ret);

void tp_ranks_plan_text(const tp_ranks_plan *plan, tp_buf *out);
void tp_ranks_plan_put(const tp_ranks_plan *plan, tp_json_w *w); /* member "distributed" */

#endif
