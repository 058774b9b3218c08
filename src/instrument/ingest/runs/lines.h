/* lines.h - a file of one JSON object per line, read on as it grows.
 *
 * A line that is no object is passed over and counted; the last line counts once it is complete. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_LINES_H
#define TP_INSTRUMENT_INGEST_RUNS_LINES_H

#include "instrument/ingest/runs/rows.h"

typedef struct {
    tp_tail tail;
    uint64_t line; /* of the next one, from 1 */
    uint64_t n_rows, n_bad, first_bad_line;
    char first_bad[160]; /* what was wrong there */
    tp_flat_row row;
} tp_flat_row_lines;

void tp_flat_row_lines_init(tp_flat_row_lines *l, const char *path);
void tp_flat_row_lines_release(tp_flat_row_lines *l);
void tp_flat_row_lines_restart(tp_flat_row_lines *l); /* from the beginning of the file */

/* Every new row, in order. */
TP_CHECKED tp_status tp_flat_row_lines_read(tp_flat_row_lines *l,
                                            void (*see)(void *user, tp_flat_row_lines *lines),
                                            void *user, tp_error *err);
/* Notes on lines that were passed over, and on an unfinished last one. */
void tp_flat_row_lines_say(const tp_flat_row_lines *l, tp_notes *notes);

#endif
