/* gemm_amx.c - the matrix product with AMX tiles: 16 x 16 sums from 32 bf16 products each.
 *
 * A tile() call keeps 2 x 2 tiles of sums and loads 2 + 2 tiles per 32 k:
 *
 *                 B: tiles 6, 7: [16 pairs of k][16 columns][2]
 *     A: tile 4    0  1
 *        tile 5    2  3           A: [16 rows][32 k] */
#include <immintrin.h>
#include <string.h>

#include "engine/backend/cpu/amx_tiles.h"

#include "engine/backend/cpu/gemm_finish_avx512.h"
#include "engine/backend/cpu/gemm_pack_avx512.h"
#include "engine/backend/cpu/gemm_squares.h"

enum {
    ROWS = 32,
    COLS = 32,
    DEPTH = 32,         /* k of one tile of A */
    LINE = 64,          /* bytes of a tile row */
    B_STEP = 2 * 1024,  /* of two tiles of B, row by row side by side */
    B_STRIDE = 2 * LINE /* bytes from pair to pair */
};

static void enter(void) { configure_tiles(NULL); }

static void leave(void)
{
    TILE_RELEASE();
    _mm_sfence(); /* what was streamed is there for other threads before they are told */
}

static void pack_a(void *panels, const tp_gemm_operand *a, const tp_gemm_part *part)
{
    pack_lines(LANE_BF16_PAIR, ROWS, panels, a, part);
}

static void pack_b(void *panels, const tp_gemm_operand *b, const tp_gemm_part *part)
{
    pack_columns(LANE_BF16_PAIR, COLS, panels, b, part);
}

/* Lines that are brought nearer while a tile is computed: `rows` of C in each step, and two of
 * what is read after these tiles. */
typedef struct {
    const char *c, *next;
    int64_t row, stride; /* bytes */
    int rows, lines;
    bool is_wide; /* f32: two lines in a row */
} coming;

GEMM_INLINE void bring(coming *c)
{
    for (int i = 0; i < c->rows; i++, c->c += c->row) {
        __builtin_prefetch(c->c, 0, 2); /* to L2: rows of C far apart meet in few sets of L1 */
        if (c->is_wide)
            __builtin_prefetch(c->c + LINE, 0, 2);
    }
    for (int i = 0; i < c->lines; i++, c->next += c->stride)
        __builtin_prefetch(c->next, 0, 2);
}

/* The sums 0 to 3 of all k. */
GEMM_INLINE void multiply(tp_gemm_lines a, const char *b, int64_t k, coming *next)
{
    const char *upper = a.at, *lower = upper + 16 * a.row;
    for (; k > 0; k -= DEPTH, upper += a.step, lower += a.step, b += B_STEP) {
        TILE_LOAD(4, upper, a.row);
        TILE_LOAD(6, b, B_STRIDE);
        TILE_MULTIPLY(0, 4, 6);
        TILE_LOAD(7, b + LINE, B_STRIDE);
        TILE_MULTIPLY(1, 4, 7);
        TILE_LOAD(5, lower, a.row);
        TILE_MULTIPLY(2, 5, 6);
        TILE_MULTIPLY(3, 5, 7);
        bring(next);
    }
}

GEMM_INLINE void load_sums(const float *sums, int64_t ld)
{
    const float *lower = sums + 16 * ld;
    size_t stride = (size_t)ld * sizeof(float);
    TILE_LOAD(0, sums, stride);
    TILE_LOAD(1, sums + 16, stride);
    TILE_LOAD(2, lower, stride);
    TILE_LOAD(3, lower + 16, stride);
}

GEMM_INLINE void store_sums(float *sums, int64_t ld)
{
    float *lower = sums + 16 * ld;
    size_t stride = (size_t)ld * sizeof(float);
    TILE_STORE(0, sums, stride);
    TILE_STORE(1, sums + 16, stride);
    TILE_STORE(2, lower, stride);
    TILE_STORE(3, lower + 16, stride);
}

GEMM_INLINE void zero_sums(void)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
}

/* Do sums that need nothing but to be added begin and end in C itself? */
static bool is_direct(const tp_gemm_tiles *t)
{
    const tp_gemm *g = t->gemm;
    return g->c_dtype == TP_DTYPE_F32 && !t->is_transposed && !g->bias && !g->pre &&
           g->epilogue == TP_GEMM_EPILOGUE_NONE;
}

