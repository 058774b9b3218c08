/* stats_tables.c - the small questions of the oracle: formulas by name, and what is asked of few
 * numbers. */
#include <math.h>
#include <string.h>

#include "support/stats_questions.h"

/* Small questions.  A formula takes numbers by name and gives numbers by name; it is asked
 * by an object {"table": "t_sf", "t": 2, "nu": 10}, or for many rows at once by
 * {"table": "t_sf", "rows": [[2, 10], ...]}.  Other questions take an object each, or
 * several as `rows`. */

enum { MAX_IN = 5, MAX_OUT = 2 };

typedef struct {
    const char *name;
    const char *in[MAX_IN + 1], *out[MAX_OUT + 1];
    void (*compute)(const double *in, double *out);
} formula;

static void t_sf(const double *v, double *r) { *r = tp_t_sf(v[0], v[1]); }
static void t_isf(const double *v, double *r) { *r = tp_t_isf(v[0], v[1]); }
static void f_sf(const double *v, double *r) { *r = tp_f_sf(v[0], v[1], v[2]); }
static void chi2_sf(const double *v, double *r) { *r = tp_chi2_sf(v[0], v[1]); }
static void norm_sf(const double *v, double *r) { *r = tp_normal_sf(v[0]); }
static void norm_ppf(const double *v, double *r) { *r = tp_normal_quantile(v[0]); }
static void beta_ppf(const double *v, double *r) { *r = tp_beta_quantile(v[0], v[1], v[2]); }
static void nct_cdf(const double *v, double *r) { *r = tp_nct_cdf(v[0], v[1], v[2]); }

static int sides_of(double v) { return v == 1 ? 1 : v == 2 ? 2 : 0; }

static void power_two(const double *v, double *r)
{
    *r = tp_power_two_sample(v[0], v[1], v[2], v[3], sides_of(v[4]));
}

static void power_paired(const double *v, double *r)
{
    *r = tp_power_paired(v[0], v[1], v[2], sides_of(v[3]));
}

static void mde_paired(const double *v, double *r)
{
    *r = tp_mde_paired(v[0], v[1], v[2], sides_of(v[3]));
}

static void mde_two(const double *v, double *r)
{
    *r = tp_mde_two_sample(v[0], v[1], v[2], v[3], sides_of(v[4]));
}

static void size_two(const double *v, double *r)
{
    r[0] = tp_sample_size_two_sample(v[0], v[1], v[2], sides_of(v[3]));
    r[1] = ceil(r[0] - 1e-9);
}

static void size_paired(const double *v, double *r)
{
    r[0] = tp_sample_size_paired(v[0], v[1], v[2], sides_of(v[3]));
    r[1] = ceil(r[0] - 1e-9);
}

static int64_t whole(double v) /* -1 when it is none */
{
    return v >= 0 && v <= 0x1p53 && floor(v) == v ? (int64_t)v : -1;
}

static void pass_at_k(const double *v, double *r)
{
    *r = tp_pass_at_k(whole(v[0]), whole(v[1]), whole(v[2]));
}

static void evalue(const double *v, double *r)
{
    *r = exp(tp_sign_evalue_log(whole(v[0]), whole(v[1])));
}

static const formula formulas[] = {
    {"t_sf", {"t", "nu"}, {"sf"}, t_sf},
    {"t_isf", {"p_upper", "nu"}, {"t"}, t_isf},
    {"F_sf", {"F", "df1", "df2"}, {"sf"}, f_sf},
    {"chi2_sf", {"x", "k"}, {"sf"}, chi2_sf},
    {"norm_sf", {"z"}, {"sf"}, norm_sf},
    {"norm_ppf", {"p"}, {"z"}, norm_ppf},
    {"beta_ppf", {"p", "a", "b"}, {"x"}, beta_ppf},
    {"nct_cdf", {"t", "nu", "ncp"}, {"cdf"}, nct_cdf},
    {"power_t_two_sample", {"d", "n1", "n2", "alpha", "sides"}, {"power"}, power_two},
    {"power_t_paired_or_one_sample", {"dz", "n", "alpha", "sides"}, {"power"}, power_paired},
    {"mde_dz_paired", {"n_pairs", "alpha", "power", "sides"}, {"dz"}, mde_paired},
    {"mde_d_two_sample", {"n1", "n2", "alpha", "power", "sides"}, {"d"}, mde_two},
    {"n_per_group_two_sample", {"d", "alpha", "power", "sides"}, {"n_real", "n_ceil"}, size_two},
    {"n_pairs_paired", {"dz", "alpha", "power", "sides"}, {"n_real", "n_ceil"}, size_paired},
    {"pass_at_k", {"n", "c", "k"}, {"pass_at_k"}, pass_at_k},
    {"sign_evalue_one_sided", {"n", "k_wins"}, {"E"}, evalue},
};

