#include "instrument/analyze/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/analyze/named_work.h"
#include "instrument/analyze/sort.h"
#include "stats/adjust.h"
#include "stats/two_sample.h"

enum { MONTE_CARLO = 9999, SEED = 1 };
static const double LEVEL = 0.95, ALPHA = 0.05, MARGIN = 0.01;

/* One side of one table: a row per name with one value per step. */
typedef struct {
    int64_t *count, *ns; /* per name */
    double *steps;       /* name * n_steps + step */
    size_t n_names, n_steps, cap_count, cap_ns, cap_steps;
} side;

static void side_release(side *s)
{
    free(s->count);
    free(s->ns);
    free(s->steps);
}

static void side_reach(side *s, size_t n_names)
{
    if (n_names <= s->n_names)
        return;
    s->count = tp_vec_room(s->count, &s->cap_count, n_names, sizeof *s->count);
    s->ns = tp_vec_room(s->ns, &s->cap_ns, n_names, sizeof *s->ns);
    s->steps = tp_vec_room(s->steps, &s->cap_steps, n_names * s->n_steps + 1, sizeof *s->steps);
    for (size_t i = s->n_names; i < n_names; i++)
        s->count[i] = s->ns[i] = 0;
    for (size_t i = s->n_names * s->n_steps; i < n_names * s->n_steps; i++)
        s->steps[i] = 0;
    s->n_names = n_names;
}

/* `step` is the number of the step in order of time, or -1. */
static void side_add(side *s, uint32_t name, int64_t step, int64_t ns)
{
    side_reach(s, (size_t)name + 1);
    s->count[name]++;
    s->ns[name] = tp_add_saturating(s->ns[name], ns);
    if (step >= 0)
        s->steps[(size_t)name * s->n_steps + (size_t)step] += (double)ns;
}

/* ---- what is compared ---- */

typedef struct {
    tp_comparison *c;
    const tp_steps *steps;
    side *s;
} tally;

static void count_work(void *context, tp_slice name, int64_t at, int64_t ns)
{
    tally *t = context;
    side_add(t->s, tp_string_add(&t->c->names, name.data, name.len), tp_steps_at(t->steps, at), ns);
}

enum { N_TOTALS = 7 };
static const char *const total_names[N_TOTALS] = {
    "step (host)", "device busy", "compute", "exposed communication", "exposed memory traffic",
    "idle",        "device span"};

static void add_breakdown(const uint32_t *names, const tp_activity *v, size_t n, int64_t step,
                          side *s)
{
    tp_breakdown b;
    if (!tp_breakdown_make(v, n, TP_ALL_DEVICES, &b))
        return;
    const int64_t parts[] = {b.busy_ns,        b.compute_ns, b.exposed_comm_ns,
                             b.exposed_mem_ns, b.idle_ns,    b.span_ns};
    for (int k = 0; k < N_TOTALS - 1; k++)
        if (step < 0)
            side_add(s, names[k + 1], -1, parts[k]);
        else
            s->steps[names[k + 1] * s->n_steps + (size_t)step] = (double)parts[k];
}

static void add_totals(tp_comparison *c, const tp_selection *sel, side *s)
{
    uint32_t names[N_TOTALS];
    for (int k = 0; k < N_TOTALS; k++) {
        names[k] = tp_string_add(&c->names, total_names[k], strlen(total_names[k]));
        side_reach(s, names[k] + 1);
    }
    add_breakdown(names, sel->v, sel->n, -1, s);
    for (size_t k = 0; k < sel->steps.n; k++)
        side_add(s, names[0], (int64_t)k, sel->steps.v[k].end - sel->steps.v[k].start);
    tp_keyed *order = tp_vec_new(sel->n, sizeof *order);
    tp_activity *v = tp_vec_new(sel->n, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < sel->n; i++) {
        int64_t step = tp_steps_at(&sel->steps, tp_launch_time(sel, i));
        if (step >= 0)
            order[n++] = (tp_keyed){(uint64_t)step, (uint32_t)i};
    }
    tp_sort_keyed(order, n);
    for (size_t i = 0; i < n; i++)
        v[i] = sel->v[order[i].index];
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && order[to].key == order[from].key; to++)
            ;
        add_breakdown(names, v + from, to - from, (int64_t)order[from].key, s);
    }
    free(order);
    free(v);
}

/* ---- evidence ---- */

static double mean_of(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / (double)n : (double)NAN;
}

