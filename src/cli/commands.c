#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const tp_command tp_commands[] = {
#define COMMAND(name, arguments, summary) {#name, arguments, summary, tp_cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

const size_t tp_n_commands = sizeof tp_commands / sizeof *tp_commands;

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