static size_t length(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

static const char outside[] = "outside the domain of the formula";

static tp_status formula_row(tp_stats_writer *a, const formula *f, const tp_json *row,
                             tp_error *err)
{
    size_t n_in = length(f->in), n_out = length(f->out), i = 0;
    double in[MAX_IN], out[MAX_OUT];
    const tp_json *v = row->child;
    if (row->type != TP_JSON_ARRAY || row->n < n_in)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a row of '%s' is an array of %zu numbers",
                       a->name, row->line, f->name, n_in);
    for (; i < n_in; i++, v = v->next)
        if (!tp_json_f64(v, &in[i]))
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: '%s' of '%s' must be a number", a->name,
                           v->line, f->in[i], f->name);
    f->compute(in, out);
    tp_stats_writer_begin_array(a, NULL);
    for (i = 0; i < n_in; i++)
        tp_stats_writer_number(a, NULL, in[i], outside);
    for (i = 0; i < n_out; i++)
        tp_stats_writer_number(a, NULL, out[i], outside);
    tp_stats_writer_end_array(a);
    return TP_OK;
}

static tp_status formula_object(tp_stats_writer *a, const formula *f, const tp_json *object,
                                tp_error *err)
{
    double in[MAX_IN], out[MAX_OUT];
    for (size_t i = 0; f->in[i]; i++) {
        bool present;
        TP_TRY(tp_stats_writer_parameter(a, object, f->in[i], &in[i], &present, err));
        if (!present)
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: '%s' needs '%s'", a->name, object->line,
                           f->name, f->in[i]);
    }
    f->compute(in, out);
    for (size_t i = 0; f->out[i]; i++)
        tp_stats_writer_number(a, f->out[i], out[i], outside);
    return TP_OK;
}

static tp_status formula_rows(tp_stats_writer *a, const formula *f, const tp_json *rows,
                              tp_error *err)
{
    if (rows->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: 'rows' must be an array", a->name, rows->line);
    tp_json_w_put_begin(a->w, "cols", '[');
    for (size_t i = 0; f->in[i]; i++)
        tp_json_w_str(a->w, f->in[i]);
    for (size_t i = 0; f->out[i]; i++)
        tp_json_w_str(a->w, f->out[i]);
    tp_json_w_end(a->w, ']');
    tp_stats_writer_begin_array(a, "rows");
    for (const tp_json *row = rows->child; row; row = row->next) {
        if (row->type != TP_JSON_OBJECT) {
            TP_TRY(formula_row(a, f, row, err));
            continue;
        }
        tp_stats_writer_object(a, NULL);
        TP_TRY(formula_object(a, f, row, err));
        tp_stats_writer_object_end(a);
    }
    tp_stats_writer_end_array(a);
    return TP_OK;
}

/* Whole numbers of an object; counts above 2^53 are refused. */
static tp_status counts_of(tp_stats_writer *a, const tp_json *object, const char *const *keys,
                           int64_t *ret, tp_error *err)
{
    for (size_t i = 0; keys[i]; i++)
        if (!tp_json_i64(tp_json_get(object, keys[i]), &ret[i]) || ret[i] < 0 ||
            ret[i] > (INT64_C(1) << 53))
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: '%s' must be a whole number, not negative",
                           a->name, object->line, keys[i]);
    return TP_OK;
}

static tp_status proportion(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    int64_t v[2];
    TP_TRY(counts_of(a, object, (const char *const[]){"x", "n", NULL}, v, err));
    tp_proportion_result r = tp_proportion(v[0], v[1], a->o.level);
    tp_stats_writer_number(a, "p", r.p, r.why);
    tp_stats_writer_number(a, "se_clt", r.se_clt, r.why);
    tp_stats_writer_pair(a, "wald", r.wald);
    tp_stats_writer_pair(a, "wilson", r.wilson);
    tp_stats_writer_pair(a, "wilson_cc", r.wilson_cc);
    tp_stats_writer_pair(a, "clopper_pearson", r.clopper_pearson);
    tp_stats_writer_pair(a, "agresti_coull", r.agresti_coull);
    tp_stats_writer_pair(a, "jeffreys", r.jeffreys);
    return TP_OK;
}

