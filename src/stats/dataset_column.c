/* dataset_column.c - columns of a data set as they fill, cell by cell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "stats/dataset_internal.h"

static tp_status no_memory(const tp_stats_dataset *data, tp_error *err)
{
    return tp_fail(err, TP_ERR_NOMEM, "%s: not enough memory for its numbers", data->name);
}

/* Room for one more of `size` bytes behind n. */
static bool grow(void **array, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return true;
    size_t wanted = *capacity ? 2 * *capacity : 16, bytes;
    if (__builtin_mul_overflow(wanted, size, &bytes))
        return false;
    void *moved = realloc(*array, bytes);
    if (!moved)
        return false;
    *array = moved;
    *capacity = wanted;
    return true;
}

tp_status dataset_column(tp_stats_dataset *data, const char *name, size_t length, size_t hint,
                         tp_column **ret, tp_error *err)
{
    if (hint < data->n_columns && name && strlen(data->columns[hint].name) == length &&
        memcmp(data->columns[hint].name, name, length) == 0) {
        *ret = &data->columns[hint];
        return TP_OK;
    }
    for (size_t i = 0; name && i < data->n_columns; i++)
        if (strlen(data->columns[i].name) == length &&
            memcmp(data->columns[i].name, name, length) == 0) {
            *ret = &data->columns[i];
            return TP_OK;
        }
    if (data->n_columns == TP_DATASET_MAX_COLUMNS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: more than %d columns; select some first",
                       data->name, TP_DATASET_MAX_COLUMNS);
    if (!data->columns && !(data->columns = calloc(TP_DATASET_MAX_COLUMNS, sizeof *data->columns)))
        return no_memory(data, err);
    tp_column *c = &data->columns[data->n_columns];
    char place[40];
    if (!name)
        length = (size_t)snprintf(place, sizeof place, "column %zu", data->n_columns + 1);
    if (!(c->name = malloc(length + 1)))
        return no_memory(data, err);
    memcpy(c->name, name ? name : place, length);
    c->name[length] = 0;
    c->is_named = name;
    data->n_columns++;
    *ret = c;
    return TP_OK;
}

static tp_status put_value(tp_stats_dataset *data, tp_column *c, size_t row, double v,
                           tp_error *err)
{
    while (c->n <= row) {
        if (!grow((void **)&c->values, c->n, &c->capacity, sizeof *c->values))
            return no_memory(data, err);
        c->values[c->n++] = NAN;
    }
    c->values[row] = v;
    if (data->n_rows <= row)
        data->n_rows = row + 1;
    return TP_OK;
}

static tp_status put_label(tp_stats_dataset *data, tp_column *c, size_t row, const char *text,
                           size_t n, tp_error *err)
{
    size_t i = 0;
    if (c->bad_line)
        return TP_OK;
    while (i < c->n_labels && !(strlen(c->labels[i]) == n && memcmp(c->labels[i], text, n) == 0))
        i++;
    if (i == TP_DATASET_MAX_COLUMNS) { /* an identifier, not a grouping: the rest is missing */
        c->bad_line = row + 1;
        snprintf(c->bad_text, sizeof c->bad_text, "more than %d labels", TP_DATASET_MAX_COLUMNS);
        return TP_OK;
    }
    if (i == c->n_labels) {
        char *copy = malloc(n + 1);
        if (!copy || !grow((void **)&c->labels, i, &c->label_capacity, sizeof *c->labels)) {
            free(copy);
            return no_memory(data, err);
        }
        memcpy(copy, text, n);
        copy[n] = 0;
        c->labels[c->n_labels++] = copy;
    }
    return put_value(data, c, row, (double)i, err);
}

static void spoil(tp_column *c, size_t line, const char *text, size_t n)
{
    if (c->bad_line)
        return;
    c->bad_line = line;
    snprintf(c->bad_text, sizeof c->bad_text, "%.*s", (int)(n < 30 ? n : 30), text);
}

/* Also one that no double can hold: it is then a bad value, not a name. */
bool dataset_is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return end != text && *end == 0;
}

tp_status dataset_cell(tp_stats_dataset *data, tp_column *c, size_t row, size_t line,
                       const char *text, size_t n, tp_error *err)
{
    static const char *const missing[] = {"", "NA", "N/A", "null", "-", "None"};
    char copy[64];
    double v;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (strlen(missing[i]) == n && memcmp(missing[i], text, n) == 0)
            return TP_OK;
    bool is_number = n < sizeof copy && !memchr(text, 0, n);
    if (is_number) {
        memcpy(copy, text, n);
        copy[n] = 0;
        is_number = dataset_is_number(copy);
        if (!is_number || !tp_str_to_f64(copy, &v))
            v = INFINITY;
    }
    if (!c->is_label && c->n == 0 && !c->bad_line && !is_number)
        c->is_label = true;
    if (c->is_label)
        return put_label(data, c, row, text, n, err);
    if (is_number && isfinite(v))
        return put_value(data, c, row, v, err);
    spoil(c, line, text, n);
    return put_value(data, c, row, NAN, err);
}
