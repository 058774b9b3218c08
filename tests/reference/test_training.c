/* test_training.c - losses, gradients and ten AdamW steps against PyTorch.
 *
 * The dumps under tests/data/reference were made by tools/reference/make_models.py
 * with transformers in f32 and bf16 on random tiny models of every family. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/safetensors.h"
#include "engine/train/session.h"
#include "support/devices.h"

enum { N_FAMILIES = 5 };
static const char *const families[N_FAMILIES] = {"gpt2", "llama", "smollm2", "qwen2", "qwen3"};

typedef struct {
    tp_model *model;
    tp_session *session;
    tp_safetensors *want;
    int32_t *tokens, *positions, *targets, *cu;
    float *weights;
    tp_batch_view batch;
} fixture;

static const tp_tensor_entry *expected(const fixture *f, const char *name)
{
    const tp_tensor_entry *e = tp_safetensors_find(f->want, name);
    if (!e)
        fail_msg("expected.safetensors lacks '%s'", name);
    return e;
}

static void make_batch(fixture *f)
{
    const tp_tensor_entry *ids = expected(f, "input_ids"), *cu = expected(f, "cu_seqlens");
    const float *mask = expected(f, "loss_weights")->data;
    size_t T = (size_t)ids->dim[0], S = (size_t)cu->dim[0];
    f->tokens = calloc(T, 4);
    f->positions = calloc(T, 4);
    f->targets = calloc(T, 4);
    f->cu = calloc(T + 1, 4);
    f->weights = calloc(T, 4);
    memcpy(f->tokens, ids->data, T * 4);
    memcpy(f->targets, expected(f, "targets")->data, T * 4);
    for (size_t i = 0; i <= T; i++)
        f->cu[i] = ((const int32_t *)cu->data)[i < S ? i : S - 1];
    double total = 0;
    for (size_t i = 0; i < T; i++)
        total += (double)mask[i];
    for (size_t s = 0; s + 1 < S; s++)
        for (int32_t i = f->cu[s]; i < f->cu[s + 1]; i++)
            f->positions[i] = i - f->cu[s];
    for (size_t i = 0; i < T; i++)
        f->weights[i] = (float)((double)mask[i] / total);
    f->batch = (tp_batch_view){f->tokens, f->positions, f->targets, f->cu, f->weights, 0};
}

typedef struct {
    const char *family, *backend;
    tp_dtype dtype;
    tp_recompute recompute;
    bool fuse;
} setup_options;

static void set_up(fixture *f, const setup_options *o)
{
    char folder[1024], path[1100];
    static const char *const off[] = {"fuse"};
    tp_error err = {0};
    tp_load_report report;
    memset(f, 0, sizeof *f);
    snprintf(folder, sizeof folder, "%s/tests/data/reference/%s", TP_SOURCE_DIR, o->family);
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    if (tp_safetensors_open(path, &f->want, &err) != TP_OK)
        fail_msg("%s", err.message);
    make_batch(f);
    if (tp_model_open(folder, &f->model, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_session_options so = {.compile.device = device_of(o->backend, 2),
                             .tokens = expected(f, "input_ids")->dim[0],
                             .max_positions = 64,
                             .compile.passes.compute_dtype = o->dtype,
                             .compile.passes.recompute = o->recompute,
                             .compile.passes.recompute_every = 1,
                             .compile.passes.disabled = off,
                             .compile.passes.n_disabled = o->fuse ? 0 : 1,
                             .compile.share_memory = true};
    if (tp_session_create(f->model, &so, &f->session, &err) != TP_OK ||
        tp_session_alloc(f->session, &err) != TP_OK ||
        tp_model_load(f->model, tp_session_states(f->session), &report, &err) != TP_OK)
        fail_msg("%s: %s", o->family, err.message);
    assert_int_equal(report.n_loaded, report.n_expected);
    assert_int_equal(report.n_unused, 0);
    MUST(tp_session_weights_changed(f->session, NULL));
}

static void tear_down(fixture *f)
{
    tp_session_free(f->session);
    tp_model_free(f->model);
    tp_safetensors_close(f->want);
    free(f->tokens);
    free(f->positions);
    free(f->targets);
    free(f->cu);
    free(f->weights);
}

/* |a - b| relative to the larger norm, as one number for a tensor. */
static double distance(const float *a, const float *b, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(diff) / (sqrt(norm) + 1e-30);
}

