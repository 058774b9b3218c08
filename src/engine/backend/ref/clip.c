/* clip.c - gradients made smaller element by element, or by the norms of rows. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

TP_REF_KERNEL(clip_value)
{
    const tp_operand *g = &launch->in[0], *out = &launch->out[0];
    double unscale = ref_load(&launch->in[1], 0, 0), most = ref_load(&launch->in[1], 1, 0);
    ref_each (g, r, c) {
        double x = ref_load(g, r, c) * unscale;
        ref_store(out, r, c, x > most ? most : x < -most ? -most : x);
    }
}

/* A row, a column or a vector: `n` elements, the i-th at (r + i * down, c + i * !down). */
typedef struct {
    int64_t r, c, n;
    bool down;
} unit;

static double norm_of(const tp_operand *x, const unit *u)
{
    double sum = 0;
    for (int64_t i = 0; i < u->n; i++) {
        double value = ref_load(x, u->r + (u->down ? i : 0), u->c + (u->down ? 0 : i));
        sum += value * value;
    }
    return sqrt(sum);
}

static void clip_unit(const tp_launch *launch, const unit *u)
{
    const tp_operand *g = &launch->in[0], *out = &launch->out[0];
    double unscale = ref_load(&launch->in[2], 0, 0), lambda = ref_load(&launch->in[2], 2, 0);
    double most = lambda * fmax(norm_of(&launch->in[1], u), 1e-3);
    double norm = norm_of(g, u) * unscale;
    double factor = norm > most ? most / fmax(norm, 1e-6) : 1;
    for (int64_t i = 0; i < u->n; i++) {
        int64_t r = u->r + (u->down ? i : 0), c = u->c + (u->down ? 0 : i);
        ref_store(out, r, c, ref_load(g, r, c) * unscale * factor);
    }
}

TP_REF_KERNEL(clip_adaptive)
{
    const tp_operand *g = &launch->in[0];
    bool down = g->rank == 1 || launch->attrs.transposed;
    int64_t n_units = g->rank == 1 ? 1 : down ? g->dim[1] : g->dim[0];
    for (int64_t k = 0; k < n_units; k++) {
        unit u = {.down = down, .n = down ? g->dim[0] : g->dim[1]};
        *(down ? &u.c : &u.r) = k;
        clip_unit(launch, &u);
    }
}
