/* grid_print.c - a table on a screen: widths, blocks of columns, sentences in lines of their own.
 */
#include "instrument/report/grid.h"

#include <string.h>

#include "base/platform.h"
#include "base/terminal.h"
#include "base/wrap.h"

/* A text that is too wide keeps its beginning and its end: kernels differ in both. */
static void put_cut(tp_buf *out, const char *s, size_t n, size_t width)
{
    size_t has = tp_columns_of(s, n);
    if (has <= width) {
        tp_buf_add(out, s, n);
        return;
    }
    size_t tail = width / 3, head = width - tail - 2;
    tp_buf_add(out, s, tp_columns_skip(s, n, head));
    tp_buf_adds(out, "..");
    size_t from = tp_columns_skip(s, n, has - tail);
    tp_buf_add(out, s + from, n - from);
}

typedef struct {
    size_t width[TP_GRID_MAX_COLUMNS];
    size_t rows; /* that are shown */
} layout;

static size_t room_of(int width) { return width > 0 ? (size_t)width : 100; }

static void measure(const tp_grid *grid, size_t limit, int width, layout *l)
{
    size_t all = tp_grid_rows(grid), total = 0, widest = TP_GRID_MAX_COLUMNS;
    char number[48];
    l->rows = limit && limit < all ? limit : all;
    for (size_t c = 0; c < grid->n_columns; c++) {
        const tp_grid_col *column = &grid->columns[c];
        l->width[c] = strlen(column->title);
        for (size_t r = 0; r < l->rows; r++) {
            size_t n;
            const char *s = tp_grid_shown(grid, r, c, number, &n);
            size_t w = tp_columns_of(s, n);
            l->width[c] = w > l->width[c] ? w : l->width[c];
        }
        if (column->is_hidden)
            continue;
        total += l->width[c] + 2;
        if (column->kind == TP_CELL_TEXT &&
            (widest == TP_GRID_MAX_COLUMNS || l->width[c] > l->width[widest]))
            widest = c;
    }
    size_t room = room_of(width);
    total -= total >= 2 ? 2 : 0; /* behind the last */
    if (total > room && widest < TP_GRID_MAX_COLUMNS) {
        size_t over = total - room, has = l->width[widest];
        l->width[widest] = has > over + 24 ? has - over : has < 24 ? has : 24;
    }
}

static void put_padded(tp_buf *out, const char *s, size_t n, size_t width, bool to_right)
{
    size_t has = tp_columns_of(s, n);
    for (size_t i = has; to_right && i < width; i++)
        tp_buf_addc(out, ' ');
    put_cut(out, s, n, width);
    for (size_t i = has; !to_right && i < width; i++)
        tp_buf_addc(out, ' ');
}

static void end_line(tp_buf *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = 0;
    tp_buf_addc(out, '\n');
}

/* The column that every block of a wide table repeats: the first where it is text, as names of rows
 * are, else the widest text, else the first. */
static size_t key_column(const tp_grid *grid, const layout *l)
{
    size_t key = TP_GRID_MAX_COLUMNS, first = TP_GRID_MAX_COLUMNS;
    for (size_t c = grid->n_columns; c-- > 0;) {
        if (grid->columns[c].is_hidden)
            continue;
        first = c;
        if (grid->columns[c].kind == TP_CELL_TEXT &&
            (key == TP_GRID_MAX_COLUMNS || l->width[c] >= l->width[key]))
            key = c;
    }
    bool is_named = first < TP_GRID_MAX_COLUMNS && grid->columns[first].kind == TP_CELL_TEXT;
    return is_named || key == TP_GRID_MAX_COLUMNS ? first : key;
}

/* The columns from `from` that fit beside the key, one at least; returns where the next block
 * begins. */
static size_t choose_block(const tp_grid *grid, const layout *l, size_t key, size_t from,
                           size_t room, bool shown[TP_GRID_MAX_COLUMNS])
{
    size_t total = l->width[key], c = from, n = 0;
    memset(shown, 0, TP_GRID_MAX_COLUMNS * sizeof *shown);
    shown[key] = true;
    for (; c < grid->n_columns; c++) {
        if (grid->columns[c].is_hidden || c == key)
            continue;
        total += l->width[c] + 2;
        if (n++ > 0 && total > room)
            break;
        shown[c] = true;
    }
    return c;
}

static void put_head(const tp_grid *grid, const layout *l, const bool *shown, tp_buf *out)
{
    for (size_t c = 0; c < grid->n_columns; c++) {
        const tp_grid_col *column = &grid->columns[c];
        if (!shown[c])
            continue;
        put_padded(out, column->title, strlen(column->title), l->width[c],
                   column->kind != TP_CELL_TEXT);
        tp_buf_adds(out, "  ");
    }
    end_line(out);
}

