/* checkpoint_read.c - the manifest and the state of one checkpoint. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/working.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "text/json/json.h"

enum { MAX_JSON = 64 << 20 };

/* Of a large file that over its pieces, which several ranks can tell. */
static tp_status hash_pieces(const char *path, uint64_t bytes, char ret[33], tp_error *err)
{
    size_t n = tp_file_pieces(bytes);
    TP_FREED char(*hashes)[33] = tp_new(n, sizeof *hashes);
    for (size_t i = 0; i < n; i++)
        TP_TRY(tp_file_hash_piece(path, i, hashes[i], err));
    return tp_file_join_hashes((const char(*)[33])hashes, n, ret, err);
}

static tp_status verify_entry(const char *folder, const tp_json *entry, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(entry, "path"));
    const char *want = tp_json_str(tp_json_get(entry, "xxh3_128"));
    const char *pieces = tp_json_str(tp_json_get(entry, "xxh3_128_of_pieces"));
    want = want ? want : pieces;
    int64_t bytes;
    if (!name || !want || !tp_json_i64(tp_json_get(entry, "bytes"), &bytes) || name[0] == '/' ||
        strstr(name, ".."))
        return tp_fail(err, TP_ERR_FORMAT, "'%s/manifest.json' has a malformed entry", folder);
    char path[4096], hash[33];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int64_t has = tp_file_size(path);
    if (has < 0)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' is missing, the manifest lists it", path);
    if (has != bytes)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' has %" PRId64 " bytes, the manifest says %" PRId64,
                       path, has, bytes);
    TP_TRY(want == pieces ? hash_pieces(path, (uint64_t)bytes, hash, err)
                          : tp_file_hash(path, hash, err));
    if (strcmp(hash, want) != 0)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' is corrupt: its checksum is not the manifest's",
                       path);
    return TP_OK;
}

static uint64_t bytes_of(const tp_json *files)
{
    int64_t bytes, sum = 0;
    for (const tp_json *e = files->child; e; e = e->next)
        if (tp_json_i64(tp_json_get(e, "bytes"), &bytes) && bytes > 0 &&
            __builtin_add_overflow(sum, bytes, &sum))
            return 0;
    return (uint64_t)sum;
}

tp_status tp_checkpoint_verify(const char *path, tp_error *err)
{
    char manifest[4096];
    TP_OWN(tp_arena) arena = {0};
    TP_OWN(tp_job) job = {0};
    const tp_json *root;
    snprintf(manifest, sizeof manifest, "%s/manifest.json", path);
    TP_TRY(tp_json_read(&arena, manifest, MAX_JSON, NULL, &root, err));
    const tp_json *files = tp_json_get(root, "files");
    if (!files || files->type != TP_JSON_ARRAY || files->n == 0)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' lists no files", manifest);
    tp_job_begin(&job, bytes_of(files), "verifying %s", path);
    for (const tp_json *e = files->child; e; e = e->next)
        TP_TRY(verify_entry(path, e, err));
    return TP_OK;
}

static bool read_number(const tp_json *root, const char *key, double *ret)
{
    const tp_json *v = tp_json_get(root, key);
    const char *word = tp_json_str(v);
    if (word) {
        *ret = strcmp(word, "Infinity") == 0    ? INFINITY
               : strcmp(word, "-Infinity") == 0 ? -INFINITY
                                                : NAN;
        return true;
    }
    return tp_json_f64(v, ret);
}

static bool copy_text(const tp_json *value, char *out, size_t size)
{
    const char *s = tp_json_str(value);
    if (!s || strlen(s) >= size)
        return false;
    strcpy(out, s);
    return true;
}

static bool copy_fingerprint(const tp_json *root, const char *key, char out[33])
{
    return copy_text(tp_json_get(root, key), out, 33);
}

/* The newest numbers of a series, the oldest of them first. */
static bool read_history(const tp_json *root, const char *key, tp_step_history *ret)
{
    const tp_json *list = tp_json_get(root, key);
    bool ok = !list || list->type == TP_JSON_ARRAY;
    for (const tp_json *x = list && ok ? list->child : NULL; x && ok; x = x->next)
        ok = ret->n < TP_STEP_HISTORY && tp_json_f64(x, &ret->v[ret->n++]);
    return ok;
}

/* Only adapters have one. */
static bool copy_base(const tp_json *root, tp_train_state *s)
{
    return !tp_json_get(root, "base_fingerprint") ||
           copy_fingerprint(root, "base_fingerprint", s->base_fingerprint);
}

