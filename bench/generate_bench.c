/* generate_bench.c - tokens per second of generation beside what the machine allows.
 *
 *     generate_bench CONFIG.json [case=all|decode|prefill|batch|mixed] [dtype=bf16|f32]
 *                    [kv=bf16|f32] [threads=2] [rounds=3] [batch=32] [prompt=128] [new=64]
 *                    [requests=256] [table=1] [isa=LEVEL] [temperature=1] [lookup=0]
 *                    [lookup_max=5] [lookup_min=2] [lookup_rows=0]
 *
 * Weights are random.  Each case is run `rounds` times; the read bandwidth is measured
 * before each, over as many bytes as the weights have, by the same number of threads.
 * lookup: so many tokens are tried at once by prompt lookup; greedy answers of random weights soon
 * go round in a circle, those at temperature 1 never repeat themselves.
 *
 * One JSON line per round; `share` is of the bound that the case has:
 *   decode   one sequence: bandwidth / (bytes of weights and cache read per token)
 *   prefill  512 tokens: no bound printed, FLOP/s are
 *   batch    `batch` sequences of `prompt` tokens and `new` more
 *   mixed    `requests` prompts of 16 to 256 tokens, 16 to 128 new ones each; what is ideal:
 *            docs/guide/generation.md */
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/generate/engine.h"

/* A benchmark has nothing to say once the device fails. */
#define MUST(call) TP_ASSERT((call) == TP_OK)

typedef struct {
    const char *config, *which;
    tp_dtype dtype, kv;
    int threads, rounds, table;
    int64_t batch, prompt, fresh, requests;
    double temperature;
    tp_drafting drafting;
} arguments;

static tp_dtype dtype_of(const char *name)
{
    return strcmp(name, "f32") ? TP_DTYPE_BF16 : TP_DTYPE_F32;
}

static void parse(int argc, char **argv, arguments *a)
{
    *a = (arguments){.which = "all",
                     .dtype = TP_DTYPE_BF16,
                     .kv = TP_DTYPE_BF16,
                     .threads = 2,
                     .rounds = 3,
                     .batch = 32,
                     .prompt = 128,
                     .fresh = 64,
                     .requests = 256,
                     .temperature = 1,
                     .drafting = {.lookup_max = 5, .lookup_min = 2}};
    for (int i = 1; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        if (!eq) {
            a->config = argv[i];
            continue;
        }
        *eq = 0;
        const char *key = argv[i], *value = eq + 1;
        tp_isa isa;
        tp_error err;
        if (!strcmp(key, "case"))
            a->which = value;
        else if (!strcmp(key, "dtype"))
            a->dtype = dtype_of(value);
        else if (!strcmp(key, "kv"))
            a->kv = dtype_of(value);
        else if (!strcmp(key, "threads"))
            a->threads = atoi(value);
        else if (!strcmp(key, "rounds"))
            a->rounds = atoi(value);
        else if (!strcmp(key, "batch"))
            a->batch = atoll(value);
        else if (!strcmp(key, "prompt"))
            a->prompt = atoll(value);
        else if (!strcmp(key, "new"))
            a->fresh = atoll(value);
        else if (!strcmp(key, "requests"))
            a->requests = atoll(value);
        else if (!strcmp(key, "temperature"))
            a->temperature = atof(value);
        else if (!strcmp(key, "lookup"))
            a->drafting.tokens = atoll(value);
        else if (!strcmp(key, "lookup_max"))
            a->drafting.lookup_max = atoll(value);
        else if (!strcmp(key, "lookup_min"))
            a->drafting.lookup_min = atoll(value);
        else if (!strcmp(key, "lookup_rows"))
            a->drafting.rows = atoll(value);
        else if (!strcmp(key, "table"))
            a->table = atoi(value);
        else if (!strcmp(key, "isa") &&
                 (!tp_isa_parse(value, &isa) || tp_cpu_force_isa(isa, &err) != TP_OK))
            exit(2);
    }
}

typedef struct {
    const arguments *a;
    tp_device *device;
    tp_team *team; /* for reading, beside the device's own */
    tp_model *model;
    tp_states states;
    tp_engine *engine;
    double shadow_bytes; /* of products, read in every step */
    char *buffer;
    size_t buffer_bytes;
} bench;

