/* steps.c - steps of rows that begin again with each epoch, or count something else. */
#include "instrument/ingest/runs/steps.h"

#include <math.h>

#include "base/vec.h"
#include "instrument/ingest/runs/views.h"

/* What is counted before the steps of this epoch.  An epoch that is there already, of a run that
 * began again, begins where it did. */
static int64_t before_epoch(tp_row_steps *c, double epoch, int64_t written)
{
    while (c->n_epochs > 1 && c->epochs[c->n_epochs - 1].epoch > epoch)
        c->n_epochs--;
    tp_row_epoch *last = c->n_epochs ? &c->epochs[c->n_epochs - 1] : NULL;
    int64_t before = last ? last->before : 0;
    if (last && epoch > last->epoch && written < c->written) {
        if (!c->counts_on++)
            c->first_on = (tp_row_epoch){epoch, c->last};
        before = c->last;
    }
    if (!last || epoch > last->epoch)
        last = TP_VEC_PUSH(c->epochs, c->n_epochs, c->cap_epochs);
    *last = (tp_row_epoch){epoch, before};
    c->written = written;
    return before;
}

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

int64_t tp_row_step(tp_metrics *m, int64_t written, double epoch, bool is_evaluation)
{
    tp_row_steps *c = &m->row_steps;
    int64_t ret = written;
    if (!isnan(epoch)) {
        c->has_parts |= epoch != floor(epoch); /* then steps are the run's */
        if (!c->has_parts && is_evaluation)
            return c->any ? c->last : written;
        int64_t before = c->has_parts ? 0 : before_epoch(c, epoch, written);
        if (__builtin_add_overflow(written, before, &ret))
            return TP_STEP_NONE;
    }
    look_for_falls(c, ret);
    return ret;
}

void tp_row_steps_say(tp_metrics *m)
{
    const tp_row_steps *c = &m->row_steps;
    size_t n = 0, n_out = 0, n_lone = c->n_lone + c->falls;
    if (c->counts_on)
        tp_notes_add(&m->notes, TP_NOTE_INFO,
                     "'%s': steps begin again with each epoch, and are counted on: those of epoch "
                     "%g behind %lld",
                     m->path, c->first_on.epoch, (long long)c->first_on.before);
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
