/* grid.c - cells of a table, and each as people read it. */
#include "instrument/report/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "base/vec.h"

void tp_grid_release(tp_grid *grid)
{
    free(grid->cells);
    tp_buf_release(&grid->text);
    tp_buf_release(&grid->notes);
    *grid = (tp_grid){0};
}

size_t tp_grid_rows(const tp_grid *grid)
{
    return grid->n_columns ? grid->n_cells / grid->n_columns : 0;
}

static void add_column(tp_grid *grid, tp_grid_col column)
{
    TP_ASSERT(grid->n_columns < TP_GRID_MAX_COLUMNS && grid->n_cells == 0);
    grid->columns[grid->n_columns++] = column;
}

void tp_grid_column(tp_grid *grid, const char *key, const char *title, tp_cell_kind kind)
{
    add_column(grid, (tp_grid_col){.key = key, .title = title, .kind = kind});
}

void tp_grid_hidden(tp_grid *grid, const char *key, tp_cell_kind kind)
{
    add_column(grid, (tp_grid_col){.key = key, .title = key, .kind = kind, .is_hidden = true});
}

void tp_grid_member(tp_grid *grid, const char *key, const char *title, tp_cell_kind kind,
                    bool is_real, size_t offset)
{
    add_column(grid, (tp_grid_col){.key = key,
                                   .title = title ? title : key,
                                   .kind = kind,
                                   .is_hidden = !title,
                                   .from = is_real ? TP_FROM_REAL : TP_FROM_INT,
                                   .offset = offset});
}

static tp_cell *next_cell(tp_grid *grid)
{
    TP_ASSERT(grid->n_columns > 0);
    return TP_VEC_PUSH(grid->cells, grid->n_cells, grid->cap_cells);
}

static tp_cell_kind kind_of_next(const tp_grid *grid)
{
    return grid->columns[grid->n_cells % grid->n_columns].kind;
}

static bool is_printable_ascii(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && s[i] >= 0x20 && s[i] < 0x7f)
        i++;
    return i == n;
}

void tp_grid_textn(tp_grid *grid, const char *s, size_t n)
{
    TP_ASSERT(kind_of_next(grid) == TP_CELL_TEXT || kind_of_next(grid) == TP_CELL_FIGURE);
    tp_cell *cell = next_cell(grid);
    cell->is_known = s != NULL;
    cell->text = grid->text.len;
    cell->n_text = s ? n : 0;
    tp_buf_add(&grid->text, s ? s : "", s ? n : 0);
    cell->shown = cell->text;
    cell->n_shown = cell->n_text;
    if (!s || is_printable_ascii(s, n))
        return;
    cell->shown = grid->text.len;
    tp_buf_add_shown(&grid->text, s, n, true);
    cell->n_shown = grid->text.len - cell->shown;
}

void tp_grid_text(tp_grid *grid, const char *s) { tp_grid_textn(grid, s, s ? strlen(s) : 0); }

void tp_grid_textf(tp_grid *grid, const char *fmt, ...)
{
    TP_OWN(tp_buf) text = {0};
    TP_BUF_FORMAT(&text, fmt);
    tp_grid_textn(grid, tp_buf_str(&text), text.len);
}

void tp_grid_int(tp_grid *grid, int64_t v)
{
    tp_cell_kind kind = kind_of_next(grid);
    TP_ASSERT(kind == TP_CELL_COUNT || kind == TP_CELL_NS || kind == TP_CELL_BYTES);
    *next_cell(grid) = (tp_cell){.is_known = true, .i = v};
}

void tp_grid_real(tp_grid *grid, double v)
{
    tp_cell_kind kind = kind_of_next(grid);
    TP_ASSERT(kind == TP_CELL_REAL || kind == TP_CELL_PERCENT || kind == TP_CELL_RATE);
    *next_cell(grid) = (tp_cell){.is_known = !isnan(v), .f = v};
}

void tp_grid_known(tp_grid *grid, int64_t v)
{
    if (v == INT64_MIN)
        tp_grid_unknown(grid);
    else
        tp_grid_int(grid, v);
}

void tp_grid_row(tp_grid *grid, const void *row)
{
    for (size_t c = grid->n_cells % grid->n_columns; c < grid->n_columns; c++) {
        const char *member = (const char *)row + grid->columns[c].offset;
        if (grid->columns[c].from == TP_FROM_CALLS)
            return;
        if (grid->columns[c].from == TP_FROM_REAL)
            tp_grid_real(grid, *(const double *)member);
        else
            tp_grid_known(grid, *(const int64_t *)member);
    }
}

void tp_grid_unknown(tp_grid *grid) { next_cell(grid); }

void tp_grid_note(tp_grid *grid, const char *fmt, ...)
{
    TP_OWN(tp_buf) note = {0};
    TP_BUF_FORMAT(&note, fmt);
    tp_buf_add_shown(&grid->notes, tp_buf_str(&note), note.len, true);
    tp_buf_addc(&grid->notes, '\n');
}

/* ---- one cell ---- */

char *tp_human_ns(int64_t ns, char *out)
{
    double v = (double)ns, a = fabs(v);
    if (a < 1e3)
        snprintf(out, 32, "%lld ns", (long long)ns);
    else if (a < 1e6)
        snprintf(out, 32, "%.3f us", v * 1e-3);
    else if (a < 1e9)
        snprintf(out, 32, "%.3f ms", v * 1e-6);
    else
        snprintf(out, 32, "%.3f s", v * 1e-9);
    return out;
}

/* Too long a row of digits for a cell: a file may hold 1e308. */
static bool is_long(double v) { return fabs(v) >= 1e15; }

static char *human_rate(double v, char *out)
{
    snprintf(out, 32, v >= 1e10 && !is_long(v) ? "%.1f GB/s" : "%.3g GB/s", v * 1e-9);
    return out;
}

const char *tp_grid_shown(const tp_grid *grid, size_t row, size_t c, char *number, size_t *n)
{
    const tp_grid_col *column = &grid->columns[c];
    const tp_cell *cell = &grid->cells[row * grid->n_columns + c];
    if (!cell->is_known) {
        *n = 1;
        return "-";
    }
    switch (column->kind) {
    case TP_CELL_TEXT:
    case TP_CELL_FIGURE:
        *n = cell->n_shown;
        return tp_buf_str(&grid->text) + cell->shown;
    case TP_CELL_COUNT:
        snprintf(number, 32, "%lld", (long long)cell->i);
        break;
    case TP_CELL_NS:
        tp_human_ns(cell->i, number);
        break;
    case TP_CELL_BYTES:
        if (cell->i < 0) {
            number[0] = '-';
            tp_human_bytes(-(double)cell->i, number + 1);
        } else {
            tp_human_bytes((double)cell->i, number);
        }
        break;
    case TP_CELL_REAL:
        snprintf(number, 32,
                 is_long(cell->f)       ? "%.6g"
                 : fabs(cell->f) < 1000 ? "%.3g"
                                        : "%.0f",
                 cell->f);
        break;
    case TP_CELL_PERCENT:
        snprintf(number, 32, is_long(cell->f) ? "%.6g %%" : "%.1f %%", cell->f);
        break;
    case TP_CELL_RATE:
        human_rate(cell->f, number);
        break;
    }
    *n = strlen(number);
    return number;
}
