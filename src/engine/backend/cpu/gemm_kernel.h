/* gemm_kernel.h - what one instruction set contributes to the matrix product.
 *
 * The driver in gemm.c cuts C into tiles, copies ("packs") A and B once into panels laid out
 * as the kernel wants them, and calls the kernel tile by tile:
 *
 *                    B panels
 *                    +-----+-----+
 *                    |     |     |  k
 *                    +-----+-----+
 *          +------+  +-----+-----+
 *  A panel |      |  | tile|     |
 *          +------+  +-----+-----+
 *            k       |     |     |
 *                    +-----+-----+
 *
 * The layout inside a panel is the kernel's, but any multiple of k_round of k must start at
 * k * width * element_size bytes, width being that of a full panel.  Packing pads k with zeros
 * to a multiple of k_round and B to full panels; rows missing from an A panel are left as they
 * are, since only their own sums would suffer.
 *
 * The driver may also compute the transposed product, C^T = B^T A^T, when that makes packing
 * cheaper: then the roles of A and B change and tiles are finished by finish_transposed. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_KERNEL_H
#define TP_ENGINE_BACKEND_CPU_GEMM_KERNEL_H

#include "base/cpu.h"
#include "engine/backend/cpu/gemm.h"

#define GEMM_INLINE static inline __attribute__((always_inline))

/* Kernels that compute in f32 are compiled twice: halves are bf16, or binary16. */
#if defined(TP_CPU_F16)
#define GEMM_HALF TP_DTYPE_F16
#define GEMM_HALF_TO_F32 tp_f16_to_f32
#define GEMM_F32_TO_HALF tp_f32_to_f16
#define GEMM_KERNEL(isa) tp_gemm_kernel_##isa##_f16
#define GEMM_NAME(isa) isa "_f16"
#else
#define GEMM_HALF TP_DTYPE_BF16
#define GEMM_HALF_TO_F32 tp_bf16_to_f32
#define GEMM_F32_TO_HALF tp_f32_to_bf16
#define GEMM_KERNEL(isa) tp_gemm_kernel_##isa
#define GEMM_NAME(isa) isa
#endif

/* A or B seen alike: "x" counts rows of A or columns of B. */
typedef struct {
    const void *data;
    int64_t ld;
    bool k_contiguous; /* element (x, k) at data[x * ld + k], else data[k * ld + x] */
    int64_t padding;   /* elements behind the last k that are there and 0 */
    tp_dtype dtype;
} tp_gemm_operand;

/* The part of an operand that is packed at a time: x0 .. x0+nx-1 and k0 .. k0+nk-1, padded with
 * zeros to k_padded.  x0 begins a panel; nx may reach over several, `stride` bytes apart. */
typedef struct {
    int64_t x0, nx;
    int64_t k0, nk, k_padded;
    size_t stride;
} tp_gemm_part;

enum {
    TP_GEMM_MAX_ROWS = 32, /* of any kernel's tile */
    TP_GEMM_MAX_COLS = 32
};

/* Rows of A: 64 bytes of row i, step s, are at at + i * row + s * step.  A kernel that reads only
 * packed panels needs `at` alone.  `row` is 64 in a packed panel and the operand's own where it is
 * read in place. */
typedef struct {
    const char *at;
    int64_t row, step;
} tp_gemm_lines;

/* What a tile prefetches: for each 64 bytes of a row of A, `lines` cache lines `stride` bytes
 * apart, then on by `advance`. */
typedef struct {
    const char *at;
    int lines;
    bool is_far; /* into L2: too many lines for L1 beside those in use */
    int64_t stride, advance;
} tp_gemm_ahead;

/* Tiles that follow each other: one B panel with A panels one below the other, or one A panel with
 * B panels side by side. */
typedef struct {
    const tp_gemm *gemm;
    int64_t count, k_padded;
    tp_gemm_lines a;
    const char *b;
    int64_t a_next, b_next; /* bytes to what the next tile reads */
    float *sums;            /* of the first tile, in rows of `ld` */
    int64_t ld, sums_next;
    bool adds;            /* to the sums */
    bool is_last;         /* chunk of k: the tiles are finished */
    bool is_last_but_one; /* the first tile is finished next */
    const char *ahead;    /* what is read after these tiles: lines `ahead_stride` bytes apart, */
    int64_t ahead_stride;
    int ahead_lines; /* so many in each step of k */
    int64_t i, j;    /* of C, of the first tile */
    int64_t i_next, j_next;
    int rows, cols; /* of C, of each tile */
    bool is_transposed, accumulates;
    bool is_streamed; /* whole tiles of C whose lines are aligned go past the caches */
    double *squares;  /* (optional) of the first tile, finished; the next one's is so many behind */
    int64_t squares_next;
} tp_gemm_tiles;

