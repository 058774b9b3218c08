/* dpo_reference.c - what the model the run began with says about every answer.
 *
 * It is computed once and kept beside the token caches as <key>.reference:
 *
 *     magic "TPREFLP1"; key, 32 hex digits; u64 pairs; per pair two doubles, the sums of
 *     log-probabilities of the chosen and the rejected answer; XXH3-64 of all before it
 *
 * The key is a hash of all that decides the sums: what config.json makes of the model, the
 * weights, the tokens and masks of all pairs, and what their last bits depend on (precision,
 * passes, instruction set, arrangement).  An unreadable file is made again. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/working.h"
#include "engine/algorithms/dpo_internal.h"
#include "engine/data/cache_shelf.h"
#include "engine/data/cache_store.h"
#include "engine/model/adapter.h"
#include "engine/train/plan_ranks.h"

enum { PAIRS_AT_ONCE = 256, HEAD_BYTES = 8 + 32 + 8, HASHED_BYTES = 1 << 16 };
static const char magic[8] = {'T', 'P', 'R', 'E', 'F', 'L', 'P', '1'};

static void hash_answer(XXH3_state_t *state, const tp_preference_answer *a)
{
    XXH3_128bits_update(state, &a->n, sizeof a->n);
    XXH3_128bits_update(state, a->ids, (size_t)a->n * sizeof *a->ids);
    XXH3_128bits_update(state, a->mask, (size_t)a->n);
}

static void hash_pairs(XXH3_state_t *state, const dpo_pairs *pairs)
{
    for (uint64_t i = 0; i < pairs->n; i++) {
        hash_answer(state, &pairs->v[i].pair->chosen);
        hash_answer(state, &pairs->v[i].pair->rejected);
    }
}

static tp_status hash_tensor(XXH3_state_t *state, const tp_tensor *s, tp_error *err)
{
    char part[HASHED_BYTES];
    size_t bytes = tp_tensor_count(s) * tp_dtype_size(s->dtype);
    for (size_t at = 0; at < bytes; at += sizeof part) {
        size_t n = TP_MIN(sizeof part, bytes - at);
        TP_TRY(tp_tensor_read(s, at, part, n, err));
        XXH3_128bits_update(state, part, n);
        tp_job_add(n);
    }
    return TP_OK;
}

/* A frozen base has a name by its numbers; else a seed drew it. */
static void hash_base(XXH3_state_t *state, const trainer *t)
{
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text, "base '%s' seed %llu std %.17g kept as %d dtype %d",
                t->state.base_fingerprint, (unsigned long long)t->state.seed, t->o->policy.init_std,
                t->o->policy.peft.base, (int)t->o->policy.precision);
    XXH3_128bits_update(state, text.data, text.len + 1);
}

static tp_status hash_weights(XXH3_state_t *state, const trainer *t, const tp_states *states,
                              tp_error *err)
{
    size_t n;
    TP_OWN(tp_job) job = {0};
    const tp_model *model = t->model;
    const tp_param *params = tp_model_params(model, &n);
    tp_job_begin(&job, t->plan.bytes[TP_MEM_WEIGHTS], "checksum of the reference model");
    if (tp_model_has_adapter(model))
        hash_base(state, t);
    for (size_t i = 0; !tp_model_has_adapter(model) && i < n; i++) {
        XXH3_128bits_update(state, params[i].name, strlen(params[i].name) + 1);
        TP_TRY(hash_tensor(state, tp_states_find(states, params[i].name), err));
    }
    if (!tp_model_adapter_folder(model))
        return TP_OK;
    params = tp_model_trained(model, &n);
    for (size_t i = 0; i < n; i++) {
        char name[300];
        snprintf(name, sizeof name, "ref.%s", params[i].name);
        TP_TRY(hash_tensor(state, tp_states_find(states, name), err));
    }
    return TP_OK;
}

/* A pass of somebody's own is the contents of its file: built again, it is another. */
static tp_status hash_plugins(XXH3_state_t *state, const tp_str_list *paths, tp_error *err)
{
    char hash[33];
    for (size_t i = 0; i < paths->n; i++) {
        TP_TRY(tp_file_hash(paths->v[i], hash, err));
        XXH3_128bits_update(state, hash, sizeof hash);
    }
    return TP_OK;
}

