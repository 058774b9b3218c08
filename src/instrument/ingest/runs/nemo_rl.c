/* nemo_rl.c - a logger folder of NeMo RL: event files in tensorboard/, and one file of samples per
 * step beside it.
 *
 * Of a sample's members those that are one number count ("rewards", "input_lengths"): tags
 * train_data/<member> and val_data/<member>, a point per sample, at the step of the file's name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/ingest/runs/lines.h"
#include "instrument/ingest/runs/reader.h"

typedef struct {
    tp_flat_row_lines lines;
    char *name;
    int64_t step;
    const char *prefix; /* "train_data/" */
} samples;

typedef struct {
    char *folder;
    samples *files; /* by step */
    size_t n_files, cap_files;
    bool has_events;
    void *events; /* of the reader of event files */
} state;

/* "train_data_step12.jsonl" */
static bool is_samples(const char *name, const char **ret_prefix, int64_t *ret_step)
{
    static const char *const kinds[][2] = {{"train_data_step", "train_data/"},
                                           {"val_data_step", "val_data/"}};
    for (size_t i = 0; i < 2; i++) {
        if (!tp_str_starts(name, kinds[i][0]))
            continue;
        char *end;
        const char *digits = name + strlen(kinds[i][0]);
        *ret_prefix = kinds[i][1];
        *ret_step = isdigit((unsigned char)*digits) ? strtoll(digits, &end, 10) : -1;
        return *ret_step >= 0 && strcmp(end, ".jsonl") == 0;
    }
    return false;
}

static bool holds_events(const tp_run_place *place)
{
    TP_CLEANUP(tp_place_release) tp_run_place inner = {0};
    bool is_so = false;
    if (!tp_place_has_dir(place, "tensorboard"))
        return false;
    TP_FREED char *path = tp_place_join(place->path, "tensorboard");
    if (tp_place_look(&inner, path, NULL) == TP_OK)
        is_so = tp_run_reader_tensorboard.is_here(&inner);
    return is_so;
}

static bool is_here(const tp_run_place *place)
{
    const char *prefix;
    int64_t step;
    for (size_t i = 0; place->is_dir && i < place->n_entries; i++)
        if (!place->entries[i].is_dir && is_samples(place->entries[i].name, &prefix, &step))
            return true;
    return place->is_dir && holds_events(place);
}

/* The reader of event files works on the same run with a state of its own. */
static tp_status with_events(tp_metrics *m, tp_status (*call)(tp_metrics *, bool *, tp_error *),
                             bool *ret_again, tp_error *err)
{
    state *s = m->state;
    m->state = s->events;
    tp_status status = call(m, ret_again, err);
    m->state = s;
    return status;
}

static tp_status open_events(tp_metrics *m, state *s, tp_error *err)
{
    TP_CLEANUP(tp_place_release) tp_run_place inner = {0};
    TP_FREED char *path = tp_place_join(s->folder, "tensorboard");
    tp_status status = tp_place_look(&inner, path, err);
    if (status != TP_OK)
        return status;
    status = tp_run_reader_tensorboard.open(m, &inner, err);
    s->events = m->state;
    m->state = s;
    s->has_events = status == TP_OK;
    return status;
}

static tp_status open_run(tp_metrics *m, const tp_run_place *place, tp_error *err)
{
    state *s = tp_vec_new(1, sizeof *s);
    m->state = s;
    s->folder = tp_strdup(place->path);
    return holds_events(place) ? open_events(m, s, err) : TP_OK;
}

static void forget_samples(state *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        tp_flat_row_lines_release(&s->files[i].lines);
        free(s->files[i].name);
    }
    s->n_files = 0;
}

static void close_run(tp_metrics *m)
{
    state *s = m->state;
    if (s->has_events) {
        m->state = s->events;
        tp_run_reader_tensorboard.close(m);
        m->state = s;
    }
    forget_samples(s);
    free(s->files);
    free(s->folder);
    free(s);
}

/* ---- samples ---- */

TP_ORDER(by_step, samples, TP_COMPARE(x->step, y->step) ?: strcmp(x->name, y->name))

static bool is_known(const state *s, const char *name)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (strcmp(s->files[i].name, name) == 0)
            return true;
    return false;
}

static tp_status look_for_samples(state *s, tp_error *err)
{
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    size_t before = s->n_files;
    TP_TRY(tp_place_look(&place, s->folder, err));
    for (size_t i = 0; i < place.n_entries; i++) {
        const char *name = place.entries[i].name, *prefix;
        int64_t step;
        if (place.entries[i].is_dir || !is_samples(name, &prefix, &step) || is_known(s, name))
            continue;
        samples *f = TP_VEC_PUSH(s->files, s->n_files, s->cap_files);
        TP_FREED char *path = tp_place_join(s->folder, name);
        tp_flat_row_lines_init(&f->lines, path);
        f->lines.row.unwraps = f->lines.row.is_flat = true;
        f->name = tp_strdup(name);
        f->step = step;
        f->prefix = prefix;
    }
    if (s->n_files > before)
        qsort(s->files + before, s->n_files - before, sizeof *s->files, by_step);
    return TP_OK;
}

typedef struct {
    tp_metrics *m;
    const samples *file;
} seen;

static void see_sample(void *user, tp_flat_row_lines *l)
{
    const seen *x = user;
    TP_OWN(tp_buf) tag = {0};
    if (!tp_recorded_next(x->m))
        return;
    for (size_t i = 0; i < l->row.n; i++) {
        const tp_flat_row_member *v = &l->row.members[i];
        tp_slice name = tp_flat_row_tag(&l->row, v);
        if (!v->is_number || tp_slice_is(name, "idx"))
            continue;
        tp_buf_clear(&tag);
        tp_buf_adds(&tag, x->file->prefix);
        tp_buf_add(&tag, name.data, name.len);
        tp_slice full = {tag.data, tag.len};
        tp_recorded_put(x->m, full, x->file->step, NAN, v->value, 0);
        x->m->series[x->m->last_series].is_sampled = true;
    }
}

static tp_status read_run(tp_metrics *m, bool *ret_again, tp_error *err)
{
    state *s = m->state;
    for (size_t i = 0; i < s->n_files; i++)
        *ret_again |= tp_tail_was_replaced(&s->files[i].lines.tail);
    if (s->has_events && !*ret_again)
        TP_TRY(with_events(m, tp_run_reader_tensorboard.read, ret_again, err));
    if (*ret_again) {
        forget_samples(s);
        if (s->has_events) {
            m->state = s->events;
            tp_run_reader_tensorboard.close(m);
            TP_TRY(open_events(m, s, err));
        }
        return TP_OK;
    }
    TP_TRY(look_for_samples(s, err));
    for (size_t i = 0; i < s->n_files; i++) {
        seen x = {m, &s->files[i]};
        TP_TRY(tp_flat_row_lines_read(&s->files[i].lines, see_sample, &x, err));
    }
    return TP_OK;
}

static void say(tp_metrics *m)
{
    state *s = m->state;
    if (s->has_events) {
        m->state = s->events;
        tp_run_reader_tensorboard.say(m);
        m->state = s;
    }
    for (size_t i = 0; i < s->n_files; i++)
        tp_flat_row_lines_say(&s->files[i].lines, &m->notes);
}

const tp_run_reader tp_run_reader_nemo_rl = {
    .name = "nemo_rl",
    .about = "NeMo RL's logger folder",
    .is_here = is_here,
    .open = open_run,
    .read = read_run,
    .say = say,
    .close = close_run,
    .has_restarts = true,
};
