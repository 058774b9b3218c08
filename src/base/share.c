/* share.c - shares of what the machine can do, and how they are written. */
#include "base/share.h"

#include <math.h>

tp_share tp_share_of(double least_s, double arithmetic_s, double seconds)
{
    if (isnan(least_s) || isnan(arithmetic_s) || !(least_s > 0) || !(seconds > 0))
        return (tp_share){TP_SHARE_UNKNOWN, (double)NAN};
    double share = least_s / seconds, arithmetic = arithmetic_s / seconds;
    tp_share_kind kind = arithmetic > TP_MOST_SHARE        ? TP_SHARE_IMPOSSIBLE
                         : share > arithmetic && share > 1 ? TP_SHARE_CACHED
                                                           : TP_SHARE_KNOWN;
    return (tp_share){kind, share};
}

void tp_share_put(tp_share share, int width, tp_buf *out)
{
    static const char *const words[] = {
        [TP_SHARE_UNKNOWN] = "-", [TP_SHARE_CACHED] = "cached", [TP_SHARE_IMPOSSIBLE] = "?"};
    if (share.kind == TP_SHARE_KNOWN)
        tp_buf_addf(out, " %*.1f%%", width - 1, 100 * share.share);
    else
        tp_buf_addf(out, " %*s", width, words[share.kind]);
}

void tp_share_put_notes(unsigned seen, tp_buf *out)
{
    if (seen & 1u << TP_SHARE_CACHED)
        tp_buf_adds(out,
                    "(cached: above the limit of memory, what is moved stays in the caches)\n");
    if (seen & 1u << TP_SHARE_IMPOSSIBLE)
        tp_buf_adds(out, "(?: above the measured ceiling, which is too low; 'temper doctor' "
                         "measures again)\n");
}
