/* paths.h - which levels of instruction sets have proven themselves.
 *
 * Asked once per process, before the first kernel is chosen.  Verdicts are kept in
 * instruction-sets.txt of the cache folder, by processor, operating system and build of this
 * program, so that a start costs a short file.  A level that failed is excluded (tp_cpu_exclude)
 * and a warning says so; one that is slower is passed over (tp_cpu_pass_over). */
#ifndef TP_ENGINE_BACKEND_CPU_PATHS_H
#define TP_ENGINE_BACKEND_CPU_PATHS_H

#include "base/cpu.h"

typedef enum {
    TP_PATH_ABSENT, /* the processor, or its operating system, does not have it */
    TP_PATH_PROVEN,
    TP_PATH_FAILED,
    TP_PATH_UNTRIED, /* could not be tried, so it is left out */
    TP_PATH_SLOWER   /* computes right, more slowly than the level below: used if it is named */
} tp_path_state;

typedef struct {
    tp_path_state state;
    char why[128];  /* of FAILED, UNTRIED and SLOWER */
    bool is_stored; /* the verdict comes from the file */
} tp_path;

/* The `prepare` of the backend: cheap when repeated. */
void tp_paths_prove(void);

/* Once more, whatever is on file. */
void tp_paths_prove_again(void);

/* TP_ISA_COUNT of them; after tp_paths_prove(). */
const tp_path *tp_paths(void);

#endif
