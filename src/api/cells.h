/* cells.h - a line of a screen, made of parts that may be left out where there is no room. */
#ifndef TP_API_CELLS_H
#define TP_API_CELLS_H

#include "base/strings.h"

/* Each cell ends with the blanks behind it. */
enum { TP_CELLS = 24 };
typedef struct {
    tp_buf text;
    size_t at[TP_CELLS + 1];
    int rank[TP_CELLS], n;
} tp_cells;

/* Begin another one: what is added to the text from here on.  The highest rank goes first where
 * there is no room, of equals the last; 0 stays. */
tp_buf *tp_cell(tp_cells *c, int rank);
/* The line of those that fit into less than so many columns; what is too wide by itself is cut. */
void tp_cells_add_line(tp_cells *c, int columns, tp_buf *out);
void tp_cells_clear(tp_cells *c);
void tp_cells_release(tp_cells *c);

#endif
