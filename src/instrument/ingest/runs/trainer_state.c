/* trainer_state.c - the log_history of transformers' and TRL's trainer_state.json.
 *
 * The file is written anew with every checkpoint.  Figures have names of one part ("loss",
 * "eval_loss"), no time, and may be bare NaN and Infinity. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/vec.h"
#include "instrument/ingest/runs/reader.h"
#include "instrument/ingest/runs/recorded.h"
#include "instrument/ingest/runs/rows.h"
#include "instrument/ingest/runs/tail.h"

typedef struct {
    char *folder; /* NULL: the file was named */
    char *path;
    tp_json_file file;
} state;

/* The checkpoint with the highest step that has one; free() it. */
static char *newest_checkpoint(const tp_run_place *place)
{
    long long best = -1;
    char *ret = NULL;
    for (size_t i = 0; i < place->n_entries; i++) {
        const tp_place_entry *e = &place->entries[i];
        int64_t step;
        if (!e->is_dir || !tp_str_starts(e->name, TP_TRAINER_CHECKPOINT) ||
            !tp_str_to_i64(e->name + strlen(TP_TRAINER_CHECKPOINT), &step) || step <= best)
            continue;
        char *folder = tp_place_join(place->path, e->name);
        char *path = tp_place_join(folder, TP_TRAINER_STATE);
        free(folder);
        if (tp_file_exists(path)) {
            free(ret);
            ret = path;
            best = step;
        } else {
            free(path);
        }
    }
    return ret;
}

static char *file_of(const tp_run_place *place)
{
    if (!place->is_dir)
        return strcmp(place->base, TP_TRAINER_STATE) == 0 ||
                       (place->n_head && place->head[0] == '{' &&
                        memmem(place->head, place->n_head, "\"log_history\": [", 16))
                   ? tp_strdup(place->path)
                   : NULL;
    if (tp_place_has_file(place, TP_TRAINER_STATE))
        return tp_place_join(place->path, TP_TRAINER_STATE);
    return newest_checkpoint(place);
}

static tp_status open_run(tp_metrics *m, const tp_run_place *place, tp_error *err)
{
    (void)err;
    state *s = tp_vec_new(1, sizeof *s);
    s->path = file_of(place);
    s->folder = place->is_dir ? tp_strdup(place->path) : NULL;
    m->state = s;
    return TP_OK;
}

static void close_run(tp_metrics *m)
{
    state *s = m->state;
    free(s->folder);
    free(s->path);
    free(s);
}

/* What a run was given; the rest says how far it came. */
static const char *const settings[] = {"eval_steps", "logging_steps",    "max_steps",
                                       "save_steps", "num_train_epochs", "train_batch_size"};

static void take_setting(tp_metrics *m, tp_slice key, const tp_json_token *t)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (tp_slice_is(key, settings[i]) &&
            (t->type == TP_JSON_TOKEN_NUMBER || t->type == TP_JSON_TOKEN_STRING))
            tp_recorded_setting_add(m, key, t->text);
}

static void take_row(tp_metrics *m, const tp_flat_row *row)
{
    const tp_flat_row_member *at = tp_flat_row_find(row, "step");
    int64_t step = at && at->is_number ? tp_flat_row_step(at->value) : TP_STEP_NONE;
    if (!tp_recorded_next(m))
        return;
    for (size_t i = 0; i < row->n; i++) {
        const tp_flat_row_member *x = &row->members[i];
        if (x->is_number && !tp_slice_is(tp_flat_row_tag(row, x), "step"))
            tp_recorded_put(m, tp_flat_row_tag(row, x), step, NAN, x->value, 0);
    }
}

static tp_status read_history(tp_metrics *m, tp_json_reader *r, tp_flat_row *row, tp_error *err)
{
    for (;;) {
        tp_json_token t;
        TP_TRY(tp_json_reader_next(r, &t, err));
        if (t.type == TP_JSON_TOKEN_END_ARRAY)
            return TP_OK;
        if (t.type != TP_JSON_TOKEN_BEGIN_OBJECT)
            return tp_json_reader_fail(r, &t, err, "log_history is a list of objects");
        TP_TRY(tp_flat_row_read(row, r, err));
        take_row(m, row);
    }
}

