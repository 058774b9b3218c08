/* error.h - how a function says that it failed.
 *
 * A fallible function returns tp_status and takes `tp_error *err` last.  On
 * success it leaves *err alone; on failure it fills *err and leaves its output
 * arguments as they were.  Library code never prints and never exits: the
 * command at the top decides what a failure looks like to the user.
 *
 * Broken invariants are not errors.  They are bugs: TP_ASSERT() stops there. */
#ifndef TP_BASE_ERROR_H
#define TP_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum {
    TP_OK = 0,
    TP_ERR_ARG,         /* the caller broke a documented precondition          */
    TP_ERR_CONFIG,      /* the user's configuration cannot be honoured         */
    TP_ERR_FORMAT,      /* a file does not say what its format requires        */
    TP_ERR_IO,          /* the operating system refused; message has strerror  */
    TP_ERR_NOMEM,       /* a planned buffer does not fit the device            */
    TP_ERR_UNSUPPORTED, /* valid, but nothing here implements it               */
    TP_ERR_NUMERIC,     /* the computation went non-finite and policy says stop */
    TP_ERR_INTERRUPTED  /* a signal asked to stop; state is saved              */
} tp_status;

typedef struct {
    tp_status status;
    const char *file; /* where tp_fail() was called: for logs, not for users  */
    int line;
    char message[1024];
} tp_error;

#define TP_CHECKED __attribute__((warn_unused_result))
#define TP_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Fill *err (which may be NULL) and return `status`, so a failure is one line:
 *     return tp_fail(err, TP_ERR_FORMAT, "header of %zu bytes exceeds file", n); */
#define tp_fail(err, status, ...) tp_error_set((err), (status), __FILE__, __LINE__, __VA_ARGS__)

/* Hand a failure of `call` to our own caller. */
#define TP_TRY(call)                    \
    do {                                \
        tp_status try_status_ = (call); \
        if (try_status_ != TP_OK)       \
            return try_status_;         \
    } while (0)

#define TP_ASSERT(cond)                                                     \
    do {                                                                    \
        if (!(cond)) {                                                      \
            fprintf(stderr, "%s:%d: bug: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                        \
        }                                                                   \
    } while (0)

tp_status tp_error_set(tp_error *err, tp_status status, const char *file, int line, const char *fmt,
                       ...) TP_PRINTF(5, 6);

/* Put "while loading 'x': " in front of the message on its way up.  Returns
 * err->status (or `status` when err is NULL), so it can end a function. */
tp_status tp_error_prefix(tp_error *err, tp_status status, const char *fmt, ...) TP_PRINTF(3, 4);

/* "configuration", "format", ...: the word for a status in logs and JSON. */
const char *tp_status_name(tp_status status);

#endif
