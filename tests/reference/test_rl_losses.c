/* test_rl_losses.c - losses and gradients of GRPO and DPO, through a whole model, against TRL.
 *
 * tests/data/reference/rl/losses.safetensors was made by tools/reference/make_rl_losses.py
 * with TRL's own loss methods on the random Qwen3 of tests/data/reference/qwen3, in f32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/algorithms/loss_policy.h"
#include "engine/algorithms/loss_preference.h"
#include "engine/model/safetensors.h"
#include "engine/train/batch.h"
#include "engine/train/session.h"
#include "support/devices.h"

enum { T = 128, MAX = 8 };

typedef struct {
    tp_model *model;
    tp_session *session;
    tp_safetensors *want;
    tp_batch batch;
    tp_batch_sequence sequences[MAX];
    tp_microbatch mb;
    int32_t n, row; /* sequences, and tokens from row to row of the dump */
    const int32_t *lengths;

    const tp_policy_loss *policy;
    tp_policy_norm norm;
    tp_policy_sums sums;
    bool on_policy, with_reference;
    const tp_preference_loss *preference;
    double loss;
} fixture;

static const tp_tensor_entry *expected(const fixture *f, const char *name)
{
    const tp_tensor_entry *e = tp_safetensors_find(f->want, name);
    if (!e)
        fail_msg("losses.safetensors lacks '%s'", name);
    return e;
}

static const void *data(const fixture *f, const char *section, const char *what)
{
    char name[256];
    snprintf(name, sizeof name, "%s.%s", section, what);
    return expected(f, name)->data;
}

static int enter(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    char path[1024];
    tp_error err = {0};
    tp_load_report report;
    snprintf(path, sizeof path, "%s/tests/data/reference/rl/losses.safetensors", TP_SOURCE_DIR);
    if (tp_safetensors_open(path, &f->want, &err) != TP_OK)
        fail_msg("%s", err.message);
    snprintf(path, sizeof path, "%s/tests/data/reference/qwen3", TP_SOURCE_DIR);
    tp_session_options o = {.compile.device = device_of("cpu", 2),
                            .tokens = T,
                            .max_positions = 64,
                            .compile.passes.compute_dtype = TP_DTYPE_F32,
                            .compile.passes.recompute_every = 1,
                            .weighed = true,
                            .compile.share_memory = true};
    if (tp_model_open(path, &f->model, &err) != TP_OK ||
        tp_session_create(f->model, &o, &f->session, &err) != TP_OK ||
        tp_session_alloc(f->session, &err) != TP_OK ||
        tp_model_load(f->model, tp_session_states(f->session), &report, &err) != TP_OK ||
        tp_microbatch_init(&f->mb, T, &err) != TP_OK)
        fail_msg("%s", err.message);
    MUST(tp_session_weights_changed(f->session, NULL));
    *state = f;
    return 0;
}

static int leave(void **state)
{
    fixture *f = *state;
    tp_batch_release(&f->batch);
    tp_microbatch_release(&f->mb);
    tp_session_free(f->session);
    tp_model_free(f->model);
    tp_safetensors_close(f->want);
    free(f);
    return 0;
}

