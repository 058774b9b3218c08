/* dataset.c - columns from text: delimiters, names, numbers and labels. */
#include "stats/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"
#include "stats/dataset_internal.h"
#include "text/json/json.h"

void tp_dataset_release(tp_stats_dataset *data)
{
    for (size_t i = 0; i < data->n_columns; i++) {
        tp_column *c = &data->columns[i];
        for (size_t j = 0; j < c->n_labels; j++)
            free(c->labels[j]);
        free(c->labels);
        free(c->values);
        free(c->name);
    }
    free(data->columns);
    *data = (tp_stats_dataset){.columns = NULL};
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static const char delimiters[] = "\t;,"; /* before spaces */

/* Behind the quoted field that begins at `p`; NULL: its quote does not end. */
static const char *behind_quotes(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p != '"')
            continue;
        if (p + 1 == end || p[1] != '"')
            return p + 1;
        p++;
    }
    return NULL;
}

static bool is_delimiter(char c, char delimiter)
{
    if (delimiter == 0) /* not known yet */
        return memchr(delimiters, c, sizeof delimiters - 1);
    return c == delimiter || (delimiter == ' ' && is_space(c));
}

/* Where the line of `p` ends: not within quotes of a field; NULL: those at *quote do not end. */
static const char *end_of_line(const char *p, const char *end, char delimiter, const char **quote)
{
    bool is_begin = true;
    while (p && p < end && *p != '\n' && *p != '\r') {
        if (is_begin && *p == '"') {
            *quote = p;
            p = behind_quotes(p, end);
            is_begin = false;
            continue;
        }
        is_begin = is_delimiter(*p, delimiter) || (is_begin && is_space(*p));
        p++;
    }
    return p;
}

static const char *end_of_row(const char *p, const char *end)
{
    while (p < end && *p != '\n' && *p != '\r')
        p++;
    return p;
}

static size_t blanks(const char *p, const char *end)
{
    size_t n = 0;
    while (p + n < end && (p[n] == ' ' || p[n] == '\t'))
        n++;
    return n;
}

static char delimiter_of(const char *line, const char *end)
{
    const char *found = NULL;
    bool is_begin = true;
    while (line && line < end) {
        if (is_begin && *line == '"') {
            line = behind_quotes(line, end);
            is_begin = false;
            continue;
        }
        const char *d = memchr(delimiters, *line, sizeof delimiters - 1);
        found = d && (!found || d < found) ? d : found;
        is_begin = d || is_space(*line);
        line++;
    }
    return found ? *found : ' ';
}

/* The next field of [*at, end) into `field`; false at the end of the line. */
static bool next_field(const char **at, const char *end, char delimiter, bool *more, tp_buf *field)
{
    const char *p = *at;
    tp_buf_clear(field);
    if (!*more)
        return false;
    while (p < end && is_space(*p) && (delimiter == ' ' || *p != delimiter))
        p++;
    if (delimiter == ' ' && p == end)
        return false;
    if (p < end && *p == '"') {
        for (p++; p < end; p++) {
            if (*p == '"' && !(p + 1 < end && p[1] == '"'))
                break;
            p += *p == '"';
            tp_buf_addc(field, *p);
        }
        p += p < end;
        while (p < end && *p != delimiter && !(delimiter == ' ' && is_space(*p)))
            p++;
    } else {
        const char *from = p;
        while (p < end && *p != delimiter && !(delimiter == ' ' && is_space(*p)))
            p++;
        const char *to = p;
        while (to > from && is_space(to[-1]))
            to--;
        tp_buf_add(field, from, (size_t)(to - from));
    }
    *more = p < end;
    *at = p < end ? p + 1 : end;
    return true;
}

typedef struct {
    tp_stats_dataset *data;
    const char *end; /* of the text */
    char delimiter;  /* 0: not known yet */
    bool has_columns;
    size_t row, n_lines;
    tp_buf field;
} table;

typedef struct {
    const char *from, *at, *end; /* with and without the spaces in front; NULL: quotes do not end */
    const char *quote;           /* where those begin */
    size_t number;
} text_line;

static const char *behind_break(const char *p, const char *end)
{
    p += p + 1 < end && p[0] == '\r' && p[1] == '\n';
    return p + (p < end);
}