static tp_status newcombe(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    int64_t v[4];
    TP_TRY(counts_of(a, object, (const char *const[]){"x1", "n1", "x2", "n2", NULL}, v, err));
    tp_newcombe_result r = tp_newcombe(v[0], v[1], v[2], v[3], a->o.level);
    tp_stats_writer_number(a, "diff", r.diff, r.why);
    tp_stats_writer_pair(a, "ci", r.ci);
    return TP_OK;
}

static tp_status mcnemar(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    int64_t v[2];
    TP_TRY(counts_of(a, object, (const char *const[]){"b", "c", NULL}, v, err));
    tp_stats_writer_number(a, "p_exact", tp_mcnemar(v[0], v[1]), NULL);
    return TP_OK;
}

static tp_status p_adjust(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    static const char *const names[] = {"holm", "bh", "by", "bonferroni"};
    static const tp_adjust_method methods[] = {TP_ADJUST_HOLM, TP_ADJUST_BH, TP_ADJUST_BY,
                                               TP_ADJUST_BONFERRONI};
    double *p;
    size_t n;
    TP_TRY(tp_stats_writer_array(a, tp_json_get(object, "p"), "p", &p, &n, err));
    double *adjusted = tp_arena_try_alloc(a->arena, n + 1, sizeof *adjusted, _Alignof(double));
    if (!adjusted)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for %zu p-values", a->name, n);
    for (int i = 0; i < 4; i++) {
        TP_TRY(tp_adjust(methods[i], p, n, adjusted, err));
        tp_stats_writer_begin_array(a, names[i]);
        for (size_t j = 0; j < n; j++)
            tp_stats_writer_number(a, NULL, adjusted[j], NULL);
        tp_stats_writer_end_array(a);
    }
    return TP_OK;
}

static tp_status median_rank(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    static const char *const few = "too few values for an order-statistic interval at this level";
    const tp_json *conf = tp_json_get(object, "conf");
    double level = a->o.level, coverage;
    int64_t n;
    TP_TRY(counts_of(a, object, (const char *const[]){"n", NULL}, &n, err));
    if (conf && !tp_json_f64(conf, &level) &&
        !(tp_json_str(conf) && tp_str_to_f64(tp_json_str(conf), &level)))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: 'conf' must be a number", a->name, conf->line);
    size_t k = tp_median_interval_rank((size_t)n, level, &coverage);
    tp_stats_writer_number(a, "k", k ? (double)k : NAN, few);
    tp_stats_writer_number(a, "coverage", coverage, few);
    return TP_OK;
}

static void put_clustered(tp_stats_writer *a, const char *key, const tp_clustered *r)
{
    tp_stats_writer_object(a, key);
    tp_stats_writer_number(a, "mean", r->mean, r->why);
    tp_stats_writer_count(a, "n", r->n);
    tp_stats_writer_count(a, "clusters", r->n_clusters);
    tp_stats_writer_number(a, "se_clt", r->se_clt, r->why);
    tp_stats_writer_number(a, "se_clustered_miller", r->se_miller, r->why_miller);
    tp_stats_writer_number(a, "se_cluster_CR0", r->se_cr0, r->why);
    tp_stats_writer_number(a, "se_cluster_CR1", r->se_cr1, r->why);
    tp_stats_writer_interval(a, "ci", r->ci);
    tp_stats_writer_object_end(a);
}

static tp_status eval_clustered(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    const tp_json *clusters = tp_json_get(object, "cluster");
    double *x, *y, *named = NULL;
    size_t nx, ny, nc = 0;
    int64_t *cluster = NULL;
    tp_clustered r[2], paired;
    TP_TRY(tp_stats_writer_array(a, tp_json_get(object, "scores_A"), "scores_A", &x, &nx, err));
    TP_TRY(tp_stats_writer_array(a, tp_json_get(object, "scores_B"), "scores_B", &y, &ny, err));
    if (clusters)
        TP_TRY(tp_stats_writer_array(a, clusters, "cluster", &named, &nc, err));
    if (nx != ny || (clusters && nc != nx))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: %zu scores of A, %zu of B, %zu clusters; items must match", a->name, nx,
                       ny, nc);
    if (clusters) {
        cluster = tp_arena_try_alloc(a->arena, nx + 1, sizeof *cluster, _Alignof(int64_t));
        if (!cluster)
            return tp_fail(err, TP_ERR_NOMEM, "%s: no room for %zu clusters", a->name, nc);
        for (size_t i = 0; i < nx; i++) {
            if (!(fabs(named[i]) <= 0x1p53))
                return tp_fail(err, TP_ERR_FORMAT, "%s: cluster %zu is no whole number", a->name,
                               i + 1);
            cluster[i] = (int64_t)named[i];
        }
    }
    TP_TRY(tp_clustered_mean(x, cluster, nx, a->o.level, &r[0], err));
    TP_TRY(tp_clustered_mean(y, cluster, nx, a->o.level, &r[1], err));
    for (size_t i = 0; i < nx; i++)
        x[i] -= y[i];
    TP_TRY(tp_clustered_mean(x, cluster, nx, a->o.level, &paired, err));
    put_clustered(a, "A", &r[0]);
    put_clustered(a, "B", &r[1]);
    put_clustered(a, "paired_diff", &paired);
    return TP_OK;
}

