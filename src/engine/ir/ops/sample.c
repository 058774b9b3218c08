/* sample.c - tokens drawn from logits. */
#include "engine/ir/ops.h"

/* params: temperature, top_k, top_p, min_p; ids from n0 on (if n0 > 0) are never chosen.
 * temperature 0: the likeliest, lowest id among equals.  Else ids are cut by top_k (0: all),
 * then top_p (outside 0..1: all), then min_p, ties to lower ids; of those left, in the order of
 * ids, the first whose cumulated probability exceeds draws[r].  logp: of the id under
 * softmax(logits), all V of them; drawn: under what it was drawn from.  A row with a NaN or
 * +infinity gives id -1 and NaNs. */
TP_OP(sample,
      "logits:f[R,V] params:sampling[R,4] draws:draws[R] "
      "-> ids:ids[R] logp:s[R] drawn:s[R]",
      .attributes = "n0", .flops = "12*R*V");
