/* cmd_help.c - `temper help`: the commands, the help of one, and what shells and man(1) need. */
#include <string.h>

#include "cli/pages.h"
#include "temper/config.h"

typedef struct {
    bool json, man;
    const char *completion, *list;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "every command with its options, as JSON"),
    TP_SWITCH("man", 0, man, "the manual page of temper or of a command, for man -l -"),
    TP_CHOICE("completion", 0, "SHELL", completion, "bash zsh fish",
              "the script that completes words in bash, zsh or fish"),
    TP_CHOICE("list", 0, "WHAT", list, "commands recipes keys",
              "names alone, one a line: commands, recipes (those that came with temper), or keys "
              "of a training"),
    {0}};

static bool is_recipe(const char *name)
{
    char *names = NULL;
    tp_error err;
    bool is_one = false;
    if (tp_recipe_names(&names, &err) != TP_OK)
        return false;
    for (char *rest = names, *word; (word = strsep(&rest, "\n"));)
        is_one |= *word && strcmp(word, name) == 0;
    tp_free(names);
    return is_one;
}

int tp_command_unknown(const char *name)
{
    tp_nearest near = {.word = name};
    for (size_t i = 0; i < tp_n_commands; i++)
        tp_nearest_offer(&near, tp_commands[i].name);
    if (near.best)
        fprintf(stderr, "temper: there is no command '%s'; did you mean '%s'; see 'temper help'\n",
                name, near.best);
    else if (is_recipe(name))
        fprintf(stderr, "temper: '%s' is a recipe, not a command: 'temper %s %s ...'\n", name,
                strstr(name, "eval") ? "eval" : "train", name);
    else
        fprintf(stderr, "temper: there is no command '%s'; see 'temper help%s'\n", name,
                strcmp(name, "recipes") == 0 ? " recipes" : "");
    return 2;
}

static void print_text(void)
{
    printf("temper %s: post-train transformer language models, and measure it\n\n", TEMPER_VERSION);
    for (size_t i = 0; i < tp_n_commands; i++) {
        int n = (int)strlen(tp_commands[i].name);
        printf("  temper %s %-*s  %s\n", tp_commands[i].name, 29 - n, tp_commands[i].arguments,
               tp_commands[i].summary);
    }
    printf("\n'temper help COMMAND' lists a command's options, 'temper help recipes' what can\n"
           "be trained by name.\n\nExit status of every command:\n");
#define EXIT(name, number, meaning) printf("  %-9d%s\n", number, meaning);
#include "temper/exit_status.def"
#undef EXIT
    printf("  %d + N  stopped by signal N\n", TP_EXIT_SIGNAL);
}

static int help_of(char **words, int n, bool man)
{
    const tp_command *command = tp_command_find(words[0]);
    char flag[] = "--help", *args[] = {words[0], n > 1 ? words[1] : flag, flag, NULL};
    if (!command)
        return tp_command_unknown(words[0]);
    if (n > 1 && !tp_command_find_part(words[0], words[1])) {
        fprintf(stderr, "temper help: '%s' has no part '%s'; see 'temper help %s'\n", words[0],
                words[1], words[0]);
        return 2;
    }
    if (!man)
        return tp_command_run(command, n > 1 ? 3 : 2, args);
    tp_print_manual(command, n > 1 ? words[1] : NULL);
    return 0;
}

/* ---- names alone ---- */

static void print_name(const tp_usage *usage, const tp_command *command, const char *part)
{
    (void)usage;
    printf("%s%s%s\n", command->name, part ? " " : "", part ? part : "");
}

/* Of a table of keys in Markdown, as "KEY=". */
static void print_keys(void)
{
    char *text;
    size_t n;
    tp_configuration_keys(&text, &n);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, "| `", 3) == 0)
            printf("%.*s=\n", (int)strcspn(line + 3, "`"), line + 3);
    tp_free(text);
}

static int list(const char *what)
{
    char *names = NULL;
    if (strcmp(what, "commands") == 0) {
        tp_pages_walk(print_name);
    } else if (strcmp(what, "keys") == 0) {
        print_keys();
    } else if (strcmp(what, "recipes") == 0) {
        tp_error err;
        tp_status status = tp_recipe_names(&names, &err);
        return tp_cli_print(status, names, &err);
    } else {
        return tp_cli_refuse("help", "--list takes commands, recipes or keys, not '%s'", what);
    }
    return 0;
}

static int print_recipes(void)
{
    char *text = NULL;
    tp_error err;
    tp_cli_wrap();
    tp_status status = tp_recipe_list(&text, &err);
    if (status == TP_OK)
        printf("Recipes, by name wherever CONFIG stands; copy one to change it.\n\n");
    return tp_cli_print(status, text, &err);
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    if (f->list)
        return list(f->list);
    if (f->completion && !tp_print_completion(f->completion))
        return tp_cli_refuse("help", "--completion takes bash, zsh or fish, not '%s'",
                             f->completion);
    if (f->completion)
        return 0;
    if (n == 1 && strcmp(words[0], "recipes") == 0)
        return print_recipes();
    if (n > 0)
        return help_of(words, n, f->man);
    if (f->man)
        tp_print_manual(NULL, NULL);
    else if (f->json)
        tp_print_commands_json();
    else
        print_text();
    return 0;
}

const tp_usage tp_usage_help = {
    .command = "help",
    .arguments = "[COMMAND [PART]]\nrecipes",
    .summary = "The list of commands, the options of one, or the recipes.",
    .flags = flag_table,
    .details = "In bash: source <(temper help --completion bash).  An installed temper has "
               "its manual pages and completions where man and the shells look.",
    .max_words = 2,
    .size = sizeof(flags),
    .run = execute};
