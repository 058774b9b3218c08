/* Every GEMM kernel, the AMX one on emulated tiles where there are none (amx_emulator.c), against
 * a product in double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/backend/cpu/gemm_kernel.h"
#include "support/devices.h"

static const tp_gemm_kernel *const all_kernels[] = {
    &tp_gemm_kernel_portable,    &tp_gemm_kernel_avx2, &tp_gemm_kernel_avx512,
    &tp_gemm_kernel_avx512_bf16, &tp_gemm_kernel_amx,
};

/* An emulated tile takes some microseconds. */
static bool takes_too_long(const tp_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    const int64_t most = 1 << 19;
    return kernel->isa == TP_ISA_AMX && tp_cpu_is_assumed() && m * n * k > most;
}

static bool can_run(const tp_gemm_kernel *kernel, tp_dtype ab)
{
    bool accepts = ab == TP_DTYPE_F32 ? kernel->accepts_f32 : kernel->half == ab;
    return accepts && kernel->isa <= tp_cpu_detect();
}

/* --- matrices --- */

enum { GUARD = 192, PATTERN = 0xa5 };

/* `bytes` with GUARD bytes of PATTERN on both sides; the inside is aligned to 64. */
static void *guarded_alloc(size_t bytes)
{
    size_t total = (bytes + 2 * GUARD + 63) / 64 * 64;
    char *p = aligned_alloc(64, total);
    assert_non_null(p);
    memset(p, PATTERN, total);
    return p + GUARD;
}

static void guarded_free(void *inside, size_t bytes)
{
    const unsigned char *p = inside;
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(p[-1 - i], PATTERN);
        assert_int_equal(p[bytes + (size_t)i], PATTERN);
    }
    free((char *)inside - GUARD);
}

static uint32_t random_state = 1;

static float random_value(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) * 0x1p-23f - 1.0f;
}

static void set(void *data, tp_dtype dtype, int64_t at, float value)
{
    if (dtype == TP_DTYPE_F32)
        ((float *)data)[at] = value;
    else
        ((tp_bf16 *)data)[at] = tp_f32_to_bf16(value);
}

static float get(const void *data, tp_dtype dtype, int64_t at)
{
    return dtype == TP_DTYPE_F32 ? ((const float *)data)[at]
                                 : tp_bf16_to_f32(((const tp_bf16 *)data)[at]);
}

/* rows x cols, densely; values representable in bf16 so that both dtypes agree. */
static float *random_matrix(int64_t rows, int64_t cols)
{
    float *x = malloc((size_t)(rows * cols) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < rows * cols; i++)
        x[i] = tp_bf16_to_f32(tp_f32_to_bf16(random_value()));
    return x;
}

/* The matrix in a dtype and layout, with `gap` unused elements behind each row. */
static void *lay_out(const float *x, int64_t rows, int64_t cols, tp_dtype dtype, bool trans,
                     int64_t gap)
{
    int64_t ld = (trans ? rows : cols) + gap;
    int64_t lines = trans ? cols : rows;
    size_t bytes = (size_t)(lines * ld) * tp_dtype_size(dtype);
    void *data = malloc(bytes);
    assert_non_null(data);
    memset(data, 0xff, bytes); /* NaN where nobody should look */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            set(data, dtype, trans ? j * ld + i : i * ld + j, x[i * cols + j]);
    return data;
}

/* --- the meaning --- */

typedef struct {
    int64_t m, n, k;
    float *a, *b, *c, *bias; /* c: what is there before */
    double *product, *size;  /* A B and |A| |B| */
} problem;

static problem make_problem(int64_t m, int64_t n, int64_t k)
{
    problem p = {m,
                 n,
                 k,
                 random_matrix(m, k),
                 random_matrix(k, n),
                 random_matrix(m, n),
                 random_matrix(1, n),
                 calloc((size_t)(m * n), sizeof(double)),
                 calloc((size_t)(m * n), sizeof(double))};
    assert_non_null(p.product);
    assert_non_null(p.size);
    return p;
}

