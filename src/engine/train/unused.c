/* unused.c - keys of data.train and data.validation that another algorithm obeys and this one does
 * not: refused where that changes what is learned from, said where it does not. */
#include "base/platform.h"
#include "engine/train/trainer_internal.h"

#define AT(key) #key, offsetof(tp_data_source_options, key)

static const struct {
    const char *name;
    size_t offset;
    bool used[3]; /* by tp_algorithm: sft, dpo, grpo */
} keys[] = {
    {AT(input_key), {true, false, true}},     {AT(output_key), {true, false, true}},
    {AT(prompt_key), {true, true, true}},     {AT(chat_key), {true, false, true}},
    {AT(text_key), {true, false, false}},     {AT(tool_key), {true, false, false}},
    {AT(system_key), {true, false, true}},    {AT(chosen_key), {false, true, false}},
    {AT(rejected_key), {false, true, false}},
};

static bool is_set(const tp_data_source_options *o, size_t offset)
{
    return *(const char *const *)((const char *)o + offset) != NULL;
}

static void name_unused(const trainer *t, const char *section, const tp_data_source_options *o)
{
    tp_buf names = {0};
    for (size_t i = 0; i < TP_COUNTOF(keys); i++)
        if (!keys[i].used[t->o->algorithm] && is_set(o, keys[i].offset))
            tp_buf_addf(&names, "%s%s.%s", names.len ? ", " : "", section, keys[i].name);
    if (names.len)
        tp_trainer_notice(t, "%s: no effect in %s", tp_buf_str(&names),
                          tp_algorithm_name(t->o->algorithm));
    tp_buf_release(&names);
}

static tp_status refuse_max_samples(const trainer *t, const char *key, int64_t asked, tp_error *err)
{
    if (t->o->algorithm == TP_ALGORITHM_GRPO || asked == TP_OPT_UNSET_INT)
        return TP_OK;
    return tp_config_fail(
        t->config, key, err,
        "%s takes every row of a file, only rollouts take the first so many; make "
        "a shorter file (head -n %lld)",
        tp_algorithm_name(t->o->algorithm), (long long)asked);
}

tp_status tp_trainer_unused_keys(const trainer *t, tp_error *err)
{
    const tp_data_source_options *train = &t->o->data.train, *val = &t->o->data.validation;
    TP_TRY(refuse_max_samples(t, "data.train.max_samples", train->max_samples, err));
    TP_TRY(refuse_max_samples(t, "data.validation.max_samples", val->max_samples, err));
    name_unused(t, "data.train", train);
    if (val->data_path)
        name_unused(t, "data.validation", val);
    return TP_OK;
}
