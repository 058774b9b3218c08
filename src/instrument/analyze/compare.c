/* compare.c - two sides weighed row by row, with resampled intervals and a conclusion. */
#include "instrument/analyze/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/named_work.h"
#include "instrument/analyze/sort.h"
#include "stats/adjust.h"

/* Names times steps may be far more than there is work: only what a step holds is kept. */
typedef struct {
    uint64_t place; /* name << 32 | step */
    double ns;
} share;

/* One side of one table: a row per name, and its shares of the steps. */
typedef struct {
    int64_t *count, *ns; /* per name */
    share *shares;
    size_t n_names, n_shares, n_steps, cap_count, cap_ns, cap_shares;
} side;

static void side_release(side *s)
{
    free(s->count);
    free(s->ns);
    free(s->shares);
}

static void side_reach(side *s, size_t n_names)
{
    if (n_names <= s->n_names)
        return;
    s->count = tp_vec_room(s->count, &s->cap_count, n_names, sizeof *s->count);
    s->ns = tp_vec_room(s->ns, &s->cap_ns, n_names, sizeof *s->ns);
    for (size_t i = s->n_names; i < n_names; i++)
        s->count[i] = s->ns[i] = 0;
    s->n_names = n_names;
}

static void side_share(side *s, uint32_t name, int64_t step, int64_t ns)
{
    *TP_VEC_PUSH(s->shares, s->n_shares, s->cap_shares) =
        (share){(uint64_t)name << 32 | (uint64_t)step, (double)ns};
}

/* `step` is the number of the step in order of time, or -1. */
static void side_add(side *s, uint32_t name, int64_t step, int64_t ns)
{
    side_reach(s, (size_t)name + 1);
    s->count[name]++;
    s->ns[name] = tp_add_saturating(s->ns[name], ns);
    if (step >= 0)
        side_share(s, name, step, ns);
}

/* Bring the shares into the order of names. */
static void side_sort(side *s)
{
    TP_FREED tp_keyed *order = tp_vec_new(s->n_shares, sizeof *order);
    share *sorted = tp_vec_new(s->n_shares, sizeof *sorted);
    for (size_t i = 0; i < s->n_shares; i++)
        order[i] = (tp_keyed){s->shares[i].place, (uint32_t)i};
    tp_sort_keyed(order, s->n_shares);
    for (size_t i = 0; i < s->n_shares; i++)
        sorted[i] = s->shares[order[i].index];
    free(s->shares);
    s->shares = sorted;
}

/* The first share of a name, by halving. */
static size_t first_share(const side *s, uint32_t name)
{
    size_t lo = 0, hi = s->n_shares;
    TP_BISECT(lo, hi, i, s->shares[i].place >> 32 < name);
    return lo;
}

/* A name's time in every step. */
static void spread(const side *s, uint32_t name, double *ret)
{
    memset(ret, 0, s->n_steps * sizeof *ret);
    for (size_t i = first_share(s, name); i < s->n_shares && s->shares[i].place >> 32 == name; i++)
        ret[(uint32_t)s->shares[i].place] += s->shares[i].ns;
}

static double mean_share(const side *s, uint32_t name)
{
    double sum = 0;
    for (size_t i = first_share(s, name); i < s->n_shares && s->shares[i].place >> 32 == name; i++)
        sum += s->shares[i].ns;
    return s->n_steps ? sum / (double)s->n_steps : (double)NAN;
}

/* ---- what is compared ---- */

typedef struct {
    tp_comparison *c;
    side *s;
} tally;

static void count_work(void *context, tp_slice name, int64_t step, int64_t ns)
{
    tally *t = context;
    side_add(t->s, tp_string_add(&t->c->names, name.data, name.len), step, ns);
}

enum { N_TOTALS = 7 };
static const char *const total_names[N_TOTALS] = {
    "step (host)", "device busy", "compute", "exposed communication", "exposed memory traffic",
    "idle",        "device span"};

static void add_breakdown(const uint32_t *names, const tp_activity *v, size_t n, size_t n_devices,
                          int64_t step, side *s)
{
    tp_breakdown b;
    if (tp_breakdown_add_up(v, n, n_devices, NULL, &b) == 0)
        return;
    const int64_t parts[] = {b.busy_ns,        b.compute_ns, b.exposed_comm_ns,
                             b.exposed_mem_ns, b.idle_ns,    b.span_ns};
    for (int k = 0; k < N_TOTALS - 1; k++)
        if (step < 0)
            side_add(s, names[k + 1], -1, parts[k]);
        else
            side_share(s, names[k + 1], step, parts[k]);
}

