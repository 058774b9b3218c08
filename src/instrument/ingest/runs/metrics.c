/* metrics.c - tp_metrics of temper/analysis.h: a run found, opened, read on and handed out. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/order.h"
#include "base/sized.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/ingest/runs/reader.h"
#include "instrument/ingest/runs/views.h"

bool tp_points_view_named(const char *name, tp_points_view *ret)
{
    static const char *const names[] = {[TP_POINTS_NATIVE] = "native",
                                        [TP_POINTS_LATEST] = "latest",
                                        [TP_POINTS_ALL] = "all",
                                        [TP_POINTS_ACCUMULATOR] = "accumulator",
                                        [TP_POINTS_FAST] = "fast"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *ret = (tp_points_view)i;
            return true;
        }
    return false;
}

/* ---- where it is ---- */

enum { MAX_BELOW = 200, MAX_LOOKED_AT = 2000 };

typedef struct {
    char *paths[MAX_BELOW];
    int n, n_looked_at;
    bool is_cut; /* there may be more */
} below;

/* Folders that hold runs, and data bases, up to `depth` levels below; those in a run are its own.
 */
static void look_below(const tp_run_place *place, int depth, below *found)
{
    for (size_t i = 0; i < place->n_entries; i++) {
        const tp_place_entry *e = &place->entries[i];
        TP_CLEANUP(tp_place_release) tp_run_place inner = {0};
        if (!e->is_dir && !tp_str_ends(e->name, ".db"))
            continue;
        if (found->n == MAX_BELOW || ++found->n_looked_at > MAX_LOOKED_AT) {
            found->is_cut = true;
            return;
        }
        TP_FREED char *path = tp_place_join(place->path, e->name);
        if (tp_place_look(&inner, path, NULL) == TP_OK) {
            if (tp_run_reader_here(&inner))
                found->paths[found->n++] = tp_strdup(path);
            else if (depth > 1)
                look_below(&inner, depth - 1, found);
        }
    }
}

static void release_below(below *b)
{
    for (int i = 0; i < b->n; i++)
        free(b->paths[i]);
    free(b);
}

static void list_below(const below *b, size_t skip, tp_buf *out)
{
    for (int i = 0; i < b->n && i < 12; i++)
        tp_buf_addf(out, "%s%s", i ? ", " : "", b->paths[i] + skip);
    if (b->n > 12)
        tp_buf_addf(out, ", ... (%d%s)", b->n, b->is_cut ? " or more" : "");
}

/* The tables right in a folder, but for the one that is read. */
static size_t list_tables(const tp_run_place *place, const char *read, tp_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < place->n_entries; i++) {
        const tp_place_entry *e = &place->entries[i];
        bool is_table = tp_str_ends(e->name, ".csv") || tp_str_ends(e->name, ".jsonl");
        if (e->is_dir || !is_table || (read && strcmp(read, e->name) == 0))
            continue;
        if (n++ < 12)
            tp_buf_addf(out, "%s%s", n > 1 ? ", " : "", e->name);
    }
    if (n > 12)
        tp_buf_addf(out, ", ... (%zu)", n);
    return n;
}

/* The file that is read where it is its folder's only table of a kind; NULL: no other is meant. */
static char *only_table(const tp_run_reader *reader, const tp_run_place *folder)
{
    bool is_csv = reader == &tp_run_reader_csv, is_jsonl = reader == &tp_run_reader_jsonl;
    bool is_named = tp_place_has_file(folder, is_csv ? "metrics.csv" : "metrics.jsonl");
    return (is_csv || is_jsonl) && !is_named ? reader->file_of(folder) : NULL;
}

/* Tables of a folder that are not read: something else is, in it or below it. */
static void say_tables(tp_metrics *m, const tp_run_place *folder)
{
    TP_OWN(tp_buf) names = {0};
    bool is_below = strcmp(folder->path, m->path) != 0;
    TP_FREED char *file = folder->is_dir && !is_below ? only_table(m->reader, folder) : NULL;
    if (!file && !is_below)
        return;
    if (list_tables(folder, file ? tp_str_after(file, '/') : NULL, &names))
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s': only %s is read; name one of the other tables to read it: %s",
                     folder->path, file ? tp_str_after(file, '/') : m->path, names.data);
}

