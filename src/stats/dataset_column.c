/* dataset_column.c - columns of a data set as they fill, cell by cell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "base/vec.h"
#include "stats/dataset_internal.h"

static bool is_text(const char *word, const char *text, size_t n)
{
    return strlen(word) == n && memcmp(word, text, n) == 0;
}

tp_status dataset_column(tp_stats_dataset *data, const char *name, size_t length, size_t hint,
                         tp_column **ret, tp_error *err)
{
    if (hint < data->n_columns && name && is_text(data->columns[hint].name, name, length)) {
        *ret = &data->columns[hint];
        return TP_OK;
    }
    for (size_t i = 0; name && i < data->n_columns; i++)
        if (is_text(data->columns[i].name, name, length)) {
            *ret = &data->columns[i];
            return TP_OK;
        }
    if (data->n_columns == TP_DATASET_MAX_COLUMNS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: more than %d columns; select some first",
                       data->name, TP_DATASET_MAX_COLUMNS);
    if (!data->columns)
        data->columns = tp_new(TP_DATASET_MAX_COLUMNS, sizeof *data->columns);
    tp_column *c = &data->columns[data->n_columns];
    char place[40];
    snprintf(place, sizeof place, "column %zu", data->n_columns + 1);
    c->name = name ? tp_strndup(name, length) : tp_strdup(place);
    c->is_named = name;
    data->n_columns++;
    *ret = c;
    return TP_OK;
}

static void put_value(tp_stats_dataset *data, tp_column *c, size_t row, double v)
{
    while (c->n <= row)
        *TP_VEC_PUSH(c->values, c->n, c->capacity) = NAN;
    c->values[row] = v;
    if (data->n_rows <= row)
        data->n_rows = row + 1;
}

static void put_label(tp_stats_dataset *data, tp_column *c, size_t row, const char *text, size_t n)
{
    size_t i = 0;
    if (c->bad_line)
        return;
    while (i < c->n_labels && !is_text(c->labels[i], text, n))
        i++;
    if (i == TP_DATASET_MAX_COLUMNS) { /* an identifier, not a grouping: the rest is missing */
        c->bad_line = row + 1;
        snprintf(c->bad_text, sizeof c->bad_text, "more than %d labels", TP_DATASET_MAX_COLUMNS);
        return;
    }
    if (i == c->n_labels) {
        char *copy = tp_new(n + 1, 1); /* a NUL within it stays */
        memcpy(copy, text, n);
        *TP_VEC_PUSH(c->labels, c->n_labels, c->label_capacity) = copy;
    }
    put_value(data, c, row, (double)i);
}

static void copy_text(char *to, size_t size, const char *text, size_t n)
{
    snprintf(to, size, "%.*s", (int)(n < 30 ? n : 30), text);
}

static void spoil(tp_column *c, size_t line, const char *text, size_t n)
{
    if (c->bad_line)
        return;
    c->bad_line = line;
    copy_text(c->bad_text, sizeof c->bad_text, text, n);
}

/* Also one that no double can hold: it is then a bad value, not a name.  0x10 is a number of C
 * alone. */
bool dataset_is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return end != text && *end == 0 && !strpbrk(text, "xX");
}

bool dataset_is_missing(const char *text, size_t n)
{
    static const char *const missing[] = {"", "NA", "N/A", "null", "-", "None"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (is_text(missing[i], text, n))
            return true;
    return false;
}

/* "1,234.5" as well, which was meant for one. */
static bool is_meant_as_number(const char *text, size_t n)
{
    char digits[64];
    size_t used = 0;
    bool any = false;
    for (size_t i = 0; i < n && used + 1 < sizeof digits; i++) {
        any |= text[i] >= '0' && text[i] <= '9';
        if (text[i] != ',')
            digits[used++] = text[i];
    }
    digits[used] = 0;
    return any && used + 1 < sizeof digits && dataset_is_number(digits);
}

void dataset_cell(tp_stats_dataset *data, tp_column *c, size_t row, size_t line, const char *text,
                  size_t n)
{
    char copy[64];
    double v;
    if (dataset_is_missing(text, n))
        return;
    bool is_number = n < sizeof copy && !memchr(text, 0, n);
    if (is_number) {
        memcpy(copy, text, n);
        copy[n] = 0;
        is_number = dataset_is_number(copy);
        if (!is_number || !tp_str_to_f64(copy, &v))
            v = INFINITY;
    }
    if (!c->is_label && c->n == 0 && !c->bad_line && !is_number) {
        c->is_label = true;
        c->first_line = line;
        copy_text(c->first_text, sizeof c->first_text, text, n);
    }
    if (c->is_label) {
        c->is_mixed |= is_meant_as_number(text, n);
        put_label(data, c, row, text, n);
        return;
    }
    if (!is_number || !isfinite(v))
        spoil(c, line, text, n);
    put_value(data, c, row, is_number && isfinite(v) ? v : NAN);
}
