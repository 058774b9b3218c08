/* error.c - setting an error and putting a place in front of it. */
#include "base/error.h"

#include <string.h>

/* A line break in a sentence was quoted from somewhere: written out, it cannot pass for a line of
 * ours. */
static void copy_sentence(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; *from && n + 2 < size; from++) {
        bool breaks = *from == '\n' || *from == '\r';
        if (breaks)
            to[n++] = '\\';
        to[n++] = *from == '\n' ? 'n' : *from == '\r' ? 'r' : *from;
    }
    to[n] = 0;
}

tp_status tp_error_set(tp_error *err, tp_status status, const char *file, int line, const char *fmt,
                       ...)
{
    if (!err)
        return status;
    /* Format aside first: an argument may point into err->message. */
    char message[sizeof err->message];
    TP_FORMAT(message, fmt);
    err->status = status;
    err->file = file;
    err->line = line;
    copy_sentence(err->message, sizeof err->message, message);
    return status;
}

tp_status tp_error_set_list(tp_error *err, tp_status status, const char *file, int line,
                            const char *list)
{
    (void)tp_error_set(err, status, file, line, "%s", "");
    if (err)
        snprintf(err->message, sizeof err->message, "%s", list);
    return status;
}

tp_status tp_error_prefix(tp_error *err, tp_status status, const char *fmt, ...)
{
    if (!err)
        return status;
    char place[sizeof err->message], message[sizeof err->message];
    TP_FORMAT(place, fmt);
    copy_sentence(message, sizeof message, place);
    size_t n = strlen(message);
    snprintf(message + n, sizeof message - n, "%s", err->message);
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