static tp_status fail_unknown(const tp_run_place *place, tp_error *err)
{
    TP_OWN(tp_buf) names = {0}, tables = {0};
    if (!place->is_dir && place->n_head > 1 && memcmp(place->head, "\x1f\x8b", 2) == 0)
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' is compressed (gzip), and runs are read as they are: gunzip -k it "
                       "('temper trace' reads traces as they are)",
                       place->path);
    if (tp_place_is_trace(place))
        return tp_fail(err, TP_ERR_FORMAT, "'%s' is a trace, and no run: 'temper trace' reads it",
                       place->path);
    if (place->is_dir ? !place->n_entries : !place->n_head)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' is empty: no run wrote anything there yet",
                       place->path);
    if (place->is_dir && list_tables(place, NULL, &tables) > 1)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' holds several tables; name one of them: %s",
                       place->path, tables.data);
    for (size_t i = 0; tp_run_readers[i]; i++)
        tp_buf_addf(&names, "%s%s", i ? "; " : "", tp_run_readers[i]->about);
    return tp_fail(err, TP_ERR_FORMAT, "'%s' holds no run that is known; known are: %s",
                   place->path, names.data);
}

/* The one run below a folder that is none itself. */
static tp_status find_below(const tp_run_place *place, tp_run_place *ret, tp_error *err)
{
    below *b = tp_vec_new(1, sizeof *b);
    TP_OWN(tp_buf) names = {0};
    tp_status status;
    look_below(place, 4, b);
    if (b->n == 0) {
        status = fail_unknown(place, err);
    } else if (b->n == 1 && !b->is_cut) {
        status = tp_place_look(ret, b->paths[0], err);
    } else {
        list_below(b, strlen(place->path) + 1, &names);
        status = tp_fail(err, TP_ERR_CONFIG, "'%s' holds %d%s runs; name one of them: %s",
                         place->path, b->n, b->is_cut ? " or more" : "", names.data);
    }
    release_below(b);
    return status;
}

/* ---- opening and reading ---- */

static void say_below(tp_metrics *m)
{
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    TP_OWN(tp_buf) names = {0};
    if (tp_place_look(&place, m->path, NULL) != TP_OK)
        return;
    below *b = tp_vec_new(1, sizeof *b);
    if (place.is_dir)
        look_below(&place, 2, b);
    if (b->n) {
        list_below(b, strlen(m->path) + 1, &names);
        tp_notes_add(&m->notes, TP_NOTE_INFO, "further runs below '%s': %s", m->path, names.data);
    }
    release_below(b);
}

static void list_shown(tp_metrics *m)
{
    m->n_shown = 0;
    for (size_t i = 0; i < m->n_series; i++)
        if (m->series[i].n &&
            (m->series[i].is_scalar || m->series[i].is_scalar_undamaged || m->series[i].has_simple))
            *TP_VEC_PUSH(m->shown, m->n_shown, m->cap_shown) = (uint32_t)i;
}

static void drop_notes(tp_metrics *m, size_t n)
{
    while (m->notes.n > n)
        free(m->notes.list[--m->notes.n].text);
}

TP_ORDER(by_axis_and_step, tp_recorded_attempt,
         TP_COMPARE(x->axis, y->axis)
                 ?: TP_COMPARE(x->step, y->step)
                 ?: TP_COMPARE(x->attempt, y->attempt))

/* Do the attempts that were not judged yet write nothing again?  So it is while a run goes on. */
static bool goes_on_in_order(tp_metrics *m)
{
    bool is_in_order = true;
    for (; m->n_judged < m->n_attempts; m->n_judged++) {
        const tp_recorded_attempt *a = &m->attempts[m->n_judged];
        while (m->n_axes <= a->axis)
            TP_VEC_PUSH(m->newest, m->n_axes, m->cap_axes)->step = TP_STEP_NONE;
        tp_recorded_attempt *last = &m->newest[a->axis];
        is_in_order &=
            a->step > last->step || (a->step == last->step && a->attempt == last->attempt);
        if (a->step >= last->step)
            *last = *a;
    }
    return is_in_order;
}

