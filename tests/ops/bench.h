/* bench.h - the op test bench: one table of cases, several questions about them.
 *
 *   --gradients   is every gradient of ref the slope of ref's forward op?
 *   --backend B   does every kernel of B compute what ref computes?
 *   --detection   does the bench notice kernels that are wrong on purpose?
 *   --perf B      how fast are they?
 *   --support     which kernels exist for which op?
 *
 * A `problem` is a case with its values: every operand as an array of doubles
 * or integers, rounded to what its dtype can hold.  The questions bind those
 * values to memory in their own ways. */
#ifndef TP_TESTS_OPS_BENCH_H
#define TP_TESTS_OPS_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "engine/backend/backend.h"
#include "support/devices.h"

static inline size_t count_kernels(const tp_backend *backend)
{
    size_t n = 0;
    while (backend->kernels[n])
        n++;
    return n;
}

typedef struct {
    tp_op op;
    const char *text;
} op_case;

/* `gradient` is TP_OP_NONE for all that the op's row names. */
typedef struct {
    tp_op op, gradient;
    const char *text;
} gradient_case;

extern const op_case test_cases[], perf_cases[];
extern const gradient_case gradient_cases[];
extern const size_t n_test_cases, n_perf_cases, n_gradient_cases;

/* One operand with its values: `f` for floats, `i` for integers.  Absent: both NULL. */
typedef struct {
    tp_dtype dtype;
    int rank;
    int64_t dim[TP_MAX_RANK];
    double *f;
    int32_t *i;
} tensor;

enum { MAX_SEQUENCES = 16 };

typedef struct {
    tp_op op;
    const tp_signature *sig;
    int64_t dim['Z' + 1];
    int64_t attended_pairs;
    int n_sequences, past, pad, length[MAX_SEQUENCES];
    bool is_vector;      /* every operand has rank 1 */
    double fill, offset; /* of random values: offset + fill * normal */
    tp_attrs attrs;
    tensor in[TP_MAX_IN], out[TP_MAX_OUT];
} problem;

/* How the float operands of a problem are stored. */
typedef enum {
    TYPES_F32,
    TYPES_BF16,
    TYPES_BF16_F32,
    TYPES_F32_BF16,
    TYPES_MIXED,
    TYPES_F16,
    TYPES_F64
} types;
extern const char *const types_names[];

/* The problem of a case: values of all inputs, room for all outputs, in `arena`.  Bit i of
 * `present` keeps the i-th optional input.  The seed is the case's own. */
void problem_init(problem *p, tp_arena *arena, tp_op op, const char *text, types types_,
                  unsigned present);
int n_optional_inputs(const tp_signature *sig);

/* The value of an expression of dimensions such as "2*T*N*K". */
int64_t evaluate(const problem *p, const char *expression);

/* The fields of a launch that follow from the problem; no operand is bound. */
tp_launch launch_of(const problem *p);

/* Run ref on the problem's own arrays, as f64: out[].f is exact. */
void problem_solve(problem *p, tp_arena *arena);

int64_t tensor_count(const tensor *t);
bool tensor_is_absent(const tensor *t);

/* A value in [0, 1) that depends on the two numbers alone, and a normal one. */
double random_uniform(uint64_t seed, uint64_t i);
double random_normal(uint64_t seed, uint64_t i);

/* The questions; each returns the number of failures. */
int check_gradients(tp_arena *arena, const char *only);
/* Kernels of all levels up to the one in force: those of a lower one may call into others that
 * adapt to it. */
int check_backend(tp_arena *arena, const tp_backend *backend, const char *only, int *ret_n_checked);
/* Every kernel of `faulty` must be found at fault, but those whose name begins with "sound". */
extern const tp_backend faulty_backend;
int check_detection(tp_arena *arena, const tp_backend *faulty);
void measure_backend(tp_arena *arena, const tp_backend *backend, const char *only);
void print_support(void);

#endif