/* What the last bits of a log-probability depend on besides numbers that went in. */
static tp_status hash_settings(XXH3_state_t *state, const tp_train_options *o, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text,
                "backend %s precision %d compile %d isa %d alignment %lld budget %lld packed %d "
                "chunk %lld",
                o->engine.backend, o->policy.precision, o->policy.compile_mode, (int)tp_cpu_isa(),
                (long long)tp_trainer_alignment(o), (long long)tp_trainer_token_budget(o),
                tp_trainer_is_packed(o), (long long)o->engine.loss_chunk);
    if (o->ranks.tensor.count > 1)
        tp_buf_addf(&text, " shared by %d%s", o->ranks.tensor.count,
                    tp_ranks_share_rows(o) ? " with their rows" : "");
    for (size_t i = 0; i < o->engine.disable_passes.n; i++)
        tp_buf_addf(&text, " -%s", o->engine.disable_passes.v[i]);
    XXH3_128bits_update(state, text.data, text.len + 1);
    return hash_plugins(state, &o->engine.plugins, err);
}

static void hash_model(XXH3_state_t *state, const tp_model *model)
{
    TP_OWN(tp_buf) text = {0};
    tp_model_describe(model, &text);
    XXH3_128bits_update(state, text.data, text.len + 1);
}

/* `session` holds the weights that the run began with. */
static tp_status make_key(const trainer *t, tp_session *session, char ret[33], tp_error *err)
{
    const dpo *d = t->own;
    XXH3_state_t *state = XXH3_createState();
    TP_HAVE(state);
    XXH3_128bits_reset(state);
    tp_status status = hash_settings(state, t->o, err);
    hash_model(state, t->model);
    if (status == TP_OK)
        status = hash_weights(state, t, tp_session_states(session), err);
    hash_pairs(state, &d->train);
    hash_pairs(state, &d->validation);
    tp_hash_digest(state, ret);
    XXH3_freeState(state);
    return status;
}

/* ---- the file ---- */

static uint64_t n_pairs(const dpo *d) { return d->train.n + d->validation.n; }

static dpo_pair *pair_at(dpo *d, uint64_t i)
{
    return i < d->train.n ? &d->train.v[i] : &d->validation.v[i - d->train.n];
}

static bool read_cache(dpo *d, const char *path, const char *key)
{
    TP_OWN(tp_buf) file = {0};
    uint64_t n = n_pairs(d), count = 0, check = 0;
    size_t body = HEAD_BYTES + (size_t)n * 2 * sizeof(double);
    bool ok = tp_file_exists(path) && tp_file_read(path, body + 8, &file, NULL) == TP_OK &&
              file.len == body + 8 && memcmp(file.data, magic, 8) == 0 &&
              memcmp(file.data + 8, key, 32) == 0;
    if (ok) {
        memcpy(&count, file.data + 40, 8);
        memcpy(&check, file.data + body, 8);
        ok = count == n && check == XXH3_64bits(file.data, body);
    }
    for (uint64_t i = 0; ok && i < n; i++) {
        double sums[2];
        memcpy(sums, file.data + HEAD_BYTES + i * sizeof sums, sizeof sums);
        pair_at(d, i)->ref_chosen = sums[0];
        pair_at(d, i)->ref_rejected = sums[1];
    }
    if (ok)
        tp_cache_touch(path);
    return ok;
}

static tp_status write_cache(dpo *d, const char *path, const char *key, tp_error *err)
{
    TP_OWN(tp_buf) file = {0};
    uint64_t n = n_pairs(d);
    tp_buf_add(&file, magic, 8);
    tp_buf_add(&file, key, 32);
    tp_buf_add(&file, (const char *)&n, 8);
    for (uint64_t i = 0; i < n; i++) {
        double sums[2] = {pair_at(d, i)->ref_chosen, pair_at(d, i)->ref_rejected};
        tp_buf_add(&file, (const char *)sums, sizeof sums);
    }
    uint64_t check = XXH3_64bits(file.data, file.len);
    tp_buf_add(&file, (const char *)&check, 8);
    return tp_file_write_atomic(path, file.data, file.len, err);
}

/* ---- computing ---- */