/* For each step of an axis the records of the highest attempt count. */
static void supersede(tp_metrics *m)
{
    size_t n = m->n_attempts, known = m->cap_superseded;
    bool goes_on = goes_on_in_order(m);
    if (goes_on && !m->n_superseded)
        return;
    m->superseded = tp_vec_room(m->superseded, &m->cap_superseded, (size_t)m->n_records + 1, 1);
    if (goes_on) { /* what is new counts */
        memset(m->superseded + known, 0, m->cap_superseded - known);
        return;
    }
    memset(m->superseded, 0, m->cap_superseded);
    m->n_superseded = 0;
    TP_FREED tp_recorded_attempt *at = tp_vec_new(n, sizeof *at);
    memcpy(at, m->attempts, n * sizeof *at);
    qsort(at, n, sizeof *at, by_axis_and_step);
    for (size_t i = n - 1; i-- > 0;) {
        const tp_recorded_attempt *later = &at[i + 1];
        if (at[i].axis == later->axis && at[i].step == later->step) {
            m->superseded[at[i].record] = at[i].attempt < later->attempt;
            m->n_superseded += at[i].attempt < later->attempt;
            at[i].attempt = later->attempt;
        }
    }
}

static void say_superseded(tp_metrics *m)
{
    if (m->n_superseded)
        tp_notes_add(&m->notes, TP_NOTE_INFO,
                     "%zu record%s of earlier attempts left out, written again by a later one; "
                     "--points all shows them",
                     m->n_superseded, tp_plural((uint64_t)m->n_superseded));
}

/* *ret_again: from its beginning, everything else is forgotten. */
static tp_status read_on(tp_metrics *m, bool *ret_again, tp_error *err)
{
    *ret_again = false;
    drop_notes(m, m->n_lasting_notes);
    TP_TRY(m->reader->read(m, ret_again, err));
    if (*ret_again) {
        bool unused = false;
        tp_recorded_clear(m);
        TP_TRY(m->reader->read(m, &unused, err));
    }
    list_shown(m);
    m->n_lasting_notes = m->notes.n;
    supersede(m);
    say_superseded(m);
    if (m->reader->say)
        m->reader->say(m);
    return TP_OK;
}

static char *name_of(const char *path, const char *run)
{
    tp_buf name = {0};
    tp_buf_adds(&name, path);
    if (run)
        tp_buf_addf(&name, "#%s", run);
    return name.data;
}

/* `folder` is where the search for the place began: itself, or above it. */
static tp_status open_place(const tp_run_place *place, const tp_run_place *folder, const char *run,
                            bool follows, tp_metrics **ret, tp_error *err)
{
    const tp_run_reader *reader = tp_run_reader_here(place);
    if (!reader)
        return fail_unknown(place, err);
    if (run && !reader->has_names)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' is one run, without a name: leave out '%s'",
                       place->path, run);
    tp_metrics *m = tp_vec_new(1, sizeof *m);
    tp_string_table_init(&m->tags);
    m->reader = reader;
    m->path = tp_strdup(place->path);
    m->run = tp_strdup(run);
    m->is_followed = follows;
    m->name = name_of(place->path, run);
    tp_status status = reader->open(m, place, err);
    if (status == TP_OK) {
        if (reader->has_runs_below)
            say_below(m);
        say_tables(m, folder);
        m->n_lasting_notes = m->notes.n;
        bool unused;
        status = read_on(m, &unused, err);
    }
    TP_HAND_OVER(status, ret, m, tp_metrics_close(m));
}

/* "project.db#name", unless a file is called so. */
static char *split_run(const char *path, const char **ret_run)
{
    char *copy = tp_strdup(path), *hash;
    *ret_run = NULL;
    if (!tp_file_exists(path) && !tp_dir_exists(path) && (hash = strchr(copy, '#'))) {
        for (; hash; hash = strchr(hash + 1, '#')) {
            *hash = 0;
            if (tp_file_exists(copy) || tp_dir_exists(copy)) {
                *ret_run = hash + 1;
                return copy;
            }
            *hash = '#';
        }
    }
    return copy;
}

