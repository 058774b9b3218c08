/* grid.c - cells of a table and their text, CSV, Markdown and JSON. */
#include "instrument/report/grid.h"
#include "instrument/report/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/terminal.h"
#include "base/vec.h"
#include "base/wrap.h"

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
    va_list ap;
    va_start(ap, fmt);
    tp_buf_vaddf(&text, fmt, ap);
    va_end(ap);
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

void tp_grid_unknown(tp_grid *grid) { next_cell(grid); }

void tp_grid_note(tp_grid *grid, const char *fmt, ...)
{
    TP_OWN(tp_buf) note = {0};
    va_list ap;
    va_start(ap, fmt);
    tp_buf_vaddf(&note, fmt, ap);
    va_end(ap);
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

static char *human_rate(double v, char *out)
{
    snprintf(out, 32, v >= 1e10 ? "%.1f GB/s" : "%.3g GB/s", v * 1e-9);
    return out;
}

static const char *cell_for_people(const tp_grid *grid, const tp_grid_col *column,
                                   const tp_cell *cell, char *number, size_t *n)
{
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
        snprintf(number, 32, fabs(cell->f) >= 1000 ? "%.0f" : "%.3g", cell->f);
        break;
    case TP_CELL_PERCENT:
        snprintf(number, 32, "%.1f %%", cell->f);
        break;
    case TP_CELL_RATE:
        human_rate(cell->f, number);
        break;
    }
    *n = strlen(number);
    return number;
}

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

/* ---- for people ---- */

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
            const char *s =
                cell_for_people(grid, column, &grid->cells[r * grid->n_columns + c], number, &n);
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

/* The column that every block of a wide table repeats: the widest text, else the first. */
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
    return key < TP_GRID_MAX_COLUMNS ? key : first;
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
        const char *s =
            cell_for_people(grid, column, &grid->cells[row * grid->n_columns + c], number, &n);
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
        const char *s = cell_for_people(grid, column, &grid->cells[i], number, &n);
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

/* ---- for programs and documents ---- */

static void put_exact(const tp_grid *grid, const tp_grid_col *column, const tp_cell *cell,
                      tp_buf *out)
{
    char number[32];
    if (!cell->is_known)
        return;
    switch (column->kind) {
    case TP_CELL_TEXT:
    case TP_CELL_FIGURE:
        tp_buf_add(out, tp_buf_str(&grid->text) + cell->text, cell->n_text);
        return;
    case TP_CELL_COUNT:
    case TP_CELL_NS:
    case TP_CELL_BYTES:
        tp_buf_addf(out, "%lld", (long long)cell->i);
        return;
    case TP_CELL_REAL:
    case TP_CELL_PERCENT:
    case TP_CELL_RATE:
        if (isfinite(cell->f)) {
            tp_json_f64_text(cell->f, number);
            tp_buf_adds(out, number);
        } else {
            tp_buf_adds(out, cell->f > 0 ? "Infinity" : "-Infinity");
        }
        return;
    }
}

static void put_html(tp_buf *out, const char *s, size_t n)
{
    TP_OWN(tp_buf) cell = {0};
    tp_buf_add(&cell, s, n);
    tp_markup_escape(out, tp_buf_str(&cell));
}

void tp_grid_html(const tp_grid *grid, size_t limit, tp_buf *out)
{
    size_t all = tp_grid_rows(grid), rows = limit && limit < all ? limit : all;
    char number[48];
    if (grid->title) {
        tp_buf_adds(out, "<h3>");
        tp_markup_escape(out, grid->title);
        tp_buf_adds(out, "</h3>\n");
    }
    tp_buf_adds(out, all ? "<div class=wide><table>\n<thead><tr>" : "");
    for (size_t c = 0; c < grid->n_columns && all; c++)
        if (!grid->columns[c].is_hidden) {
            tp_buf_adds(out, grid->columns[c].kind == TP_CELL_TEXT ? "<th>" : "<th class=n>");
            tp_markup_escape(out, grid->columns[c].title);
        }
    tp_buf_adds(out, all ? "<tbody>\n" : "");
    for (size_t r = 0; r < rows; r++) {
        tp_buf_adds(out, "<tr>");
        for (size_t c = 0; c < grid->n_columns; c++) {
            size_t n;
            const tp_grid_col *column = &grid->columns[c];
            const char *s =
                cell_for_people(grid, column, &grid->cells[r * grid->n_columns + c], number, &n);
            if (column->is_hidden)
                continue;
            tp_buf_adds(out, column->kind == TP_CELL_TEXT ? "<td class=text>" : "<td class=n>");
            put_html(out, s, n);
        }
        tp_buf_addc(out, '\n');
    }
    tp_buf_adds(out, all ? "</table></div>\n" : "");
    if (rows < all)
        tp_buf_addf(out, "<p class=note>%zu more rows\n", all - rows);
    if (grid->notes.len) {
        tp_buf_adds(out, "<p class=note>");
        put_html(out, grid->notes.data, grid->notes.len);
    }
}