typedef struct {
    const char *name;
    tp_isa isa;
    bool accepts_f32; /* A and B of f32 */
    tp_dtype half;    /* what else A and B may be, and C and the bias beside f32 */
    int rows, cols;   /* of the largest tile of C */
    int element_size; /* of a packed element */
    int k_round;
    int64_t k_block; /* packed at a time; bounds the workspace */
    int64_t k_part;  /* (optional) of a range where k is more than twice that and C is no gradient
                      * of a weight */
    int64_t k_chunk; /* per tile() call: what keeps an A panel near; 0 is all */

    void (*pack_a)(void *panels, const tp_gemm_operand *a, const tp_gemm_part *part);
    void (*pack_b)(void *panels, const tp_gemm_operand *b, const tp_gemm_part *part);
    bool packs_late; /* an A panel with k contiguous is cheap to pack again for each use */
    bool reads_rows; /* tile() reads rows of A that need no widening where they lie */

    /* C[rows, cols] = or += A panel * B panel over k_padded; C is f32 with `ldc` and has room for
     * all columns of a tile, of which those behind `cols` may be left as they are.  On the way the
     * tile brings `ahead` into the cache: what the next tiles will need.  Both by address: a
     * copy of what was just written, in larger words, would wait for all stores before it. */
    void (*tile)(int rows, int cols, int64_t k_padded, const tp_gemm_lines *a, const void *b,
                 float *c, int64_t ldc, bool add, const tp_gemm_ahead *ahead);
    /* (optional) The same of a whole tile that is set, whose lines are 64-byte aligned.  Returns
     * the sum of its squares. */
    double (*tile_past_caches)(int64_t k_padded, const tp_gemm_lines *a, const void *b, float *c,
                               int64_t ldc, const tp_gemm_ahead *ahead);
    /* The sum of the squares of elements of C, in the order of additions that tile_past_caches()
     * has: whether C goes past the caches depends on threads. */
    double (*squares)(const float *c, int64_t ldc, int rows, int cols);
    /* (optional) The same of a whole tile at C[i, j] with what is added to the sums, but for an
     * epilogue and what is before it; of the transposed product halves, to which C is not added. */
    void (*tile_finished)(const tp_gemm *gemm, int64_t k_padded, const tp_gemm_lines *a,
                          const void *b, int64_t i, int64_t j, bool is_transposed,
                          const tp_gemm_ahead *ahead);

    /* (optional) instead of tile(), and its results finished: reads lines of A of `half` with k
     * contiguous where they lie, of any distance. */
    void (*tiles)(const tp_gemm_tiles *tiles);

    /* Rows i0.. and columns j0.. of C from the finished sums acc[rows, cols]. */
    void (*finish)(const tp_gemm *gemm, const float *acc, int64_t ld_acc, int64_t i0, int rows,
                   int64_t j0, int cols, bool accumulate);

    /* (optional) the same where rows of acc are columns of C; `rows`, `cols` are C's. */
    void (*finish_transposed)(const tp_gemm *gemm, const float *acc, int64_t ld_acc, int64_t i0,
                              int rows, int64_t j0, int cols, bool accumulate);

    /* (optional) around the calls of one thread in one run */
    void (*enter)(void);
    void (*leave)(void);

    /* (optional) the product for m <= small_rows, or small_dots where k of B is contiguous, without
     * packing B: columns n0 .. n1-1. */
    int small_rows, small_dots;
    size_t (*small_scratch)(const tp_gemm *gemm); /* bytes, per thread */
    void (*small)(const tp_gemm *gemm, int64_t n0, int64_t n1, void *scratch);
} tp_gemm_kernel;

/* The product of few rows by vdpbf16ps; the AMX kernel takes it too. */
size_t tp_gemm_small_scratch_bf16(const tp_gemm *gemm);
void tp_gemm_small_bf16(const tp_gemm *gemm, int64_t n0, int64_t n1, void *scratch);

extern const tp_gemm_kernel tp_gemm_kernel_portable, tp_gemm_kernel_portable_f16;
extern const tp_gemm_kernel tp_gemm_kernel_avx2, tp_gemm_kernel_avx2_f16;
extern const tp_gemm_kernel tp_gemm_kernel_avx512, tp_gemm_kernel_avx512_f16;
extern const tp_gemm_kernel tp_gemm_kernel_avx512_bf16;
extern const tp_gemm_kernel tp_gemm_kernel_amx;

/* The product by a given kernel; what tp_gemm_run() does with the one it chose. */
size_t tp_gemm_kernel_workspace(const tp_gemm_kernel *kernel, const tp_gemm *gemm);
void tp_gemm_kernel_run(const tp_gemm_kernel *kernel, const tp_gemm *gemm, void *workspace);

#endif