static void add_totals(tp_comparison *c, const tp_selection *sel, side *s)
{
    uint32_t names[N_TOTALS];
    for (int k = 0; k < N_TOTALS; k++) {
        names[k] = tp_string_add(&c->names, total_names[k], strlen(total_names[k]));
        side_reach(s, names[k] + 1);
    }
    add_breakdown(names, sel->v, sel->n, sel->n_devices, -1, s);
    for (size_t k = 0; k < sel->steps.n; k++)
        side_add(s, names[0], (int64_t)k, sel->steps.v[k].host_ns);
    TP_FREED tp_keyed *order = tp_vec_new(sel->n, sizeof *order);
    TP_FREED tp_activity *v = tp_vec_new(sel->n, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < sel->n; i++) {
        int64_t step = tp_work_step(sel, i);
        if (step >= 0)
            order[n++] = (tp_keyed){(uint64_t)step, (uint32_t)i};
    }
    tp_sort_keyed(order, n);
    for (size_t i = 0; i < n; i++)
        v[i] = sel->v[order[i].index];
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && order[to].key == order[from].key; to++)
            ;
        add_breakdown(names, v + from, to - from, sel->n_devices, (int64_t)order[from].key, s);
    }
}

/* ---- evidence ---- */

/* Whether nothing varies: all pairs differ by the same, or all steps of either side are alike. */
static bool is_fixed(const double *x, size_t n, const double *y, size_t n_y, bool is_paired)
{
    for (size_t i = 1; i < n; i++)
        if (is_paired ? y[i] - x[i] != y[0] - x[0] : x[i] != x[0])
            return false;
    for (size_t i = 1; i < n_y && !is_paired; i++)
        if (y[i] != y[0])
            return false;
    return true;
}

/* There is no spread then: the difference is what it is. */
static tp_change_evidence fixed_difference(double before, double difference)
{
    double p = fabs(difference) <= TP_CHANGE_MARGIN * before;
    return (tp_change_evidence){difference, difference, p, p};
}

static tp_change judge(const tp_compare_row *row)
{
    if (isnan(row->e.lo) || isnan(row->e.hi))
        return row->before_step == row->after_step ? TP_CHANGE_SAME : TP_CHANGE_NOT_SHOWN;
    return tp_change_judge(&row->e, TP_CHANGE_MARGIN * row->before_step);
}

static double change_of(const tp_compare_row *row)
{
    return isnan(row->before_step) || isnan(row->after_step)
               ? fabs((double)row->after_ns - (double)row->before_ns)
               : fabs(row->after_step - row->before_step);
}

static int by_change(const void *a, const void *b)
{
    double x = change_of(a), y = change_of(b);
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The rows of the largest changes, as many as a few seconds of tests allow. */
static tp_status weigh_rows(const tp_comparison *c, const side *before, const side *after,
                            tp_compare_row *rows, size_t n, size_t *ret_untested, tp_error *err)
{
    const size_t values = 2000000000, n_before = before->n_steps, n_after = after->n_steps;
    *ret_untested = 0;
    if (n_before < TP_COMPARE_MIN_STEPS || n_after < TP_COMPARE_MIN_STEPS)
        return TP_OK;
    size_t most = values / tp_change_resamples(n_before, n_after) / (n_before + n_after);
    most = TP_MAX(most, N_TOTALS);
    *ret_untested = n > most ? n - most : 0;
    double *x = tp_vec_new(n_before + n_after, sizeof *x), *y = x + n_before;
    tp_status status = TP_OK;
    for (size_t i = 0; i < n - *ret_untested && status == TP_OK; i++) {
        spread(before, rows[i].name, x);
        spread(after, rows[i].name, y);
        if (is_fixed(x, n_before, y, n_after, c->is_paired))
            rows[i].e = fixed_difference(rows[i].before_step, y[0] - x[0]);
        else
            status = tp_change_weigh(x, n_before, y, n_after, c->is_paired, &rows[i].e, err);
    }
    free(x);
    return status;
}

/* A row for every name that either side has. */
static size_t make_rows(const side *before, const side *after, tp_compare_row *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < before->n_names; i++) {
        const uint32_t name = (uint32_t)i;
        tp_compare_row *row = &rows[kept];
        if (before->count[i] + after->count[i] == 0)
            continue;
        *row = (tp_compare_row){.name = name,
                                .before_count = before->count[i],
                                .after_count = after->count[i],
                                .before_ns = before->ns[i],
                                .after_ns = after->ns[i],
                                .before_step = mean_share(before, name),
                                .after_step = mean_share(after, name),
                                .e = TP_CHANGE_NO_EVIDENCE};
        if (before->count[i] == 0 || after->count[i] == 0)
            row->presence = before->count[i] ? TP_COMPARE_DISAPPEARED : TP_COMPARE_APPEARED;
        kept++;
    }
    return kept;
}