static tp_status score(trainer *t, tp_session *session, dpo_pair *const *pairs, uint32_t n,
                       tp_error *err)
{
    dpo *d = t->own;
    dpo_batch *b = &d->batch;
    tp_dpo_batch_begin(b, n);
    for (uint32_t i = 0; i < n; i++)
        tp_dpo_batch_add(b, pairs[i]);
    TP_TRY(tp_dpo_batch_arrange(t, b, 1, err)); /* each rank by itself, or one for all */
    for (uint32_t m = 0; m < b->arrangement.n_micro; m++) {
        if (tp_trainer_should_stop(t))
            return tp_fail(err, TP_ERR_INTERRUPTED, "stopped before the first step");
        const float *logp;
        double loss;
        tp_batch_fill(&b->arrangement, b->sequences, m, &d->mb);
        tp_batch_view view = tp_trainer_view(&d->mb);
        TP_TRY(tp_session_eval(session, &view, &loss, &logp, err));
        for (uint32_t i = 0; i < n; i++) {
            tp_preference_side chosen, rejected;
            if (b->arrangement.places[2 * i].micro != m)
                continue;
            tp_dpo_sides(b, i, logp, &chosen, &rejected);
            pairs[i]->ref_chosen = chosen.logp;
            pairs[i]->ref_rejected = rejected.logp;
        }
    }
    return TP_OK;
}

static tp_status compute(trainer *t, tp_session *session, tp_error *err)
{
    dpo *d = t->own;
    dpo_pair *pairs[PAIRS_AT_ONCE];
    uint64_t n = n_pairs(d);
    for (uint64_t done = 0; done < n;) {
        uint32_t now = 0;
        while (now < PAIRS_AT_ONCE && done < n)
            pairs[now++] = pair_at(d, done++);
        TP_TRY(score(t, session, pairs, now, err));
        tp_trainer_working(t, "log-probabilities of the reference model", done, n);
    }
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(pair_at(d, i)->ref_chosen) || !isfinite(pair_at(d, i)->ref_rejected))
            return tp_fail(err, TP_ERR_NUMERIC,
                           "the reference model's log-probability of the pair of line %llu is not "
                           "finite",
                           (unsigned long long)pair_at(d, i)->pair->line);
    return TP_OK;
}

/* Ranks that keep parts of the weights compute all together, or none. */
static tp_status agree_on_cache(trainer *t, tp_status status, tp_error *err)
{
    dpo *d = t->own;
    double is_missing = !d->reference_was_cached;
    TP_TRY(tp_comm_agree(t->comm, status, err));
    TP_TRY(tp_comm_max(t->comm, &is_missing, 1, err));
    d->reference_was_cached = is_missing == 0;
    return TP_OK;
}

static tp_status obtain(trainer *t, tp_session *session, tp_error *err)
{
    dpo *d = t->own;
    char key[33];
    TP_OWN(tp_buf) path = {0};
    double start = tp_clock_s();
    bool together = tp_trainer_reads_together(t);
    TP_TRY(make_key(t, session, key, err));
    tp_status status = tp_cache_folder(t->o->data.cache_dir, tp_run_dir(t->run), &path, err);
    if (status == TP_OK) {
        tp_buf_addf(&path, "/%s.reference", key);
        d->reference_was_cached = read_cache(d, tp_buf_str(&path), key);
    }
    if (together)
        status = agree_on_cache(t, status, err);
    if (status == TP_OK) {
        if (!d->reference_was_cached)
            status = compute(t, session, err);
        bool writes = !together || tp_comm_local_rank(t->comm) == 0;
        if (status == TP_OK && !d->reference_was_cached && writes) {
            tp_error inner;
            if (write_cache(d, tp_buf_str(&path), key, &inner) != TP_OK)
                tp_trainer_notice(t, "the reference's log-probabilities could not be kept: %s",
                                  inner.message);
        }
    }
    d->reference_s = tp_clock_s() - start;
    if (status == TP_OK)
        tp_trainer_notice(t, "reference log-probabilities of %llu pair%s: %s, %.2f s (%s)",
                          (unsigned long long)n_pairs(d), tp_plural((uint64_t)(n_pairs(d))),
                          d->reference_was_cached ? "from the cache" : "computed", d->reference_s,
                          tp_buf_str(&path));
    return status;
}

tp_status tp_dpo_reference(trainer *t, tp_error *err)
{
    tp_time_phase before = tp_phases_enter(&t->phases, TP_TIME_REFERENCE);
    tp_session *session = t->session;
    /* Resumed, the session's weights are not the first ones any more; those of an adapter's
     * reference never are. */
    if (t->state.step > 0 || tp_model_has_adapter(t->model)) {
        TP_TRY(tp_trainer_fill_reference(t, err));
        session = t->graphs.reference;
    }
    tp_status status = obtain(t, session, err);
    tp_session_free(t->graphs.reference); /* it is not needed any more */
    t->graphs.reference = NULL;
    tp_phases_enter(&t->phases, before);
    return status;
}