/* How a verdict is shown where there is colour: what it says, not that it is one. */
static const char *style_of(const tp_grid_col *column, const char *s, size_t n)
{
    static const struct {
        const char *word;
        tp_terminal_code code;
    } words[] = {{"better", TP_STYLE_GREEN},     {"pass", TP_STYLE_GREEN},
                 {"worse", TP_STYLE_BOLD_RED},   {"fail", TP_STYLE_BOLD_RED},
                 {"error", TP_STYLE_BOLD_RED},   {"changed", TP_STYLE_BOLD_RED},
                 {"not shown", TP_STYLE_YELLOW}, {"not judged", TP_STYLE_YELLOW},
                 {"unknown", TP_STYLE_YELLOW},   {"cannot tell", TP_STYLE_YELLOW}};
    if (!tp_terminal_has_colour() || !tp_str_ends(column->key, "verdict"))
        return NULL;
    for (size_t i = 0; i < TP_COUNTOF(words); i++)
        if (n == strlen(words[i].word) && memcmp(s, words[i].word, n) == 0)
            return tp_style(words[i].code);
    return NULL;
}

static void put_row(const tp_grid *grid, const layout *l, const bool *shown, size_t row,
                    tp_buf *out)
{
    char number[48];
    for (size_t c = 0; c < grid->n_columns; c++) {
        const tp_grid_col *column = &grid->columns[c];
        size_t n;
        if (!shown[c])
            continue;
        const char *s = tp_grid_shown(grid, row, c, number, &n);
        const char *style = style_of(column, s, n);
        tp_buf_adds(out, style ? style : "");
        put_padded(out, s, n, l->width[c], column->kind != TP_CELL_TEXT);
        tp_buf_adds(out, style ? tp_style(TP_STYLE_PLAIN) : "");
        tp_buf_adds(out, "  ");
    }
    end_line(out);
}

/* Some column does not fit even beside the key alone: sentences. */
static bool is_prose(const tp_grid *grid, const layout *l, size_t key, size_t room)
{
    bool fits = true;
    for (size_t c = 0; c < grid->n_columns; c++)
        fits = fits &&
               (c == key || grid->columns[c].is_hidden || l->width[key] + 2 + l->width[c] <= room);
    return !fits;
}

/* A line per cell, its column's title in front. */
static void put_records(const tp_grid *grid, const layout *l, size_t room, tp_buf *out)
{
    TP_OWN(tp_buf) line = {0};
    char number[48];
    size_t title = 0;
    for (size_t c = 0; c < grid->n_columns; c++)
        if (!grid->columns[c].is_hidden)
            title = TP_MAX(title, strlen(grid->columns[c].title));
    for (size_t i = 0; i < l->rows * grid->n_columns; i++) {
        const tp_grid_col *column = &grid->columns[i % grid->n_columns];
        size_t n;
        if (i > 0 && i % grid->n_columns == 0)
            tp_buf_addc(out, '\n');
        if (column->is_hidden)
            continue;
        const char *s = tp_grid_shown(grid, i / grid->n_columns, i % grid->n_columns, number, &n);
        tp_buf_clear(&line);
        tp_buf_addf(&line, "%-*s  %.*s\n", (int)title, column->title, (int)n, s);
        tp_add_wrapped(out, line.data, line.len, room);
    }
}

/* What is wider than the screen comes in blocks of columns, one below the other. */
static void put_blocks(const tp_grid *grid, const layout *l, size_t room, tp_buf *out)
{
    bool shown[TP_GRID_MAX_COLUMNS];
    size_t key = key_column(grid, l);
    if (key == TP_GRID_MAX_COLUMNS)
        return;
    if (is_prose(grid, l, key, room)) {
        put_records(grid, l, room, out);
        return;
    }
    for (size_t from = 0; from < grid->n_columns;) {
        bool is_first = from == 0;
        from = choose_block(grid, l, key, from, room, shown);
        if (!is_first)
            tp_buf_addc(out, '\n');
        put_head(grid, l, shown, out);
        for (size_t r = 0; r < l->rows; r++)
            put_row(grid, l, shown, r, out);
    }
}

void tp_grid_print(const tp_grid *grid, size_t limit, int width, tp_buf *out)
{
    layout l;
    size_t all = tp_grid_rows(grid);
    measure(grid, limit, width, &l);
    if (grid->title)
        tp_buf_addf(out, "%s\n", grid->title);
    if (all)
        put_blocks(grid, &l, room_of(width), out);
    if (l.rows < all)
        tp_buf_addf(out, "... %zu more (--top 0 shows all)\n", all - l.rows);
    if (all == 0 && grid->notes.len == 0)
        tp_buf_adds(out, "none\n");
    tp_add_wrapped(out, tp_buf_str(&grid->notes), grid->notes.len, room_of(width));
}
