/* steps.c - steps of rows that begin again with each epoch, or count something else. */
#include "instrument/ingest/runs/steps.h"

#include <math.h>
#include <stdlib.h>

#include "base/platform.h"
#include "base/vec.h"
#include "instrument/ingest/runs/views.h"

/* ---- steps within epochs ---- */

/* The numbers in the rows are the run's after all: what was counted on is taken back. */
static void take_back(tp_metrics *m)
{
    tp_row_steps *c = &m->row_steps;
    c->counts = TP_COUNT_OF_RUN;
    for (size_t i = 0; i < m->n_series; i++) {
        tp_recorded_series *s = &m->series[i];
        size_t k = c->n_shifts;
        s->is_uneven |= k > 0;
        for (size_t p = s->n; p-- > 0 && k;) {
            while (k && c->shifts[k - 1].record > s->points[p].record)
                k--;
            if (k && s->points[p].step != TP_STEP_NONE)
                s->points[p].step -= c->shifts[k - 1].before;
        }
    }
    c->was_taken_back = c->n_shifts > 0;
    c->n_shifts = 0;
    c->any = c->rises = c->falls = false;
}

static tp_row_kind *kind_of(tp_row_steps *c, tp_slice name)
{
    if (!c->names.n)
        tp_string_table_init(&c->names);
    uint32_t id = tp_string_add(&c->names, name.data, name.len);
    while (c->n_kinds <= id)
        *TP_VEC_PUSH(c->kinds, c->n_kinds, c->cap_kinds) = (tp_row_kind){.epoch = NAN};
    return &c->kinds[id];
}

/* What the row says of how steps are counted, compared with the last of its kind: in a higher epoch
 * a number that rose is the run's, one that fell is the epoch's.  One that is always the same is
 * the epoch's where there is no other kind: an evaluation may count its batches. */
static void judge(tp_metrics *m, const tp_row_number *row)
{
    tp_row_steps *c = &m->row_steps;
    tp_row_kind *kind = kind_of(c, row->kind);
    bool is_later = row->epoch > kind->epoch; /* there is one */
    bool rises = !isnan(kind->epoch) && row->written > kind->written;
    c->has_zero |= row->written == 0;
    c->varies |= rises || c->names.n > 2; /* with the empty text */
    c->has_fallen |= is_later && row->written < kind->written;
    *kind = (tp_row_kind){row->epoch, row->written};
    if (row->written < 0 || (is_later && rises) ||
        (c->counts == TP_COUNT_OF_EPOCH && !c->has_fallen && c->varies))
        take_back(m);
    else if (is_later && (c->has_fallen || !c->varies))
        c->counts = TP_COUNT_OF_EPOCH;
}

/* The epoch of a row.  One that is there already, of a run that began again, is the same. */
static tp_row_epoch *epoch_of(tp_row_steps *c, double epoch)
{
    while (c->n_epochs && c->epochs[c->n_epochs - 1].epoch > epoch)
        c->n_epochs--;
    if (!c->n_epochs || c->epochs[c->n_epochs - 1].epoch < epoch)
        *TP_VEC_PUSH(c->epochs, c->n_epochs, c->cap_epochs) = (tp_row_epoch){epoch, INT64_MIN};
    return &c->epochs[c->n_epochs - 1];
}

/* What is counted before the steps of the last epoch: all up to the highest of the one before it,
 * and where steps begin at 0 that one too. */
static int64_t before_epoch(const tp_row_steps *c)
{
    int64_t high = c->n_epochs > 1 ? c->epochs[c->n_epochs - 2].high : INT64_MIN;
    if (c->counts != TP_COUNT_OF_EPOCH || high == INT64_MIN)
        return 0;
    return TP_MIN(high, INT64_MAX - 1) + c->has_zero;
}

static void note_shift(tp_metrics *m, double epoch, int64_t before)
{
    tp_row_steps *c = &m->row_steps;
    if (before == (c->n_shifts ? c->shifts[c->n_shifts - 1].before : 0))
        return;
    if (!c->n_shifts)
        c->first_on = (tp_row_epoch){epoch, before};
    *TP_VEC_PUSH(c->shifts, c->n_shifts, c->cap_shifts) = (tp_row_shift){m->n_records, before};
}

