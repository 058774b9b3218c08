/* follow.c - the figures of a run as lines, as they are recorded. */
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "base/vec.h"
#include "temper/monitor.h"
#include "text/json/json.h"

struct tp_follower {
    tp_metrics *m;
    tp_points_view view;
    const char *const *tags;
    size_t n_tags;
    bool as_json;
    size_t *told; /* of each metric: figures that were said */
    size_t n, cap;
};

tp_follower *tp_follower_new(tp_metrics *m, tp_points_view view, const char *const *tags,
                             size_t n_tags, bool as_json)
{
    tp_follower *f = tp_vec_new(1, sizeof *f);
    *f = (tp_follower){.m = m, .view = view, .tags = tags, .n_tags = n_tags, .as_json = as_json};
    return f;
}

void tp_follower_free(tp_follower *f)
{
    if (!f)
        return;
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

char *tp_follower_lines(tp_follower *f)
{
    tp_buf out = {0};
    size_t n = tp_metrics_count(f->m);
    f->told = tp_vec_room(f->told, &f->cap, n, sizeof *f->told);
    for (; f->n < n; f->n++)
        f->told[f->n] = 0;
    f->n = n; /* fewer: the run was replaced */
    for (size_t i = 0; i < n; i++) {
        const tp_metric_point *p;
        const char *tag = tp_metrics_tag(f->m, i);
        if (!tp_metrics_wanted(tag, f->tags, f->n_tags))
            continue;
        size_t points = tp_metrics_points(f->m, i, f->view, &p);
        if (points < f->told[i]) /* what a restart took back is said again */
            f->told[i] = 0;
        for (size_t k = f->told[i]; k < points; k++)
            (f->as_json ? add_json : add_text)(tag, &p[k], &out);
        f->told[i] = points;
    }
    tp_buf_adds(&out, "");
    return out.data;
}
