/* judging.c - performance_analysis of a recipe: checked before the run, done at its end. */
#include "api/judging.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "instrument/report/run_dashboard.h"
#include "temper/analysis.h"

enum { MOST = 32 };

typedef struct {
    char name[MOST][32]; /* keys of overrides end without a NUL */
    const char *names[MOST];
    double values[MOST];
    size_t n;
} thresholds;

static tp_status check_dimension(const tp_config *config, const char *path, const char *name,
                                 tp_error *err)
{
    TP_OWN(tp_buf) known = {0};
    const char *dimension;
    for (size_t i = 0; (dimension = tp_analysis_dimension_name(i)); i++) {
        if (strcmp(dimension, name) == 0)
            return TP_OK;
        tp_buf_addf(&known, "%s%s", i ? ", " : "", dimension);
    }
    return tp_config_fail(config, path, err, "there is no dimension '%.40s'; known are %s", name,
                          tp_buf_str(&known));
}

static tp_status read_thresholds(const tp_config *config, const tp_json *tree, thresholds *ret,
                                 tp_error *err)
{
    static const char path[] = "performance_analysis.thresholds";
    char where[128];
    if (!tree || tree->type == TP_JSON_NULL)
        return TP_OK;
    if (tree->type != TP_JSON_OBJECT || tree->n > MOST)
        return tp_config_fail(config, path, err,
                              "thresholds are numbers by dimension, as in "
                              "{convergence: 0.9}");
    for (const tp_json *v = tree->child; v; v = v->next) {
        char *name = ret->name[ret->n];
        snprintf(name, sizeof ret->name[0], "%.*s", (int)TP_MIN(v->key.len, 31), v->key.data);
        snprintf(where, sizeof where, "%s.%s", path, name);
        TP_TRY(check_dimension(config, where, name, err));
        ret->names[ret->n] = name;
        if (!tp_json_f64(v, &ret->values[ret->n]) || !isfinite(ret->values[ret->n]))
            return tp_config_fail(config, where, err, "a threshold is a finite number");
        ret->n++;
    }
    return TP_OK;
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static tp_status check_tasks(const tp_config *config, const char *const *tasks, size_t n,
                             tp_error *err)
{
    static const char path[] = "performance_analysis.tasks";
    for (size_t i = 0; i < n; i++) {
        TP_TRY(check_dimension(config, path, tasks[i], err));
        if (has_name(tasks, i, tasks[i]))
            return tp_config_fail(config, path, err, "%s is there twice; name it once", tasks[i]);
    }
    return TP_OK;
}

/* A threshold of what is not asked would never be held against anything. */
static tp_status check_thresholds(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    thresholds t = {.n = 0};
    TP_TRY(read_thresholds(config, o->analysis.thresholds, &t, err));
    for (size_t i = 0; o->analysis.tasks.n && i < t.n; i++) {
        char where[128];
        snprintf(where, sizeof where, "performance_analysis.thresholds.%s", t.names[i]);
        if (!has_name(o->analysis.tasks.v, o->analysis.tasks.n, t.names[i]))
            return tp_config_fail(config, where, err,
                                  "%s is not among performance_analysis.tasks; name it there too, "
                                  "or take the threshold away",
                                  t.names[i]);
    }
    return TP_OK;
}

tp_status tp_judging_check(const tp_config *config, const tp_train_options *o, tp_error *err)
{
    TP_TRY(check_tasks(config, o->analysis.tasks.v, o->analysis.tasks.n, err));
    for (size_t i = 0; i < o->analysis.formats.n; i++)
        if (!tp_dashboard_format(o->analysis.formats.v[i]))
            return tp_config_fail(config, "performance_analysis.visualization.formats", err,
                                  "a dashboard is drawn as svg, html, png or pdf, not as '%.40s'",
                                  o->analysis.formats.v[i]);
    if (o->analysis.enabled && o->analysis.draws && o->analysis.path) {
        tp_error why;
        if (tp_dir_check(o->analysis.path, &why) != TP_OK)
            return tp_config_fail(config, "performance_analysis.visualization.path", err, "%s",
                                  why.message);
    }
    return check_thresholds(config, o, err);
}

static tp_status report(const tp_train_options *o, const tp_analysis *a, tp_metrics *m,
                        tp_error *err)
{
    char *path, *note;
    const tp_report_options options = {.size = sizeof options,
                                       .folder = o->analysis.path,
                                       .formats = o->analysis.formats.v,
                                       .n_formats = o->analysis.formats.n};
    if (!o->analysis.draws)
        return TP_OK;
    TP_TRY(tp_analysis_write_report(a, m, &options, &path, &note, err));
    tp_log(TP_LOG_NOTICE, "analysis", "wrote %s%s%s", path, note ? "; " : "", note ? note : "");
    tp_free(path);
    tp_free(note);
    return TP_OK;
}

static void say(const tp_analysis *a, bool *ret_failed)
{
    for (size_t i = 0; i < tp_analysis_count(a); i++) {
        const tp_analysis_dimension *d = tp_analysis_result(a, i);
        if (strcmp(d->verdict, "fail") != 0)
            continue;
        *ret_failed = true;
        char value[64];
        snprintf(value, sizeof value, "%.4g, threshold %.4g", d->value, d->threshold);
        tp_log(TP_LOG_WARNING, "analysis", "%s fails: %s%s%s", d->name,
               d->error ? d->error : value, d->advice ? "; " : "", d->advice ? d->advice : "");
    }
}

static tp_status judge(const tp_train_options *o, const thresholds *t, tp_metrics *m,
                       bool *ret_failed, tp_error *err)
{
    tp_analysis *a;
    const tp_analysis_options options = {.size = sizeof options,
                                         .dimensions = o->analysis.tasks.v,
                                         .n_dimensions = o->analysis.tasks.n,
                                         .threshold_names = t->names,
                                         .thresholds = t->values,
                                         .n_thresholds = t->n,
                                         .has_target = !isnan(o->analysis.target),
                                         .target = o->analysis.target};
    TP_TRY(tp_runs_analyze(&m, 1, &options, &a, err));
    say(a, ret_failed);
    tp_status status = report(o, a, m, err);
    tp_analysis_free(a);
    return status;
}

tp_status tp_judging_run(const tp_train_options *o, bool *ret_failed, tp_error *err)
{
    tp_metrics *m;
    thresholds t = {.n = 0};
    *ret_failed = false;
    if (!o->analysis.enabled)
        return TP_OK;
    TP_TRY(read_thresholds(NULL, o->analysis.thresholds, &t, err));
    TP_TRY(tp_metrics_open(o->run_dir, NULL, &m, err));
    tp_status status = judge(o, &t, m, ret_failed, err);
    tp_metrics_close(m);
    return status;
}
