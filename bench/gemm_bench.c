/* gemm_bench - GFLOP/s of our matrix product beside oneDNN's, and the processor's own limit.
 *
 *     gemm_bench [--rounds=N] [--only=text] [--isa=name] [--threads=N] [--alone] [--cold]
 *                [--tiles=timed]
 *
 * oneDNN computes with B as it lies, and, where B is a weight, with B packed before.  Rounds are
 * interleaved, so a slow moment of the machine hits all.  Printed are the best and the median
 * round, and how many times as long oneDNN's median round takes.  `fwd` is Y[T,N] = X[T,K] W[N,K]^T
 * in bf16; `dX` and `dW` are its gradients, dW accumulated in f32; `gpt2` weights lie as [K,N];
 * `f32` is all in f32.
 * --cold: operands and results come from memory and go there, as in a step of training, whose
 * layers have their own; without, the caches keep what they hold from run to run.  Without oneDNN.
 * --tiles=timed: bf16 by the AMX kernel, whose tiles are replaced by instructions that take as
 * long (tile_timing.h): what it would reach on a processor like this one with AMX, if all else is
 * the same.  An estimate; the products are nonsense.
 * oneDNN's threads are OpenMP's: OMP_NUM_THREADS is for them, and OMP_WAIT_POLICY=passive, without
 * which they spin while ours compute. */
#include <immintrin.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/huge_pages.h"
#include "base/platform.h"
#include "engine/backend/backend.h"
#include "engine/backend/cpu/gemm_kernel.h"
#include "engine/backend/cpu/paths.h"
#include "onednn_gemm.h"

enum { MAX_ROUNDS = 64, MAX_THREADS = 1024 };

#if defined(HAVE_TILE_TIMING)
extern const tp_gemm_kernel tile_timing_kernel;
#endif

typedef struct {
    int rounds;
    const char *only;
    bool alone; /* without oneDNN */
    bool cold;
    const tp_gemm_kernel *kernel; /* NULL: the best */
    int threads;
    tp_team *team;
} options;

typedef struct {
    const char *name;
    int64_t m, n, k;
    bool a_trans, b_trans, accumulate;
    tp_dtype ab, c;
} shape;

#define FORWARD(t, n, k)                                                 \
    {                                                                    \
        "fwd", t, n, k, false, true, false, TP_DTYPE_BF16, TP_DTYPE_BF16 \
    }
#define INPUT_GRAD(t, n, k)                                              \
    {                                                                    \
        "dX", t, k, n, false, false, false, TP_DTYPE_BF16, TP_DTYPE_BF16 \
    }
#define WEIGHT_GRAD(t, n, k)                                          \
    {                                                                 \
        "dW", n, k, t, true, false, true, TP_DTYPE_BF16, TP_DTYPE_F32 \
    }
#define LINEAR(t, n, k) FORWARD(t, n, k), INPUT_GRAD(t, n, k), WEIGHT_GRAD(t, n, k)
#define GPT2(t, n, k)                                                           \
    {"gpt2-fwd", t, n, k, false, false, false, TP_DTYPE_BF16, TP_DTYPE_BF16},   \
        {"gpt2-dX", t, k, n, false, true, false, TP_DTYPE_BF16, TP_DTYPE_BF16}, \
    {                                                                           \
        "gpt2-dW", k, n, t, true, false, true, TP_DTYPE_BF16, TP_DTYPE_F32      \
    }
#define SINGLE(t, n, k)                                                \
    {                                                                  \
        "f32", t, n, k, false, true, false, TP_DTYPE_F32, TP_DTYPE_F32 \
    }

