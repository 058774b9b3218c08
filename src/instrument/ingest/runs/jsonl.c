/* jsonl.c - metrics as JSON objects, one per line or in one list, whoever wrote them; or as the one
 * object {"tag": {"step": number}} that NeMo RL makes of event files. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "instrument/ingest/runs/lines.h"
#include "instrument/ingest/runs/reader.h"
#include "instrument/ingest/runs/steps.h"

typedef struct {
    tp_flat_row_lines lines;
    bool is_list;   /* one JSON list of objects */
    bool is_object; /* one JSON object, of tags */
    tp_json_file file;
} state;

static char first_mark(const tp_run_place *place)
{
    for (size_t i = 0; i < place->n_head; i++)
        if (!isspace((unsigned char)place->head[i]))
            return place->head[i];
    return 0;
}

/* The file of a folder: metrics.jsonl, or the only one that ends in .jsonl. */
static char *file_of(const tp_run_place *place)
{
    if (!place->is_dir)
        return (first_mark(place) == '{' || first_mark(place) == '[') && !tp_place_is_trace(place)
                   ? tp_strdup(place->path)
                   : NULL;
    if (tp_place_has_file(place, "metrics.jsonl"))
        return tp_place_join(place->path, "metrics.jsonl");
    return tp_place_only(place, ".jsonl");
}

/* ---- one object of tags ---- */

typedef struct {
    int64_t step;
    size_t index;
    double value;
} figure;

TP_ORDER(by_step, figure, TP_COMPARE(x->step, y->step) ?: TP_COMPARE(x->index, y->index))

typedef struct {
    tp_json_reader json;
    tp_metrics *m; /* NULL: it is only looked at */
    const char *path;
    tp_buf tag, key;
    figure *figures; /* of the tag */
    size_t n, cap;
    bool is_other; /* no such object */
} tree;

static void release_tree(tree *t)
{
    tp_buf_release(&t->tag);
    tp_buf_release(&t->key);
    free(t->figures);
}

static tp_status fail_other(tree *t, const tp_json_token *at, tp_error *err)
{
    t->is_other = true;
    return tp_fail(
        err, TP_ERR_FORMAT,
        "'%s' is one JSON object, not one per line, and not {\"tag\": {\"step\": number}} "
        "(line %llu): metrics are read from JSON Lines, a list of objects, or that",
        t->path, (unsigned long long)at->line);
}

static void take_text(tp_buf *out, const tp_json_token *t)
{
    tp_buf_clear(out);
    tp_buf_reserve(out, t->text.len + 1);
    out->len = tp_json_unescape(t->text, out->data);
    out->data[out->len] = 0;
}

/* "step": number, up to the end of the tag; null is no figure. */
static tp_status read_figures(tree *t, tp_error *err)
{
    tp_json_token x;
    for (t->n = 0;;) {
        figure f = {.index = t->n};
        TP_TRY(tp_json_reader_next(&t->json, &x, err));
        if (x.type == TP_JSON_TOKEN_END_OBJECT)
            return TP_OK;
        take_text(&t->key, &x);
        if (!tp_str_to_i64(t->key.data, &f.step))
            return fail_other(t, &x, err);
        TP_TRY(tp_json_reader_next(&t->json, &x, err));
        if (x.type == TP_JSON_TOKEN_NULL)
            continue;
        take_text(&t->key, &x);
        if (x.type == TP_JSON_TOKEN_NUMBER)
            f.value = strtod(t->key.data, NULL);
        else if (x.type != TP_JSON_TOKEN_STRING ||
                 !tp_flat_row_spelled((tp_slice){t->key.data, t->key.len}, &f.value))
            return fail_other(t, &x, err);
        *TP_VEC_PUSH(t->figures, t->n, t->cap) = f;
    }
}

/* The members of an object have no order: steps are put into theirs. */
static void record_figures(tree *t)
{
    if (t->n)
        qsort(t->figures, t->n, sizeof *t->figures, by_step);
    for (size_t i = 0; i < t->n && tp_recorded_next(t->m); i++)
        tp_recorded_put(t->m, (tp_slice){t->tag.data, t->tag.len}, t->figures[i].step, NAN,
                        t->figures[i].value, 0);
}

