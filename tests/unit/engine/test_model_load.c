/* Folders made by transformers, loaded and saved again, and what PyTorch computed
 * from them: logits, loss and every gradient. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/model/model.h"
#include "engine/model/safetensors.h"
#include "support/devices.h"
#include "support/interpret.h"

#define REFERENCE TP_SOURCE_DIR "/tests/data/reference/"

enum { TOKENS = 41, PADDED = 48, POSITIONS = 64 };

static char scratch[] = "/tmp/temper-model-XXXXXX";

static int make_scratch(void **state) { return mkdtemp(scratch) ? 0 : -1; }

static int remove_scratch(void **state) { return tp_dir_remove(scratch, NULL) != TP_OK; }

typedef struct {
    tp_model *model;
    tp_states states;
    tp_load_report report;
} loaded;

static void need_data(const char *family)
{
    char path[512];
    snprintf(path, sizeof path, REFERENCE "%s/expected.safetensors", family);
    if (!tp_file_exists(path)) {
        print_message("skipped: %s is not there; tools/reference/make_models.py makes it\n", path);
        skip();
    }
}

static void declare(loaded *l)
{
    tp_error err = {0};
    if (tp_states_init(&l->states, &err) != TP_OK ||
        tp_model_declare(l->model, POSITIONS, &l->states, &err) != TP_OK ||
        tp_states_alloc(&l->states, device_of("ref", 1), &err) != TP_OK)
        fail_msg("%s", err.message);
    MUST(tp_model_fill_constants(l->model, &l->states, NULL));
}

static loaded load(const char *folder)
{
    loaded l = {0};
    tp_error err = {0};
    if (tp_model_open(folder, &l.model, &err) != TP_OK)
        fail_msg("%s", err.message);
    declare(&l);
    if (tp_model_load(l.model, &l.states, &l.report, &err) != TP_OK)
        fail_msg("%s", err.message);
    return l;
}

static loaded load_reference(const char *family)
{
    char path[512];
    need_data(family);
    snprintf(path, sizeof path, REFERENCE "%s", family);
    return load(path);
}

static void release(loaded *l)
{
    tp_states_release(&l->states);
    tp_model_free(l->model);
}

static tp_safetensors *open_expected(const char *family)
{
    char path[512];
    tp_safetensors *st = NULL;
    tp_error err = {0};
    snprintf(path, sizeof path, REFERENCE "%s/expected.safetensors", family);
    if (tp_safetensors_open(path, &st, &err) != TP_OK)
        fail_msg("%s", err.message);
    return st;
}

static const tp_tensor_entry *expected(const tp_safetensors *st, const char *name)
{
    const tp_tensor_entry *e = tp_safetensors_find(st, name);
    if (!e)
        fail_msg("expected.safetensors lacks %s", name);
    return e;
}

/* The largest difference, relative to the largest expected magnitude. */
static double deviation(const float *got, const tp_tensor_entry *want)
{
    const float *w = want->data;
    double difference = 0, largest = 0;
    for (size_t i = 0; i < want->bytes / sizeof *w; i++) {
        difference = fmax(difference, fabs((double)got[i] - (double)w[i]));
        largest = fmax(largest, fabs((double)w[i]));
        if (!isfinite(got[i]))
            return INFINITY;
    }
    return difference / largest;
}

typedef struct {
    tp_graph g;
    tp_ref tokens, positions, cu, targets, weights, scale; /* inputs */
    tp_ref logits, loss;
} program;

/* Packed forward pass over PADDED rows, of which TOKENS are used. */
static program build(const tp_model *model)
{
    program p = {0};
    tp_error err = {0};
    int64_t rows = PADDED, starts = 4, one = 1;
    assert_int_equal(tp_graph_init(&p.g, NULL), TP_OK);
    p.tokens = tp_graph_input(&p.g, "tokens", TP_DTYPE_I32, 1, &rows);
    p.positions = tp_graph_input(&p.g, "positions", TP_DTYPE_I32, 1, &rows);
    p.cu = tp_graph_input(&p.g, "cu", TP_DTYPE_I32, 1, &starts);
    p.targets = tp_graph_input(&p.g, "targets", TP_DTYPE_I32, 1, &rows);
    p.weights = tp_graph_input(&p.g, "weights", TP_DTYPE_F32, 1, &rows);
    p.scale = tp_graph_input(&p.g, "scale", TP_DTYPE_F32, 1, &one);
    tp_forward f = {
        .tokens = p.tokens, .positions = p.positions, .cu = p.cu, .max_positions = POSITIONS};
    tp_ref hidden, head;
    if (tp_model_forward(model, &p.g, &f, &hidden, &head, &err) != TP_OK)
        fail_msg("%s", err.message);
    p.logits = tp_graph_op(&p.g, TP_OP_linear, NULL, 2, (tp_ref[]){hidden, head}, "lm_head");
    p.loss = tp_graph_op(&p.g, TP_OP_cross_entropy, NULL, 3,
                         (tp_ref[]){p.logits, p.targets, p.weights}, "loss");
    tp_graph_output(&p.g, p.loss);
    return p;
}

