/* config.c - a configuration resolved, or the documentation of its keys. */
#include "temper/config.h"

#include "api/training.h"
#include "engine/evaluate/eval_options.h"
#include "engine/train/recipe.h"

struct tp_configuration {
    tp_config *config;
    tp_error fault; /* TP_OK: none */
};

/* Without a file: the defaults, which need not be a run that could start. */
static tp_status bind(tp_config *config, bool is_empty, tp_error *err)
{
    tp_train_options options;
    tp_eval_options evaluation;
    size_t n;
    if (tp_recipe_is_evaluation(config)) {
        TP_TRY(tp_eval_options_bind(config, &evaluation, err));
        return tp_training_check_stops(config, "generation.stop_token_ids",
                                       &evaluation.generation.stop_token_ids,
                                       evaluation.tokenizer_name, err);
    }
    if (!is_empty) {
        TP_TRY(tp_train_options_bind(config, &options, err));
        return tp_training_check_rules(config, &options, err);
    }
    TP_FREED tp_option *table = tp_train_options_of(tp_algorithms[0], tp_optimizer_at(0), &n);
    return tp_config_bind(config, table, n, &options, err);
}

tp_status tp_configuration_open(const char *path, const char *const *overrides, size_t n_overrides,
                                tp_configuration **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_config *config;
    if (!ret)
        return tp_fail(err, TP_ERR_ARG, "tp_configuration_open: ret is NULL");
    TP_TRY(tp_recipe_load(path, overrides, n_overrides, &config, err));
    tp_configuration *c = tp_new(1, sizeof *c);
    c->config = config;
    tp_status status = bind(config, !path && !n_overrides, &c->fault);
    if (status != TP_OK && !tp_config_is_bound(config)) {
        if (err)
            *err = c->fault;
        tp_configuration_free(c);
        return status;
    }
    c->fault.status = status;
    *ret = c;
    return TP_OK;
}

void tp_configuration_free(tp_configuration *c)
{
    if (!c)
        return;
    tp_config_release(c->config);
    free(c);
}

tp_status tp_configuration_check(const tp_configuration *c, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(c, err);
    if (c->fault.status == TP_OK || tp_config_missing(c->config))
        return TP_OK;
    if (err)
        *err = c->fault;
    return c->fault.status;
}

const char *tp_configuration_missing(const tp_configuration *c)
{
    return c->fault.status == TP_OK ? NULL : tp_config_missing(c->config);
}

const char *tp_configuration_notice(const tp_configuration *c)
{
    return tp_config_notice(c->config);
}

static void hand_out(tp_buf *text, char **ret_text, size_t *ret_n)
{
    tp_buf_adds(text, "");
    *ret_text = text->data;
    *ret_n = text->len;
}

void tp_configuration_text(const tp_configuration *c, bool json, char **ret_text, size_t *ret_n)
{
    tp_buf out = {0};
    if (json) {
        tp_json_w w;
        tp_json_w_init(&w, &out, 2);
        tp_json_w_value(&w, tp_config_resolved(c->config));
        tp_buf_addc(&out, '\n');
    } else
        tp_config_write(c->config, &out);
    hand_out(&out, ret_text, ret_n);
}

void tp_configuration_keys(char **ret_text, size_t *ret_n)
{
    tp_buf out = {0};
    size_t n;
    TP_FREED tp_option *table = tp_train_options_of(NULL, NULL, &n);
    tp_options_doc(table, n, &out);
    hand_out(&out, ret_text, ret_n);
}
