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

/* Until what was begun on this memory is over. */
const tp_op_def tp_op_wait = {
    .name = "wait",
    .signature = "x:s[..] -> x:s[..]",
    .attributes = "bucket",
    .traits = TALK,
};