static void multiply(problem *p)
{
    memset(p->product, 0, (size_t)(p->m * p->n) * sizeof(double));
    memset(p->size, 0, (size_t)(p->m * p->n) * sizeof(double));
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t q = 0; q < p->k; q++)
            for (int64_t j = 0; j < p->n; j++) {
                double term = (double)p->a[i * p->k + q] * (double)p->b[q * p->n + j];
                p->product[i * p->n + j] += term;
                p->size[i * p->n + j] += fabs(term);
            }
}

static void free_problem(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->bias);
    free(p->product);
    free(p->size);
}

static double gelu(tp_gemm_epilogue epilogue, double x)
{
    if (epilogue == TP_GEMM_EPILOGUE_GELU_TANH)
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    if (epilogue == TP_GEMM_EPILOGUE_GELU_ERF)
        return 0.5 * x * erfc(-x * 0.7071067811865476);
    return x;
}

/* --- one comparison --- */

typedef struct {
    tp_dtype ab, c;
    bool a_trans, b_trans, accumulate, has_bias, has_pre;
    bool is_dense;  /* no gap behind the rows of C */
    bool is_padded; /* zeros behind the rows of A, to a multiple of 32 */
    bool is_far;
    tp_dtype bias;
    tp_gemm_epilogue epilogue;
    int threads; /* 0: two */
    int64_t planned_m, planned_k;
} variant;

static void check_element(float got, double want, double size, tp_dtype dtype, const char *what,
                          const tp_gemm_kernel *kernel, const problem *p, int64_t at)
{
    if (isnan(want) ? isnan(got) : isinf(want) && (double)got == want)
        return;
    double tolerance = 0x1p-21 * size + 2e-6;
    if (dtype == TP_DTYPE_BF16)
        tolerance += fabs(want) * 0x1.02p-8;
    if (fabs((double)got - want) <= tolerance)
        return;
    fail_msg("%s: %lldx%lldx%lld: %s[%lld,%lld] is %.9g, should be %.9g", kernel->name,
             (long long)p->m, (long long)p->n, (long long)p->k, what, (long long)(at / p->n),
             (long long)(at % p->n), (double)got, want);
}

static int64_t ld_of_c(const problem *p, const variant *v) { return p->n + (v->is_dense ? 0 : 3); }

/* In front of their sum. */
enum { UNCHANGED = -1 };

static double size_of_squares(const problem *p, const variant *v, const float *c)
{
    double sum = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            sum += (double)c[i * ld_of_c(p, v) + j] * (double)c[i * ld_of_c(p, v) + j];
    return sum;
}

static void check_squares(const tp_gemm_kernel *kernel, const problem *p, const variant *v,
                          const void *c, double got)
{
    double want = v->c == TP_DTYPE_F32 ? size_of_squares(p, v, c) : UNCHANGED;
    bool is_right = isfinite(want) ? fabs(got - want) <= 0x1p-22 * want : !isfinite(got);
    if (!is_right && got != want)
        fail_msg("%s: %lldx%lldx%lld: squares are %.9g, should be %.9g", kernel->name,
                 (long long)p->m, (long long)p->n, (long long)p->k, got, want);
}

/* Zeros in the gap behind each row. */
static void pad(void *data, int64_t rows, int64_t cols, int64_t gap, tp_dtype dtype)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < gap; j++)
            set(data, dtype, i * (cols + gap) + cols + j, 0);
}

