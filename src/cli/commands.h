/* commands.h - the table of commands, made of commands.def. */
#ifndef TP_CLI_COMMANDS_H
#define TP_CLI_COMMANDS_H

#include <stddef.h>

typedef struct {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv);
} tp_command;

extern const tp_command tp_commands[];
extern const size_t tp_n_commands;

const tp_command *tp_command_find(const char *name); /* NULL when there is none */

/* Print that `name` is no command, with the nearest that is; returns exit status 2. */
int tp_command_unknown(const char *name);

#endif
