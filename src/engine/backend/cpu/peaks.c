/* peaks.c - the units driven from registers, and caches read in whole vectors.
 *
 * Every loop is written for one instruction set by a target attribute, and called only where the
 * level in force has it.  Twelve sums hide a latency of 6 cycles on two ports; AMX has eight tiles,
 * of which four are sums: 52 cycles of latency at one product in 16 (Intel's optimization manual).
 */
#include "engine/backend/cpu/peaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/platform.h"
#include "base/team.h"
#include "engine/backend/cpu/amx_tiles.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- units: `n` rounds; returns the FLOPs done, and keeps the sums alive ---- */

typedef double (*loop)(int64_t n, float *keep);

#define SUMS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
enum { N_SUMS = 12 };

typedef float four __attribute__((vector_size(16)));

static double run_portable(int64_t n, float *keep)
{
    const four x = {0.5f, 0.5f, 0.5f, 0.5f}, y = {1, 1, 1, 1};
#define BEGIN(i) four s##i = y * (i + 1);
#define STEP(i) s##i = s##i * x + y;
#define END(i) keep[i] = s##i[0];
    SUMS(BEGIN)
    for (int64_t k = 0; k < n; k++) {
        SUMS(STEP)
    }
    SUMS(END)
#undef BEGIN
#undef STEP
#undef END
    return 2.0 * 4 * N_SUMS * (double)n;
}

#if defined(__x86_64__)

#define VECTOR_LOOP(name, features, type, width, set)                            \
    __attribute__((target(features))) static double name(int64_t n, float *keep) \
    {                                                                            \
        const type x = set(0.5f), y = set(1);                                    \
        SUMS(BEGIN)                                                              \
        for (int64_t k = 0; k < n; k++) {                                        \
            SUMS(STEP)                                                           \
        }                                                                        \
        SUMS(END)                                                                \
        return 2.0 * width * N_SUMS * (double)n;                                 \
    }

#define BEGIN(i) __m256 s##i = _mm256_set1_ps(i + 1);
#define STEP(i) s##i = _mm256_fmadd_ps(s##i, x, y);
#define END(i) keep[i] = _mm256_cvtss_f32(s##i);
VECTOR_LOOP(run_avx2, "avx2,fma", __m256, 8, _mm256_set1_ps)
#undef BEGIN
#undef STEP
#undef END

#define BEGIN(i) __m512 s##i = _mm512_set1_ps(i + 1);
#define STEP(i) s##i = _mm512_fmadd_ps(s##i, x, y);
#define END(i) keep[i] = _mm512_cvtss_f32(s##i);
VECTOR_LOOP(run_avx512, "avx512f", __m512, 16, _mm512_set1_ps)
#undef BEGIN
#undef STEP
#undef END

/* Pairs of bf16, each 1 and 1: 64 FLOPs an instruction. */
__attribute__((target("avx512f,avx512bf16"))) static double run_avx512_bf16(int64_t n, float *keep)
{
    const __m512bh ones = (__m512bh)_mm512_set1_epi32(0x3f803f80);
#define BEGIN(i) __m512 s##i = _mm512_set1_ps(i);
#define STEP(i) s##i = _mm512_dpbf16_ps(s##i, ones, ones);
#define END(i) keep[i] = _mm512_cvtss_f32(s##i);
    SUMS(BEGIN)
    for (int64_t k = 0; k < n; k++) {
        SUMS(STEP)
    }
    SUMS(END)
#undef BEGIN
#undef STEP
#undef END
    return 64.0 * N_SUMS * (double)n;
}

/* Four products of 16 by 32 by 16. */
static double run_amx(int64_t n, float *keep)
{
    configure_tiles(NULL);
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_ZERO(4);
    TILE_ZERO(5);
    TILE_ZERO(6);
    TILE_ZERO(7);
    for (int64_t k = 0; k < n; k++) {
        TILE_MULTIPLY(0, 4, 6);
        TILE_MULTIPLY(1, 4, 7);
        TILE_MULTIPLY(2, 5, 6);
        TILE_MULTIPLY(3, 5, 7);
    }
    TILE_RELEASE();
    keep[0] = 0;
    return 4.0 * 2 * 16 * 32 * 16 * (double)n;
}