/* The step of a row with an epoch. */
static int64_t step_within(tp_metrics *m, const tp_row_number *row)
{
    tp_row_steps *c = &m->row_steps;
    int64_t ret = row->written;
    c->has_parts |= row->epoch != floor(row->epoch); /* then steps are the run's */
    if (c->has_parts && c->counts != TP_COUNT_OF_RUN)
        take_back(m);
    if (row->is_evaluation && !c->has_parts)
        return c->has_reached ? c->reached : row->written;
    if (c->counts != TP_COUNT_OF_RUN)
        judge(m, row);
    if (c->counts != TP_COUNT_OF_RUN) {
        tp_row_epoch *epoch = epoch_of(c, row->epoch);
        int64_t before = before_epoch(c);
        if (__builtin_add_overflow(row->written, before, &ret))
            take_back(m);
        else
            note_shift(m, row->epoch, before);
        ret = c->counts == TP_COUNT_OF_RUN ? row->written : ret;
        epoch->high = TP_MAX(epoch->high, ret);
    }
    c->has_reached = true;
    return c->reached = ret;
}

/* ---- steps that fall ---- */

/* A step that falls out of a rising row of them, and from which none goes on: the next is above
 * both again.  Where it goes on, a run was appended to another. */
static void look_for_falls(tp_row_steps *c, int64_t step)
{
    if (c->falls && step > c->high && !c->n_lone++) {
        c->first_low = c->low;
        c->first_high = c->high;
    }
    c->falls &= step == c->low;
    if (c->any && step < c->last && c->rises) {
        c->falls = true;
        c->low = step;
        c->high = c->last;
    }
    if (c->any && step != c->last)
        c->rises = step > c->last;
    c->any = true;
    c->last = step;
}

int64_t tp_row_step(tp_metrics *m, const tp_row_number *row)
{
    tp_row_steps *c = &m->row_steps;
    bool has_epoch = !isnan(row->epoch);
    int64_t ret = has_epoch ? step_within(m, row) : row->written;
    c->n_without += !has_epoch;
    if (!has_epoch || !row->is_evaluation || c->has_parts)
        look_for_falls(c, ret);
    return ret;
}

void tp_row_steps_release(tp_row_steps *c)
{
    free(c->epochs);
    free(c->shifts);
    free(c->kinds);
    tp_string_table_release(&c->names);
    tp_buf_release(&c->kind);
}

static void say_counts(tp_metrics *m)
{
    const tp_row_steps *c = &m->row_steps;
    if (c->n_shifts) {
        tp_notes_add(&m->notes, TP_NOTE_INFO,
                     "'%s': steps begin again with each epoch, and are counted on: those of epoch "
                     "%g behind %lld",
                     m->path, c->first_on.epoch, (long long)(c->first_on.high - c->has_zero));
        if (c->n_without)
            tp_notes_add(&m->notes, TP_NOTE_WARNING,
                         "'%s': %zu row%s without an epoch: the steps of these are as written, and "
                         "not counted on",
                         m->path, c->n_without, tp_plural((uint64_t)c->n_without));
    } else if (c->was_taken_back) {
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s': some steps begin again with an epoch, others go on: all are as written",
                     m->path);
    }
}

void tp_row_steps_say(tp_metrics *m)
{
    const tp_row_steps *c = &m->row_steps;
    size_t n = 0, n_out = 0, n_lone = c->n_lone + c->falls;
    say_counts(m);
    if (n_lone)
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s': %zu row%s with a step below that of the row before, from which no row "
                     "goes on (the first: %lld behind %lld): another count, rows of "
                     "several writers, or out of order",
                     m->path, n_lone, tp_plural((uint64_t)n_lone),
                     (long long)(c->n_lone ? c->first_low : c->low),
                     (long long)(c->n_lone ? c->first_high : c->high));
    for (size_t i = 0; i < m->n_series; i++) {
        n += m->series[i].n;
        n_out += tp_view_left_out(m, &m->series[i]);
    }
    if (n_out)
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s': %zu of %zu points have the step of a later row, or lie behind the one "
                     "from which a later run began: analyze, compare and --points latest leave "
                     "them out",
                     m->path, n_out, n);
}
