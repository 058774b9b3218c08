/* alarm.c - figures go to the conditions that listen to them; all of a rule true make an event. */
#include "instrument/monitor/alarm.h"
#include "base/strings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Each is shown on failing runs, and silent on healthy ones: tests/unit/monitor/test_alarms.c. */
static const struct {
    const char *name, *rule;
} usual[] = {
    {"not finite", "loss is not finite"},
    {"diverging", "loss rises by 3 sigma over 50 steps"},
    {"entropy collapsed", "entropy collapses and reward flat over the run"},
    {"entropy collapsed", "entropy collapses and reward falls by 20 %"},
    {"reward pays for length",
     "length rises by 50 % over 100 steps and reward rises by 3 sigma over 100 steps"},
    {"leak", "memory rises by 20 % over 200 steps"},
    {"memory", "memory above 90 %"},
    {"slowing down", "own throughput falls by 20 %"},
    {"data repeats", "data repeats"},
};

tp_status tp_alarm_set_add(tp_alarm_set *set, const char *rule, const char *name, tp_error *err)
{
    tp_alarm_rule parsed;
    if (set->n == TP_ALARM_RULES)
        return tp_fail(err, TP_ERR_CONFIG, "more than %d alarms", TP_ALARM_RULES);
    TP_TRY(tp_alarm_rule_parse(rule, &parsed, err));
    tp_alarm_set_forget(set); /* what a tag is for is known for all rules at once */
    tp_alarm *a = TP_VEC_PUSH(set->alarms, set->n, set->cap);
    a->rule = parsed;
    snprintf(a->name, sizeof a->name, "%s", name ? name : rule);
    return TP_OK;
}

void tp_alarm_set_add_usual(tp_alarm_set *set)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        tp_status status = tp_alarm_set_add(set, usual[i].rule, usual[i].name, NULL);
        TP_ASSERT(status == TP_OK || set->n == TP_ALARM_RULES);
    }
}

static void drop_ear(tp_alarm *a, size_t i)
{
    tp_alarm_series_release(&a->ears[i].series);
    a->n_ears--;
    memmove(a->ears + i, a->ears + i + 1, (a->n_ears - i) * sizeof *a->ears);
}

static void release_ears(tp_alarm *a)
{
    while (a->n_ears)
        drop_ear(a, a->n_ears - 1);
    free(a->ears);
    a->ears = NULL;
    a->cap_ears = 0;
}

void tp_alarm_set_forget(tp_alarm_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        tp_alarm *a = &set->alarms[i];
        release_ears(a);
        a->is_on = false;
        a->quiet = 0;
    }
    set->n_events = set->n_more = 0;
    tp_string_table_release(&set->tags);
    set->n_ranked = 0;
}

void tp_alarm_set_release(tp_alarm_set *set)
{
    tp_alarm_set_forget(set);
    free(set->alarms);
    free(set->events);
    free(set->ranks);
    *set = (tp_alarm_set){0};
}

/* ---- hearing ---- */

/* What the tag is for every condition, found once. */
static const int8_t *ranks_of(tp_alarm_set *set, const char *tag, uint32_t *ret_tag)
{
    size_t width = set->n * TP_ALARM_CONDITIONS;
    if (!set->n_ranked)
        tp_string_table_init(&set->tags);
    uint32_t id = tp_string_add(&set->tags, tag, strlen(tag));
    *ret_tag = id;
    for (; set->n_ranked <= id; set->n_ranked++) {
        const char *name = tp_string_get(&set->tags, (uint32_t)set->n_ranked);
        set->ranks = tp_vec_room(set->ranks, &set->cap_ranks, (set->n_ranked + 1) * width, 1);
        for (size_t i = 0; i < width; i++) {
            const tp_alarm_rule *rule = &set->alarms[i / TP_ALARM_CONDITIONS].rule;
            size_t k = i % TP_ALARM_CONDITIONS;
            set->ranks[set->n_ranked * width + i] =
                k < rule->n ? (int8_t)tp_alarm_rank(&rule->conditions[k], name) : -1;
        }
    }
    return set->ranks + id * width;
}

bool tp_alarm_set_wants(const tp_alarm_set *set, const char *tag)
{
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 0; k < set->alarms[i].rule.n; k++)
            if (tp_alarm_rank(&set->alarms[i].rule.conditions[k], tag) >= 0)
                return true;
    return false;
}

/* The condition's ear for the tag; NULL: it listens to another name, which is a better one. */
static tp_alarm_ear *ear_of(tp_alarm *a, size_t condition, int rank, uint32_t tag)
{
    for (size_t i = 0; i < a->n_ears; i++) {
        tp_alarm_ear *e = &a->ears[i];
        if (e->condition != condition)
            continue;
        if (e->tag == tag)
            return e;
        if (e->rank < rank)
            return NULL;
        if (e->rank > rank)
            drop_ear(a, i--);
    }
    tp_alarm_ear *e = TP_VEC_PUSH(a->ears, a->n_ears, a->cap_ears);
    *e = (tp_alarm_ear){.condition = condition, .tag = tag, .rank = rank};
    return e;
}

