/* tensorboard.c - event files: which belong to a run, and what their records mean.
 *
 * Nothing is decided here about restarts: points carry marks, from which views.c makes what each of
 * TensorBoard's readers shows.  A record whose data has a wrong checksum is kept apart the same
 * way; where the framing is lost, the next place where a whole record verifies is looked for. */
#include "instrument/ingest/runs/tensorboard.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/ingest/runs/event_record.h"
#include "instrument/ingest/runs/reader.h"
#include "instrument/ingest/runs/rows.h"

enum { MAX_RECORD = 256 << 20, GAP_PIECE = 64 << 10 };

static bool is_event_file(const char *name)
{
    return strstr(name, "tfevents") && !tp_str_ends(name, ".profile-empty");
}

/* ---- a record's meaning ---- */

typedef struct {
    tp_metrics *m;
    const tp_event *event;
    uint32_t marks;
} seen;

/* The kind of a tag is that of the first value that says it: simple_value and media do by being
 * what they are, a tensor by its metadata. */
static void decide_kind(const tp_event_value *v, bool *scalar, bool *other)
{
    if (*scalar || *other || (v->kind == TP_EVENT_TENSOR && !v->has_metadata) ||
        v->kind == TP_EVENT_NOTHING)
        return;
    *scalar = v->kind == TP_EVENT_SIMPLE || tp_slice_is(v->plugin, "scalars");
    *other = !*scalar;
}

static void see_settings(tp_metrics *m, const tp_event_value *v)
{
    if (tp_slice_is(v->plugin, "hparams"))
        tp_rows_hparams(m, v->content);
    else if (tp_slice_is(v->plugin, "text") && v->text.data)
        tp_rows_text_settings(m, v->tag, v->text);
}

static void see_value(void *user, const tp_event_value *v)
{
    const seen *x = user;
    tp_slice tag = v->tag.len || v->kind != TP_EVENT_TENSOR ? v->tag : v->node;
    tp_recorded_series *s = tp_recorded_series_of(x->m, tag.data, tag.len);
    const uint32_t damage = TP_MARK_BAD_DATA | TP_MARK_AFTER_BAD | TP_MARK_AFTER_GAP;
    const uint32_t purges = TP_MARK_PURGES | TP_MARK_PURGES_HIGHEST;
    uint32_t marks = x->marks;
    if (!(marks & damage))
        decide_kind(v, &s->is_scalar_undamaged, &s->is_other_undamaged);
    if (!(marks & TP_MARK_BAD_DATA)) {
        decide_kind(v, &s->is_scalar, &s->is_other);
        if (v->has_metadata)
            see_settings(x->m, v);
    }
    bool is_simple = v->kind == TP_EVENT_SIMPLE;
    if (!v->has_number || (s->is_other && s->is_other_undamaged && !is_simple)) {
        if ((marks & purges) && s->n)
            tp_recorded_add(x->m, s, x->event->step, x->event->wall, NAN,
                            marks | TP_MARK_NO_NUMBER);
        return;
    }
    s->has_simple |= is_simple;
    marks |= v->kind == TP_EVENT_TENSOR ? TP_MARK_TENSOR : 0;
    marks |= v->is_float ? 0 : TP_MARK_NOT_FLOAT;
    tp_recorded_add(x->m, s, x->event->step, x->event->wall, v->number, marks);
}

static void see_start(tp_metrics *m, tp_event_run *run, const tp_event *e, uint32_t number,
                      bool is_behind_damage)
{
    tp_recorded_start *start = TP_VEC_PUSH(m->starts, m->n_starts, m->cap_starts);
    *start = (tp_recorded_start){.record = m->n_records,
                                 .file = number,
                                 .step = e->step,
                                 .is_first = !run->has_start,
                                 .is_versioned = run->has_version,
                                 .is_behind_damage = is_behind_damage};
    /* Before a version is known the first START does not count as one. */
    run->has_start |= run->has_version && !is_behind_damage;
}

