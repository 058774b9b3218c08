/* kernels.c - kernels by name: count, sum and nearest-rank quantiles of their durations. */
#include "instrument/analyze/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/analyze/sort.h"

int64_t tp_add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

int64_t tp_subtract_saturating(int64_t a, int64_t b)
{
    int64_t difference;
    if (__builtin_sub_overflow(a, b, &difference))
        return b < 0 ? INT64_MAX : INT64_MIN + 1;
    return difference;
}

int64_t tp_rank_quantile(const int64_t *v, size_t n, double q)
{
    double rank = ceil(q * (double)n - 1e-9);
    size_t at = rank < 1 ? 0 : (size_t)rank - 1;
    return v[at < n ? at : n - 1];
}

/* Durations of one name, ascending, into a row. */
static void fill_row(tp_kernel_row *row, const int64_t *durations, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        row->total_ns = tp_add_saturating(row->total_ns, durations[i]);
        sum += (double)durations[i];
    }
    row->count = (int64_t)n;
    row->min_ns = durations[0];
    row->max_ns = durations[n - 1];
    row->p50_ns = tp_rank_quantile(durations, n, 0.5);
    row->p90_ns = tp_rank_quantile(durations, n, 0.9);
    row->p99_ns = tp_rank_quantile(durations, n, 0.99);
    row->mean_ns = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double d = (double)durations[i] - row->mean_ns;
        squares += d * d;
    }
    row->sd_ns = n > 1 ? sqrt(squares / (double)(n - 1)) : (double)NAN;
}

typedef struct {
    tp_name_text text;
    const void *names;
} order;

static int compare_rows(const void *a, const void *b, void *context)
{
    const tp_kernel_row *x = a, *y = b;
    const order *o = context;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    tp_slice s = o->text(o->names, x->name), t = o->text(o->names, y->name);
    int c = memcmp(s.data, t.data, s.len < t.len ? s.len : t.len);
    return c ? c : s.len < t.len ? -1 : s.len > t.len;
}

void tp_kernels_make(const tp_activity *v, size_t n, bool only_kernels, tp_name_text text,
                     const void *names, tp_kernel_table *ret)
{
    TP_FREED tp_keyed *keyed = tp_vec_new(n, sizeof *keyed);
    TP_FREED int64_t *durations = tp_vec_new(n, sizeof *durations);
    size_t kept = 0, cap = 0;
    tp_kernel_table t = {0};
    for (size_t i = 0; i < n; i++)
        if (v[i].is_kernel || !only_kernels)
            keyed[kept++] = (tp_keyed){v[i].name, (uint32_t)i};
    tp_sort_keyed(keyed, kept);
    for (size_t from = 0, to; from < kept; from = to) {
        for (to = from; to < kept && keyed[to].key == keyed[from].key; to++)
            durations[to - from] = v[keyed[to].index].end - v[keyed[to].index].start;
        const tp_activity *one = &v[keyed[from].index];
        tp_sort_i64(durations, to - from);
        t.rows = tp_vec_room(t.rows, &cap, t.n + 1, sizeof *t.rows);
        t.rows[t.n] = (tp_kernel_row){.name = one->name, .first = one->event, .work = one->work};
        fill_row(&t.rows[t.n], durations, to - from);
        t.kernels += t.rows[t.n].count;
        t.total_ns = tp_add_saturating(t.total_ns, t.rows[t.n].total_ns);
        t.n++;
    }
    if (t.n)
        qsort_r(t.rows, t.n, sizeof *t.rows, compare_rows, &(order){text, names});
    *ret = t;
}

bool tp_kernel_is_slow(const tp_kernel_row *k, int64_t average_ns)
{
    return k->work == TP_WORK_COMPUTE && k->mean_ns >= (double)average_ns;
}

void tp_kernels_release(tp_kernel_table *table)
{
    free(table->rows);
    *table = (tp_kernel_table){0};
}
