/* vec.h - arrays that grow while a trace is walked.
 *
 * Sizes come from files whose events were read already, so they are bounded by what
 * fits in memory; exhausted memory stops the program, as tp_buf does. */
#ifndef TP_INSTRUMENT_ANALYZE_VEC_H
#define TP_INSTRUMENT_ANALYZE_VEC_H

#include <stddef.h>

/* `v` with room for `n` items of `size` bytes; *cap is the room in items. */
void *tp_vec_room(void *v, size_t *cap, size_t n, size_t size);

/* `n` zeroed items; never NULL. */
void *tp_vec_new(size_t n, size_t size);

#endif
