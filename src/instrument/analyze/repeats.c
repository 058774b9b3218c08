/* repeats.c - figures over several recordings: intervals, variation, outliers; the unit is the
 * file. */
#include "instrument/analyze/repeats.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "stats/adjust.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"
#include "stats/ratio.h"
#include "stats/special.h"
#include "stats/two_sample.h"

enum { RESAMPLES_TOTALS = 9999, RESAMPLES_NAMES = 1999, SEED = 1 };
static const double LEVEL = 0.95, ALPHA = 0.05, MARGIN = 0.01;

/* ---- gathering ---- */

void tp_repeats_init(tp_repeats *r, size_t n_files, bool per_step)
{
    *r = (tp_repeats){.room = n_files, .per_step = per_step};
    r->files = tp_vec_new(n_files, sizeof *r->files);
    tp_string_table_init(&r->names);
}

static double *unknown_values(size_t n)
{
    double *v = tp_vec_new(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (double)NAN;
    return v;
}

static tp_repeat_row *row_for(tp_repeats *r, tp_repeat_table *t, const tp_figure *f)
{
    if (f->name >= t->n_row_of) {
        t->row_of = tp_vec_room(t->row_of, &t->cap_row_of, (size_t)f->name + 1, sizeof *t->row_of);
        for (; t->n_row_of <= f->name; t->n_row_of++)
            t->row_of[t->n_row_of] = 0;
    }
    if (t->row_of[f->name] == 0) {
        t->rows = tp_vec_room(t->rows, &t->cap, t->n + 1, sizeof *t->rows);
        t->rows[t->n++] = (tp_repeat_row){.name = f->name,
                                          .unit = f->unit,
                                          .values = unknown_values(r->room),
                                          .calls = unknown_values(r->room)};
        t->row_of[f->name] = (uint32_t)t->n;
    }
    return &t->rows[t->row_of[f->name] - 1];
}

/* A copy of a file is no repeat of it: every total agrees to the last digit. */
static int find_twin(const tp_repeats *r, size_t file)
{
    const tp_repeat_table *t = &r->tables[TP_FIGURES_TOTALS];
    for (size_t k = 0; k < file; k++) {
        bool is_equal = t->n > 0;
        for (size_t i = 0; i < t->n && is_equal; i++) {
            double a = t->rows[i].values[k], b = t->rows[i].values[file];
            is_equal = isnan(a) ? isnan(b) : a == b;
        }
        if (is_equal)
            return (int)k;
    }
    return TP_NO_FILE;
}

tp_status tp_repeats_add(tp_repeats *r, const tp_trace_file *file, int group,
                         const tp_select_options *options, tp_error *err)
{
    TP_OWN(tp_figures) f = {0};
    size_t k = r->n_files;
    TP_ASSERT(k < r->room && (group == 0 || group == 1));
    TP_TRY(tp_figures_make(file, options, r->per_step, &r->names, &f, err));
    r->files[k] = (tp_repeat_file){.path = tp_strdup(file->path),
                                   .group = group,
                                   .n_devices = f.n_devices,
                                   .rank = file->rank,
                                   .steps = f.steps,
                                   .step_mean_ns = f.step_mean_ns,
                                   .step_sd_ns = f.step_sd_ns};
    TP_ASSERT(r->files[k].path);
    r->n_stepless += f.n_stepless;
    r->stepless_ns = tp_add_saturating(r->stepless_ns, f.stepless_ns);
    for (size_t i = 0; i < f.n; i++) {
        /* Host time and device time of an operator are different things. */
        if (f.v[i].table == TP_FIGURES_OPERATORS && !f.n_devices != !r->files[0].n_devices)
            continue;
        tp_repeat_row *row = row_for(r, &r->tables[f.v[i].table], &f.v[i]);
        row->values[k] = f.v[i].value;
        if (f.v[i].table != TP_FIGURES_TOTALS)
            row->calls[k] = f.v[i].calls;
    }
    r->files[k].twin = find_twin(r, k);
    r->n_files++;
    r->n_group[group]++;
    return TP_OK;
}

/* ---- one group ---- */

/* Known values of the files of a group, and which files they are of. */
static size_t known(const tp_repeats *r, const double *values, int group, double *out, int *file)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_files; i++)
        if (r->files[i].group == group && !isnan(values[i])) {
            file[n] = (int)i;
            out[n++] = values[i];
        }
    return n;
}

