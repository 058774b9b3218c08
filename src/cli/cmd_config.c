/* cmd_config.c - `temper config`: a configuration resolved, or the documentation of its keys. */
#include <string.h>

#include "cli/commands.h"
#include "temper/config.h"

typedef struct {
    bool json, doc;
    const char *level;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "the resolved tree as JSON"),
    TP_SWITCH("doc", 0, doc, "every key with type, default and meaning, as Markdown"),
    TP_CHOICE("level", 0, "LEVEL", level, TP_CLI_LEVELS,
              "the same as optimization.level=LEVEL: basic, advanced, ultra"),
    {0}};

static void print(char *text, size_t n)
{
    fwrite(text, 1, n, stdout);
    fflush(stdout);
    tp_free(text);
}

/* A tree that could be made is shown, whatever else is wrong; what is still to be set is no
 * fault here. */
static int show(const tp_configuration *c, bool json)
{
    char *text;
    size_t n;
    tp_error err;
    tp_configuration_text(c, json, &text, &n);
    print(text, n);
    if (tp_configuration_notice(c))
        fprintf(stderr, "temper config: %s\n", tp_configuration_notice(c));
    if (tp_configuration_check(c, &err) != TP_OK)
        return tp_cli_fail(&err);
    if (tp_configuration_missing(c))
        fprintf(stderr, "temper config: %s\n", tp_configuration_missing(c));
    return 0;
}

static int print_keys(void)
{
    char *text;
    size_t n;
    tp_configuration_keys(&text, &n);
    print(text, n);
    return 0;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char level[TP_CLI_SETTING];
    tp_error err = {0};
    if (f->doc)
        return print_keys();
    n = tp_cli_add_setting(words, n, "optimization.level", f->level, level);
    char path[TP_CLI_PATH], **rest = words;
    tp_configuration *c;
    if (tp_cli_find_recipe(&rest, &n, path, &err) != TP_OK ||
        tp_configuration_open(path[0] ? path : NULL, (const char *const *)rest, (size_t)n, &c,
                              &err) != TP_OK)
        return tp_cli_fail(&err);
    int result = show(c, f->json);
    tp_configuration_free(c);
    return result;
}

const tp_usage tp_usage_config = {
    .command = "config",
    .arguments = "[CONFIG [KEY=VALUE...]]\nimport FILE [OUT.yaml]",
    .summary = "Every key with its value and where it came from, of a "
               "training or an evaluation.  ??? is still to be set.  'import' "
               "makes a recipe of NeMo RL's, TRL's and Axolotl's files.",
    .flags = flag_table,
    .max_words = -1,
    .size = sizeof(flags),
    .run = execute};