/* ---- what the machine reads ---- */

typedef int64_t lanes __attribute__((vector_size(16)));

typedef struct {
    const char *buffer;
    size_t bytes;
    int threads;
    volatile int64_t *sink;
} reading;

static void read_part(const void *context, int part, int thread)
{
    (void)thread;
    const reading *r = context;
    size_t n = r->bytes / sizeof(lanes) / (size_t)r->threads;
    const lanes *x = (const lanes *)(const void *)r->buffer + n * (size_t)part;
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i + 4 <= n; i += 4) {
        a += x[i];
        b += x[i + 1];
        c += x[i + 2];
        d += x[i + 3];
    }
    a += b + c + d;
    r->sink[8 * part] = a[0];
}

/* Bytes per second of a few sums over `bytes`, on average. */
static double read_bandwidth(const bench *b)
{
    enum { ROUNDS = 6, MOST_THREADS = 4096 };
    static volatile int64_t sink[8 * MOST_THREADS];
    const reading r = {b->buffer, b->buffer_bytes, b->a->threads, sink};
    double begin = tp_clock_s();
    for (int round = 0; round < ROUNDS; round++)
        tp_team_run(b->team, r.threads, r.threads, read_part, &r);
    return ROUNDS * (double)r.bytes / (tp_clock_s() - begin);
}

/* ---- the engine ---- */

static void fail(const tp_error *err)
{
    fprintf(stderr, "generate_bench: %s\n", err->message);
    exit(2);
}

static void open_bench(bench *b, const arguments *a)
{
    tp_error err = {0};
    *b = (bench){.a = a};
    const tp_device_options threads = {.threads = a->threads};
    MUST(tp_device_open(&tp_backend_cpu, &threads, &b->device, NULL));
    MUST(tp_team_create(&b->team, a->threads, tp_cpu_count(), NULL));
    tp_engine_options o = {.device = b->device,
                           .compute_dtype = a->dtype,
                           .cache_dtype = a->kv,
                           .max_length = 1024,
                           .drafting = a->drafting,
                           .max_running = a->batch > 64 ? a->batch : 64};
    if (tp_model_open(a->config, &b->model, &err) != TP_OK ||
        tp_states_init(&b->states, &err) != TP_OK ||
        tp_engine_create(b->model, &o, &b->states, &b->engine, &err) != TP_OK ||
        tp_engine_alloc(b->engine, &err) != TP_OK)
        fail(&err);
    MUST(tp_model_init_random(b->model, &b->states, 1, 0, NULL));
    double start = tp_clock_s();
    MUST(tp_engine_weights_changed(b->engine, NULL));
    fprintf(stderr, "weights_changed: %.1f ms\n", 1e3 * (tp_clock_s() - start));
    for (size_t i = 0; i < b->states.n; i++)
        if (tp_role_memory(b->states.items[i].role) == TP_MEM_SHADOW)
            b->shadow_bytes += (double)b->states.items[i].bytes;
    b->buffer_bytes = (size_t)b->shadow_bytes / 4096 * 4096;
    void *buffer; /* in huge pages, as the weights are */
    if (tp_mem_alloc(TP_MEM_DATA, b->buffer_bytes, &buffer, &err) != TP_OK)
        fail(&err);
    b->buffer = buffer;
    memset(b->buffer, 1, b->buffer_bytes);
}

static void submit(bench *b, int64_t prompt, int64_t fresh, uint64_t stream)
{
    static int32_t ids[4096];
    int64_t id;
    tp_error err = {0};
    tp_rng rng = tp_rng_make(7, stream);
    for (int64_t i = 0; i < prompt; i++)
        ids[i] = (int32_t)tp_rng_below(&rng, (uint64_t)tp_model_get_info(b->model)->vocab);
    tp_request r = {.prompt = ids,
                    .n_prompt = (size_t)prompt,
                    .max_new_tokens = fresh,
                    .sampling = {.temperature = b->a->temperature},
                    .stream = stream};
    if (tp_engine_submit(b->engine, &r, &id, &err) != TP_OK)
        fail(&err);
}

enum { MAX_STEPS = 4096 };

typedef struct {
    double seconds[MAX_STEPS];
    int n;
} step_times;