/* The interval and the raw p of one row. */
static tp_status weigh(const double *before, size_t n_before, const double *after, size_t n_after,
                       bool is_paired, tp_compare_row *row, tp_error *err)
{
    tp_permutation_result perm;
    tp_t_test t;
    row->lo = row->hi = row->p = row->p_permutation = (double)NAN;
    row->before_step = mean_of(before, n_before);
    row->after_step = mean_of(after, n_after);
    if (n_before < TP_COMPARE_MIN_STEPS || n_after < TP_COMPARE_MIN_STEPS)
        return TP_OK;
    if (is_paired) {
        double *d = tp_vec_new(n_before, sizeof *d);
        for (size_t i = 0; i < n_before; i++)
            d[i] = after[i] - before[i];
        t = tp_paired_t(after, before, n_before, LEVEL);
        tp_status status = tp_signflip_test(d, n_before, MONTE_CARLO, SEED, &perm, err);
        free(d);
        TP_TRY(status);
    } else {
        t = tp_welch(after, n_after, before, n_before, LEVEL);
        TP_TRY(
            tp_permutation_test(after, n_after, before, n_before, MONTE_CARLO, SEED, &perm, err));
    }
    row->lo = t.ci.lo;
    row->hi = t.ci.hi;
    row->p = t.p.two;
    row->p_permutation = perm.p.two;
    return TP_OK;
}

static tp_change judge(const tp_compare_row *row)
{
    if (isnan(row->lo) || isnan(row->hi))
        return row->before_step == row->after_step ? TP_CHANGE_SAME : TP_CHANGE_NOT_SHOWN;
    bool is_shown = row->p < ALPHA && row->p_permutation < ALPHA;
    if (is_shown && row->hi < 0)
        return TP_CHANGE_BETTER;
    if (is_shown && row->lo > 0)
        return TP_CHANGE_WORSE;
    double margin = MARGIN * row->before_step;
    return row->lo >= -margin && row->hi <= margin ? TP_CHANGE_SAME : TP_CHANGE_NOT_SHOWN;
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

static tp_status conclude(const tp_comparison *c, side *before, side *after,
                          tp_adjust_method method, tp_compare_table *ret, tp_error *err)
{
    size_t n = before->n_names > after->n_names ? before->n_names : after->n_names, kept = 0;
    tp_compare_row *rows = tp_vec_new(n, sizeof *rows);
    tp_status status = TP_OK;
    side_reach(before, n);
    side_reach(after, n);
    for (size_t i = 0; i < n && status == TP_OK; i++) {
        tp_compare_row *row = &rows[kept];
        if (before->count[i] + after->count[i] == 0)
            continue;
        *row = (tp_compare_row){.name = (uint32_t)i,
                                .before_count = before->count[i],
                                .after_count = after->count[i],
                                .before_ns = before->ns[i],
                                .after_ns = after->ns[i]};
        if (before->count[i] == 0 || after->count[i] == 0)
            row->presence = before->count[i] ? TP_COMPARE_DISAPPEARED : TP_COMPARE_APPEARED;
        status = weigh(before->steps + i * before->n_steps, before->n_steps,
                       after->steps + i * after->n_steps, after->n_steps, c->is_paired, row, err);
        kept++;
    }
    double *p = tp_vec_new(kept, sizeof *p);
    for (size_t i = 0; i < kept; i++)
        p[i] = rows[i].p;
    if (status == TP_OK && kept)
        status = tp_adjust(method, p, kept, p, err);
    for (size_t i = 0; i < kept && status == TP_OK; i++) {
        rows[i].p = p[i];
        rows[i].verdict = judge(&rows[i]);
    }
    free(p);
    if (method == TP_ADJUST_BH && kept)
        qsort(rows, kept, sizeof *rows, by_change);
    *ret = (tp_compare_table){rows, kept};
    return status;
}

tp_status tp_compare(const tp_selection *before, const tp_selection *after, tp_comparison *ret,
                     tp_error *err)
{
    const tp_selection *sel[2] = {before, after};
    enum { TOTALS, PHASES, OPERATORS, KERNELS, TABLES };
    side sides[TABLES][2] = {0};
    tp_comparison c = {.before_steps = before->steps.n, .after_steps = after->steps.n};
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
            t[i] = (tally){&c, &sel[k]->steps, &sides[i][k]};
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

void tp_comparison_release(tp_comparison *c)
{
    free(c->totals.rows);
    free(c->phases.rows);
    free(c->operators.rows);
    free(c->kernels.rows);
    tp_string_table_release(&c->names);
    *c = (tp_comparison){0};
}
