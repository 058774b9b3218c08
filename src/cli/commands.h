/* commands.h - the table of commands, made of commands.def. */
#ifndef TP_CLI_COMMANDS_H
#define TP_CLI_COMMANDS_H

#include "cli/cli.h"

typedef struct {
    const char *name, *arguments, *summary;
    const tp_usage *usage;
} tp_command;

extern const tp_command tp_commands[];
extern const size_t tp_n_commands;

/* Commands of a command. */
typedef struct {
    const char *command, *part;
    const tp_usage *usage; /* NULL: a word of the command, with its options */
} tp_command_part;
extern const tp_command_part tp_command_parts[];
extern const size_t tp_n_command_parts;

const tp_command *tp_command_find(const char *name); /* NULL when there is none */
/* With that name; NULL when there is none. */
const tp_command_part *tp_command_find_part(const char *command, const char *part);

/* The command, or the part of it that argv[1] names; the exit status. */
int tp_command_run(const tp_command *command, int argc, char **argv);

/* Print that `name` is no command, with the nearest that is; returns exit status 2. */
int tp_command_unknown(const char *name);

#define COMMAND(name, arguments, summary) extern const tp_usage tp_usage_##name;
#define PART(command, part) extern const tp_usage tp_usage_##command##_##part;
#define WORD(command, word)
#include "cli/commands.def"
#undef COMMAND
#undef PART
#undef WORD

#endif
