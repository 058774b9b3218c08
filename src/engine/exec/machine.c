/* machine.c - ceilings measured in rounds, doubted when disturbed, and kept in a file. */
#include "engine/exec/machine.h"

#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/order.h"
#include "base/platform.h"
#include "engine/device/memory.h"
#include "text/json/json.h"

/* Raise when kernels change enough to move the ceilings. */
enum { KERNEL_VERSION = 2, MAX_FILE = 1 << 20 };

static void fingerprint(const tp_backend *backend, int threads, char out[33])
{
    char text[512];
    uint64_t h[2] = {0xcbf29ce484222325u, 0x9e3779b97f4a7c15u};
    snprintf(text, sizeof text, "%s|%s|%s|%d|%d", tp_cpu_model(), tp_isa_name(tp_cpu_isa()),
             tp_backend_name(backend), threads, KERNEL_VERSION);
    for (int k = 0; k < 2; k++)
        for (const char *s = text; *s; s++)
            h[k] = (h[k] ^ (unsigned char)*s) * 0x100000001b3u;
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
}

static const struct {
    const char *key;
    size_t offset;
} fields[] = {
    {"unit_f32_flops", offsetof(tp_machine, unit_f32_flops)},
    {"unit_bf16_flops", offsetof(tp_machine, unit_bf16_flops)},
    {"gemm_f32_flops", offsetof(tp_machine, gemm_f32_flops)},
    {"gemm_bf16_flops", offsetof(tp_machine, gemm_bf16_flops)},
    {"read_bytes", offsetof(tp_machine, read_bytes)},
    {"copy_bytes", offsetof(tp_machine, copy_bytes)},
    {"update_bytes", offsetof(tp_machine, update_bytes)},
    {"measured_at", offsetof(tp_machine, measured_at)},
};

static double *field(tp_machine *m, size_t i) { return (double *)((char *)m + fields[i].offset); }

static void describe(const tp_backend *backend, int threads, tp_machine *m)
{
    tp_backend_prepare(backend); /* before the instruction set is asked for */
    fingerprint(backend, threads, m->fingerprint);
    snprintf(m->cpu_model, sizeof m->cpu_model, "%s", tp_cpu_model());
    snprintf(m->isa, sizeof m->isa, "%s", tp_isa_name(tp_cpu_isa()));
    m->threads = threads;
}

tp_machine tp_machine_describe(const tp_backend *backend, int threads)
{
    tp_machine m = {.processor_share = NAN, .spread = NAN};
    describe(backend, threads, &m);
    return m;
}

static bool read_entry(const tp_json *entry, tp_machine *m)
{
    if (!tp_json_bool(tp_json_get(entry, "doubted"), &m->is_doubted))
        m->is_doubted = false;
    if (!tp_json_bool(tp_json_get(entry, "measured_again"), &m->is_measured_again))
        m->is_measured_again = false;
    if (!tp_json_f64(tp_json_get(entry, "processor_share"), &m->processor_share))
        m->processor_share = NAN;
    if (!tp_json_f64(tp_json_get(entry, "spread"), &m->spread))
        m->spread = NAN;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!tp_json_f64(tp_json_get(entry, fields[i].key), field(m, i)) || !(*field(m, i) > 0))
            return false;
    int64_t tries = 0;
    if (tp_json_i64(tp_json_get(entry, "busy_tries"), &tries))
        m->busy_tries = (int)TP_MIN(TP_MAX(tries, 0), 99);
    return true;
}

void tp_machine_take_part(tp_machine *m, int threads)
{
    double when = m->measured_at;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *field(m, i) *= (double)threads / m->threads;
    m->measured_at = when;
    m->threads = threads;
}

