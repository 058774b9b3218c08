#include "cli/cli.h"
#include "cli/recipe.h"

typedef struct {
    bool json, doc;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "the resolved tree as JSON"),
    TP_SWITCH("doc", 0, doc, "every key with type, default and meaning, as Markdown"),
    {0}};

static void print(const tp_recipe *recipe, bool json)
{
    tp_buf out = {0};
    if (json) {
        tp_json_w w;
        tp_json_w_init(&w, &out, 2);
        tp_json_w_value(&w, tp_config_resolved(recipe->config));
        tp_buf_addc(&out, '\n');
    } else
        tp_config_write(recipe->config, &out);
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
}

/* Without a file: the defaults, which need not be a run that could start. */
static tp_status open_defaults(tp_recipe *ret, tp_error *err)
{
    *ret = (tp_recipe){0};
    TP_TRY(tp_config_load(&ret->config, NULL, err));
    size_t n;
    const tp_option *table = tp_train_options_of(TP_ALGORITHM_SFT, &n);
    tp_status status = tp_config_bind(ret->config, table, n, &ret->options, err);
    if (status != TP_OK)
        tp_recipe_close(ret);
    return status;
}

int tp_cmd_config(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 1];
    tp_error err = {0};
    tp_recipe recipe;
    const tp_usage usage = {.command = "config",
                            .arguments = "[CONFIG [KEY=VALUE...]]",
                            .summary = "Every key with its value and where it came from.",
                            .flags = flag_table,
                            .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (f.doc) {
        tp_buf out = {0};
        tp_options_doc(tp_train_option_table, tp_train_option_count, &out);
        fwrite(out.data, 1, out.len, stdout);
        tp_buf_release(&out);
        return 0;
    }
    if ((n > 0 ? tp_cli_open_recipe(words, n, &recipe, &err) : open_defaults(&recipe, &err)) !=
        TP_OK)
        return tp_cli_fail(&err);
    print(&recipe, f.json);
    tp_recipe_close(&recipe);
    return 0;
}
