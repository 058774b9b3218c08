/* memory_timeline.c - the forms of a memory timeline, read into rows. */
#include "instrument/ingest/memory_timeline.h"

#include <stdlib.h>

#include "base/platform.h"
#include "base/vec.h"
#include "text/json/json.h"

const char *tp_timeline_category_name(int category)
{
    static const char *const names[TP_TIMELINE_CATEGORIES] = {
        "Parameter",  "Optimizer state", "Input",           "Temporary",
        "Activation", "Gradient",        "Autograd detail", "Unknown"};
    return category >= 0 && category < TP_TIMELINE_CATEGORIES ? names[category] : "";
}

const char *tp_timeline_action_name(int action)
{
    static const char *const names[] = {"", "PREEXISTING", "CREATE", "INCREMENT_VERSION",
                                        "DESTROY"};
    return action >= 0 && action < (int)TP_COUNTOF(names) ? names[action] : "";
}

typedef struct {
    tp_json_reader reader;
    tp_memory_timeline *out;
    size_t row_cap, time_cap, bytes_cap;
    const char *name;
    uint64_t most;
    bool is_too_large;
} timeline_reader;

/* What was read, against the limit: two bytes of text make eight of memory. */
static tp_status check_size(timeline_reader *t, tp_error *err)
{
    const tp_memory_timeline *out = t->out;
    uint64_t held = t->row_cap * sizeof *out->rows + t->time_cap * sizeof *out->times +
                    t->bytes_cap * sizeof *out->bytes;
    t->is_too_large = t->most && held > t->most;
    if (!t->is_too_large)
        return TP_OK;
    return tp_fail(err, TP_ERR_FORMAT,
                   "'%s': its numbers take more than %llu MB; is this a memory timeline?", t->name,
                   (unsigned long long)(t->most >> 20));
}

/* The number as an integer; a fraction is cut off. */
static bool whole(const tp_json_token *token, int64_t *ret)
{
    char text[40];
    size_t n = 0;
    if (token->type != TP_JSON_TOKEN_NUMBER)
        return false;
    while (n < token->text.len && n < sizeof text - 1 && token->text.data[n] != '.' &&
           token->text.data[n] != 'e' && token->text.data[n] != 'E') {
        text[n] = token->text.data[n];
        n++;
    }
    text[n] = 0;
    if (n < token->text.len && token->text.data[n] != '.')
        return false;
    return tp_str_to_i64(text, ret);
}

/* The elements of an array behind its bracket: up to `max` numbers; others are counted
 * as one past it. */
static tp_status read_numbers(timeline_reader *t, int64_t *out, size_t max, size_t *ret_n,
                              tp_error *err)
{
    size_t n = 0;
    for (;;) {
        tp_json_token token;
        TP_TRY(tp_json_reader_next(&t->reader, &token, err));
        if (token.type == TP_JSON_TOKEN_END_ARRAY) {
            *ret_n = n;
            return TP_OK;
        }
        if (n < max && whole(&token, &out[n])) {
            n++;
            continue;
        }
        n = max + 1;
        if (token.type == TP_JSON_TOKEN_BEGIN_ARRAY || token.type == TP_JSON_TOKEN_BEGIN_OBJECT)
            TP_TRY(tp_json_reader_skip(&t->reader, err));
    }
}

static void add_raw(timeline_reader *t, const int64_t v[4], size_t n)
{
    tp_memory_timeline *out = t->out;
    if (n != 4 || v[1] < 0 || v[1] > 255 || v[3] < 0 || v[3] > 255) {
        out->skipped++;
        return;
    }
    tp_timeline_row *row = TP_VEC_PUSH(out->rows, out->n_rows, t->row_cap);
    row->t_ns = v[0];
    row->action = (uint8_t)v[1];
    row->bytes = v[2];
    row->category = (uint8_t)v[3];
}

/* Rows of four numbers, the first of which is open already. */
static tp_status read_raw(timeline_reader *t, const int64_t *first, size_t n_first, tp_error *err)
{
    t->out->is_raw = true;
    add_raw(t, first, n_first);
    for (;;) {
        tp_json_token token;
        int64_t v[4];
        size_t n;
        TP_TRY(check_size(t, err));
        TP_TRY(tp_json_reader_next(&t->reader, &token, err));
        if (token.type == TP_JSON_TOKEN_END_ARRAY || token.type == TP_JSON_TOKEN_END)
            return TP_OK;
        if (token.type == TP_JSON_TOKEN_BEGIN_ARRAY) {
            TP_TRY(read_numbers(t, v, 4, &n, err));
            add_raw(t, v, n);
            continue;
        }
        t->out->skipped++;
        if (token.type == TP_JSON_TOKEN_BEGIN_OBJECT)
            TP_TRY(tp_json_reader_skip(&t->reader, err));
    }
}

