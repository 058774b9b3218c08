/* self_test.h - does this processor compute what the kernels of a level mean?
 *
 * Code for an instruction set that the developers' machines lack has never run when it reaches
 * a machine that has it, and a processor, a hypervisor or a compiler may be at fault as well.
 * So a level computes the cases of self_test.def, held against ref, in a process of its own:
 * whatever it does wrong there is a sentence here. */
#ifndef TP_ENGINE_BACKEND_CPU_SELF_TEST_H
#define TP_ENGINE_BACKEND_CPU_SELF_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cpu.h"

typedef enum {
    TP_BREAK_NOTHING, /* to do on purpose, for tests */
    TP_BREAK_SIGILL,
    TP_BREAK_SEGV,
    TP_BREAK_BUS,
    TP_BREAK_FPE,
    TP_BREAK_WRONG,
    TP_BREAK_HANG,
    TP_BREAK_KILL, /* from outside */
    TP_BREAK_COUNT
} tp_self_test_break;

typedef enum {
    TP_SELF_TEST_PASSED,
    TP_SELF_TEST_FAILED,
    TP_SELF_TEST_NOT_RUN /* no process or no memory to be had, or ended from outside */
} tp_self_test_result;

typedef struct tp_self_test tp_self_test;

/* The cases with what ref makes of them; NULL without memory. */
tp_self_test *tp_self_test_open(void);
void tp_self_test_close(tp_self_test *test);

/* Runs at a level what a run at this level would: kernels of lower levels that are not excluded
 * belong to it.  A level with a kernel that no case is for has failed.  `why` gets what happened
 * ("SIGILL in linear"), "" when it passed. */
tp_self_test_result tp_self_test_run(tp_self_test *test, tp_isa isa, tp_self_test_break breaks,
                                     char *why, size_t size);

#endif
