/* commands.c - every command, from commands.def, and their parts. */
#include "cli/commands.h"

#include "cli/cli.h"

const tp_command tp_commands[] = {
#define COMMAND(name, arguments, summary) {#name, arguments, summary, tp_cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

const size_t tp_n_commands = sizeof tp_commands / sizeof *tp_commands;

const tp_command_part tp_command_parts[] = {
    {"bench", "compare", false}, {"bench", "history", true},   {"config", "import", true},
    {"eval", "compare", false},  {"eval", "summarize", false}, {"trace", "compare", true},
    {"trace", "export", true},   {"trace", "stats", true}};

const size_t tp_n_command_parts = sizeof tp_command_parts / sizeof *tp_command_parts;
