/* follow.c - the figures of a run as lines, as they are recorded. */
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "base/vec.h"
#include "instrument/ingest/string_table.h"
#include "temper/monitor.h"
#include "text/json/json.h"

/* Of one tag: the figures that were said, and the last of them. */
typedef struct {
    size_t n;
    tp_metric_point last;
} told;

struct tp_follower {
    tp_metrics *m;
    tp_points_view view;
    const char *const *tags;
    size_t n_tags;
    bool as_json;
    tp_string_table names; /* of tags: a run that is read anew may have them in another order */
    told *told;            /* by their numbers */
    size_t n, cap;
};

tp_follower *tp_follower_new(tp_metrics *m, tp_points_view view, const char *const *tags,
                             size_t n_tags, bool as_json)
{
    tp_follower *f = tp_vec_new(1, sizeof *f);
    *f = (tp_follower){.m = m, .view = view, .tags = tags, .n_tags = n_tags, .as_json = as_json};
    tp_string_table_init(&f->names);
    return f;
}

void tp_follower_free(tp_follower *f)
{
    if (!f)
        return;
    tp_string_table_release(&f->names);
    free(f->told);
    free(f);
}

static void add_text(const char *tag, const tp_metric_point *p, tp_buf *out)
{
    char number[32];
    tp_buf_add_shown(out, tag, strlen(tag), true);
    if (p->step == TP_STEP_NONE)
        tp_buf_adds(out, " - ");
    else
        tp_buf_addf(out, " %lld ", (long long)p->step);
    if (p->value - p->value == 0)
        tp_buf_add(out, number, tp_json_f64_text(p->value, number));
    else
        tp_buf_adds(out, tp_human_value(p->value, 0, number));
    tp_buf_addc(out, '\n');
}

static void add_json(const char *tag, const tp_metric_point *p, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 0, '{');
    tp_json_w_put_str(&w, "tag", tag);
    tp_json_w_put_i64_if(&w, "step", p->step != TP_STEP_NONE, p->step);
    tp_json_w_put_known(&w, "wall_time", p->wall_time);
    tp_json_w_put_f64(&w, "value", p->value);
    tp_json_w_close(&w, '}');
}

static told *told_of(tp_follower *f, const char *tag)
{
    uint32_t id = tp_string_add(&f->names, tag, strlen(tag));
    while (f->n <= id)
        (void)TP_VEC_PUSH(f->told, f->n, f->cap);
    return &f->told[id];
}

static bool is_same(double a, double b) { return a == b || (a != a && b != b); }

/* What a restart took back, or a file that was written anew changed, is said again. */
static bool goes_on(const told *t, const tp_metric_point *p, size_t n)
{
    return !t->n || (n >= t->n && p[t->n - 1].step == t->last.step &&
                     is_same(p[t->n - 1].value, t->last.value));
}

char *tp_follower_lines(tp_follower *f)
{
    tp_buf out = {0};
    for (size_t i = 0; i < tp_metrics_count(f->m); i++) {
        const tp_metric_point *p;
        const char *tag = tp_metrics_tag(f->m, i);
        if (!tp_metrics_wanted(tag, f->tags, f->n_tags))
            continue;
        size_t n = tp_metrics_points(f->m, i, f->view, &p);
        told *t = told_of(f, tag);
        for (size_t k = goes_on(t, p, n) ? t->n : 0; k < n; k++)
            (f->as_json ? add_json : add_text)(tag, &p[k], &out);
        t->n = n;
        if (n)
            t->last = p[n - 1];
    }
    tp_buf_adds(&out, "");
    return out.data;
}
