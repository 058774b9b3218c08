/* train_progress.h - a run while it goes, as text.
 *
 * On a terminal a block of four lines (six for rollouts) redrawn in place at most four times a
 * second (no alternate screen: what was printed stays); elsewhere one plain line per step.  JSON
 * prints one object per event.  What goes on for long without a step (tokenising, a large step) has
 * a line below the block every second, elsewhere one after 10, 20, 40, 80, 140 ... seconds. */
#ifndef TP_API_TRAIN_PROGRESS_H
#define TP_API_TRAIN_PROGRESS_H

#include "engine/train/algorithm.h"
#include "temper/train.h"

typedef struct {
    int mode; /* tp_progress_mode, never AUTO */
    const tp_training_screen *screen;
    int lines_drawn;
    bool has_work_line;              /* it is the last of them */
    double last_work_s, next_work_s; /* of the work that goes on; when to speak of it */
    double last_draw_s;
    double losses[24]; /* or rewards, of the latest steps, oldest first */
    int n_losses;
} tp_progress;

void tp_progress_init(tp_progress *p, int mode, const tp_training_screen *screen);
/* Matches tp_train_hooks.observe for a tp_progress. */
void tp_progress_event(tp_progress *p, const tp_train_event *event);
void tp_progress_end(tp_progress *p);

#endif