static tp_status read_sizes(timeline_reader *t, tp_error *err)
{
    tp_memory_timeline *out = t->out;
    size_t n_rows = 0;
    for (;;) {
        tp_json_token token;
        TP_TRY(check_size(t, err));
        TP_TRY(tp_json_reader_next(&t->reader, &token, err));
        if (token.type == TP_JSON_TOKEN_END_ARRAY)
            return TP_OK;
        int64_t v[TP_TIMELINE_CATEGORIES + 1];
        size_t n = 0;
        if (token.type == TP_JSON_TOKEN_BEGIN_ARRAY)
            TP_TRY(read_numbers(t, v, TP_TIMELINE_CATEGORIES + 1, &n, err));
        else if (token.type == TP_JSON_TOKEN_BEGIN_OBJECT)
            TP_TRY(tp_json_reader_skip(&t->reader, err));
        /* Some versions put a zero in front, for stacked charts. */
        const int64_t *from = n == TP_TIMELINE_CATEGORIES + 1 ? v + 1 : v;
        if (n < TP_TIMELINE_CATEGORIES || n > TP_TIMELINE_CATEGORIES + 1 ||
            n_rows >= out->n_times) {
            out->skipped++;
            continue;
        }
        out->bytes = tp_vec_room(out->bytes, &t->bytes_cap, (n_rows + 1) * TP_TIMELINE_CATEGORIES,
                                 sizeof *out->bytes);
        for (size_t i = 0; i < TP_TIMELINE_CATEGORIES; i++)
            out->bytes[n_rows * TP_TIMELINE_CATEGORIES + i] = from[i];
        n_rows++;
        out->n_sizes = n_rows;
    }
}

/* What the first inner array holds tells the forms apart: four numbers and then more
 * arrays of four, or a list of times and one of sizes.  Four times are told from a row by
 * what follows: an array whose first element is an array. */
static tp_status read_times(timeline_reader *t, tp_error *err)
{
    tp_memory_timeline *out = t->out;
    for (;;) {
        tp_json_token token;
        int64_t v;
        TP_TRY(check_size(t, err));
        TP_TRY(tp_json_reader_next(&t->reader, &token, err));
        if (token.type == TP_JSON_TOKEN_END_ARRAY)
            return TP_OK;
        if (!whole(&token, &v)) {
            out->skipped++;
            if (token.type == TP_JSON_TOKEN_BEGIN_ARRAY || token.type == TP_JSON_TOKEN_BEGIN_OBJECT)
                TP_TRY(tp_json_reader_skip(&t->reader, err));
            continue;
        }
        out->times = tp_vec_room(out->times, &t->time_cap, out->n_times + 1, sizeof *out->times);
        out->times[out->n_times++] = v;
    }
}

static tp_status read_forms(timeline_reader *t, tp_error *err)
{
    tp_json_token token;
    TP_TRY(tp_json_reader_next(&t->reader, &token, err));
    if (token.type != TP_JSON_TOKEN_BEGIN_ARRAY)
        return tp_json_reader_fail(&t->reader, &token, err, "expected a list of lists");
    TP_TRY(tp_json_reader_next(&t->reader, &token, err));
    if (token.type == TP_JSON_TOKEN_END_ARRAY) {
        t->out->is_raw = true;
        return TP_OK;
    }
    if (token.type != TP_JSON_TOKEN_BEGIN_ARRAY)
        return tp_json_reader_fail(&t->reader, &token, err, "expected a list of lists");
    TP_TRY(read_times(t, err));
    if (t->out->n_times != 4 || t->out->skipped) {
        t->out->is_raw = false;
        TP_TRY(tp_json_reader_next(&t->reader, &token, err));
        return token.type == TP_JSON_TOKEN_BEGIN_ARRAY ? read_sizes(t, err) : TP_OK;
    }
    /* A second look decides. */
    tp_json_reader ahead = t->reader;
    t->out->is_raw = true;
    TP_TRY(tp_json_reader_next(&ahead, &token, err));
    if (token.type == TP_JSON_TOKEN_BEGIN_ARRAY) {
        TP_TRY(tp_json_reader_next(&ahead, &token, err));
        t->out->is_raw = token.type != TP_JSON_TOKEN_BEGIN_ARRAY;
    }
    if (!t->out->is_raw) {
        TP_TRY(tp_json_reader_next(&t->reader, &token, err));
        return read_sizes(t, err);
    }
    int64_t first[4];
    for (int i = 0; i < 4; i++)
        first[i] = t->out->times[i];
    t->out->n_times = 0;
    return read_raw(t, first, 4, err);
}

/* Nothing but a piece of a value is left: the file was cut, not damaged. */
static bool is_at_end(const tp_json_reader *r)
{
    for (const char *p = r->at; p < r->end; p++)
        if (*p == ',' || *p == ']' || *p == '}')
            return false;
    return true;
}

tp_status tp_memory_timeline_read(const char *name, const char *text, size_t n, uint64_t most,
                                  tp_memory_timeline **ret, tp_notes *notes, tp_error *err)
{
    tp_error why = {0};
    timeline_reader t = {.out = calloc(1, sizeof *t.out), .name = name, .most = most};
    if (!t.out)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for reading '%s'", name);
    tp_json_reader_init(&t.reader, name, text, n, &TP_JSON_TOLERANT);
    if (read_forms(&t, &why) != TP_OK) {
        if (t.is_too_large || (!t.out->n_rows && !t.out->n_times)) {
            tp_memory_timeline_free(t.out);
            if (err)
                *err = why;
            return why.status;
        }
        t.out->truncated = true;
        if (is_at_end(&t.reader))
            tp_notes_add(notes, TP_NOTE_WARNING,
                         "'%s' ends in the middle; what came before was read", name);
        else
            tp_notes_add(notes, TP_NOTE_WARNING, "%s; what came before was read", why.message);
    }
    if (t.out->n_sizes < t.out->n_times)
        t.out->n_times = t.out->n_sizes;
    if (t.out->skipped)
        tp_notes_add(notes, TP_NOTE_WARNING,
                     "%llu rows of '%s' do not have the shape of a memory timeline; left out",
                     (unsigned long long)t.out->skipped, name);
    *ret = t.out;
    return TP_OK;
}

void tp_memory_timeline_free(tp_memory_timeline *timeline)
{
    if (!timeline)
        return;
    free(timeline->rows);
    free(timeline->times);
    free(timeline->bytes);
    free(timeline);
}
