/* stacks.h - time by the stack it was spent under, for flame graphs.
 *
 * Python functions, annotations and operators of one thread nest by time into one tree;
 * equal paths are merged, and so are steps: "ProfilerStep#3" is a frame "ProfilerStep".  Host
 * time is self time by union; device time hangs its kernels below the operator that launched
 * them.
 *
 * Without Python functions an operator that knows its module hangs below it.  Temper's own
 * traces know the phase as well:
 *
 *     ProfilerStep;step;forward_backward;backward;model;layers.1;q_proj;temper::linear_dx */
#ifndef TP_INSTRUMENT_ANALYZE_STACKS_H
#define TP_INSTRUMENT_ANALYZE_STACKS_H

#include "instrument/analyze/selection.h"

typedef struct {
    uint32_t parent;   /* node, TP_NO_ROW: a root */
    uint32_t name;     /* of `names` */
    int64_t ns, count; /* its own */
} tp_stack_node;

typedef struct {
    tp_stack_node *v; /* a parent comes before its children */
    size_t n;
    int64_t total_ns;
    tp_string_table names; /* of frames */
} tp_stacks;

typedef enum { TP_STACKS_HOST, TP_STACKS_DEVICE } tp_stacks_of;

void tp_stacks_make(const tp_selection *selection, tp_stacks_of what, tp_stacks *ret);
void tp_stacks_release(tp_stacks *stacks);

/* "outer;inner" of a node; ';' and line ends in names become ':' and ' '. */
void tp_stack_path(const tp_stacks *stacks, uint32_t node, tp_buf *ret);

#endif
