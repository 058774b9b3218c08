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

static double flops_of_shapes(const char *name, const char *dims)
{
    static const struct {
        const char *name;
        int first, axes;
    } rows[] = {
        {"aten::mm", 0, 2}, {"aten::addmm", 1, 2}, {"aten::bmm", 0, 3}, {"aten::baddbmm", 1, 3}};
    shapes s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int a = rows[i].first, axes = rows[i].axes;
        if (strcmp(name, rows[i].name) != 0)
            continue;
        if (!read_shapes(dims, &s) || s.n < a + 2 || s.axes[a] != axes || s.axes[a + 1] != axes)
            return -1;
        const double *x = s.axis[a], *y = s.axis[a + 1];
        if (x[axes - 1] != y[axes - 2])
            return -1;
        return 2 * (axes == 3 ? x[0] : 1) * x[axes - 2] * x[axes - 1] * y[axes - 1];
    }
    return -1;
}

/* ---- peaks ---- */

static double peak_for(const tp_device_peaks *p, const char *type)
{
    bool is_half = strstr(type, "BFloat16") || strstr(type, "Half");
    bool is_single = strstr(type, "float") || strstr(type, "Float");
    return p && is_half ? p->half : p && is_single ? p->single : (double)NAN;
}

/* ---- rows ---- */

static double flops_of(const tp_events *e, uint32_t event)
{
    const tp_event_op *op = tp_events_op(e, event);
    if (!op)
        return -1;
    if (op->flops != TP_UNKNOWN && op->flops > 0)
        return (double)op->flops;
    return flops_of_shapes(tp_events_str(e, e->name[event]), tp_events_str(e, op->dims));
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
    for (size_t i = 0; i < o->n_spans && r.by_host; i++) {
        device[i] = o->self_ns[i];
        r.device_ns = tp_add_saturating(r.device_ns, o->self_ns[i]);
    }
    for (size_t i = 0; i < o->n_spans; i++)
        flops_at[i] = flops_of(e, o->spans[i].event);
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
