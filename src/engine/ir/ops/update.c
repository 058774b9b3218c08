/* update.c - the optimizer's graph. */
#include <math.h>

#include "engine/device/dynamic_map.h"
#include "engine/ir/shapes.h"

/* The sum of squares, added to what was there. */
TP_OP(sumsq, "x:f[..] sum_acc:d[1]? -> sum:d[1]", .traits = TP_OP_UPDATE | TP_OP_ACCUMULATES,
      .flops = "2*T*C", .splits = "T; C");

/* One number, added to what was there. */
TP_OP(add_number, "x:d[1] sum_acc:d[1]? -> sum:d[1]", .traits = TP_OP_UPDATE | TP_OP_ACCUMULATES,
      .flops = "1");

/* In place.  limits: unscale, the largest size of an element; g = g * unscale, no larger than that.
 */
TP_OP(clip_value, "g:s[..] limits:d[3] -> g:s[..]", .traits = TP_OP_UPDATE, .flops = "2*T*C",
      .splits = "T; C");

/* In place.  limits: unscale, not read, lambda.  Adaptive gradient clipping (Brock et al., arXiv
 * 2102.06171): g = g * unscale; then every row (column when `transposed`, whole vector) whose norm
 * is above most = lambda * max(norm of that of p, 1e-3) is times most / max(norm, 1e-6). */
TP_OP(clip_adaptive, "g:s[..] p:s[..] limits:d[3] -> g:s[..]", .attributes = "transposed",
      .traits = TP_OP_UPDATE, .flops = "6*T*C");

/* In place.  scalars: lr, beta1, beta2, eps, weight_decay, 1-beta1^t, 1-beta2^t, gradient
 * factor (clip and unscale).  As torch.optim.AdamW: p *= 1 - lr*wd*decay; m, v; then
 * p -= lr/c1 * m / (sqrt(v)/sqrt(c2) + eps). */
TP_OP(adamw,
      "p:s[..] g:s[..] m:s[..] v:positive[..] scalars:scalars[8] shadow:half[..]? "
      "-> p:s[..] m:s[..] v:s[..] shadow:half[..]?",
      .attributes = "decay", .traits = TP_OP_UPDATE, .flops = "16*T*C", .splits = "T; C");

/* adamw with moments in 8 bits: blocks of 256 elements, one behind the other as they lie, keep the
 * largest size of each moment (B = ceil(T*C/256) blocks) and a code for every element, of the
 * signed dynamic map for m (first row), of the unsigned one for v (device/dynamic_map.h).  The step
 * is made with the moments before they are rounded; as bitsandbytes' AdamW8bit. */
static void adamw_8bit_check(tp_shapes *s)
{
    double n = s->letters.value['T'] * s->letters.value['C'];
    if (s->letters.value['B'] != ceil(n / TP_DYNAMIC_BLOCK))
        tp_shapes_refuse(s, "%.0f elements are not %.0f blocks of %d", n, s->letters.value['B'],
                         TP_DYNAMIC_BLOCK);
}

TP_OP(adamw_8bit,
      "p:s[..] g:s[..] scalars:scalars[8] codes:codes[2,T*C] absmax:positive[2,B] "
      "shadow:half[..]? -> p:s[..] codes:codes[2,T*C] absmax:positive[2,B] "
      "shadow:half[..]?",
      .attributes = "decay", .traits = TP_OP_UPDATE, .flops = "20*T*C", .check = adamw_8bit_check);

/* In place.  scalars: lr, momentum, what is taken of the gradient (1 - dampening; 1 in the first
 * step), weight_decay in the fifth, gradient factor in the last.  As torch.optim.SGD: g += wd*p;
 * m = momentum*m + take*g; p -= lr * m, or lr * (g + momentum*m). */
TP_OP(sgd,
      "p:s[..] g:s[..] scalars:scalars[8] m:s[..] shadow:half[..]? "
      "-> p:s[..] m:s[..] shadow:half[..]?",
      .attributes = "nesterov", .traits = TP_OP_UPDATE, .flops = "6*T*C", .splits = "T; C");

/* In place.  scalars: the relative step rho, beta1, what is taken of new squares (1 - beta2), eps1,
 * weight decay, eps2, d, gradient factor.  var holds running averages of squared gradients: of a
 * matrix the means of its T rows, then of its C columns (V = T+C); of a vector all (V = T).  With
 * a = scaled ? max(eps2, rms(p)) * rho : rho, as torch.optim.Adafactor: p *= 1 - decay; u = g /
 * sqrt(max(row * column / max(mean(rows), eps1), eps1^2)); p -= a / max(1, rms(u) / d) * u.  As
 * transformers.Adafactor: eps1 is added to the squares instead, and p *= 1 - a * decay. */
TP_OP(adafactor,
      "p:s[..] g:s[..] scalars:scalars[8] var:positive[V] shadow:half[..]? "
      "-> p:s[..] var:positive[V] shadow:half[..]?",
      .attributes = "scaled, transformers", .traits = TP_OP_UPDATE, .flops = "12*T*C");

/* What is subtracted is a running average, by beta1, of what adafactor subtracts. */
TP_OP(adafactor_moment,
      "p:s[..] g:s[..] scalars:scalars[8] var:positive[V] m:s[..] shadow:half[..]? "
      "-> p:s[..] var:positive[V] m:s[..] shadow:half[..]?",
      .attributes = "scaled, transformers", .traits = TP_OP_UPDATE, .flops = "15*T*C");

/* In place, a matrix.  scalars: lr, momentum, a, eps, weight_decay, b, c, gradient factor.  As
 * torch.optim.Muon: m += (1 - momentum) * (g - m); u = m, or g + momentum * (m - g); X = u /
 * max(|u|, eps) by the Frobenius norm; `steps` times X = a X + (b G + c G G) X with G = X X^T; p *=
 * 1 - lr*wd; p -= scale * lr * X.  torch rounds X and G to bf16 on the way. */
TP_OP(muon,
      "p:s[T,C] g:s[T,C] scalars:scalars[8] m:s[T,C] shadow:half[T,C]? "
      "-> p:s[T,C] m:s[T,C] shadow:half[T,C]?",
      .attributes = "nesterov, scale, steps", .traits = TP_OP_UPDATE, .flops = "20*T*C*C");