static tp_status read_top(tp_metrics *m, tp_json_reader *r, tp_flat_row *row, tp_error *err)
{
    tp_json_token t;
    TP_OWN(tp_buf) key = {0};
    bool has_history = false;
    tp_status status = tp_json_reader_next(r, &t, err);
    if (status == TP_OK && t.type != TP_JSON_TOKEN_BEGIN_OBJECT)
        status = tp_json_reader_fail(r, &t, err, "the file is a JSON object with a log_history");
    while (status == TP_OK) {
        if ((status = tp_json_reader_next(r, &t, err)) != TP_OK)
            break;
        tp_slice name = {key.data, key.len};
        if (t.type == TP_JSON_TOKEN_END || t.type == TP_JSON_TOKEN_END_OBJECT)
            break;
        if (t.type == TP_JSON_TOKEN_KEY) {
            tp_buf_clear(&key);
            tp_buf_add(&key, t.text.data, t.text.len);
        } else if (tp_slice_is(name, "log_history")) {
            has_history = true;
            status = t.type == TP_JSON_TOKEN_BEGIN_ARRAY
                         ? read_history(m, r, row, err)
                         : tp_json_reader_fail(r, &t, err, "log_history is a list of objects");
        } else if (t.type == TP_JSON_TOKEN_BEGIN_ARRAY || t.type == TP_JSON_TOKEN_BEGIN_OBJECT) {
            status = tp_json_reader_skip(r, err);
        } else {
            take_setting(m, name, &t);
        }
    }
    if (status == TP_OK && !has_history)
        return tp_json_reader_fail(r, &t, err, "the file has no log_history");
    return status;
}

static void trainer_state_read(tp_metrics *m, const char *name, const char *text, size_t n)
{
    tp_json_reader r;
    tp_error why = {0};
    tp_json_options options = TP_JSON_TOLERANT;
    TP_OWN(tp_flat_row) row = {.is_flat = true, .is_plain = true};
    tp_json_reader_init(&r, name, text, n, &options);
    if (read_top(m, &r, &row, &why) != TP_OK)
        tp_notes_add(&m->notes, TP_NOTE_WARNING, "read up to the damage: %s (byte %llu)",
                     why.message, (unsigned long long)(r.at - r.begin));
}

static tp_status read_run(tp_metrics *m, bool *ret_again, tp_error *err)
{
    state *s = m->state;
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    TP_OWN(tp_buf) text = {0};
    if (s->folder && tp_place_look(&place, s->folder, NULL) == TP_OK) {
        char *path = file_of(&place);
        if (path && strcmp(path, s->path) != 0) { /* a newer checkpoint */
            free(s->path);
            s->path = tp_strdup(path);
        }
        free(path);
    }
    if (!tp_json_file_changed(s->path, &s->file, ret_again) || *ret_again)
        return TP_OK;
    TP_TRY(tp_json_file_read(s->path, &text, err));
    trainer_state_read(m, s->path, tp_buf_str(&text), text.len);
    return TP_OK;
}

/* logging_nan_inf_filter replaces a loss that is NaN by the mean since the last record: with a
 * record per step that is 0. */
static void say(tp_metrics *m)
{
    const state *s = m->state;
    size_t loss = tp_metrics_find(m, "loss"), norm = tp_metrics_find(m, "grad_norm");
    tp_json_file_say(s->path, &s->file, &m->notes);
    if (loss == SIZE_MAX || norm == SIZE_MAX)
        return;
    const tp_recorded_series *l = &m->series[m->shown[loss]], *g = &m->series[m->shown[norm]];
    for (size_t i = 0; i < l->n && i < g->n; i++)
        if (l->points[i].value == 0 && isnan(g->points[i].value)) {
            tp_notes_add(
                &m->notes, TP_NOTE_WARNING,
                "'%s': loss is 0 where grad_norm is NaN (from step %lld): the loss was NaN "
                "there, and logging_nan_inf_filter hid it",
                m->path, (long long)l->points[i].step);
            return;
        }
}

const tp_run_reader tp_run_reader_trainer_state = {
    .name = "trainer_state",
    .about = "trainer_state.json of transformers and TRL",
    .file_of = file_of,
    .open = open_run,
    .read = read_run,
    .say = say,
    .close = close_run,
};
