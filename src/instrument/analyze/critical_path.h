/* critical_path.h - the chain of work that set the length of the window.
 *
 * From the end of the last device work, the walk goes back in time and asks at every
 * moment what was waited for:
 *
 *     device work    until its start; then what came last of: the work before it on its
 *                    stream, the work an event made it wait for, its launching call
 *     host thread    until the end of the last call that waited for the device (then the
 *                    walk continues with the work it waited for), or until another thread
 *                    launched something (then on that thread), or the beginning.  A copy
 *                    waits for itself; a synchronising call for its stream or device where the
 *                    trace says which (cuda_sync rows), else for any work that ended meanwhile
 *
 * Every nanosecond between the first start and the last end is charged once:
 *
 *     compute, communication, memory    device work on the path
 *     launch      from the launching call to the start of the work, when the stream was empty
 *     kernel gap  between two works of a stream, when the later one was already launched
 *     sync gap    from the end of the work that was waited for to the host going on
 *     host        the host was preparing; by operator
 *     unknown     before work whose launch is not in the file
 *
 * This is a lower bound of freedom, not a prediction: making something on the path faster
 * helps at most until another chain becomes the longest. */
#ifndef TP_INSTRUMENT_ANALYZE_CRITICAL_PATH_H
#define TP_INSTRUMENT_ANALYZE_CRITICAL_PATH_H

#include "instrument/analyze/operators.h"

typedef enum {
    TP_PATH_COMPUTE,
    TP_PATH_COMM,
    TP_PATH_MEM,
    TP_PATH_LAUNCH,
    TP_PATH_KERNEL_GAP,
    TP_PATH_SYNC_GAP,
    TP_PATH_HOST,
    TP_PATH_UNKNOWN,
    TP_PATH_COUNT
} tp_path_part;

const char *tp_path_part_name(tp_path_part part);

/* By name within a part: kernels, or the operators that the host was in. */
typedef struct {
    tp_path_part part;
    uint32_t name; /* TP_NO_ROW: outside any operator */
    int64_t ns, count;
} tp_path_row;

typedef struct {
    bool is_known; /* false: no device work */
    int64_t start, end;
    int64_t ns[TP_PATH_COUNT]; /* add up to end - start */
    tp_path_row *rows;         /* by time, descending */
    size_t n;
} tp_critical_path;

void tp_critical_path_find(const tp_selection *selection, const tp_operators *operators,
                           tp_critical_path *ret);
void tp_critical_path_release(tp_critical_path *path);

#endif