/* Runs the kernel; the result is the caller's to guarded_free. */
static void *run(const tp_gemm_kernel *kernel, const problem *p, const variant *v, void **ret_pre,
                 double *ret_squares)
{
    const int64_t gap = 3, ldc = ld_of_c(p, v);
    int64_t padding = v->is_padded && !v->a_trans ? (p->k + 31) / 32 * 32 - p->k : 0;
    int64_t a_gap = v->is_padded ? padding : gap;
    double squares = UNCHANGED;
    size_t c_bytes = (size_t)(p->m * ldc) * tp_dtype_size(v->c);
    void *a = lay_out(p->a, p->m, p->k, v->ab, v->a_trans, a_gap);
    pad(a, p->m, p->k, padding, v->ab);
    void *b = lay_out(p->b, p->k, p->n, v->ab, v->b_trans, gap);
    void *bias = lay_out(p->bias, 1, p->n, v->bias, false, 0);
    char *c = guarded_alloc(c_bytes);
    void *pre = v->has_pre ? guarded_alloc(c_bytes) : NULL;
    for (int64_t i = 0; v->accumulate && i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            set(c, v->c, i * ldc + j, p->c[i * p->n + j]);

    tp_gemm gemm = {
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .a = a,
        .lda = (v->a_trans ? p->m : p->k) + a_gap,
        .a_trans = v->a_trans,
        .a_padding = padding,
        .c_is_far = v->is_far,
        .b = b,
        .ldb = (v->b_trans ? p->k : p->n) + gap,
        .b_trans = v->b_trans,
        .c = c,
        .ldc = ldc,
        .ab_dtype = v->ab,
        .c_dtype = v->c,
        .accumulate = v->accumulate,
        .may_have_bias = v->has_bias,
        .bias = v->has_bias ? bias : NULL,
        .bias_dtype = v->bias,
        .epilogue = v->epilogue,
        .may_have_pre = pre != NULL,
        .pre = pre,
        .may_have_squares = v->c == TP_DTYPE_F32,
        .squares = v->c == TP_DTYPE_F32 ? &squares : NULL,
        .planned_m = v->planned_m,
        .planned_k = v->planned_k,
        .threads = v->threads ? v->threads : 2,
    };
    gemm.team = team_of(gemm.threads);
    tp_gemm unbound = gemm; /* what is planned before there are addresses */
    unbound.a = unbound.b = unbound.bias = unbound.c = unbound.pre = NULL;
    size_t bytes = tp_gemm_kernel_workspace(kernel, &unbound);
    void *workspace = guarded_alloc(bytes);
    memset(workspace, 0xff, bytes);
    tp_gemm_kernel_run(kernel, &gemm, workspace);
    guarded_free(workspace, bytes);
    check_squares(kernel, p, v, c, squares);
    if (ret_squares)
        *ret_squares = squares;

    for (int64_t i = 0; i < p->m; i++) /* the gap behind each row is not ours */
        for (size_t at = (size_t)p->n; at < (size_t)ldc; at++)
            for (size_t byte = 0; byte < tp_dtype_size(v->c); byte++) {
                size_t offset = ((size_t)(i * ldc) + at) * tp_dtype_size(v->c) + byte;
                assert_int_equal((unsigned char)c[offset], PATTERN);
            }
    free(a);
    free(b);
    free(bias);
    if (ret_pre)
        *ret_pre = pre;
    return c;
}

static void check(const tp_gemm_kernel *kernel, const problem *p, const variant *v)
{
    const int64_t ldc = ld_of_c(p, v);
    size_t c_bytes = (size_t)(p->m * ldc) * tp_dtype_size(v->c);
    void *pre;
    void *c = run(kernel, p, v, &pre, NULL);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            int64_t at = i * p->n + j;
            double value = p->product[at], size = p->size[at] + 2;
            if (v->has_bias)
                value += (double)p->bias[j];
            if (v->accumulate)
                value += (double)p->c[at];
            if (pre)
                check_element(get(pre, v->c, i * ldc + j), value, size, v->c, "pre", kernel, p, at);
            if (v->epilogue != TP_GEMM_EPILOGUE_NONE && isinf(value) && value < 0)
                continue; /* -inf times zero: a kernel may also give the limit */
            check_element(get(c, v->c, i * ldc + j), gelu(v->epilogue, value), 1.2 * size, v->c,
                          "C", kernel, p, at);
        }
    guarded_free(c, c_bytes);
    if (pre)
        guarded_free(pre, c_bytes);
}

static void check_kernels(const problem *p, const variant *v)
{
    for (size_t i = 0; i < TP_COUNTOF(all_kernels); i++)
        if (can_run(all_kernels[i], v->ab) && !takes_too_long(all_kernels[i], p->m, p->n, p->k))
            check(all_kernels[i], p, v);
}

