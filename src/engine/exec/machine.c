#include "engine/exec/machine.h"

#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "engine/tensor/memory.h"

/* Raise when kernels change enough to move the ceilings. */
enum { KERNEL_VERSION = 1, MAX_FILE = 1 << 20 };

static void fingerprint(const tp_backend *backend, int threads, char out[33])
{
    char text[512];
    uint64_t h[2] = {0xcbf29ce484222325u, 0x9e3779b97f4a7c15u};
    snprintf(text, sizeof text, "%s|%s|%s|%d|%d", tp_cpu_model(), tp_isa_name(tp_cpu_isa()),
             backend->name, threads, KERNEL_VERSION);
    for (int k = 0; k < 2; k++)
        for (const char *s = text; *s; s++)
            h[k] = (h[k] ^ (unsigned char)*s) * 0x100000001b3u;
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
}

static tp_status file_path(char *out, size_t cap, bool make, tp_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char dir[2048];
    if (cache && *cache)
        snprintf(dir, sizeof dir, "%s/temper", cache);
    else
        snprintf(dir, sizeof dir, "%s/.cache/temper", home && *home ? home : "/tmp");
    if (make)
        TP_TRY(tp_dir_make(dir, err));
    snprintf(out, cap, "%s/machine.json", dir);
    return TP_OK;
}

static const struct {
    const char *key;
    size_t offset;
} fields[] = {
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
    if (backend->prepare)
        backend->prepare(); /* before the instruction set is asked for */
    fingerprint(backend, threads, m->fingerprint);
    snprintf(m->cpu_model, sizeof m->cpu_model, "%s", tp_cpu_model());
    snprintf(m->isa, sizeof m->isa, "%s", tp_isa_name(tp_cpu_isa()));
    m->threads = threads;
}

static bool read_entry(const tp_json *entry, tp_machine *m)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!tp_json_f64(tp_json_get(entry, fields[i].key), field(m, i)) || !(*field(m, i) > 0))
            return false;
    return true;
}

tp_status tp_machine_load(const tp_backend *backend, int threads, tp_machine *ret, bool *ret_found,
                          tp_error *err)
{
    char path[4096];
    tp_buf text = {0};
    tp_arena arena;
    const tp_json *root;
    tp_machine m = {0};
    *ret_found = false;
    describe(backend, threads, &m);
    TP_TRY(file_path(path, sizeof path, false, err));
    if (!tp_file_exists(path))
        return TP_OK;
    TP_TRY(tp_file_read(path, MAX_FILE, &text, err));
    tp_status status = tp_arena_init(&arena, 64 << 20, err);
    if (status == TP_OK) {
        /* A cache that cannot be read is measured again. */
        if (tp_json_parse(&arena, path, tp_buf_str(&text), text.len, NULL, &root, NULL) == TP_OK &&
            read_entry(tp_json_get(root, m.fingerprint), &m)) {
            *ret = m;
            *ret_found = true;
        }
        tp_arena_release(&arena);
    }
    tp_buf_release(&text);
    return status;
}

static void write_entry(tp_json_w *w, tp_machine *m)
{
    tp_json_w_put_begin(w, m->fingerprint, '{');
    tp_json_w_put_str(w, "cpu_model", m->cpu_model);
    tp_json_w_put_str(w, "isa", m->isa);
    tp_json_w_put_i64(w, "threads", m->threads);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        tp_json_w_put_f64(w, fields[i].key, *field(m, i));
    tp_json_w_end(w, '}');
}

