/* jsonl.c - metrics as JSON objects, one per line or in one list, whoever wrote them. */
#include <ctype.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/vec.h"
#include "instrument/ingest/runs/lines.h"
#include "instrument/ingest/runs/reader.h"

typedef struct {
    tp_flat_row_lines lines;
    bool is_list; /* one JSON list of objects */
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

static tp_status open_file(tp_metrics *m, const tp_run_place *place, tp_error *err)
{
    TP_FREED char *path = file_of(place);
    TP_CLEANUP(tp_place_release) tp_run_place file = {0};
    TP_TRY(tp_place_look(&file, path, err));
    state *s = tp_vec_new(1, sizeof *s);
    s->is_list = first_mark(&file) == '[';
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

static tp_status read_file(tp_metrics *m, bool *ret_again, tp_error *err)
{
    state *s = m->state;
    TP_OWN(tp_buf) text = {0};
    if (!s->is_list) {
        if (tp_tail_was_replaced(&s->lines.tail)) {
            tp_flat_row_lines_restart(&s->lines);
            s->lines.row.is_anyones = true;
            *ret_again = true;
            return TP_OK;
        }
        return tp_flat_row_lines_read(&s->lines, see_row, m, err);
    }
    if (!tp_json_file_changed(s->lines.tail.path, &s->file, ret_again) || *ret_again)
        return TP_OK;
    TP_TRY(tp_json_file_read(s->lines.tail.path, &text, err));
    return read_list(m, s, &text, err);
}

static void say(tp_metrics *m)
{
    const state *s = m->state;
    tp_json_file_say(s->lines.tail.path, &s->file, &m->notes);
    if (!s->is_list)
        tp_flat_row_lines_say(&s->lines, &m->notes);
}

const tp_run_reader tp_run_reader_jsonl = {
    .name = "jsonl",
    .about = "JSON objects, one per line or in a list",
    .file_of = file_of,
    .open = open_file,
    .read = read_file,
    .say = say,
    .close = close_file,
};
