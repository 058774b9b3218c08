/* bench_subjects.c - the kinds of subjects by name, and what all of them ask for. */
#include "api/bench_subjects.h"

#include <string.h>

#include "base/cpu.h"
#include "base/files.h"
#include "base/limits.h"
#include "engine/device/memory.h"

static const tp_bench_kind *const kinds[] = {&tp_bench_train,    &tp_bench_generate,
                                             &tp_bench_tokenize, &tp_bench_kernel,
                                             &tp_bench_trace,    &tp_bench_grpo};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

const tp_bench_kind *tp_bench_kind_find(const char *name)
{
    for (int i = 0; i < N_KINDS; i++) {
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    }
    return NULL;
}

void tp_bench_kinds(tp_buf *out)
{
    for (int i = 0; i < N_KINDS; i++)
        tp_buf_addf(out, "%s%s", i ? ", " : "", kinds[i]->name);
}

static const tp_metric shared_metrics[TP_BENCH_SHARED] = {[TP_BENCH_PEAK] = TP_PEAK_MEMORY_ROW,
                                                          [TP_BENCH_MEAN] = TP_MEAN_MEMORY_ROW,
                                                          [TP_BENCH_ALLOCATIONS] =
                                                              TP_ALLOCATIONS_ROW,
                                                          [TP_BENCH_RESIDENT] = TP_RESIDENT_ROW};

static tp_subject *new_subject(const tp_bench_kind *kind, const tp_bench_case *c)
{
    TP_ASSERT(kind->n_metrics <= TP_BENCH_MAX_OWN && kind->size >= sizeof(tp_bench_subject));
    tp_bench_subject *s = tp_new(1, kind->size);
    memcpy(s->metrics, kind->metrics, kind->n_metrics * sizeof *s->metrics);
    memcpy(s->metrics + kind->n_metrics, shared_metrics, sizeof shared_metrics);
    s->c = c;
    s->subject = (tp_subject){.class = &kind->class,
                              .metrics = s->metrics,
                              .n_metrics = kind->n_metrics + TP_BENCH_SHARED,
                              .work_unit = kind->work_unit,
                              .work = kind->works_in_steps ? (uint64_t)c->steps : 0};
    return &s->subject;
}

tp_status tp_bench_open(void *context, const char *benchmark, const tp_json *options,
                        tp_subject **ret, tp_error *err)
{
    static tp_bench_case c;
    static tp_arena arena;
    (void)context;
    if (!arena.reserved)
        TP_TRY(tp_arena_init(&arena, 1 << 20, err));
    TP_TRY(tp_bench_case_read("options", options, &arena, &c, err));
    if (strcmp(c.device, "cpu") != 0)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "there is no device '%s' here; known is cpu",
                       c.device);
    const tp_bench_kind *kind = tp_bench_kind_find(c.kind);
    if (!kind)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "'%s': this version has no benchmarks of kind '%s'",
                       benchmark, c.kind);
    *ret = new_subject(kind, &c);
    return TP_OK;
}

/* ---- models ---- */

static const char *const families[][3] = {
    /* name, model_type, members of its own */
    {"llama", "llama", "\"rms_norm_eps\": 1e-5"},
    {"qwen2", "qwen2", "\"rms_norm_eps\": 1e-6"},
    {"qwen3", "qwen3", "\"rms_norm_eps\": 1e-6"},
};

static const struct {
    const char *suffix;
    int hidden, intermediate, layers, heads, kv_heads, vocab;
} sizes[] = {{"", 64, 192, 2, 4, 2, 512}, {"-small", 256, 768, 4, 8, 4, 4096}};

bool tp_bench_config_text(const char *name, char *out, size_t cap)
{
    char wanted[64];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
            snprintf(wanted, sizeof wanted, "%s%s", families[f][0], sizes[s].suffix);
            if (strcmp(wanted, name) != 0)
                continue;
            snprintf(out, cap,
                     "{\"model_type\": \"%s\", \"vocab_size\": %d, \"hidden_size\": %d, "
                     "\"intermediate_size\": %d, \"num_hidden_layers\": %d, "
                     "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, "
                     "\"head_dim\": %d, \"max_position_embeddings\": 65536, "
                     "\"rope_theta\": 10000.0, \"hidden_act\": \"silu\", "
                     "\"tie_word_embeddings\": true, %s}",
                     families[f][1], sizes[s].vocab, sizes[s].hidden, sizes[s].intermediate,
                     sizes[s].layers, sizes[s].heads, sizes[s].kv_heads,
                     sizes[s].hidden / sizes[s].heads, families[f][2]);
            return true;
        }
        snprintf(wanted, sizeof wanted, "gpt2%s", sizes[s].suffix);
        if (strcmp(wanted, name) == 0) {
            snprintf(out, cap,
                     "{\"model_type\": \"gpt2\", \"vocab_size\": %d, \"n_embd\": %d, "
                     "\"n_inner\": %d, \"n_layer\": %d, \"n_head\": %d, "
                     "\"n_positions\": 4096, \"activation_function\": \"gelu_new\", "
                     "\"layer_norm_epsilon\": 1e-5, \"resid_pdrop\": 0.0, "
                     "\"embd_pdrop\": 0.0, \"attn_pdrop\": 0.0}",
                     sizes[s].vocab, sizes[s].hidden, 4 * sizes[s].hidden, sizes[s].layers,
                     sizes[s].heads);
            return true;
        }
    }
    return false;
}

tp_status tp_bench_model(const char *name, tp_model **ret, tp_error *err)
{
    char text[1024];
    if (tp_bench_config_text(name, text, sizeof text))
        return tp_model_parse(name, text, strlen(text), ret, err);
    if (!tp_file_exists(name) && !tp_dir_exists(name))
        return tp_fail(err, TP_ERR_CONFIG,
                       "there is no model '%s': name a folder, a config.json, or one of llama, "
                       "qwen2, qwen3, gpt2 (with -small: larger)",
                       name);
    return tp_model_open(name, ret, err);
}

tp_status tp_bench_precision(const char *name, tp_dtype *ret, tp_error *err)
{
    bool single = strcmp(name, "float32") == 0;
    if (!single && strcmp(name, "bfloat16") != 0)
        return tp_fail(err, TP_ERR_CONFIG, "precision is float32 or bfloat16, not '%s'", name);
    *ret = single ? TP_DTYPE_F32 : TP_DTYPE_BF16;
    return TP_OK;
}

tp_status tp_bench_device(const tp_bench_case *c, tp_device **ret, tp_error *err)
{
    const tp_backend *backend = tp_backend_find(c->backend);
    const tp_device_options options = {.threads = tp_bench_threads(c)};
    if (!backend)
        return tp_fail(err, TP_ERR_CONFIG, "there is no backend '%s'; known are cpu, ref and guard",
                       c->backend);
    return tp_device_open(backend, &options, ret, err);
}

int tp_bench_threads(const tp_bench_case *c)
{
    return c->threads > 0 ? (int)c->threads : tp_cpu_count();
}

/* ---- memory ---- */

void tp_bench_fill_memory(tp_bench_sample *sample, size_t first, double mean_bytes)
{
    tp_mem_stats stats = tp_mem_get_stats();
    sample->values[first + TP_BENCH_PEAK] = (double)stats.total_peak;
    sample->values[first + TP_BENCH_MEAN] = mean_bytes;
    sample->values[first + TP_BENCH_ALLOCATIONS] = (double)stats.n_allocs;
    sample->values[first + TP_BENCH_RESIDENT] =
        1024 * tp_system_number("/proc/self/status", "VmHWM");
}
