/* train_step.c - tokens per second and memory of a training step on synthetic data.
 *
 *     train_step CONFIG.json [batch=4] [seq=512] [steps=5] [dtype=bf16|f32]
 *                [recompute=none] [threads=2] [backend=cpu|ref] [off=pass,pass] [table=1]
 *
 * CONFIG.json is a model configuration; weights are random.  A step is forward,
 * backward, gradient norm and AdamW on batch sequences of `seq` random tokens.
 * Prints one JSON line. */
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/train/session.h"

/* A benchmark has nothing to say once the device fails. */
#define MUST(call) TP_ASSERT((call) == TP_OK)

typedef struct {
    const char *config, *recompute;
    int64_t batch, seq, steps;
    tp_dtype dtype;
    int threads, table;
    const tp_backend *backend;
    const char *off[16];
    size_t n_off;
} arguments;

static void parse(int argc, char **argv, arguments *a)
{
    *a = (arguments){.recompute = "none",
                     .batch = 4,
                     .seq = 512,
                     .steps = 5,
                     .dtype = TP_DTYPE_BF16,
                     .threads = 2,
                     .backend = &tp_backend_cpu};
    for (int i = 1; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        if (!eq) {
            a->config = argv[i];
            continue;
        }
        *eq = 0;
        const char *key = argv[i], *value = eq + 1;
        if (!strcmp(key, "batch"))
            a->batch = atoll(value);
        else if (!strcmp(key, "seq"))
            a->seq = atoll(value);
        else if (!strcmp(key, "steps"))
            a->steps = atoll(value);
        else if (!strcmp(key, "threads"))
            a->threads = atoi(value);
        else if (!strcmp(key, "table"))
            a->table = atoi(value);
        else if (!strcmp(key, "dtype"))
            a->dtype = strcmp(value, "f32") ? TP_DTYPE_BF16 : TP_DTYPE_F32;
        else if (!strcmp(key, "recompute"))
            a->recompute = value;
        else if (!strcmp(key, "backend"))
            a->backend = tp_backend_find(value);
        else if (!strcmp(key, "off"))
            for (char *p = strtok(eq + 1, ","); p && a->n_off < 16; p = strtok(NULL, ","))
                a->off[a->n_off++] = p;
        else if (!strcmp(key, "isa")) {
            tp_isa isa;
            tp_error err;
            if (!tp_isa_parse(value, &isa) || tp_cpu_force_isa(isa, &err) != TP_OK)
                exit(2);
        }
    }
}

static int fail(const tp_error *err)
{
    fprintf(stderr, "train_step: %s\n", err->message);
    return 2;
}

typedef struct {
    int32_t *tokens, *positions, *targets, *cu;
    float *weights;
} arrays;

static tp_batch_view make_batch(const arguments *a, int64_t vocab, arrays *x)
{
    size_t T = (size_t)(a->batch * a->seq);
    x->tokens = calloc(T, 4);
    x->positions = calloc(T, 4);
    x->targets = calloc(T, 4);
    x->cu = calloc(T + 1, 4);
    x->weights = calloc(T, 4);
    tp_rng rng = tp_rng_make(1, 2);
    for (size_t i = 0; i < T; i++) {
        x->tokens[i] = (int32_t)tp_rng_below(&rng, (uint64_t)vocab);
        x->targets[i] = (int32_t)tp_rng_below(&rng, (uint64_t)vocab);
        x->positions[i] = (int32_t)(i % (size_t)a->seq);
        x->weights[i] = 1.0f / (float)T;
    }
    for (size_t i = 0; i <= T; i++)
        x->cu[i] = (int32_t)((int64_t)i < a->batch ? (int64_t)i * a->seq : (int64_t)T);
    return (tp_batch_view){x->tokens, x->positions, x->targets, x->cu, x->weights, 0};
}

typedef struct {
    const char *op, *kernel;
    double ns, flops, bytes;
    uint64_t count;
} row;

static int by_time(const void *a, const void *b)
{
    return ((const row *)a)->ns < ((const row *)b)->ns ? 1 : -1;
}

static void collect(const tp_exec *e, row *rows, int *n)
{
    for (size_t i = 0; i < tp_exec_launch_count(e); i++) {
        const tp_launch_info *l = tp_exec_launch(e, i);
        int k = 0;
        while (k < *n && (strcmp(rows[k].op, tp_ops[l->op]->name) || rows[k].kernel != l->kernel))
            k++;
        if (k == *n)
            rows[(*n)++] = (row){.op = tp_ops[l->op]->name, .kernel = l->kernel};
        rows[k].ns += (double)l->ns;
        rows[k].flops += l->flops * (double)l->count;
        rows[k].bytes += l->bytes * (double)l->count;
        rows[k].count += l->count;
    }
}

