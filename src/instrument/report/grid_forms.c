/* grid_forms.c - a table for programs and documents: CSV, Markdown, HTML and JSON, and pages of
 * tables in one of these forms or for a screen. */
#include "instrument/report/grid.h"
#include "instrument/report/picture.h"

#include <math.h>
#include <string.h>

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
            const char *s = tp_grid_shown(grid, r, c, number, &n);
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
            const char *s = tp_grid_shown(grid, r, c, number, &n);
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
