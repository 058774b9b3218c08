/* rows.c - JSON objects as flat rows, and rows as records. */
#include "instrument/ingest/runs/rows.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/vec.h"
#include "instrument/ingest/runs/steps.h"

void tp_flat_row_release(tp_flat_row *row)
{
    tp_buf_release(&row->text);
    tp_buf_release(&row->prefix);
    free(row->members);
    *row = (tp_flat_row){0};
}

tp_slice tp_flat_row_tag(const tp_flat_row *row, const tp_flat_row_member *m)
{
    return (tp_slice){row->text.data + m->tag, m->n_tag};
}

tp_slice tp_flat_row_text(const tp_flat_row *row, const tp_flat_row_member *m)
{
    return (tp_slice){row->text.data + m->said, m->n_said};
}

const tp_flat_row_member *tp_flat_row_find(const tp_flat_row *row, const char *tag)
{
    for (size_t i = row->n; i-- > 0;)
        if (tp_slice_is(tp_flat_row_tag(row, &row->members[i]), tag))
            return &row->members[i];
    return NULL;
}

/* ---- reading ---- */

/* A key or text with its escapes resolved, at the end of `out`. */
static void add_text(tp_buf *out, const tp_json_token *t)
{
    if (!t->has_escapes) {
        tp_buf_add(out, t->text.data, t->text.len);
        return;
    }
    tp_buf_reserve(out, t->text.len);
    out->len += tp_json_unescape(t->text, out->data + out->len);
    out->data[out->len] = 0;
}

static tp_flat_row_member *new_member(tp_flat_row *row, tp_slice key)
{
    tp_flat_row_member *m = TP_VEC_PUSH(row->members, row->n, row->cap);
    m->tag = row->text.len;
    tp_buf_add(&row->text, row->prefix.len ? row->prefix.data : "", row->prefix.len);
    tp_buf_add(&row->text, key.data ? key.data : "", key.len);
    m->n_tag = row->text.len - m->tag;
    return m;
}

/* "NaN", "Infinity", "-Infinity": exactly so, as they are written by those who avoid the bare
 * words. */
static bool is_spelled_number(tp_slice s, double *ret)
{
    *ret = tp_slice_is(s, "NaN") ? NAN : tp_slice_is(s, "-Infinity") ? -INFINITY : INFINITY;
    return tp_slice_is(s, "NaN") || tp_slice_is(s, "Infinity") || tp_slice_is(s, "-Infinity");
}

bool tp_flat_row_spelled(tp_slice s, double *ret)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"infinity", INFINITY}};
    bool is_negative = s.len && s.data[0] == '-';
    if (is_negative || (s.len && s.data[0] == '+'))
        s = (tp_slice){s.data + 1, s.len - 1};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (s.len == strlen(words[i].word) && strncasecmp(s.data, words[i].word, s.len) == 0) {
            *ret = is_negative ? -words[i].value : words[i].value;
            return true;
        }
    return false;
}

