/* communicate.c - what ranks say to each other, as ops of the graph.
 *
 * Each begins where it stands and is over at a `wait` for the same memory; nobody reads or writes
 * there in between.  What they do with several ranks is in exec/traffic.c; alone, a rank has
 * the sum and the whole already.  A tensor's elements are divided among the ranks as
 * tp_shard_part() says.  bucket: those of one bucket are sent together; 0: alone.
 *
 * wire: what is summed is sent in another format (exec/wire.h); `errors`, a row for every rank, is
 * what that lost, and is sent the next time. */
#include "engine/ir/ops.h"

#define EXCHANGE_WITH(op, operands, words, more)         \
    const tp_op_def tp_op_##op = {.name = #op,           \
                                  .signature = operands, \
                                  .attributes = words,   \
                                  .traits = TP_OP_COMMUNICATES | (more)};
#define EXCHANGE(op, operands, more) EXCHANGE_WITH(op, operands, "bucket", more)
#define SUM(op, operands, more) EXCHANGE_WITH(op, operands, "bucket, wire, keep", more)

/* The sum over ranks, on every rank. */
SUM(all_reduce, "x:s[..] errors:s[R,E]? -> x:s[..] errors:s[R,E]?", 0)

/* The sum over ranks in a rank's own part; the other parts are lost. */
SUM(reduce_scatter, "x:s[..] errors:s[R,E]? -> x:s[..] errors:s[R,E]?", 0)

/* Every part as the rank has it whose it is. */
TP_OP(all_gather, "x:s[..] -> x:s[..]", .attributes = "bucket", .traits = TP_OP_COMMUNICATES,
      .splits = "T; C");

/* As rank 0 has it. */
EXCHANGE(broadcast, "x:s[..] -> x:s[..]", 0)

/* `sum` is kept in parts: the sum over ranks of a rank's own part is added to what it has, once a
 * micro-batch.  x is free again when the last of the bucket has begun. */
SUM(reduce_scatter_part, "x:s[..] sum_acc:s[..] errors:s[R,E]? -> sum:s[..] errors:s[R,E]?",
    TP_OP_ACCUMULATES)

/* The whole of what is kept in parts. */
EXCHANGE(all_gather_part, "part:any[..] -> x:any[..]", 0)

/* Where several groups of ranks keep the same parts: the sum over them, in each. */
SUM(all_reduce_part, "x:s[..] errors:s[R,E]? -> x:s[..] errors:s[R,E]?", 0)

/* Of the ranks that share a layer: the sum of what each has made of its part of it. */
EXCHANGE(sum_tensor, "x:s[..] -> y:s[..]", TP_OP_INPLACE)

/* The same, each rank its share of the rows: n0 from row n1 on, or as many as there are left. */
EXCHANGE_WITH(scatter_rows, "x:s[T,C] -> y:s[n0,C]", "n0, n1, bucket", 0)

/* All n0 rows, of which each rank has a share; this one those from row n1 on. */
EXCHANGE_WITH(gather_rows, "x:f[S,C] -> y:f[n0,C]", "n0, n1, bucket", 0)

/* The same sum for a gradient, once a step. */
EXCHANGE(all_reduce_tensor, "x:s[..] -> x:s[..]", 0)

/* Memory of that shape which nobody has written yet: what accumulates into it begins there. */
TP_OP(room, "like:s[..] -> x:s[..]", .traits = TP_OP_UNWRITTEN);

/* Until what was begun on this memory is over. */
TP_OP(wait, "x:any[..] -> x:any[..]", .attributes = "bucket", .traits = TP_OP_COMMUNICATES,
      .splits = "T; C");