static void differentiate(program *p, const tp_model *model)
{
    size_t n;
    tp_error err = {0};
    const tp_param *params = tp_model_params(model, &n);
    tp_ref *refs = calloc(n, sizeof *refs);
    for (size_t i = 0; i < n; i++) {
        refs[i] = tp_graph_find(&p->g, params[i].name);
        assert_true(refs[i]);
    }
    tp_status status = tp_graph_autodiff(&p->g, p->loss, p->scale, refs, (uint32_t)n, &err);
    if (status == TP_OK)
        status = tp_graph_verify(&p->g, &err);
    free(refs);
    if (status != TP_OK)
        fail_msg("%s", err.message);
}

static void fill_inputs(const program *p, tp_interpreter *it, const tp_safetensors *st)
{
    const tp_tensor_entry *cu = expected(st, "cu_seqlens");
    int32_t *positions = tp_interpreter_data(it, p->positions);
    const int32_t *starts = cu->data;
    assert_int_equal(cu->dim[0], 4);
    assert_int_equal(starts[3], TOKENS);
    memcpy(tp_interpreter_data(it, p->cu), starts, cu->bytes);
    memcpy(tp_interpreter_data(it, p->tokens), expected(st, "input_ids")->data, TOKENS * 4);
    memcpy(tp_interpreter_data(it, p->targets), expected(st, "targets")->data, TOKENS * 4);
    memcpy(tp_interpreter_data(it, p->weights), expected(st, "loss_weights")->data, TOKENS * 4);
    for (int s = 0; s < 3; s++)
        for (int32_t t = starts[s]; t < starts[s + 1]; t++)
            positions[t] = t - starts[s];
    const float *weights = tp_interpreter_data(it, p->weights);
    float total = 0;
    for (int t = 0; t < TOKENS; t++)
        total += weights[t];
    *(float *)tp_interpreter_data(it, p->scale) = 1 / total;
}

static void check_logits_and_loss(const program *p, const tp_interpreter *it,
                                  const tp_safetensors *st)
{
    double logits = deviation(tp_interpreter_data(it, p->logits), expected(st, "logits"));
    const float *logp = tp_interpreter_data(it, p->loss + 1);
    const float *want = expected(st, "logprobs")->data;
    const float *weights = tp_interpreter_data(it, p->weights);
    const float *scale = tp_interpreter_data(it, p->scale);
    float loss = *(const float *)tp_interpreter_data(it, p->loss) * *scale;
    print_message("logits %.1e, ", logits);
    assert_true(logits < 1e-5);
    for (int t = 0; t < TOKENS; t++)
        assert_true(fabsf(logp[t] - (weights[t] != 0 ? want[t] : 0)) < 2e-5f);
    assert_true(deviation(&loss, expected(st, "loss")) < 1e-5);
}

static double check_gradients(const loaded *l, const program *p, const tp_interpreter *it,
                              const tp_safetensors *st)
{
    size_t n;
    double worst = 0;
    const tp_param *params = tp_model_params(l->model, &n);
    for (size_t i = 0; i < n; i++) {
        char name[256];
        snprintf(name, sizeof name, "grad.%s", params[i].name);
        const tp_tensor_entry *want = expected(st, name);
        tp_ref state = tp_graph_find(&p->g, name);
        assert_true(state);
        assert_int_equal(want->bytes, tp_value_bytes(&p->g.values[state]));
        double d = deviation(tp_interpreter_data(it, state), want);
        if (!(d < 1e-5))
            fail_msg("%s deviates by %.2e", name, d);
        worst = fmax(worst, d);
    }
    return worst;
}

static void check_family(const char *family, size_t n_params)
{
    loaded l = load_reference(family);
    tp_safetensors *st = open_expected(family);
    program p = build(l.model);
    differentiate(&p, l.model);
    tp_interpreter it;
    tp_interpreter_init(&it, &p.g, device_of("ref", 1), &l.states);
    fill_inputs(&p, &it, st);

    tp_interpreter_run(&it);

    assert_int_equal(l.report.n_loaded, n_params);
    assert_int_equal(l.report.n_expected, n_params);
    assert_int_equal(l.report.n_unused, 0);
    assert_false(l.report.has_nonfinite);
    assert_int_equal(l.report.file_dtype, TP_DTYPE_F32);
    print_message("%s: ", family);
    check_logits_and_loss(&p, &it, st);
    print_message("worst gradient %.1e\n", check_gradients(&l, &p, &it, st));
    tp_interpreter_release(&it);
    tp_graph_release(&p.g);
    tp_safetensors_close(st);
    release(&l);
}