static tp_status summarise(const double *x, size_t n, size_t n_resamples, tp_repeat_summary *ret,
                           tp_error *err)
{
    static const char *const few = "fewer than 8 files";
    tp_description d;
    *ret = (tp_repeat_summary){.n = n,
                               .mean = (double)NAN,
                               .sd = (double)NAN,
                               .cv = (double)NAN,
                               .median = (double)NAN,
                               .min = (double)NAN,
                               .max = (double)NAN,
                               .t_ci = tp_interval_undefined("in no file"),
                               .bca = tp_interval_undefined(few),
                               .why = "in no file"};
    if (n == 0)
        return TP_OK;
    TP_TRY(tp_describe(x, n, LEVEL, &d, err));
    ret->mean = d.mean;
    ret->sd = d.sd;
    ret->cv = d.cv;
    ret->median = d.median;
    ret->min = d.min;
    ret->max = d.max;
    ret->t_ci = d.t_ci;
    ret->why = n == 1 ? "one file: nothing to vary" : d.why_spread;
    if (n == 1)
        ret->t_ci.why = ret->why;
    if (n_resamples == 0 || n < TP_REPEATS_MIN_BOOTSTRAP)
        return TP_OK;
    if (d.min == d.max) {
        ret->bca = tp_interval_undefined("all files have the same value");
        return TP_OK;
    }
    const tp_bootstrap_options options = {.n_resamples = n_resamples, .seed = SEED, .level = LEVEL};
    tp_bootstrap_result b;
    TP_TRY(tp_bootstrap(x, n, tp_statistic_mean, NULL, &options, &b, err));
    ret->bca = b.bca;
    return TP_OK;
}

int tp_find_outlier(const double *values, size_t n, double *ret_p)
{
    TP_FREED double *others = tp_vec_new(n, sizeof *others);
    double mean = tp_mean(values, n), least = -1;
    size_t far = 0, k = 0;
    *ret_p = (double)NAN;
    for (size_t i = 0; i < n; i++)
        if (fabs(values[i] - mean) > least) {
            least = fabs(values[i] - mean);
            far = i;
        }
    for (size_t i = 0; i < n; i++)
        if (i != far)
            others[k++] = values[i];
    int found = TP_NO_FILE;
    if (n >= 3 && least > 0) {
        double sd = tp_sd(others, k), distance = fabs(values[far] - tp_mean(others, k));
        double t = distance / (sd * sqrt((double)n / (double)(n - 1)));
        double p = sd > 0 ? (double)n * tp_t_two_sided(t, (double)n - 2) : 0;
        *ret_p = p < 1 ? p : 1;
        found = (int)far;
    }
    return found;
}

static tp_status look_at_group(const tp_repeats *r, tp_repeat_row *row, int group, bool is_total,
                               double *x, int *file, tp_error *err)
{
    size_t n = known(r, row->values, group, x, file);
    size_t resamples = is_total ? RESAMPLES_TOTALS : RESAMPLES_NAMES;
    TP_TRY(summarise(x, n, resamples, &row->of[group], err));
    int found = n ? tp_find_outlier(x, n, &row->outlier_p[group]) : TP_NO_FILE;
    if (n == 0)
        row->outlier_p[group] = (double)NAN;
    row->outlier[group] = found == TP_NO_FILE ? TP_NO_FILE : file[found];
    n = known(r, row->calls, group, x, file);
    TP_TRY(summarise(x, n, 0, &row->calls_of[group], err));
    for (size_t i = 0; i < n; i++)
        x[i] = row->values[file[i]] / row->calls[file[i]];
    return summarise(x, n, 0, &row->mean_of[group], err);
}

/* ---- two groups ---- */

static bool all_positive(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] > 0))
            return false;
    return true;
}

static tp_status weigh(const double *before, size_t nb, const double *after, size_t na,
                       tp_repeat_row *row, tp_error *err)
{
    tp_mann_whitney_result ranks;
    if (nb == 0 || na == 0) {
        row->why = nb ? "in no file of the second group" : "in no file of the first group";
        return TP_OK;
    }
    if (nb >= 2 && na >= 2) {
        TP_TRY(tp_mann_whitney(after, na, before, nb, LEVEL, &ranks, err));
        row->p_ranks = ranks.p.two;
    }
    if (all_positive(before, nb) && all_positive(after, na)) {
        tp_ratio_geomeans_result g;
        TP_TRY(tp_ratio_geomeans(after, na, before, nb, LEVEL, &g, err));
        row->ratio = g.ratio;
        row->lo = g.ci.lo;
        row->hi = g.ci.hi;
        row->p = g.p_two;
        row->why = nb == 1 || na == 1 ? "one file in a group: nothing to vary"
                   : g.why            ? g.why
                                      : g.why_test;
        return TP_OK;
    }
    row->why = "a value is not positive: no ratio of geometric means";
    if (nb >= 2 && na >= 2) {
        tp_t_test t = tp_welch(after, na, before, nb, LEVEL);
        row->p = t.p.two;
    }
    return TP_OK;
}

static bool is_constant_and_equal(const tp_repeat_row *row)
{
    const tp_repeat_summary *a = &row->of[0], *b = &row->of[1];
    return a->n >= 2 && b->n >= 2 && a->min == a->max && b->min == b->max && a->min == b->min;
}

