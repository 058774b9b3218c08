/* unused.c - keys of data.train and data.validation that another algorithm obeys and this one does
 * not: refused where that changes what is learned from, said where it does not. */
#include <string.h>

#include "base/platform.h"
#include "engine/train/trainer_internal.h"

#define AT(place, key)                                    \
    {                                                     \
#key, offsetof(tp_data_source_options, place key) \
    }

static const struct {
    const char *name;
    size_t offset;
} keys[] = {AT(rows., input_key),  AT(rows., output_key), AT(rows., prompt_key),
            AT(rows., chat_key),   AT(rows., text_key),   AT(rows., tool_key),
            AT(rows., system_key), AT(, chosen_key),      AT(, rejected_key)};

static bool obeys(const tp_algorithm *a, const char *key)
{
    for (const char *const *k = a->source_keys; *k; k++)
        if (strcmp(*k, key) == 0)
            return true;
    return false;
}

static bool is_set(const tp_data_source_options *o, size_t offset)
{
    return *(const char *const *)((const char *)o + offset) != NULL;
}

static void name_unused(const trainer *t, const char *section, const tp_data_source_options *o)
{
    TP_OWN(tp_buf) names = {0};
    for (size_t i = 0; i < TP_COUNTOF(keys); i++)
        if (!obeys(t->a, keys[i].name) && is_set(o, keys[i].offset))
            tp_buf_addf(&names, "%s%s.%s", names.len ? ", " : "", section, keys[i].name);
    if (names.len)
        tp_trainer_notice(t, "%s: no effect in %s", tp_buf_str(&names), t->a->name);
}

static tp_status refuse_max_samples(const trainer *t, const char *key, int64_t asked, tp_error *err)
{
    if (t->a->takes_max_samples || asked == TP_OPT_UNSET_INT)
        return TP_OK;
    return tp_config_fail(
        t->config, key, err,
        "%s takes every row of a file, only rollouts take the first so many; make "
        "a shorter file (head -n %lld)",
        t->a->name, (long long)asked);
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
