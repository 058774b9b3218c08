/* trace_step.c - what recording costs a training step.
 *
 *     trace_step CONFIG.json [batch=8] [seq=128] [pairs=20] [threads=2] [path=FILE]
 *
 * Steps with and without recording (operators with shapes, memory events, a step zone) take
 * turns, in an order that flips from pair to pair.  With a path the trace is flushed to that file
 * by its thread, as `temper train` does it.  The ratio of each pair's times is what counts: printed
 * is its median with the distribution-free 95 % interval. */
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/train/session.h"
#include "stats/ratio.h"
#include "trace/trace.h"

/* A benchmark has nothing to say once the device fails. */
#define MUST(call) TP_ASSERT((call) == TP_OK)

enum { MOST = 2000 };

typedef struct {
    const char *config, *path;
    int64_t batch, seq, pairs;
    int threads;
} arguments;

static void parse(int argc, char **argv, arguments *a)
{
    *a = (arguments){.batch = 8, .seq = 128, .pairs = 20, .threads = 2};
    for (int i = 1; i < argc; i++) {
        const char *eq = strchr(argv[i], '='), *value = eq ? eq + 1 : "";
        if (!eq)
            a->config = argv[i];
        else if (!strncmp(argv[i], "batch=", 6))
            a->batch = atoll(value);
        else if (!strncmp(argv[i], "seq=", 4))
            a->seq = atoll(value);
        else if (!strncmp(argv[i], "pairs=", 6))
            a->pairs = atoll(value);
        else if (!strncmp(argv[i], "threads=", 8))
            a->threads = atoi(value);
        else if (!strncmp(argv[i], "path=", 5))
            a->path = value;
    }
}

static int fail(const tp_error *err)
{
    fprintf(stderr, "trace_step: %s\n", err->message);
    return 2;
}

static tp_batch_view make_batch(const arguments *a, int64_t vocab)
{
    size_t T = (size_t)(a->batch * a->seq);
    int32_t *tokens = calloc(T, 4), *positions = calloc(T, 4), *targets = calloc(T, 4);
    int32_t *cu = calloc(T + 1, 4);
    float *weights = calloc(T, 4);
    tp_rng rng = tp_rng_make(1, 2);
    for (size_t i = 0; i < T; i++) {
        tokens[i] = (int32_t)tp_rng_below(&rng, (uint64_t)vocab);
        targets[i] = (int32_t)tp_rng_below(&rng, (uint64_t)vocab);
        positions[i] = (int32_t)(i % (size_t)a->seq);
        weights[i] = 1.0f / (float)T;
    }
    for (size_t i = 0; i <= T; i++)
        cu[i] = (int32_t)((int64_t)i < a->batch ? (int64_t)i * a->seq : (int64_t)T);
    return (tp_batch_view){tokens, positions, targets, cu, weights, 0};
}

static double run_step(tp_session *s, const tp_batch_view *batch, bool record, int64_t t)
{
    double loss;
    tp_trace_pause(!record);
    double start = tp_clock_s();
    {
        TP_ZONE("step");
        MUST(tp_session_train(s, batch, true, &loss, NULL));
        double norm;
        MUST(tp_session_grad_norm(s, &norm, NULL));
        tp_optimizer_scalars step =
            tp_adamw_scalars(1e-4, 0.9, 0.95, 1e-8, 0.1, t, norm > 1 ? 1 / norm : 1);
        MUST(tp_session_update(s, &step, NULL));
    }
    return tp_clock_s() - start;
}

static int measure(const arguments *a, tp_session *s, const tp_batch_view *batch)
{
    static double on[MOST], off[MOST];
    tp_error err;
    tp_log_ratio_result r;
    tp_trace_options options = {.size = sizeof options,
                                .events_per_thread = 1 << 20,
                                .overflow = a->path ? TP_TRACE_FLUSH : TP_TRACE_KEEP_NEWEST,
                                .path = a->path,
                                .flush_ms = 1000};
    if (tp_trace_start(&options, &err) != TP_OK)
        return fail(&err);
    for (int64_t i = -2; i < a->pairs; i++)
        for (int k = 0; k < 2; k++) {
            bool record = (k == 0) == (i % 2 == 0);
            double seconds = run_step(s, batch, record, i + 3);
            if (i >= 0)
                (record ? on : off)[i] = seconds;
        }
    if (tp_log_ratio(on, off, (size_t)a->pairs, 0.95, &r, &err) != TP_OK)
        return fail(&err);
    tp_trace_stop();
    printf("%lld pairs: off %.4f s, on %.4f s (first pair); on / off %.4f [%.4f, %.4f] (%.1f %%), "
           "zone %.1f ns, %llu dropped\n",
           (long long)a->pairs, off[0], on[0], r.ratio, r.sign_ci.lo, r.sign_ci.hi,
           100 * r.sign_coverage, tp_trace_get_cost().zone_ns,
           (unsigned long long)tp_trace_dropped());
    return 0;
}

int main(int argc, char **argv)
{
    arguments a;
    tp_error err = {0};
    tp_model *model;
    tp_session *s;
    parse(argc, argv, &a);
    if (!a.config || a.pairs < 6 || a.pairs > MOST) {
        fprintf(stderr, "trace_step: a config.json and 6 to %d pairs\n", MOST);
        return 2;
    }
    if (tp_model_open(a.config, &model, &err) != TP_OK)
        return fail(&err);
    tp_device *device;
    const tp_device_options threads = {.threads = a.threads};
    MUST(tp_device_open(&tp_backend_cpu, &threads, &device, NULL));
    tp_session_options o = {.compile.device = device,
                            .tokens = a.batch * a.seq,
                            .max_positions = a.seq,
                            .compile.passes.compute_dtype = TP_DTYPE_BF16,
                            .compile.passes.recompute_every = 1,
                            .compile.share_memory = true};
    if (tp_session_create(model, &o, &s, &err) != TP_OK || tp_session_alloc(s, &err) != TP_OK)
        return fail(&err);
    MUST(tp_model_init_random(model, tp_session_states(s), 1, 0, NULL));
    MUST(tp_session_weights_changed(s, NULL));
    tp_batch_view batch = make_batch(&a, tp_model_get_info(model)->vocab);
    int status = measure(&a, s, &batch);
    tp_trace_release();
    tp_session_free(s);
    tp_model_free(model);
    tp_device_close(device);
    return status;
}
