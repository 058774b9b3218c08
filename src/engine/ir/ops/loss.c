/* loss.c - cross-entropy, alone and with the product in front of it. */
#include "engine/ir/ops.h"

/* loss = sum_t -weights[t] * logp[t]; where weights[t] is 0 the target is not looked at,
 * logp is 0.  Logits are divided by the temperature first, if there is one. */
TP_OP(cross_entropy,
      "logits:f[T,V] targets:targets[T] weights:weights[T] "
      "-> loss:s[1] logp:s[T] lse:s[T]",
      .attributes = "temperature", .flops = "4*T*V", .gradients = {TP_OP_cross_entropy_grad});

/* Where n0 ranks have a part of the vocabulary each, this one part n1: what it knows of every row.
 * stats: of rank i the largest logit (0 where that is -infinity, NaN where a logit is) and the sum
 * of exp(logit - largest) in columns 2i and 2i+1, of the others zeros; then the target's logit and
 * 1, where the part has it. Summed over ranks it is of all. */
TP_OP(cross_entropy_part,
      "logits:f[T,V] targets:targets[T] weights:weights[T] -> stats:s[T,n0*2+2]",
      .attributes = "n0, n1, temperature", .flops = "4*T*V");

/* cross_entropy, of what all ranks know. */
TP_OP(cross_entropy_join, "stats:s[T,n0*2+2] weights:weights[T] -> loss:s[1] logp:s[T] lse:s[T]",
      .attributes = "n0");

/* dloss is the factor on the gradient of the loss.  part: a target outside is another rank's. */
TP_OP(cross_entropy_grad,
      "logits:f[T,V] targets:targets[T] weights:weights[T] lse:s[T] dloss:s[1] "
      "-> dlogits:f[T,V]",
      .attributes = "temperature, part", .traits = TP_OP_INPLACE, .splits = "V", .flops = "4*T*V");

/* cross_entropy of the logits x w'; logits exist for `chunk` rows at a time. */
TP_OP(linear_ce,
      "x:f[T,C] w:w[V,C] targets:targets[T] weights:weights[T] "
      "-> loss:s[1] logp:s[T] lse:s[T]",
      .attributes = "chunk, temperature", .traits = TP_OP_CONTRACTS, .flops = "2*T*V*C");

/* The same loss together with d(dloss*loss)/dx and /dw.  squares: as linear_dw. */
TP_OP(linear_ce_train,
      "x:f[T,C] w:w[V,C] targets:targets[T] weights:weights[T] dloss:s[1] "
      "dw_acc:s[V,C]? squares:d[1]? -> loss:s[1] logp:s[T] dx:f[T,C]~ dw:s[V,C]~ squares:d[1]?~",
      .attributes = "chunk, temperature", .traits = TP_OP_CONTRACTS | TP_OP_ACCUMULATES,
      .flops = "6*T*V*C");

/* linear_ce_train of a head that is frozen: no d/dw. */
TP_OP(linear_ce_dx,
      "x:f[T,C] w:w[V,C] targets:targets[T] weights:weights[T] dloss:s[1] "
      "-> loss:s[1] logp:s[T] dx:f[T,C]~",
      .attributes = "chunk, temperature", .traits = TP_OP_CONTRACTS, .flops = "4*T*V*C");
