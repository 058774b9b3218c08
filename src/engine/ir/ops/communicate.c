/* communicate.c - what ranks say to each other, as ops of the graph.
 *
 * Each begins where it stands and is over at a `wait` for the same memory; nobody reads or writes
 * there in between.  What they do with several ranks is in exec/traffic.c; alone, a rank has
 * the sum and the whole already.  A tensor's elements are divided among the ranks as
 * tp_shard_part() says.  bucket: those of one bucket are sent together; 0: alone. */
#include "engine/ir/ops.h"

enum { TALK = TP_OP_COMMUNICATES };

/* The sum over ranks, on every rank. */
const tp_op_def tp_op_all_reduce = {
    .name = "all_reduce",
    .signature = "x:s[..] -> x:s[..]",
    .attributes = "bucket",
    .traits = TALK,
};

/* The sum over ranks in a rank's own part; the other parts are lost. */
const tp_op_def tp_op_reduce_scatter = {
    .name = "reduce_scatter",
    .signature = "x:s[..] -> x:s[..]",
    .attributes = "bucket",
    .traits = TALK,
};

/* Every part as the rank has it whose it is. */
const tp_op_def tp_op_all_gather = {
    .name = "all_gather",
    .signature = "x:s[..] -> x:s[..]",
    .attributes = "bucket",
    .traits = TALK,
};

/* As rank 0 has it. */
const tp_op_def tp_op_broadcast = {
    .name = "broadcast",
    .signature = "x:s[..] -> x:s[..]",
    .attributes = "bucket",
    .traits = TALK,
};

/* `sum` is kept in parts: the sum over ranks of a rank's own part is added to what it has, once a
 * micro-batch.  x is free again when the last of the bucket has begun. */
const tp_op_def tp_op_reduce_scatter_part = {
    .name = "reduce_scatter_part",
    .signature = "x:s[..] sum_acc:s[..] -> sum:s[..]",
    .attributes = "bucket",
    .traits = TALK | TP_OP_ACCUMULATES,
};

/* The whole of what is kept in parts. */
const tp_op_def tp_op_all_gather_part = {
    .name = "all_gather_part",
    .signature = "part:f[..] -> x:f[..]",
    .attributes = "bucket",
    .traits = TALK,
};

/* Where several groups of ranks keep the same parts: the sum over them, in each. */
const tp_op_def tp_op_all_reduce_part = {
    .name = "all_reduce_part",
    .signature = "x:s[..] -> x:s[..]",
    .attributes = "bucket",
    .traits = TALK,
};

/* Memory of that shape which nobody has written yet: what accumulates into it begins there. */
const tp_op_def tp_op_room = {
    .name = "room",
    .signature = "like:s[..] -> x:s[..]",
    .traits = TP_OP_UNWRITTEN,
};

/* Until what was begun on this memory is over. */
const tp_op_def tp_op_wait = {
    .name = "wait",
    .signature = "x:f[..] -> x:f[..]",
    .attributes = "bucket",
    .traits = TALK,
};