/* The next line that holds something, behind `text`; NULL: there is none.  A line ends with LF, CR
 * LF or CR.  Returns where the one after it begins, with the number of lines before that. */
static const char *next_line(const table *t, const char *text, text_line *ret, size_t *n_lines)
{
    while (text < t->end) {
        const char *at = text + blanks(text, t->end);
        bool is_comment = at < t->end && *at == '#';
        *ret = (text_line){.from = text, .at = at, .number = *n_lines + 1};
        const char *stop = is_comment ? end_of_row(at, t->end)
                                      : end_of_line(text, t->end, t->delimiter, &ret->quote);
        ret->end = stop;
        if (!stop)
            return t->end;
        for (;; ++*n_lines) { /* a break within quotes is one of the text */
            const char *row = end_of_row(text, stop);
            text = behind_break(row, t->end);
            if (row == stop)
                break;
        }
        ++*n_lines;
        if (at < stop && !is_comment)
            return text;
    }
    return NULL;
}

/* ---- is the first line one of names? ---- */

typedef enum { EMPTY, WORD, NUMBER, N_KINDS } field_kind;

typedef struct {
    uint8_t kinds[TP_DATASET_MAX_COLUMNS];
    size_t n, counts[N_KINDS];
    bool has_text, ends_empty;
    bool is_count;                  /* "", 0, 1, 2 ... */
    bool rises, are_years, doubles; /* three or more numbers, all behind words */
} line_form;

static field_kind kind_of(const tp_buf *field)
{
    const char *text = tp_buf_str(field);
    return dataset_is_missing(text, field->len)                      ? EMPTY
           : dataset_is_number(text) && !memchr(text, 0, field->len) ? NUMBER
                                                                     : WORD;
}

static line_form form_of(table *t, const text_line *line)
{
    line_form f = {.is_count = true, .rises = true, .are_years = true, .doubles = true};
    const char *at = t->delimiter == '\t' ? line->from : line->at;
    double last = NAN, v;
    bool more = true;
    int unused;
    for (; next_field(&at, line->end, t->delimiter, &more, &t->field); f.n++) {
        const char *text = tp_buf_str(&t->field);
        field_kind kind = kind_of(&t->field);
        char count[24];
        snprintf(count, sizeof count, "%zu", f.n - 1);
        f.is_count &= strcmp(text, f.n ? count : "") == 0;
        f.has_text |= t->field.len > 0;
        f.ends_empty = kind == EMPTY;
        f.counts[kind]++;
        if (f.n < TP_DATASET_MAX_COLUMNS)
            f.kinds[f.n] = (uint8_t)kind;
        if (kind == NUMBER) {
            v = tp_str_to_f64(text, &v) ? v : (double)NAN;
            bool is_first = f.counts[NUMBER] == 1;
            f.rises &= f.counts[WORD] && (is_first || v > last);
            f.are_years &= v >= 1000 && v < 3000 && v == floor(v) && (is_first || v == last + 1);
            f.doubles &= v >= 1 && frexp(v, &unused) == 0.5 && (is_first || v == 2 * last);
            last = v;
        }
        f.rises &= kind != WORD || !f.counts[NUMBER];
    }
    f.rises &= f.counts[NUMBER] > 2;
    f.are_years &= f.rises;
    f.doubles &= f.rises;
    return f;
}

/* Words alone are names; words and numbers are where the line below has numbers below the words,
 * where the numbers are years and those below are none, or double and those below do not rise.  So
 * are 0, 1, 2 ... behind an empty field: pandas' table of what has no names. */
static bool are_names(const line_form *first, const line_form *second, bool has_row_names)
{
    bool below = first->n <= second->n;
    if (!first->counts[NUMBER])
        return first->has_text;
    if (first->is_count && second->n)
        return true;
    for (size_t i = 0; i + has_row_names < TP_DATASET_MAX_COLUMNS && i < first->n; i++)
        below &= first->kinds[i] != WORD || second->kinds[i + has_row_names] == NUMBER;
    return first->counts[WORD] && second->n &&
           (below || (first->are_years && !second->are_years) ||
            (first->doubles && !second->rises));
}

/* The form of the table, from its first two lines: a column of names may have none itself, so that
 * the first line begins with a tab, or has one field less. */