#endif

static const struct {
    tp_isa isa;
    bool is_bf16;
    const char *name;
    loop run;
} units[] = {
#if defined(__x86_64__)
    {TP_ISA_AMX, true, "tdpbf16ps", run_amx},
    {TP_ISA_AVX512_BF16, true, "vdpbf16ps", run_avx512_bf16},
    {TP_ISA_AVX512, false, "vfmadd231ps zmm", run_avx512},
    {TP_ISA_AVX2, false, "vfmadd231ps ymm", run_avx2},
    {TP_ISA_PORTABLE, false, "mulps, addps", run_portable},
#else
    {TP_ISA_PORTABLE, false, "vectors of four", run_portable},
#endif
};

static size_t first_unit(tp_dtype dtype)
{
    size_t i = 0;
    while (!tp_cpu_may_use(units[i].isa) || (units[i].is_bf16 && dtype != TP_DTYPE_BF16))
        i++;
    return i;
}

const char *tp_cpu_unit_name(tp_dtype dtype) { return units[first_unit(dtype)].name; }

/* ---- reading ---- */

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

static uint64_t read_portable(const char *at, size_t bytes)
{
    typedef uint64_t lane __attribute__((vector_size(16)));
    lane a = {0}, b = {0}, c = {0}, d = {0};
    for (const char *end = at + bytes; at < end; at += LINE) {
        const lane *v = (const lane *)(const void *)at;
        a += v[0];
        b += v[1];
        c += v[2];
        d += v[3];
    }
    a += b + c + d;
    return a[0] + a[1];
}

#if defined(__x86_64__)
#define READ_LOOP(name, features, type, bytes_, zero, load, add, to_u64)                 \
    __attribute__((target(features))) static uint64_t name(const char *at, size_t bytes) \
    {                                                                                    \
        type a = zero(), b = zero(), c = zero(), d = zero();                             \
        for (const char *end = at + bytes; at < end; at += 8 * bytes_) {                 \
            const type *v = (const type *)(const void *)at;                              \
            a = add(a, load(v));                                                         \
            b = add(b, load(v + 1));                                                     \
            c = add(c, load(v + 2));                                                     \
            d = add(d, load(v + 3));                                                     \
            a = add(a, load(v + 4));                                                     \
            b = add(b, load(v + 5));                                                     \
            c = add(c, load(v + 6));                                                     \
            d = add(d, load(v + 7));                                                     \
        }                                                                                \
        a = add(add(a, b), add(c, d));                                                   \
        return (uint64_t)to_u64(a);                                                      \
    }

#define LOW_256(v) _mm256_extract_epi64(v, 0)
READ_LOOP(read_avx2, "avx2", __m256i, 32, _mm256_setzero_si256, _mm256_load_si256, _mm256_add_epi64,
          LOW_256)
READ_LOOP(read_avx512, "avx512f", __m512i, 64, _mm512_setzero_si512, _mm512_load_si512,
          _mm512_add_epi64, _mm512_reduce_or_epi64)
#endif

static uint64_t read_all(const char *at, size_t bytes)
{
#if defined(__x86_64__)
    if (tp_cpu_may_use(TP_ISA_AVX512))
        return read_avx512(at, bytes);
    if (tp_cpu_may_use(TP_ISA_AVX2))
        return read_avx2(at, bytes);
#endif
    return read_portable(at, bytes);
}

/* ---- rounds on all threads together ---- */

typedef struct {
    loop run;      /* a unit, or */
    size_t bytes;  /* so many bytes of each part */
    char **memory; /* of every part */
    double seconds;
    int threads;
    int64_t rounds; /* of the loop, in a round of all threads */
    double best;    /* per second, all threads */
    uint64_t *sums; /* of every part: what was read, so that it is read */
} session;

