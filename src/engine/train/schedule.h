/* schedule.h - learning rates, in the names of torch.optim.lr_scheduler as NeMo RL's
 * `policy.scheduler` uses them.
 *
 * Either one {name, kwargs}, or a list of them closed by {milestones: [..]}: then
 * schedule i runs from milestone i-1 on, counting its own steps from 0
 * (SequentialLR).  Known: LinearLR, ConstantLR, CosineAnnealingLR, StepLR,
 * ExponentialLR, with the arguments of schedule.def.  The rate is a pure function of the
 * step. */
#ifndef TP_ENGINE_TRAIN_SCHEDULE_H
#define TP_ENGINE_TRAIN_SCHEDULE_H

#include "base/error.h"
#include "text/json/json.h"

enum { TP_SCHEDULE_MAX = 16 };

typedef struct {
    enum {
        TP_SCHEDULE_LINEAR,
        TP_SCHEDULE_CONSTANT,
        TP_SCHEDULE_COSINE,
        TP_SCHEDULE_STEP,
        TP_SCHEDULE_EXPONENTIAL
    } kind;
    double start_factor, end_factor, total_iters; /* linear; constant: start_factor */
    double t_max, eta_min;                        /* cosine */
    double step_size, gamma;                      /* step, exponential */
    double last_epoch;                            /* -1 */
} tp_schedule_part;

typedef struct {
    tp_schedule_part parts[TP_SCHEDULE_MAX];
    int64_t begins[TP_SCHEDULE_MAX]; /* first step of each part */
    int n;                           /* 0: the rate is constant */
} tp_schedule;

/* `config` may be NULL (constant). */
TP_CHECKED tp_status tp_schedule_parse(const tp_json *config, tp_schedule *ret, tp_error *err);
/* The rate of the step-th update, from 0. */
double tp_schedule_lr(const tp_schedule *s, double base_lr, int64_t step);

#endif