static void llama_computes_what_pytorch_does(void **state) { check_family("llama", 21); }
static void smollm2_computes_what_pytorch_does(void **state) { check_family("smollm2", 29); }
static void qwen2_computes_what_pytorch_does(void **state) { check_family("qwen2", 26); }
static void qwen3_computes_what_pytorch_does(void **state) { check_family("qwen3", 24); }
static void gpt2_computes_what_pytorch_does(void **state) { check_family("gpt2", 28); }

/* The first sequence in three pieces through the caches gives the same logits. */
static void check_cached(const char *family)
{
    enum { CHUNK = 8, BLOCKS = 3, PLACES = 8, LENGTH = 17 };
    loaded l = load_reference(family);
    tp_safetensors *st = open_expected(family);
    int64_t rows = CHUNK, one_table[] = {1, BLOCKS}, vocab = tp_model_get_info(l.model)->vocab;
    tp_graph g;
    tp_ref hidden, head;
    assert_int_equal(tp_graph_init(&g, NULL), TP_OK);
    tp_forward f = {.tokens = tp_graph_input(&g, "tokens", TP_DTYPE_I32, 1, &rows),
                    .positions = tp_graph_input(&g, "positions", TP_DTYPE_I32, 1, &rows),
                    .max_positions = POSITIONS,
                    .cache_blocks = BLOCKS,
                    .block_tokens = PLACES,
                    .cache_dtype = TP_DTYPE_F32,
                    .slots = tp_graph_input(&g, "slots", TP_DTYPE_I32, 1, &rows),
                    .tables = tp_graph_input(&g, "tables", TP_DTYPE_I32, 2, one_table)};
    assert_int_equal(tp_model_forward(l.model, &g, &f, &hidden, &head, NULL), TP_OK);
    tp_ref logits = tp_graph_op(&g, TP_OP_linear, NULL, 2, (tp_ref[]){hidden, head}, "lm_head");
    tp_graph_output(&g, logits);
    assert_int_equal(tp_graph_verify(&g, NULL), TP_OK);
    for (uint32_t i = 1; i < g.n_nodes; i++) {
        const tp_value *v = &g.values[g.nodes[i].out[0]];
        if (v->tensor && v->tensor->role == TP_ROLE_CACHE)
            assert_int_equal(tp_states_declare(&l.states, v->tensor, NULL), TP_OK);
    }
    assert_int_equal(tp_states_alloc(&l.states, device_of("ref", 1), NULL), TP_OK);
    tp_interpreter it;
    tp_interpreter_init(&it, &g, device_of("ref", 1), &l.states);
    const int32_t *ids = expected(st, "input_ids")->data;
    int32_t *tokens = tp_interpreter_data(&it, f.tokens);
    int32_t *positions = tp_interpreter_data(&it, f.positions);
    memcpy(tp_interpreter_data(&it, f.tables), (int32_t[BLOCKS]){2, 0, 1},
           BLOCKS * sizeof(int32_t));
    float got[LENGTH * 160];
    assert_true(vocab <= 160);

    for (int at = 0; at < LENGTH; at += CHUNK) {
        int n = TP_MIN(LENGTH - at, CHUNK);
        for (int t = 0; t < CHUNK; t++) {
            tokens[t] = t < n ? ids[at + t] : -1;
            positions[t] = t < n ? at + t : -1;
        }
        tp_interpreter_run(&it);
        memcpy(got + at * vocab, tp_interpreter_data(&it, logits),
               (size_t)(n * vocab) * sizeof *got);
    }

    tp_tensor_entry first = *expected(st, "logits");
    first.bytes = (size_t)(LENGTH * vocab) * sizeof *got;
    assert_true(deviation(got, &first) < 1e-5);
    tp_interpreter_release(&it);
    tp_graph_release(&g);
    tp_safetensors_close(st);
    release(&l);
}

static void cached_llama_gives_the_same_logits(void **state) { check_cached("llama"); }
static void cached_qwen3_gives_the_same_logits(void **state) { check_cached("qwen3"); }
static void cached_gpt2_gives_the_same_logits(void **state) { check_cached("gpt2"); }

