/* test_adapters.c - adapters against PEFT: outputs, every gradient, steps of AdamW, merged weights,
 * and the files.
 *
 * The dumps under tests/data/reference/adapters were made by tools/reference/make_adapters.py in
 * f64.  ../shared/oracles/adapters, or the folder named as argument, is used as well where it is.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "engine/model/adapter.h"
#include "engine/model/safetensors.h"
#include "engine/train/session.h"
#include "support/devices.h"
#include "text/json/json.h"

static const char own_root[] = TP_SOURCE_DIR "/tests/data/reference/adapters";
static const char *const own_runs[] = {
    "llama-lora",         "llama-dora",         "qwen2-rslora",      "gpt2-lora", "gpt2-dora",
    "llama-lora-dropout", "qwen2-dora-dropout", "gpt2-dora-dropout", NULL};
enum { NOISE = 7 }; /* what the dumps drew dropout by */
static const char *shared_root = TP_SOURCE_DIR "/../shared/oracles/adapters";
static const char *const shared_runs[] = {"llama-lora",  "llama-rslora", "llama-dora", "gpt2-lora",
                                          "gpt2-rslora", "gpt2-dora",    NULL};

typedef struct {
    const char *root, *run, *backend;
    tp_dtype dtype;
    tp_recompute recompute;
    bool fuse;
} setup;

typedef struct {
    setup is;
    tp_model *model;
    tp_session *session;
    tp_safetensors *want;
    int64_t B, T, V;
    int32_t *tokens, *positions, *targets, *cu;
    float *weights;
    tp_batch_view batch;
} fixture;

static const tp_tensor_entry *expected(const fixture *f, const char *prefix, const char *name)
{
    char full[700];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const tp_tensor_entry *e = tp_safetensors_find(f->want, full);
    if (!e)
        fail_msg("expected.safetensors lacks '%s'", full);
    return e;
}

/* Labels are those of the tokens themselves: shifted by one, and a mean over the kept ones. */
static void make_batch(fixture *f)
{
    const tp_tensor_entry *ids = expected(f, "", "input_ids"), *labels = expected(f, "", "labels");
    const char *id = ids->data, *label = labels->data;
    f->B = ids->dim[0], f->T = ids->dim[1];
    size_t n = (size_t)(f->B * f->T);
    f->tokens = calloc(n, 4), f->positions = calloc(n, 4), f->targets = calloc(n, 4);
    f->cu = calloc(n + 1, 4), f->weights = calloc(n, 4);
    float kept = 0;
    for (int64_t i = 0; i < (int64_t)n; i++) {
        int64_t token, next = -100;
        memcpy(&token, id + i * 8, 8);
        if (i % f->T + 1 < f->T)
            memcpy(&next, label + (i + 1) * 8, 8);
        f->tokens[i] = (int32_t)token;
        f->positions[i] = (int32_t)(i % f->T);
        f->targets[i] = next < 0 ? 0 : (int32_t)next;
        f->weights[i] = next < 0 ? 0 : 1;
        kept += f->weights[i];
    }
    for (size_t i = 0; i < n; i++)
        f->weights[i] /= kept;
    for (int64_t i = 0; i <= (int64_t)n; i++)
        f->cu[i] = (int32_t)(i < f->B ? i * f->T : f->B * f->T);
    f->batch = (tp_batch_view){f->tokens, f->positions, f->targets, f->cu, f->weights, 0};
}