tp_status tp_machine_load(const tp_backend *backend, int threads, tp_machine *ret, bool *ret_found,
                          tp_error *err)
{
    char path[4096];
    TP_OWN(tp_buf) text = {0};
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    tp_machine m = {0};
    *ret_found = false;
    describe(backend, threads, &m);
    if (tp_cache_path("machine.json", false, path, sizeof path, NULL) != TP_OK ||
        !tp_file_exists(path))
        return TP_OK;
    TP_TRY(tp_file_read(path, MAX_FILE, &text, err));
    TP_TRY(tp_arena_init(&arena, 64 << 20, err));
    /* A cache that cannot be read is measured again. */
    if (tp_json_parse(&arena, path, tp_buf_str(&text), text.len, NULL, &root, NULL) == TP_OK &&
        read_entry(tp_json_get(root, m.fingerprint), &m)) {
        *ret = m;
        *ret_found = m.busy_tries == 0;
    }
    return TP_OK;
}

static void write_entry(tp_json_w *w, tp_machine *m)
{
    tp_json_w_put_begin(w, m->fingerprint, '{');
    tp_json_w_put_str(w, "cpu_model", m->cpu_model);
    tp_json_w_put_str(w, "isa", m->isa);
    tp_json_w_put_i64(w, "threads", m->threads);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        tp_json_w_put_f64(w, fields[i].key, *field(m, i));
    tp_json_w_put_known(w, "processor_share", m->processor_share);
    tp_json_w_put_known(w, "spread", m->spread);
    tp_json_w_put_bool(w, "doubted", m->is_doubted);
    tp_json_w_put_bool(w, "measured_again", m->is_measured_again);
    if (m->busy_tries)
        tp_json_w_put_i64(w, "busy_tries", m->busy_tries);
    tp_json_w_end(w, '}');
}

/* The file again, with this entry at the end instead of the one before. */
static tp_status rewrite(const tp_machine *entry, tp_error *err)
{
    char path[4096];
    TP_OWN(tp_buf) text = {0};
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root = NULL;
    TP_TRY(tp_cache_path("machine.json", true, path, sizeof path, err));
    if (tp_file_exists(path) && tp_json_read(&arena, path, MAX_FILE, NULL, &root, NULL) != TP_OK)
        root = NULL;
    tp_json_w w = tp_json_w_open(&text, 2, '{');
    for (const tp_json *e = root ? root->child : NULL; e; e = e->next)
        if (!tp_slice_is(e->key, entry->fingerprint)) {
            tp_json_w_put_value(&w, e->key.data, e);
        }
    tp_machine m = *entry;
    write_entry(&w, &m);
    tp_json_w_close(&w, '}');
    return tp_file_write_atomic(path, text.data, text.len, err);
}

tp_status tp_machine_save(const tp_machine *machine, tp_error *err)
{
    TP_ASSERT(!machine->disturbed_by[0]);
    return rewrite(machine, err);
}

tp_status tp_machine_note_busy(const tp_machine *machine, int tries, tp_error *err)
{
    tp_machine m = *machine;
    m.busy_tries = tries;
    return rewrite(&m, err);
}

double tp_machine_next_try(const tp_machine *m, double now)
{
    static const double first = 600, most = 86400;
    if (m->busy_tries == 0 || m->measured_at > now) /* a clock that was set back decides nothing */
        return 0;
    return fmax(m->measured_at + fmin(ldexp(first, m->busy_tries - 1), most) - now, 0);
}

tp_status tp_machine_doubt(const tp_machine *machine, tp_error *err)
{
    tp_machine m = *machine;
    m.is_doubted = true;
    return m.is_measured_again ? TP_OK : rewrite(&m, err);
}

void tp_machine_keep_better(tp_machine *m, const tp_machine *again)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        tp_machine other = *again;
        *field(m, i) = fmax(*field(m, i), *field(&other, i));
    }
    m->is_doubted = false;
    m->is_measured_again = true;
}

/* ---- measuring ---- */

enum { ROUNDS = 256, ENOUGH_ROUNDS = 5, THIRD = 64 << 20, SCALARS = 64 };

