/* commands.h - the table of commands, made of commands.def. */
#ifndef TP_CLI_COMMANDS_H
#define TP_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv);
} tp_command;

extern const tp_command tp_commands[];
extern const size_t tp_n_commands;

/* Commands of a command. */
typedef struct {
    const char *command, *part;
    bool has_options; /* of its own; else those of the command */
} tp_command_part;
extern const tp_command_part tp_command_parts[];
extern const size_t tp_n_command_parts;

const tp_command *tp_command_find(const char *name); /* NULL when there is none */

/* Print that `name` is no command, with the nearest that is; returns exit status 2. */
int tp_command_unknown(const char *name);

#endif