static void set_up(fixture *f, const setup *is)
{
    char folder[1024], path[1100];
    static const char *const off[] = {"fuse"};
    tp_error err = {0};
    tp_load_report report;
    *f = (fixture){.is = *is};
    snprintf(folder, sizeof folder, "%s/%s", is->root, is->run);
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    if (tp_safetensors_open(path, &f->want, &err) != TP_OK)
        fail_msg("%s", err.message);
    make_batch(f);
    if (tp_model_open(folder, &f->model, &err) != TP_OK)
        fail_msg("%s", err.message);
    if (is->dtype == TP_DTYPE_BF16)
        tp_model_freeze(f->model, TP_BASE_BF16, TP_DTYPE_BF16);
    tp_session_options so = {.compile.device = device_of(is->backend, 2),
                             .tokens = f->B * f->T,
                             .max_positions = 32,
                             .compile.passes.compute_dtype = is->dtype,
                             .compile.passes.recompute = is->recompute,
                             .compile.passes.recompute_every = 1,
                             .compile.passes.disabled = off,
                             .compile.passes.n_disabled = is->fuse ? 0 : 1,
                             .compile.share_memory = true};
    if (tp_session_create(f->model, &so, &f->session, &err) != TP_OK ||
        tp_session_alloc(f->session, &err) != TP_OK ||
        tp_model_load(f->model, tp_session_states(f->session), &report, &err) != TP_OK)
        fail_msg("%s: %s", is->run, err.message);
    MUST(tp_session_weights_changed(f->session, NULL));
    tp_session_begin_step(f->session, NOISE, 0);
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

static const float *tensor(const fixture *f, const char *name, size_t *ret_n)
{
    const tp_tensor *t = tp_states_find(tp_session_states(f->session), name);
    if (!t)
        fail_msg("%s: there is no tensor '%s'", f->is.run, name);
    *ret_n = (size_t)(t->dim[0] * t->dim[1]);
    return data_of(t);
}

/* The largest difference, of the largest value expected. */
static void must_agree(const fixture *f, const char *what, const float *is, const float *want,
                       size_t n, double limit)
{
    double off = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        off = fmax(off, fabs((double)is[i] - (double)want[i]));
        largest = fmax(largest, fabs((double)want[i]));
    }
    if (!(off <= limit * largest))
        fail_msg("%s on %s: %s is off by %.2e of %.2e", f->is.run, f->is.backend, what, off,
                 largest);
}

static void check_gradients(const fixture *f, double limit)
{
    size_t n, count;
    const tp_param *params = tp_model_trained(f->model, &n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        char name[300];
        snprintf(name, sizeof name, "grad.%s", params[i].name);
        const float *is = tensor(f, name, &count);
        must_agree(f, name, is, expected(f, "grad.base_model.model.", params[i].name)->data, count,
                   limit);
    }
}

/* ---- outputs ---- */

static float *logits_of(const tp_model *model, const fixture *f)
{
    tp_program *program;
    tp_states states;
    tp_load_report report;
    tp_error err = {0};
    int id;
    const int64_t T = f->B * f->T, S = T + 1;
    const tp_program_options options = {.device = device_of("cpu", 2), .share_memory = true};
    MUST(tp_states_init(&states, NULL));
    MUST(tp_program_create(&options, &program, NULL));
    MUST(tp_program_add(program, "logits", &states, 0, &id, NULL));
    tp_graph *g = tp_program_graph(program, id);
    tp_forward forward = {.tokens = tp_graph_input(g, "tokens", TP_DTYPE_I32, 1, &T),
                          .positions = tp_graph_input(g, "positions", TP_DTYPE_I32, 1, &T),
                          .cu = tp_graph_input(g, "cu", TP_DTYPE_I32, 1, &S),
                          .max_positions = 32};
    tp_ref product[2];
    MUST(tp_model_declare(model, 32, &states, NULL));
    MUST(tp_model_forward(model, g, &forward, &product[0], &product[1], NULL));
    tp_graph_output(g, tp_graph_op(g, TP_OP_linear, NULL, 2, product, "lm_head"));
    MUST(tp_program_compile(program, NULL));
    MUST(tp_program_alloc(program, &states, NULL));
    if (tp_model_load(model, &states, &report, &err) != TP_OK)
        fail_msg("%s", err.message);
    MUST(tp_model_fill_constants(model, &states, NULL));
    tp_exec *e = tp_program_exec(program, id);
    MUST(tp_exec_write(e, tp_exec_input(e, "tokens"), f->tokens, -1, NULL));
    if (tp_exec_input(e, "positions") >= 0)
        MUST(tp_exec_write(e, tp_exec_input(e, "positions"), f->positions, -1, NULL));
    MUST(tp_exec_write(e, tp_exec_input(e, "cu"), f->cu, -1, NULL));
    MUST(tp_program_run(program, id, false, NULL));
    size_t bytes = (size_t)(T * tp_model_get_info(model)->vocab) * sizeof(float);
    float *out = malloc(bytes);
    MUST(tp_exec_read(e, 0, 0, out, bytes, NULL));
    tp_program_free(program);
    tp_states_release(&states);
    return out;
}

static void check_outputs(const char *root, const char *const *runs)
{
    for (; *runs; runs++) {
        fixture f;
        set_up(&f, &(setup){root, *runs, "cpu", TP_DTYPE_F32, TP_RECOMPUTE_NONE, true});
        const tp_tensor_entry *want = expected(&f, "", "logits");
        float *logits = logits_of(f.model, &f);
        must_agree(&f, "logits", logits, want->data,
                   (size_t)(want->dim[0] * want->dim[1] * want->dim[2]), 1e-5);
        free(logits);
        tear_down(&f);
    }
}

