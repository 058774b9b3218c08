/* exposition.c - /metrics: the last figures of every run that is written, for Prometheus.
 *
 * https://prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4.  One name for all
 * metrics of runs, with the run and the tag as labels: names of other frameworks are anything. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "instrument/monitor/sinks.h"
#include "instrument/serve/site.h"

static void put(tp_buf *out, const char *name, const tp_run_entry *e, double v)
{
    tp_buf_addf(out, "%s{run=\"", name);
    tp_prometheus_escape(out, e->path, true);
    tp_buf_adds(out, "\",format=\"");
    tp_prometheus_escape(out, e->format, true);
    if (isnan(v))
        tp_buf_adds(out, "\"} NaN\n");
    else if (isinf(v))
        tp_buf_addf(out, "\"} %cInf\n", v < 0 ? '-' : '+');
    else
        tp_buf_addf(out, "\"} %.17g\n", v);
}

/* Absent where nobody knows, as Prometheus has it. */
typedef struct {
    bool is_known;
    double value;
} figure;

static figure step_of(const tp_run_entry *e) { return (figure){e->step >= 0, (double)e->step}; }
static figure loss_of(const tp_run_entry *e) { return (figure){e->has_loss, e->loss}; }
static figure reward_of(const tp_run_entry *e) { return (figure){e->has_reward, e->reward}; }
static figure rate_of(const tp_run_entry *e) { return (figure){e->has_rate, e->tokens_per_s}; }
static figure updated_of(const tp_run_entry *e) { return (figure){!isnan(e->updated), e->updated}; }
static figure running_of(const tp_run_entry *e)
{
    return (figure){e->state != NULL, e->state && strcmp(e->state, "running") == 0};
}

void tp_page_exposition(tp_page *p)
{
    static const struct {
        const char *name, *help;
        figure (*value)(const tp_run_entry *e);
    } rows[] = {{"temper_run_step", "Steps done.", step_of},
                {"temper_run_loss", "The last loss of the training.", loss_of},
                {"temper_run_reward", "The last mean reward.", reward_of},
                {"temper_run_rate_per_second", "Tokens or samples of the training.", rate_of},
                {"temper_run_updated_timestamp_seconds", "Time of the last record, since 1970.",
                 updated_of},
                {"temper_run_running", "1 while the run goes on.", running_of}};
    tp_buf *out = &p->reply->body;
    size_t n = tp_run_index_count(p->site->index);
    for (size_t i = 0; i < TP_COUNTOF(rows); i++) {
        tp_buf_addf(out, "# HELP %s %s\n# TYPE %s gauge\n", rows[i].name, rows[i].help,
                    rows[i].name);
        for (size_t k = 0; k < n; k++) {
            const tp_run_entry *e = tp_run_index_entry(p->site->index, k);
            figure f = rows[i].value(e);
            if (f.is_known)
                put(out, rows[i].name, e, f.value);
        }
    }
    tp_buf_addf(out,
                "# HELP temper_runs Runs below the folder.\n# TYPE temper_runs gauge\n"
                "temper_runs %zu\n",
                n);
    tp_page_reply(p, "text/plain; version=0.0.4; charset=utf-8");
}
