/* cli.h - what every command shares.
 *
 * A command is one row of commands.def and one function.  Its flags are one table,
 * which drives parsing and --help alike.  Commands print; the library does not.
 * Exit status: 0 done, 2 bad input, 4 the system refused, 5 out of memory,
 * 6 stopped for numerical reasons, 130 and 143 stopped by a signal. */
#ifndef TP_CLI_CLI_H
#define TP_CLI_CLI_H

#include <stdio.h>

#include "base/error.h"
#include "base/strings.h"

typedef struct {
    const char *name;      /* "json": --json */
    char letter;           /* 'j' or 0 */
    const char *argument;  /* "N": takes a value; NULL: a switch */
    const char *doc;
    enum { TP_FLAG_BOOL, TP_FLAG_STRING, TP_FLAG_INT, TP_FLAG_FLOAT } type;
    size_t offset; /* of bool, const char *, int64_t or double in the target */
} tp_flag;

typedef struct {
    const char *command, *arguments, *summary;
    const tp_flag *flags; /* ends with a row whose name is NULL */
    const char *details;  /* text after the flags in --help, or NULL */
    int min_words, max_words;
} tp_usage;

/* Fill *target from argv (the command's name first); words that are not flags go to
 * ret_words (argc + 1 slots).  Returns their number, or -1 after printing what is wrong
 * (exit 2), or -2 after --help (exit 0). */
int tp_cli_parse(const tp_usage *usage, int argc, char **argv, void *target, char **ret_words);

/* Print "temper: message" and return the exit status of the failure. */
int tp_cli_fail(const tp_error *err);
int tp_cli_exit_status(tp_status status);

/* Colour only on a terminal, and not with NO_COLOR or TERM=dumb. */
bool tp_cli_colour(FILE *out);

#define COMMAND(name, arguments, summary) int tp_cmd_##name(int argc, char **argv);
#include "cli/commands.def"
#undef COMMAND

#endif