/* ---- training ---- */

typedef struct {
    tp_arena arena;
    const tp_json *root;
} summary;

static void open_summary(const char *root, summary *ret)
{
    char path[1024];
    tp_buf text = {0};
    snprintf(path, sizeof path, "%s/adapters.json", root);
    MUST(tp_file_read(path, 1 << 20, &text, NULL));
    MUST(tp_arena_init(&ret->arena, 8 << 20, NULL));
    MUST(tp_json_parse(&ret->arena, path, tp_buf_str(&text), text.len, NULL, &ret->root, NULL));
    tp_buf_release(&text);
}

static double number(const tp_json *v)
{
    double d = NAN;
    assert_true(tp_json_f64(v, &d));
    return d;
}

static void check_steps(const fixture *f, const summary *s)
{
    const tp_json *adamw = tp_json_get(s->root, "adamw");
    const tp_json *run = tp_json_get(tp_json_get(s->root, "runs"), f->is.run);
    size_t n, count;
    const tp_param *params = tp_model_trained(f->model, &n);
    for (int step = 0; step < 3; step++) {
        double loss, norm;
        tp_session_begin_step(f->session, NOISE, step);
        MUST(tp_session_train(f->session, &f->batch, true, &loss, NULL));
        MUST(tp_session_grad_norm(f->session, &norm, NULL));
        double want = number(tp_json_at(tp_json_get(run, "losses"), (size_t)step));
        double want_norm = number(tp_json_at(tp_json_get(run, "grad_norms"), (size_t)step));
        if (!(fabs(loss - want) <= 1e-5 * want) || !(fabs(norm - want_norm) <= 1e-4 * want_norm))
            fail_msg("%s: loss %.8f and norm %.8f at step %d, PEFT %.8f and %.8f", f->is.run, loss,
                     norm, step, want, want_norm);
        if (step == 0)
            check_gradients(f, 1e-5);
        const tp_json *betas = tp_json_get(adamw, "betas");
        tp_optimizer_scalars scalars =
            tp_adamw_scalars(number(tp_json_get(adamw, "lr")), number(tp_json_at(betas, 0)),
                             number(tp_json_at(betas, 1)), number(tp_json_get(adamw, "eps")),
                             number(tp_json_get(adamw, "weight_decay")), step + 1, 1);
        MUST(tp_session_update(f->session, &scalars, NULL));
    }
    for (size_t i = 0; i < n; i++) {
        const float *is = tensor(f, params[i].name, &count);
        const float *want = expected(f, "step3.base_model.model.", params[i].name)->data;
        for (size_t k = 0; k < count; k++)
            if (!(fabs((double)is[k] - (double)want[k]) <= 1e-4))
                fail_msg("%s: %s[%zu] is %.7f after three steps, PEFT %.7f", f->is.run,
                         params[i].name, k, (double)is[k], (double)want[k]);
    }
}

static void check_training(const char *root, const char *const *runs, const char *backend,
                           bool fuse, tp_recompute recompute)
{
    summary s;
    open_summary(root, &s);
    for (; *runs; runs++) {
        fixture f;
        set_up(&f, &(setup){root, *runs, backend, TP_DTYPE_F32, recompute, fuse});
        check_steps(&f, &s);
        tear_down(&f);
    }
    tp_arena_release(&s.arena);
}

/* ---- merging ---- */

static void check_merging(const char *root, const char *const *runs)
{
    static const char prefix[] = "merged.";
    for (; *runs; runs++) {
        fixture f;
        set_up(&f, &(setup){root, *runs, "cpu", TP_DTYPE_F32, TP_RECOMPUTE_NONE, true});
        MUST(tp_adapter_merge(f.model, tp_session_states(f.session), NULL));
        int n_merged = 0;
        for (size_t i = 0; i < tp_safetensors_count(f.want); i++) {
            const tp_tensor_entry *e = tp_safetensors_at(f.want, i);
            size_t count;
            if (strncmp(e->name, prefix, strlen(prefix)) != 0)
                continue;
            const float *is = tensor(&f, e->name + strlen(prefix), &count);
            must_agree(&f, e->name, is, e->data, count, 1e-6);
            n_merged++;
        }
        assert_true(n_merged > 0);
        tear_down(&f);
    }
}

/* ---- the tests ---- */

static void test_outputs(void **state) { check_outputs(own_root, own_runs); }

static void test_training_cpu(void **state)
{
    check_training(own_root, own_runs, "cpu", true, TP_RECOMPUTE_NONE);
}