static tp_status conclude(const tp_comparison *c, side *before, side *after,
                          tp_adjust_method method, tp_compare_table *ret, tp_error *err)
{
    size_t n = before->n_names > after->n_names ? before->n_names : after->n_names, n_untested;
    tp_compare_row *rows = tp_vec_new(n, sizeof *rows);
    side_reach(before, n);
    side_reach(after, n);
    side_sort(before);
    side_sort(after);
    size_t kept = make_rows(before, after, rows);
    if (method == TP_ADJUST_BH && kept)
        qsort(rows, kept, sizeof *rows, by_change);
    tp_status status = weigh_rows(c, before, after, rows, kept, &n_untested, err);
    TP_FREED double *p = tp_vec_new(kept, sizeof *p);
    for (size_t i = 0; i < kept; i++)
        p[i] = rows[i].e.p;
    if (status == TP_OK && kept)
        status = tp_adjust(method, p, kept, p, err);
    for (size_t i = 0; i < kept && status == TP_OK; i++) {
        rows[i].e.p = p[i];
        rows[i].verdict = judge(&rows[i]);
    }
    *ret = (tp_compare_table){rows, kept, n_untested};
    return status;
}

tp_status tp_compare(const tp_selection *before, const tp_selection *after, tp_comparison *ret,
                     tp_error *err)
{
    const tp_selection *sel[2] = {before, after};
    enum { TOTALS, PHASES, OPERATORS, KERNELS, TABLES };
    side sides[TABLES][2] = {0};
    tp_comparison c = {.before_steps = before->steps.n,
                       .after_steps = after->steps.n,
                       .before_devices = before->n_devices,
                       .after_devices = after->n_devices};
    c.is_paired = c.before_steps == c.after_steps && c.before_steps > 0;
    c.operators_by_host = before->n == 0 && after->n == 0;
    tp_string_table_init(&c.names);
    for (int k = 0; k < 2; k++) {
        tp_operators o;
        for (int t = 0; t < TABLES; t++)
            sides[t][k].n_steps = sel[k]->steps.n;
        tp_operators_make(sel[k], &o);
        add_totals(&c, sel[k], &sides[TOTALS][k]);
        tally t[TABLES];
        for (int i = 0; i < TABLES; i++)
            t[i] = (tally){&c, &sides[i][k]};
        tp_each_phase(sel[k], count_work, &t[PHASES]);
        tp_each_operator_work(sel[k], &o, c.operators_by_host, count_work, &t[OPERATORS]);
        tp_each_device_work(sel[k], count_work, &t[KERNELS]);
        tp_operators_release(&o);
    }
    tp_compare_table *const tables[] = {&c.totals, &c.phases, &c.operators, &c.kernels};
    tp_status status = TP_OK;
    for (int t = 0; t < TABLES; t++) {
        if (status == TP_OK)
            status = conclude(&c, &sides[t][0], &sides[t][1],
                              t == TOTALS ? TP_ADJUST_HOLM : TP_ADJUST_BH, tables[t], err);
        side_release(&sides[t][0]);
        side_release(&sides[t][1]);
    }
    if (status != TP_OK) {
        tp_comparison_release(&c);
        return status;
    }
    *ret = c;
    return TP_OK;
}

bool tp_comparison_is_worse(const tp_comparison *c)
{
    for (size_t i = 0; i < c->totals.n; i++)
        if (strcmp(tp_string_get(&c->names, c->totals.rows[i].name), total_names[0]) == 0)
            return c->totals.rows[i].verdict == TP_CHANGE_WORSE;
    return false;
}

void tp_comparison_release(tp_comparison *c)
{
    free(c->totals.rows);
    free(c->phases.rows);
    free(c->operators.rows);
    free(c->kernels.rows);
    tp_string_table_release(&c->names);
    *c = (tp_comparison){0};
}