/* The dump's rows, packed into one micro-batch. */
static void load_rows(fixture *f, const char *section, uint32_t unit)
{
    char name[64];
    tp_error err = {0};
    snprintf(name, sizeof name, "%s.ids", section);
    const tp_tensor_entry *ids = expected(f, name);
    f->n = (int32_t)ids->dim[0];
    f->row = (int32_t)ids->dim[1];
    f->lengths = data(f, section, "lengths");
    for (int32_t i = 0; i < f->n; i++)
        f->sequences[i] = (tp_batch_sequence){.ids = (const int32_t *)ids->data + i * f->row,
                                              .n = f->lengths[2 * i + 1],
                                              .first = f->lengths[2 * i]};
    f->batch.capacity = T;
    f->batch.unit = unit;
    if (tp_batch_arrange(&f->batch, f->sequences, (uint32_t)f->n, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(f->batch.n_micro, 1);
    tp_batch_fill(&f->batch, f->sequences, 0, &f->mb);
}

static void compare(fixture *f, const char *name, double loss)
{
    static const char *const params[] = {
        "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "model.norm.weight"};
    double want = (double)*(const float *)data(f, name, "loss");
    double norm = (double)*(const float *)data(f, name, "norm"), got = 0;
    if (fabs(loss - want) > 1e-5 * (1 + fabs(want)))
        fail_msg("%s: loss %.8f, TRL %.8f", name, loss, want);
    MUST(tp_session_grad_norm(f->session, &got, NULL));
    if (fabs(got - norm) > 1e-5 * norm)
        fail_msg("%s: gradient norm %.8f, TRL %.8f", name, got, norm);
    for (size_t p = 0; p < 3; p++) {
        char key[256];
        snprintf(key, sizeof key, "grad.%s", params[p]);
        const tp_tensor *g = tp_states_find(tp_session_states(f->session), key);
        const float *a = data_of(g), *b = data(f, name, key);
        double off = 0, size = 0;
        for (int64_t i = 0; i < g->dim[0] * g->dim[1]; i++) {
            off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
            size += (double)b[i] * (double)b[i];
        }
        if (!(sqrt(off) <= 1e-5 * sqrt(size)))
            fail_msg("%s: %s is off by %.2e", name, key, sqrt(off / size));
    }
}

/* ---- GRPO ---- */

static void weigh_policy(void *user, const float *logp, float *w, int64_t n)
{
    fixture *f = user;
    double gradient[64], advantage[64];
    const float *old = data(f, "grpo", "old"), *ref = data(f, "grpo", "ref");
    const float *A = data(f, "grpo", "advantages");
    memset(w, 0, (size_t)n * sizeof *w);
    for (int32_t i = 0; i < f->n; i++) {
        int32_t first = f->lengths[2 * i], answer = f->lengths[2 * i + 1] - first;
        int32_t at = f->batch.places[i].at + first - 1;
        for (int32_t k = 0; k < answer; k++)
            advantage[k] = (double)A[i];
        tp_policy_sequence s = {.logp = logp + at,
                                .prev = f->on_policy ? NULL : old + i * f->row + first,
                                .gen = logp + at,
                                .ref = f->with_reference ? ref + i * f->row + first : NULL,
                                .advantage = advantage,
                                .n = (size_t)answer};
        tp_policy_loss_add(f->policy, &f->norm, &s, &f->sums, gradient);
        for (int32_t k = 0; k < answer; k++)
            w[at + k] = (float)-gradient[k];
    }
}

static void check_policy(fixture *f, const char *name, const tp_policy_loss *loss)
{
    load_rows(f, "grpo", 1);
    f->policy = loss;
    f->norm = (tp_policy_norm){.sequences = f->n};
    for (int32_t i = 0; i < f->n; i++)
        f->norm.tokens += f->lengths[2 * i + 1] - f->lengths[2 * i];
    tp_policy_sums_init(&f->sums);
    tp_batch_view view = {f->mb.tokens, f->mb.positions, f->mb.targets, f->mb.cu,
                          f->mb.loss_weights, 0};
    MUST(tp_session_train_weighed(f->session, &view, true, weigh_policy, f, NULL));
    compare(f, name, f->sums.loss);
}

static void grpo_is_trls(void **state)
{
    fixture *f = *state;
    const tp_policy_loss plain = {.clip_min = 0.2,
                                  .clip_max = 0.2,
                                  .dual_clip = NAN,
                                  .length_divisor = NAN,
                                  .truncate_min = NAN,
                                  .truncate_max = NAN,
                                  .kl_type = TP_KL_K3,
                                  .kl_input_clamp = NAN,
                                  .kl_output_clamp = NAN};
    tp_policy_loss o = plain;
    o.token_level = true;
    o.clip_max = 0.28;
    check_policy(f, "grpo.token", &o);
    check_policy(f, "grpo.sequence_mean", &plain);
    o.clip_max = 0.2;
    o.dual_clip = 1.5;
    check_policy(f, "grpo.dual_clip", &o);
    o = plain;
    o.ratio = TP_RATIO_SEQUENCE;
    o.clip_min = o.clip_max = 0.05;
    check_policy(f, "grpo.gspo", &o);
    o = plain;
    o.token_level = o.cispo = true;
    o.clip_min = 1;
    o.clip_max = 0.25;
    check_policy(f, "grpo.cispo", &o);
    o = plain;
    o.length_divisor = 16;
    check_policy(f, "grpo.dr_grpo", &o);
    o = plain;
    o.token_level = true;
    o.kl_penalty = 0.1;
    f->on_policy = f->with_reference = true;
    check_policy(f, "grpo.divergence", &o);
}

/* ---- DPO ---- */

static tp_preference_side side_of(const fixture *f, int32_t i, const float *logp)
{
    const float *ref = data(f, "dpo", "ref");
    int32_t first = f->lengths[2 * i], n = f->lengths[2 * i + 1] - first;
    tp_preference_side side = {.ref = (double)ref[i], .n = (size_t)n};
    for (int32_t k = 0; k < n; k++)
        side.logp += (double)logp[f->batch.places[i].at + first - 1 + k];
    return side;
}

static void set_weights(const fixture *f, int32_t i, double gradient, float *w)
{
    int32_t first = f->lengths[2 * i], n = f->lengths[2 * i + 1] - first;
    for (int32_t k = 0; k < n; k++)
        w[f->batch.places[i].at + first - 1 + k] = (float)-gradient;
}

static void weigh_pairs(void *user, const float *logp, float *w, int64_t n)
{
    fixture *f = user;
    int32_t pairs = f->n / 2;
    tp_preference_sums sums = {0};
    memset(w, 0, (size_t)n * sizeof *w);
    for (int32_t i = 0; i < pairs; i++) {
        tp_preference_side chosen = side_of(f, i, logp), rejected = side_of(f, pairs + i, logp);
        double up, down;
        tp_preference_loss_add(f->preference, pairs, &chosen, &rejected, &sums, &up, &down);
        set_weights(f, i, up, w);
        set_weights(f, pairs + i, down, w);
    }
    f->loss = sums.loss;
}

static void check_pairs(fixture *f, const char *name, const tp_preference_loss *loss)
{
    load_rows(f, "dpo", 1);
    f->preference = loss;
    tp_batch_view view = {f->mb.tokens, f->mb.positions, f->mb.targets, f->mb.cu,
                          f->mb.loss_weights, 0};
    MUST(tp_session_train_weighed(f->session, &view, true, weigh_pairs, f, NULL));
    compare(f, name, f->loss);
}

static void dpo_is_trls(void **state)
{
    tp_preference_loss o = {.beta = 0.3, .preference_weight = 1};
    check_pairs(*state, "dpo.sigmoid", &o);
    o.label_smoothing = 0.1;
    check_pairs(*state, "dpo.smoothed", &o);
    o = (tp_preference_loss){
        .kind = TP_PREFERENCE_IPO, .beta = 0.3, .preference_weight = 1, .average = true};
    check_pairs(*state, "dpo.ipo", &o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grpo_is_trls, enter, leave),
        cmocka_unit_test_setup_teardown(dpo_is_trls, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
