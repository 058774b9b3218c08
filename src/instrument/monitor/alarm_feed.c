/* alarm_feed.c - points of many tags in the order in which the run made them. */
#include "instrument/monitor/alarm_feed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

typedef struct {
    double step, wall, value; /* step NaN: none was recorded */
    size_t tag, place;        /* place: among those of its tag */
} figure;

typedef struct {
    figure *figures;
    size_t n, cap;
} gathered;

/* By steps; what has none lies where its time is, and that is known where all have one. */
static int by_step(const void *a, const void *b)
{
    const figure *x = a, *y = b;
    if (x->step != y->step && !isnan(x->step) && !isnan(y->step))
        return x->step < y->step ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int by_wall(const void *a, const void *b)
{
    const figure *x = a, *y = b;
    return x->wall != y->wall ? (x->wall < y->wall ? -1 : 1) : by_step(a, b);
}

/* Points of a tag that were not heard yet.  False when those that were are no longer the same. */
static bool gather(tp_alarm_feed *feed, tp_metrics *m, size_t tag, gathered *g)
{
    const tp_metric_point *p;
    size_t n = tp_metrics_points(m, tag, TP_POINTS_LATEST, &p), heard = feed->n[tag];
    if (n < heard || (heard && p[heard - 1].step != feed->last[tag]))
        return false;
    for (size_t i = heard; i < n; i++) {
        figure *f = TP_VEC_PUSH(g->figures, g->n, g->cap);
        *f = (figure){.step = p[i].step == TP_STEP_NONE ? NAN : (double)p[i].step,
                      .wall = p[i].wall_time,
                      .value = p[i].value,
                      .tag = tag,
                      .place = i};
    }
    feed->n[tag] = n;
    feed->last[tag] = n ? p[n - 1].step : 0;
    return true;
}

static void start_over(tp_alarm_feed *feed, tp_alarm_set *set)
{
    tp_alarm_set_forget(set);
    memset(feed->n, 0, feed->n_tags * sizeof *feed->n);
}

static bool gather_all(tp_alarm_feed *feed, tp_alarm_set *set, tp_metrics *m, gathered *g)
{
    g->n = 0;
    for (size_t i = 0; i < feed->n_tags; i++)
        if (tp_alarm_set_wants(set, tp_metrics_tag(m, i)) && !gather(feed, m, i, g))
            return false;
    return true;
}

void tp_alarm_feed_run(tp_alarm_feed *feed, tp_alarm_set *set, tp_metrics *m)
{
    gathered g = {0};
    size_t n = tp_metrics_count(m);
    bool is_shorter = n < feed->n_tags, has_walls = true, has_steps = true;
    feed->n = tp_vec_room(feed->n, &feed->cap_n, n, sizeof *feed->n);
    feed->last = tp_vec_room(feed->last, &feed->cap_last, n, sizeof *feed->last);
    for (size_t i = is_shorter ? 0 : feed->n_tags; i < n; i++)
        feed->n[i] = 0;
    feed->n_tags = n;
    if (is_shorter || !gather_all(feed, set, m, &g)) {
        start_over(feed, set);
        gather_all(feed, set, m, &g);
    }
    for (size_t i = 0; i < g.n; i++) {
        has_walls &= !isnan(g.figures[i].wall);
        has_steps &= !isnan(g.figures[i].step);
    }
    if (g.n)
        qsort(g.figures, g.n, sizeof *g.figures, has_walls && !has_steps ? by_wall : by_step);
    for (size_t i = 0; i < g.n; i++) {
        const figure *f = &g.figures[i];
        if (feed->until > 0 && f->step > feed->until)
            continue;
        tp_alarm_set_see(set, tp_metrics_tag(m, f->tag), f->step, f->wall, f->value);
    }
    free(g.figures);
}

void tp_alarm_feed_release(tp_alarm_feed *feed)
{
    free(feed->n);
    free(feed->last);
    *feed = (tp_alarm_feed){0};
}
