/* gemm.h - matrix products on the processor: C = A B, and what a layer needs around it.
 *
 * All arithmetic accumulates in f32.  bf16 results are rounded once, to nearest
 * even.  The order of additions into one element of C depends on the shapes and
 * the instruction set only: the same call gives the same bits with any number of
 * threads.
 *
 *     value  = A B [+ bias] [+ C when accumulate]
 *     pre    = value                          (when asked for)
 *     C      = epilogue(value)
 *     squares = the sum of the squares of C   (when asked for, of f32)
 */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_H
#define TP_ENGINE_BACKEND_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "engine/device/dtype.h"

typedef enum {
    TP_GEMM_EPILOGUE_NONE,
    TP_GEMM_EPILOGUE_GELU_TANH, /* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
    TP_GEMM_EPILOGUE_GELU_ERF   /* x (1 + erf(x / sqrt(2))) / 2 */
} tp_gemm_epilogue;

/* C[m,n], row-major, does not overlap the inputs.  m, n, k >= 1. */
typedef struct {
    int64_t m, n, k;
    const void *a; /* A[m,k]: a[i * lda + p], or a[p * lda + i] when a_trans */
    int64_t lda;
    bool a_trans;
    int64_t a_padding; /* elements behind the k-th of each row of A that are there and 0 */
    const void *b;     /* B[k,n]: b[p * ldb + j], or b[j * ldb + p] when b_trans (a weight [N,K]) */
    int64_t ldb;
    bool b_trans;
    void *c;
    int64_t ldc;
    tp_dtype ab_dtype; /* f32 or bf16, of A and B */
    tp_dtype c_dtype;  /* f32 or bf16, of C and pre */
    bool accumulate;
    bool c_is_far; /* a hint: no cache holds C until it is read */
    /* a plan is made before there are addresses */
    bool may_have_bias, may_have_pre, may_have_squares;
    const void *bias; /* [n]; NULL: none */
    tp_dtype bias_dtype;
    tp_gemm_epilogue epilogue;
    void *pre;       /* (optional) [m,n] with leading dimension ldc */
    double *squares; /* (optional) of one number */
    /* (optional) of the run that this one is a part of: it is cut as that is, so that it needs no
     * more room, and that rows of A, or products of k that are zero, are left out changes no bit */
    int64_t planned_m, planned_k;
    int threads;   /* the work is divided by; 0 is 1 */
    tp_team *team; /* (optional) whose threads do it; else the caller */
} tp_gemm;

/* Does an instruction set in force have a kernel for it? */
bool tp_gemm_is_possible(const tp_gemm *gemm);

/* Bytes of scratch for one run with the instruction sets in force.  Grows with neither m nor n
 * beyond what fits the caches. */
size_t tp_gemm_workspace(const tp_gemm *gemm);

/* `workspace` is 64-byte aligned, of at least tp_gemm_workspace() bytes, and not
 * shared with another run at the same time.  Allocates nothing. */
void tp_gemm_run(const tp_gemm *gemm, void *workspace);

/* "avx512_bf16", "amx", ...: the kernel that tp_gemm_run() takes now. */
const char *tp_gemm_kernel_name(const tp_gemm *gemm);

#endif
