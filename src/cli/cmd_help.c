#include <string.h>

#include "cli/cli.h"

static const struct {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, arguments, summary) {#name, arguments, summary, tp_cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

int tp_cmd_help(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, argv[1]) == 0 && commands[i].run != tp_cmd_help) {
            char flag[] = "--help", *args[] = {argv[1], flag, NULL};
            return commands[i].run(2, args);
        }
    if (argc > 1 && strcmp(argv[1], "help") != 0 && strcmp(argv[1], "--help") != 0) {
        fprintf(stderr, "temper: there is no command '%s'; see 'temper help'\n", argv[1]);
        return 2;
    }
    printf("temper %s: post-train transformer language models, and measure it\n\n", TEMPER_VERSION);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        printf("  temper %-10s %-26s %s\n", commands[i].name, commands[i].arguments,
               commands[i].summary);
    printf("\n'temper help COMMAND' lists a command's options.\n");
    return 0;
}
