/* peft.c - the two sections that ask for an adapter, as one. */
#include "engine/train/graphs.h"

#define LORA_CFG "policy.dtensor_cfg.lora_cfg"

/* In the order of the choices in options.def. */
enum { POST, PRE };
enum { AUTO };

static tp_status adopt_lora_cfg(const tp_config *config, tp_train_options *o, tp_error *err)
{
    static const char *const all[] = {"all-linear"};
    const tp_lora_cfg_options *from = &o->policy.lora_cfg;
    if (o->policy.peft.enabled)
        return tp_config_fail(config, LORA_CFG ".enabled", err,
                              "policy.peft.enabled is true as well: say it in one of the two");
    if (from->dropout > 0 && from->dropout_position == POST)
        return tp_config_fail(config, LORA_CFG ".dropout_position", err,
                              "dropout on the adapter's output (post) is not supported; pre drops "
                              "its input, as PEFT does");
    if (from->match_all_linear && from->target_modules.n > 0)
        return tp_config_fail(config, LORA_CFG ".target_modules", err,
                              "match_all_linear is true, which takes all of them: set it to false");
    if (!from->match_all_linear && from->target_modules.n == 0)
        return tp_config_fail(config, LORA_CFG ".target_modules", err,
                              "must name modules when match_all_linear is false");
    o->policy.peft.enabled = true;
    o->policy.peft.dim = from->dim;
    o->policy.peft.alpha = from->alpha;
    o->policy.peft.dropout = from->dropout;
    o->policy.peft.exclude_modules = from->exclude_modules;
    o->policy.peft.target_modules =
        from->match_all_linear ? (tp_str_list){.v = all, .n = 1} : from->target_modules;
    o->policy.peft.init = from->init == 0 ? TP_LORA_XAVIER : TP_LORA_KAIMING;
    return TP_OK;
}

tp_status tp_peft_bind(const tp_config *config, tp_train_options *o, tp_error *err)
{
    if (o->policy.lora_cfg.enabled)
        TP_TRY(adopt_lora_cfg(config, o, err));
    if (o->policy.peft.base == 1 + TP_BASE_BF16 && o->policy.precision != TP_PRECISION_BFLOAT16)
        return tp_config_fail(config, "policy.peft.base", err,
                              "a base in bfloat16 needs policy.precision=bfloat16");
    return TP_OK;
}

static tp_base_storage storage_of(const tp_train_options *o)
{
    if (o->policy.peft.base != AUTO)
        return (tp_base_storage)(o->policy.peft.base - 1);
    return tp_trainer_product_dtype(o) == TP_DTYPE_BF16 ? TP_BASE_BF16 : TP_BASE_F32;
}

tp_status tp_peft_attach(const tp_train_options *o, tp_model *model, tp_error *err)
{
    const tp_lora_settings settings = {.r = o->policy.peft.dim,
                                       .alpha = o->policy.peft.alpha,
                                       .dropout = o->policy.peft.dropout,
                                       .uses_rslora = o->policy.peft.use_rslora,
                                       .uses_dora = o->policy.peft.use_dora,
                                       .init = o->policy.peft.init,
                                       .targets = {o->policy.peft.target_modules.v,
                                                   o->policy.peft.target_modules.n, TP_MATCH_GUESS},
                                       .exclude = {o->policy.peft.exclude_modules.v,
                                                   o->policy.peft.exclude_modules.n,
                                                   TP_MATCH_GUESS}};
    const char *folder = tp_model_adapter_folder(model);
    if (o->policy.peft.enabled && folder)
        return tp_fail(err, TP_ERR_CONFIG,
                       "policy.model_name is an adapter already, '%s', and is trained on as it "
                       "is: set policy.peft.enabled=false, or merge it first (temper merge)",
                       folder);
    if (o->policy.peft.enabled)
        TP_TRY(tp_model_attach(model, &settings, err));
    if (tp_model_has_adapter(model))
        tp_model_freeze(model, storage_of(o), tp_trainer_product_dtype(o));
    return TP_OK;
}
