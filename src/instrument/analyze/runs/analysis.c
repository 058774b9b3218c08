/* analysis.c - runs judged along dimensions: each asked by itself, so that one that cannot answer
 * stops no other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "base/vec.h"
#include "instrument/analyze/runs/dimension.h"
#include "text/json/json.h"

struct tp_analysis {
    tp_analysis_dimension *results;
    tp_dimension_figures *figures;
    size_t n;
    char **names; /* of the runs */
    size_t n_runs;
};

const char *tp_analysis_dimension_name(size_t index)
{
    return index < tp_n_dimensions ? tp_dimensions[index].name : NULL;
}

static const tp_dimension *find_dimension(const char *name, tp_error *err)
{
    tp_buf names = {0};
    for (size_t i = 0; i < tp_n_dimensions; i++) {
        if (name && strcmp(tp_dimensions[i].name, name) == 0) {
            tp_buf_release(&names);
            return &tp_dimensions[i];
        }
        tp_buf_addf(&names, "%s%s", i ? ", " : "", tp_dimensions[i].name);
    }
    tp_fail(err, TP_ERR_CONFIG, "there is no dimension '%.40s'; known are %s", name ? name : "",
            names.data);
    tp_buf_release(&names);
    return NULL;
}

/* The interval decides.  What it straddles is not shown either way, nor what has none. */
static const char *verdict_of(const tp_dimension *d, const tp_dimension_figures *f,
                              double threshold)
{
    if (f->why[0])
        return f->has_failed ? "error" : f->is_lost && !isnan(threshold) ? "fail" : "unknown";
    if (isnan(threshold))
        return "not judged";
    if (d->direction > 0)
        return f->lo >= threshold ? "pass" : f->hi < threshold ? "fail" : "not shown";
    return f->hi <= threshold ? "pass" : f->lo > threshold ? "fail" : "not shown";
}

static double threshold_of(const tp_dimension *d, const tp_analysis_options *options)
{
    for (size_t i = 0; i < options->n_thresholds; i++)
        if (strcmp(options->threshold_names[i], d->name) == 0)
            return options->thresholds[i];
    return d->threshold;
}

static void ask(const tp_dimension *d, const tp_dimension_question *q,
                const tp_analysis_options *options, tp_analysis_dimension *ret,
                tp_dimension_figures *f)
{
    f->value = f->lo = f->hi = NAN;
    d->ask(q, f);
    if (f->n_odd)
        tp_dimension_input_number(f, "not_finite", (double)f->n_odd);
    double threshold = threshold_of(d, options);
    *ret = (tp_analysis_dimension){.name = d->name,
                                   .about = d->about,
                                   .unit = d->unit,
                                   .value = f->value + 0.0, /* no -0 */
                                   .ci_lo = f->lo + 0.0,
                                   .ci_hi = f->hi + 0.0,
                                   .n = f->n,
                                   .threshold = threshold,
                                   .direction = d->direction,
                                   .verdict = verdict_of(d, f, threshold),
                                   .method = f->method[0] ? f->method : NULL,
                                   .error = f->why[0] ? f->why : NULL,
                                   .advice = f->advice[0] ? f->advice : NULL};
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Each is judged by, and by itself. */
static tp_status check_thresholds(const tp_analysis_options *o, tp_error *err)
{
    for (size_t i = 0; i < o->n_thresholds; i++) {
        if (!find_dimension(o->threshold_names[i], err))
            return TP_ERR_CONFIG;
        if (!isfinite(o->thresholds[i]))
            return tp_fail(err, TP_ERR_CONFIG,
                           "the threshold of %s is %g; expected a finite number",
                           o->threshold_names[i], o->thresholds[i]);
        if (has_name(o->threshold_names, i, o->threshold_names[i]))
            return tp_fail(err, TP_ERR_CONFIG, "%s has two thresholds; give one",
                           o->threshold_names[i]);
        if (o->n_dimensions && !has_name(o->dimensions, o->n_dimensions, o->threshold_names[i]))
            return tp_fail(err, TP_ERR_CONFIG,
                           "%s has a threshold but is not asked for; ask for it too, or take the "
                           "threshold away",
                           o->threshold_names[i]);
    }
    return TP_OK;
}

static tp_status check_options(const tp_analysis_options *o, size_t n_runs, tp_error *err)
{
    if (!(o->level > 0 && o->level < 1))
        return tp_fail(err, TP_ERR_ARG, "level is %g; expected a number between 0 and 1", o->level);
    if (o->has_target && !isfinite(o->target))
        return tp_fail(err, TP_ERR_ARG, "the target is %g; expected a finite number", o->target);
    for (size_t i = 0; i < o->n_dimensions; i++) {
        if (!find_dimension(o->dimensions[i], err))
            return TP_ERR_CONFIG;
        if (has_name(o->dimensions, i, o->dimensions[i]))
            return tp_fail(err, TP_ERR_CONFIG, "%s is asked for twice; ask once", o->dimensions[i]);
    }
    TP_TRY(check_thresholds(o, err));
    for (size_t i = 0; o->sizes && i < n_runs; i++)
        if (!(o->sizes[i] > 0) || isinf(o->sizes[i]))
            return tp_fail(err, TP_ERR_CONFIG,
                           "the size of run %zu is %g; expected a number above 0", i + 1,
                           o->sizes[i]);
    return TP_OK;
}

tp_status tp_runs_analyze(tp_metrics *const *runs, size_t n, const tp_analysis_options *options,
                          tp_analysis **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_analysis_options o;
    bool has_all = runs && n && ret;
    for (size_t i = 0; has_all && i < n; i++)
        has_all = runs[i] != NULL;
    if (!has_all)
        return tp_fail(err, TP_ERR_ARG, "tp_runs_analyze: it needs a run");
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_analysis_options", err));
    o.level = o.level != 0 ? o.level : 0.95;
    TP_TRY(check_options(&o, n, err));
    const tp_dimension_question q = {.runs = runs,
                                     .n_runs = n,
                                     .sizes = o.sizes,
                                     .level = o.level,
                                     .target = o.has_target ? o.target : (double)NAN};
    size_t wanted = o.n_dimensions ? o.n_dimensions : tp_n_dimensions;
    tp_analysis *a = tp_vec_new(1, sizeof *a);
    a->n = wanted;
    a->results = tp_vec_new(wanted, sizeof *a->results);
    a->figures = tp_vec_new(wanted, sizeof *a->figures);
    for (size_t i = 0; i < wanted; i++) {
        const tp_dimension *d =
            o.n_dimensions ? find_dimension(o.dimensions[i], err) : &tp_dimensions[i];
        ask(d, &q, &o, &a->results[i], &a->figures[i]);
    }
    a->names = tp_vec_new(n, sizeof *a->names);
    for (; a->n_runs < n; a->n_runs++)
        a->names[a->n_runs] = tp_strdup(tp_metrics_name(runs[a->n_runs]));
    *ret = a;
    return TP_OK;
}

void tp_analysis_free(tp_analysis *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n_runs; i++)
        free(a->names[i]);
    free(a->names);
    free(a->results);
    free(a->figures);
    free(a);
}

