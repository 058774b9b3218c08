/* norm.c - normalised rows. */
#include "engine/ir/ops.h"

/* Normalises each D-wide slice of a row (C = D but for qk-norm). */
TP_OP(rmsnorm, "x:f[T,C] w:w[D] -> y:f[T,C] rstd:s[T,C/D]", .attributes = "eps",
      .traits = TP_OP_CHEAP, .flops = "4*T*C", .gradients = {TP_OP_rmsnorm_grad}, .splits = "C; T");

TP_OP(rmsnorm_grad,
      "x:f[T,C] w:w[D] rstd:s[T,C/D] dy:f[T,C] dw_acc:s[D]? dres:f[T,C]? "
      "-> dx:f[T,C] dw:s[D]",
      .attributes = "eps", .splits = "C; T", .traits = TP_OP_ACCUMULATES, .flops = "9*T*C");

TP_OP(layernorm, "x:f[T,C] w:w[C] b:w[C] -> y:f[T,C] mean:s[T] rstd:s[T]", .attributes = "eps",
      .traits = TP_OP_CHEAP, .flops = "7*T*C", .gradients = {TP_OP_layernorm_grad}, .splits = "T");

TP_OP(layernorm_grad,
      "x:f[T,C] w:w[C] mean:s[T] rstd:s[T] dy:f[T,C] dw_acc:s[C]? db_acc:s[C]? "
      "dres:f[T,C]? -> dx:f[T,C] dw:s[C] db:s[C]",
      .attributes = "eps", .traits = TP_OP_ACCUMULATES, .flops = "12*T*C", .splits = "T");

/* sum = x + res (rounded), y = norm(sum) */
TP_OP(add_rmsnorm, "x:f[T,C] res:f[T,C] w:w[C] -> sum:f[T,C] y:f[T,C] rstd:s[T,1]",
      .attributes = "eps", .traits = TP_OP_CHEAP, .flops = "5*T*C", .rest = TP_OP_rmsnorm);

/* sum = x + res (rounded), y = norm(sum) */
TP_OP(add_layernorm, "x:f[T,C] res:f[T,C] w:w[C] b:w[C] -> sum:f[T,C] y:f[T,C] mean:s[T] rstd:s[T]",
      .attributes = "eps", .traits = TP_OP_CHEAP, .flops = "8*T*C", .rest = TP_OP_layernorm);