static void test_training_ref(void **state)
{
    check_training(own_root, own_runs, "ref", false, TP_RECOMPUTE_NONE);
}

static void test_training_recomputed(void **state)
{
    check_training(own_root, own_runs, "cpu", true, TP_RECOMPUTE_FULL);
    check_training(own_root, own_runs, "cpu", true, TP_RECOMPUTE_SELECTIVE);
}

static void test_merging(void **state) { check_merging(own_root, own_runs); }

/* bf16, with the base in bf16: as near as rounding allows. */
static void test_gradients_bf16(void **state)
{
    for (int i = 0; own_runs[i]; i++) {
        fixture f;
        double loss;
        set_up(&f, &(setup){own_root, own_runs[i], "cpu", TP_DTYPE_BF16, TP_RECOMPUTE_NONE, true});
        MUST(tp_session_train(f.session, &f.batch, true, &loss, NULL));
        check_gradients(&f, 0.15);
        tear_down(&f);
    }
}

/* Only the adapter has gradients and moments, and of the base there is one copy. */
static void test_base_is_frozen(void **state)
{
    fixture f;
    size_t bytes[TP_MEM_KINDS], n, adapter = 0, base = 0;
    set_up(&f, &(setup){own_root, "llama-lora", "cpu", TP_DTYPE_BF16, TP_RECOMPUTE_NONE, true});
    const tp_param *params = tp_model_trained(f.model, &n);
    for (size_t i = 0; i < n; i++)
        adapter += (size_t)(params[i].dim[0] * params[i].dim[1]);
    params = tp_model_params(f.model, &n);
    for (size_t i = 0; i < n; i++)
        base += (size_t)(params[i].dim[0] * params[i].dim[1]) * (params[i].is_matrix ? 2 : 4);
    tp_states_bytes(tp_session_states(f.session), bytes);
    assert_int_equal(bytes[TP_MEM_GRADIENTS], adapter * 4 + 8); /* and the sum of squares */
    assert_int_equal(bytes[TP_MEM_OPTIMIZER], adapter * 8);
    assert_int_equal(bytes[TP_MEM_WEIGHTS], adapter * 4 + base);
    tear_down(&f);
}

static void test_files_come_back(void **state)
{
    char folder[] = "/tmp/temper-adapter-XXXXXX", path[1200];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; own_runs[i]; i++) {
        fixture f;
        tp_buf first = {0}, second = {0};
        tp_model *again;
        set_up(&f, &(setup){own_root, own_runs[i], "cpu", TP_DTYPE_F32, TP_RECOMPUTE_NONE, true});
        const tp_states *states = tp_session_states(f.session);
        MUST(tp_adapter_save_frame(f.model, states, folder, NULL, NULL));
        MUST(tp_adapter_save_share(f.model, states, folder, (tp_shard){0, 1}, NULL));
        snprintf(path, sizeof path, "%s/%s/adapter_model.safetensors", own_root, own_runs[i]);
        MUST(tp_file_read(path, 1 << 24, &first, NULL));
        snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
        MUST(tp_file_read(path, 1 << 24, &second, NULL));
        assert_int_equal(first.len, second.len);
        assert_memory_equal(first.data, second.data, first.len);
        MUST(tp_model_open(folder, &again, NULL));
        assert_int_equal(tp_model_adapter(again)->r, tp_model_adapter(f.model)->r);
        assert_true(tp_model_adapter(again)->alpha == tp_model_adapter(f.model)->alpha);
        tp_model_free(again);
        tp_buf_release(&first);
        tp_buf_release(&second);
        tear_down(&f);
    }
    MUST(tp_dir_remove(folder, NULL));
}

static void test_shared_oracle(void **state)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/adapters.json", shared_root);
    if (!tp_file_exists(path))
        skip();
    check_outputs(shared_root, shared_runs);
    check_training(shared_root, shared_runs, "cpu", true, TP_RECOMPUTE_NONE);
    check_training(shared_root, shared_runs, "ref", false, TP_RECOMPUTE_NONE);
    check_merging(shared_root, shared_runs);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs),        cmocka_unit_test(test_training_cpu),
        cmocka_unit_test(test_training_ref),   cmocka_unit_test(test_training_recomputed),
        cmocka_unit_test(test_merging),        cmocka_unit_test(test_gradients_bf16),
        cmocka_unit_test(test_base_is_frozen), cmocka_unit_test(test_files_come_back),
        cmocka_unit_test(test_shared_oracle),
    };
    if (argc > 1)
        shared_root = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