typedef struct {
    tp_device *device;
    tp_buffer *memory;  /* three thirds */
    tp_buffer *scalars; /* adamw's, then the sum of squares */
    tp_buffer *workspace;
    size_t workspace_bytes;
    double rates[ROUNDS]; /* of the first product, the last rounds */
    int n_rates;
} bench;

static tp_operand matrix(const bench *b, size_t offset, tp_dtype dtype, int64_t rows,
                         int64_t columns)
{
    return (tp_operand){.span = {b->memory, offset},
                        .dtype = dtype,
                        .rank = 2,
                        .dim = {rows, columns},
                        .stride = columns};
}

static tp_operand vector(tp_buffer *buffer, size_t offset, tp_dtype dtype, int64_t n)
{
    return (tp_operand){
        .span = {buffer, offset}, .dtype = dtype, .rank = 1, .dim = {n, 1}, .stride = 1};
}

static tp_status run(bench *b, tp_launch *l, tp_error *err)
{
    TP_TRY(tp_device_submit(b->device, l, 1, err));
    return tp_device_wait(b->device, err);
}

static tp_status run_timed(bench *b, tp_launch *l, double *ret_seconds, tp_error *err)
{
    l->threads = (uint16_t)tp_device_threads(b->device);
    l->kernel = tp_kernel_find(b->device, l);
    l->workspace_bytes = tp_kernel_workspace(l->kernel, l);
    if (l->workspace_bytes > b->workspace_bytes) {
        tp_buffer_free(b->workspace);
        b->workspace = NULL;
        b->workspace_bytes = 0;
        TP_TRY(
            tp_buffer_alloc(b->device, TP_MEM_WORKSPACE, l->workspace_bytes, &b->workspace, err));
        b->workspace_bytes = l->workspace_bytes;
        l->workspace_span.buffer = b->workspace;
        TP_TRY(run(b, l, err)); /* touch the pages */
    }
    l->workspace_span.buffer = b->workspace;
    uint64_t start = tp_clock_ns();
    TP_TRY(run(b, l, err));
    *ret_seconds = (double)(tp_clock_ns() - start) * 1e-9;
    return TP_OK;
}

/* K and N of y[M,N] = x[M,K] w[N,K]: the shapes of training at widths 768 and 1024. */
static const int64_t gemm_shapes[][2] = {{1024, 1024}, {768, 3072}, {3072, 768}, {768, 768}};
enum { N_SHAPES = 4 };

/* Enough that the threads are busy, few enough that there are many products: the best of many
 * short ones is one that nothing disturbed. */
static int64_t gemm_rows(const bench *b)
{
    return TP_MIN(512 * (int64_t)((tp_device_threads(b->device) + 3) / 4), 2048);
}

static tp_status gemm_rate(bench *b, tp_dtype dtype, int which, double *best, tp_error *err)
{
    const int64_t M = gemm_rows(b), K = gemm_shapes[which][0], N = gemm_shapes[which][1];
    double seconds;
    tp_launch l = {.op = TP_OP_linear, .n_in = 2, .n_out = 1};
    l.in[0] = matrix(b, 0, dtype, M, K);
    l.in[1] = matrix(b, THIRD, dtype, N, K);
    l.out[0] = matrix(b, 2 * (size_t)THIRD, dtype, M, N);
    TP_TRY(run_timed(b, &l, &seconds, err));
    double rate = 2.0 * (double)(M * N * K) / seconds;
    *best = fmax(*best, rate);
    if (dtype == TP_DTYPE_BF16 && which == 0)
        b->rates[b->n_rates++ % ROUNDS] = rate;
    return TP_OK;
}

