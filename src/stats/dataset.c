/* dataset.c - columns from text: delimiters, names, numbers and labels. */
#include "stats/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static char delimiter_of(const char *line, size_t n)
{
    static const char candidates[] = "\t;,";
    for (const char *d = candidates; *d; d++)
        if (memchr(line, *d, n))
            return *d;
    return ' ';
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

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
    char delimiter;
    bool has_columns;
    size_t line, row;
    tp_buf field;
} table;

typedef struct {
    const char *from, *at, *end; /* with and without the spaces in front */
} text_line;

/* The next line that holds something, behind `text`; NULL: there is none.  A line ends with LF, CR
 * LF or CR.  Returns where the one after it begins. */
static const char *next_line(const char *text, const char *end, text_line *ret, size_t *line)
{
    while (text < end) {
        const char *stop = text;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        *ret = (text_line){.from = text, .at = text, .end = stop};
        while (ret->at < stop && is_space(*ret->at))
            ret->at++;
        text = stop;
        text += text + 1 < end && text[0] == '\r' && text[1] == '\n';
        text += text < end;
        ++*line;
        if (ret->at < stop && *ret->at != '#')
            return text;
    }
    return NULL;
}

static bool is_number_field(const tp_buf *field)
{
    return field->len && dataset_is_number(tp_buf_str(field));
}

/* Words alone are names; words and numbers are where the line below has numbers below the words.
 * So are 0, 1, 2 ... behind an empty field: pandas' table of what has no names. */
static bool are_names(table *t, const text_line *first, const text_line *second)
{
    bool more = true, more_below = true, below_numbers = second;
    bool any = false, has_number = false, has_word = false, is_count = second;
    size_t i = 0;
    char count[24];
    const char *at = first->at, *below = second ? second->at : NULL;
    TP_OWN(tp_buf) field = {0};
    if (t->delimiter == '\t') {
        at = first->from;
        below = second ? second->from : NULL;
    }
    while (next_field(&at, first->end, t->delimiter, &more, &t->field)) {
        bool is_number = is_number_field(&t->field);
        bool is_word = !is_number && !dataset_is_missing(tp_buf_str(&t->field), t->field.len);
        has_number |= is_number;
        has_word |= is_word;
        any |= t->field.len > 0;
        snprintf(count, sizeof count, "%zu", i - 1);
        is_count &= strcmp(tp_buf_str(&t->field), i ? count : "") == 0;
        i++;
        if (!second || !next_field(&below, second->end, t->delimiter, &more_below, &field))
            below_numbers = false;
        else if (is_word)
            below_numbers &= is_number_field(&field);
    }
    return has_number ? (has_word && below_numbers) || is_count : any;
}

/* The form of the table, from its first two lines: a column of names may have none itself, so that
 * the first line begins with a tab. */
static bool begin(table *t, const text_line *first, const char *rest)
{
    text_line second;
    size_t unused = 0;
    bool has_second = next_line(rest, t->end, &second, &unused);
    t->delimiter = delimiter_of(first->at, (size_t)(first->end - first->at));
    if (t->delimiter == ' ' && *first->from == '\t' && has_second)
        t->delimiter = delimiter_of(second.at, (size_t)(second.end - second.at));
    t->has_columns = true;
    return are_names(t, first, has_second ? &second : NULL);
}

static tp_status read_line(table *t, const text_line *line, const char *rest, tp_error *err)
{
    bool more = true, is_first = !t->has_columns;
    bool is_header = is_first && begin(t, line, rest);
    const char *at = t->delimiter == '\t' ? line->from : line->at, *end = line->end;
    size_t i = 0;
    for (; next_field(&at, end, t->delimiter, &more, &t->field); i++) {
        tp_column *c;
        const char *text = tp_buf_str(&t->field);
        if (is_header && t->field.len && i == t->data->n_columns) {
            TP_TRY(dataset_column(t->data, text, t->field.len, SIZE_MAX, &c, err));
            if (i + 1 != t->data->n_columns)
                return tp_fail(err, TP_ERR_FORMAT,
                               "%s:%zu: two columns are called '%.60s'; rename one", t->data->name,
                               t->line, text);
            continue;
        }
        if (is_first && i == t->data->n_columns)
            TP_TRY(dataset_column(t->data, NULL, 0, SIZE_MAX, &c, err));
        if (i >= t->data->n_columns)
            return tp_fail(err, TP_ERR_FORMAT, "%s:%zu: more fields than the %zu columns before it",
                           t->data->name, t->line, t->data->n_columns);
        if (!is_header)
            dataset_cell(t->data, &t->data->columns[i], t->row, t->line, text, t->field.len);
    }
    t->row += !is_header;
    return TP_OK;
}

static tp_status read_table(const char *text, size_t n, tp_stats_dataset *data, tp_error *err)
{
    table t = {.data = data, .end = text + n};
    tp_status status = TP_OK;
    text_line line;
    while (status == TP_OK && (text = next_line(text, t.end, &line, &t.line)))
        status = read_line(&t, &line, text, err);
    tp_buf_release(&t.field);
    return status;
}

tp_status tp_dataset_read(const char *name, const char *text, size_t n, tp_stats_dataset *ret,
                          tp_error *err)
{
    tp_stats_dataset data = {.columns = NULL};
    size_t skip = tp_utf8_mark(text, n);
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