static int by_seconds(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Run until nothing is left, with the time of each step that only decodes: on a machine that
 * others use too, the median says more than the sum. */
static void run_steps(bench *b, step_times *ret)
{
    ret->n = 0;
    for (bool goes_on = true; goes_on;) {
        int64_t prompts = tp_engine_get_stats(b->engine).prefill_tokens;
        double start = tp_clock_s();
        MUST(tp_engine_step(b->engine, &goes_on, NULL));
        if (tp_engine_get_stats(b->engine).prefill_tokens == prompts && ret->n < MAX_STEPS)
            ret->seconds[ret->n++] = tp_clock_s() - start;
    }
    qsort(ret->seconds, (size_t)ret->n, sizeof *ret->seconds, by_seconds);
}

static void print_steps(const char *name, const step_times *t)
{
    if (t->n > 0)
        printf("{\"case\":\"%s\",\"steps\":%d,\"us_p10\":%.0f,\"us_p50\":%.0f,\"us_p90\":%.0f}\n",
               name, t->n, 1e6 * t->seconds[t->n / 10], 1e6 * t->seconds[t->n / 2],
               1e6 * t->seconds[t->n * 9 / 10]);
}

/* Bytes of keys and values that decoding token `length` reads. */
static double cache_bytes(const bench *b, double length)
{
    return length * (double)tp_model_cache_block_bytes(b->model, 1, b->a->kv);
}

static void print(const char *name, double bandwidth, double seconds, double tokens, double bound)
{
    printf("{\"case\":\"%s\",\"read_gb_s\":%.2f,\"seconds\":%.4f,\"tokens_per_s\":%.1f", name,
           bandwidth / 1e9, seconds, tokens / seconds);
    if (bound > 0)
        printf(",\"bound_tokens_per_s\":%.1f,\"share\":%.3f", bound, tokens / seconds / bound);
    printf("}\n");
    fflush(stdout);
}

static void print_drafts(const tp_engine_stats *s)
{
    if (s->drafted_tokens > 0)
        printf("{\"case\":\"lookup\",\"tried\":%lld,\"right\":%lld,\"tokens_per_step\":%.3f}\n",
               (long long)s->drafted_tokens, (long long)s->accepted_tokens,
               (double)s->decode_tokens / (double)s->steps);
}

static void run_decode(bench *b, double bandwidth)
{
    enum { PROMPT = 16 };
    const int64_t fresh = 2 * b->a->fresh;
    submit(b, PROMPT, fresh, 1);
    bool goes_on;
    MUST(tp_engine_step(b->engine, &goes_on, NULL));
    tp_engine_reset_stats(b->engine);
    static step_times steps;
    run_steps(b, &steps);
    tp_engine_stats s = tp_engine_get_stats(b->engine);
    double bytes = b->shadow_bytes + cache_bytes(b, PROMPT + 0.5 * (double)fresh);
    print("decode", bandwidth, s.seconds, (double)s.decode_tokens, bandwidth / bytes);
    print_steps("decode: a step", &steps);
    print_drafts(&s);
}

static void run_prefill(bench *b, double bandwidth)
{
    enum { PROMPT = 512 };
    submit(b, PROMPT, 1, 2);
    tp_engine_reset_stats(b->engine);
    MUST(tp_engine_run(b->engine, NULL));
    print("prefill", bandwidth, tp_engine_get_stats(b->engine).seconds, PROMPT, 0);
}

static void run_batch(bench *b, double bandwidth)
{
    const arguments *a = b->a;
    for (int64_t i = 0; i < a->batch; i++)
        submit(b, a->prompt, a->fresh, (uint64_t)(10 + i));
    tp_engine_reset_stats(b->engine);
    static step_times steps;
    run_steps(b, &steps);
    tp_engine_stats s = tp_engine_get_stats(b->engine);
    double first = (double)a->batch; /* first tokens come with the prompts */
    print("batch: prompts", bandwidth, s.prefill_s, (double)s.prefill_tokens, 0);
    print("batch: decode", bandwidth, s.decode_s, (double)s.decode_tokens - first, 0);
    print("batch: new tokens over all", bandwidth, s.seconds, (double)s.decode_tokens, 0);
    print_steps("batch: a step of decoding", &steps);
    print_drafts(&s);
}

/* Seconds for n prompts of any length. */
static double mixed_seconds(bench *b, int64_t n, tp_engine_stats *ret)
{
    tp_rng rng = tp_rng_make(3, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t prompt = 16 + (int64_t)tp_rng_below(&rng, 241);
        submit(b, prompt, 16 + (int64_t)tp_rng_below(&rng, 113), (uint64_t)(1000 + i));
    }
    tp_engine_reset_stats(b->engine);
    MUST(tp_engine_run(b->engine, NULL));
    *ret = tp_engine_get_stats(b->engine);
    return ret->seconds;
}

static void run_mixed(bench *b, double bandwidth)
{
    tp_engine_stats s, twice;
    double seconds = mixed_seconds(b, b->a->requests, &s);
    print("mixed: new tokens", bandwidth, seconds, (double)s.decode_tokens, 0);
    print("mixed: all tokens", bandwidth, seconds, (double)(s.decode_tokens + s.prefill_tokens), 0);
    fprintf(stderr, "mixed: %lld steps, %lld preemptions, peak %lld running, %.1f MiB of cache\n",
            (long long)s.steps, (long long)s.preemptions, (long long)s.peak_running,
            (double)s.peak_bytes / 1048576);
    /* The second half of twice as many finds the batch full: nothing waits for the last answers. */
    double tokens = (double)(s.decode_tokens + s.prefill_tokens);
    double more = mixed_seconds(b, 2 * b->a->requests, &twice) - seconds;
    double ideal = more * tokens / ((double)(twice.decode_tokens + twice.prefill_tokens) - tokens);
    printf("{\"case\":\"mixed: over ideal\",\"seconds\":%.3f,\"ideal_s\":%.3f,\"ratio\":%.4f}\n",
           seconds, ideal, seconds / ideal);
    fflush(stdout);
}

/* ---- operators ---- */

typedef struct {
    const char *kernel;
    double ns;
    uint64_t count;
} row;

static int by_time(const void *x, const void *y)
{
    return ((const row *)x)->ns < ((const row *)y)->ns ? 1 : -1;
}

static void print_table(const tp_exec *e)
{
    row rows[128];
    int n = 0;
    double total = 0;
    for (size_t i = 0; i < tp_exec_launch_count(e); i++) {
        const tp_launch_info *l = tp_exec_launch(e, i);
        int k = 0;
        while (k < n && rows[k].kernel != l->kernel)
            k++;
        if (k == n)
            rows[n++] = (row){.kernel = l->kernel};
        rows[k].ns += (double)l->ns;
        rows[k].count += l->count;
        total += (double)l->ns;
    }
    qsort(rows, (size_t)n, sizeof *rows, by_time);
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%-36s %8llu %10.3f ms %5.1f%% %9.2f us each\n", rows[i].kernel,
                (unsigned long long)rows[i].count, rows[i].ns / 1e6, 100 * rows[i].ns / total,
                rows[i].ns / 1e3 / (double)rows[i].count);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(bench *b, double bandwidth);
    } cases[] = {{"decode", run_decode},
                 {"prefill", run_prefill},
                 {"batch", run_batch},
                 {"mixed", run_mixed}};
    arguments a;
    bench b;
    parse(argc, argv, &a);
    if (!a.config) {
        fprintf(stderr, "usage: generate_bench CONFIG.json [case=...] [key=value...]\n");
        return 2;
    }
    open_bench(&b, &a);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (strcmp(a.which, "all") && strcmp(a.which, cases[c].name))
            continue;
        for (int round = -1; round < a.rounds; round++) { /* the first warms up */
            double bandwidth = read_bandwidth(&b);
            if (round == 0)
                tp_exec_reset_times((tp_exec *)(uintptr_t)tp_engine_exec(b.engine));
            cases[c].run(&b, bandwidth);
        }
        if (a.table)
            print_table(tp_engine_exec(b.engine));
    }
    tp_engine_free(b.engine);
    tp_states_release(&b.states);
    tp_model_free(b.model);
    tp_device_close(b.device);
    tp_team_free(b.team);
    tp_mem_free(b.buffer);
    return 0;
}
