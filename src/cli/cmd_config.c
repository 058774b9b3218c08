/* cmd_config.c - `temper config`: a configuration resolved, or the documentation of its keys. */
#include "cli/cli.h"
#include "cli/eval_options.h"
#include "cli/recipe.h"

typedef struct {
    bool json, doc;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "the resolved tree as JSON"),
    TP_SWITCH("doc", 0, doc, "every key with type, default and meaning, as Markdown"),
    {0}};

static void print(const tp_config *config, bool json)
{
    tp_buf out = {0};
    if (json) {
        tp_json_w w;
        tp_json_w_init(&w, &out, 2);
        tp_json_w_value(&w, tp_config_resolved(config));
        tp_buf_addc(&out, '\n');
    } else
        tp_config_write(config, &out);
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    tp_buf_release(&out);
}

/* Without a file: the defaults, which need not be a run that could start. */
static tp_status bind(tp_config *config, bool has_words, tp_error *err)
{
    tp_train_options options;
    tp_eval_options evaluation;
    size_t n;
    if (tp_cli_is_evaluation(config))
        return tp_eval_options_bind(config, &evaluation, err);
    if (has_words)
        return tp_train_options_bind(config, &options, err);
    tp_option *table = tp_train_options_of(tp_algorithms[0], tp_optimizer_at(0), &n);
    tp_status status = tp_config_bind(config, table, n, &options, err);
    free(table);
    return status;
}

/* A tree that could be made is shown, whatever else is wrong; what is still to be set is no
 * fault here. */
static int show(tp_config *config, bool json, tp_status status, const tp_error *err)
{
    if (status != TP_OK && !tp_config_is_bound(config))
        return tp_cli_fail(err);
    print(config, json);
    tp_cli_print_notice("config", config);
    if (status == TP_OK)
        return 0;
    if (!tp_config_missing(config))
        return tp_cli_fail(err);
    fprintf(stderr, "temper config: %s\n", tp_config_missing(config));
    return 0;
}

int tp_cmd_config(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 1];
    tp_error err = {0};
    const tp_usage usage = {.command = "config",
                            .arguments = "[CONFIG [KEY=VALUE...]]",
                            .summary = "Every key with its value and where it came from, of a "
                                       "training or an evaluation.  ??? is still to be set.",
                            .flags = flag_table,
                            .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (f.doc) {
        tp_buf out = {0};
        size_t count;
        tp_option *table = tp_train_options_of(NULL, NULL, &count);
        tp_options_doc(table, count, &out);
        free(table);
        fwrite(out.data, 1, out.len, stdout);
        tp_buf_release(&out);
        return 0;
    }
    tp_config *config = NULL;
    if (tp_cli_load_recipe(words, n, &config, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_status status = bind(config, n > 0, &err);
    int result = show(config, f.json, status, &err);
    tp_config_release(config);
    return result;
}