static void check_text(const char *family, const char *const lines[])
{
    loaded l = load_reference(family);
    program p = build(l.model);
    tp_buf text = {0};

    assert_int_equal(tp_graph_verify(&p.g, NULL), TP_OK);
    tp_graph_print(&p.g, &text);

    const char *at = text.data;
    for (int i = 0; lines[i]; i++) {
        at = strstr(at, lines[i]);
        if (!at)
            fail_msg("%s: the graph lacks, in this order: %s\n%s", family, lines[i], text.data);
    }
    tp_graph copy;
    assert_int_equal(tp_graph_parse("printed", text.data, text.len, &copy, NULL), TP_OK);
    assert_int_equal(copy.n_nodes, p.g.n_nodes);
    tp_graph_release(&copy);
    tp_buf_release(&text);
    tp_graph_release(&p.g);
    release(&l);
}

static void graphs_print_blocks_and_labels(void **state)
{
    static const char *const qwen3[] = {
        "state f32[64,12] \"rope.table\" role=constant",
        "\"embed\"",
        "block=0 \"layers.0.input_norm\"",
        "linear",
        "block=0 \"layers.0.q_proj\"",
        "f32[48,48], f32[48,4] block=0 \"layers.0.q_norm\"",
        "{head_dim=12} : f32[48,48] block=0 \"layers.0.q_rope\"",
        "{heads=4, kv_heads=2, head_dim=12, scale=0.28867513}",
        "block=0 \"layers.0.attention_residual\"",
        "silu",
        "mul",
        "block=1 \"layers.1.mlp_residual\"",
        "eps=1e-06",
        "\"norm\"",
        NULL,
    };
    static const char *const gpt2[] = {
        "\"wte\"",
        "\"wpe\"",
        "layernorm",
        "{transposed=1} : f32[48,144] block=0 \"layers.0.c_attn\"",
        "{n0=48, n1=48, n2=48}",
        "gelu",
        "{tanh=1}",
        "\"ln_f\"",
        NULL,
    };
    check_text("qwen3", qwen3);
    check_text("gpt2", gpt2);
}

static void learned_positions_are_a_limit(void **state)
{
    loaded l = load_reference("gpt2");
    tp_graph g;
    int64_t n = 4, s = 2;
    tp_error err;
    tp_ref hidden, head;
    assert_int_equal(tp_graph_init(&g, NULL), TP_OK);
    tp_forward f = {.tokens = tp_graph_input(&g, "tokens", TP_DTYPE_I32, 1, &n),
                    .positions = tp_graph_input(&g, "positions", TP_DTYPE_I32, 1, &n),
                    .cu = tp_graph_input(&g, "cu", TP_DTYPE_I32, 1, &s),
                    .max_positions = 65};

    assert_int_equal(tp_model_forward(l.model, &g, &f, &hidden, &head, &err), TP_ERR_CONFIG);

    assert_string_equal(err.message,
                        "sequences of 65 tokens are asked for; this model has 64 positions");
    tp_graph_release(&g);
    release(&l);
}

static tp_buf read(const char *folder, const char *name)
{
    tp_buf path = {0}, data = {0};
    tp_error err = {0};
    tp_buf_addf(&path, "%s/%s", folder, name);
    if (tp_file_read(path.data, 0, &data, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&path);
    return data;
}

static void assert_same_file(const char *a_folder, const char *b_folder, const char *name)
{
    tp_buf a = read(a_folder, name), b = read(b_folder, name);
    if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0)
        fail_msg("%s differs", name);
    tp_buf_release(&a);
    tp_buf_release(&b);
}

static void saving_gives_back_the_bytes_that_came(void **state)
{
    static const char *const families[] = {"llama", "smollm2", "qwen2", "gpt2"};
    for (size_t i = 0; i < TP_COUNTOF(families); i++) {
        char from[512], to[128];
        loaded l = load_reference(families[i]);
        tp_error err = {0};
        snprintf(from, sizeof from, REFERENCE "%s", families[i]);
        snprintf(to, sizeof to, "%s/%s", scratch, families[i]);

        if (tp_model_save(l.model, &l.states, to, TP_DTYPE_F32, 0,
                          &(tp_companions){.tokenizer = from}, &err) != TP_OK)
            fail_msg("%s", err.message);

        assert_same_file(from, to, "model.safetensors");
        assert_same_file(from, to, "config.json");
        assert_same_file(from, to, "generation_config.json");
        release(&l);
    }
}

static void assert_same_weights(const loaded *a, const loaded *b)
{
    size_t n;
    const tp_param *params = tp_model_params(a->model, &n);
    for (size_t i = 0; i < n; i++) {
        const tp_tensor *x = tp_states_find(&a->states, params[i].name);
        const tp_tensor *y = tp_states_find(&b->states, params[i].name);
        assert_memory_equal(data_of(x), data_of(y), x->bytes);
    }
}