/* Layouts, dtypes and accumulation in all combinations; bias and epilogues in turn. */
static void check_all_variants(const problem *p)
{
    for (unsigned bits = 0; bits < 32; bits++) {
        variant v = {
            .ab = bits & 1 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
            .c = bits & 2 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
            .a_trans = bits & 4,
            .b_trans = bits & 8,
            .accumulate = bits & 16,
        };
        check_kernels(p, &v);
        v.has_bias = true;
        v.bias = bits & 4 ? TP_DTYPE_BF16 : TP_DTYPE_F32;
        check_kernels(p, &v);
        v.epilogue = bits & 8 ? TP_GEMM_EPILOGUE_GELU_TANH : TP_GEMM_EPILOGUE_GELU_ERF;
        v.has_pre = true;
        check_kernels(p, &v);
        v.has_bias = false;
        check_kernels(p, &v);
    }
}

/* The first m rows and k products of a problem, that of the rest being zero. */
static problem part_of(const problem *whole, int64_t m, int64_t k)
{
    problem p = make_problem(m, whole->n, k);
    for (int64_t i = 0; i < whole->m; i++)
        for (int64_t q = 0; q < whole->k; q++) {
            if (i < m && q < k)
                p.a[i * k + q] = whole->a[i * whole->k + q];
            if (q >= k)
                whole->a[i * whole->k + q] = 0;
        }
    memcpy(p.b, whole->b, (size_t)(k * p.n) * sizeof *p.b);
    memcpy(p.c, whole->c, (size_t)(m * p.n) * sizeof *p.c);
    memcpy(p.bias, whole->bias, (size_t)p.n * sizeof *p.bias);
    return p;
}

static size_t room_of(const tp_gemm_kernel *kernel, const problem *p, const variant *v)
{
    tp_gemm g = {.m = p->m,
                 .n = p->n,
                 .k = p->k,
                 .lda = v->a_trans ? p->m : p->k,
                 .a_trans = v->a_trans,
                 .ldb = v->b_trans ? p->k : p->n,
                 .b_trans = v->b_trans,
                 .ldc = p->n,
                 .ab_dtype = v->ab,
                 .c_dtype = v->c,
                 .accumulate = v->accumulate,
                 .planned_m = v->planned_m,
                 .planned_k = v->planned_k,
                 .threads = 2};
    return tp_gemm_kernel_workspace(kernel, &g);
}

static void compare_part(const tp_gemm_kernel *kernel, const problem *whole, const problem *part,
                         const variant *v)
{
    const int64_t ldc = whole->n + 3;
    size_t row = (size_t)whole->n * tp_dtype_size(v->c);
    size_t distance = (size_t)ldc * tp_dtype_size(v->c);
    variant planned = *v;
    planned.planned_m = whole->m;
    planned.planned_k = whole->k;
    assert_true(room_of(kernel, part, &planned) <= room_of(kernel, whole, v));
    char *all = run(kernel, whole, v, NULL, NULL), *some = run(kernel, part, &planned, NULL, NULL);
    for (int64_t i = 0; i < part->m; i++)
        if (memcmp(all + (size_t)i * distance, some + (size_t)i * distance, row) != 0)
            fail_msg("%s: row %lld of %lldx%lldx%lld is another in a part of %lld and %lld",
                     kernel->name, (long long)i, (long long)whole->m, (long long)whole->n,
                     (long long)whole->k, (long long)part->m, (long long)part->k);
    guarded_free(all, (size_t)whole->m * distance);
    guarded_free(some, (size_t)part->m * distance);
}

/* --- tests --- */