const char *tp_analysis_run(const tp_analysis *a, size_t index)
{
    return index < a->n_runs ? a->names[index] : NULL;
}

size_t tp_analysis_count(const tp_analysis *a) { return a->n; }

const tp_analysis_dimension *tp_analysis_result(const tp_analysis *a, size_t index)
{
    return index < a->n ? &a->results[index] : NULL;
}

const char *tp_analysis_input(const tp_analysis *a, size_t index, size_t input, double *ret_value,
                              const char **ret_text)
{
    if (index >= a->n || input >= a->figures[index].n_inputs)
        return NULL;
    const tp_dimension_input *i = &a->figures[index].inputs[input];
    *ret_value = i->value;
    *ret_text = i->text[0] ? i->text : NULL;
    return i->key;
}

tp_analysis_summary tp_analysis_summarize(const tp_analysis *a)
{
    tp_analysis_summary s = {.ran = a->n};
    for (size_t i = 0; i < a->n; i++) {
        s.failed += a->results[i].error != NULL;
        s.unknown += strcmp(a->results[i].verdict, "unknown") == 0;
        s.below_threshold += strcmp(a->results[i].verdict, "fail") == 0;
    }
    s.succeeded = s.ran - s.failed;
    return s;
}

/* ---- JSON ---- */

static void put_inputs(tp_json_w *w, const tp_dimension_figures *f)
{
    tp_json_w_put_begin(w, "inputs", '{');
    for (size_t i = 0; i < f->n_inputs; i++)
        if (f->inputs[i].text[0])
            tp_json_w_put_str(w, f->inputs[i].key, f->inputs[i].text);
        else
            tp_json_w_put_known(w, f->inputs[i].key, f->inputs[i].value);
    tp_json_w_end(w, '}');
}

static void put_dimension(tp_json_w *w, const tp_analysis_dimension *d,
                          const tp_dimension_figures *f)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "name", d->name);
    tp_json_w_put_known(w, "value", d->value);
    tp_json_w_put_interval(w, "ci95", d->ci_lo, d->ci_hi);
    tp_json_w_put_str(w, "method", d->method);
    tp_json_w_put_i64(w, "n", (int64_t)d->n);
    put_inputs(w, f);
    tp_json_w_put_str(w, "verdict", d->verdict);
    tp_json_w_put_str(w, "error", d->error);
    tp_json_w_put_str(w, "about", d->about);
    tp_json_w_put_str(w, "unit", d->unit);
    tp_json_w_put_known(w, "threshold", d->threshold);
    tp_json_w_put_str(w, "advice", d->advice);
    tp_json_w_end(w, '}');
}

char *tp_analysis_json(const tp_analysis *a)
{
    tp_buf out = {0};
    tp_analysis_summary s = tp_analysis_summarize(a);
    tp_json_w w = tp_json_w_open(&out, 2, '{');
    tp_json_w_put_begin(&w, "dimensions", '[');
    for (size_t i = 0; i < a->n; i++)
        put_dimension(&w, &a->results[i], &a->figures[i]);
    tp_json_w_end(&w, ']');
    tp_json_w_put_begin(&w, "summary", '{');
    tp_json_w_put_i64(&w, "ran", (int64_t)s.ran);
    tp_json_w_put_i64(&w, "succeeded", (int64_t)s.succeeded);
    tp_json_w_put_i64(&w, "failed", (int64_t)s.failed);
    tp_json_w_put_i64(&w, "unknown", (int64_t)s.unknown);
    tp_json_w_put_i64(&w, "below_threshold", (int64_t)s.below_threshold);
    tp_json_w_end(&w, '}');
    tp_json_w_close(&w, '}');
    return out.data;
}