static void shards_are_written_and_read(void **state)
{
    char to[128];
    loaded a = load_reference("qwen3"); /* in two files itself */
    snprintf(to, sizeof to, "%s/shards", scratch);
    assert_int_equal(a.report.n_files, 2);

    assert_int_equal(tp_model_save(a.model, &a.states, to, TP_DTYPE_F32, 30000, NULL, NULL), TP_OK);

    loaded b = load(to);
    assert_int_equal(b.report.n_files, 4);
    assert_int_equal(b.report.n_loaded, 24);
    assert_same_weights(&a, &b);
    for (int i = 1; i <= 4; i++) {
        char file[200];
        snprintf(file, sizeof file, "%s/model-%05d-of-00004.safetensors", to, i);
        int64_t size = tp_file_size(file);
        assert_true(size > 0 && size < 30000 + 2000); /* data and header */
    }
    tp_buf index = read(to, "model.safetensors.index.json");
    assert_non_null(strstr(index.data, "\"total_parameters\": 28784"));
    assert_non_null(strstr(index.data, "\"total_size\": 115136"));
    assert_non_null(strstr(index.data, "model-00004-of-00004.safetensors"));
    tp_buf_release(&index);
    release(&a);
    release(&b);
}

static void bf16_survives_a_round_trip(void **state)
{
    char once[128], twice[128];
    loaded a = load_reference("smollm2");
    snprintf(once, sizeof once, "%s/once", scratch);
    snprintf(twice, sizeof twice, "%s/twice", scratch);

    assert_int_equal(tp_model_save(a.model, &a.states, once, TP_DTYPE_BF16, 0, NULL, NULL), TP_OK);
    loaded b = load(once);
    assert_int_equal(b.report.file_dtype, TP_DTYPE_BF16);
    assert_int_equal(tp_model_save(b.model, &b.states, twice, b.report.file_dtype, 0,
                                   &(tp_companions){.tokenizer = once}, NULL),
                     TP_OK);

    assert_same_file(once, twice, "model.safetensors");
    tp_buf config = read(once, "config.json");
    assert_non_null(strstr(config.data, "\"torch_dtype\": \"bfloat16\""));
    tp_buf_release(&config);
    release(&a);
    release(&b);
}

/* A copy of a reference folder's configuration with other weights. */
static const char *folder_with(const char *name, const char *family, const tp_tensor_out *tensors,
                               size_t n)
{
    static char to[128];
    char file[512];
    tp_buf config = {0};
    snprintf(to, sizeof to, "%s/%s", scratch, name);
    assert_int_equal(tp_dir_make(to, NULL), TP_OK);
    snprintf(file, sizeof file, REFERENCE "%s/config.json", family);
    assert_int_equal(tp_file_read(file, 0, &config, NULL), TP_OK);
    snprintf(file, sizeof file, "%s/config.json", to);
    assert_int_equal(tp_file_write_atomic(file, config.data, config.len, NULL), TP_OK);
    snprintf(file, sizeof file, "%s/model.safetensors", to);
    assert_int_equal(tp_safetensors_write(file, tensors, n, NULL), TP_OK);
    tp_buf_release(&config);
    return to;
}

enum { MAX_TENSORS = 32 };

/* The parameters as they would be saved; returns how many. */
static size_t tensors_of(const loaded *l, tp_tensor_out out[MAX_TENSORS])
{
    size_t n;
    const tp_param *params = tp_model_params(l->model, &n);
    assert_true(n <= MAX_TENSORS);
    for (size_t i = 0; i < n; i++)
        out[i] = (tp_tensor_out){.name = params[i].name,
                                 .dtype = TP_DTYPE_F32,
                                 .rank = params[i].rank,
                                 .dim = {params[i].dim[0], params[i].dim[1]},
                                 .source = data_of(tp_states_find(&l->states, params[i].name)),
                                 .src_dtype = TP_DTYPE_F32};
    return n;
}

static void gpt2_without_prefix_and_with_buffers_is_loaded(void **state)
{
    tp_tensor_out out[MAX_TENSORS + 3];
    static const float buffer[4];
    loaded a = load_reference("gpt2");
    size_t n = tensors_of(&a, out);
    for (size_t i = 0; i < n; i++)
        out[i].name += strlen("transformer.");
    out[n++] = (tp_tensor_out){.name = "h.0.attn.bias",
                               .dtype = 0,
                               .rank = 2,
                               .dim = {2, 2},
                               .source = buffer,
                               .src_dtype = 0};
    out[n++] = (tp_tensor_out){.name = "h.0.attn.masked_bias",
                               .dtype = 0,
                               .rank = 0,
                               .dim = {0},
                               .source = buffer,
                               .src_dtype = 0};
    out[n++] = (tp_tensor_out){.name = "score.weight",
                               .dtype = 0,
                               .rank = 1,
                               .dim = {4},
                               .source = buffer,
                               .src_dtype = 0};

    loaded b = load(folder_with("bare", "gpt2", out, n));

    assert_int_equal(b.report.n_loaded, 28);
    assert_int_equal(b.report.n_unused, 1);
    assert_string_equal(b.report.unused_names, "score.weight");
    assert_same_weights(&a, &b);
    release(&a);
    release(&b);
}

