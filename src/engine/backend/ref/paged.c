/* paged.c - weights in panels, and attention of many sequences whose keys and values
 * lie in blocks of a cache.  The layouts are written with the rows, ir/ops. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

/* Elements that lie together for a product: pairs of halves. */
static int64_t together(const tp_operand *x) { return tp_dtype_size(x->dtype) == 2 ? 2 : 1; }

static int64_t round_to_even(int64_t n) { return n + n % 2; }

static int64_t panel_column(const tp_operand *panels, int64_t n, int64_t k)
{
    int64_t g = together(panels);
    return k / g * TP_PANEL * g + n % TP_PANEL * g + k % g;
}

TP_REF_KERNEL(pack_panels)
{
    const tp_operand *w = &launch->in[0], *panels = &launch->out[0];
    int64_t N = w->dim[launch->attrs.transposed ? 1 : 0];
    int64_t K = w->dim[launch->attrs.transposed ? 0 : 1];
    for (int64_t n = 0; n < panels->dim[0] * TP_PANEL; n++) {
        for (int64_t k = 0; k < round_to_even(K); k++) {
            bool is_weight = n < N && k < K;
            double value = !is_weight                 ? 0
                           : launch->attrs.transposed ? ref_load(w, k, n)
                                                      : ref_load(w, n, k);
            ref_store(panels, n / TP_PANEL, panel_column(panels, n, k), value);
        }
    }
}

TP_REF_KERNEL(linear_panels)
{
    const tp_operand *x = &launch->in[0], *w = &launch->in[1], *b = &launch->in[2];
    const tp_operand *y = &launch->out[0];
    int32_t activation = launch->attrs.activation;
    ref_each (y, t, n) {
        double sum = is_bound(b) ? ref_load(b, n, 0) : 0;
        for (int64_t k = 0; k < x->dim[1]; k++)
            sum += ref_load(x, t, k) * ref_load(w, n / TP_PANEL, panel_column(w, n, k));
        ref_store(y, t, n, activation ? tp_ref_gelu_of(sum, activation == 2) : sum);
    }
}

typedef struct {
    const tp_launch *launch;
    const tp_operand *k, *v, *tables;
    int64_t D, even_D, places; /* of a block */
} cache;

static cache cache_of(const tp_launch *launch)
{
    cache c = {.launch = launch,
               .k = &launch->in[3],
               .v = &launch->in[4],
               .tables = &launch->in[7],
               .D = launch->attrs.head_dim};
    c.even_D = round_to_even(c.D);
    c.places = c.k->dim[1] / (launch->attrs.kv_heads * c.even_D);
    return c;
}

static int64_t block_of(const cache *c, int64_t slot, int64_t position)
{
    TP_ASSERT(slot >= 0 && slot < c->tables->dim[0] && position / c->places < c->tables->dim[1]);
    int64_t at = slot * c->tables->stride + position / c->places;
    int64_t block = ((const int32_t *)c->tables->data)[at];
    TP_ASSERT(block >= 0 && block < c->k->dim[0]);
    return block;
}

static int64_t key_column(const cache *c, int64_t h, int64_t place, int64_t d)
{
    int64_t g = together(c->k), B = c->places;
    return h * c->even_D * B + d / g * B * g + place * g + d % g;
}

static int64_t value_column(const cache *c, int64_t h, int64_t place, int64_t d)
{
    int64_t g = together(c->v);
    return h * c->even_D * c->places + place / g * c->even_D * g + d * g + place % g;
}

static void store_row(const cache *c, int64_t row, int64_t slot, int64_t position)
{
    int64_t block = block_of(c, slot, position), place = position % c->places;
    for (int64_t i = 0; place == 0 && i < c->k->dim[1]; i++) {
        ref_store(c->k, block, i, 0);
        ref_store(c->v, block, i, 0);
    }
    for (int64_t h = 0; h < c->launch->attrs.kv_heads; h++) {
        for (int64_t d = 0; d < c->D; d++) {
            double k = ref_load(&c->launch->in[1], row, h * c->D + d);
            double v = ref_load(&c->launch->in[2], row, h * c->D + d);
            ref_store(c->k, block, key_column(c, h, place, d), k);
            ref_store(c->v, block, value_column(c, h, place, d), v);
        }
    }
}

/* Head h of one row against positions 0 .. last of its slot; p has room for them. */
static void attend(const cache *c, int64_t row, int64_t h, int64_t slot, int64_t last, double *p)
{
    const tp_operand *q = &c->launch->in[0], *o = &c->launch->out[0];
    int64_t g = h / (c->launch->attrs.heads / c->launch->attrs.kv_heads);
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= last; j++) {
        p[j] = 0;
        for (int64_t d = 0; d < c->D; d++)
            p[j] += ref_load(q, row, h * c->D + d) *
                    ref_load(c->k, block_of(c, slot, j), key_column(c, g, j % c->places, d));
        p[j] *= (double)c->launch->attrs.scale;
        largest = p[j] > largest ? p[j] : largest;
    }
    for (int64_t j = 0; j <= last; j++) {
        p[j] = exp(p[j] - largest);
        sum += p[j];
    }
    for (int64_t d = 0; d < c->D; d++) {
        double mean = 0;
        for (int64_t j = 0; j <= last; j++)
            mean += p[j] / sum *
                    ref_load(c->v, block_of(c, slot, j), value_column(c, g, j % c->places, d));
        ref_store(o, row, h * c->D + d, mean);
    }
}

static size_t workspace_paged_attention(const tp_launch *launch)
{
    return (size_t)(launch->in[7].dim[1] * cache_of(launch).places) * sizeof(double);
}

TP_REF_KERNEL(paged_attention, .workspace = workspace_paged_attention)
{
    const tp_operand *positions = &launch->in[5], *slots = &launch->in[6], *o = &launch->out[0];
    cache c = cache_of(launch);
    for (int64_t row = 0; row < o->dim[0]; row++) {
        if (ref_index(positions, row) >= 0)
            store_row(&c, row, ref_index(slots, row), ref_index(positions, row));
    }
    for (int64_t row = 0; is_bound(o) && row < o->dim[0]; row++) {
        int64_t position = ref_index(positions, row);
        for (int64_t i = 0; position < 0 && i < o->dim[1]; i++)
            ref_store(o, row, i, 0);
        for (int64_t h = 0; position >= 0 && h < launch->attrs.heads; h++)
            attend(&c, row, h, ref_index(slots, row), position, launch->workspace);
    }
}