static void grid_csv(const tp_grid *grid, tp_buf *out)
{
    TP_OWN(tp_buf) cell = {0};
    for (size_t c = 0; c < grid->n_columns; c++)
        tp_buf_addf(out, "%s%s", c ? "," : "", grid->columns[c].key);
    tp_buf_addc(out, '\n');
    for (size_t i = 0; i < grid->n_cells; i++) {
        size_t c = i % grid->n_columns;
        tp_buf_clear(&cell);
        put_exact(grid, &grid->columns[c], &grid->cells[i], &cell);
        if (c)
            tp_buf_addc(out, ',');
        bool must_quote = cell.len && strpbrk(cell.data, ",\"\r\n") != NULL;
        if (must_quote)
            tp_buf_addc(out, '"');
        for (size_t k = 0; k < cell.len; k++) {
            if (cell.data[k] == '"')
                tp_buf_addc(out, '"');
            if (cell.data[k]) /* a text is no place for the end of one */
                tp_buf_addc(out, cell.data[k]);
            else
                tp_buf_adds(out, "\\0");
        }
        if (must_quote)
            tp_buf_addc(out, '"');
        if (c + 1 == grid->n_columns)
            tp_buf_addc(out, '\n');
    }
}

void tp_grid_json(const tp_grid *grid, tp_json_w *w)
{
    tp_json_w_begin(w, '[');
    for (size_t i = 0; i < grid->n_cells; i++) {
        size_t c = i % grid->n_columns;
        const tp_grid_col *column = &grid->columns[c];
        const tp_cell *cell = &grid->cells[i];
        if (c == 0)
            tp_json_w_begin(w, '{');
        tp_json_w_key(w, column->key);
        if (!cell->is_known)
            tp_json_w_null(w);
        else if (column->kind == TP_CELL_TEXT)
            tp_json_w_strn(w, tp_buf_str(&grid->text) + cell->text, cell->n_text);
        else if (column->kind <= TP_CELL_BYTES)
            tp_json_w_i64(w, cell->i);
        else
            tp_json_w_f64(w, cell->f);
        if (c + 1 == grid->n_columns)
            tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void put_markdown_cell(tp_buf *out, const char *s, size_t n)
{
    tp_buf_addc(out, ' ');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '|' || s[i] == '<' || s[i] == '\\' || s[i] == '*' || s[i] == '_')
            tp_buf_addc(out, '\\');
        tp_buf_addc(out, s[i] == '\n' ? ' ' : s[i]);
    }
    tp_buf_adds(out, " |");
}

void tp_grid_markdown(const tp_grid *grid, size_t limit, tp_buf *out)
{
    size_t all = tp_grid_rows(grid), rows = limit && limit < all ? limit : all;
    char number[48];
    if (grid->title)
        tp_buf_addf(out, "### %s\n\n", grid->title);
    for (int line = 0; line < 2 && all; line++) {
        tp_buf_addc(out, '|');
        for (size_t c = 0; c < grid->n_columns; c++) {
            const tp_grid_col *column = &grid->columns[c];
            if (column->is_hidden)
                continue;
            if (line == 0)
                put_markdown_cell(out, column->title, strlen(column->title));
            else
                tp_buf_adds(out, column->kind == TP_CELL_TEXT ? " --- |" : " ---: |");
        }
        tp_buf_addc(out, '\n');
    }
    for (size_t r = 0; r < rows; r++) {
        tp_buf_addc(out, '|');
        for (size_t c = 0; c < grid->n_columns; c++) {
            size_t n;
            const char *s = cell_for_people(grid, &grid->columns[c],
                                            &grid->cells[r * grid->n_columns + c], number, &n);
            if (!grid->columns[c].is_hidden)
                put_markdown_cell(out, s, n);
        }
        tp_buf_addc(out, '\n');
    }
    if (rows < all)
        tp_buf_addf(out, "\n%zu more rows are left out.\n", all - rows);
    if (grid->notes.len)
        tp_buf_addf(out, "\n%s", tp_buf_str(&grid->notes));
    tp_buf_addc(out, '\n');
}

/* ---- pages ---- */

void tp_grid_page_begin(tp_grid_page *page, tp_form form, size_t top, int width)
{
    *page = (tp_grid_page){.form = form, .top = top, .width = width > 0 ? width : 110};
    tp_json_w_init(&page->w, &page->out, 1);
}

void tp_grid_page_put(tp_grid_page *page, const tp_grid *grid, size_t limit, bool is_apart)
{
    if (page->form == TP_FORM_JSON) {
        tp_json_w_key(&page->w, grid->name);
        tp_grid_json(grid, &page->w);
        return;
    }
    if (is_apart)
        tp_buf_addc(&page->out, '\n');
    if (page->form == TP_FORM_CSV)
        grid_csv(grid, &page->out);
    else if (page->form == TP_FORM_MARKDOWN)
        tp_grid_markdown(grid, limit, &page->out);
    else
        tp_grid_print(grid, limit, page->width, &page->out);
}

char *tp_grid_page_end(tp_grid_page *page)
{
    tp_buf_adds(&page->out, page->form == TP_FORM_JSON ? "\n" : "");
    return page->out.data;
}