static void note_version(tp_event_run *run, tp_slice version)
{
    static const char prefix[] = "brain.Event:";
    size_t n = sizeof prefix - 1;
    char text[24] = "";
    double v;
    if (version.len > n && version.len < n + sizeof text && memcmp(version.data, prefix, n) == 0) {
        memcpy(text, version.data + n, version.len - n);
        run->has_version = tp_str_to_f64(text, &v) && v >= 2;
    }
}

/* False: the bytes are no message. */
static bool take_record(tp_metrics *m, tp_event_run *run, tp_event_file *file, uint32_t number,
                        tp_slice data, bool is_bad)
{
    tp_event e;
    if (!tp_event_parse(data, &e))
        return false;
    seen x = {m, &e, number << TP_MARK_FILE_SHIFT};
    x.marks |= is_bad ? TP_MARK_BAD_DATA : 0;
    x.marks |= file->after_bad ? TP_MARK_AFTER_BAD : 0;
    x.marks |= file->after_gap ? TP_MARK_AFTER_GAP : 0;
    if (!is_bad && !file->after_bad && !file->after_gap) {
        if (e.version.data)
            note_version(run, e.version);
        if (e.has_session_start)
            see_start(m, run, &e, number, false);
        if (!run->has_version && e.has_summary && e.step < run->latest)
            x.marks |= TP_MARK_PURGES;
        if (!run->has_version && e.has_summary && e.step < run->highest)
            x.marks |= TP_MARK_PURGES_HIGHEST;
        else if (!run->has_version)
            run->highest = e.step;
        if (e.has_summary)
            run->latest = e.step;
    } else if (e.has_session_start && !is_bad) {
        see_start(m, run, &e, number, true);
    }
    if (isnan(file->first_wall))
        file->first_wall = e.wall;
    file->last_wall = e.wall;
    return !e.has_summary || tp_event_values(data, see_value, &x);
}

/* ---- framing ---- */

static void note_bad(tp_metrics *m, tp_event_file *file, uint64_t at, const char *what)
{
    file->after_bad = true;
    if (file->n_bad++ == 0)
        file->first_bad = at;
    if (file->n_bad <= 3)
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s': the record at byte %llu %s; TensorBoard's Python readers end here",
                     file->tail.path, (unsigned long long)at, what);
}

/* A whole record that starts at `at`, both checksums right? */
static tp_status verifies(tp_tail *t, size_t at, bool *ret, tp_error *err)
{
    uint64_t length;
    bool has;
    *ret = false;
    if (!tp_event_header(t->at + at, &length) || length > MAX_RECORD)
        return TP_OK;
    size_t whole = TP_EVENT_HEADER + (size_t)length + TP_EVENT_FOOTER;
    TP_TRY(tp_tail_need(t, at + whole, &has, err));
    *ret = has && tp_event_checksum(t->at + at + TP_EVENT_HEADER, (size_t)length) ==
                      tp_event_u32(t->at + at + whole - TP_EVENT_FOOTER);
    return TP_OK;
}

/* Look on for a record from t->at + 1 on.  *ret false: none up to the end of the file, and the last
 * bytes are kept for the next time. */
static tp_status find_record(tp_tail *t, uint64_t *gap, bool *ret, tp_error *err)
{
    *ret = false;
    for (;;) {
        bool has;
        TP_TRY(tp_tail_need(t, GAP_PIECE, &has, err));
        size_t here = (size_t)(t->end - t->at), at = 0;
        if (here <= TP_EVENT_HEADER)
            return TP_OK;
        here = here < GAP_PIECE ? here : GAP_PIECE;
        for (; at + TP_EVENT_HEADER <= here && !*ret; at++)
            if (at || *gap)
                TP_TRY(verifies(t, at, ret, err));
        at -= *ret;
        *gap += at;
        tp_tail_skip(t, at);
        if (*ret || !has)
            return TP_OK;
    }
}

