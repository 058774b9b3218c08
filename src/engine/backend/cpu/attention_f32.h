/* attention_f32.h - attention_block.h with elements of f32. */
#ifndef TP_ENGINE_BACKEND_CPU_ATTENTION_F32_H
#define TP_ENGINE_BACKEND_CPU_ATTENTION_F32_H

typedef float el;

enum { HEAD_MULTIPLE = 16 }; /* padded head dimension */
enum { LANE_ELEMENTS = 1 };  /* of a column of the B form, side by side */
enum { TILE_VECTORS = VF_N == 16 ? 4 : 2, TILE_ROWS = 4 };

VF_INLINE void el_store(el *to, vf x) { vf_store(to, x); }

/* D elements of a tensor's row, with zeros up to `padded`. */
VF_INLINE void el_load_row(el *to, const void *row, bool bf16, int64_t D, int64_t padded)
{
    int64_t d = 0;
    for (; d + VF_N <= D; d += VF_N)
        vf_store(to + d, vf_get(row, bf16, d));
    for (; d < padded; d += VF_N)
        vf_store(to + d, D > d ? vf_get_n(row, bf16, d, D - d) : vf_zero());
}

/* A lane's values of keys n (even) and n + 1 into B form [64 keys, 64 queries]. */
VF_INLINE void el_store_b(el *b, int64_t n, int64_t lane, vf even, vf odd)
{
    vf_store(b + n * BLOCK + lane, even);
    vf_store(b + (n + 1) * BLOCK + lane, odd);
}

/* The four forms of a block of 64 rows of D, all from its A form x[64, padded]. */
static inline void a_turned(const el *x, int64_t padded, el *to, el *spare) /* [padded, 64] */
{
    (void)spare;
    transpose_32((const word32 *)x, BLOCK, padded, (word32 *)to);
}

static inline void b_turned(const el *x, int64_t padded, el *to) /* K = D, N = 64 */
{
    transpose_32((const word32 *)x, BLOCK, padded, (word32 *)to);
}

static inline void b_straight(const el *x, int64_t padded, el *to) /* K = 64, N = D */
{
    memcpy(to, x, (size_t)(BLOCK * padded) * sizeof *x);
}

VF_INLINE void tile_product(float *c, const el *a, const el *b, const product_shape *s, bool add,
                            int vectors)
{
    const int64_t n = s->width, a_width = s->a_width;
    vf sum[TILE_ROWS][TILE_VECTORS];
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int j = 0; j < vectors; j++)
            sum[i][j] = add ? vf_load(c + i * n + j * VF_N) : vf_zero();
    }
    for (int64_t p = 0; p < s->k; p++) {
        vf right[TILE_VECTORS];
        for (int j = 0; j < vectors; j++)
            right[j] = vf_load(b + p * n + j * VF_N);
        for (int i = 0; i < TILE_ROWS; i++) {
            vf left = vf_set(a[i * a_width + p]);
            for (int j = 0; j < vectors; j++)
                sum[i][j] = vf_fma(left, right[j], sum[i][j]);
        }
    }
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int j = 0; j < vectors; j++)
            vf_store(c + i * n + j * VF_N, sum[i][j]);
    }
}

static inline void product(float *c, const el *a, const el *b, product_shape s, bool add)
{
    int64_t j = 0;
    for (; j + TILE_VECTORS * VF_N <= s.n; j += TILE_VECTORS * VF_N) {
        for (int64_t i = 0; i < s.m; i += TILE_ROWS)
            tile_product(c + i * s.width + j, a + i * s.a_width, b + j, &s, add, TILE_VECTORS);
    }
    for (; j < s.n; j += VF_N) {
        for (int64_t i = 0; i < s.m; i += TILE_ROWS)
            tile_product(c + i * s.width + j, a + i * s.a_width, b + j, &s, add, 1);
    }
}

VF_INLINE void enter_products(void) {}
VF_INLINE void leave_products(void) {}

/* Tensors may be f32 or bf16. */
static inline bool takes_tensor(const tp_operand *x, int64_t head_dim)
{
    (void)head_dim;
    return is_f32_or_half(x);
}

#endif