/* What older checkpoints lack. */
static bool read_later_members(const tp_json *root, tp_train_state *s)
{
    const struct {
        const char *key;
        double *v;
    } numbers[] = {{"val_loss", &s->val_loss},    {"val_accuracy", &s->val_accuracy},
                   {"loss", &s->last_loss},       {"best_reward", &s->best_reward},
                   {"lr_factor", &s->lr_factor},  {"loss_scale", &s->loss_scale},
                   {"goal_value", &s->goal_value}};
    const tp_json *due = tp_json_get(root, "validation_due");
    const tp_json *between = tp_json_get(root, "between_periods");
    const tp_json *goal = tp_json_get(root, "goal_metric");
    const struct {
        const char *key;
        int64_t *v;
    } counts[] = {{"prompts", &s->prompts},     {"skipped_in_row", &s->skipped_in_row},
                  {"overflows", &s->overflows}, {"unscheduled", &s->unscheduled},
                  {"restores", &s->restores},   {"growth_tracker", &s->growth_tracker}};
    bool ok = (!due || tp_json_bool(due, &s->is_unvalidated)) &&
              (!between || tp_json_bool(between, &s->is_between)) &&
              (!goal || copy_text(goal, s->goal_metric, sizeof s->goal_metric));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *numbers[i].v = NAN;
        if (tp_json_get(root, numbers[i].key))
            ok = read_number(root, numbers[i].key, numbers[i].v) && ok;
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const tp_json *v = tp_json_get(root, counts[i].key);
        ok = (!v || tp_json_i64(v, counts[i].v)) && ok;
    }
    if (isnan(s->lr_factor))
        s->lr_factor = 1;
    s->loss_scale = isfinite(s->loss_scale) ? s->loss_scale : 0;
    ok = ok && read_history(root, "norms", &s->norms) && read_history(root, "losses", &s->losses);
    return ok && s->lr_factor > 0 && s->lr_factor <= 1;
}

/* Absent before runs had an identity, and a choice of optimizers. */
static bool copy_owner(const tp_json *root, tp_train_state *s)
{
    const tp_json *id = tp_json_get(root, "run_id"), *name = tp_json_get(root, "run_name");
    const tp_json *optimizer = tp_json_get(root, "optimizer");
    const tp_json *settings = tp_json_get(root, "settings");
    snprintf(s->optimizer, sizeof s->optimizer, "AdamW"); /* the only one there was */
    return (!settings || copy_text(settings, s->settings, sizeof s->settings)) &&
           (!optimizer || copy_text(optimizer, s->optimizer, sizeof s->optimizer)) &&
           (!id || copy_text(id, s->run_id, sizeof s->run_id)) &&
           (!name || copy_text(name, s->run_name, sizeof s->run_name));
}

tp_status tp_checkpoint_read_state(const char *path, tp_train_state *ret, tp_error *err)
{
    char file[4096];
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    snprintf(file, sizeof file, "%s/state.json", path);
    TP_TRY(tp_json_read(&arena, file, MAX_JSON, NULL, &root, err));
    tp_train_state s = {0};
    int64_t format = 0;
    const char *seed = tp_json_str(tp_json_get(root, "seed"));
    bool ok = tp_json_i64(tp_json_get(root, "format"), &format) && seed &&
              tp_json_i64(tp_json_get(root, "step"), &s.step) &&
              tp_json_i64(tp_json_get(root, "updates"), &s.updates) &&
              tp_json_i64(tp_json_get(root, "skipped"), &s.skipped) &&
              tp_json_i64(tp_json_get(root, "tokens"), &s.tokens) &&
              tp_json_i64(tp_json_get(root, "best_step"), &s.best_step) &&
              read_number(root, "metric", &s.metric) &&
              read_number(root, "best_metric", &s.best_metric) &&
              copy_fingerprint(root, "model_fingerprint", s.model_fingerprint) &&
              copy_fingerprint(root, "data_fingerprint", s.data_fingerprint) &&
              copy_base(root, &s) && copy_owner(root, &s) && read_later_members(root, &s);
    if (ok)
        s.seed = strtoull(seed, NULL, 10);
    if (ok && format != 1)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' has format %" PRId64 "; this version reads 1",
                       file, format);
    if (!ok)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' lacks a field it must have", file);
    *ret = s;
    return TP_OK;
}
