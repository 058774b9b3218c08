/* log.h - where the library's few messages go.
 *
 * Failures are errors and progress is events; what remains are notices about something
 * that worked in another way than expected (a damaged checkpoint passed over).  They go
 * to standard error unless the program takes them.  One setting per process.
 *
 * Threads: any, at once; the setting is the process's. */
#ifndef TEMPER_LOG_H
#define TEMPER_LOG_H

#include "temper/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { TP_LOG_DEBUG, TP_LOG_NOTICE, TP_LOG_WARNING } tp_log_level;

/* `component` is the part of the library ("data", "checkpoint"), `message` a sentence
 * without a newline.  Called by any thread, one at a time; it must not log itself. */
typedef void (*tp_log_sink)(void *user, tp_log_level level, const char *component,
                            const char *message);

TP_API void tp_log_set_sink(tp_log_sink sink, void *user); /* NULL restores standard error */
TP_API void tp_log_set_level(tp_log_level least);          /* TP_LOG_NOTICE unless set */

#ifdef __cplusplus
}
#endif

#endif