/* As transformers 5: a head that differs is kept beside the embedding, whatever config.json
 * says; a head alone is the embedding. */
static void a_tied_head_in_the_file_is_compared(void **state)
{
    tp_tensor_out out[MAX_TENSORS + 1];
    loaded a = load_reference("smollm2");
    size_t n = tensors_of(&a, out);
    out[n] = out[0];
    out[n].name = "lm_head.weight";
    loaded same = load(folder_with("tied", "smollm2", out, n + 1));
    float *other = calloc((size_t)(out[0].dim[0] * out[0].dim[1]), sizeof *other);
    out[n].source = other;
    loaded different = load(folder_with("untied", "smollm2", out, n + 1));

    assert_false(same.report.head_was_embedding);
    assert_true(tp_model_get_info(same.model)->tied);
    assert_int_equal(same.report.n_unused, 0);
    assert_false(different.report.head_was_embedding);
    assert_false(tp_model_get_info(different.model)->tied);
    assert_int_equal(different.report.n_unused, 0);
    const float *head = data_of(tp_states_find(&different.states, "lm_head.weight"));
    assert_true(head[0] == 0 && head[1] == 0);
    out[0].name = "lm_head.weight";
    loaded alone = load(folder_with("alone", "smollm2", out, n));
    assert_true(alone.report.head_was_embedding);
    assert_same_weights(&a, &alone);
    release(&alone);
    free(other);
    release(&same);
    release(&different);
    release(&a);
}

static void hear(void *user, const char *text) { tp_buf_addf(user, "%s\n", text); }

/* A head that differs, a tensor that nobody takes, norms of another type than the embedding. */
static void what_training_would_change_in_silence_is_said(void **state)
{
    tp_tensor_out out[MAX_TENSORS + 2];
    TP_OWN(tp_buf) said = {0};
    loaded a = load_reference("smollm2");
    size_t n = tensors_of(&a, out);
    float *head = calloc((size_t)(out[0].dim[0] * out[0].dim[1]), sizeof *head);
    out[n] = out[0];
    out[n].name = "lm_head.weight";
    out[n].source = head;
    out[n + 1] = out[1];
    out[n + 1].name = "score.weight";
    for (size_t i = 0; i < n + 2; i++)
        if (out[i].rank == 2)
            out[i].dtype = TP_DTYPE_BF16;

    loaded b = load(folder_with("mixed", "smollm2", out, n + 2));
    tp_model_say(b.model, &b.report, hear, &said);

    assert_non_null(strstr(said.data, "the file holds a head that differs: both are used"));
    assert_non_null(strstr(said.data, "1 tensor of the file not used: score.weight\n"));
    assert_non_null(strstr(said.data, "the embedding is bf16, 7 tensors are not (first: "));
    assert_non_null(strstr(said.data, "a model is written in one type, that of the embedding\n"));
    free(head);
    release(&a);
    release(&b);
}

static void nonfinite_weights_are_named(void **state)
{
    tp_tensor_out out[MAX_TENSORS];
    loaded a = load_reference("smollm2");
    size_t n = tensors_of(&a, out);
    ((float *)data_of(tp_states_find(&a.states, "model.layers.1.mlp.up_proj.weight")))[77] = NAN;

    loaded b = load(folder_with("nan", "smollm2", out, n));

    assert_true(b.report.has_nonfinite);
    assert_string_equal(b.report.nonfinite_name, "model.layers.1.mlp.up_proj.weight");
    release(&a);
    release(&b);
}

static void refuse_load(const char *folder, const char *family, const tp_tensor_out *out, size_t n,
                        const char *message)
{
    loaded l = {0};
    tp_error err = {0};
    const char *path = folder_with(folder, family, out, n);
    assert_int_equal(tp_model_open(path, &l.model, NULL), TP_OK);
    declare(&l);

    assert_int_not_equal(tp_model_load(l.model, &l.states, &l.report, &err), TP_OK);

    if (!strstr(err.message, message))
        fail_msg("%s", err.message);
    release(&l);
}