/* Readers know what a pipe brought under a name in /proc; people know it by another. */
static void call_by_name(char *text, size_t room, const tp_piped *piped)
{
    size_t n = strlen(piped->path);
    bool is_input = strcmp(piped->name, "standard input") == 0;
    for (char *here = text; (here = strstr(here, piped->path));) {
        const char *name = is_input && here[n] == '#' ? "/dev/stdin" : piped->name; /* as typed */
        size_t length = strlen(name);
        if (strlen(text) - n + length >= room)
            return;
        memmove(here + length, here + n, strlen(here + n) + 1);
        memcpy(here, name, length);
        here += length;
    }
}

static void call_notes_by_name(tp_metrics *m)
{
    for (size_t i = 0; i < m->notes.n && *m->piped.path; i++) {
        size_t room = 4 * (strlen(m->notes.list[i].text) + strlen(m->piped.name)) + 1;
        char *text = tp_grow(m->notes.list[i].text, room, 1);
        call_by_name(text, room, &m->piped);
        m->notes.list[i].text = text;
    }
}

static tp_status open_piped(const char *path, const char *run, tp_metrics **ret, tp_error *err)
{
    tp_piped piped;
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    TP_TRY(tp_piped_keep(path, &piped, err));
    tp_status status = tp_place_look(&place, piped.path, err);
    if (status == TP_OK)
        status = open_place(&place, &place, run, false, ret, err);
    if (status != TP_OK) {
        if (err)
            call_by_name(err->message, sizeof err->message, &piped);
        tp_piped_release(&piped);
        return status;
    }
    tp_metrics *m = *ret;
    free(m->path);
    free(m->name);
    m->path = tp_strdup(piped.name);
    m->name = name_of(m->path, run);
    piped.name = m->path;
    m->piped = piped;
    call_notes_by_name(m);
    return TP_OK;
}

