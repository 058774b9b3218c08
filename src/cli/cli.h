/* cli.h - what every command shares.
 *
 * A command is one row of commands.def and one function.  Its flags are one table,
 * which drives parsing and --help alike.  Commands print; the library does not.
 * Exit statuses: temper/exit_status.def.
 *
 * What includes this file and temper/ headers alone is a command as it should be: arguments, the
 * terminal, and calls of the library. */
#ifndef TP_CLI_CLI_H
#define TP_CLI_CLI_H

#include <stdio.h>

#include "temper/exit_status.h"
#include "temper/terminal.h"
#include "temper/text.h"

/* What a flag that may be given several times holds: TP_FLAG_LIST. */
enum { TP_FLAG_MOST = 64 };
typedef struct {
    const char *items[TP_FLAG_MOST];
    int n;
} tp_flag_list;

typedef struct {
    const char *name;     /* "json": --json */
    char letter;          /* 'j' or 0 */
    const char *argument; /* "N": takes a value; NULL: a switch */
    const char *doc;
    const char *choices; /* "auto block plain": the words it may be, or NULL */
    enum { TP_FLAG_BOOL, TP_FLAG_STRING, TP_FLAG_INT, TP_FLAG_FLOAT, TP_FLAG_LIST } type;
    size_t offset;      /* of bool, const char *, int64_t, double or list in the target */
    double least, most; /* of a number; both 0 = any */
} tp_flag;

/* Rows of a table of flags; `member` belongs to the command's own struct `flags`. */
#define TP_ROW(flag_name, key, value, kind, member, from, to, text)                               \
    {                                                                                             \
        .name = flag_name, .letter = key, .argument = value, .doc = text, .type = TP_FLAG_##kind, \
        .offset = offsetof(flags, member), .least = from, .most = to                              \
    }
#define TP_SWITCH(name, letter, member, doc) TP_ROW(name, letter, NULL, BOOL, member, 0, 0, doc)
#define TP_TEXT(name, letter, argument, member, doc) \
    TP_ROW(name, letter, argument, STRING, member, 0, 0, doc)
#define TP_NUMBER(name, letter, argument, kind, member, least, most, doc) \
    TP_ROW(name, letter, argument, kind, member, least, most, doc)

#define TP_CHOICE(flag_name, key, value, member, words, text)                               \
    {                                                                                       \
        .name = flag_name, .letter = key, .argument = value, .doc = text, .choices = words, \
        .type = TP_FLAG_STRING, .offset = offsetof(flags, member)                           \
    }

typedef struct {
    const char *command, *arguments, *summary;
    const tp_flag *flags; /* ends with a row whose name is NULL */
    const char *details;  /* text after the flags in --help, or NULL */
    int min_words, max_words;
    const char *(*word)(
        size_t i); /* words that an argument may be, NULL behind the last; or NULL */
} tp_usage;

/* Choices that several commands have. */
#define TP_CLI_ISA "portable avx2 avx512 avx512_bf16 amx"
#define TP_CLI_LEVELS "basic advanced ultra"

/* Fill *target from argv (the command's name first); words that are not flags go to
 * ret_words (argc + 1 slots).  Returns their number, or -1 after printing what is wrong
 * (exit 2), or -2 after --help (exit 0). */
int tp_cli_parse(const tp_usage *usage, int argc, char **argv, void *target, char **ret_words);

/* What a command can do, without its doing it: `run` is its function, `name` its name, `part` one
 * of tp_command_parts[] or NULL.  `see` is called once. */
typedef void (*tp_cli_see)(const tp_usage *usage, void *user);
void tp_cli_describe(int (*run)(int argc, char **argv), const char *name, const char *part,
                     tp_cli_see see, void *user);
/* --color, which no table of a command has. */
const tp_flag *tp_cli_color_flag(void);

/* Have `signal` handled, without cutting writes short: a stream whose write failed counts as
 * broken, and the program would end with the status for that. */
void tp_cli_catch(int signal, void (*handler)(int));

/* Print "temper: message" and return the exit status of the failure. */
int tp_cli_fail(const tp_error *err);
/* Print "temper COMMAND: message" and return that of wrong usage; `command` may be "". */
int tp_cli_refuse(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The end of most commands: print the text, which is freed (NULL: nothing), or the failure; the
 * exit status. */
int tp_cli_print(tp_status status, char *text, const tp_error *err);

/* TP_EXIT_WORSE in place of success when the verdict that was asked for is "worse". */
int tp_cli_verdict(int exit_status, bool is_worse);

/* The form of a report that was asked for. */
tp_form tp_cli_form(bool json, bool csv, bool markdown);

/* Seconds of a clock that only goes forward. */
double tp_cli_clock_s(void);

/* A terminal that can move its cursor; colour as --color says, else there and without NO_COLOR. */
bool tp_cli_terminal(FILE *out);
bool tp_cli_colour(FILE *out);
/* Standard output goes to another program: a write that fails there means that it has ended. */
bool tp_cli_is_pipe(void);
/* Columns of standard output: COLUMNS, the terminal's, else 110. */
int tp_cli_width(void);
int tp_cli_error_width(void); /* of the terminal behind standard error, else 80 */

/* Standard output is text for people from here on: with a screen, or COLUMNS, no line is wider than
 * that as long as a blank can be found. */
void tp_cli_wrap(void);

/* --isa: false after printing what is wrong; NULL is fine. */
bool tp_cli_force_isa(const char *name);

#define COMMAND(name, arguments, summary) int tp_cmd_##name(int argc, char **argv);
#include "cli/commands.def"
#undef COMMAND

#endif