static tp_status read_rate(bench *b, double *best, tp_error *err)
{
    double seconds;
    int64_t n = 3 * (int64_t)THIRD / (int64_t)sizeof(float);
    tp_launch l = {.op = TP_OP_sumsq, .n_in = 1, .n_out = 1};
    l.in[0] = vector(b->memory, 0, TP_DTYPE_F32, n);
    l.out[0] = vector(b->scalars, SCALARS, TP_DTYPE_F64, 1);
    TP_TRY(run_timed(b, &l, &seconds, err));
    *best = fmax(*best, (double)n * sizeof(float) / seconds);
    return TP_OK;
}

static tp_status copy_rate(bench *b, double *best, tp_error *err)
{
    double seconds;
    int64_t columns = 1024, rows = THIRD / (int64_t)sizeof(float) / columns;
    tp_launch l = {.op = TP_OP_cast, .n_in = 1, .n_out = 1};
    l.in[0] = matrix(b, 0, TP_DTYPE_F32, rows, columns);
    l.out[0] = matrix(b, THIRD, TP_DTYPE_F32, rows, columns);
    TP_TRY(run_timed(b, &l, &seconds, err));
    *best = fmax(*best, 2.0 * (double)(rows * columns) * sizeof(float) / seconds);
    return TP_OK;
}

/* adamw reads p, g, m, v and writes p, m, v: 28 bytes per parameter. */
static tp_status update_rate(bench *b, double *best, tp_error *err)
{
    double seconds;
    int64_t columns = 1024, rows = 3 * (int64_t)THIRD / (int64_t)sizeof(float) / 4 / columns;
    size_t quarter = (size_t)(rows * columns) * sizeof(float);
    tp_launch l = {.op = TP_OP_adamw, .n_in = 5, .n_out = 3};
    for (size_t k = 0; k < 4; k++)
        l.in[k] = matrix(b, k * quarter, TP_DTYPE_F32, rows, columns);
    l.in[4] = vector(b->scalars, 0, TP_DTYPE_F64, 8);
    l.out[0] = l.in[0];
    l.out[1] = l.in[2];
    l.out[2] = l.in[3];
    TP_TRY(run_timed(b, &l, &seconds, err));
    *best = fmax(*best, 28.0 * (double)(rows * columns) / seconds);
    return TP_OK;
}

static tp_status measure_round(bench *b, int round, tp_machine *m, tp_error *err)
{
    for (int i = 0; i < N_SHAPES; i++)
        TP_TRY(gemm_rate(b, TP_DTYPE_BF16, i, &m->gemm_bf16_flops, err));
    for (int i = 0; i < 2; i++)
        TP_TRY(gemm_rate(b, TP_DTYPE_F32, (2 * round + i) % N_SHAPES, &m->gemm_f32_flops, err));
    TP_TRY(read_rate(b, &m->read_bytes, err));
    TP_TRY(copy_rate(b, &m->copy_bytes, err));
    return update_rate(b, &m->update_bytes, err);
}

/* Half the values of a unit normal are as good as any; what matters is that they
 * are neither zero nor denormal. */
static tp_status fill(tp_buffer *memory, tp_error *err)
{
    uint32_t words[16 << 10], state = 12345;
    for (size_t at = 0; at < 3 * (size_t)THIRD; at += sizeof words) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            state = state * 1664525u + 1013904223u;
            words[i] = 0x3f003f00u | (state >> 9 & 0x007f007fu);
        }
        TP_TRY(tp_span_write((tp_span){memory, at}, words, sizeof words, err));
    }
    return TP_OK;
}

static tp_status prepare(bench *b, tp_error *err)
{
    static const double scalars[8] = {0, 0.9, 0.95, 1e-8, 0, 1, 1, 1}; /* rate 0: nothing moves */
    TP_TRY(tp_buffer_alloc(b->device, TP_MEM_WORKSPACE, 3 * (size_t)THIRD, &b->memory, err));
    TP_TRY(
        tp_buffer_alloc(b->device, TP_MEM_WORKSPACE, SCALARS + sizeof(double), &b->scalars, err));
    TP_TRY(fill(b->memory, err));
    return tp_span_write((tp_span){b->scalars, 0}, scalars, sizeof scalars, err);
}