tp_status tp_machine_save(const tp_machine *machine, tp_error *err)
{
    char path[4096];
    tp_buf old = {0}, text = {0};
    tp_arena arena;
    const tp_json *root = NULL;
    tp_machine m = *machine;
    TP_TRY(file_path(path, sizeof path, true, err));
    TP_TRY(tp_arena_init(&arena, 64 << 20, err));
    if (tp_file_exists(path) && tp_file_read(path, MAX_FILE, &old, NULL) == TP_OK &&
        tp_json_parse(&arena, path, tp_buf_str(&old), old.len, NULL, &root, NULL) != TP_OK)
        root = NULL;
    tp_json_w w;
    tp_json_w_init(&w, &text, 2);
    tp_json_w_begin(&w, '{');
    for (const tp_json *e = root ? root->child : NULL; e; e = e->next)
        if (!tp_slice_is(e->key, m.fingerprint)) {
            tp_json_w_key(&w, e->key.data);
            tp_json_w_value(&w, e);
        }
    write_entry(&w, &m);
    tp_json_w_end(&w, '}');
    tp_buf_addc(&text, '\n');
    tp_status status = tp_file_write_atomic(path, text.data, text.len, err);
    tp_buf_release(&old);
    tp_buf_release(&text);
    tp_arena_release(&arena);
    return status;
}

/* ---- measuring ---- */

static tp_operand matrix(void *data, tp_dtype dtype, int64_t rows, int64_t columns)
{
    return (tp_operand){
        .data = data, .dtype = dtype, .rank = 2, .dim = {rows, columns}, .stride = columns};
}

typedef struct {
    const tp_backend *backend;
    int threads;
    char *memory; /* three thirds */
    size_t third;
    void *workspace;
    size_t workspace_bytes;
} bench;

static tp_status run_timed(bench *b, tp_launch *l, double *ret_seconds, tp_error *err)
{
    l->threads = (uint16_t)b->threads;
    l->kernel = tp_kernel_find(b->backend, l);
    l->workspace_bytes = l->kernel->workspace ? l->kernel->workspace(l) : 0;
    if (l->workspace_bytes > b->workspace_bytes) {
        tp_mem_free(b->workspace);
        b->workspace = NULL;
        b->workspace_bytes = 0;
        TP_TRY(tp_mem_alloc(TP_MEM_WORKSPACE, l->workspace_bytes, &b->workspace, err));
        b->workspace_bytes = l->workspace_bytes;
        l->workspace = b->workspace;
        l->kernel->run(l); /* touch the pages */
    }
    l->workspace = b->workspace;
    uint64_t start = tp_clock_ns();
    l->kernel->run(l);
    *ret_seconds = (double)(tp_clock_ns() - start) * 1e-9;
    return TP_OK;
}

/* y[M,N] = x[M,K] w[N,K]: the shapes of training at widths 768 and 1024. */
static const int64_t gemm_shapes[][3] = {
    {1024, 1024, 1024}, {2048, 768, 3072}, {2048, 3072, 768}, {1024, 768, 768}};
enum { N_SHAPES = 4 };

static tp_status gemm_rate(bench *b, tp_dtype dtype, int which, double *best, tp_error *err)
{
    const int64_t M = gemm_shapes[which][0], K = gemm_shapes[which][1], N = gemm_shapes[which][2];
    double seconds;
    tp_launch l = {.op = TP_OP_linear, .n_in = 2, .n_out = 1};
    l.in[0] = matrix(b->memory, dtype, M, K);
    l.in[1] = matrix(b->memory + b->third, dtype, N, K);
    l.out[0] = matrix(b->memory + 2 * b->third, dtype, M, N);
    TP_TRY(run_timed(b, &l, &seconds, err));
    *best = fmax(*best, 2.0 * (double)(M * N * K) / seconds);
    return TP_OK;
}

static tp_status read_rate(bench *b, double *best, tp_error *err)
{
    double seconds;
    int64_t n = (int64_t)(3 * b->third / sizeof(float));
    double result;
    tp_launch l = {.op = TP_OP_sumsq, .n_in = 1, .n_out = 1};
    l.in[0] = (tp_operand){.data = b->memory, .rank = 1, .dim = {n, 1}, .stride = 1};
    l.out[0] =
        (tp_operand){.data = &result, .dtype = TP_DTYPE_F64, .rank = 1, .dim = {1, 1}, .stride = 1};
    TP_TRY(run_timed(b, &l, &seconds, err));
    *best = fmax(*best, (double)n * sizeof(float) / seconds);
    return TP_OK;
}