tp_status tp_metrics_open(const char *path, const tp_metrics_options *options, tp_metrics **ret,
                          tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    TP_CLEANUP(tp_place_release) tp_run_place inner = {0};
    tp_metrics_options o;
    const char *run;
    TP_NEED(path && ret, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_metrics_options", err));
    if (tp_piped_is(path))
        return open_piped(path, o.run, ret, err);
    TP_FREED char *where = split_run(path, &run);
    if (o.run)
        run = o.run;
    if (tp_piped_is(where))
        return open_piped(where, run, ret, err);
    TP_TRY(tp_place_look(&place, where, err));
    if (!place.is_dir || tp_run_reader_here(&place))
        return open_place(&place, &place, run, o.follows, ret, err);
    TP_TRY(find_below(&place, &inner, err));
    return open_place(&inner, &place, run, o.follows, ret, err);
}

tp_status tp_metrics_refresh(tp_metrics *m, bool *ret_changed, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(m, err);
    uint32_t before = m->n_records;
    bool again;
    TP_TRY(read_on(m, &again, err));
    call_notes_by_name(m);
    if (ret_changed)
        *ret_changed = again || m->n_records != before;
    return TP_OK;
}

void tp_metrics_close(tp_metrics *m)
{
    if (!m)
        return;
    if (m->state)
        m->reader->close(m);
    tp_recorded_clear(m);
    tp_string_table_release(&m->tags);
    tp_piped_release(&m->piped);
    free(m->path);
    free(m->name);
    free(m->run);
    free(m);
}

/* ---- handing out ---- */

const char *tp_metrics_path(const tp_metrics *m) { return m->path; }
const char *tp_metrics_name(const tp_metrics *m) { return m->name; }
const char *tp_metrics_format(const tp_metrics *m) { return m->reader->name; }
const char *tp_metrics_about(const tp_metrics *m) { return m->reader->about; }
size_t tp_metrics_count(const tp_metrics *m) { return m->n_shown; }

const char *tp_metrics_tag(const tp_metrics *m, size_t index)
{
    return index < m->n_shown ? tp_string_get(&m->tags, m->shown[index]) : NULL;
}

size_t tp_metrics_find(const tp_metrics *m, const char *tag)
{
    uint32_t id;
    if (!tp_string_find(&m->tags, tag, strlen(tag), &id))
        return SIZE_MAX;
    for (size_t i = 0; i < m->n_shown; i++)
        if (m->shown[i] == id)
            return i;
    return SIZE_MAX;
}

static tp_metric_point shown_point(const tp_recorded_point *p)
{
    return (tp_metric_point){p->step, p->wall, p->value};
}

/* Into m->scratch; *ret_eligible: what the view saw, before restarts voided any. */
size_t tp_view_select(tp_metrics *m, size_t index, tp_points_view view, size_t *ret_eligible)
{
    const tp_recorded_series *s = &m->series[m->shown[index]];
    TP_FREED uint8_t *keep = tp_vec_new(s->n, 1);
    size_t n = tp_view_keep(m, s, view, keep, ret_eligible), at = 0;
    m->scratch = tp_vec_room(m->scratch, &m->cap_scratch, n, sizeof *m->scratch);
    for (size_t i = 0; i < s->n; i++)
        if (keep[i])
            m->scratch[at++] = shown_point(&s->points[i]);
    return n;
}

size_t tp_view_ends(tp_metrics *m, size_t index, tp_metric_point *ret_first,
                    tp_metric_point *ret_last)
{
    const tp_recorded_series *s = &m->series[m->shown[index]];
    size_t eligible, n = s->n;
    if (tp_view_is_plain(m, s)) {
        *ret_first = shown_point(&s->points[0]);
        *ret_last = shown_point(&s->points[n - 1]);
        return n;
    }
    n = tp_view_select(m, index, TP_POINTS_LATEST, &eligible);
    if (n) {
        *ret_first = m->scratch[0];
        *ret_last = m->scratch[n - 1];
    }
    return n;
}

size_t tp_metrics_points(tp_metrics *m, size_t index, tp_points_view view,
                         const tp_metric_point **ret)
{
    size_t eligible, n = index < m->n_shown ? tp_view_select(m, index, view, &eligible) : 0;
    *ret = m->scratch;
    return n;
}

size_t tp_metrics_notes(const tp_metrics *m) { return m->notes.n; }

const char *tp_metrics_note(const tp_metrics *m, size_t index, bool *ret_is_warning)
{
    if (index >= m->notes.n)
        return NULL;
    if (ret_is_warning)
        *ret_is_warning = m->notes.list[index].level == TP_NOTE_WARNING;
    return m->notes.list[index].text;
}

size_t tp_metrics_settings(const tp_metrics *m) { return m->n_settings; }

const char *tp_metrics_setting(const tp_metrics *m, size_t index, const char **ret_value)
{
    if (index >= m->n_settings)
        return NULL;
    *ret_value = m->settings[index].value;
    return m->settings[index].key;
}

/* ---- curves ---- */

typedef struct {
    tp_metric_point point;
    uint32_t record;
    size_t order;
} curve_point;

TP_ORDER(by_step, curve_point,
         TP_COMPARE(x->point.step, y->point.step) ?: TP_COMPARE(x->order, y->order))

/* The training's step, where the same record has it under a name of its own. */
static void place_by_step_tag(const tp_metrics *m, curve_point *p, size_t n)
{
    uint32_t id;
    if (!m->step_tag || !tp_string_find(&m->tags, m->step_tag, strlen(m->step_tag), &id))
        return;
    const tp_recorded_series *steps = &m->series[id];
    for (size_t i = 0, at = 0; i < n; i++) {
        while (at < steps->n && steps->points[at].record < p[i].record)
            at++;
        if (at < steps->n && steps->points[at].record == p[i].record) {
            double v = steps->points[at].value;
            p[i].point.step = v == floor(v) && fabs(v) < 9e18 ? (int64_t)v : p[i].point.step;
        }
    }
}

/* Samples of one step become their mean, corrections the last of them. */
static size_t one_per_step(tp_metrics *m, const curve_point *p, size_t n, bool is_sampled)
{
    size_t out = 0;
    for (size_t i = 0, end; i < n; i = end) {
        double sum = 0;
        for (end = i; end < n && p[end].point.step == p[i].point.step; end++)
            sum += p[end].point.value;
        m->scratch[out] = p[end - 1].point;
        if (is_sampled)
            m->scratch[out].value = sum / (double)(end - i);
        out++;
    }
    return out;
}

size_t tp_metrics_curve(tp_metrics *m, size_t index, const tp_metric_point **ret)
{
    size_t eligible, n = 0;
    if (index >= m->n_shown)
        return 0;
    const tp_recorded_series *s = &m->series[m->shown[index]];
    if (!m->step_tag && tp_view_is_plain(m, s))
        return tp_metrics_points(m, index, TP_POINTS_LATEST, ret);
    TP_FREED uint8_t *keep = tp_vec_new(s->n, 1);
    TP_FREED curve_point *p = tp_vec_new(s->n, sizeof *p);
    tp_view_keep(m, s, TP_POINTS_LATEST, keep, &eligible);
    for (size_t i = 0; i < s->n; i++) {
        const tp_recorded_point *x = &s->points[i];
        if (keep[i]) {
            int64_t step = x->step == TP_STEP_NONE ? (int64_t)n : x->step;
            p[n] = (curve_point){{step, x->wall, x->value}, x->record, n};
            n++;
        }
    }
    place_by_step_tag(m, p, n);
    qsort(p, n, sizeof *p, by_step);
    m->scratch = tp_vec_room(m->scratch, &m->cap_scratch, n, sizeof *m->scratch);
    n = one_per_step(m, p, n, s->is_sampled);
    *ret = m->scratch;
    return n;
}

size_t tp_metrics_curve_end(tp_metrics *m, size_t index, size_t *ret_finite,
                            tp_metric_point *ret_last)
{
    const tp_metric_point *p;
    *ret_finite = 0;
    if (index >= m->n_shown)
        return 0;
    const tp_recorded_series *s = &m->series[m->shown[index]];
    if (s->n && !m->step_tag && tp_view_is_plain(m, s)) {
        *ret_finite = s->n - s->n_odd;
        *ret_last = shown_point(&s->points[s->n - 1]);
        return s->n;
    }
    size_t n = tp_metrics_curve(m, index, &p), last = n - 1;
    for (size_t i = 0; i < n; i++) {
        *ret_finite += isfinite(p[i].value) ? 1 : 0;
        if (p[i].wall_time > p[last].wall_time) /* of an attempt that began anew at a checkpoint */
            last = i;
    }
    if (n)
        *ret_last = p[last];
    return n;
}

/* ---- tags that are asked for ---- */

bool tp_metrics_wanted(const char *tag, const char *const *tags, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(tags[i], tag) == 0 || fnmatch(tags[i], tag, 0) == 0)
            return true;
    return n == 0;
}

static tp_status fail_no_tag(const tp_metrics *m, const char *tag, tp_error *err)
{
    TP_OWN(tp_buf) names = {0};
    for (size_t i = 0; i < m->n_shown && names.len < 1500; i++) {
        const char *name = tp_metrics_tag(m, i);
        size_t n = tp_utf8_valid_len(name, strnlen(name, 100));
        tp_buf_addf(&names, "%s%.*s%s", i ? ", " : "", (int)n, name, name[n] ? "..." : "");
    }
    return tp_fail(err, TP_ERR_CONFIG, "'%s' has no metric '%.200s'; it has: %s", m->path, tag,
                   m->n_shown ? names.data : "none");
}

tp_status tp_metrics_check_tags(const tp_metrics *m, const char *const *tags, size_t n_tags,
                                tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(m && (tags || !n_tags), err);
    for (size_t i = 0; i < n_tags; i++) {
        bool is_there = false;
        for (size_t k = 0; k < m->n_shown && !is_there; k++)
            is_there = tp_metrics_wanted(tp_metrics_tag(m, k), &tags[i], 1);
        if (!is_there)
            return fail_no_tag(m, tags[i], err);
    }
    return TP_OK;
}