/* Alone the part would have other ranges of k: fewer rows are narrow, fewer products are less. */
static void a_part_has_the_bits_of_the_whole(void **state)
{
    static const struct {
        int64_t m, n, k, part_m, part_k;
    } shapes[] = {{520, 516, 600, 40, 600},  {520, 516, 600, 336, 600}, {70, 75, 1100, 70, 600},
                  {70, 75, 2100, 70, 1040},  {130, 48, 96, 33, 96},     {16, 90, 1100, 16, 48},
                  {96, 640, 1056, 32, 1056}, {600, 520, 32, 600, 16},   {64, 48, 64, 64, 40}};
    for (size_t i = 0; i < TP_COUNTOF(shapes); i++) {
        problem whole = make_problem(shapes[i].m, shapes[i].n, shapes[i].k);
        problem part = part_of(&whole, shapes[i].part_m, shapes[i].part_k);
        for (unsigned bits = 0; bits < 32; bits++) {
            variant v = {.ab = bits & 1 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .c = bits & 2 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .a_trans = bits & 4,
                         .b_trans = bits & 8,
                         .accumulate = bits & 16};
            for (size_t k = 0; k < TP_COUNTOF(all_kernels); k++)
                if (can_run(all_kernels[k], v.ab) &&
                    !takes_too_long(all_kernels[k], whole.m, whole.n, whole.k))
                    compare_part(all_kernels[k], &whole, &part, &v);
        }
        free_problem(&part);
        free_problem(&whole);
    }
}

static void check_shapes(const int64_t (*shapes)[3], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        problem p = make_problem(shapes[i][0], shapes[i][1], shapes[i][2]);
        multiply(&p);
        check_all_variants(&p);
        free_problem(&p);
    }
}

static void multiplies_small_and_odd_shapes(void **state)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1},    {1, 33, 7},   {2, 64, 31},  {3, 5, 2},    {5, 47, 33},  {13, 32, 64},
        {14, 16, 3},  {15, 31, 65}, {16, 65, 16}, {17, 70, 1},  {29, 96, 32}, {31, 129, 45},
        {33, 17, 66}, {64, 48, 34}, {8, 130, 97}, {4, 257, 40},
    };
    check_shapes(shapes, TP_COUNTOF(shapes));
}

/* Whole steps of k and more than a tile of rows: a kernel may read A, or the weight of the
 * transposed product, where it lies; with a last panel that is not full, several chunks of k, in
 * two several ranges, and in the last two rows 4 KiB apart, which are packed in f32, and 5. */
static void multiplies_lines_in_place(void **state)
{
    static const int64_t shapes[][3] = {{64, 32, 32},  {70, 90, 64},   {20, 70, 64},
                                        {64, 16, 288}, {97, 17, 288},  {64, 7, 1056},
                                        {7, 64, 1056}, {30, 45, 1024}, {45, 30, 1280}};
    check_shapes(shapes, TP_COUNTOF(shapes));
}

/* Steps of k that zeros make whole: A lies in place, unless the product is transposed. */
static void multiplies_rows_with_zeros_behind_them(void **state)
{
    static const int64_t shapes[][3] = {{64, 33, 77}, {70, 45, 257},  {97, 20, 1059}, {40, 70, 31},
                                        {20, 70, 65}, {33, 17, 4999}, {3, 40, 67}};
    for (size_t i = 0; i < TP_COUNTOF(shapes); i++) {
        problem p = make_problem(shapes[i][0], shapes[i][1], shapes[i][2]);
        multiply(&p);
        for (unsigned bits = 0; bits < 32; bits++) {
            variant v = {.ab = bits & 1 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .c = bits & 2 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .a_trans = bits & 4,
                         .b_trans = bits & 8,
                         .accumulate = bits & 16,
                         .is_padded = true};
            check_kernels(&p, &v);
        }
        free_problem(&p);
    }
}

/* Whole tiles go past the caches, where they are whole lines. */
static void multiplies_what_no_cache_holds(void **state)
{
    static const int64_t shapes[][3] = {
        {64, 96, 32}, {70, 80, 64}, {40, 192, 64}, {33, 208, 64}, {40, 200, 64}};
    for (size_t i = 0; i < TP_COUNTOF(shapes); i++) {
        problem p = make_problem(shapes[i][0], shapes[i][1], shapes[i][2]);
        multiply(&p);
        for (unsigned bits = 0; bits < 16; bits++) {
            variant v = {.ab = TP_DTYPE_BF16,
                         .c = bits & 1 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .b_trans = bits & 2,
                         .accumulate = bits & 4,
                         .has_bias = bits & 8,
                         .bias = TP_DTYPE_F32,
                         .is_dense = true,
                         .is_far = true};
            check_kernels(&p, &v);
        }
        free_problem(&p);
    }
}