static tp_status copy_rate(bench *b, double *best, tp_error *err)
{
    double seconds;
    int64_t columns = 1024, rows = (int64_t)(b->third / sizeof(float)) / columns;
    tp_launch l = {.op = TP_OP_cast, .n_in = 1, .n_out = 1};
    l.in[0] = matrix(b->memory, TP_DTYPE_F32, rows, columns);
    l.out[0] = matrix(b->memory + b->third, TP_DTYPE_F32, rows, columns);
    TP_TRY(run_timed(b, &l, &seconds, err));
    *best = fmax(*best, 2.0 * (double)(rows * columns) * sizeof(float) / seconds);
    return TP_OK;
}

/* adamw reads p, g, m, v and writes p, m, v: 28 bytes per parameter. */
static tp_status update_rate(bench *b, double *best, tp_error *err)
{
    double seconds;
    int64_t columns = 1024, rows = (int64_t)(3 * b->third / sizeof(float)) / 4 / columns;
    size_t quarter = (size_t)(rows * columns) * sizeof(float);
    double scalars[8] = {0, 0.9, 0.95, 1e-8, 0, 1, 1, 1}; /* rate 0: nothing moves */
    tp_launch l = {.op = TP_OP_adamw, .n_in = 5, .n_out = 3};
    for (size_t k = 0; k < 4; k++)
        l.in[k] = matrix(b->memory + k * quarter, TP_DTYPE_F32, rows, columns);
    l.in[4] =
        (tp_operand){.data = scalars, .dtype = TP_DTYPE_F64, .rank = 1, .dim = {8, 1}, .stride = 1};
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
    TP_TRY(gemm_rate(b, TP_DTYPE_F32, round % N_SHAPES, &m->gemm_f32_flops, err));
    TP_TRY(read_rate(b, &m->read_bytes, err));
    TP_TRY(copy_rate(b, &m->copy_bytes, err));
    return update_rate(b, &m->update_bytes, err);
}

/* Half the values of a unit normal are as good as any; what matters is that they
 * are neither zero nor denormal. */
static void fill(char *memory, size_t bytes)
{
    uint32_t *words = (uint32_t *)(void *)memory;
    uint32_t state = 12345;
    for (size_t i = 0; i < bytes / 4; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t mantissa = state >> 9;
        words[i] = 0x3f003f00u | (mantissa & 0x007f007fu);
    }
}

tp_status tp_machine_measure(const tp_backend *backend, int threads, double seconds,
                             tp_machine *ret, tp_error *err)
{
    bench b = {.backend = backend, .threads = threads, .third = 64u << 20};
    tp_machine m = {0};
    void *memory;
    TP_TRY(tp_mem_alloc(TP_MEM_WORKSPACE, 3 * b.third, &memory, err));
    b.memory = memory;
    fill(b.memory, 3 * b.third);
    describe(backend, threads, &m);
    double start = tp_clock_s();
    tp_status status = TP_OK;
    for (int round = 0; status == TP_OK; round++) {
        status = measure_round(&b, round, &m, err);
        if (round >= 2 && tp_clock_s() - start > seconds)
            break;
    }
    tp_mem_free(b.workspace);
    tp_mem_free(memory);
    m.measured_at = tp_wall_s();
    if (status == TP_OK)
        *ret = m;
    return status;
}

double tp_machine_seconds(const tp_machine *machine, tp_dtype dtype, double flops, double bytes)
{
    double rate = dtype == TP_DTYPE_BF16 ? machine->gemm_bf16_flops : machine->gemm_f32_flops;
    return fmax(flops / rate, bytes / machine->copy_bytes);
}
