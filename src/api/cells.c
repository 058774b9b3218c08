/* cells.c - which parts of a line are shown in so many columns. */
#include "api/cells.h"

#include "base/error.h"
#include "base/terminal.h"

tp_buf *tp_cell(tp_cells *c, int rank)
{
    TP_ASSERT(c->n < TP_CELLS);
    c->at[c->n] = c->text.len;
    c->rank[c->n++] = rank;
    return &c->text;
}

void tp_cells_clear(tp_cells *c)
{
    tp_buf_clear(&c->text);
    c->n = 0;
}

void tp_cells_release(tp_cells *c) { tp_buf_release(&c->text); }

/* Continuation bytes take no room. */
static bool begins_column(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

static int columns_of(const tp_buf *text)
{
    int columns = 0;
    for (size_t i = 0; i < text->len; i++)
        columns += begins_column(text->data[i]);
    return columns;
}

static void join(const tp_cells *c, const bool *is_gone, tp_buf *line)
{
    tp_buf_clear(line);
    for (int i = 0; i < c->n; i++)
        if (!is_gone[i])
            tp_buf_add(line, c->text.data + c->at[i], c->at[i + 1] - c->at[i]);
    while (line->len && line->data[line->len - 1] == ' ')
        line->len--;
}

/* -1: all that is left has to stay. */
static int least_needed(const tp_cells *c, const bool *is_gone)
{
    int found = -1;
    for (int i = 0; i < c->n; i++)
        if (!is_gone[i] && c->rank[i] > 0 && (found < 0 || c->rank[i] >= c->rank[found]))
            found = i;
    return found;
}

void tp_cells_add_line(tp_cells *c, int columns, tp_buf *out)
{
    bool is_gone[TP_CELLS] = {false};
    TP_OWN(tp_buf) line = {0};
    c->at[c->n] = c->text.len;
    join(c, is_gone, &line);
    for (int next; columns_of(&line) >= columns && (next = least_needed(c, is_gone)) >= 0;) {
        is_gone[next] = true;
        join(c, is_gone, &line);
    }
    while (line.len && columns_of(&line) >= columns) {
        while (line.len > 1 && !begins_column(line.data[line.len - 1]))
            line.len--;
        line.len--;
    }
    tp_buf_add(out, tp_buf_str(&line), line.len);
    tp_buf_addf(out, "%s\n", tp_style(TP_LINE_ERASE));
}