static void print_table(const tp_session *s, int64_t steps)
{
    row rows[256];
    int n = 0;
    double total = 0;
    collect(tp_session_exec(s, "train"), rows, &n);
    collect(tp_session_exec(s, "norm"), rows, &n);
    collect(tp_session_exec(s, "update"), rows, &n);
    qsort(rows, (size_t)n, sizeof *rows, by_time);
    for (int i = 0; i < n; i++)
        total += rows[i].ns;
    fprintf(stderr, "%-20s %-32s %7s %10s %6s %9s %8s\n", "op", "kernel", "count", "ms/step",
            "share", "GFLOP/s", "GB/s");
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%-20s %-32s %7llu %10.3f %5.1f%% %9.1f %8.1f\n", rows[i].op,
                rows[i].kernel, (unsigned long long)rows[i].count / (unsigned long long)steps,
                rows[i].ns / 1e6 / (double)steps, 100 * rows[i].ns / total,
                rows[i].flops / rows[i].ns, rows[i].bytes / rows[i].ns);
}

int main(int argc, char **argv)
{
    arguments a;
    tp_error err = {0};
    tp_model *model;
    tp_session *s;
    parse(argc, argv, &a);
    if (!a.config || !a.backend || tp_model_open(a.config, &model, &err) != TP_OK)
        return fail(&err);
    tp_device *device;
    const tp_device_options threads = {.threads = a.threads};
    MUST(tp_device_open(a.backend, &threads, &device, NULL));
    tp_session_options o = {.compile.device = device,
                            .tokens = a.batch * a.seq,
                            .max_positions = a.seq,
                            .compile.passes.compute_dtype = a.dtype,
                            .compile.passes.disabled = a.off,
                            .compile.passes.n_disabled = a.n_off,
                            .compile.share_memory = true};
    if (tp_recompute_parse(a.recompute, &o.compile.passes.recompute,
                           &o.compile.passes.recompute_every, &err) != TP_OK ||
        tp_session_create(model, &o, &s, &err) != TP_OK || tp_session_alloc(s, &err) != TP_OK)
        return fail(&err);
    MUST(tp_model_init_random(model, tp_session_states(s), 1, 0, NULL));
    MUST(tp_session_weights_changed(s, NULL));
    arrays x;
    tp_batch_view batch = make_batch(&a, tp_model_get_info(model)->vocab, &x);
    tp_session_plan plan;
    tp_session_get_plan(s, &plan);
    size_t kinds[TP_MEM_KINDS], bytes = 0;
    tp_program_bytes(tp_session_get_options(s)->program, kinds);
    for (int k = 0; k < TP_MEM_KINDS; k++)
        bytes += kinds[k];
    double T = (double)o.tokens, loss = 0, norm = 0;
    printf("{\"tokens_per_s\":[");
    for (int64_t i = -1; i < a.steps; i++) {
        if (i == 0)
            tp_session_reset_times(s);
        double start = tp_clock_s();
        MUST(tp_session_train(s, &batch, true, &loss, NULL));
        MUST(tp_session_grad_norm(s, &norm, NULL));
        tp_optimizer_scalars step =
            tp_adamw_scalars(1e-4, 0.9, 0.95, 1e-8, 0.1, i + 2, norm > 1 ? 1 / norm : 1);
        MUST(tp_session_update(s, &step, NULL));
        if (i >= 0)
            printf("%s%.1f", i ? "," : "", T / (tp_clock_s() - start));
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("],\"loss\":%.6f,\"grad_norm\":%.6f,\"planned_peak_mib\":%.1f,\"rss_peak_mib\":%.1f,"
           "\"activations_mib\":%.1f,\"gflop_per_step\":%.1f,\"update_bytes\":%.0f}\n",
           loss, norm, (double)bytes / 1048576, (double)usage.ru_maxrss / 1024,
           (double)plan.activation_bytes / 1048576, plan.train_flops / 1e9, plan.update_bytes);
    if (a.table)
        print_table(s, a.steps);
    tp_session_free(s);
    tp_model_free(model);
    tp_device_close(device);
    return 0;
}
