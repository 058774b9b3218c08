/* grid.h - a table once, shown in four ways.
 *
 * A view fills a grid: columns with a kind each, rows of cells.  The same grid is
 * printed for people (aligned, units chosen per cell), as Markdown, as CSV and as
 * JSON.  CSV and JSON carry exact whole numbers: nanoseconds and bytes, never rounded.
 * A cell whose value is unknown is "-" for people, empty in CSV, null in JSON.
 *
 *     tp_grid grid = {.name = "kernels", .title = "Kernels by time"};
 *     tp_grid_column(&grid, "name", "kernel", TP_CELL_TEXT);
 *     tp_grid_column(&grid, "total_ns", "total", TP_CELL_NS);
 *     tp_grid_text(&grid, name); tp_grid_int(&grid, total_ns);  ... row by row */
#ifndef TP_INSTRUMENT_REPORT_GRID_H
#define TP_INSTRUMENT_REPORT_GRID_H

#include <stddef.h>

#include "base/strings.h"
#include "text/json/json.h"

typedef enum {
    TP_CELL_TEXT,
    TP_CELL_COUNT,   /* whole number */
    TP_CELL_NS,      /* nanoseconds: "1.234 ms" for people */
    TP_CELL_BYTES,   /* bytes: "1.50 MiB" for people */
    TP_CELL_REAL,    /* a number in its own unit */
    TP_CELL_PERCENT, /* 0..100 */
    TP_CELL_RATE,    /* bytes per second: "12.3 GB/s" (1e9) for people */
    TP_CELL_FIGURE   /* a number as its writer spells it: text, set to the right */
} tp_cell_kind;

typedef struct {
    const char *key;   /* in JSON and CSV; static */
    const char *title; /* for people; static */
    tp_cell_kind kind;
    bool is_hidden; /* too much for a screen: only in CSV and JSON */
    enum { TP_FROM_CALLS, TP_FROM_INT, TP_FROM_REAL } from;
    size_t offset; /* in a row, of an int64_t or a double */
} tp_grid_col;

typedef struct {
    bool is_known;
    int64_t i;   /* COUNT, NS, BYTES */
    double f;    /* REAL, PERCENT, RATE */
    size_t text; /* TEXT: offset in the grid's text */
    size_t n_text;
    size_t shown; /* the same as it may be shown: where it lies, and its bytes */
    size_t n_shown;
} tp_cell;

enum { TP_GRID_MAX_COLUMNS = 32 };

typedef struct {
    const char *name;  /* key in JSON, "kernels" */
    const char *title; /* above the table; NULL: none */
    tp_grid_col columns[TP_GRID_MAX_COLUMNS];
    size_t n_columns;
    tp_cell *cells; /* row-major */
    size_t n_cells, cap_cells;
    tp_buf text;
    tp_buf notes; /* lines below the table, each ended by a newline */
} tp_grid;

void tp_grid_release(tp_grid *grid);
size_t tp_grid_rows(const tp_grid *grid);

void tp_grid_column(tp_grid *grid, const char *key, const char *title, tp_cell_kind kind);
void tp_grid_hidden(tp_grid *grid, const char *key, tp_cell_kind kind);

/* A column whose cells are a member of rows, int64_t or double; `title` NULL: hidden. */
#define TP_GRID_MEMBER(grid, key, title, kind, type, member) \
    tp_grid_member(grid, key, title, kind,                   \
                   _Generic(((type *)0)->member, int64_t     \
                            : false, double                  \
                            : true),                         \
                   offsetof(type, member))
void tp_grid_member(tp_grid *grid, const char *key, const char *title, tp_cell_kind kind,
                    bool is_real, size_t offset);
/* The next cells, up to a column that is no member. */
void tp_grid_row(tp_grid *grid, const void *row);

/* The next cell, in the order of the columns; its kind must fit the column's. */
void tp_grid_text(tp_grid *grid, const char *s); /* copied; NULL is unknown */
void tp_grid_textn(tp_grid *grid, const char *s, size_t n);
void tp_grid_textf(tp_grid *grid, const char *fmt, ...) TP_PRINTF(2, 3);
void tp_grid_int(tp_grid *grid, int64_t v);
void tp_grid_known(tp_grid *grid, int64_t v); /* INT64_MIN, TP_UNKNOWN of traces */
void tp_grid_real(tp_grid *grid, double v);
void tp_grid_unknown(tp_grid *grid);
void tp_grid_note(tp_grid *grid, const char *fmt, ...) TP_PRINTF(2, 3);

/* At most `limit` rows (0 = all); the rest is counted in a line.  `width` is that of the
 * screen: the widest text column is cut to fit, in the middle; what is wider still comes in blocks
 * of columns, sentences in a line per cell.  Notes are wrapped. */
void tp_grid_print(const tp_grid *grid, size_t limit, int width, tp_buf *out);
void tp_grid_markdown(const tp_grid *grid, size_t limit, tp_buf *out);
void tp_grid_html(const tp_grid *grid, size_t limit, tp_buf *out); /* <table>, with <h3> above */
void tp_grid_json(const tp_grid *grid, tp_json_w *w);              /* an array of objects */

/* A page of grids in one form: text, or members of one JSON object.  `is_apart`: an empty line in
 * front, unless it is JSON. */
typedef struct {
    tp_form form;
    size_t top; /* rows of each; 0: all */
    int width;
    tp_json_w w;
    tp_buf out;
} tp_grid_page;
void tp_grid_page_begin(tp_grid_page *page, tp_form form, size_t top, int width);
void tp_grid_page_put(tp_grid_page *page, const tp_grid *grid, size_t limit, bool is_apart);
/* The text, which the caller frees; of JSON the end of the line is added. */
char *tp_grid_page_end(tp_grid_page *page);

/* A cell as people read it: *n bytes, in the grid or in `number`, which has room for 48. */
const char *tp_grid_shown(const tp_grid *grid, size_t row, size_t column, char *number, size_t *n);

/* "1.234 ms", for people; `out` holds 32 bytes and is returned. */
char *tp_human_ns(int64_t ns, char *out);

#endif