/* `keys`: members by which an object without a name is recognised; the object may have no
 * member that is not listed there or in `also`. */
typedef struct {
    const char *name;
    const char *keys[5], *also[3];
    tp_status (*ask)(tp_stats_writer *a, const tp_json *object, tp_error *err);
} question;

static const question questions[] = {
    {"proportion_ci95", {"x", "n"}, {NULL}, proportion},
    {"newcombe_diff_ci95", {"x1", "n1", "x2", "n2"}, {NULL}, newcombe},
    {"mcnemar", {"b", "c"}, {NULL}, mcnemar},
    {"p_adjust", {"p"}, {NULL}, p_adjust},
    {"median_ci_indices", {"n", "conf"}, {NULL}, median_rank},
    {"eval_clustered", {"scores_A", "scores_B"}, {"cluster"}, eval_clustered},
};

static bool is_listed(const char *const *names, size_t room, const char *key)
{
    for (size_t i = 0; i < room && names[i]; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

static bool matches(const tp_json *object, const char *const *keys, size_t room)
{
    for (size_t i = 0; i < room && keys[i]; i++)
        if (!tp_json_get(object, keys[i]))
            return false;
    return true;
}

static bool has_only(const tp_json *object, const char *const *keys, size_t n_keys,
                     const char *const *also, size_t n_also)
{
    static const char *const always[] = {"level", "source", "note", "expected", "kind", "table"};
    for (const tp_json *m = object->child; m; m = m->next)
        if (!is_listed(keys, n_keys, m->key.data) && !is_listed(also, n_also, m->key.data) &&
            !is_listed(always, sizeof always / sizeof *always, m->key.data))
            return false;
    return true;
}

static tp_status ask_rows(tp_stats_writer *a, const question *q, const tp_json *rows, tp_error *err)
{
    if (rows->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: 'rows' must be an array of objects", a->name,
                       rows->line);
    tp_stats_writer_begin_array(a, "rows");
    for (const tp_json *row = rows->child; row; row = row->next) {
        tp_stats_writer_object(a, NULL);
        TP_TRY(q->ask(a, row, err));
        tp_stats_writer_object_end(a);
    }
    tp_stats_writer_end_array(a);
    return TP_OK;
}

/* A name decides; without one the members do. */
static const char *name_of(const tp_json *object, bool *is_table)
{
    const char *name = tp_json_str(tp_json_get(object, "table"));
    *is_table = name;
    return name ? name : tp_json_str(tp_json_get(object, "kind"));
}

static const question *find_question(const tp_json *object)
{
    bool is_table;
    const char *name = name_of(object, &is_table);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        const question *q = &questions[i];
        if (name ? strcmp(name, q->name) == 0
                 : matches(object, q->keys, 5) && has_only(object, q->keys, 5, q->also, 3))
            return q;
    }
    return NULL;
}

static const formula *find_formula(const tp_json *object)
{
    bool is_table;
    const char *name = name_of(object, &is_table);
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        const formula *f = &formulas[i];
        if (name ? strcmp(name, f->name) == 0
                 : matches(object, f->in, MAX_IN) &&
                       has_only(object, f->in, MAX_IN, f->out, MAX_OUT))
            return f;
    }
    return NULL;
}

bool tp_stats_writer_is_question(const tp_json *object)
{
    bool is_table;
    name_of(object, &is_table);
    return is_table || find_question(object) || find_formula(object);
}

tp_status tp_stats_writer_question(tp_stats_writer *a, const tp_json *object, bool *known,
                                   tp_error *err)
{
    const tp_json *rows = tp_json_get(object, "rows");
    const question *q = find_question(object);
    const formula *f = q ? NULL : find_formula(object);
    bool is_table;
    const char *name = name_of(object, &is_table);
    *known = true;
    if (q)
        return rows ? ask_rows(a, q, rows, err) : q->ask(a, object, err);
    if (f)
        return rows ? formula_rows(a, f, rows, err) : formula_object(a, f, object, err);
    *known = false;
    if (is_table)
        return tp_fail(err, TP_ERR_FORMAT, "%s: there is no table '%.40s'", a->name, name);
    return TP_OK;
}