/* The newest tag of which a condition is true, else any; NULL: none is. */
static const tp_alarm_ear *true_ear(const tp_alarm *a, size_t condition, uint32_t newest)
{
    const tp_alarm_ear *found = NULL;
    for (size_t i = 0; i < a->n_ears; i++) {
        const tp_alarm_ear *e = &a->ears[i];
        if (e->condition == condition && e->holds && (!found || e->tag == newest))
            found = e;
    }
    return found;
}

static const tp_alarm_ear *first_ear(const tp_alarm *a, size_t condition)
{
    for (size_t i = 0; i < a->n_ears; i++)
        if (a->ears[i].condition == condition)
            return &a->ears[i];
    return NULL;
}

/* Values after which a rule that was true may be true anew. */
static size_t pause_of(const tp_alarm_rule *rule)
{
    double longest = 15;
    for (size_t k = 0; k < rule->n; k++) {
        const tp_alarm_window *w = &rule->conditions[k].over;
        longest = fmax(longest, w->is_time || isinf(w->length) ? 0 : w->length);
    }
    return (size_t)longest;
}

static void add_event(tp_alarm_set *set, size_t index, uint32_t tag, double step, double wall,
                      double value)
{
    const tp_alarm *a = &set->alarms[index];
    if (set->n_events == TP_ALARM_EVENTS) {
        set->n_more++;
        return;
    }
    tp_alarm_event *e = TP_VEC_PUSH(set->events, set->n_events, set->cap_events);
    *e = (tp_alarm_event){.alarm = index, .step = step, .wall = wall, .value = value};
    snprintf(e->tag, sizeof e->tag, "%.*s", (int)sizeof e->tag - 1, tp_string_get(&set->tags, tag));
    size_t at = 0;
    for (size_t k = 0; k < a->rule.n && at < sizeof e->text; k++) {
        const tp_alarm_ear *ear = true_ear(a, k, tag);
        at += (size_t)snprintf(e->text + at, sizeof e->text - at, "%s%.90s %s", k ? "; " : "",
                               tp_string_get(&set->tags, ear->tag), ear->text);
    }
}

static void hear(tp_alarm_set *set, size_t index, const int8_t *ranks, uint32_t tag, double step,
                 double wall, double value)
{
    tp_alarm *a = &set->alarms[index];
    bool is_heard = false, is_first = false, all = true;
    for (size_t k = 0; k < a->rule.n; k++) {
        const tp_alarm_condition *c = &a->rule.conditions[k];
        tp_alarm_ear *e = ranks[k] >= 0 ? ear_of(a, k, ranks[k], tag) : NULL;
        if (e) {
            tp_alarm_series_add(&e->series, c, step, wall, value);
            e->holds = tp_alarm_holds(&e->series, c, tp_string_get(&set->tags, tag), e->text,
                                      sizeof e->text);
            is_heard = true;
            is_first |= e == first_ear(a, k);
        }
        all &= true_ear(a, k, tag) != NULL;
    }
    if (!is_heard)
        return;
    a->quiet = all ? 0 : a->quiet + is_first;
    if (all && !a->is_on)
        add_event(set, index, tag, step, wall, value);
    a->is_on = all || (a->is_on && a->quiet < pause_of(&a->rule));
}

void tp_alarm_set_see(tp_alarm_set *set, const char *tag, double step, double wall, double value)
{
    uint32_t id;
    const int8_t *ranks = set->n ? ranks_of(set, tag, &id) : NULL;
    for (size_t i = 0; i < set->n; i++)
        hear(set, i, ranks + i * TP_ALARM_CONDITIONS, id, step, wall, value);
}

static bool is_judged(const tp_alarm *a, size_t condition)
{
    for (size_t i = 0; i < a->n_ears; i++)
        if (a->ears[i].condition == condition && a->ears[i].series.n_judged)
            return true;
    return false;
}

const char *tp_alarm_unjudged(const tp_alarm_set *set, size_t alarm, char *out, size_t size)
{
    const tp_alarm *a = &set->alarms[alarm];
    for (size_t k = 0; k < a->rule.n; k++) {
        const tp_alarm_ear *e = first_ear(a, k);
        const tp_alarm_series *s = e ? &e->series : NULL;
        const tp_alarm_condition *c = &a->rule.conditions[k];
        char names[300];
        if (is_judged(a, k))
            continue;
        if (!e && c->role >= 0)
            snprintf(out, size, "the run has no %s; looked for %s", c->subject,
                     tp_role_names((tp_run_role)c->role, names, sizeof names));
        else if (!e)
            snprintf(out, size, "the run has no metric '%s'", c->subject);
        else if (s->n && !isfinite(s->wall[s->n - 1]) && (c->over.is_time || c->hold.is_time))
            snprintf(out, size, "the run has no times");
        else if (s->n_seen && !s->n_first)
            snprintf(out, size, "none of the %zu values of %s is finite", s->n_seen,
                     tp_string_get(&set->tags, e->tag));
        else
            snprintf(out, size, "%zu value%s of %s: too %s for its window", s->n_seen,
                     tp_plural((uint64_t)s->n_seen), tp_string_get(&set->tags, e->tag),
                     s->is_cut || s->n > TP_ALARM_MOST_VALUES ? "many" : "few");
        return out;
    }
    return NULL;
}
