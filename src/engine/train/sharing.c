/* sharing.c - ranks that share the layers: how many, and what goes together with it. */

#include "base/platform.h"
#include "engine/passes/pass.h"
#include "engine/train/algorithm.h"
#include "engine/train/plan_ranks.h"

/* *ret_key: who says so. */
static int64_t sharers(const tp_train_options *o, const char **ret_key)
{
    *ret_key = "distributed.tensor_parallel_size";
    if (o->distributed.tensor_parallel_size != TP_OPT_UNSET_INT)
        return o->distributed.tensor_parallel_size;
    *ret_key = o->distributed.theirs_key;
    return o->ranks.ranks < 2 ? 1 : o->distributed.theirs; /* their recipes run in one as well */
}

bool tp_ranks_lack_pass(const tp_train_options *o, const char *pass)
{
    return tp_pass_is_disabled(o->engine.disable_passes.v, o->engine.disable_passes.n, pass);
}

/* What does not go together with it yet. */
static tp_status check_sharing(const tp_train_options *o, const char *key, int64_t n, tp_error *err)
{
    const struct {
        const char *what;
        bool is_set;
    } others[] = {
        {o->algorithm->title, !o->algorithm->shares_layers},
        {"distributed.gathered_copy=false", o->algorithm->generates &&
                                                o->distributed.strategy >= TP_STRATEGY_FULL_SHARD &&
                                                !o->distributed.gathered_copy},
        {"policy.peft.dropout", o->policy.peft.enabled && o->policy.peft.dropout > 0},
        {"policy.peft.base in few bits",
         o->policy.peft.enabled &&
             (o->policy.peft.base == 1 + TP_BASE_INT8 || o->policy.peft.base == 1 + TP_BASE_NF4)},
        {"policy.activation_compression=int8",
         o->policy.activation_compression == TP_COMPRESSION_INT8},
        {"an optimizer that looks at whole matrices", o->policy.optimizer.kind->looks_at_whole}};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (others[i].is_set)
            return tp_fail(err, TP_ERR_UNSUPPORTED, "%s=%lld is not supported together with %s",
                           key, (long long)n, others[i].what);
    if (tp_ranks_lack_pass(o, "tensor-parallel"))
        return tp_fail(err, TP_ERR_CONFIG,
                       "engine.disable_passes: without tensor-parallel processes do not share "
                       "the layers, as %s=%lld says",
                       key, (long long)n);
    if (o->algorithm->generates &&
        (tp_ranks_lack_pass(o, "pack-weights") || tp_ranks_lack_pass(o, "shard")))
        return tp_fail(err, TP_ERR_CONFIG,
                       "engine.disable_passes: without pack-weights and shard processes that share "
                       "the layers (%s=%lld) have no whole weights to generate with",
                       key, (long long)n);
    return TP_OK;
}

tp_status tp_ranks_divide(tp_train_options *o, tp_error *err)
{
    const char *key;
    tp_ranks *r = &o->ranks;
    int64_t n = sharers(o, &key);
    TP_ASSERT(r->tensor.count == 0);
    if (n < 2 && o->distributed.sequence_parallel && o->distributed.theirs < 2)
        return tp_fail(err, TP_ERR_CONFIG,
                       "distributed.sequence_parallel: no processes share the layers, and so none "
                       "share rows: set distributed.tensor_parallel_size as well");
    if (n < 2)
        return TP_OK;
    if (TP_MAX(r->ranks, 1) % n != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s=%lld: %d process%s cannot share the layers by %lld: start a multiple of "
                       "that (mpirun -n %lld; temper plan --ranks %lld)",
                       key, (long long)n, TP_MAX(r->ranks, 1), r->ranks > 1 ? "es" : "",
                       (long long)n, (long long)n, (long long)n);
    TP_TRY(check_sharing(o, key, n, err));
    r->tensor = (tp_shard){(int32_t)(r->rank % n), (int32_t)n};
    r->rank /= (int)n;
    r->ranks /= (int)n;
    return TP_OK;
}

bool tp_ranks_share_rows(const tp_train_options *o)
{
    return o->ranks.tensor.count > 1 &&
           (o->distributed.sequence_parallel || o->distributed.theirs_sequence);
}

tp_status tp_ranks_check_model(const tp_train_options *o, const tp_model *model, tp_error *err)
{
    const tp_model_info *m = tp_model_get_info(model);
    int64_t n = o->ranks.tensor.count;
    if (n < 2 || (m->heads % n == 0 && m->kv_heads % n == 0))
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "distributed.tensor_parallel_size=%lld: the model's %lld heads of attention and "
                   "%lld of keys and values must be multiples of it",
                   (long long)n, (long long)m->heads, (long long)m->kv_heads);
}
