/* copies.c - copies and fills by direction: bytes, time, bandwidth. */
#include "instrument/analyze/copies.h"

#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"
#include "stats/descriptive.h"

static const char *const direction_names[TP_COPY_DIRECTIONS] = {"HtoD", "DtoH",  "DtoD", "PtoP",
                                                                "HtoH", "other", "fill"};

const char *tp_copy_direction_name(tp_copy_direction direction)
{
    return direction_names[direction];
}

static tp_copy_direction from_nsight(int kind)
{
    switch (kind) {
    case 1:
    case 3:
    case 11: /* pages of unified memory, as the next two */
        return TP_COPY_HOST_TO_DEVICE;
    case 2:
    case 4:
    case 12:
        return TP_COPY_DEVICE_TO_HOST;
    case 5:
    case 6:
    case 7:
    case 8:
    case 13:
        return TP_COPY_DEVICE_TO_DEVICE;
    case 9:
        return TP_COPY_HOST_TO_HOST;
    case 10:
        return TP_COPY_PEER_TO_PEER;
    default:
        return TP_COPY_OTHER;
    }
}

/* M is memory of the host that SYCL knows nothing of. */
static tp_copy_direction from_name(tp_slice name)
{
    static const struct {
        const char *word;
        tp_copy_direction direction;
    } rows[] = {{"HtoD", TP_COPY_HOST_TO_DEVICE},     {"HostToDevice", TP_COPY_HOST_TO_DEVICE},
                {"DtoH", TP_COPY_DEVICE_TO_HOST},     {"DeviceToHost", TP_COPY_DEVICE_TO_HOST},
                {"DtoD", TP_COPY_DEVICE_TO_DEVICE},   {"DeviceToDevice", TP_COPY_DEVICE_TO_DEVICE},
                {"PtoP", TP_COPY_PEER_TO_PEER},       {"HtoH", TP_COPY_HOST_TO_HOST},
                {"HostToHost", TP_COPY_HOST_TO_HOST}, {"HtoA", TP_COPY_HOST_TO_DEVICE},
                {"AtoH", TP_COPY_DEVICE_TO_HOST},     {"M2D", TP_COPY_HOST_TO_DEVICE},
                {"H2D", TP_COPY_HOST_TO_DEVICE},      {"D2M", TP_COPY_DEVICE_TO_HOST},
                {"D2H", TP_COPY_DEVICE_TO_HOST},      {"D2D", TP_COPY_DEVICE_TO_DEVICE},
                {"H2H", TP_COPY_HOST_TO_HOST},        {"H2M", TP_COPY_HOST_TO_HOST},
                {"M2H", TP_COPY_HOST_TO_HOST},        {"M2M", TP_COPY_HOST_TO_HOST}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tp_name_matches(name, rows[i].word))
            return rows[i].direction;
    return TP_COPY_OTHER;
}

typedef struct {
    int64_t *sizes;
    double *rates;
    size_t n_sizes, n_rates;
    tp_periods times;
} pile;

static void add_copy(const tp_selection *sel, const tp_activity *a, tp_copy_row *row, pile *p)
{
    const tp_event_copy *copy = tp_events_copy(sel->events, a->event);
    int64_t ns = a->end - a->start, bytes = copy ? copy->bytes : TP_UNKNOWN;
    row->count++;
    row->sum_ns = tp_add_saturating(row->sum_ns, ns);
    row->zero_ns += ns == 0;
    row->pageable += tp_name_matches(tp_events_name_text(sel->events, a->name), "pageable");
    tp_periods_extend(&p->times, a->start, a->end);
    if (bytes == TP_UNKNOWN || bytes < 0) {
        row->unknown_bytes++;
        return;
    }
    row->bytes = tp_add_saturating(row->bytes, bytes);
    p->sizes[p->n_sizes++] = bytes;
    if (ns > 0)
        p->rates[p->n_rates++] = (double)bytes / (double)ns * 1e9;
}

static double rank_of(const double *v, size_t n, double q)
{
    size_t at = (size_t)ceil(q * (double)n - 1e-9);
    return v[at > 0 ? at - 1 : 0];
}

static void finish(tp_copy_row *row, pile *p)
{
    row->union_ns = tp_periods_length(&p->times);
    row->mean_rate = row->p50_rate = row->p90_rate = row->max_rate = (double)NAN;
    row->p50_bytes = TP_UNKNOWN;
    if (p->n_sizes) {
        tp_sort_i64(p->sizes, p->n_sizes);
        row->p50_bytes = tp_rank_quantile(p->sizes, p->n_sizes, 0.5);
    }
    if (p->n_rates == 0)
        return;
    tp_sort(p->rates, p->n_rates);
    row->mean_rate = (double)row->bytes / (double)row->sum_ns * 1e9;
    row->p50_rate = rank_of(p->rates, p->n_rates, 0.5);
    row->p90_rate = rank_of(p->rates, p->n_rates, 0.9);
    row->max_rate = p->rates[p->n_rates - 1];
}

TP_ORDER(by_time, tp_copy_row,
         TP_COMPARE(y->sum_ns, x->sum_ns) ?: TP_COMPARE(x->direction, y->direction))

static tp_copy_direction direction_of(const tp_selection *sel, const tp_activity *a)
{
    const tp_event_copy *copy = tp_events_copy(sel->events, a->event);
    if (sel->events->kind[a->event] == TP_EVENT_MEMSET)
        return TP_COPY_FILL;
    if (copy && copy->copy_kind >= 0)
        return from_nsight(copy->copy_kind);
    return from_name(tp_events_name_text(sel->events, a->name));
}

void tp_copies_make(const tp_selection *sel, tp_copy_table *ret)
{
    tp_copy_table t = {0};
    size_t n_copies = 0;
    TP_FREED uint8_t *direction = tp_vec_new(sel->n, sizeof *direction);
    for (size_t i = 0; i < sel->n; i++) {
        bool is_copy = sel->v[i].work == TP_WORK_MEM;
        direction[i] = is_copy ? (uint8_t)direction_of(sel, &sel->v[i]) : TP_COPY_DIRECTIONS;
        n_copies += is_copy;
    }
    pile p = {.sizes = tp_vec_new(n_copies, sizeof *p.sizes),
              .rates = tp_vec_new(n_copies, sizeof *p.rates)};
    for (int d = 0; d < TP_COPY_DIRECTIONS && n_copies; d++) {
        tp_copy_row row = {.direction = (tp_copy_direction)d};
        p.n_sizes = p.n_rates = p.times.n = 0;
        for (size_t i = 0; i < sel->n; i++)
            if (direction[i] == d)
                add_copy(sel, &sel->v[i], &row, &p);
        if (row.count) {
            finish(&row, &p);
            t.rows[t.n++] = row;
        }
    }
    if (t.n)
        qsort(t.rows, t.n, sizeof *t.rows, by_time);
    free(p.sizes);
    free(p.rates);
    tp_periods_release(&p.times);
    *ret = t;
}
