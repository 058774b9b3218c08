/* views.c - the rules of TensorBoard's three readers, and Temper's own, over marked points. */
#include "instrument/ingest/runs/views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "instrument/ingest/runs/reader.h"

enum { DAMAGED = TP_MARK_BAD_DATA | TP_MARK_AFTER_BAD | TP_MARK_AFTER_GAP };

/* Points with one of these marks are not seen. */
static uint32_t unseen_marks(tp_points_view view)
{
    switch (view) {
    case TP_POINTS_NATIVE:
        return DAMAGED | TP_MARK_NO_NUMBER;
    case TP_POINTS_ACCUMULATOR:
        return DAMAGED | TP_MARK_NO_NUMBER | TP_MARK_TENSOR;
    case TP_POINTS_FAST:
        return TP_MARK_AFTER_GAP | TP_MARK_NO_NUMBER | TP_MARK_NOT_FLOAT;
    default:
        return TP_MARK_BAD_DATA | TP_MARK_NO_NUMBER;
    }
}

/* From the last point to the first: a START that came after it, at or below its step, voids it. */
static void purge_at_starts(const tp_metrics *m, const tp_recorded_series *s, bool also_first,
                            bool also_damaged, uint8_t *keep)
{
    int64_t least = INT64_MAX;
    size_t next = m->n_starts;
    bool any = false;
    for (size_t i = s->n; i-- > 0;) {
        const tp_recorded_point *p = &s->points[i];
        while (next && m->starts[next - 1].record > p->record) {
            const tp_recorded_start *start = &m->starts[--next];
            if (!start->is_versioned || (start->is_first && !also_first) ||
                (start->is_behind_damage && !also_damaged))
                continue;
            any = true;
            least = start->step < least ? start->step : least;
        }
        keep[i] &= !(any && p->step >= least);
    }
}

/* The same for points that purge their own tag. */
static void purge_at_marks(const tp_recorded_series *s, uint32_t mark, uint8_t *keep)
{
    int64_t least = INT64_MAX, pending = INT64_MAX;
    uint32_t pending_record = 0;
    bool any = false, waits = false;
    for (size_t i = s->n; i-- > 0;) {
        const tp_recorded_point *p = &s->points[i];
        if (waits && p->record != pending_record) {
            least = pending < least ? pending : least;
            any = true;
            waits = false;
        }
        keep[i] &= !(any && p->step >= least);
        if (p->marks & mark) {
            pending = p->step;
            pending_record = p->record;
            waits = true;
        }
    }
}

/* A step that is not above the last one kept voids what is at or above it, also where the value
 * itself is of a type that is not shown. */
static void purge_as_rustboard(const tp_recorded_series *s, uint8_t *keep)
{
    size_t *kept = tp_vec_new(s->n, sizeof *kept), n = 0;
    for (size_t i = 0; i < s->n; i++) {
        bool is_other = (s->points[i].marks & unseen_marks(TP_POINTS_FAST)) == TP_MARK_NOT_FLOAT;
        if (!keep[i] && !is_other)
            continue;
        while (n && s->points[kept[n - 1]].step >= s->points[i].step)
            keep[kept[--n]] = 0;
        kept[n++] = i;
    }
    free(kept);
}

/* What a later file writes of the tag from its first step on is void in those before it. */
static void purge_at_files(const tp_recorded_series *s, uint8_t *keep)
{
    int64_t least = INT64_MAX, first = INT64_MAX;
    uint32_t file = s->n ? tp_recorded_file(&s->points[s->n - 1]) : 0;
    bool any = false;
    for (size_t i = s->n; i-- > 0;) {
        const tp_recorded_point *p = &s->points[i];
        if (tp_recorded_file(p) != file) {
            least = first < least ? first : least;
            any = true;
            first = INT64_MAX;
            file = tp_recorded_file(p);
        }
        keep[i] &= !(any && p->step >= least);
        first = p->step < first ? p->step : first;
    }
}

typedef struct {
    int64_t step;
    size_t index;
} placed;

TP_ORDER(by_step, placed, TP_COMPARE(x->step, y->step) ?: TP_COMPARE(x->index, y->index))

static bool is_rising(const tp_recorded_series *s, const uint8_t *keep)
{
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < s->n; i++) {
        if (!keep[i])
            continue;
        if (s->points[i].step <= last)
            return false;
        last = s->points[i].step;
    }
    return true;
}

/* A run appended to another: what it writes from its first step on is void in the one before.
 * It is one where it goes on from there and writes a step again that was there; a step that falls
 * alone voids nothing, and no other order does.  `first`: by point, the first one of its step.  How
 * many are void by it. */
