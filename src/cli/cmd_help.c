/* cmd_help.c - `temper help`: the commands, and the help of one. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

static const tp_flag flags[] = {{.name = "json", .doc = "as JSON", .type = TP_FLAG_BOOL}, {0}};

const tp_command *tp_command_find(const char *name)
{
    for (size_t i = 0; i < tp_n_commands; i++)
        if (strcmp(tp_commands[i].name, name) == 0)
            return &tp_commands[i];
    return NULL;
}

int tp_command_unknown(const char *name)
{
    tp_nearest near = {.word = name};
    for (size_t i = 0; i < tp_n_commands; i++)
        tp_nearest_offer(&near, tp_commands[i].name);
    fprintf(stderr, "temper: there is no command '%s'%s%s%s; see 'temper help'\n", name,
            near.best ? "; did you mean '" : "", near.best ? near.best : "", near.best ? "'" : "");
    return 2;
}

/* No text of commands.def needs to be escaped. */
static void print_json(void)
{
    for (size_t i = 0; i < tp_n_commands; i++)
        printf("%s  {\n    \"command\": \"%s\",\n    \"arguments\": \"%s\",\n"
               "    \"summary\": \"%s\"\n  }",
               i ? ",\n" : "[\n", tp_commands[i].name, tp_commands[i].arguments,
               tp_commands[i].summary);
    printf("\n]\n");
}

static void print_text(void)
{
    printf("temper %s: post-train transformer language models, and measure it\n\n", TEMPER_VERSION);
    for (size_t i = 0; i < tp_n_commands; i++) {
        int n = (int)strlen(tp_commands[i].name);
        printf("  temper %s %-*s  %s\n", tp_commands[i].name, 29 - n, tp_commands[i].arguments,
               tp_commands[i].summary);
    }
    printf("\n'temper help COMMAND' lists a command's options.\n\nExit status of every command:\n");
#define EXIT(name, number, meaning) printf("  %-9d%s\n", number, meaning);
#include "temper/exit_status.def"
#undef EXIT
    printf("  %d + N  stopped by signal N\n", TP_EXIT_SIGNAL);
}

/* Commands of a command that have options of their own. */
static bool has_part(const char *command, const char *part)
{
    static const char *const parts[][2] = {{"bench", "history"},  {"config", "import"}, {"eval", "compare"},
                                           {"eval", "summarize"}, {"trace", "compare"},
                                           {"trace", "export"},   {"trace", "stats"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i][0], command) == 0 && strcmp(parts[i][1], part) == 0)
            return true;
    return false;
}

static int help_of(char **words, int n)
{
    const tp_command *command = tp_command_find(words[0]);
    char flag[] = "--help", *args[] = {words[0], n > 1 ? words[1] : flag, flag, NULL};
    if (!command)
        return tp_command_unknown(words[0]);
    if (n > 1 && !has_part(words[0], words[1])) {
        fprintf(stderr, "temper help: '%s' has no part '%s'; see 'temper help %s'\n", words[0],
                words[1], words[0]);
        return 2;
    }
    return command->run(n > 1 ? 3 : 2, args);
}

int tp_cmd_help(int argc, char **argv)
{
    bool json = false;
    char *words[argc + 1];
    const tp_usage usage = {.command = "help",
                            .arguments = "[COMMAND [PART]]",
                            .summary = "The list of commands, or the options of one.",
                            .flags = flags,
                            .max_words = 2};
    /* `temper --help` comes here under its own name. */
    int n = argc > 1 ? tp_cli_parse(&usage, argc, argv, &json, words) : 0;
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (n > 0 && (n > 1 || strcmp(words[0], "help") != 0))
        return help_of(words, n);
    if (json)
        print_json();
    else
        print_text();
    return 0;
}
