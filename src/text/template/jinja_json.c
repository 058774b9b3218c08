/* jinja_json.c - the filter tojson: Python's json.dumps(). */
#include <math.h>
#include <string.h>

#include "text/template/jinja_run.h"
#include "text/template/python_text.h"

static tp_status add_unit(tp_jinja_text *out, unsigned unit)
{
    return tp_jinja_addf(out, "\\u%04x", unit);
}

static tp_status write_text(tp_jinja_text *out, tp_slice s, bool ensure_ascii)
{
    static const char special[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    size_t begin = 0;
    TP_TRY(tp_jinja_adds(out, "\""));
    for (size_t i = 0, len; i < s.len; i += len) {
        uint32_t cp = (uint8_t)s.data[i];
        len = 1;
        if (cp >= 128 && ensure_ascii) {
            len = tp_utf8_length(s.data + i, s.len - i);
            tp_utf8_decode(s.data + i, len, &cp);
        }
        const char *found = cp && cp < 128 ? strchr(special, (int)cp) : NULL;
        if (!found && cp >= 32 && (cp < 128 || !ensure_ascii))
            continue;
        TP_TRY(tp_jinja_add(out, s.data + begin, i - begin));
        begin = i + len;
        if (found) {
            TP_TRY(tp_jinja_addf(out, "\\%c", letters[found - special]));
        } else if (cp < 0x10000) {
            TP_TRY(add_unit(out, cp));
        } else {
            TP_TRY(add_unit(out, 0xd800 + ((cp - 0x10000) >> 10)));
            TP_TRY(add_unit(out, 0xdc00 + ((cp - 0x10000) & 0x3ff)));
        }
    }
    TP_TRY(tp_jinja_add(out, s.data + begin, s.len - begin));
    return tp_jinja_adds(out, "\"");
}

static tp_status write_float(tp_jinja_text *out, double value)
{
    char number[TP_PYTHON_NUMBER_MAX];
    if (isnan(value))
        return tp_jinja_adds(out, "NaN");
    if (isinf(value))
        return tp_jinja_adds(out, value < 0 ? "-Infinity" : "Infinity");
    return tp_jinja_add(out, number, tp_python_float(value, number));
}

static tp_status write_scalar(tp_jinja_text *out, const tp_any *v, bool *ret_done)
{
    char number[TP_PYTHON_NUMBER_MAX];
    *ret_done = true;
    switch ((tp_any_type)v->type) {
    case TP_ANY_NONE:
        return tp_jinja_adds(out, "null");
    case TP_ANY_BOOL:
        return tp_jinja_adds(out, v->truth ? "true" : "false");
    case TP_ANY_INT:
        return tp_jinja_add(out, number, tp_python_integer(v->integer, number));
    case TP_ANY_FLOAT:
        return write_float(out, v->real);
    default:
        *ret_done = false;
        return TP_OK;
    }
}

static tp_status new_line(tp_jinja_text *out, const tp_jinja_json_options *o, size_t depth)
{
    if (!o->has_indent)
        return TP_OK;
    TP_TRY(tp_jinja_adds(out, "\n"));
    for (size_t i = 0; i < depth; i++)
        TP_TRY(tp_jinja_add(out, o->indent.data, o->indent.len));
    return TP_OK;
}

static tp_status between(tp_jinja_text *out, const tp_jinja_json_options *o, size_t i, size_t depth)
{
    if (i)
        TP_TRY(tp_jinja_add(out, o->item_separator.data, o->item_separator.len));
    return new_line(out, o, depth);
}

static tp_status write_value(tp_jinja_text *out, const tp_any *v, const tp_jinja_json_options *o,
                             size_t depth);

static tp_status write_list(tp_jinja_text *out, const struct tp_any_items *items,
                            const tp_jinja_json_options *o, size_t depth)
{
    if (items->n == 0)
        return tp_jinja_adds(out, "[]");
    TP_TRY(tp_jinja_adds(out, "["));
    for (size_t i = 0; i < items->n; i++) {
        TP_TRY(between(out, o, i, depth + 1));
        TP_TRY(write_value(out, &items->values[i], o, depth + 1));
    }
    TP_TRY(new_line(out, o, depth));
    return tp_jinja_adds(out, "]");
}

static tp_status write_key(tp_jinja_text *out, const tp_any *key, const tp_jinja_json_options *o)
{
    bool done = false;
    if (key->type == TP_ANY_STR)
        return write_text(out, key->text, o->ensure_ascii);
    TP_TRY(tp_jinja_adds(out, "\""));
    TP_TRY(write_scalar(out, key, &done));
    if (!done)
        return tp_jinja_fail(out->run, "tojson: a '%s' cannot be a key", tp_any_type_name(key));
    return tp_jinja_adds(out, "\"");
}

/* The entries by key; a merge sort, so that equal costs keep their order. */
static tp_status sort_entries(tp_jinja_run *run, struct tp_any_entry *entries,
                              struct tp_any_entry *spare, size_t n)
{
    if (n < 2)
        return TP_OK;
    size_t half = n / 2, i = 0, j = half, k = 0;
    TP_TRY(sort_entries(run, entries, spare, half));
    TP_TRY(sort_entries(run, entries + half, spare, n - half));
    while (i < half && j < n) {
        int order = 0;
        TP_TRY(tp_any_compare(run, &entries[j].key, &entries[i].key, "<", &order));
        spare[k++] = entries[order < 0 ? j++ : i++];
    }
    memcpy(spare + k, entries + i, (half - i) * sizeof *spare);
    k += half - i;
    memcpy(entries, spare, k * sizeof *spare);
    return TP_OK;
}

static tp_status write_dict(tp_jinja_text *out, const struct tp_any_dict *dict,
                            const tp_jinja_json_options *o, size_t depth)
{
    struct tp_any_entry *entries = dict->entries;
    if (dict->n == 0)
        return tp_jinja_adds(out, "{}");
    if (o->sort_keys) {
        void *sorted;
        TP_TRY(tp_jinja_take(out->run, 2 * dict->n, sizeof *entries, &sorted));
        memcpy(sorted, entries, dict->n * sizeof *entries);
        entries = sorted;
        TP_TRY(sort_entries(out->run, entries, entries + dict->n, dict->n));
    }
    TP_TRY(tp_jinja_adds(out, "{"));
    for (size_t i = 0; i < dict->n; i++) {
        TP_TRY(between(out, o, i, depth + 1));
        TP_TRY(write_key(out, &entries[i].key, o));
        TP_TRY(tp_jinja_add(out, o->key_separator.data, o->key_separator.len));
        TP_TRY(write_value(out, &entries[i].value, o, depth + 1));
    }
    TP_TRY(new_line(out, o, depth));
    return tp_jinja_adds(out, "}");
}

static tp_status write_value(tp_jinja_text *out, const tp_any *v, const tp_jinja_json_options *o,
                             size_t depth)
{
    bool done = false;
    TP_TRY(tp_jinja_charge(out->run, 1));
    if (depth > TP_JINJA_MAX_VALUE_DEPTH)
        return tp_jinja_fail(out->run, "tojson: a value nested deeper than %d",
                             TP_JINJA_MAX_VALUE_DEPTH);
    TP_TRY(write_scalar(out, v, &done));
    if (done)
        return TP_OK;
    if (v->type == TP_ANY_STR)
        return write_text(out, v->text, o->ensure_ascii);
    if (v->type == TP_ANY_LIST || v->type == TP_ANY_TUPLE)
        return write_list(out, v->items, o, depth);
    if (v->type == TP_ANY_DICT)
        return write_dict(out, v->dict, o, depth);
    if (v->type == TP_ANY_UNDEFINED)
        return tp_jinja_undefined_error(out->run, v);
    return tp_jinja_fail(out->run, "tojson: a '%s' is not JSON", tp_any_type_name(v));
}

tp_status tp_jinja_json(tp_jinja_text *out, const tp_any *v, const tp_jinja_json_options *options)
{
    return write_value(out, v, options, 0);
}
