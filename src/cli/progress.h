/* progress.h - a run on the terminal.
 *
 * On a terminal a block of four lines (six for rollouts) redrawn in place at most four times a
 * second (no alternate screen: what was printed stays); elsewhere one plain line per step.  JSON
 * prints one object per event. */
#ifndef TP_CLI_PROGRESS_H
#define TP_CLI_PROGRESS_H

#include "engine/train/algorithm.h"

typedef struct {
    int mode; /* tp_progress_mode, never AUTO */
    bool colour;
    int lines_drawn;
    double last_draw_s;
    double losses[24]; /* or rewards, of the latest steps, oldest first */
    int n_losses;
} tp_progress;

void tp_progress_init(tp_progress *p, int mode);
/* Matches tp_train_hooks.observe for a tp_progress. */
void tp_progress_event(tp_progress *p, const tp_train_event *event);
void tp_progress_end(tp_progress *p);

#endif
