/* eval_options.c - the options of `temper eval` and where they lie in NeMo RL's configuration. */
#include "engine/evaluate/eval_options.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "config/option_rows.h"
#include "engine/evaluate/perturb.h"
#include "engine/reward/environment_kind.h"

#define HOLDER tp_eval_options
#define HOLDER_AT 0
#define PATH_NEEDED(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING, AT(member, const char *), text, meaning, .is_path = true)

static const tp_option option_table[] = {
#include "engine/evaluate/eval_options.def"
};

/* ---- what concerns several keys ---- */

static void choose_k(tp_eval_options *o)
{
    int64_t n = o->eval.num_tests_per_prompt;
    for (int64_t k = 1; k < n && o->n_k + 1 < TP_EVAL_MAX_K; k *= 2)
        o->k[o->n_k++] = k;
    o->k[o->n_k++] = n;
}

static void insert_k(tp_eval_options *o, int64_t k)
{
    size_t at = o->n_k;
    for (size_t i = 0; i < o->n_k; i++)
        if (o->k[i] == k)
            return;
    for (; at > 0 && o->k[at - 1] > k; at--)
        o->k[at] = o->k[at - 1];
    o->k[at] = k;
    o->n_k++;
}

static tp_status read_k(const tp_config *config, tp_eval_options *o, tp_error *err)
{
    const tp_f64_list *list = &o->eval.k_value;
    if (list->n == 0)
        choose_k(o);
    if (list->n > TP_EVAL_MAX_K)
        return tp_config_fail(config, "eval.k_value", err, "%zu values; at most %d", list->n,
                              TP_EVAL_MAX_K);
    for (size_t i = 0; i < list->n; i++) {
        if (list->v[i] != floor(list->v[i]))
            return tp_config_fail(config, "eval.k_value", err, "%g is not a whole number",
                                  list->v[i]);
        if (list->v[i] > (double)o->eval.num_tests_per_prompt)
            return tp_config_fail(config, "eval.k_value", err,
                                  "pass@%g needs at least %g answers to each question; "
                                  "eval.num_tests_per_prompt is %lld",
                                  list->v[i], list->v[i], (long long)o->eval.num_tests_per_prompt);
        insert_k(o, (int64_t)list->v[i]);
    }
    return TP_OK;
}

static tp_status check_perturbations(const tp_config *config, const tp_eval_options *o,
                                     tp_error *err)
{
    const tp_str_list *list = &o->eval.perturbations;
    if (list->n > TP_EVAL_MOST_PERTURBATIONS)
        return tp_config_fail(config, "eval.perturbations", err, "%zu of them; at most %d", list->n,
                              TP_EVAL_MOST_PERTURBATIONS);
    for (size_t i = 0; i < list->n; i++) {
        if (!tp_perturbation_find(list->v[i]))
            return tp_config_fail(config, "eval.perturbations", err,
                                  "'%.40s' is none; known are order, space, case and digits",
                                  list->v[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(list->v[i], list->v[k]) == 0)
                return tp_config_fail(config, "eval.perturbations", err, "'%s' is there twice",
                                      list->v[i]);
    }
    return TP_OK;
}

/* Of two names for one thing the one that is set; both are a contradiction. */
static tp_status merge_keys(const tp_config *config, const char *path, const char **main_key,
                            const char *other, tp_error *err)
{
    if (*main_key && other)
        return tp_config_fail(config, path, err,
                              "means the same as another key that is set; keep "
                              "one of them");
    if (other)
        *main_key = other;
    return TP_OK;
}

tp_status tp_eval_options_bind(tp_config *config, tp_eval_options *ret, tp_error *err)
{
    tp_eval_options o;
    memset(&o, 0, sizeof o);
    TP_TRY(tp_config_bind(config, option_table, TP_COUNTOF(option_table), &o, err));
    TP_TRY(read_k(config, &o, err));
    TP_TRY(check_perturbations(config, &o, err));
    TP_TRY(
        tp_config_refuse_empty(config, "generation.stop_strings", &o.generation.stop_strings, err));
    TP_TRY(merge_keys(config, "data.problem_key", &o.data.rows.input_key, o.data.problem_key, err));
    TP_TRY(
        merge_keys(config, "data.solution_key", &o.data.rows.output_key, o.data.solution_key, err));
    if (o.template_variables && o.template_variables->type != TP_JSON_OBJECT)
        return tp_config_fail(config, "tokenizer.chat_template_kwargs", err,
                              "expected names with values, as {enable_thinking: false}");
    if (o.generation.max_new_tokens > o.generation.max_model_len)
        o.generation.max_new_tokens = o.generation.max_model_len;
    *ret = o;
    return TP_OK;
}

/* ---- documentation ---- */

static void add_table(const char *prefix, const tp_settings_table *table, tp_buf *out)
{
    tp_option rows[64];
    static char names[64][128];
    size_t n = TP_MIN(table->n, TP_COUNTOF(rows));
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "%s.%s", prefix, table->options[i].name);
        rows[i] = table->options[i];
        rows[i].name = names[i];
    }
    tp_options_doc(rows, n, out);
}

static void add_kind(const tp_environment_kind *kind, tp_buf *out)
{
    char prefix[100];
    TP_OWN(tp_buf) table = {0};
    tp_buf_addf(out, "\n### %s\n\n%s\n\n", kind->name, kind->doc);
    snprintf(prefix, sizeof prefix, "env.%s", kind->name);
    if (kind->settings.n)
        add_table(prefix, &kind->settings, &table);
    snprintf(prefix, sizeof prefix, "data.%s", kind->name);
    if (kind->make)
        add_table(prefix, &kind->generator, &table);
    /* The headings of tp_options_doc() name the first part of the keys, which the heading
     * of the kind says better. */
    for (const char *p = tp_buf_str(&table); *p;) {
        size_t n = strcspn(p, "\n") + 1;
        if (strncmp(p, "## ", 3) == 0)
            n += p[n] == '\n';
        else
            tp_buf_add(out, p, n);
        p += n;
    }
}

void tp_eval_options_doc(tp_buf *out)
{
    tp_options_doc(option_table, TP_COUNTOF(option_table), out);
    tp_buf_adds(out, "\n## Environments\n");
    for (const tp_environment_kind *const *k = tp_environment_kinds; *k; k++)
        add_kind(*k, out);
}