static bool begin(table *t, const text_line *first, const char *rest)
{
    text_line line;
    size_t unused = 0;
    line_form second = {.n = 0};
    t->delimiter = delimiter_of(first->at, first->end);
    bool has_second = next_line(t, rest, &line, &unused) && line.end;
    if (t->delimiter == ' ' && *first->from == '\t' && has_second)
        t->delimiter = delimiter_of(line.at, line.end);
    if (has_second)
        second = form_of(t, &line);
    line_form names = form_of(t, first);
    bool has_less = names.n + 1 == second.n && !second.ends_empty;
    bool ret = are_names(&names, &second, has_less);
    t->has_columns = true;
    t->data->has_row_names = ret && has_less;
    t->data->is_first_mixed = names.counts[WORD] && names.counts[NUMBER];
    t->data->has_names = ret;
    return ret;
}

/* A line break in a name becomes a blank: names stand within lines. */
static tp_status take_name(table *t, const text_line *line, tp_error *err)
{
    tp_column *c;
    size_t n = t->data->n_columns;
    for (size_t i = 0; i < t->field.len; i++)
        if (t->field.data[i] == '\n' || t->field.data[i] == '\r')
            t->field.data[i] = ' ';
    const char *name = t->field.len ? tp_buf_str(&t->field) : NULL;
    TP_TRY(dataset_column(t->data, name, t->field.len, SIZE_MAX, &c, err));
    if (t->data->n_columns == n)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%zu: two columns are called '%.60s'; rename one",
                       t->data->name, line->number, name);
    return TP_OK;
}

static tp_status read_line(table *t, const text_line *line, const char *rest, tp_error *err)
{
    tp_stats_dataset *data = t->data;
    bool more = true, is_first = !t->has_columns;
    bool is_header = is_first && begin(t, line, rest);
    const char *at = t->delimiter == '\t' ? line->from : line->at;
    size_t i = 0;
    tp_column *c;
    if (is_header && data->has_row_names)
        TP_TRY(dataset_column(data, NULL, 0, SIZE_MAX, &c, err));
    for (; next_field(&at, line->end, t->delimiter, &more, &t->field); i++) {
        if (is_header) {
            TP_TRY(take_name(t, line, err));
            continue;
        }
        if (is_first)
            TP_TRY(dataset_column(data, NULL, 0, SIZE_MAX, &c, err));
        if (i >= data->n_columns)
            return tp_fail(err, TP_ERR_FORMAT, "%s:%zu: more fields than the %zu columns before it",
                           data->name, line->number, data->n_columns);
        dataset_cell(data, &data->columns[i], t->row, line->number, tp_buf_str(&t->field),
                     t->field.len);
    }
    if (!is_header && data->has_row_names && i < data->n_columns)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%zu: fewer fields than the %zu of lines that begin with a name of the "
                       "row; give that column a name too",
                       data->name, line->number, data->n_columns);
    t->row += !is_header;
    return TP_OK;
}

/* What was killed while it wrote leaves a last line that ends within quotes: behind rows it is left
 * out.  Lines behind the quote would be lost with it. */
static tp_status leave_out_cut(table *t, const text_line *line, tp_error *err)
{
    const char *stop = end_of_row(line->quote, t->end);
    if (!t->row || behind_break(stop, t->end) < t->end)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%zu: a quote that begins a field does not end",
                       t->data->name, line->number);
    t->data->cut_line = line->number;
    return TP_OK;
}

static tp_status read_table(const char *text, size_t n, tp_stats_dataset *data, tp_error *err)
{
    table t = {.data = data, .end = text + n};
    tp_status status = TP_OK;
    text_line line;
    while (status == TP_OK && (text = next_line(&t, text, &line, &t.n_lines)))
        status = line.end ? read_line(&t, &line, text, err) : leave_out_cut(&t, &line, err);
    tp_buf_release(&t.field);
    return status;
}

/* UTF-16, as spreadsheets and PowerShell write it, has a mark in front or zero bytes. */
static tp_status check_encoding(const char *name, const char *text, size_t n, tp_error *err)
{
    bool has_mark = n > 1 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
    if (has_mark)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s is UTF-16: convert it first, as by 'iconv -f UTF-16 -t UTF-8'", name);
    if (memchr(text, 0, TP_MIN(n, 4)))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s has zero bytes: UTF-16, which 'iconv' converts to UTF-8, or no text",
                       name);
    return TP_OK;
}

