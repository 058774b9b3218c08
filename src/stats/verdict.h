/* verdict.h - what a comparison may say, in one word.
 *
 * A change is better or worse when its interval excludes "no change", the same when
 * the whole interval lies within a margin of it, and otherwise not shown: absence of
 * evidence is not evidence of absence. */
#ifndef TP_STATS_VERDICT_H
#define TP_STATS_VERDICT_H

typedef enum {
    TP_CHANGE_NOT_SHOWN,
    TP_CHANGE_BETTER,
    TP_CHANGE_WORSE,
    TP_CHANGE_SAME
} tp_change;

static inline const char *tp_change_name(tp_change change)
{
    static const char *const names[] = {"not shown", "better", "worse", "same"};
    return names[change];
}

#endif
