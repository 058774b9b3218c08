/* commands.c - every command, from commands.def. */
#include "cli/commands.h"

#include "cli/cli.h"

const tp_command tp_commands[] = {
#define COMMAND(name, arguments, summary) {#name, arguments, summary, tp_cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

const size_t tp_n_commands = sizeof tp_commands / sizeof *tp_commands;
