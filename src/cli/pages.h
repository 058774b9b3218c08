/* pages.h - what is made of the tables of flags besides --help: manual pages, completions for
 * shells, JSON. */
#ifndef TP_CLI_PAGES_H
#define TP_CLI_PAGES_H

#include "cli/commands.h"

/* Call `see` for every command, and for every part that has options of its own. */
typedef void (*tp_pages_see)(const tp_usage *usage, const tp_command *command, const char *part);
void tp_pages_walk(tp_pages_see see);

/* The manual page, in mdoc, of a command or a part; `command` NULL: of temper itself. */
void tp_print_manual(const tp_command *command, const char *part);

/* The script for "bash", "zsh" or "fish"; false: another shell. */
bool tp_print_completion(const char *shell);

/* {"command", "arguments", "summary", "options": [...]} of everything. */
void tp_print_commands_json(void);

/* Is the value of this flag the name of a file or folder? */
bool tp_takes_file(const tp_flag *flag);

#endif