/* A tile that is not whole takes its elements of C with it. */
static void copy_part(const tp_gemm_tiles *t, float *to, int64_t ld_to, const float *from,
                      int64_t ld_from)
{
    for (int i = 0; i < t->rows; i++)
        memcpy(to + i * ld_to, from + i * ld_from, (size_t)t->cols * sizeof *to);
}

/* Two columns of C, of 16 rows, as pairs of bf16. */
GEMM_INLINE __m512i round_columns(__m512 left, __m512 right)
{
    __m512i low = _mm512_cvtepu16_epi32(vf_round_half(left));
    return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_cvtepu16_epi32(vf_round_half(right)), 16));
}

GEMM_INLINE void store_turned(void *c, int64_t at, int64_t ldc, __m512i columns[16])
{
    pack_transpose(columns);
    for (int i = 0; i < 16; i++)
        _mm512_storeu_si512((tp_bf16 *)c + at + i * ldc, columns[i]);
}

/* What becomes of a whole tile of C in bf16.  Constants where a tile is finished, so that its loops
 * ask for nothing. */
typedef struct {
    bool has_bias, adds, has_pre; /* adds: what C held before */
    tp_gemm_epilogue epilogue;
} ending;

GEMM_INLINE __m512 activate(const ending e, __m512 x)
{
    return e.epilogue == TP_GEMM_EPILOGUE_NONE
               ? x
               : vf_gelu(x, e.epilogue == TP_GEMM_EPILOGUE_GELU_TANH, true);
}

/* sums[32 rows of C][32 columns of C]. */
GEMM_INLINE void finish_straight(const tp_gemm *g, const ending e, const float *sums, int64_t ld,
                                 int64_t i, int64_t j)
{
    const int64_t ldc = g->ldc;
    tp_bf16 *c = (tp_bf16 *)g->c + i * ldc + j;
    tp_bf16 *pre = e.has_pre ? (tp_bf16 *)g->pre + i * ldc + j : NULL;
    __m512 bias[2];
    for (int side = 0; e.has_bias && side < 2; side++)
        bias[side] = finish_load16(g->bias, g->bias_dtype, j + 16 * side, 0xffff);
#pragma GCC unroll 4
    for (int row = 0; row < ROWS; row++, sums += ld, c += ldc) {
        __m512 value[2];
#pragma GCC unroll 2
        for (int side = 0; side < 2; side++) {
            value[side] = _mm512_loadu_ps(sums + 16 * side);
            if (e.has_bias)
                value[side] = _mm512_add_ps(value[side], bias[side]);
            if (e.adds)
                value[side] = _mm512_add_ps(value[side], vf_load_half(c + 16 * side));
        }
        if (e.has_pre) {
            _mm512_storeu_si512(pre, vf_round_halves(value[0], value[1]));
            pre += ldc;
        }
        _mm512_storeu_si512(c, vf_round_halves(activate(e, value[0]), activate(e, value[1])));
    }
}

/* sums[32 columns of C][32 rows of C], without what C held before: rounded before they are
 * transposed, so that half as many shuffles turn them, into whole lines. */
GEMM_INLINE void finish_turned(const tp_gemm *g, const ending e, const float *sums, int64_t ld,
                               int64_t i, int64_t j)
{
    __m512 bias[2];
    for (int side = 0; e.has_bias && side < 2; side++)
        bias[side] = finish_load16(g->bias, g->bias_dtype, j + 16 * side, 0xffff);
    for (int row = 0; row < ROWS; row += 16) {
        __m512i c[16], pre[16];
#pragma GCC unroll 16
        for (int x = 0; x < 16; x++) {
            __m512 value[2];
#pragma GCC unroll 2
            for (int side = 0; side < 2; side++) {
                int column = 2 * x + side;
                value[side] = _mm512_loadu_ps(sums + column * ld + row);
                if (e.has_bias)
                    value[side] = _mm512_add_ps(
                        value[side],
                        _mm512_permutexvar_ps(_mm512_set1_epi32(column % 16), bias[column / 16]));
            }
            pre[x] = round_columns(value[0], value[1]);
            c[x] = e.epilogue == TP_GEMM_EPILOGUE_NONE
                       ? pre[x]
                       : round_columns(activate(e, value[0]), activate(e, value[1]));
        }
        int64_t at = (i + row) * g->ldc + j;
        if (e.has_pre)
            store_turned(g->pre, at, g->ldc, pre);
        store_turned(g->c, at, g->ldc, c);
    }
}