static tp_status read_tree(tree *t, const char *text, size_t n, tp_error *err)
{
    tp_json_token x;
    tp_json_options options = TP_JSON_TOLERANT;
    tp_json_reader_init(&t->json, t->path, text, n, &options);
    TP_TRY(tp_json_reader_next(&t->json, &x, err));
    for (;;) {
        TP_TRY(tp_json_reader_next(&t->json, &x, err));
        if (x.type == TP_JSON_TOKEN_END_OBJECT)
            return tp_json_reader_next(&t->json, &x, err);
        take_text(&t->tag, &x);
        TP_TRY(tp_json_reader_next(&t->json, &x, err));
        if (x.type != TP_JSON_TOKEN_BEGIN_OBJECT)
            return fail_other(t, &x, err);
        TP_TRY(read_figures(t, err));
        if (t->m)
            record_figures(t);
    }
}

static tp_status read_object(tp_metrics *m, state *s, const tp_buf *text, tp_error *err)
{
    TP_CLEANUP(release_tree) tree t = {.m = m, .path = s->lines.tail.path};
    tp_error why = {0};
    if (read_tree(&t, tp_buf_str(text), text->len, &why) == TP_OK)
        return TP_OK;
    if (t.is_other)
        return tp_fail(err, TP_ERR_FORMAT, "%s", why.message);
    tp_notes_add(&m->notes, TP_NOTE_WARNING, "read up to the damage: %s", why.message);
    return TP_OK;
}

/* Is a file the object of tags, and nothing else?  All of it is read only where it begins so. */
static bool is_tree(const tp_run_place *place)
{
    TP_CLEANUP(release_tree) tree head = {.path = place->path}, t = {.path = place->path};
    TP_OWN(tp_buf) text = {0};
    bool is_it = read_tree(&head, place->head, place->n_head, NULL) == TP_OK;
    if (is_it || head.is_other || place->n_head < sizeof place->head)
        return is_it;
    return tp_json_file_read(place->path, &text, NULL) == TP_OK &&
           read_tree(&t, tp_buf_str(&text), text.len, NULL) == TP_OK;
}

/* Is a line an object by itself, behind the first, and none that ends what has begun before? */
static bool has_rows(const char *text, size_t n)
{
    TP_CLEANUP(tp_flat_row_release) tp_flat_row row = {0};
    const char *end = text + n, *at = memchr(text, '\n', n);
    for (const char *next; at; at = next) {
        next = memchr(at + 1, '\n', (size_t)(end - at - 1));
        const char *behind = next ? next : end;
        if (tp_flat_row_parse(&row, "line", at, (size_t)(behind - at), NULL) != TP_OK)
            continue;
        while (behind < end && isspace((unsigned char)*behind))
            behind++;
        if (behind == end || *behind == '{')
            return true;
    }
    return false;
}

/* Does one object go over several lines, or is the only line one of tags?  What goes on behind a
 * first line that was cut short is rows. */
static bool is_one_object(const tp_run_place *place)
{
    tp_json_reader r;
    tp_json_token t;
    tp_json_options options = TP_JSON_TOLERANT;
    uint64_t line = 0;
    bool has_lines = false;
    tp_json_reader_init(&r, place->path, place->head, place->n_head, &options);
    while (!has_lines && tp_json_reader_next(&r, &t, NULL) == TP_OK &&
           t.type != TP_JSON_TOKEN_END) {
        line = line ? line : t.line;
        has_lines = t.line > line;
    }
    bool is_it = is_tree(place);
    if (is_it || !has_lines)
        return is_it;
    TP_OWN(tp_buf) text = {0};
    return tp_json_file_read(place->path, &text, NULL) == TP_OK &&
           !has_rows(tp_buf_str(&text), text.len);
}

/* ---- the run ---- */