static void run_part(const void *context, int part, int thread)
{
    const session *s = context;
    float keep[N_SUMS];
    (void)thread;
    if (s->run) {
        s->run(s->rounds, keep);
        return;
    }
    uint64_t sum = 0; /* stored once: the parts' sums share a line */
    for (int64_t i = 0; i < s->rounds; i++)
        sum += read_all(s->memory[part], s->bytes);
    s->sums[part] = sum;
}

/* What one part does in one round of the loop. */
static double work_of_round(const session *s)
{
    float keep[N_SUMS];
    return s->run ? s->run(1, keep) : (double)s->bytes;
}

/* A round lasts about a millisecond: long against fork and join, short against a disturbance.  A
 * round that was put aside looks long enough before it is, so several must have counted. */
static void run_rounds(session *s, tp_team *team)
{
    enum { ENOUGH = 8 };
    double start = tp_clock_s(), work = work_of_round(s) * s->threads;
    for (int counted = 0; counted < ENOUGH || tp_clock_s() - start <= s->seconds;) {
        uint64_t began = tp_clock_ns();
        tp_team_run(team, s->threads, s->threads, run_part, s);
        double took = (double)(tp_clock_ns() - began) * 1e-9;
        if (took < 0.5e-3) {
            s->rounds *= 2;
            continue;
        }
        s->best = fmax(s->best, work * (double)s->rounds / took);
        counted++;
    }
}

/* Whether there is memory for every part; what there is is freed by the caller. */
static bool take_memory(session *s)
{
    for (int i = 0; i < s->threads && !s->run; i++) {
        void *memory = NULL;
        if (posix_memalign(&memory, HUGE_PAGE, s->bytes) != 0)
            return false;
        (void)madvise(memory, s->bytes, MADV_HUGEPAGE); /* as the buffers of tensors */
        memset(memory, i + 1, s->bytes);
        s->memory[i] = memory;
    }
    return true;
}

static tp_status run_session(session *s, tp_error *err)
{
    tp_team *team;
    TP_TRY(tp_team_create(&team, s->threads, tp_cpu_count(), err));
    char *memory[s->threads];
    uint64_t sums[s->threads];
    memset(memory, 0, sizeof memory);
    memset(sums, 0, sizeof sums);
    s->memory = memory;
    s->sums = sums;
    s->rounds = 1;
    bool has_memory = take_memory(s);
    if (has_memory)
        run_rounds(s, team);
    for (int i = 0; i < s->threads; i++)
        free(memory[i]);
    tp_team_free(team);
    if (!has_memory)
        return tp_fail(err, TP_ERR_NOMEM, "no memory or no thread to measure %d threads with",
                       s->threads);
    return TP_OK;
}

tp_status tp_cpu_unit_peak(tp_dtype dtype, int threads, double seconds, double *ret, tp_error *err)
{
    size_t i = first_unit(dtype);
    session s = {.run = units[i].run, .seconds = seconds, .threads = threads};
    TP_TRY(run_session(&s, err));
    *ret = s.best;
    return TP_OK;
}

/* The unit of a level, alone. */
static double peak_of_level(tp_isa isa)
{
    session s = {.threads = 1};
    for (size_t i = 0; i < TP_COUNTOF(units); i++)
        if (units[i].isa == isa)
            s.run = units[i].run;
    return s.run && run_session(&s, NULL) == TP_OK ? s.best : 0;
}

bool tp_cpu_unit_is_slower(tp_isa isa, tp_isa below)
{
    enum { ROUNDS = 2 }; /* in turn, the best of each: a disturbance hits one of them */
    double own = 0, other = 0;
    for (int i = 0; i < ROUNDS; i++) {
        own = fmax(own, peak_of_level(isa));
        other = fmax(other, peak_of_level(below));
    }
    return own > 0 && own < 0.75 * other;
}

tp_status tp_cpu_read_peak(size_t bytes, int threads, double seconds, double *ret, tp_error *err)
{
    session s = {.bytes = bytes / 4096 * 4096, .seconds = seconds, .threads = threads};
    TP_ASSERT(s.bytes > 0);
    TP_TRY(run_session(&s, err));
    *ret = s.best;
    return TP_OK;
}