/* Not inlined: every ending has registers of its own. */
#define ENDING(name, bias, adds_, pre, epilogue_)                                               \
    static __attribute__((noinline)) void name(const tp_gemm *g, const float *sums, int64_t ld, \
                                               int64_t i, int64_t j, bool turns)                \
    {                                                                                           \
        const ending e = {bias, adds_, pre, TP_GEMM_EPILOGUE_##epilogue_};                      \
        if (turns && !(adds_))                                                                  \
            finish_turned(g, e, sums, ld, i, j);                                                \
        else                                                                                    \
            finish_straight(g, e, sums, ld, i, j);                                              \
    }

ENDING(end_plain, false, false, false, NONE)
ENDING(end_bias, true, false, false, NONE)
ENDING(end_adds, false, true, false, NONE)
ENDING(end_tanh, false, false, false, GELU_TANH)
ENDING(end_tanh_bias, true, false, false, GELU_TANH)
ENDING(end_tanh_pre, false, false, true, GELU_TANH)
ENDING(end_tanh_pre_bias, true, false, true, GELU_TANH)
ENDING(end_erf, false, false, false, GELU_ERF)
ENDING(end_erf_bias, true, false, false, GELU_ERF)
ENDING(end_erf_pre, false, false, true, GELU_ERF)
ENDING(end_erf_pre_bias, true, false, true, GELU_ERF)

/* sums[32 columns of C][32 rows of C] past the caches. */
static void stream_turned(const tp_gemm *g, const float *sums, int64_t ld, int64_t i, int64_t j,
                          bool turns)
{
    (void)turns;
    for (int column = 0; column < COLS; column += 16) {
        for (int row = 0; row < ROWS; row += 16) {
            float *c = (float *)g->c + (i + row) * g->ldc + j + column;
            __m512i lanes[16];
#pragma GCC unroll 16
            for (int x = 0; x < 16; x++)
                lanes[x] = _mm512_loadu_si512(sums + (column + x) * ld + row);
            pack_transpose(lanes);
#pragma GCC unroll 16
            for (int x = 0; x < 16; x++, c += g->ldc)
                _mm512_stream_si512((void *)c, lanes[x]);
        }
    }
}

typedef void end_tile(const tp_gemm *g, const float *sums, int64_t ld, int64_t i, int64_t j,
                      bool turns);

/* How a whole tile ends, or NULL: some other way. */
static end_tile *ending_of(const tp_gemm *g, bool accumulates, bool turns)
{
    static end_tile *const gelu[2][2][2] = {
        {{end_tanh, end_tanh_bias}, {end_tanh_pre, end_tanh_pre_bias}},
        {{end_erf, end_erf_bias}, {end_erf_pre, end_erf_pre_bias}}};
    bool is_plain = !accumulates && !g->bias && !g->pre && g->epilogue == TP_GEMM_EPILOGUE_NONE;
    bool has_lines = (uintptr_t)g->c % LINE == 0 && g->ldc % 16 == 0;
    if (g->c_dtype != TP_DTYPE_BF16)
        return g->c_is_far && turns && is_plain && has_lines ? stream_turned : NULL;
    if (g->epilogue != TP_GEMM_EPILOGUE_NONE)
        return accumulates ? NULL
                           : gelu[g->epilogue == TP_GEMM_EPILOGUE_GELU_ERF][g->pre != NULL]
                                 [g->bias != NULL];
    if (g->pre || (accumulates && (turns || g->bias)))
        return NULL;
    return accumulates ? end_adds : g->bias ? end_bias : end_plain;
}

/* A whole tile of sums to C past the caches: lines that are written whole are not read for it. */
static void stream_sums(const float *sums, int64_t ld, float *c, int64_t ldc)
{
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++, sums += ld, c += ldc) {
        _mm512_stream_ps(c, _mm512_load_ps(sums));
        _mm512_stream_ps(c + 16, _mm512_load_ps(sums + 16));
    }
}