static tp_status cross_gap(tp_metrics *m, tp_event_file *file, bool *ret_found, tp_error *err)
{
    TP_TRY(find_record(&file->tail, &file->gap, ret_found, err));
    if (!*ret_found)
        return TP_OK;
    uint64_t end = tp_tail_offset(&file->tail);
    tp_notes_add(&m->notes, TP_NOTE_WARNING,
                 "'%s': %llu bytes from byte %llu on are no records (checksum of a length wrong); "
                 "what follows is shown by --points all and in analyses, TensorBoard gives it up",
                 file->tail.path, (unsigned long long)file->gap,
                 (unsigned long long)(end - file->gap));
    file->in_gap = false;
    file->after_gap = true;
    file->gap = 0;
    return TP_OK;
}

/* The next record.  *ret_more false: none is complete. */
static tp_status next_record(tp_metrics *m, tp_event_run *run, tp_event_file *file, uint32_t number,
                             bool *ret_more, tp_error *err)
{
    tp_tail *t = &file->tail;
    uint64_t length, at = tp_tail_offset(t);
    if (file->in_gap)
        return cross_gap(m, file, ret_more, err);
    TP_TRY(tp_tail_need(t, TP_EVENT_HEADER, ret_more, err));
    if (!*ret_more)
        return TP_OK;
    if (!tp_event_header(t->at, &length)) {
        file->in_gap = true;
        return TP_OK;
    }
    if (length > MAX_RECORD) {
        *ret_more = false;
        return TP_OK;
    }
    size_t whole = TP_EVENT_HEADER + (size_t)length + TP_EVENT_FOOTER;
    TP_TRY(tp_tail_need(t, whole, ret_more, err));
    if (!*ret_more)
        return TP_OK;
    tp_slice data = {t->at + TP_EVENT_HEADER, (size_t)length};
    bool is_bad = tp_event_checksum(data.data, data.len) != tp_event_u32(data.data + data.len);
    if (!tp_recorded_next(m)) {
        *ret_more = false;
        return TP_OK;
    }
    if (is_bad)
        note_bad(m, file, at, "has a wrong checksum");
    if (!take_record(m, run, file, number, data, is_bad) && !is_bad)
        note_bad(m, file, at, "is no event");
    file->n_records++;
    tp_tail_skip(t, whole);
    return TP_OK;
}

static tp_status event_file_read(tp_metrics *m, tp_event_run *run, tp_event_file *file,
                                 uint32_t number, tp_error *err)
{
    tp_status status = TP_OK;
    bool more = true;
    while (status == TP_OK && more)
        status = next_record(m, run, file, number, &more, err);
    tp_tail_pause(&file->tail);
    return status;
}

/* ---- the files of a run ---- */

typedef struct {
    char *folder; /* NULL: one file */
    tp_event_file *files;
    size_t n_files, cap_files, current;
    tp_event_run run;
} state;

/* What comes through a pipe has no name that tells. */
static bool begins_with_record(const tp_run_place *place)
{
    uint64_t length;
    return place->n_head >= TP_EVENT_HEADER && tp_event_header(place->head, &length);
}

static bool is_here(const tp_run_place *place)
{
    if (!place->is_dir)
        return is_event_file(place->base) || begins_with_record(place);
    for (size_t i = 0; i < place->n_entries; i++)
        if (!place->entries[i].is_dir && is_event_file(place->entries[i].name))
            return true;
    return false;
}

static void begin_run(tp_event_run *run) { *run = (tp_event_run){.latest = -1, .highest = -1}; }

static void add_file(state *s, const char *path)
{
    tp_event_file *file = TP_VEC_PUSH(s->files, s->n_files, s->cap_files);
    tp_tail_init(&file->tail, path);
    file->first_wall = file->last_wall = NAN;
}

static tp_status open_run(tp_metrics *m, const tp_run_place *place, tp_error *err)
{
    (void)err;
    state *s = tp_vec_new(1, sizeof *s);
    begin_run(&s->run);
    m->state = s;
    if (place->is_dir)
        s->folder = tp_strdup(place->path);
    else
        add_file(s, place->path);
    return TP_OK;
}

