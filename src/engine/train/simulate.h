/* simulate.h - what several processes would take on a network that is simulated, by strategy and
 * number of ranks.
 *
 * The run's graphs are compiled for each, as for a run, and every rank goes through a step: the
 * code of engine/comm exchanges messages in SimGrid's SMPI, in the order and at the moments of the
 * compiled launches, which take the seconds of the plan. */
#ifndef TP_ENGINE_TRAIN_SIMULATE_H
#define TP_ENGINE_TRAIN_SIMULATE_H

#include "engine/comm/world.h"
#include "engine/train/plan_ranks.h"

typedef struct {
    int ranks;
    const char *strategy;
    double step_s, exposed_s, hidden_s; /* the last two: of a rank on average */
    double efficiency;         /* of one process that does everything; 1: nothing is lost */
    double compute_efficiency; /* the same if messages took no time */
    double formula_s;          /* the plan's step */
    double bytes_sent;         /* by a rank on average */
    double messages;           /* of all ranks */
    double bucket_mib;         /* larger than asked for where there are many messages */
    double took_s;             /* the simulation */
    tp_world_result world;     /* zeroed with one rank */
} tp_simulated_point;

typedef struct {
    const char *platform; /* a file */
    int from, ranks;      /* 1, 2, 4 ... and the last; of those before the first 1 alone */
    int factor;           /* 2, or another */
    const char *slow_link;
    double slow_factor;
    /* Of a step: buckets grow until a rank has no more than few, all ranks no more than many.
     * What cannot be had so may take most, of a rank. */
    double few_messages, many_messages, most_messages;
    void (*note)(void *user, const char *text); /* may be NULL */
    void *user;
} tp_simulation_options;

typedef struct {
    double alone_s;       /* a step of one process */
    double micro_batches; /* of a step */
    tp_world_result network;
    tp_simulated_point *points; /* by ranks, then by strategy */
    size_t n;
} tp_simulation;

/* `o` without ranks. */
TP_CHECKED tp_status tp_simulation_make(const tp_train_options *o, const tp_model *model,
                                        const tp_machine *machine, const tp_simulation_options *how,
                                        tp_simulation *ret, tp_error *err);
void tp_simulation_release(tp_simulation *simulation);

#endif
