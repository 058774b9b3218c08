/* error.h - how a function says that it failed.
 *
 * A fallible function returns tp_status and takes `tp_error *err` last.  On success it
 * leaves *err alone; on failure it fills *err (which may be NULL) and leaves its output
 * arguments as they were.
 *
 *     tp_error err;
 *     if (tp_model_open("folder", &model, &err) != TP_OK)
 *         fprintf(stderr, "%s\n", err.message);
 *
 * Threads: any, at once. */
#ifndef TEMPER_ERROR_H
#define TEMPER_ERROR_H

#include "temper/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TP_OK = 0,
    TP_ERR_ARG,         /* the caller broke a documented precondition          */
    TP_ERR_CONFIG,      /* the user's configuration cannot be honoured         */
    TP_ERR_FORMAT,      /* a file does not say what its format requires        */
    TP_ERR_IO,          /* a file could not be read; message has strerror      */
    TP_ERR_NOMEM,       /* a planned buffer does not fit, or memory ran out    */
    TP_ERR_UNSUPPORTED, /* valid, but nothing here implements it               */
    TP_ERR_NUMERIC,     /* the computation went non-finite and policy says stop */
    TP_ERR_INTERRUPTED, /* a signal asked to stop; state is saved              */
    TP_ERR_OUTPUT       /* what was to be kept could not be written            */
} tp_status;

/* Owned by the caller, so that failing allocates nothing. */
typedef struct {
    tp_status status;
    const char *file; /* the place in the library: for logs, not for users */
    int line;
    char message[4096]; /* a sentence: the subject, the reason, what helps; or a list of them */
} tp_error;

/* "configuration", "format", ...: the word for a status in logs and JSON. */
TP_API const char *tp_status_name(tp_status status);

#ifdef __cplusplus
}
#endif

#endif
