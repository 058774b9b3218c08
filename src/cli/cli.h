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

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "temper/error.h"
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
    enum {
        TP_FLAG_BOOL,
        TP_FLAG_STRING,
        TP_FLAG_INT,
        TP_FLAG_FLOAT,
        TP_FLAG_SHARE, /* above 0 and below 1, as 5% or 0.05: a double */
        TP_FLAG_LIST
    } type;
    size_t offset;      /* of bool, const char *, int64_t, double or list in the target */
    double least, most; /* of a number; both 0 = any */
} tp_flag;

/* Rows of a table of flags; `member` belongs to the command's own struct `flags`, often to the
 * library's options in it. A member of another type than the flag's is a warning: pointers that
 * do not match. */
#define TP_TARGET_BOOL bool
#define TP_TARGET_STRING const char *
#define TP_TARGET_INT int64_t
#define TP_TARGET_FLOAT double
#define TP_TARGET_SHARE double
#define TP_TARGET_LIST tp_flag_list
#define TP_TARGET(kind, member) \
    .type = TP_FLAG_##kind,     \
    .offset =                   \
        offsetof(flags, member) + 0 * sizeof *(1 ? &((flags *)0)->member : (TP_TARGET_##kind *)0)

#define TP_ROW(flag_name, key, value, kind, member, from, to, text)                                \
    {                                                                                              \
        .name = flag_name, .letter = key, .argument = value, .doc = text, TP_TARGET(kind, member), \
        .least = from, .most = to                                                                  \
    }
#define TP_SWITCH(name, letter, member, doc) TP_ROW(name, letter, NULL, BOOL, member, 0, 0, doc)
#define TP_TEXT(name, letter, argument, member, doc) \
    TP_ROW(name, letter, argument, STRING, member, 0, 0, doc)
#define TP_NUMBER(name, letter, argument, kind, member, least, most, doc) \
    TP_ROW(name, letter, argument, kind, member, least, most, doc)
#define TP_SHARE(name, member, doc) TP_ROW(name, 0, "SHARE", SHARE, member, 0, 0, doc)
#define TP_LIST(name, letter, argument, member, doc) \
    TP_ROW(name, letter, argument, LIST, member, 0, 0, doc)
#define TP_CHOICE(flag_name, key, value, member, words, text)                               \
    {                                                                                       \
        .name = flag_name, .letter = key, .argument = value, .doc = text, .choices = words, \
        TP_TARGET(STRING, member)                                                           \
    }

/* What a command is called with, and what it does. */
typedef struct {
    const char *command, *arguments, *summary;
    const tp_flag *flags; /* ends with a row whose name is NULL */
    const char *details;  /* text after the flags in --help, or NULL */
    int min_words, max_words;
    const char *(*word)(
        size_t i);        /* words that an argument may be, NULL behind the last; or NULL */
    size_t size;          /* of the struct that the flags fill */
    const void *defaults; /* one; NULL: all of it 0 */
    bool wraps;           /* writes text for people, unless --json, --csv or --markdown is given */
    /* The exit status.  `words` are those that are no flags, with room for two settings more. */
    int (*run)(const void *flags, char **words, int n);
    int (*start)(int argc, char **argv); /* in place of all that: parses itself; or NULL */
} tp_usage;

/* Choices that several commands have. */
#define TP_CLI_ISA "portable avx2 avx512 avx512_bf16 amx"
#define TP_CLI_LEVELS "basic advanced ultra"

/* Fill *target from argv (the command's name first); words that are not flags go to
 * ret_words (argc + 1 slots).  Returns their number, or -1 after printing what is wrong
 * (exit 2), or -2 after --help (exit 0). */
int tp_cli_parse(const tp_usage *usage, int argc, char **argv, void *target, char **ret_words);

/* Parse and run; the exit status. */
int tp_cli_run(const tp_usage *usage, int argc, char **argv);
/* --color, which no table of a command has. */
const tp_flag *tp_cli_color_flag(void);

/* Have `signal` handled, without cutting writes short: a stream whose write failed counts as
 * broken, and the program would end with the status for that. */
void tp_cli_catch(int signal, void (*handler)(int));

/* Print "temper: message" and return the exit status of the failure. */
int tp_cli_fail(const tp_error *err);
int tp_cli_no_memory(void); /* the same of memory that a command itself does not get */
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
/* Hands on what was printed: false when it, or something before, could not be written; errno is
 * then why the first time, 0 where nobody knows. */
bool tp_cli_flush(void);
/* Columns of standard output: COLUMNS, the terminal's, else 110. */
int tp_cli_width(void);
int tp_cli_error_width(void); /* of the terminal behind standard error, else 80 */

/* Standard output is text for people from here on: with a screen, or COLUMNS, no line is wider than
 * that as long as a blank can be found. */
void tp_cli_wrap(void);

/* --isa: false after printing what is wrong; NULL is fine. */
bool tp_cli_force_isa(const char *name);

/* ---- what a command is at, on standard error, while it says nothing else: on a terminal one line,
 * redrawn every second and gone before anything else is printed; elsewhere, as lines stay there,
 * one after 10, 20, 40, 80, 140 ... seconds.  A computation is spoken of after ten seconds, with
 * what the library tells of it (tp_working_listen()); what measures for minutes says what it is at
 * from the beginning on ---- */

/* One at a time.  `what` is "temper stats: looking for the trend". */
void tp_waiting_begin(const char *what);
/* This is the line from now on, without seconds; `text` NULL or "": none. */
void tp_waiting_say(const char *text);
void tp_waiting_end(void); /* without a beginning a no-op */

/* "note: text" on standard error, wherever the line is: what the library has to remark, as its
 * callbacks have it. */
void tp_cli_note(void *user, const char *text);

/* ---- a signal asks a command to end: the first one behind what is at work, so that nothing is
 * left half done; the second ends the process at once ---- */

/* From now on SIGINT and SIGTERM ask. */
void tp_cli_catch_stop(void);
/* The handler, for a further signal that asks (tp_cli_catch). */
void tp_cli_ask_to_stop(int number);

/* Was it asked?  In the form of the library's callbacks. */
bool tp_cli_should_stop(void *user);
/* The exit status: that of the signal where one came. */
int tp_cli_stopped(int status);

/* ---- amounts as people write them; false when a text is none ---- */

/* "5%", "0.05": a fraction below 1. */
bool tp_cli_fraction(const char *text, double *ret);
/* "30s", "5m", "1h", "250ms"; seconds where there is no unit. */
bool tp_cli_time(const char *text, double *ret);
/* "8GiB", "512M": powers of 1024 with K, M or G; "iB" and "B" behind it are fine. */
bool tp_cli_bytes(const char *text, uint64_t *ret);

/* ---- the file that the first word of a command line means ---- */

enum { TP_CLI_PATH = 4096 }; /* bytes of a path, its end included */

/* words[0] is the file, unless it is KEY=VALUE as the rest are: take it off the words.  *path is
 * "" when none is named.  A file that is not there is looked for among the installed recipes. */
TP_CHECKED tp_status tp_cli_find_recipe(char ***words, int *n, char path[TP_CLI_PATH],
                                        tp_error *err);
/* A flag that is another spelling of a key: one more override, unless it was not given (NULL).
 * `words` has room for it, `text` outlives them.  Returns the new n. */
enum { TP_CLI_SETTING = 96 };
int tp_cli_add_setting(char **words, int n, const char *key, const char *value, char *text);

#endif
