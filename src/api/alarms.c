/* alarms.c - alarms over a recorded run, and what they said, for people and programs. */
#include <math.h>
#include <stdlib.h>

#include "base/strings.h"
#include "base/vec.h"
#include "base/wrap.h"
#include "instrument/monitor/alarm_feed.h"
#include "instrument/monitor/alarm_plan.h"
#include "instrument/report/grid.h"
#include "temper/monitor.h"

struct tp_alarms {
    tp_alarm_plan plan;
    tp_alarm_feed feed;
    tp_alarm_said said;
};

static tp_status fill(tp_alarms *a, const char *const *rules, size_t n, const char *file,
                      tp_error *err)
{
    for (size_t i = 0; i < n; i++)
        TP_TRY(tp_alarm_plan_add(&a->plan, rules[i], err));
    if (file)
        return tp_alarm_plan_load(&a->plan, file, err);
    return n ? TP_OK : tp_alarm_plan_add(&a->plan, "usual", err);
}

tp_status tp_alarms_open(const char *const *rules, size_t n_rules, const char *file,
                         tp_alarms **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(ret && (rules || !n_rules), err);
    for (size_t i = 0; i < n_rules; i++)
        TP_NEED(rules[i], err);
    tp_alarms *a = tp_vec_new(1, sizeof *a);
    TP_HAND_OVER(fill(a, rules, n_rules, file, err), ret, a, tp_alarms_close(a));
}

void tp_alarms_close(tp_alarms *a)
{
    if (!a)
        return;
    tp_alarm_plan_release(&a->plan);
    tp_alarm_feed_release(&a->feed);
    free(a);
}

void tp_alarms_hear(tp_alarms *a, tp_metrics *m)
{
    if (a && m)
        tp_alarm_feed_run(&a->feed, &a->plan.set, m);
}

size_t tp_alarms_count(const tp_alarms *a) { return a ? a->plan.set.n_events : 0; }

const tp_alarm_said *tp_alarms_at(tp_alarms *a, size_t index)
{
    if (index >= tp_alarms_count(a))
        return NULL;
    const tp_alarm_event *e = &a->plan.set.events[index];
    const tp_alarm *alarm = &a->plan.set.alarms[e->alarm];
    a->said = (tp_alarm_said){.name = alarm->name,
                              .rule = alarm->rule.text,
                              .tag = e->tag,
                              .text = e->text,
                              .step = isnan(e->step) ? TP_STEP_NONE : (int64_t)e->step,
                              .wall_time = e->wall,
                              .value = e->value};
    return &a->said;
}

/* ---- shown ---- */

static size_t fired(const tp_alarms *a, size_t alarm)
{
    size_t n = 0;
    for (size_t i = 0; i < a->plan.set.n_events; i++)
        n += a->plan.set.events[i].alarm == alarm;
    return n;
}

static void put_said(tp_json_w *w, const tp_alarm_said *s)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "name", s->name);
    tp_json_w_put_str(w, "rule", s->rule);
    tp_json_w_put_str(w, "tag", s->tag);
    tp_json_w_put_i64_if(w, "step", s->step != TP_STEP_NONE, s->step);
    tp_json_w_put_known(w, "wall_time", s->wall_time);
    tp_json_w_put_f64(w, "value", s->value);
    tp_json_w_put_str(w, "text", s->text);
    tp_json_w_end(w, '}');
}

char *tp_alarms_json(tp_alarms *a)
{
    tp_buf out = {0};
    char why[500];
    tp_json_w w = tp_json_w_open(&out, 2, '{');
    tp_json_w_put_begin(&w, "alarms", '[');
    for (size_t i = 0; i < tp_alarms_count(a); i++)
        put_said(&w, tp_alarms_at(a, i));
    tp_json_w_end(&w, ']');
    tp_json_w_put_i64(&w, "not_kept", a ? (int64_t)a->plan.set.n_more : 0);
    tp_json_w_put_begin(&w, "rules", '[');
    for (size_t i = 0; a && i < a->plan.set.n; i++) {
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "name", a->plan.set.alarms[i].name);
        tp_json_w_put_str(&w, "rule", a->plan.set.alarms[i].rule.text);
        tp_json_w_put_i64(&w, "fired", (int64_t)fired(a, i));
        tp_json_w_put_str(&w, "why_unjudged", tp_alarm_unjudged(&a->plan.set, i, why, sizeof why));
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
    return out.data;
}

static void add_said(tp_alarms *a, int width, tp_buf *out)
{
    TP_OWN(tp_grid) g = {.name = "alarms"};
    tp_grid_column(&g, "step", "step", TP_CELL_COUNT);
    tp_grid_column(&g, "name", "alarm", TP_CELL_TEXT);
    tp_grid_column(&g, "text", "what was heard", TP_CELL_TEXT);
    for (size_t i = 0; i < tp_alarms_count(a); i++) {
        const tp_alarm_said *s = tp_alarms_at(a, i);
        if (s->step == TP_STEP_NONE)
            tp_grid_unknown(&g);
        else
            tp_grid_int(&g, s->step);
        tp_grid_text(&g, s->name);
        tp_grid_text(&g, s->text);
    }
    tp_grid_print(&g, 0, width, out);
    tp_buf_addc(out, '\n');
}

char *tp_alarms_text(tp_alarms *a, int width)
{
    TP_OWN(tp_buf) line = {0};
    tp_buf out = {0};
    char why[500];
    size_t silent = 0, unjudged = 0;
    if (tp_alarms_count(a))
        add_said(a, width, &out);
    if (a && a->plan.set.n_more)
        tp_buf_addf(&out, "and %zu more, which are not kept\n", a->plan.set.n_more);
    for (size_t i = 0; a && i < a->plan.set.n; i++) {
        const tp_alarm *alarm = &a->plan.set.alarms[i];
        const char *reason = tp_alarm_unjudged(&a->plan.set, i, why, sizeof why);
        silent += !reason && !fired(a, i);
        unjudged += reason != NULL;
        tp_buf_clear(&line);
        if (reason)
            tp_buf_addf(&line, "not judged: %s: %s\n", alarm->name, reason);
        tp_add_wrapped(&out, tp_buf_str(&line), line.len, (size_t)width);
    }
    tp_buf_addf(&out, "%zu alarm%s; of %zu rules %zu stayed silent, %zu could not be judged\n",
                tp_alarms_count(a), tp_plural((uint64_t)(tp_alarms_count(a))),
                a ? a->plan.set.n : 0, silent, unjudged);
    return out.data;
}
