/* inspect.c - is what a run left behind sound?  For `temper doctor runs/<name>`. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"
#include "engine/data/lines.h"
#include "engine/train/algorithm.h"
#include "engine/train/checkpoint.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer.h"

enum { MAX_RUN_JSON = 16 << 20, LINE_ARENA = 256 << 20 };

typedef struct {
    const char *dir;
    void (*report)(void *user, const tp_train_finding *finding);
    void *user;
    char state[64];                         /* of run.json */
    int64_t step, last_checkpoint, attempt; /* of run.json; -1: none */
} inspection;

static void tell(inspection *in, const char *what, tp_found found, const char *fmt, ...)
    TP_PRINTF(4, 5);
static void tell(inspection *in, const char *what, tp_found found, const char *fmt, ...)
{
    char text[1400];
    TP_FORMAT(text, fmt);
    in->report(in->user, &(tp_train_finding){what, found, text});
}

/* ---- run.json ---- */

static tp_status take_facts(inspection *in, const char *path, const tp_json *root, tp_error *err)
{
    const char *state = tp_json_str(tp_json_get(root, "state"));
    const tp_json *result = tp_json_get(root, "result");
    if (!state || !tp_json_i64(tp_json_get(root, "step"), &in->step) ||
        !tp_json_i64(tp_json_get(root, "attempt"), &in->attempt))
        return tp_fail(err, TP_ERR_FORMAT, "'%s' lacks state, step or attempt", path);
    snprintf(in->state, sizeof in->state, "%s", state);
    if (!tp_json_i64(tp_json_get(result, "last_checkpoint_step"), &in->last_checkpoint))
        in->last_checkpoint = -1;
    return TP_OK;
}

/* Whoever writes a run holds its lock. */
static bool is_written(const char *dir)
{
    int fd = open(tp_path_of("%s/.lock", dir).text, O_RDONLY | O_CLOEXEC);
    bool is_held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
    if (fd >= 0)
        close(fd);
    return is_held;
}

static void check_run_json(inspection *in)
{
    char path[4096];
    tp_error err = {0};
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    snprintf(path, sizeof path, "%s/run.json", in->dir);
    tp_status status = tp_json_read(&arena, path, MAX_RUN_JSON, NULL, &root, &err);
    if (status == TP_OK)
        status = take_facts(in, path, root, &err);
    if (status != TP_OK)
        tell(in, "run.json", TP_FOUND_FAILED, "%s", err.message);
    else if (strcmp(in->state, "running") == 0 && !is_written(in->dir))
        tell(in, "run.json", TP_FOUND_OK,
             "killed while it ran, last written at step %" PRId64 "; --resume goes on", in->step);
    else
        tell(in, "run.json", TP_FOUND_OK, "%s at step %" PRId64, in->state, in->step);
}

/* ---- config.yaml ---- */

static void check_config(inspection *in)
{
    char path[4096];
    tp_error err = {0};
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    snprintf(path, sizeof path, "%s/config.yaml", in->dir);
    if (tp_recipe_open(path, NULL, 0, &recipe, &err) != TP_OK) {
        tell(in, "config.yaml", TP_FOUND_FAILED, "%s", err.message);
        return;
    }
    tell(in, "config.yaml", TP_FOUND_OK, "loads as a configuration of %s",
         recipe.options.algorithm->name);
}

/* ---- metrics.jsonl ---- */

typedef struct {
    uint64_t n, broken;
    int64_t last_step;
    int64_t whole_to, gap; /* steps of training without a gap, from the first; behind one, or 0 */
    char first_broken[600];
} metrics;

static void read_line(const char *path, tp_slice line, uint64_t number, tp_arena *arena, metrics *m)
{
    tp_json_options options = TP_JSON_TOLERANT;
    const tp_json *root;
    int64_t step = 0;
    tp_error err = {0};
    tp_arena_rewind(arena, 0);
    bool ok = tp_json_parse(arena, path, line.data, line.len, &options, &root, &err) == TP_OK &&
              tp_json_i64(tp_json_get(root, "step"), &step) && tp_json_get(root, "m");
    const char *axis = ok ? tp_json_str(tp_json_get(root, "axis")) : NULL;
    if (axis && strcmp(axis, "train") == 0) { /* attempts may begin again before the last */
        if (step > m->whole_to + 1 && !m->gap)
            m->gap = m->whole_to + 1;
        m->whole_to = step > m->whole_to ? step : m->whole_to;
    }
    m->n += ok;
    m->broken += !ok;
    if (ok && step > m->last_step)
        m->last_step = step;
    if (!ok && m->broken == 1)
        snprintf(m->first_broken, sizeof m->first_broken, "line %" PRIu64 " is %s", number,
                 err.message[0] ? "no JSON" : "without a step or metrics");
}

static tp_status read_metrics(const char *path, metrics *m, tp_error *err)
{
    TP_CLEANUP(tp_lines_close) tp_lines lines = {0};
    TP_OWN(tp_arena) arena = {0};
    TP_TRY(tp_arena_init(&arena, LINE_ARENA, err));
    tp_status status = tp_lines_open(&lines, path, err);
    while (status == TP_OK && !lines.at_end) {
        status = tp_lines_next(&lines, err);
        const char *at = lines.buffer, *end = lines.buffer + lines.wave;
        for (uint64_t number = lines.line; status == TP_OK && at < end; number++) {
            tp_slice line = tp_line_take(&at, end);
            if (!tp_line_is_blank(line))
                read_line(path, line, number, &arena, m);
        }
    }
    return status;
}

