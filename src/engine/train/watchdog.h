/* watchdog.h - says so when something takes much longer than it did before: a thread that looks at
 * the clock while the work is under way. */
#ifndef TP_ENGINE_TRAIN_WATCHDOG_H
#define TP_ENGINE_TRAIN_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tp_watchdog tp_watchdog;

/* Called by the watchdog's own thread, once for what is late. */
typedef void tp_watchdog_late(void *user, int64_t what, double limit_s);

TP_CHECKED tp_status tp_watchdog_start(tp_watchdog_late *late, void *user, tp_watchdog **ret,
                                       tp_error *err);
void tp_watchdog_stop(tp_watchdog *w); /* NULL is a no-op */

/* `what` is under way and should be done within limit_s seconds (NaN: it is not watched). */
void tp_watchdog_begin(tp_watchdog *w, int64_t what, double limit_s);
void tp_watchdog_end(tp_watchdog *w);

#endif