static void forget_files(state *s)
{
    for (size_t i = 0; i < s->n_files; i++)
        tp_tail_release(&s->files[i].tail);
    s->n_files = s->current = 0;
    begin_run(&s->run);
}

static void close_run(tp_metrics *m)
{
    state *s = m->state;
    forget_files(s);
    free(s->files);
    free(s->folder);
    free(s);
}

/* Files in the order of their names; one that would have come before those that were read means
 * that everything has to be read again. */
static tp_status look_for_files(state *s, bool *ret_again, tp_error *err)
{
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    size_t known = 0;
    TP_TRY(tp_place_look(&place, s->folder, err));
    for (size_t i = 0; i < place.n_entries; i++) {
        const tp_place_entry *e = &place.entries[i];
        if (e->is_dir || !is_event_file(e->name))
            continue;
        char *path = tp_place_join(s->folder, e->name);
        if (known < s->n_files)
            *ret_again |= strcmp(s->files[known].tail.path, path) != 0;
        else
            add_file(s, path);
        free(path);
        known++;
    }
    *ret_again |= known < s->n_files;
    return TP_OK;
}

static tp_status read_run(tp_metrics *m, bool *ret_again, tp_error *err)
{
    state *s = m->state;
    if (s->folder)
        TP_TRY(look_for_files(s, ret_again, err));
    for (size_t i = 0; i < s->n_files; i++)
        *ret_again |= tp_tail_was_replaced(&s->files[i].tail);
    if (*ret_again) {
        size_t n = s->n_files;
        char *single = s->folder || !n ? NULL : tp_strdup(s->files[0].tail.path);
        forget_files(s);
        if (single)
            add_file(s, single);
        free(single);
        return TP_OK;
    }
    while (s->current < s->n_files) {
        TP_TRY(event_file_read(m, &s->run, &s->files[s->current], (uint32_t)s->current, err));
        if (s->current + 1 == s->n_files)
            break;
        s->current++;
    }
    m->n_files = (uint32_t)s->n_files;
    return TP_OK;
}

/* ---- what there is to say now ---- */

static void say_ends(tp_metrics *m, const state *s)
{
    for (size_t i = 0; i < s->n_files && i <= s->current; i++) {
        const tp_event_file *f = &s->files[i];
        uint64_t at = tp_tail_offset(&f->tail);
        int64_t size = tp_file_size(f->tail.path);
        if (f->n_bad > 3)
            tp_notes_add(&m->notes, TP_NOTE_WARNING,
                         "'%s': %llu record%s with a wrong checksum in all", f->tail.path,
                         (unsigned long long)f->n_bad, tp_plural((uint64_t)f->n_bad));
        if (f->in_gap)
            tp_notes_add(&m->notes, TP_NOTE_WARNING,
                         "'%s': no record is readable from byte %llu to the end: a length's "
                         "checksum is wrong",
                         f->tail.path, (unsigned long long)(at - f->gap));
        else if (size > 0 && (uint64_t)size > at)
            tp_notes_add(&m->notes, TP_NOTE_WARNING,
                         "'%s': the last record, at byte %llu, is incomplete: cut short, or still "
                         "being written",
                         f->tail.path, (unsigned long long)at);
    }
}

static void say_overlaps(tp_metrics *m, const state *s)
{
    for (size_t i = 1; i < s->n_files; i++)
        if (s->files[i - 1].last_wall > s->files[i].first_wall) {
            tp_notes_add(&m->notes, TP_NOTE_WARNING,
                         "'%s' was still written when '%s' began: several writers at once in one "
                         "folder",
                         s->files[i - 1].tail.path, s->files[i].tail.path);
            return;
        }
}

static void say(tp_metrics *m)
{
    const state *s = m->state;
    say_ends(m, s);
    say_overlaps(m, s);
}

const tp_run_reader tp_run_reader_tensorboard = {
    .name = "tensorboard",
    .about = "TensorBoard event files",
    .is_here = is_here,
    .open = open_run,
    .read = read_run,
    .say = say,
    .close = close_run,
    .has_runs_below = true,
    .has_restarts = true,
};