/* Rows of 1, 2, 4 and 8 pass over B together, in parts of k where they are long; up to half of a
 * tile's columns are computed by themselves, alone and behind whole tiles. */
static void multiplies_few_rows(void **state)
{
    static const int64_t shapes[][3] = {{1, 37, 8300}, {2, 21, 4200}, {3, 18, 2100}, {7, 19, 1100},
                                        {8, 33, 544},  {9, 30, 64},   {12, 45, 96},  {16, 29, 1056},
                                        {45, 48, 64},  {33, 16, 128}, {15, 10, 4099}};
    check_shapes(shapes, TP_COUNTOF(shapes));
}

static void multiplies_in_several_ranges_of_k(void **state)
{
    static const int64_t depths[] = {600, 1027, 2050, 4099, 8195};
    for (size_t i = 0; i < TP_COUNTOF(depths); i++) {
        problem p = make_problem(19, 37, depths[i]);
        multiply(&p);
        check_all_variants(&p);
        free_problem(&p);
    }
}

/* As the gradients of weights are: k not contiguous, with panels that fill L2 more than once, last
 * panels that are not full, several groups of tiles and several ranges of k. */
static void multiplies_columns_packed_late(void **state)
{
    static const int64_t shapes[][3] = {{70, 900, 1100}, {900, 70, 1100}, {150, 45, 4200},
                                        {64, 96, 544},   {96, 64, 527},   {33, 31, 300}};
    for (size_t i = 0; i < TP_COUNTOF(shapes); i++) {
        problem p = make_problem(shapes[i][0], shapes[i][1], shapes[i][2]);
        multiply(&p);
        for (unsigned bits = 0; bits < 8; bits++) {
            variant v = {.ab = TP_DTYPE_BF16,
                         .c = bits & 1 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .a_trans = true,
                         .accumulate = bits & 2,
                         .b_trans = bits & 4,
                         .has_bias = bits == 1 || bits == 6,
                         .bias = TP_DTYPE_F32};
            for (size_t k = 0; k < TP_COUNTOF(all_kernels); k++)
                if (can_run(all_kernels[k], v.ab))
                    check(all_kernels[k], &p, &v);
        }
        free_problem(&p);
    }
}

/* A gradient that the caches do not hold, in whole lines: it goes past them where nothing is added
 * to it, but for rows and columns of tiles that are not whole. */
static void multiplies_gradients_past_the_caches(void **state)
{
    static const int64_t widths[] = {1040, 1056};
    int64_t most_cached = (int64_t)tp_cpu_cache_sizes().l2 * 2 / (int64_t)sizeof(float);
    for (size_t i = 0; i < TP_COUNTOF(widths); i++) {
        problem p = make_problem(most_cached / widths[i] + 17, widths[i], 35);
        multiply(&p);
        for (unsigned bits = 0; bits < 8; bits++) {
            variant v = {.ab = bits & 1 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .c = TP_DTYPE_F32,
                         .a_trans = true,
                         .accumulate = bits & 2,
                         .is_dense = true,
                         .threads = bits & 4 ? 1 : 2};
            check_kernels(&p, &v);
        }
        free_problem(&p);
    }
}

/* Larger than one block of the driver in m and n (k makes the panels long). */
static void multiplies_in_several_blocks(void **state)
{
    static const int64_t shapes[][3] = {{2100, 70, 2049}, {40, 2100, 2049}, {200, 600, 2064}};
    for (size_t i = 0; i < TP_COUNTOF(shapes); i++) {
        problem p = make_problem(shapes[i][0], shapes[i][1], shapes[i][2]);
        multiply(&p);
        variant forward = {.ab = TP_DTYPE_BF16, .c = TP_DTYPE_BF16, .b_trans = true};
        variant gradient = {
            .ab = TP_DTYPE_BF16, .c = TP_DTYPE_F32, .a_trans = true, .accumulate = true};
        variant single = {.ab = TP_DTYPE_F32, .c = TP_DTYPE_F32, .has_bias = true};
        check_kernels(&p, &forward);
        check_kernels(&p, &gradient);
        check_kernels(&p, &single);
        single.b_trans = true;
        check_kernels(&p, &single);
        free_problem(&p);
    }
}