/* ---- was it disturbed? ---- */

/* A machine at rest gives the threads of a measurement all of their time, and the best round is
 * a few percent better than most; these leave room for waking threads and changing clocks. */
static const double LEAST_PROCESSOR_SHARE = 0.85, MOST_SPREAD = 0.3;

TP_ORDER(compare_doubles, double, TP_COMPARE(*x, *y))

static double spread_of(bench *b)
{
    int n = TP_MIN(b->n_rates, ROUNDS);
    qsort(b->rates, (size_t)n, sizeof *b->rates, compare_doubles);
    return n < ENOUGH_ROUNDS ? NAN : b->rates[n - 1] / b->rates[n / 2] - 1;
}

static void judge(bench *b, double wall_s, double processor_s, tp_machine *m)
{
    m->processor_share = processor_s / (wall_s * tp_device_threads(b->device));
    m->spread = spread_of(b);
    if (m->processor_share < LEAST_PROCESSOR_SHARE)
        snprintf(m->disturbed_by, sizeof m->disturbed_by,
                 "its %d thread%s had %.0f %% of their processor time: others were running, or a "
                 "quota holds them",
                 tp_device_threads(b->device), tp_device_threads(b->device) == 1 ? "" : "s",
                 100 * m->processor_share);
    else if (m->spread > MOST_SPREAD)
        snprintf(m->disturbed_by, sizeof m->disturbed_by,
                 "the best round was %.0f %% faster than most", 100 * m->spread);
}

/* In a small container the measurement would be what kills the run. */
static tp_status check_room(size_t bytes, tp_error *err)
{
    tp_limits limits;
    tp_limits_memory(&limits);
    const tp_limit *least = tp_limits_least(&limits);
    if ((double)bytes <= 0.5 * least->value)
        return TP_OK;
    return tp_fail(err, TP_ERR_NOMEM,
                   "measuring this machine takes %s, the memory limit is %s (%s)",
                   tp_human_bytes((double)bytes, TP_ROOM), tp_human_bytes(least->value, TP_ROOM),
                   least->source);
}

/* A kernel that was faster than the loop over registers shows that the loop was disturbed. */
static tp_status measure_unit_peaks(const tp_backend *backend, int threads, double seconds,
                                    tp_machine *m, tp_error *err)
{
    TP_TRY(
        tp_backend_unit_peak(backend, TP_DTYPE_F32, threads, seconds / 2, &m->unit_f32_flops, err));
    TP_TRY(tp_backend_unit_peak(backend, TP_DTYPE_BF16, threads, seconds / 2, &m->unit_bf16_flops,
                                err));
    m->unit_f32_flops = fmax(m->unit_f32_flops, m->gemm_f32_flops);
    m->unit_bf16_flops = fmax(m->unit_bf16_flops, m->gemm_bf16_flops);
    return TP_OK;
}

tp_status tp_machine_measure(const tp_backend *backend, int threads, double seconds,
                             tp_machine *ret, tp_error *err)
{
    const tp_device_options options = {.threads = threads};
    bench b = {0};
    tp_machine m = {0};
    TP_TRY(check_room(3 * (size_t)THIRD, err));
    TP_TRY(tp_device_open(backend, &options, &b.device, err));
    describe(backend, threads, &m);
    tp_status status = prepare(&b, err);
    double start = tp_clock_s(), processor = tp_process_cpu_s();
    for (int round = 0; status == TP_OK; round++) {
        status = measure_round(&b, round, &m, err);
        if (round >= 2 && tp_clock_s() - start > seconds)
            break;
    }
    judge(&b, tp_clock_s() - start, tp_process_cpu_s() - processor, &m);
    if (status == TP_OK)
        status = measure_unit_peaks(backend, threads, seconds * 0.1, &m, err);
    tp_buffer_free(b.workspace);
    tp_buffer_free(b.scalars);
    tp_buffer_free(b.memory);
    tp_device_close(b.device);
    m.measured_at = tp_wall_s();
    if (status == TP_OK)
        *ret = m;
    return status;
}

