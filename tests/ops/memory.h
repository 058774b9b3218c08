/* memory.h - a problem bound to memory that tells on a kernel.
 *
 * Every operand ends at a page that cannot be touched; bytes around it and
 * between its rows are 0xff, which is NaN as a number, and are looked at after a
 * run.  Contiguous operands start at a multiple of 64 bytes; strided ones, like
 * views into a wider matrix, at a multiple of their element. */
#ifndef TP_TESTS_OPS_MEMORY_H
#define TP_TESTS_OPS_MEMORY_H

#include "ops/bench.h"

enum { N_SLOTS = TP_MAX_IN + TP_MAX_OUT }; /* inputs first */

typedef struct {
    unsigned char *begin, *end; /* address space; `end` is the first untouchable byte */
    unsigned char *low;         /* where the watched bytes of the current operand begin */
    unsigned char *pristine;    /* the watched bytes before a run */
    unsigned char *saved;       /* the watched bytes of an earlier run */
} slot;

typedef struct {
    slot slots[N_SLOTS], workspace;
    tp_launch launch;
    tp_device *device; /* runs the kernels, on copies; NULL: they are called on the slots */
    int input_of[TP_MAX_OUT]; /* the input an output shares memory with, or -1 */
} memory;

void memory_init(memory *m); /* reserves address space for the life of the program */

/* Bind every operand of `p`; the values of inputs are stored.  Copies live in `arena`. */
void memory_bind(memory *m, tp_arena *arena, const problem *p, bool is_strided, bool in_place);

/* After inputs were changed through m->launch: what later runs start from. */
void memory_commit(memory *m);

/* Put everything back to its state before a run, and run.  Returns NULL, or what the kernel
 * did wrong outside its outputs. */
const char *memory_run(memory *m, const tp_kernel *kernel, int threads, unsigned char garbage);

/* The slot of output `o`, which may be that of an input. */
slot *memory_output(memory *m, int o);

/* Remember all outputs of the last run; is the last run's output `o` the same to the bit? */
void memory_save(memory *m);
bool memory_is_same(memory *m, int o);

#endif