/* A crash leaves half a line at most per attempt, which is no damage; more of them are, and so are
 * steps that run.json has and the metrics lack, or that those around them have. */
static void check_metrics(inspection *in)
{
    tp_error err = {0};
    metrics m = {0};
    if (read_metrics(tp_path_of("%s/metrics.jsonl", in->dir).text, &m, &err) != TP_OK) {
        tell(in, "metrics.jsonl", TP_FOUND_FAILED, "%s", err.message);
        return;
    }
    bool is_damaged = (int64_t)m.broken > in->attempt;
    bool lacks = m.last_step < in->step;
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text, "%" PRIu64 " records up to step %" PRId64, m.n, m.last_step);
    if (m.broken)
        tp_buf_addf(&text, ", %s: %s", is_damaged ? "damaged" : "cut short", m.first_broken);
    if (is_damaged)
        tp_buf_addf(&text, ", the first of %" PRIu64, m.broken);
    if (lacks)
        tp_buf_adds(&text, "; run.json is further: records are lost");
    else if (m.gap)
        tp_buf_addf(&text, "; that of step %" PRId64 " is lost", m.gap);
    tell(in, "metrics.jsonl", lacks || is_damaged || m.gap ? TP_FOUND_FAILED : TP_FOUND_OK, "%s",
         text.data);
}

/* ---- checkpoints ---- */

/* Where whoever takes the run for a model, or goes on with it, looks for them. */
static void find_checkpoints(const inspection *in, const tp_run_record *record, char ret[4096])
{
    TP_OWN(tp_buf) newest = {0};
    size_t n = 0;
    snprintf(ret, 4096, "%s/checkpoints", in->dir);
    if (!record->checkpoint_dir[0])
        return;
    const char *id = record->id[0] ? record->id : NULL;
    if (tp_dir_exists(ret) && strcmp(ret, record->checkpoint_dir) != 0 &&
        (tp_checkpoint_find(record->checkpoint_dir, id, &newest, NULL, NULL) != TP_OK ||
         !newest.len) &&
        tp_checkpoint_find(ret, id, &newest, &n, NULL) == TP_OK && n)
        return;
    snprintf(ret, 4096, "%s", record->checkpoint_dir);
}

static tp_status check_one(const tp_run_record *record, const char *path, int64_t step,
                           int64_t *ret_step, tp_error *err)
{
    tp_train_state state;
    TP_OWN(tp_buf) folder = {0};
    TP_TRY(tp_checkpoint_verify(path, err));
    TP_TRY(tp_checkpoint_read_state(path, &state, err));
    if (state.step != step)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' says that it is of step %" PRId64, path,
                       state.step);
    if (record->id[0] && strcmp(state.run_id, record->id) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' is of another run ('%s'), and --resume refuses a folder with it; move "
                       "it away",
                       path, state.run_name);
    tp_model *model = NULL;
    tp_status status = tp_checkpoint_find_model(path, &folder, err);
    if (status == TP_OK)
        status = tp_model_open(tp_buf_str(&folder), &model, err);
    tp_model_free(model);
    *ret_step = step;
    return status;
}

static void check_checkpoints(inspection *in)
{
    char root[4096];
    TP_OWN(tp_run_record) record = {0};
    (void)!tp_run_record_read(in->dir, &record, NULL); /* check_run_json() says why not */
    find_checkpoints(in, &record, root);
    int64_t *steps = NULL, newest = -1, found = -1;
    size_t n = 0, n_sound = 0;
    tp_error err = {0};
    if (tp_checkpoint_list(root, &steps, &n, &err) != TP_OK)
        tell(in, "checkpoints", TP_FOUND_FAILED, "%s", err.message);
    for (size_t i = 0; i < n; i++) {
        if (check_one(&record, tp_path_of("%s/step-%" PRId64, root, steps[i]).text, steps[i],
                      &found, &err) != TP_OK) {
            tell(in, "checkpoint", TP_FOUND_FAILED, "%s", err.message);
            continue;
        }
        n_sound++;
        newest = newest < 0 ? found : newest;
    }
    if (n_sound)
        tell(in, "checkpoints", TP_FOUND_OK,
             "%zu sound, every file has its checksum; the newest is of step %" PRId64 " in '%s'",
             n_sound, newest, root);
    else if (n == 0 && in->last_checkpoint < 0)
        tell(in, "checkpoints", TP_FOUND_OK, "none was saved");
    if (in->last_checkpoint > newest)
        tell(in, "checkpoints", TP_FOUND_FAILED,
             "run.json says that step %" PRId64 " was saved; there is no sound checkpoint of it in "
             "'%s'",
             in->last_checkpoint, root);
    free(steps);
}

void tp_run_inspect(const char *dir, void (*report)(void *user, const tp_train_finding *finding),
                    void *user)
{
    inspection in = {.dir = dir, .report = report, .user = user, .last_checkpoint = -1};
    check_run_json(&in);
    check_config(&in);
    check_metrics(&in);
    check_checkpoints(&in);
}