static const shape shapes[] = {
    {"square", 1024, 1024, 1024, false, true, false, TP_DTYPE_BF16, TP_DTYPE_F32},
    {"square", 2048, 2048, 2048, false, true, false, TP_DTYPE_BF16, TP_DTYPE_F32},
    {"square", 4096, 4096, 4096, false, true, false, TP_DTYPE_BF16, TP_DTYPE_F32},
    LINEAR(2048, 768, 768),
    LINEAR(2048, 2304, 768),
    LINEAR(2048, 3072, 768),
    LINEAR(2048, 768, 3072),
    LINEAR(2048, 3072, 1024),
    GPT2(2048, 2304, 768),
    GPT2(2048, 3072, 768),
    GPT2(2048, 768, 3072),
    LINEAR(1024, 50304, 768),
    LINEAR(512, 3072, 768),
    LINEAR(512, 768, 3072),
    LINEAR(256, 768, 768),
    LINEAR(256, 3072, 768),
    LINEAR(256, 768, 3072),
    GPT2(256, 3072, 768),
    GPT2(256, 768, 3072),
    GPT2(4096, 1024, 256),
    GPT2(4096, 256, 1024),
    LINEAR(3072, 192, 192),
    LINEAR(3072, 512, 192),
    FORWARD(64, 768, 768),
    FORWARD(64, 3072, 768),
    FORWARD(64, 768, 3072),
    FORWARD(128, 3072, 768),
    FORWARD(1, 3072, 768),
    FORWARD(16, 3072, 768),
    FORWARD(1, 50304, 768),
    FORWARD(8, 50304, 768),
    FORWARD(16, 50304, 768),
    FORWARD(32, 50304, 768),
    {"gpt2-fwd", 1, 3072, 768, false, false, false, TP_DTYPE_BF16, TP_DTYPE_BF16},
    {"gpt2-fwd", 16, 3072, 768, false, false, false, TP_DTYPE_BF16, TP_DTYPE_BF16},
    SINGLE(1024, 1024, 1024),
    SINGLE(256, 3072, 768),
    SINGLE(2048, 3072, 768),
    SINGLE(2048, 768, 3072),
    SINGLE(1, 50304, 768),
    SINGLE(16, 3072, 768),
};

/* --- the limit: products in registers only --- */

__attribute__((target("avx512f,avx512bf16"))) static double peak_bf16(long turns)
{
    __m512 sum[24];
    __m512bh x = (__m512bh)_mm512_set1_epi32(1), y = (__m512bh)_mm512_set1_epi32(2);
#pragma GCC unroll 24
    for (int i = 0; i < 24; i++)
        sum[i] = _mm512_setzero_ps();
    double start = tp_clock_s();
    for (long t = 0; t < turns; t++) {
#pragma GCC unroll 24
        for (int i = 0; i < 24; i++) {
            sum[i] = _mm512_dpbf16_ps(sum[i], x, y);
            __asm__ volatile("" : "+v"(sum[i])); /* or it is all one sum */
        }
    }
    return (double)turns * 24 * 64 / (tp_clock_s() - start) * 1e-9;
}

__attribute__((target("avx512f"))) static double peak_f32(long turns)
{
    __m512 sum[24], x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
#pragma GCC unroll 24
    for (int i = 0; i < 24; i++)
        sum[i] = _mm512_setzero_ps();
    double start = tp_clock_s();
    for (long t = 0; t < turns; t++) {
#pragma GCC unroll 24
        for (int i = 0; i < 24; i++) {
            sum[i] = _mm512_fmadd_ps(x, y, sum[i]);
            __asm__ volatile("" : "+v"(sum[i]));
        }
    }
    return (double)turns * 24 * 32 / (tp_clock_s() - start) * 1e-9;
}

typedef struct {
    double (*measure)(long);
    double rates[MAX_THREADS];
} peaks;

static void measure_part(const void *context, int part, int thread)
{
    peaks *p = (peaks *)(uintptr_t)context;
    (void)thread;
    p->rates[part] = p->measure(400000);
}

static void print_peak(const char *what, double (*measure)(long), const options *opt)
{
    double best = 0;
    for (int round = 0; round < 8; round++) {
        double all = 0;
        peaks p = {.measure = measure};
        tp_team_run(opt->team, opt->threads, opt->threads, measure_part, &p);
        for (int i = 0; i < opt->threads; i++)
            all += p.rates[i];
        best = all > best ? all : best;
    }
    printf("register peak, %s: %.0f GFLOP/s on %d threads\n", what, best, opt->threads);
}

/* --- one shape --- */

