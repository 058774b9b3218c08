/* work.c - the cost of launches that leave out part of what their shapes allow. */
#include "engine/exec/work.h"

#include "engine/device/dtype.h"
#include "engine/exec/exec.h"

int tp_work_operand(tp_op op)
{
    switch (op) {
    case TP_OP_linear_ce:
    case TP_OP_linear_ce_train:
    case TP_OP_linear_ce_dx:
    case TP_OP_attention:
        return 3;
    case TP_OP_attention_grad:
        return 6;
    default:
        return -1;
    }
}

static double bytes_of(const tp_operand *o)
{
    return (double)o->dim[0] * (double)o->dim[1] * (double)tp_dtype_size(o->dtype);
}

static int64_t count_weighed(const float *weights, int64_t rows)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows; i++)
        n += weights[i] != 0;
    return n;
}

/* Rows without weight are not read, nor is their share of dx written by a product; without any
 * row the head is not read either. */
static tp_cost loss_work(const tp_launch *l, const float *weights, tp_cost planned)
{
    bool trains = l->op != TP_OP_linear_ce;
    bool every_row = !trains && l->out[2].span.buffer; /* lse is wanted of all */
    if (every_row || !weights)
        return planned;
    double share = (double)count_weighed(weights, l->in[3].dim[0]) / (double)l->in[0].dim[0];
    double rows = bytes_of(&l->in[0]) + (trains ? bytes_of(&l->out[2]) : 0);
    double head = share == 0 ? bytes_of(&l->in[1]) : 0;
    return (tp_cost){.flops = share * planned.flops,
                     .bytes = planned.bytes - (1 - share) * rows - head};
}

/* Pairs of query and key: s(s+1)/2 of a sequence of s tokens, none of the padding. */
static tp_cost attention_work(const tp_launch *l, const int32_t *starts, tp_cost planned,
                              double avg_context)
{
    const tp_operand *cu = &l->in[tp_work_operand(l->op)];
    double pairs = 0, all = (double)l->in[0].dim[0] * avg_context;
    for (int64_t i = 0; starts && i + 1 < cu->dim[0]; i++) {
        double s = (double)(starts[i + 1] - starts[i]);
        pairs += 0.5 * s * (s + 1);
    }
    if (!starts || !(all > 0))
        return planned;
    return (tp_cost){.flops = planned.flops * pairs / all, .bytes = planned.bytes};
}

tp_cost tp_work_of(const tp_launch *l, const void *values, tp_cost planned, double avg_context)
{
    switch (l->op) {
    case TP_OP_linear_ce:
    case TP_OP_linear_ce_train:
    case TP_OP_linear_ce_dx:
        return loss_work(l, values, planned);
    case TP_OP_attention:
    case TP_OP_attention_grad:
        return attention_work(l, values, planned, avg_context);
    default:
        return planned;
    }
}

bool tp_launch_is_counted(const tp_launch_info *l)
{
    return !(l->varies && l->op == TP_OP_paged_attention);
}