static void carries_nan_and_infinity_to_their_rows_and_columns(void **state)
{
    static const int64_t rows[] = {3, 40};
    for (size_t i = 0; i < TP_COUNTOF(rows); i++) {
        problem p = make_problem(rows[i], 50, 71);
        p.a[1 * p.k + 70] = NAN;
        p.a[2 * p.k + 3] = -INFINITY;
        p.b[5 * p.n + 33] = INFINITY;
        p.b[70 * p.n + 49] = NAN;
        multiply(&p);
        check_all_variants(&p);
        free_problem(&p);
    }
}

static void gives_the_same_bits_with_any_number_of_threads(void **state)
{
    static const int64_t shapes[][3] = {{150, 200, 71},  {8, 1500, 130},  {70, 90, 4500},
                                        {600, 1500, 70}, {330, 200, 288}, {16, 700, 96}};
    for (size_t s = 0; s < TP_COUNTOF(shapes); s++) {
        problem p = make_problem(shapes[s][0], shapes[s][1], shapes[s][2]);
        for (unsigned bits = 0; bits < 16; bits++) {
            variant v = {.ab = bits & 1 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .c = bits & 2 ? TP_DTYPE_BF16 : TP_DTYPE_F32,
                         .b_trans = bits & 4,
                         .a_trans = bits & 8};
            size_t bytes = (size_t)(p.m * (p.n + 3)) * tp_dtype_size(v.c);
            for (size_t i = 0; i < TP_COUNTOF(all_kernels); i++) {
                if (!can_run(all_kernels[i], v.ab))
                    continue;
                double one, several;
                v.threads = 1;
                void *alone = run(all_kernels[i], &p, &v, NULL, &one);
                for (int threads = 2; threads <= 4; threads++) {
                    v.threads = threads;
                    void *together = run(all_kernels[i], &p, &v, NULL, &several);
                    assert_memory_equal(alone, together, bytes);
                    assert_memory_equal(&one, &several, sizeof one);
                    guarded_free(together, bytes);
                }
                guarded_free(alone, bytes);
            }
        }
        free_problem(&p);
    }
}

static void takes_the_best_kernel_in_force(void **state)
{
    tp_gemm gemm = {.m = 1, .n = 1, .k = 1, .ab_dtype = TP_DTYPE_BF16, .c_dtype = TP_DTYPE_F32};
    for (int isa = 0; isa <= (int)tp_cpu_detect(); isa++) {
        assert_int_equal(tp_cpu_force_isa((tp_isa)isa, NULL), TP_OK);
        assert_string_equal(tp_gemm_kernel_name(&gemm), tp_isa_name((tp_isa)isa));
    }
    if (tp_cpu_detect() < TP_ISA_AMX)
        assert_int_equal(tp_cpu_force_isa(TP_ISA_AMX, NULL), TP_ERR_UNSUPPORTED);
    assert_int_equal(tp_cpu_force_isa(tp_cpu_detect(), NULL), TP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_the_bits_of_the_whole),
        cmocka_unit_test(multiplies_small_and_odd_shapes),
        cmocka_unit_test(multiplies_lines_in_place),
        cmocka_unit_test(multiplies_rows_with_zeros_behind_them),
        cmocka_unit_test(multiplies_what_no_cache_holds),
        cmocka_unit_test(multiplies_few_rows),
        cmocka_unit_test(multiplies_in_several_ranges_of_k),
        cmocka_unit_test(multiplies_columns_packed_late),
        cmocka_unit_test(multiplies_gradients_past_the_caches),
        cmocka_unit_test(multiplies_in_several_blocks),
        cmocka_unit_test(carries_nan_and_infinity_to_their_rows_and_columns),
        cmocka_unit_test(gives_the_same_bits_with_any_number_of_threads),
        cmocka_unit_test(takes_the_best_kernel_in_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