/* As the engine's memory: large buffers on huge pages where the system has them. */
static void *aligned_memory(size_t bytes)
{
    const size_t huge = 2 << 20;
    size_t align = bytes >= huge ? huge : 64;
    void *p = aligned_alloc(align, (bytes + align - 1) / align * align);
    TP_ASSERT(p);
    if (bytes >= huge)
        tp_huge_pages_ask(p, bytes);
    return p;
}

/* One block of memory in which sets of operands lie behind one another. */
typedef struct {
    char *data;
    size_t bytes; /* of a set */
} operand_sets;

typedef struct {
    tp_gemm gemm;
    operand_sets a, b, c;
    size_t sets, set;             /* of all, in use */
    const tp_gemm_kernel *kernel; /* NULL: the best */
    void *workspace;
    tp_launch panels;          /* linear_panels; no kernel where B is no weight */
    tp_onednn_gemm *onednn[2]; /* B plain, B packed; NULL when it has no implementation */
} contest;

static operand_sets random_sets(size_t sets, int64_t elements, tp_dtype dtype)
{
    const size_t line = 64;
    size_t bytes = ((size_t)elements * tp_dtype_size(dtype) + line - 1) / line * line;
    operand_sets s = {aligned_memory(sets * bytes), bytes};
    uint32_t state = 1;
    for (int64_t i = 0; i < elements; i++) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(state >> 8) * 0x1p-24f - 0.5f;
        if (dtype == TP_DTYPE_F32)
            ((float *)(void *)s.data)[i] = value;
        else
            ((tp_bf16 *)(void *)s.data)[i] = tp_f32_to_bf16(value);
    }
    for (size_t set = 1; set < sets; set++)
        memcpy(s.data + set * bytes, s.data, bytes);
    return s;
}

/* Sets of operands; enough that a set is in no cache when its turn comes again. */
static size_t choose_sets(const shape *s, bool cold)
{
    const size_t most_cached = (size_t)512 << 20;
    size_t one = (size_t)(s->m * s->k + s->k * s->n) * tp_dtype_size(s->ab) +
                 (size_t)(s->m * s->n) * tp_dtype_size(s->c);
    return cold ? most_cached / one + 2 : 1;
}

static void use_set(contest *c, size_t set)
{
    c->set = set;
    c->gemm.a = c->a.data + set * c->a.bytes;
    c->gemm.b = c->b.data + set * c->b.bytes;
    c->gemm.c = c->c.data + set * c->c.bytes;
}

static void run_ours(contest *c)
{
    use_set(c, (c->set + 1) % c->sets);
    if (c->kernel)
        tp_gemm_kernel_run(c->kernel, &c->gemm, c->workspace);
    else
        tp_gemm_run(&c->gemm, c->workspace);
}

/* --- B packed before, by ours --- */

static tp_operand matrix_at(void *data, tp_dtype dtype, int64_t rows, int64_t cols)
{
    return (tp_operand){
        .data = data, .dtype = dtype, .rank = 2, .dim = {rows, cols}, .stride = cols};
}

static void find_kernel(tp_launch *launch)
{
    const size_t line = 64;
    launch->kernel = tp_kernel_find_prepared(&tp_backend_cpu, launch);
    launch->workspace_bytes = tp_kernel_workspace(launch->kernel, launch);
    launch->workspace = aligned_memory(TP_MAX(launch->workspace_bytes, line));
}

static void open_panels(contest *c)
{
    const tp_gemm *g = &c->gemm;
    int64_t wide = (g->n + TP_PANEL - 1) / TP_PANEL, deep = TP_PANEL * (g->k + g->k % 2);
    size_t bytes = (size_t)(wide * deep) * tp_dtype_size(g->ab_dtype);
    tp_operand panels = matrix_at(aligned_memory(bytes), g->ab_dtype, wide, deep);
    tp_launch pack = {.op = TP_OP_pack_panels,
                      .n_in = 1,
                      .n_out = 1,
                      .threads = (uint16_t)g->threads,
                      .team = g->team,
                      .attrs = {.transposed = !g->b_trans},
                      .in = {matrix_at(c->b.data, g->ab_dtype, g->b_trans ? g->n : g->k,
                                       g->b_trans ? g->k : g->n)},
                      .out = {panels}};
    find_kernel(&pack);
    pack.kernel->run(&pack);
    free(pack.workspace);
    c->panels = (tp_launch){
        .op = TP_OP_linear_panels,
        .n_in = 3,
        .n_out = 1,
        .threads = (uint16_t)g->threads,
        .team = g->team,
        .attrs = {.n0 = (int32_t)g->n},
        .in = {matrix_at(c->a.data, g->ab_dtype, g->m, g->k), panels},
        .out = {matrix_at(c->c.data, g->c_dtype, g->m, g->n)},
    };
    find_kernel(&c->panels);
}

