/* log.h - messages for whoever debugs; metrics and progress are events, not logs.
 *
 * Library code logs at debug; notices are for what the user must know although
 * nothing failed (a fallback, an ignored key).  The default sink writes notices
 * to standard error and drops debug. */
#ifndef TP_BASE_LOG_H
#define TP_BASE_LOG_H

#include "base/error.h"

typedef enum { TP_LOG_DEBUG, TP_LOG_NOTICE, TP_LOG_WARNING } tp_log_level;

typedef void (*tp_log_sink)(void *user, tp_log_level level, const char *component,
                            const char *message);

void tp_log_set_sink(tp_log_sink sink, void *user); /* NULL restores the default */
void tp_log_set_level(tp_log_level least);
void tp_log(tp_log_level level, const char *component, const char *fmt, ...) TP_PRINTF(3, 4);

#endif
