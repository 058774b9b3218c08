/* temper_run.c - Temper's own run folder: metrics.jsonl with its attempts, config.yaml, and who
 * worked on it by run.json. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/vec.h"
#include "instrument/ingest/runs/lines.h"
#include "instrument/ingest/runs/reader.h"
#include "text/yaml/yaml.h"

typedef struct {
    tp_flat_row_lines lines;
    char *folder; /* NULL: a file alone */
    bool has_settings;
    tp_string_table axes;
} state;

static const char metrics_name[] = "metrics.jsonl";

/* {"v":1,...,"axis":"train","m":{...}} */
static bool is_own_line(const tp_run_place *place)
{
    return place->n_head > 5 && memcmp(place->head, "{\"v\":", 5) == 0 &&
           memmem(place->head, place->n_head, "\"axis\":", 7) &&
           memmem(place->head, place->n_head, "\"m\":{", 5);
}

static bool is_here(const tp_run_place *place)
{
    TP_CLEANUP(tp_place_release) tp_run_place file = {0};
    if (!place->is_dir)
        return is_own_line(place);
    if (!tp_place_has_file(place, metrics_name))
        return false;
    if (tp_place_has_file(place, "run.json"))
        return true;
    TP_FREED char *path = tp_place_join(place->path, metrics_name);
    bool is_own = false;
    if (tp_place_look(&file, path, NULL) == TP_OK)
        is_own = is_own_line(&file);
    return is_own;
}

static tp_status open_run(tp_metrics *m, const tp_run_place *place, tp_error *err)
{
    (void)err;
    state *s = tp_vec_new(1, sizeof *s);
    char *path = place->is_dir ? tp_place_join(place->path, metrics_name) : tp_strdup(place->path);
    tp_flat_row_lines_init(&s->lines, path);
    free(path);
    tp_string_table_init(&s->axes);
    s->folder = place->is_dir ? tp_strdup(place->path) : NULL;
    m->state = s;
    return TP_OK;
}

static void close_run(tp_metrics *m)
{
    state *s = m->state;
    tp_flat_row_lines_release(&s->lines);
    tp_string_table_release(&s->axes);
    free(s->folder);
    free(s);
}

/* ---- the configuration ---- */

static void add_settings(tp_metrics *m, const tp_json *v, tp_buf *key)
{
    size_t len = key->len;
    for (const tp_json *c = v->child; c; c = c->next) {
        static const char *const words[] = {"null", "false", "true"};
        key->len = len;
        if (len)
            tp_buf_addc(key, '.');
        tp_buf_add(key, c->key.data, c->key.len);
        if (c->type == TP_JSON_OBJECT) {
            add_settings(m, c, key);
        } else if (c->type == TP_JSON_ARRAY) {
            TP_OWN(tp_buf) text = {0};
            tp_json_text(c, &text);
            tp_recorded_setting_add(m, (tp_slice){key->data, key->len},
                                    (tp_slice){text.data, text.len});
        } else {
            tp_slice value = c->type <= TP_JSON_TRUE ? tp_slice_of(words[c->type]) : c->text;
            tp_recorded_setting_add(m, (tp_slice){key->data, key->len}, value);
        }
    }
    key->len = len;
}

static void read_config(tp_metrics *m, const char *folder)
{
    TP_OWN(tp_buf) text = {0}, key = {0};
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root = NULL;
    tp_error why = {0};
    TP_FREED char *path = tp_place_join(folder, "config.yaml");
    if (!tp_file_exists(path))
        return;
    if (tp_arena_init(&arena, 64 << 20, &why) == TP_OK &&
        tp_file_read(path, TP_YAML_MAX_BYTES, &text, &why) == TP_OK &&
        tp_yaml_parse(&arena, path, tp_buf_str(&text), text.len, &root, &why) == TP_OK &&
        root->type == TP_JSON_OBJECT)
        add_settings(m, root, &key);
    else if (why.message[0])
        tp_notes_add(&m->notes, TP_NOTE_WARNING, "the configuration could not be read: %s",
                     why.message);
}

