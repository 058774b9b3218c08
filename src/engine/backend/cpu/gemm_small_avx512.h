/* gemm_small_avx512.h - products with few rows of A (decoding): B is streamed once, unpacked.
 *
 * X is A as lanes of 32 bits (an f32 or a pair of bf16), zero behind k.
 *   - B with k contiguous (a weight [N,K]): dot products of rows of B, one after the other as they
 *     lie in memory, with all rows of X; x[lane / 16][rows][16], so that one pointer finds all.
 *   - B with n contiguous ([K,N]): a stripe of columns of B times broadcasts from X, x[rows][x_ld].
 *     More than 8 rows of A pass over the stripe twice, the second time from the nearest caches.
 *
 * The including file defines multiply_lanes() before the include. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_SMALL_AVX512_H
#define TP_ENGINE_BACKEND_CPU_GEMM_SMALL_AVX512_H

#include "engine/backend/cpu/gemm_finish_avx512.h"

enum {
    SMALL_PASS = 8,       /* rows of A at a time; dot products take one pass */
    SMALL_STRIPE = 128,   /* columns of C between calls of finish */
    SMALL_X = 4096,       /* lanes of X that stay in L1 beside a row of B */
    SMALL_AHEAD = 8192,   /* bytes of prefetch along the rows of B */
    SMALL_ROWS_AHEAD = 12 /* steps of prefetch across rows of B */
};

typedef struct {
    const tp_gemm *gemm;
    const uint32_t *x;
    int64_t rows; /* of x: those of A and rows of zeros */
    int64_t x_ld; /* lanes, a multiple of 16 */
    float *sums;  /* [rows][SMALL_STRIPE] */
} small_job;

GEMM_INLINE int64_t small_x_ld(const pack_lane lane, const tp_gemm *g)
{
    int64_t lanes = lane == LANE_BF16_PAIR ? (g->k + 1) / 2 : g->k;
    return (lanes + 15) / 16 * 16;
}

/* Rows of A in one pass: the smallest of 1, 2, 4, 8 that covers what is left. */
GEMM_INLINE int small_pass(int64_t left)
{
    return left <= 2 ? (int)left : left <= 4 ? 4 : SMALL_PASS;
}

GEMM_INLINE int64_t small_x_rows(const tp_gemm *g)
{
    int64_t whole = g->m / SMALL_PASS * SMALL_PASS;
    return whole + small_pass(g->m - whole);
}

GEMM_INLINE size_t small_scratch_bytes(const pack_lane lane, const tp_gemm *g)
{
    size_t row_lanes = (size_t)small_x_ld(lane, g) + SMALL_STRIPE;
    return (size_t)small_x_rows(g) * row_lanes * sizeof(uint32_t);
}

GEMM_INLINE small_job small_prepare(const pack_lane lane, const tp_gemm *g, void *scratch)
{
    uint32_t *x = scratch;
    small_job job = {.gemm = g, .x = x, .rows = small_x_rows(g), .x_ld = small_x_ld(lane, g)};
    job.sums = (float *)scratch + job.rows * job.x_ld;
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    tp_gemm_operand a = {g->a, g->lda, !g->a_trans, 0, g->ab_dtype};
    memset(x, 0, (size_t)(job.rows * job.x_ld) * sizeof *x);
    if (g->b_trans) {
        tp_gemm_part all = {0, g->m, 0, g->k, job.x_ld * per_lane, 0};
        pack_lines(lane, (int)job.rows, x, &a, &all);
        return job;
    }
    for (int64_t i = 0; i < g->m; i++) { /* one row: "lines" of width 1 lie one behind another */
        tp_gemm_part part = {i, 1, 0, g->k, job.x_ld * per_lane, 0};
        pack_lines(lane, 1, x + i * job.x_ld, &a, &part);
    }
    return job;
}

/* Rows of B, k contiguous, and the part of X that they meet. */
typedef struct {
    const uint32_t *x;
    int64_t nk;
    int64_t ld;    /* bytes */
    int64_t ahead; /* bytes from a load to what is prefetched */
    bool adds;     /* to the sums */
} small_dots;

/* sums[i][r] = or += the sum of the 16 lanes of dots[r * m + i]: transposed, they add up all at
 * once. */
