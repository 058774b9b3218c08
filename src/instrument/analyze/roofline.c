/* roofline.c - FLOPs of operators from the file or from shapes, against the device's peak. */
#include "instrument/analyze/roofline.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/analyze/device_peaks.h"

/* ---- shapes ---- */

enum { MAX_OPERANDS = 4, MAX_AXES = 4 };

typedef struct {
    double axis[MAX_OPERANDS][MAX_AXES];
    int axes[MAX_OPERANDS];
    int n;
} shapes;

/* "[[2, 3], [3, 4], []]": lists of numbers in a list; false when it is anything else. */
static bool read_shapes(const char *s, shapes *ret)
{
    int depth = 0;
    *ret = (shapes){.n = -1};
    for (; *s; s++) {
        if (*s == '[') {
            if (++depth > 2)
                return false;
            if (depth == 2 && ++ret->n >= MAX_OPERANDS)
                return ret->n = MAX_OPERANDS, true;
        } else if (*s == ']') {
            depth--;
        } else if (isdigit((unsigned char)*s)) {
            char *end;
            double v = strtod(s, &end);
            if (depth != 2 || ret->axes[ret->n] == MAX_AXES)
                return false;
            ret->axis[ret->n][ret->axes[ret->n]++] = v;
            s = end - 1;
        } else if (*s != ',' && *s != ' ') {
            return false;
        }
    }
    ret->n++;
    return depth == 0;
}

/* Operators whose shapes say all: two operands, from `first` on.  What a convolution or attention
 * does depends on arguments that are no tensors (stride, padding, a causal mask). */
typedef struct {
    const char *name;
    int first, axes; /* of each operand; 0: linear, [..., k] and [n, k] */
} product;

static const product *product_of(const char *name)
{
    static const product rows[] = {{"aten::mm", 0, 2},         {"aten::addmm", 1, 2},
                                   {"aten::addmm_", 1, 2},     {"aten::_addmm_activation", 1, 2},
                                   {"aten::_scaled_mm", 0, 2}, {"aten::_int_mm", 0, 2},
                                   {"aten::bmm", 0, 3},        {"aten::baddbmm", 1, 3},
                                   {"aten::baddbmm_", 1, 3},   {"aten::linear", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i].name) == 0)
            return &rows[i];
    return NULL;
}

static double flops_of_linear(const shapes *s)
{
    double rows = 1;
    int last = s->axes[0] - 1;
    if (last < 0 || s->axes[1] != 2 || s->axis[0][last] != s->axis[1][1])
        return -1;
    for (int i = 0; i < last; i++)
        rows *= s->axis[0][i];
    return 2 * rows * s->axis[1][0] * s->axis[1][1];
}

static double flops_of_shapes(const product *p, const char *dims)
{
    shapes s;
    int a = p->first, axes = p->axes;
    if (!read_shapes(dims, &s) || s.n < a + 2)
        return -1;
    if (axes == 0)
        return flops_of_linear(&s);
    const double *x = s.axis[a], *y = s.axis[a + 1];
    if (s.axes[a] != axes || s.axes[a + 1] != axes || x[axes - 1] != y[axes - 2])
        return -1;
    return 2 * (axes == 3 ? x[0] : 1) * x[axes - 2] * x[axes - 1] * y[axes - 1];
}

/* ---- peaks ---- */

/* `types`: "[\"float\", \"float\"]".  By the operand that all of the products have, the first one;
 * of 8-bit and complex types no peak is known here. */
static double peak_for(const tp_device_peaks *p, const char *types)
{
    static const char *const halves[] = {"c10::BFloat16", "c10::Half"};
    const char *type = strchr(types, '"');
    size_t n = type ? strcspn(++type, "\"") : 0;
    for (int i = 0; i < 2 && p; i++)
        if (n == strlen(halves[i]) && strncmp(type, halves[i], n) == 0)
            return p->half;
    return p && n == 5 && strncmp(type, "float", n) == 0 ? p->single : (double)NAN;
}

/* ---- rows ---- */

static double flops_of(const tp_events *e, uint32_t event)
{
    const tp_event_op *op = tp_events_op(e, event);
    if (!op)
        return -1;
    if (op->flops != TP_UNKNOWN && op->flops > 0)
        return (double)op->flops;
    const product *p = product_of(tp_events_str(e, e->name[event]));
    return p ? flops_of_shapes(p, tp_events_str(e, op->dims)) : -1;
}