static size_t purge_at_reruns(const tp_recorded_series *s, const size_t *first, uint8_t *keep)
{
    int64_t least = INT64_MAX, next = INT64_MIN; /* the step behind that is another */
    size_t n = 0, earliest = s->n;               /* of the steps up to the next fall */
    for (size_t i = s->n; i-- > 0;) {
        int64_t step = s->points[i].step, before = i ? s->points[i - 1].step : INT64_MIN;
        if (i + 1 < s->n && s->points[i + 1].step != step)
            next = s->points[i + 1].step;
        n += keep[i] && step >= least;
        keep[i] &= step < least;
        earliest = TP_MIN(earliest, first[i]);
        if (before <= step)
            continue;
        if (next > step && next <= before && step < least && earliest < i)
            least = step;
        earliest = s->n;
    }
    return n;
}

static bool is_same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* Of points with one step the last counts.  How many others are left out. */
static size_t keep_last_of_step(const tp_metrics *m, const tp_recorded_series *s, uint8_t *keep)
{
    size_t left_out = 0;
    if (is_rising(s, keep))
        return 0;
    TP_FREED placed *at = tp_vec_new(s->n, sizeof *at);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (keep[i] && s->points[i].step != TP_STEP_NONE)
            at[n++] = (placed){s->points[i].step, i};
    qsort(at, n, sizeof *at, by_step);
    if (m->reader->has_reruns) {
        TP_FREED size_t *first = tp_vec_new(s->n, sizeof *first);
        for (size_t i = 0; i < s->n; i++)
            first[i] = i;
        for (size_t i = 1; i < n; i++)
            if (at[i].step == at[i - 1].step)
                first[at[i].index] = first[at[i - 1].index];
        left_out = purge_at_reruns(s, first, keep);
    }
    for (size_t i = 0; i + 1 < n; i++) {
        const placed *x = &at[i], *later = x + 1;
        if (x->step != later->step)
            continue;
        left_out +=
            keep[x->index] && !is_same(s->points[x->index].value, s->points[later->index].value);
        keep[x->index] = 0;
    }
    return left_out;
}

size_t tp_view_left_out(const tp_metrics *m, const tp_recorded_series *s)
{
    if (tp_view_is_plain(m, s) || !s->n)
        return 0;
    TP_FREED uint8_t *keep = tp_vec_new(s->n, 1);
    memset(keep, 1, s->n);
    return keep_last_of_step(m, s, keep);
}

static void keep_latest(const tp_metrics *m, const tp_recorded_series *s, uint8_t *keep)
{
    for (size_t i = 0; m->n_superseded && i < s->n; i++)
        keep[i] &= !m->superseded[s->points[i].record];
    if (m->reader->has_restarts) {
        purge_at_starts(m, s, true, true, keep);
        purge_at_files(s, keep);
    }
    if (!s->is_sampled)
        keep_last_of_step(m, s, keep);
}

bool tp_view_is_plain(const tp_metrics *m, const tp_recorded_series *s)
{
    return s->is_scalar && !s->is_uneven && s->n && !m->n_superseded &&
           (!m->n_starts || m->starts[m->n_starts - 1].record <= s->points[0].record);
}

size_t tp_view_keep(const tp_metrics *m, const tp_recorded_series *s, tp_points_view view,
                    uint8_t *keep, size_t *ret_eligible)
{
    if (!m->reader->has_restarts && view != TP_POINTS_LATEST)
        view = view == TP_POINTS_NATIVE && m->reader->native_is_latest ? TP_POINTS_LATEST
                                                                       : TP_POINTS_ALL;
    if (view == TP_POINTS_LATEST && tp_view_is_plain(m, s)) {
        memset(keep, 1, s->n);
        return *ret_eligible = s->n;
    }
    uint32_t unseen = unseen_marks(view);
    size_t n = 0, eligible = 0;
    bool is_scalar = view == TP_POINTS_NATIVE && m->reader->has_restarts && !s->is_sampled
                         ? s->is_scalar_undamaged
                         : s->is_scalar;
    if (!is_scalar && view != TP_POINTS_ACCUMULATOR) { /* which does not ask for the kind */
        memset(keep, 0, s->n);
        *ret_eligible = 0;
        return 0;
    }
    uint32_t all_marks = 0;
    for (size_t i = 0; i < s->n; i++) {
        all_marks |= s->points[i].marks;
        keep[i] = !(s->points[i].marks & unseen);
        /* rustboard lists tags of which it has no point */
        eligible += !(s->points[i].marks & unseen & ~(uint32_t)TP_MARK_NOT_FLOAT);
    }
    if (view == TP_POINTS_NATIVE || view == TP_POINTS_ACCUMULATOR) {
        uint32_t purges = view == TP_POINTS_NATIVE ? TP_MARK_PURGES : TP_MARK_PURGES_HIGHEST;
        if (m->n_starts)
            purge_at_starts(m, s, view == TP_POINTS_ACCUMULATOR, false, keep);
        if (all_marks & purges)
            purge_at_marks(s, purges, keep);
    } else if (view == TP_POINTS_FAST) {
        purge_as_rustboard(s, keep);
    } else if (view == TP_POINTS_LATEST) {
        keep_latest(m, s, keep);
    }
    for (size_t i = 0; i < s->n; i++)
        n += keep[i];
    *ret_eligible = eligible;
    return n;
}