static void check_loss_and_gradients(const setup_options *o)
{
    fixture f;
    double loss;
    size_t n;
    set_up(&f, o);
    const tp_param *params = tp_model_params(f.model, &n);
    bool bf16 = o->dtype == TP_DTYPE_BF16;
    double want = (double)*(const float *)expected(&f, "loss")->data;
    double torch_bf16 = (double)*(const float *)expected(&f, "loss_bf16")->data;

    MUST(tp_session_train(f.session, &f.batch, true, &loss, NULL));

    double allowed = bf16 ? 2.0 * fabs(torch_bf16 - want) + 4e-3 * want : 1e-5 * want;
    if (!(fabs(loss - want) <= allowed))
        fail_msg("%s: loss %.8f, PyTorch %.8f, allowed %.2e", o->family, loss, want, allowed);
    for (size_t i = 0; i < n; i++) {
        char name[600];
        snprintf(name, sizeof name, "grad.%s", params[i].name);
        const tp_tensor *grad = tp_states_find(tp_session_states(f.session), name);
        const float *g32 = expected(&f, name)->data;
        size_t count = (size_t)(grad->dim[0] * grad->dim[1]);
        double d = distance(data_of(grad), g32, count), limit = 1e-5;
        if (bf16) {
            snprintf(name, sizeof name, "grad_bf16.%s", params[i].name);
            limit = 1.25 * distance(expected(&f, name)->data, g32, count) + 5e-3;
        }
        if (!(d <= limit))
            fail_msg("%s: gradient of %s is off by %.2e, allowed %.2e", o->family, params[i].name,
                     d, limit);
    }
    tear_down(&f);
}

static void all_families(const char *backend, tp_dtype dtype, bool fuse)
{
    for (int i = 0; i < N_FAMILIES; i++)
        check_loss_and_gradients(&(setup_options){
            .family = families[i], .backend = backend, .dtype = dtype, .fuse = fuse});
}

static void test_gradients_ref_f32(void **state)
{
    all_families("ref", TP_DTYPE_F32, false);
    all_families("ref", TP_DTYPE_F32, true);
}

static void test_gradients_cpu_f32(void **state)
{
    all_families("cpu", TP_DTYPE_F32, false);
    all_families("cpu", TP_DTYPE_F32, true);
}

static void test_gradients_ref_bf16(void **state) { all_families("ref", TP_DTYPE_BF16, true); }

static void test_gradients_cpu_bf16(void **state) { all_families("cpu", TP_DTYPE_BF16, true); }

static void check_adamw(const char *family, const char *backend)
{
    fixture f;
    set_up(&f, &(setup_options){.family = family, .backend = backend, .fuse = true});
    const float *losses = expected(&f, "adamw_losses")->data;
    const float *norms = expected(&f, "adamw_grad_norms")->data;
    for (int t = 0; t < 10; t++) {
        double loss;
        MUST(tp_session_train(f.session, &f.batch, true, &loss, NULL));
        double norm;
        MUST(tp_session_grad_norm(f.session, &norm, NULL));
        tp_optimizer_scalars step =
            tp_adamw_scalars(1e-2, 0.9, 0.95, 1e-8, 0.1, t + 1, norm > 1 ? 1 / (norm + 1e-6) : 1);
        MUST(tp_session_update(f.session, &step, NULL));
        if (!(fabs(loss - (double)losses[t]) <= 1e-4 * (double)losses[t]))
            fail_msg("%s: loss %.7f at step %d, PyTorch %.7f", family, loss, t, (double)losses[t]);
        if (!(fabs(norm - (double)norms[t]) <= 1e-3 * (double)norms[t]))
            fail_msg("%s: norm %.7f at step %d, PyTorch %.7f", family, norm, t, (double)norms[t]);
    }
    tear_down(&f);
}