tp_status tp_dataset_read(const char *name, const char *text, size_t n, tp_stats_dataset *ret,
                          tp_error *err)
{
    tp_stats_dataset data = {.columns = NULL};
    size_t skip = tp_utf8_mark(text, n);
    TP_TRY(check_encoding(name, text, n, err));
    snprintf(data.name, sizeof data.name, "%s", name);
    text += skip;
    n -= skip;
    size_t first = 0;
    while (first < n && (is_space(text[first]) || text[first] == '\n'))
        first++;
    data.is_json = first < n && (text[first] == '{' || text[first] == '[');
    tp_status status =
        data.is_json ? dataset_json(text, n, &data, err) : read_table(text, n, &data, err);
    if (status == TP_OK && data.n_rows == 0)
        status = tp_fail(err, TP_ERR_FORMAT, "%s holds no numbers", data.name);
    if (status != TP_OK) {
        tp_dataset_release(&data);
        return status;
    }
    *ret = data;
    return TP_OK;
}

const tp_column *tp_dataset_find(const tp_stats_dataset *data, const char *word,
                                 const tp_column **ret_other)
{
    int64_t place;
    size_t length = strlen(word);
    const tp_column *found = NULL, *other = NULL;
    if (ret_other)
        *ret_other = NULL;
    for (size_t i = 0; i < data->n_columns; i++)
        if (strcmp(data->columns[i].name, word) == 0)
            return &data->columns[i];
    for (size_t i = 0; i < data->n_columns; i++) { /* "loss" finds "m.loss" */
        const char *inner = strchr(data->columns[i].name, '.');
        if (!inner || !length || strcmp(inner + 1, word) != 0)
            continue;
        other = found;
        found = &data->columns[i];
    }
    if (found && ret_other)
        *ret_other = other;
    if (found)
        return found;
    if (tp_str_to_i64(word, &place) && place >= 1 && (uint64_t)place <= data->n_columns)
        return &data->columns[place - 1];
    return NULL;
}

static tp_status check_numbers(const tp_stats_dataset *data, const tp_column *c, tp_error *err)
{
    if (c->is_label && c->is_mixed)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%zu: '%s' in column '%.60s' is not a finite number, though others are "
                       "meant to be; an empty cell is skipped, and to name other columns leaves "
                       "this one out",
                       data->name, c->first_line, c->first_text, c->name);
    if (c->is_label)
        return tp_fail(err, TP_ERR_FORMAT, "%s: column '%.60s' holds words, not numbers",
                       data->name, c->name);
    if (c->bad_line)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%zu: '%s' in column '%.60s' is not a finite number; an empty cell is "
                       "skipped",
                       data->name, c->bad_line, c->bad_text, c->name);
    return TP_OK;
}

tp_status tp_dataset_numbers(const tp_stats_dataset *data, const tp_column *column, double **ret,
                             size_t *n, size_t *n_missing, tp_error *err)
{
    TP_TRY(check_numbers(data, column, err));
    double *x = tp_new(column->n, sizeof *x);
    *n = 0;
    for (size_t i = 0; i < column->n; i++)
        if (!isnan(column->values[i]))
            x[(*n)++] = column->values[i];
    *n_missing = data->n_rows - *n;
    *ret = x;
    return TP_OK;
}

tp_status tp_dataset_pairs(const tp_stats_dataset *data, const tp_column *a, const tp_column *b,
                           double **ret_a, double **ret_b, size_t *n, size_t *n_dropped,
                           tp_error *err)
{
    TP_TRY(check_numbers(data, a, err));
    TP_TRY(check_numbers(data, b, err));
    size_t rows = a->n < b->n ? a->n : b->n;
    double *x = tp_new(rows, sizeof *x), *y = tp_new(rows, sizeof *y);
    *n = 0;
    for (size_t i = 0; i < rows; i++)
        if (!isnan(a->values[i]) && !isnan(b->values[i])) {
            x[*n] = a->values[i];
            y[(*n)++] = b->values[i];
        }
    *n_dropped = data->n_rows - *n;
    *ret_a = x;
    *ret_b = y;
    return TP_OK;
}