/* A linear layer is the product inside it where the file has that; its own repeat is none. */
static void drop_wrappers(const tp_events *e, const tp_operators *o, double *flops)
{
    TP_FREED bool *has_inner = tp_vec_new(o->n_spans, sizeof *has_inner);
    for (size_t i = 0; i < o->n_spans; i++)
        for (uint32_t up = flops[i] > 0 && !o->is_repeat[i] ? o->parent[i] : TP_NO_PARENT;
             up != TP_NO_PARENT && !has_inner[up]; up = o->parent[up])
            has_inner[up] = true;
    for (size_t i = 0; i < o->n_spans; i++) {
        uint32_t event = o->spans[i].event;
        const product *p = has_inner[i] ? product_of(tp_events_str(e, e->name[event])) : NULL;
        if (p && p->axes == 0 && tp_events_op(e, event)->flops == TP_UNKNOWN)
            flops[i] = -1;
    }
}

TP_ORDER(by_flops, tp_roofline_row, TP_COMPARE(y->flops, x->flops))

/* An operator has the time of all that runs inside it: what is below the outermost operator with
 * FLOPs is moved there, and counts as a part of it. */
static void gather_time(const tp_operators *o, double *flops, int64_t *time)
{
    TP_FREED uint32_t *owner = tp_vec_new(o->n_spans, sizeof *owner);
    for (size_t i = 0; i < o->n_spans; i++) {
        uint32_t above = o->parent[i] == TP_NO_PARENT ? TP_NO_PARENT : owner[o->parent[i]];
        owner[i] = above != TP_NO_PARENT ? above : flops[i] > 0 ? (uint32_t)i : TP_NO_PARENT;
        if (above == TP_NO_PARENT)
            continue;
        flops[i] = -1;
        time[above] = tp_add_saturating(time[above], time[i]);
    }
}

void tp_roofline_make(const tp_selection *sel, const tp_operators *o, tp_roofline *ret)
{
    const tp_events *e = sel->events;
    const tp_device_peaks *peaks = tp_device_peaks_of(sel);
    tp_roofline r = {0};
    TP_OWN(tp_number_map) row_of = {0};
    size_t cap = 0;
    TP_FREED int64_t *device = tp_vec_new(o->n_spans, sizeof *device);
    TP_FREED double *flops_at = tp_vec_new(o->n_spans, sizeof *flops_at);
    for (size_t i = 0; i < sel->n; i++) {
        int64_t ns = sel->v[i].end - sel->v[i].start;
        r.device_ns = tp_add_saturating(r.device_ns, ns);
        if (o->op_of[i] != TP_NO_PARENT)
            device[o->op_of[i]] += ns;
    }
    r.by_host = sel->n_all == 0;
    for (size_t i = 0; i < o->n_spans && !r.has_shapes; i++) {
        const tp_event_op *op = tp_events_op(e, o->spans[i].event);
        r.has_shapes = op && op->dims;
    }
    for (size_t i = 0; i < o->n_spans && r.by_host; i++) {
        if (!tp_selection_has_time(sel, o->spans[i].start))
            continue;
        device[i] = o->self_ns[i];
        r.device_ns = tp_add_saturating(r.device_ns, o->self_ns[i]);
    }
    for (size_t i = 0; i < o->n_spans; i++)
        r.has_flops |= (flops_at[i] = flops_of(e, o->spans[i].event)) > 0;
    drop_wrappers(e, o, flops_at);
    gather_time(o, flops_at, device);
    for (size_t i = 0; i < o->n_spans; i++) {
        uint32_t event = o->spans[i].event;
        double flops = flops_at[i];
        if (flops <= 0 || device[i] <= 0)
            continue;
        uint32_t types = tp_events_op(e, event)->types;
        uint64_t key = (uint64_t)e->name[event] << 32 | types;
        uint32_t at = tp_number_map_get(&row_of, key);
        if (at == TP_NO_ROW) {
            r.rows = tp_vec_room(r.rows, &cap, r.n + 1, sizeof *r.rows);
            at = (uint32_t)r.n++;
            r.rows[at] = (tp_roofline_row){.name = e->name[event], .types = types};
            r.rows[at].peak = peak_for(peaks, tp_events_str(e, types));
            tp_number_map_add(&row_of, key, at);
        }
        r.rows[at].calls++;
        r.rows[at].flops += flops;
        r.rows[at].device_ns += device[i];
        r.flops += flops;
        r.covered_ns += device[i];
    }
    if (r.n)
        qsort(r.rows, r.n, sizeof *r.rows, by_flops);
    *ret = r;
}

void tp_roofline_release(tp_roofline *r)
{
    free(r->rows);
    *r = (tp_roofline){0};
}