/* ---- the hardware by itself ---- */

enum { MEMORY_SIZE = 96 << 20 };

static tp_status measure_rate(const tp_backend *backend, tp_dtype dtype, int threads,
                              double seconds, tp_machine_rate *ret, tp_error *err)
{
    TP_TRY(tp_backend_unit_peak(backend, dtype, 1, seconds, &ret->one, err));
    return tp_backend_unit_peak(backend, dtype, threads, seconds, &ret->all, err);
}

/* Half of a cache leaves room for what else is in it; a shared one is divided by the threads. */
static int list_levels(int threads, tp_machine_level *levels)
{
    tp_cpu_caches c = tp_cpu_cache_sizes();
    const tp_machine_level all[] = {{.level = "L1", .bytes = c.l1d / 2},
                                    {.level = "L2", .bytes = c.l2 / 2},
                                    {.level = "L3", .bytes = c.l3 / 2 / (size_t)threads},
                                    {.level = "memory", .bytes = MEMORY_SIZE}};
    int n = 0;
    for (int i = 0; i < 4; i++) {
        if (all[i].bytes >= 4096 && (i == 0 || n == 0 || all[i].bytes > levels[n - 1].bytes))
            levels[n++] = all[i];
    }
    return n;
}

tp_status tp_machine_measure_units(const tp_backend *backend, int threads, double seconds,
                                   tp_machine_units *ret, tp_error *err)
{
    tp_machine_units u = {.f32_unit = tp_backend_unit_name(backend, TP_DTYPE_F32),
                          .bf16_unit = tp_backend_unit_name(backend, TP_DTYPE_BF16)};
    TP_TRY(check_room((size_t)threads * MEMORY_SIZE, err));
    u.n_levels = list_levels(threads, u.levels);
    double part = seconds / (2 * (2 + u.n_levels));
    TP_TRY(measure_rate(backend, TP_DTYPE_F32, threads, part, &u.f32, err));
    TP_TRY(measure_rate(backend, TP_DTYPE_BF16, threads, part, &u.bf16, err));
    for (int i = 0; i < u.n_levels; i++) {
        tp_machine_level *l = &u.levels[i];
        TP_TRY(tp_backend_read_peak(backend, l->bytes, 1, part, &l->read.one, err));
        TP_TRY(tp_backend_read_peak(backend, l->bytes, threads, part, &l->read.all, err));
    }
    u.threads_share_unit = threads > 1 && u.bf16.all < 1.3 * u.bf16.one;
    *ret = u;
    return TP_OK;
}

/* ---- using it ---- */

double tp_machine_product_flops(const tp_machine *m, tp_dtype dtype)
{
    return dtype == TP_DTYPE_BF16 ? m->gemm_bf16_flops : m->gemm_f32_flops;
}

double tp_machine_unit_flops(const tp_machine *m, tp_dtype dtype)
{
    return dtype == TP_DTYPE_BF16 ? m->unit_bf16_flops : m->unit_f32_flops;
}

double tp_machine_seconds(const tp_machine *machine, tp_dtype dtype, double flops, double bytes)
{
    return fmax(flops / tp_machine_product_flops(machine, dtype), bytes / machine->copy_bytes);
}

tp_share tp_machine_share(const tp_machine *machine, tp_dtype dtype, double flops, double bytes,
                          double seconds)
{
    if (!machine || isnan(flops) || isnan(bytes) || !(seconds > 0) || (flops <= 0 && bytes <= 0))
        return (tp_share){TP_SHARE_UNKNOWN, NAN};
    double arithmetic_s = flops / tp_machine_unit_flops(machine, dtype);
    return tp_share_of(fmax(arithmetic_s, bytes / machine->copy_bytes), arithmetic_s, seconds);
}