static tp_status open_file(tp_metrics *m, const tp_run_place *place, tp_error *err)
{
    (void)err;
    TP_FREED char *path = file_of(place);
    state *s = tp_vec_new(1, sizeof *s);
    tp_flat_row_lines_init(&s->lines, path);
    s->lines.row.is_anyones = true;
    m->state = s;
    return TP_OK;
}

static void close_file(tp_metrics *m)
{
    state *s = m->state;
    tp_flat_row_lines_release(&s->lines);
    free(s);
}

static void see_row(void *user, tp_flat_row_lines *l)
{
    tp_flat_row_record(user, &l->row, (int64_t)l->n_rows);
}

static tp_status read_list(tp_metrics *m, state *s, const tp_buf *text, tp_error *err)
{
    tp_json_reader r;
    tp_json_token t;
    tp_json_options options = TP_JSON_TOLERANT;
    int64_t row = 0;
    tp_json_reader_init(&r, s->lines.tail.path, text->data, text->len, &options);
    TP_TRY(tp_json_reader_next(&r, &t, err));
    for (;;) {
        tp_error why = {0};
        tp_status status = tp_json_reader_next(&r, &t, &why);
        if (status == TP_OK && t.type == TP_JSON_TOKEN_BEGIN_OBJECT)
            status = tp_flat_row_read(&s->lines.row, &r, &why);
        else if (status == TP_OK && t.type == TP_JSON_TOKEN_END_ARRAY)
            return TP_OK;
        else if (status == TP_OK)
            status = tp_json_reader_fail(&r, &t, &why, "a record is a JSON object");
        if (status != TP_OK) {
            tp_notes_add(&m->notes, TP_NOTE_WARNING, "read up to the damage: %s", why.message);
            return TP_OK;
        }
        tp_flat_row_record(m, &s->lines.row, row++);
    }
}

static void begin_lines(state *s)
{
    tp_flat_row_lines_restart(&s->lines);
    s->lines.row.is_anyones = true;
}

/* What the file is shows as it grows: it is asked anew before anything is read of it. */
static tp_status look_again(state *s, tp_error *err)
{
    TP_CLEANUP(tp_place_release) tp_run_place file = {0};
    if (s->is_list || s->is_object ? s->file.file.inode != 0 : s->lines.n_rows > 0)
        return TP_OK;
    TP_TRY(tp_place_look(&file, s->lines.tail.path, err));
    bool was_lines = !s->is_list && !s->is_object;
    s->is_list = first_mark(&file) == '[';
    s->is_object = !s->is_list && is_one_object(&file);
    if (was_lines != (!s->is_list && !s->is_object))
        begin_lines(s);
    return TP_OK;
}

static tp_status read_file(tp_metrics *m, bool *ret_again, tp_error *err)
{
    state *s = m->state;
    TP_OWN(tp_buf) text = {0};
    TP_TRY(look_again(s, err));
    if (!s->is_list && !s->is_object) {
        if (tp_tail_was_replaced(&s->lines.tail)) {
            begin_lines(s);
            *ret_again = true;
            return TP_OK;
        }
        return tp_flat_row_lines_read(&s->lines, see_row, m, err);
    }
    if (!tp_json_file_changed(s->lines.tail.path, &s->file, ret_again) || *ret_again)
        return TP_OK;
    TP_TRY(tp_json_file_read(s->lines.tail.path, &text, err));
    return (s->is_list ? read_list : read_object)(m, s, &text, err);
}

static void say(tp_metrics *m)
{
    const state *s = m->state;
    tp_row_steps_say(m);
    tp_json_file_say(s->lines.tail.path, &s->file, &m->notes);
    if (!s->is_list && !s->is_object)
        tp_flat_row_lines_say(&s->lines, &m->notes);
}

const tp_run_reader tp_run_reader_jsonl = {
    .name = "jsonl",
    .about = "JSON objects, one per line or in a list",
    .has_reruns = true,
    .file_of = file_of,
    .open = open_file,
    .read = read_file,
    .say = say,
    .close = close_file,
};