static tp_change judge(const tp_repeat_row *row)
{
    const tp_repeat_summary *before = &row->of[0], *after = &row->of[1];
    if (before->n == 0 || after->n == 0)
        return TP_CHANGE_NOT_SHOWN;
    if (is_constant_and_equal(row))
        return TP_CHANGE_SAME;
    bool has_files = before->n >= TP_REPEATS_MIN_VERDICT && after->n >= TP_REPEATS_MIN_VERDICT;
    bool ranks_agree = row->p_ranks < ALPHA;
    /* Two constants that differ leave nothing to estimate: the order decides alone. */
    bool is_constant = before->min == before->max && after->min == after->max;
    if (has_files && ranks_agree && (is_constant || row->p < ALPHA)) {
        bool is_below = isnan(row->hi) ? after->mean < before->mean : row->hi < 1;
        bool is_above = isnan(row->lo) ? after->mean > before->mean : row->lo > 1;
        if (is_below != is_above)
            return is_below ? TP_CHANGE_BETTER : TP_CHANGE_WORSE;
    }
    return row->lo >= 1 - MARGIN && row->hi <= 1 + MARGIN ? TP_CHANGE_SAME : TP_CHANGE_NOT_SHOWN;
}

/* ---- all rows ---- */

static double size_of(const tp_repeat_row *row)
{
    double sum = 0;
    for (int k = 0; k < 2; k++)
        if (row->of[k].n)
            sum += row->of[k].mean * (double)row->of[k].n;
    return sum;
}

static int by_size(const void *a, const void *b)
{
    const tp_repeat_row *p = a, *q = b;
    double x = size_of(p), y = size_of(q);
    return x < y ? 1 : x > y ? -1 : p->name < q->name ? -1 : p->name > q->name;
}

static tp_status conclude_table(const tp_repeats *r, tp_repeat_table *t, bool is_total, double *x,
                                double *y, int *file, tp_error *err)
{
    tp_adjust_method method = is_total ? TP_ADJUST_HOLM : TP_ADJUST_BH;
    for (size_t i = 0; i < t->n; i++) {
        tp_repeat_row *row = &t->rows[i];
        row->ratio = row->lo = row->hi = row->p = row->p_ranks = (double)NAN;
        for (int g = 0; g < 2; g++)
            TP_TRY(look_at_group(r, row, g, is_total, x, file, err));
        size_t nb = known(r, row->values, 0, x, file), na = known(r, row->values, 1, y, file);
        if (r->n_group[1])
            TP_TRY(weigh(x, nb, y, na, row, err));
    }
    TP_FREED double *p = tp_vec_new(t->n, sizeof *p);
    tp_status status = TP_OK;
    for (int k = 0; k < 3 && status == TP_OK && t->n; k++) {
        for (size_t i = 0; i < t->n; i++)
            p[i] = k < 2 ? t->rows[i].outlier_p[k] : t->rows[i].p;
        status = tp_adjust(method, p, t->n, p, err);
        for (size_t i = 0; i < t->n && status == TP_OK; i++)
            *(k < 2 ? &t->rows[i].outlier_p[k] : &t->rows[i].p) = p[i];
    }
    TP_TRY(status);
    for (size_t i = 0; i < t->n; i++) {
        tp_repeat_row *row = &t->rows[i];
        for (int g = 0; g < 2; g++)
            if (!(row->outlier_p[g] < ALPHA))
                row->outlier[g] = TP_NO_FILE;
        row->verdict = judge(row);
    }
    if (!is_total && t->n)
        qsort(t->rows, t->n, sizeof *t->rows, by_size);
    return TP_OK;
}

tp_status tp_repeats_conclude(tp_repeats *r, tp_error *err)
{
    double *x = tp_vec_new(r->n_files, sizeof *x), *y = tp_vec_new(r->n_files, sizeof *y);
    TP_FREED int *file = tp_vec_new(r->n_files, sizeof *file);
    tp_status status = TP_OK;
    for (int t = 0; t < TP_FIGURE_TABLES && status == TP_OK; t++)
        status = conclude_table(r, &r->tables[t], t == TP_FIGURES_TOTALS, x, y, file, err);
    free(x);
    free(y);
    return status;
}

void tp_repeats_release(tp_repeats *r)
{
    for (size_t i = 0; i < r->n_files; i++)
        free(r->files[i].path);
    free(r->files);
    for (int k = 0; k < TP_FIGURE_TABLES; k++) {
        tp_repeat_table *t = &r->tables[k];
        for (size_t i = 0; i < t->n; i++) {
            free(t->rows[i].values);
            free(t->rows[i].calls);
        }
        free(t->rows);
        free(t->row_of);
    }
    tp_string_table_release(&r->names);
    *r = (tp_repeats){0};
}