static double number_of(tp_slice text)
{
    char copy[64];
    if (text.len >= sizeof copy) {
        TP_FREED char *all = strndup(text.data, text.len);
        return all ? strtod(all, NULL) : NAN;
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;
    return strtod(copy, NULL);
}

static void take_scalar(tp_flat_row *row, tp_slice key, const tp_json_token *t)
{
    tp_flat_row_member *m = new_member(row, key);
    switch (t->type) {
    case TP_JSON_TOKEN_NUMBER:
        m->value = number_of(t->text);
        m->is_number = true;
        break;
    case TP_JSON_TOKEN_STRING:
        m->said = row->text.len;
        add_text(&row->text, t);
        m->n_said = row->text.len - m->said;
        m->is_number = !row->is_plain &&
                       (row->is_anyones ? tp_flat_row_spelled
                                        : is_spelled_number)(tp_flat_row_text(row, m), &m->value);
        m->is_text = true;
        break;
    default: /* for settings; no figure */
        m->said = row->text.len;
        tp_buf_adds(&row->text, t->type == TP_JSON_TOKEN_TRUE    ? "true"
                                : t->type == TP_JSON_TOKEN_FALSE ? "false"
                                                                 : "null");
        m->n_said = row->text.len - m->said;
    }
}

/* On from `t`, inside one open bracket, to its end. */
static tp_status leave(tp_json_reader *r, tp_json_token t, tp_error *err)
{
    for (int depth = 1;;) {
        depth += t.type == TP_JSON_TOKEN_BEGIN_ARRAY || t.type == TP_JSON_TOKEN_BEGIN_OBJECT;
        depth -= t.type == TP_JSON_TOKEN_END_ARRAY || t.type == TP_JSON_TOKEN_END_OBJECT;
        if (depth == 0)
            return TP_OK;
        if (t.type == TP_JSON_TOKEN_END)
            return tp_json_reader_fail(r, &t, err, "a bracket is not closed");
        TP_TRY(tp_json_reader_next(r, &t, err));
    }
}

/* [1.5]: the one number of the list, where a row says that its lists are such. */
static tp_status take_list(tp_flat_row *row, tp_slice key, tp_json_reader *r, tp_error *err)
{
    tp_json_token first, t;
    TP_TRY(tp_json_reader_next(r, &first, err));
    if (!row->unwraps || first.type != TP_JSON_TOKEN_NUMBER)
        return leave(r, first, err);
    TP_TRY(tp_json_reader_next(r, &t, err));
    if (t.type == TP_JSON_TOKEN_END_ARRAY)
        take_scalar(row, key, &first);
    return leave(r, t, err);
}

static bool is_container(tp_slice key)
{
    return tp_slice_is(key, "m") || tp_slice_is(key, "data") || tp_slice_is(key, "metrics");
}

/* The members up to the end of this object; `depth` levels of it are in the prefix. */
static tp_status read_members(tp_flat_row *row, tp_json_reader *r, tp_error *err)
{
    size_t levels[TP_JSON_MAX_DEPTH + 1];
    int depth = 0;
    TP_OWN(tp_buf) key = {0};
    tp_status status = TP_OK;
    levels[0] = 0;
    while (status == TP_OK) {
        tp_json_token t;
        if ((status = tp_json_reader_next(r, &t, err)) != TP_OK)
            break;
        tp_slice name = {key.data, key.len};
        if (t.type == TP_JSON_TOKEN_END_OBJECT) {
            if (depth == 0)
                break;
            row->prefix.len = levels[depth--];
        } else if (t.type == TP_JSON_TOKEN_KEY) {
            tp_buf_clear(&key);
            add_text(&key, &t);
        } else if (t.type == TP_JSON_TOKEN_BEGIN_OBJECT && row->is_flat) {
            if ((status = tp_json_reader_next(r, &t, err)) == TP_OK)
                status = leave(r, t, err);
        } else if (t.type == TP_JSON_TOKEN_BEGIN_OBJECT) {
            levels[++depth] = row->prefix.len;
            if (!is_container(name)) {
                tp_buf_add(&row->prefix, tp_buf_str(&key), key.len);
                tp_buf_addc(&row->prefix, '/');
            }
        } else if (t.type == TP_JSON_TOKEN_BEGIN_ARRAY) {
            status = take_list(row, name, r, err);
        } else if (t.type == TP_JSON_TOKEN_END) {
            status = tp_json_reader_fail(r, &t, err, "the object has no end");
        } else {
            take_scalar(row, name, &t);
        }
    }
    return status;
}

tp_status tp_flat_row_read(tp_flat_row *row, tp_json_reader *r, tp_error *err)
{
    tp_buf_clear(&row->text);
    tp_buf_clear(&row->prefix);
    row->n = 0;
    return read_members(row, r, err);
}

tp_status tp_flat_row_parse(tp_flat_row *row, const char *name, const char *text, size_t n,
                            tp_error *err)
{
    tp_json_reader r;
    tp_json_token t;
    tp_json_options options = TP_JSON_TOLERANT;
    tp_json_reader_init(&r, name, text, n, &options);
    TP_TRY(tp_json_reader_next(&r, &t, err));
    if (t.type != TP_JSON_TOKEN_BEGIN_OBJECT)
        return tp_json_reader_fail(&r, &t, err, "a record is a JSON object");
    TP_TRY(tp_flat_row_read(row, &r, err));
    return tp_json_reader_next(&r, &t, err);
}

/* ---- one value in a file ---- */

tp_status tp_json_file_read(const char *path, tp_buf *ret, tp_error *err)
{
    enum { MAX_BYTES = 1 << 30 };
    TP_TRY(tp_file_read(path, MAX_BYTES, ret, err));
    size_t mark = tp_utf8_mark(tp_buf_str(ret), ret->len);
    if (mark) {
        ret->len -= mark;
        memmove(ret->data, ret->data + mark, ret->len + 1);
    }
    return TP_OK;
}

static bool is_whole(const char *path)
{
    tp_json_reader r;
    tp_json_token t;
    tp_json_options options = TP_JSON_TOLERANT;
    TP_OWN(tp_buf) text = {0};
    if (tp_json_file_read(path, &text, NULL) != TP_OK)
        return true; /* reading it says what is wrong */
    tp_json_reader_init(&r, path, tp_buf_str(&text), text.len, &options);
    return tp_json_reader_next(&r, &t, NULL) == TP_OK && tp_json_reader_skip(&r, NULL) == TP_OK;
}

bool tp_json_file_changed(const char *path, tp_json_file *f, bool *ret_again)
{
    if (!tp_file_changed(path, &f->file, ret_again))
        return false;
    f->is_half = *ret_again && !is_whole(path);
    if (f->is_half)
        *ret_again = false;
    else if (*ret_again)
        *f = (tp_json_file){0};
    return !f->is_half;
}

void tp_json_file_say(const char *path, const tp_json_file *f, tp_notes *notes)
{
    if (f->is_half)
        tp_notes_add(notes, TP_NOTE_WARNING,
                     "'%s' is incomplete now: cut short, or still being written; what it had "
                     "before is shown",
                     path);
}

/* ---- roles ---- */

static const char *const step_names[] = {
    "step",      "_step", "global_step", "train/global_step", "trainer/global_step",
    "iteration", "iter",  "steps",       "current_steps",     "Step"};
static const char *const wall_names[] = {"wall_time", "_timestamp", "timestamp", "Wall time",
                                         "time",      "t",          "ts",        "created_at"};
static const char *const tag_names[] = {"tag", "metric", "name", "key"};

bool tp_flat_row_is_step_name(const char *name)
{
    for (size_t i = 0; i < TP_COUNTOF(step_names); i++)
        if (strcmp(step_names[i], name) == 0)
            return true;
    return false;
}

#define FIRST_OF(row, names, accepts) first_of(row, names, sizeof(names) / sizeof *(names), accepts)

static bool is_step(const tp_flat_row *row, const tp_flat_row_member *m)
{
    (void)row;
    return m->is_number && tp_flat_row_step(m->value) != TP_STEP_NONE;
}

/* Clocks count seconds, milliseconds, microseconds or nanoseconds; less than 1e8 is no time of
 * day but a time since something. */
static double flat_row_wall(const tp_flat_row *row, const tp_flat_row_member *m)
{
    double v = m->value;
    if (m->is_text && !m->is_number)
        return tp_iso_seconds(tp_flat_row_text(row, m).data, m->n_said);
    if (!m->is_number || !(v >= 1e8) || v > 1e19)
        return NAN;
    return v < 1e11 ? v : v < 1e14 ? v / 1e3 : v < 1e17 ? v / 1e6 : v / 1e9;
}

static bool is_wall(const tp_flat_row *row, const tp_flat_row_member *m)
{
    return !isnan(flat_row_wall(row, m));
}

static bool is_word(const tp_flat_row *row, const tp_flat_row_member *m)
{
    (void)row;
    return m->is_text && !m->is_number;
}

static const tp_flat_row_member *
first_of(const tp_flat_row *row, const char *const *names, size_t n,
         bool (*accepts)(const tp_flat_row *row, const tp_flat_row_member *m))
{
    for (size_t i = 0; i < n; i++) {
        const tp_flat_row_member *m = tp_flat_row_find(row, names[i]);
        if (m && accepts(row, m))
            return m;
    }
    return NULL;
}

static tp_flat_row_roles flat_row_roles_of(const tp_flat_row *row)
{
    tp_flat_row_roles roles = {.step = FIRST_OF(row, step_names, is_step),
                               .wall = FIRST_OF(row, wall_names, is_wall)};
    const tp_flat_row_member *value = tp_flat_row_find(row, "value");
    if (value && value->is_number)
        roles.tag = FIRST_OF(row, tag_names, is_word);
    if (roles.tag)
        roles.value = value;
    return roles;
}

int64_t tp_flat_row_step(double value)
{
    bool is_whole = value >= -9.2e18 && value <= 9.2e18 && value == floor(value);
    return is_whole ? (int64_t)value : TP_STEP_NONE;
}

/* MMCV: "mode": "val" with the batches of the evaluation as "iter". */
static bool is_evaluation(const tp_flat_row *row, const tp_flat_row_member *step)
{
    const tp_flat_row_member *mode = tp_flat_row_find(row, "mode");
    return mode && mode->is_text && tp_slice_is(tp_flat_row_text(row, mode), "val") &&
           tp_slice_is(tp_flat_row_tag(row, step), "iter");
}

static bool is_figure(const tp_flat_row_member *x, const tp_flat_row_roles *roles)
{
    return x->is_number && x != roles->step && x != roles->wall;
}

/* The tags of a row, one after another. */
static tp_slice kind_of(const tp_flat_row *row, const tp_flat_row_roles *roles, tp_buf *out)
{
    if (roles->tag)
        return tp_flat_row_text(row, roles->tag);
    tp_buf_clear(out);
    for (size_t i = 0; i < row->n; i++) {
        const tp_flat_row_member *x = &row->members[i];
        if (!is_figure(x, roles))
            continue;
        tp_buf_add(out, tp_flat_row_tag(row, x).data, x->n_tag);
        tp_buf_addc(out, '\n');
    }
    return (tp_slice){tp_buf_str(out), out->len};
}

static int64_t step_of(tp_metrics *m, const tp_flat_row *row, const tp_flat_row_roles *roles)
{
    const tp_flat_row_member *epoch = tp_flat_row_find(row, "epoch");
    tp_row_number number = {
        tp_flat_row_step(roles->step->value), NAN, is_evaluation(row, roles->step), {0}};
    if (epoch && epoch->is_number && isfinite(epoch->value)) {
        number.epoch = epoch->value;
        number.kind = kind_of(row, roles, &m->row_steps.kind);
    }
    return tp_row_step(m, &number);
}

void tp_flat_row_record(tp_metrics *m, const tp_flat_row *row, int64_t row_number)
{
    tp_flat_row_roles roles = flat_row_roles_of(row);
    double wall = roles.wall ? flat_row_wall(row, roles.wall) : NAN;
    if (!tp_recorded_next(m))
        return;
    int64_t step = roles.step ? step_of(m, row, &roles) : row_number;
    if (roles.tag) {
        tp_recorded_put(m, tp_flat_row_text(row, roles.tag), step, wall, roles.value->value, 0);
        return;
    }
    for (size_t i = 0; i < row->n; i++) {
        const tp_flat_row_member *x = &row->members[i];
        if (is_figure(x, &roles))
            tp_recorded_put(m, tp_flat_row_tag(row, x), step, wall, x->value, 0);
    }
}

/* ---- dates ---- */

/* Exactly `n` digits. */
static bool digits(const char **at, const char *end, int n, int64_t *ret)
{
    int64_t v = 0;
    for (int i = 0; i < n; i++, ++*at) {
        if (*at >= end || !isdigit((unsigned char)**at))
            return false;
        v = v * 10 + (**at - '0');
    }
    *ret = v;
    return true;
}

static bool mark(const char **at, const char *end, const char *any)
{
    if (*at >= end || !strchr(any, **at) || !**at)
        return false;
    ++*at;
    return true;
}

/* Days since 1970 of a date of the Gregorian calendar, counted from March so that the leap day is
 * the last of a year. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Minutes east of Greenwich: Z, +02:00, +0200, or nothing, which counts as UTC. */
static bool zone_of(const char **at, const char *end, int64_t *ret_minutes)
{
    int64_t h, min = 0;
    *ret_minutes = 0;
    if (*at == end || mark(at, end, "Zz"))
        return true;
    bool is_west = **at == '-';
    if (!mark(at, end, "+-") || !digits(at, end, 2, &h))
        return false;
    (void)mark(at, end, ":");
    if (*at < end && !digits(at, end, 2, &min))
        return false;
    *ret_minutes = (is_west ? -1 : 1) * (h * 60 + min);
    return true;
}

double tp_iso_seconds(const char *text, size_t n)
{
    const char *at = text, *end = text + n;
    int64_t year, month, day, h = 0, min = 0, s = 0, zone, micros = 0;
    if (!digits(&at, end, 4, &year) || !mark(&at, end, "-") || !digits(&at, end, 2, &month) ||
        !mark(&at, end, "-") || !digits(&at, end, 2, &day) || month < 1 || month > 12)
        return NAN;
    if (mark(&at, end, "T ")) {
        if (!digits(&at, end, 2, &h) || !mark(&at, end, ":") || !digits(&at, end, 2, &min))
            return NAN;
        if (mark(&at, end, ":") && !digits(&at, end, 2, &s))
            return NAN;
        if (mark(&at, end, ".,"))
            for (int i = 0; at < end && isdigit((unsigned char)*at); i++, at++)
                micros = i < 6 ? micros * 10 + (*at - '0') : micros;
        const char *dot = memchr(text, '.', n);
        dot = dot ? dot : memchr(text, ',', n);
        for (int64_t i = dot ? at - dot - 1 : 6; i < 6; i++)
            micros *= 10;
    }
    if (!zone_of(&at, end, &zone) || at != end)
        return NAN;
    int64_t seconds = days_of(year, month, day) * 86400 + h * 3600 + (min - zone) * 60 + s;
    return (double)(seconds * 1000000 + micros) / 1e6;
}
