/* parts.h - tensors of which every rank has a part, as one, for files.
 *
 * Rank 0 writes: it asks for one range after another of one tensor after another, and the others
 * serve until it has all.  Nothing is ever whole in memory. */
#ifndef TP_ENGINE_TRAIN_PARTS_H
#define TP_ENGINE_TRAIN_PARTS_H

#include "engine/device/states.h"
#include "engine/exec/traffic.h"

/* A sharded tensor, for tp_read_fn. */
typedef struct {
    const tp_ranks *ranks;
    const tp_tensor *own; /* this rank's part */
    size_t n;             /* elements of the whole */
} tp_parts;

/* On rank 0: as tp_tensor_read() of the whole (`source` is a tp_parts). */
TP_CHECKED tp_status tp_parts_read(const void *source, size_t offset, void *to, size_t bytes,
                                   tp_error *err);
/* On the others, until rank 0 says that it is done. */
TP_CHECKED tp_status tp_parts_serve(const tp_ranks *ranks, const tp_states *states, tp_error *err);
TP_CHECKED tp_status tp_parts_done(tp_comm *comm, tp_error *err);

/* Of tensors that are kept in parts, for tp_part_reader with the ranks as its user: where all ranks
 * read the same, and on rank 0 where the others serve. */
TP_CHECKED tp_status tp_parts_read_together(void *ranks, const tp_tensor *tensor, size_t first,
                                            size_t count, void *to, tp_error *err);
TP_CHECKED tp_status tp_parts_ask(void *ranks, const tp_tensor *tensor, size_t first, size_t count,
                                  void *to, tp_error *err);

/* Of a tensor that ranks share the layers of: all of them do this together. */
TP_CHECKED tp_status tp_slices_gather(const tp_ranks *ranks, const tp_tensor *tensor, size_t first,
                                      size_t count, char *to, tp_error *err);

/* Elements of the tensor of which `part` is a part: those of the weight that it belongs to. */
size_t tp_parts_count(const tp_states *states, const tp_tensor *part);

#endif