static void close_panels(contest *c)
{
    if (!c->panels.kernel)
        return;
    free(c->panels.in[1].data);
    free(c->panels.workspace);
}

static void run_panels(contest *c) { c->panels.kernel->run(&c->panels); }

static void run_onednn(contest *c, int which)
{
    tp_error err;
    if (tp_onednn_gemm_run(c->onednn[which], &err) != TP_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
}

static void run_plain(contest *c) { run_onednn(c, 0); }

static void run_packed(contest *c) { run_onednn(c, 1); }

/* Seconds per run, over `repeats`. */
static double time_runs(contest *c, void (*run)(contest *), int repeats)
{
    double start = tp_clock_s();
    for (int i = 0; i < repeats; i++)
        run(c);
    return (tp_clock_s() - start) / repeats;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_rates(const char *who, double *seconds, int rounds, double flops)
{
    qsort(seconds, (size_t)rounds, sizeof *seconds, compare_doubles);
    printf("  %s %7.1f %7.1f", who, flops / seconds[0] * 1e-9, flops / seconds[rounds / 2] * 1e-9);
}

enum { OURS, OUR_PANELS, PLAIN, PACKED, CONTESTANTS };

static void run_contest(contest *c, double flops, int rounds)
{
    static const struct {
        const char *name;
        void (*run)(contest *);
    } contestants[CONTESTANTS] = {[OURS] = {"ours", run_ours},
                                  [OUR_PANELS] = {"panels", run_panels},
                                  [PLAIN] = {"oneDNN", run_plain},
                                  [PACKED] = {"packed", run_packed}};
    const bool is_there[CONTESTANTS] = {true, c->panels.kernel != NULL, c->onednn[0] != NULL,
                                        c->onednn[1] != NULL};
    double seconds[CONTESTANTS][MAX_ROUNDS], median[CONTESTANTS];
    run_ours(c);
    double once = time_runs(c, run_ours, 1);
    int repeats = (int)TP_MAX(1.0, 0.02 / once);
    for (int i = OURS + 1; i < CONTESTANTS; i++)
        if (is_there[i])
            contestants[i].run(c);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < CONTESTANTS; i++)
            if (is_there[i])
                seconds[i][round] = time_runs(c, contestants[i].run, repeats);
    for (int i = 0; i < CONTESTANTS; i++) {
        if (!is_there[i])
            continue;
        print_rates(contestants[i].name, seconds[i], rounds, flops);
        median[i] = seconds[i][rounds / 2];
        if (i > OURS)
            printf("  x%.2f", median[i] / median[OURS]);
        if (i == PACKED && is_there[OUR_PANELS])
            printf(" x%.2f of panels", median[i] / median[OUR_PANELS]);
    }
}

static void run_shape(const shape *s, const options *opt)
{
    char label[64];
    snprintf(label, sizeof label, "%s %ldx%ldx%ld", s->name, (long)s->m, (long)s->n, (long)s->k);
    if (opt->only && !strstr(label, opt->only))
        return;
    contest c = {.gemm = {.m = s->m,
                          .n = s->n,
                          .k = s->k,
                          .lda = s->a_trans ? s->m : s->k,
                          .a_trans = s->a_trans,
                          .ldb = s->b_trans ? s->k : s->n,
                          .b_trans = s->b_trans,
                          .ldc = s->n,
                          .ab_dtype = s->ab,
                          .c_dtype = s->c,
                          .accumulate = s->accumulate,
                          .threads = opt->threads,
                          .team = opt->team},
                 .sets = choose_sets(s, opt->cold)};
    c.a = random_sets(c.sets, s->m * s->k, s->ab);
    c.b = random_sets(c.sets, s->k * s->n, s->ab);
    c.c = random_sets(c.sets, s->m * s->n, s->c);
    use_set(&c, 0);
    c.kernel = s->ab == TP_DTYPE_BF16 ? opt->kernel : NULL;
    c.workspace = aligned_memory(c.kernel ? tp_gemm_kernel_workspace(c.kernel, &c.gemm)
                                          : tp_gemm_workspace(&c.gemm));
    for (int i = 0; i < 2 && !opt->alone; i++)
        if ((i == 0 || !s->accumulate) &&
            tp_onednn_gemm_open(&c.onednn[i], &c.gemm, i == 1, NULL) != TP_OK)
            c.onednn[i] = NULL;
    if (!s->accumulate && !opt->cold && !c.kernel)
        open_panels(&c);
    printf("%-24s", label);
    run_contest(&c, 2.0 * (double)s->m * (double)s->n * (double)s->k, opt->rounds);
    printf("\n");
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        tp_onednn_gemm_close(c.onednn[i]);
    close_panels(&c);
    free(c.workspace);
    free(c.a.data);
    free(c.b.data);
    free(c.c.data);
}

static options parse(int argc, char **argv)
{
    options opt = {.rounds = 15, .threads = tp_cpu_count()};
    for (int i = 1; i < argc; i++) {
        tp_isa isa;
        tp_error err;
        if (strncmp(argv[i], "--rounds=", 9) == 0) {
            opt.rounds = TP_MIN(TP_MAX(atoi(argv[i] + 9), 1), MAX_ROUNDS);
        } else if (strncmp(argv[i], "--only=", 7) == 0) {
            opt.only = argv[i] + 7;
        } else if (strncmp(argv[i], "--threads=", 10) == 0) {
            opt.threads = TP_MIN(TP_MAX(atoi(argv[i] + 10), 1), MAX_THREADS);
        } else if (strcmp(argv[i], "--alone") == 0) {
            opt.alone = true;
        } else if (strcmp(argv[i], "--cold") == 0) {
            opt.alone = opt.cold = true;
#if defined(HAVE_TILE_TIMING)
        } else if (strcmp(argv[i], "--tiles=timed") == 0) {
            if (tp_cpu_detect() < TP_ISA_AVX512_BF16) {
                fprintf(stderr, "timed tiles need avx512_bf16\n");
                exit(2);
            }
            opt.kernel = &tile_timing_kernel;
#endif
        } else if (strncmp(argv[i], "--isa=", 6) == 0 && tp_isa_parse(argv[i] + 6, &isa)) {
            if (tp_cpu_force_isa(isa, &err) != TP_OK) {
                fprintf(stderr, "%s\n", err.message);
                exit(2);
            }
        } else {
            fprintf(stderr,
                    "usage: gemm_bench [--rounds=N] [--only=text] [--isa=name] [--threads=N] "
                    "[--alone] [--cold] [--tiles=timed]\n");
            exit(2);
        }
    }
    return opt;
}

int main(int argc, char **argv)
{
    tp_paths_prove(); /* which levels are used, and which are passed over */
    options opt = parse(argc, argv);
    tp_error err;
    if (tp_team_create(&opt.team, opt.threads, tp_cpu_count(), &err) != TP_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("%s, %s, %d threads\n", tp_cpu_model(), tp_isa_name(tp_cpu_isa()), opt.threads);
    if (tp_cpu_detect() >= TP_ISA_AVX512)
        print_peak("f32", peak_f32, &opt);
    if (tp_cpu_detect() >= TP_ISA_AVX512_BF16)
        print_peak("vdpbf16ps", peak_bf16, &opt);
    if (opt.kernel)
        printf("bf16 with AMX tiles that are timed, not computed: an estimate\n");
    printf("GFLOP/s, best and median of %d rounds\n", opt.rounds);
    for (size_t i = 0; i < TP_COUNTOF(shapes); i++)
        run_shape(&shapes[i], &opt);
    tp_team_free(opt.team);
    return 0;
}