static void finish_one(const tp_gemm_tiles *t, const float *sums, int64_t i, int64_t j)
{
    if (t->is_transposed)
        finish_transposed_tile(t->gemm, sums, t->ld, i, t->rows, j, t->cols, t->accumulates);
    else
        finish_rows(t->gemm, sums, t->ld, i, t->rows, j, t->cols, t->accumulates);
}

static void tiles(const tp_gemm_tiles *t)
{
    const tp_gemm *g = t->gemm;
    const bool is_wide = g->c_dtype == TP_DTYPE_F32, direct = is_direct(t);
    const int64_t element = is_wide ? 4 : 2, row = g->ldc * element, steps = t->k_padded / DEPTH;
    const int rows = (int)((t->rows + steps - 1) / steps);
    const bool from_c = direct && t->accumulates && !t->adds, to_c = direct && t->is_last;
    const bool is_whole = t->rows == ROWS && t->cols == COLS;
    end_tile *const end = is_whole ? ending_of(g, t->accumulates, t->is_transposed) : NULL;
    const bool streams = to_c && is_whole && t->is_streamed && (uintptr_t)g->c % LINE == 0;
    coming next = {.next = t->ahead,
                   .stride = t->ahead_stride,
                   .lines = t->ahead_lines,
                   .row = row,
                   .is_wide = is_wide};
    tp_gemm_lines a = t->a;
    const char *b = t->b;
    float *sums = t->sums;
    int64_t i = t->i, j = t->j;
    double *to = t->squares;
    for (int64_t n = t->count; n > 0; n--, a.at += t->a_next, b += t->b_next) {
        float *c = (float *)g->c + i * g->ldc + j;
        bool warms = n > 1 ? from_c || t->is_last : t->is_last_but_one;
        int64_t ci = n > 1 ? i + t->i_next : t->i, cj = n > 1 ? j + t->j_next : t->j;
        next.c = (const char *)g->c + (ci * g->ldc + cj) * element;
        next.rows = warms && !t->is_streamed && end != stream_turned ? rows : 0;
        if (from_c && !is_whole)
            copy_part(t, sums, t->ld, c, g->ldc);
        if (from_c && is_whole)
            load_sums(c, g->ldc);
        else if (from_c || t->adds)
            load_sums(sums, t->ld);
        else
            zero_sums();
        multiply(a, b, t->k_padded, &next);
        if (to_c && is_whole && !streams) {
            store_sums(c, g->ldc);
        } else {
            store_sums(sums, t->ld);
            if (streams)
                stream_sums(sums, t->ld, c, g->ldc);
            else if (to_c)
                copy_part(t, c, g->ldc, sums, t->ld);
            else if (t->is_last && end)
                end(g, sums, t->ld, i, j, t->is_transposed);
            else if (t->is_last)
                finish_one(t, sums, i, j);
        }
        if (to) {
            *to = streams ? squares_of_tile(sums, t->ld, ROWS, COLS)
                          : squares_of_tile(c, g->ldc, t->rows, t->cols);
            to += t->squares_next;
        }
        sums += t->sums_next;
        i += t->i_next;
        j += t->j_next;
    }
}

const tp_gemm_kernel tp_gemm_kernel_amx = {
    .name = "amx",
    .isa = TP_ISA_AMX,
    .half = TP_DTYPE_BF16,
    .rows = ROWS,
    .cols = COLS,
    .element_size = sizeof(tp_bf16),
    .k_round = DEPTH,
    .k_block = 4096,
    .k_chunk = 256, /* a panel's 16 KiB stay in L1 while the other operand streams past */
    .pack_a = pack_a,
    .pack_b = pack_b,
    .tiles = tiles,
    .squares = squares_of_tile,
    .finish = finish_rows,
    .finish_transposed = finish_transposed_tile,
    .small_rows = 2,
    .small_dots = 2, /* of more, tiles are faster, most of whose rows are empty */
    .small_scratch = tp_gemm_small_scratch_bf16,
    .small = tp_gemm_small_bf16,
    .enter = enter,
    .leave = leave,
};