static void what_is_wrong_in_the_weights_is_named(void **state)
{
    tp_tensor_out out[MAX_TENSORS + 1];
    loaded a = load_reference("llama");
    size_t n = tensors_of(&a, out);

    refuse_load("headless", "llama", out, n - 1,
                "headless: 1 of 21 tensors are missing: lm_head.weight; if the head is the "
                "embedding, config.json must say \"tie_word_embeddings\": true");
    refuse_load("short", "llama", out, n - 2,
                "short: 2 of 21 tensors are missing: model.norm.weight, lm_head.weight");
    out[0].dim[0] = 130;
    refuse_load("vocab", "llama", out, n, "tensor 'model.embed_tokens.weight' is [130, 40], but");
    refuse_load("vocab", "llama", out, n, "implies [131, 40] ([vocab_size, width])");
    out[0].dim[0] = 131;
    out[0].dtype = out[0].src_dtype = TP_DTYPE_I32;
    refuse_load("dtype", "llama", out, n,
                "tensor 'model.embed_tokens.weight' is I32; weights must be F32, BF16, F16 or F64");
    out[0].dtype = out[0].src_dtype = TP_DTYPE_F32;
    out[n] = out[0];
    out[n].name = "embed_tokens.weight";
    refuse_load("again", "llama", out, n + 1, "tensor 'model.embed_tokens.weight' is in ");
    release(&a);
}

static void folders_without_weights_say_so(void **state)
{
    loaded l = {0};
    tp_error err;
    char path[128];
    need_data("llama");
    assert_int_equal(tp_model_open(REFERENCE "llama/config.json", &l.model, NULL), TP_OK);
    declare(&l);
    assert_int_equal(tp_model_load(l.model, &l.states, &l.report, &err), TP_ERR_CONFIG);
    release(&l);

    const char *folder = folder_with("empty", "llama", NULL, 0);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(remove(path), 0);
    assert_int_equal(tp_model_open(folder, &l.model, NULL), TP_OK);
    declare(&l);
    assert_int_equal(tp_model_load(l.model, &l.states, &l.report, &err), TP_ERR_IO);
    assert_non_null(
        strstr(err.message, "has neither model.safetensors nor model.safetensors.index.json"));
    snprintf(path, sizeof path, "%s/pytorch_model.bin", folder);
    assert_int_equal(tp_file_write_atomic(path, "x", 1, NULL), TP_OK);
    assert_int_equal(tp_model_load(l.model, &l.states, &l.report, &err), TP_ERR_UNSUPPORTED);
    release(&l);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), NULL), TP_OK);
}

static bool has(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return tp_file_exists(path);
}

static void companions_of_the_weights_are_copied(void **state)
{
    char from[128], to[128], templates[256];
    tp_tensor_out out[MAX_TENSORS];
    loaded a = load_reference("llama");
    snprintf(from, sizeof from, "%s", folder_with("from", "llama", out, tensors_of(&a, out)));
    snprintf(to, sizeof to, "%s/to", scratch);
    put(from, "tokenizer.json", "{}");
    put(from, "chat_template.jinja", "{{ x }}\n");
    snprintf(templates, sizeof templates, "%s/additional_chat_templates", from);
    assert_int_equal(tp_dir_make(templates, NULL), TP_OK);
    put(templates, "tool_use.jinja", "{{ tools }}\n");
    put(from, "LICENSE.txt", "free");
    put(from, "README.md", "about another model");
    put(from, "optimizer.bin", "x");

    assert_int_equal(tp_model_save(a.model, &a.states, to, TP_DTYPE_F16, 0,
                                   &(tp_companions){.tokenizer = from}, NULL),
                     TP_OK);
    /* into the folder it is copied from: nothing may be truncated */
    assert_int_equal(tp_model_save(a.model, &a.states, to, TP_DTYPE_F32, 0,
                                   &(tp_companions){.tokenizer = to}, NULL),
                     TP_OK);

    assert_same_file(from, to, "tokenizer.json");
    assert_same_file(from, to, "chat_template.jinja");
    assert_same_file(from, to, "additional_chat_templates/tool_use.jinja");
    assert_same_file(from, to, "LICENSE.txt");
    assert_same_file(from, to, "model.safetensors");
    assert_same_file(from, to, "config.json");
    assert_false(has(to, "README.md"));
    assert_false(has(to, "optimizer.bin"));
    release(&a);
}

static void generation_config_says_where_texts_end(void **state)
{
    tp_model *model;
    tp_error err;
    need_data("smollm2");
    const char *folder = folder_with("eos", "smollm2", NULL, 0);
    put(folder, "generation_config.json", "{\"eos_token_id\": [7, 9]}");

    assert_int_equal(tp_model_open(folder, &model, NULL), TP_OK);

    assert_int_equal(tp_model_get_info(model)->n_eos, 2);
    assert_int_equal(tp_model_get_info(model)->eos[1], 9);
    tp_model_free(model);
    put(folder, "generation_config.json", "{\"eos_token_id\": \"</s>\"}");
    assert_int_equal(tp_model_open(folder, &model, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "generation_config.json:1: \"eos_token_id\" is \"</s>\""));
}

