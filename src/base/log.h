/* log.h - messages for whoever debugs; metrics and progress are events, not logs.
 *
 * Library code logs at debug; notices are for what the user must know although
 * nothing failed (a fallback, an ignored key).  The default sink writes notices
 * to standard error and drops debug; a program sets another with temper/log.h. */
#ifndef TP_BASE_LOG_H
#define TP_BASE_LOG_H

#include "base/error.h"
#include "temper/log.h"

void tp_log(tp_log_level level, const char *component, const char *fmt, ...) TP_PRINTF(3, 4);

#endif