GEMM_INLINE void small_add_up(const int m, const int rows_b, const __m512 dots[16], bool adds,
                              float *sums)
{
    __m512i lanes[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        lanes[i] = i < m * rows_b ? _mm512_castps_si512(dots[i]) : _mm512_setzero_si512();
    pack_transpose(lanes);
    __m512 total = _mm512_castsi512_ps(lanes[0]);
#pragma GCC unroll 16
    for (int i = 1; i < 16; i++)
        total = _mm512_add_ps(total, _mm512_castsi512_ps(lanes[i]));
    float each[16];
    _mm512_storeu_ps(each, total);
#pragma GCC unroll 8
    for (int i = 0; i < m; i++)
#pragma GCC unroll 16
        for (int r = 0; r < rows_b; r++) {
            float *sum = &sums[i * SMALL_STRIPE + r];
            *sum = adds ? *sum + each[r * m + i] : each[r * m + i];
        }
}

/* sums[i][0 .. rows_b-1] for the m rows of X from rows_b rows of B at `b`, at most 16 in all.  One
 * row of B after the other: side by side the memory gives them at half the rate. */
GEMM_INLINE void small_dot_rows(const pack_lane lane, const int m, const int rows_b,
                                const small_dots *d, const char *b, float *sums)
{
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    const int per_line = lane == LANE_BF16_PAIR ? 32 : 16;
    const int chains = m <= 2 ? 4 : m == 4 ? 2 : 1; /* sums of a dot product: one would wait */
    const int64_t ahead = d->ahead, nk = d->nk;
    __m512 dots[16];
#pragma GCC unroll 16
    for (int r = 0; r < rows_b; r++, b += d->ld) {
        const uint32_t *x = d->x;
        __m512 sum[4][SMALL_PASS];
#pragma GCC unroll 4
        for (int c = 0; c < chains; c++)
#pragma GCC unroll 8
            for (int i = 0; i < m; i++)
                sum[c][i] = _mm512_setzero_ps();
        int64_t k = 0;
        for (; k + chains * per_line <= nk; k += chains * per_line)
#pragma GCC unroll 4
            for (int c = 0; c < chains; c++, x += m * 16) {
                const char *at = b + (k + c * per_line) * element;
                _mm_prefetch(at + ahead, _MM_HINT_T1);
                __m512i line = pack_load_k(lane, at, 0, per_line);
#pragma GCC unroll 8
                for (int i = 0; i < m; i++)
                    sum[c][i] = multiply_lanes(sum[c][i], _mm512_loadu_si512(x + i * 16), line);
            }
        for (; k < nk; k += per_line, x += m * 16) {
            __m512i line = pack_load_k(lane, b, k, nk);
#pragma GCC unroll 8
            for (int i = 0; i < m; i++)
                sum[0][i] = multiply_lanes(sum[0][i], _mm512_loadu_si512(x + i * 16), line);
        }
#pragma GCC unroll 8
        for (int i = 0; i < m; i++) {
            __m512 dot = sum[0][i];
#pragma GCC unroll 4
            for (int c = 1; c < chains; c++)
                dot = _mm512_add_ps(dot, sum[c][i]);
            dots[r * m + i] = dot;
        }
    }
    small_add_up(m, rows_b, dots, d->adds, sums);
}

/* All m rows of X with rows j0 .. j0+cols-1 of B.  Where not all of X stays in L1 k is cut: a row
 * of B is left before its end, and the next is asked for at the same place. */
GEMM_INLINE void small_dot_stripe(const pack_lane lane, const int m, const small_job *job,
                                  int64_t j0, int cols)
{
    const tp_gemm *g = job->gemm;
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1, rows_b = 16 / m;
    const int64_t line = 16 * per_lane;
    int64_t parts = (job->x_ld * m + SMALL_X - 1) / SMALL_X;
    int64_t part = ((g->k + parts - 1) / parts + line - 1) / line * line;
    small_dots d = {.ld = g->ldb * element};
    d.ahead = part < g->k ? d.ld : SMALL_AHEAD;
    for (int64_t k = 0; k < g->k; k += part) {
        d.x = job->x + k / per_lane * m;
        d.nk = g->k - k < part ? g->k - k : part;
        d.adds = k > 0;
        const char *b = (const char *)g->b + j0 * d.ld + k * element;
        int j = 0;
        for (; j + rows_b <= cols; j += rows_b)
            small_dot_rows(lane, m, rows_b, &d, b + j * d.ld, job->sums + j);
        for (; j < cols; j++)
            small_dot_rows(lane, m, 1, &d, b + j * d.ld, job->sums + j);
    }
}

/* `cols` (up to 16 * vectors) columns of B, n contiguous, times m rows of X. */
GEMM_INLINE void small_columns(const pack_lane lane, const int m, const int vectors,
                               const small_job *job, const uint32_t *x, const char *b, int cols,
                               float *sums)
{
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    const int64_t k = job->gemm->k, ld = job->gemm->ldb, step_bytes = ld * element * per_lane;
    __m512 sum[SMALL_PASS][8];
#pragma GCC unroll 8
    for (int i = 0; i < m; i++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[i][v] = _mm512_setzero_ps();
    for (int64_t p = 0; p < k; p += per_lane, b += step_bytes, x++) {
        __m512i lanes[8];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v += 2) {
            const char *at = b + 16 * v * element;
            pack_row row = pack_load_x(lane, at, ld, cols - 16 * v, p, k);
            lanes[v] = row.half[0];
            lanes[v + 1] = row.half[1];
            _mm_prefetch(at + SMALL_ROWS_AHEAD * step_bytes, _MM_HINT_T0);
            if (lane == LANE_BF16_PAIR)
                _mm_prefetch(at + SMALL_ROWS_AHEAD * step_bytes + ld * element, _MM_HINT_T0);
            if (lane == LANE_F32)
                _mm_prefetch(at + SMALL_ROWS_AHEAD * step_bytes + 64, _MM_HINT_T0);
        }
#pragma GCC unroll 8
        for (int i = 0; i < m; i++) {
            __m512i xi = _mm512_set1_epi32((int)x[i * job->x_ld]);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[i][v] = multiply_lanes(sum[i][v], xi, lanes[v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < m; i++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_ps(sums + i * SMALL_STRIPE + 16 * v, sum[i][v]);
}

/* Rows i0 .. i0+m-1 of A with the stripe of columns j0 .. j0+cols-1. */
GEMM_INLINE void small_stripe_of(const pack_lane lane, const int m, const small_job *job,
                                 int64_t i0, int64_t j0, int cols)
{
    const tp_gemm *g = job->gemm;
    if (g->b_trans) {
        small_dot_stripe(lane, m, job, j0, cols);
        return;
    }
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    const uint32_t *x = job->x + i0 * job->x_ld;
    const char *b = g->b;
    float *sums = job->sums + i0 * SMALL_STRIPE;
    const int vectors = m <= 2 ? 8 : m == 4 ? 4 : 2;
    for (int j = 0; j < cols; j += 16 * vectors)
        small_columns(lane, m, vectors, job, x, b + (j0 + j) * element, cols - j, sums + j);
}

/* One pass from row i0 on; returns its rows.  X has rows of zeros behind its last, so that a pass
 * may run over it. */
GEMM_INLINE int small_stripe(const pack_lane lane, const small_job *job, int64_t i0, int64_t j0,
                             int cols)
{
    int rows = small_pass(job->gemm->m - i0);
    switch (rows) {
    case 1:
        small_stripe_of(lane, 1, job, i0, j0, cols);
        break;
    case 2:
        small_stripe_of(lane, 2, job, i0, j0, cols);
        break;
    case 4:
        small_stripe_of(lane, 4, job, i0, j0, cols);
        break;
    default:
        small_stripe_of(lane, SMALL_PASS, job, i0, j0, cols);
        break;
    }
    return rows;
}

/* Columns n0 .. n1-1 of C. */
GEMM_INLINE void small_product(const pack_lane lane, const tp_gemm *g, int64_t n0, int64_t n1,
                               void *scratch)
{
    small_job job = small_prepare(lane, g, scratch);
    for (int64_t j = n0; j < n1; j += SMALL_STRIPE) {
        int cols = (int)(n1 - j < SMALL_STRIPE ? n1 - j : SMALL_STRIPE);
        for (int64_t i = 0; i < g->m;)
            i += small_stripe(lane, &job, i, j, cols);
        finish_rows(g, job.sums, SMALL_STRIPE, 0, (int)g->m, j, cols, g->accumulate);
    }
}

#endif
