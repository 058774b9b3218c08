/* error.c - setting an error and putting a place in front of it. */
#include "base/error.h"

#include <stdarg.h>
#include <string.h>

tp_status tp_error_set(tp_error *err, tp_status status, const char *file, int line, const char *fmt,
                       ...)
{
    if (!err)
        return status;
    /* Format aside first: an argument may point into err->message. */
    char message[sizeof err->message];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    err->status = status;
    err->file = file;
    err->line = line;
    memcpy(err->message, message, sizeof message);
    return status;
}

tp_status tp_error_prefix(tp_error *err, tp_status status, const char *fmt, ...)
{
    if (!err)
        return status;
    char message[sizeof err->message];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof message)
        snprintf(message + n, sizeof message - (size_t)n, "%s", err->message);
    memcpy(err->message, message, sizeof message);
    return err->status;
}

const char *tp_status_name(tp_status status)
{
    static const char *const names[] = {"ok",          "argument", "configuration", "format",
                                        "io",          "memory",   "unsupported",   "numeric",
                                        "interrupted", "output"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}
