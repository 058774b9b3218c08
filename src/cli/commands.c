/* commands.c - every command, from commands.def, and their parts. */
#include "cli/commands.h"

#include <string.h>

#define PART(command, part)
#define WORD(command, part)
const tp_command tp_commands[] = {
#define COMMAND(name, arguments, summary) {#name, arguments, summary, &tp_usage_##name},
#include "cli/commands.def"
#undef COMMAND
};
#undef PART
#undef WORD

const size_t tp_n_commands = sizeof tp_commands / sizeof *tp_commands;

#define COMMAND(name, arguments, summary)
const tp_command_part tp_command_parts[] = {
#define PART(command, part) {#command, #part, &tp_usage_##command##_##part},
#define WORD(command, part) {#command, #part, NULL},
#include "cli/commands.def"
#undef PART
#undef WORD
};
#undef COMMAND

const size_t tp_n_command_parts = sizeof tp_command_parts / sizeof *tp_command_parts;

const tp_command *tp_command_find(const char *name)
{
    for (size_t i = 0; i < tp_n_commands; i++)
        if (strcmp(tp_commands[i].name, name) == 0)
            return &tp_commands[i];
    return NULL;
}

const tp_command_part *tp_command_find_part(const char *command, const char *part)
{
    for (size_t i = 0; i < tp_n_command_parts; i++)
        if (strcmp(tp_command_parts[i].command, command) == 0 &&
            strcmp(tp_command_parts[i].part, part) == 0)
            return &tp_command_parts[i];
    return NULL;
}

int tp_command_run(const tp_command *command, int argc, char **argv)
{
    const tp_command_part *part = argc > 1 ? tp_command_find_part(command->name, argv[1]) : NULL;
    const tp_usage *usage = part && part->usage ? part->usage : command->usage;
    int n = usage != command->usage;
    return (usage->start ? usage->start(argc - n, argv + n)
                         : tp_cli_run(usage, argc - n, argv + n));
}