static void test_ten_adamw_steps(void **state)
{
    for (int i = 0; i < N_FAMILIES; i++) {
        check_adamw(families[i], "ref");
        check_adamw(families[i], "cpu");
    }
}

static uint64_t gradient_bits(fixture *f)
{
    uint64_t h = 14695981039346656037u;
    const tp_states *states = tp_session_states(f->session);
    for (size_t i = 0; i < states->n; i++) {
        if (states->items[i].role != TP_ROLE_GRADIENT || !states->items[i].of)
            continue;
        const unsigned char *bytes = data_of(&states->items[i]);
        for (size_t k = 0; k < states->items[i].bytes; k++)
            h = (h ^ bytes[k]) * 1099511628211u;
    }
    return h;
}

static void test_recompute_modes_give_the_same_bits(void **state)
{
    static const tp_dtype dtypes[] = {TP_DTYPE_F32, TP_DTYPE_BF16};
    for (int i = 0; i < N_FAMILIES; i++)
        for (int d = 0; d < 2; d++) {
            uint64_t none = 0;
            for (int mode = TP_RECOMPUTE_NONE; mode <= TP_RECOMPUTE_SELECTIVE; mode++) {
                fixture f;
                double loss;
                set_up(&f, &(setup_options){.family = families[i],
                                            .backend = "cpu",
                                            .dtype = dtypes[d],
                                            .recompute = (tp_recompute)mode,
                                            .fuse = true});
                MUST(tp_session_train(f.session, &f.batch, true, &loss, NULL));
                uint64_t bits = gradient_bits(&f);
                if (mode == TP_RECOMPUTE_NONE)
                    none = bits;
                else if (bits != none)
                    fail_msg("%s %s: recompute mode %d changes bits", families[i],
                             tp_dtype_name(dtypes[d]), mode);
                tear_down(&f);
            }
        }
}

/* The three sequences one micro-batch each: gradients add up to the packed ones. */
static void test_accumulation_equals_the_large_batch(void **state)
{
    for (int i = 0; i < N_FAMILIES; i++) {
        fixture f;
        double loss, whole, sum = 0;
        set_up(&f, &(setup_options){.family = families[i], .backend = "cpu", .fuse = true});
        size_t T = (size_t)expected(&f, "input_ids")->dim[0];
        MUST(tp_session_train(f.session, &f.batch, true, &whole, NULL));
        const char *name = "model.layers.0.mlp.down_proj.weight";
        if (strcmp(families[i], "gpt2") == 0)
            name = "transformer.h.0.mlp.c_proj.weight";
        char grad_name[256];
        snprintf(grad_name, sizeof grad_name, "grad.%s", name);
        const tp_tensor *grad = tp_states_find(tp_session_states(f.session), grad_name);
        float *large = malloc(grad->bytes);
        memcpy(large, data_of(grad), grad->bytes);
        for (size_t s = 0; s < 3; s++) {
            float *weights = calloc(T, sizeof *weights);
            for (int32_t t = f.cu[s]; t < f.cu[s + 1]; t++)
                weights[t] = f.weights[t];
            tp_batch_view part = f.batch;
            part.loss_weights = weights;
            MUST(tp_session_train(f.session, &part, s == 0, &loss, NULL));
            sum += loss;
            free(weights);
        }
        assert_true(fabs(sum - whole) <= 1e-6 * whole);
        assert_true(distance(data_of(grad), large, grad->bytes / 4) <= 1e-6);
        free(large);
        tear_down(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_ref_f32),
        cmocka_unit_test(test_gradients_cpu_f32),
        cmocka_unit_test(test_gradients_ref_bf16),
        cmocka_unit_test(test_gradients_cpu_bf16),
        cmocka_unit_test(test_ten_adamw_steps),
        cmocka_unit_test(test_recompute_modes_give_the_same_bits),
        cmocka_unit_test(test_accumulation_equals_the_large_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