/* How many processes the last attempt had, and the threads of each: no key says it. */
static void read_workers(tp_metrics *m, const char *folder)
{
    enum { MOST = 16 << 20 };
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    TP_FREED char *path = tp_place_join(folder, "run.json");
    if (!tp_file_exists(path) || tp_json_read(&arena, path, MOST, NULL, &root, NULL) != TP_OK)
        return;
    const tp_json *ranks = tp_json_get(tp_json_get(root, "distributed"), "ranks");
    const tp_json *threads = tp_json_get(tp_json_get(root, "machine"), "threads");
    tp_recorded_setting_add(m, tp_slice_of("ranks"), ranks ? ranks->text : tp_slice_of("1"));
    if (threads)
        tp_recorded_setting_add(m, tp_slice_of("threads"), threads->text);
}

/* ---- the records ---- */

static int64_t whole(const tp_flat_row *row, const char *name, int64_t otherwise)
{
    const tp_flat_row_member *x = tp_flat_row_find(row, name);
    int64_t v = x && x->is_number ? tp_flat_row_step(x->value) : TP_STEP_NONE;
    return v == TP_STEP_NONE ? otherwise : v;
}

static bool is_head(tp_slice tag)
{
    static const char *const head[] = {"v", "t", "run", "attempt", "step", "axis"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        if (tp_slice_is(tag, head[i]))
            return true;
    return false;
}

static void see_row(void *user, tp_flat_row_lines *l)
{
    tp_metrics *m = user;
    state *s = m->state;
    const tp_flat_row *row = &l->row;
    const tp_flat_row_member *wall = tp_flat_row_find(row, "t"),
                             *axis = tp_flat_row_find(row, "axis");
    int64_t step = whole(row, "step", TP_STEP_NONE), attempt = whole(row, "attempt", 1);
    double t = wall && wall->is_number ? wall->value : NAN;
    tp_slice name = axis && axis->is_text ? tp_flat_row_text(row, axis) : (tp_slice){"", 0};
    if (!tp_recorded_next(m))
        return;
    bool is_sampled = tp_slice_is(name, "time"); /* beside the steps */
    attempt = attempt < 0 ? 0 : attempt > 1 << 23 ? 1 << 23 : attempt;
    *TP_VEC_PUSH(m->attempts, m->n_attempts, m->cap_attempts) =
        (tp_recorded_attempt){.step = step,
                              .axis = tp_string_add(&s->axes, name.data, name.len),
                              .attempt = (uint32_t)attempt,
                              .record = m->n_records};
    for (size_t i = 0; i < row->n; i++) {
        const tp_flat_row_member *x = &row->members[i];
        if (!x->is_number || is_head(tp_flat_row_tag(row, x)))
            continue;
        tp_recorded_put(m, tp_flat_row_tag(row, x), step, t, x->value,
                        (uint32_t)attempt << TP_MARK_FILE_SHIFT);
        m->series[m->last_series].is_sampled |= is_sampled;
    }
}

static tp_status read_run(tp_metrics *m, bool *ret_again, tp_error *err)
{
    state *s = m->state;
    if (tp_tail_was_replaced(&s->lines.tail)) {
        tp_flat_row_lines_restart(&s->lines);
        s->has_settings = false;
        *ret_again = true;
        return TP_OK;
    }
    if (s->folder && !s->has_settings) {
        read_config(m, s->folder);
        read_workers(m, s->folder);
        s->has_settings = true;
    }
    return tp_flat_row_lines_read(&s->lines, see_row, m, err);
}

static void say(tp_metrics *m)
{
    const state *s = m->state;
    tp_flat_row_lines_say(&s->lines, &m->notes);
}

const tp_run_reader tp_run_reader_temper = {
    .name = "temper",
    .about = "Temper's run folder",
    .is_here = is_here,
    .open = open_run,
    .read = read_run,
    .say = say,
    .close = close_run,
    .native_is_latest = true,
};