static loaded random_model(uint64_t seed)
{
    loaded l = {0};
    tp_error err = {0};
    if (tp_model_open(TP_SOURCE_DIR "/tests/data/reference/gpt2/config.json", &l.model, &err) !=
        TP_OK)
        fail_msg("%s", err.message);
    declare(&l);
    MUST(tp_model_init_random(l.model, &l.states, seed, 0, NULL));
    return l;
}

static double rms(const tp_tensor *s, double *ret_mean)
{
    const float *x = data_of(s);
    size_t n = s->bytes / sizeof *x;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    *ret_mean = sum / (double)n;
    return sqrt(squares / (double)n);
}

static void random_weights_follow_the_seed(void **state)
{
    need_data("gpt2");
    loaded a = random_model(7), again = random_model(7), b = random_model(8);
    double mean;
    const char *fc = "transformer.h.1.mlp.c_fc.weight", *out = "transformer.h.1.mlp.c_proj.weight";
    const tp_tensor *w = tp_states_find(&a.states, fc), *r = tp_states_find(&a.states, out);

    assert_same_weights(&a, &again);
    assert_memory_not_equal(data_of(w), data_of(tp_states_find(&b.states, fc)), w->bytes);
    assert_memory_not_equal(data_of(w),
                            data_of(tp_states_find(&a.states, "transformer.h.0.mlp.c_fc.weight")),
                            w->bytes);
    /* 4416 values of deviation 0.02, and 0.02 / sqrt(4) on the way out */
    assert_true(fabs(rms(w, &mean) - 0.02) < 0.001);
    assert_true(fabs(mean) < 0.0015);
    assert_true(fabs(rms(r, &mean) - 0.01) < 0.0005);
    assert_true(rms(tp_states_find(&a.states, "transformer.ln_f.weight"), &mean) == 1);
    assert_true(rms(tp_states_find(&a.states, "transformer.ln_f.bias"), &mean) == 0);
    release(&a);
    release(&again);
    release(&b);
}

/* The n-th write, sync or open fails: the save fails too, never claims success. */
static void every_failing_write_is_reported(void **state)
{
    char to[128], from[512];
    loaded l = load_reference("llama");
    snprintf(from, sizeof from, REFERENCE "llama");
    snprintf(to, sizeof to, "%s/fault", scratch);
    tp_fault_arm(0, false);
    assert_int_equal(tp_model_save(l.model, &l.states, to, TP_DTYPE_F32, 30000,
                                   &(tp_companions){.tokenizer = from}, NULL),
                     TP_OK);
    uint64_t calls = tp_fault_count();
    assert_true(calls > 10);

    for (uint64_t n = 1; n <= calls; n++) {
        tp_error err = {0};
        assert_int_equal(tp_dir_remove(to, NULL), TP_OK);
        tp_fault_arm(n, false);
        tp_status status = tp_model_save(l.model, &l.states, to, TP_DTYPE_F32, 30000,
                                         &(tp_companions){.tokenizer = from}, &err);
        tp_fault_arm(0, false);
        assert_int_equal(status, TP_ERR_OUTPUT);
        assert_non_null(strstr(err.message, to));
    }
    release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_computes_what_pytorch_does),
        cmocka_unit_test(smollm2_computes_what_pytorch_does),
        cmocka_unit_test(qwen2_computes_what_pytorch_does),
        cmocka_unit_test(qwen3_computes_what_pytorch_does),
        cmocka_unit_test(gpt2_computes_what_pytorch_does),
        cmocka_unit_test(cached_llama_gives_the_same_logits),
        cmocka_unit_test(cached_qwen3_gives_the_same_logits),
        cmocka_unit_test(cached_gpt2_gives_the_same_logits),
        cmocka_unit_test(graphs_print_blocks_and_labels),
        cmocka_unit_test(learned_positions_are_a_limit),
        cmocka_unit_test(saving_gives_back_the_bytes_that_came),
        cmocka_unit_test(shards_are_written_and_read),
        cmocka_unit_test(bf16_survives_a_round_trip),
        cmocka_unit_test(gpt2_without_prefix_and_with_buffers_is_loaded),
        cmocka_unit_test(a_tied_head_in_the_file_is_compared),
        cmocka_unit_test(what_training_would_change_in_silence_is_said),
        cmocka_unit_test(nonfinite_weights_are_named),
        cmocka_unit_test(what_is_wrong_in_the_weights_is_named),
        cmocka_unit_test(folders_without_weights_say_so),
        cmocka_unit_test(companions_of_the_weights_are_copied),
        cmocka_unit_test(generation_config_says_where_texts_end),
        cmocka_unit_test(random_weights_follow_the_seed),
        cmocka_unit_test(every_failing_write_is_reported),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
