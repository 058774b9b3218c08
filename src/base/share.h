/* share.h - how near work came to what the machine can do: the least time that it takes there,
 * over the time that it took. */
#ifndef TP_BASE_SHARE_H
#define TP_BASE_SHARE_H

#include "base/strings.h"

/* Clocks vary by a few percent between the measurement and the work. */
#define TP_MOST_SHARE 1.05

typedef enum {
    TP_SHARE_UNKNOWN,
    TP_SHARE_KNOWN,
    TP_SHARE_CACHED,    /* faster than memory: what it moves stays in the caches */
    TP_SHARE_IMPOSSIBLE /* more arithmetic than the ceiling allows: the ceiling is wrong */
} tp_share_kind;
typedef struct {
    tp_share_kind kind;
    double share; /* NaN when unknown */
} tp_share;

/* Of the least seconds of all its work, those of the arithmetic alone, and those that it took. */
tp_share tp_share_of(double least_s, double arithmetic_s, double seconds);

/* "  97.3%" in `width` columns: the share; "cached" where what is moved never leaves the caches,
 * "?" where the ceiling is wrong, "-" where it is unknown. */
void tp_share_put(tp_share share, int width, tp_buf *out);
/* What "cached" and "?" mean, for those that occur; `seen` has a bit per kind. */
void tp_share_put_notes(unsigned seen, tp_buf *out);
/* What "-" means of work that is not known. */
#define TP_SHARE_VARIES "(- where every launch has another number of rows)\n"

#endif
