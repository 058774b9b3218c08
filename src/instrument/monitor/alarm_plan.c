/* alarm_plan.c - alarms and their deeds out of a list. */
#include "instrument/monitor/alarm_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/vec.h"
#include "text/yaml/yaml.h"

static const struct {
    const char *word;
    unsigned does;
} words[] = {{"say", TP_ALARM_SAY},
             {"mark", TP_ALARM_MARK},
             {"checkpoint", TP_ALARM_CHECKPOINT},
             {"stop", TP_ALARM_STOP}};

static const char all_words[] = "say, mark, checkpoint, stop, {lower_rate: FACTOR} or "
                                "{run: [PROGRAM, ARGUMENT...]}";

/* ---- deeds ---- */

static tp_status read_command(tp_alarm_deed *deed, const tp_json *list, tp_error *err)
{
    size_t n = 0;
    if (list->type != TP_JSON_ARRAY || !list->n)
        return tp_fail(err, TP_ERR_CONFIG,
                       "run takes a list, [PROGRAM, ARGUMENT...]: no shell takes it apart");
    if (list->n > TP_ALARM_MOST_WORDS || deed->argv[0])
        return tp_fail(err, TP_ERR_CONFIG, "an alarm runs one command, of at most %d words",
                       TP_ALARM_MOST_WORDS);
    for (const tp_json *w = list->child; w; w = w->next) {
        bool is_text = w->type == TP_JSON_STRING || w->type == TP_JSON_NUMBER;
        if (!is_text || memchr(w->text.data, 0, w->text.len) || (n == 0 && !w->text.len))
            return tp_fail(err, TP_ERR_CONFIG, "word %zu of the command is no text", n + 1);
        deed->argv[n++] = tp_strdup(w->text.data);
    }
    return TP_OK;
}

static tp_status refuse_word(tp_slice word, tp_error *err)
{
    return tp_fail(err, TP_ERR_CONFIG, "'%.*s' is nothing that an alarm does; it can %s",
                   (int)(word.len < 60 ? word.len : 60), word.data, all_words);
}

static tp_status read_word(tp_alarm_deed *deed, const char *word, tp_error *err)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0) {
            deed->does |= words[i].does;
            return TP_OK;
        }
    return refuse_word(tp_slice_of(word), err);
}

static tp_status read_deed(tp_alarm_deed *deed, const tp_json *v, tp_error *err)
{
    if (v->type == TP_JSON_STRING)
        return read_word(deed, v->text.data, err);
    if (v->type != TP_JSON_OBJECT || !v->n)
        return tp_fail(err, TP_ERR_CONFIG, "an alarm does %s", all_words);
    for (const tp_json *c = v->child; c; c = c->next) {
        if (tp_slice_is(c->key, "run"))
            TP_TRY(read_command(deed, c, err));
        else if (!tp_slice_is(c->key, "lower_rate"))
            return refuse_word(c->key, err);
        else if (!tp_json_f64(c, &deed->lower_rate) ||
                 !(deed->lower_rate > 0 && deed->lower_rate < 1))
            return tp_fail(err, TP_ERR_CONFIG, "lower_rate takes a factor between 0 and 1");
    }
    return TP_OK;
}

static tp_status read_deeds(tp_alarm_deed *deed, const tp_json *v, tp_error *err)
{
    if (!v) {
        deed->does = TP_ALARM_SAY | TP_ALARM_MARK;
        return TP_OK;
    }
    if (v->type != TP_JSON_ARRAY)
        return read_deed(deed, v, err);
    if (!v->n)
        return tp_fail(err, TP_ERR_CONFIG, "an alarm that does nothing; it can %s", all_words);
    for (const tp_json *c = v->child; c; c = c->next)
        TP_TRY(read_deed(deed, c, err));
    return TP_OK;
}

/* ---- alarms ---- */

/* The same deeds for all alarms that came since `begin`. */
static void add_deeds(tp_alarm_plan *plan, size_t begin, const tp_alarm_deed *deed)
{
    plan->deeds = tp_vec_room(plan->deeds, &plan->cap_deeds, plan->set.n, sizeof *plan->deeds);
    for (size_t i = begin; i < plan->set.n; i++) {
        plan->deeds[i] = *deed;
        for (size_t k = 0; deed->argv[k]; k++)
            plan->deeds[i].argv[k] = tp_strdup(deed->argv[k]);
    }
}

static void release_deed(tp_alarm_deed *deed)
{
    for (size_t k = 0; deed->argv[k]; k++)
        free(deed->argv[k]);
}

static tp_status add(tp_alarm_plan *plan, const char *rule, const char *name,
                     const tp_alarm_deed *deed, tp_error *err)
{
    size_t begin = plan->set.n;
    if (strcmp(rule, "usual") == 0)
        tp_alarm_set_add_usual(&plan->set);
    else
        TP_TRY(tp_alarm_set_add(&plan->set, rule, name, err));
    add_deeds(plan, begin, deed);
    return TP_OK;
}

tp_status tp_alarm_plan_add(tp_alarm_plan *plan, const char *rule, tp_error *err)
{
    const tp_alarm_deed deed = {.does = TP_ALARM_SAY | TP_ALARM_MARK};
    return add(plan, rule, NULL, &deed, err);
}

static const char *text_of(const tp_json *v)
{
    const char *text = tp_json_str(v);
    return text && *text && !memchr(text, 0, v->text.len) ? text : NULL;
}

/* `where` has the path of the alarm, and gets that of what is wrong in it. */
static tp_status read_alarm(tp_alarm_plan *plan, const tp_json *v, tp_alarm_deed *deed, char *where,
                            size_t size, tp_error *err)
{
    if (v->type == TP_JSON_STRING) {
        TP_TRY(read_deeds(deed, NULL, err));
        return add(plan, v->text.data, NULL, deed, err);
    }
    if (v->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_CONFIG, "an alarm is a rule, or {when: RULE, do: [...]}");
    for (const tp_json *c = v->child; c; c = c->next)
        if (!tp_slice_is(c->key, "when") && !tp_slice_is(c->key, "do") &&
            !tp_slice_is(c->key, "name"))
            return tp_fail(err, TP_ERR_CONFIG, "'%.*s' is no member of an alarm: when, do, name",
                           (int)(c->key.len < 60 ? c->key.len : 60), c->key.data);
    const tp_json *name = tp_json_get(v, "name");
    const char *rule = text_of(tp_json_get(v, "when"));
    if (!rule)
        return tp_fail(err, TP_ERR_CONFIG,
                       "an alarm needs its rule, as in when: train/loss rises by 3 sigma");
    if (name && (!text_of(name) || name->text.len >= TP_ALARM_NAME))
        return tp_fail(err, TP_ERR_CONFIG, "a name is a text of at most %d bytes",
                       TP_ALARM_NAME - 1);
    size_t at = strlen(where);
    snprintf(where + at, size - at, ".do");
    TP_TRY(read_deeds(deed, tp_json_get(v, "do"), err));
    snprintf(where + at, size - at, ".when");
    return add(plan, rule, text_of(name), deed, err);
}

tp_status tp_alarm_plan_read(tp_alarm_plan *plan, const tp_json *list, char where[64],
                             tp_error *err)
{
    size_t index = 0;
    where[0] = 0;
    if (!list || list->type == TP_JSON_NULL)
        return TP_OK;
    if (list->type != TP_JSON_ARRAY) {
        tp_alarm_deed deed = {0};
        tp_status status = read_alarm(plan, list, &deed, where, 64, err);
        release_deed(&deed);
        return status;
    }
    for (const tp_json *v = list->child; v; v = v->next, index++) {
        tp_alarm_deed deed = {0};
        snprintf(where, 64, ".%zu", index);
        tp_status status = read_alarm(plan, v, &deed, where, 64, err);
        release_deed(&deed);
        TP_TRY(status);
    }
    return TP_OK;
}

/* ---- a file ---- */

/* Where a fault is: of an alarm, its line in the file. */
static uint32_t line_of(const tp_json *list, const char *where)
{
    char *end;
    if (where[0] != '.')
        return list->line;
    const tp_json *v = tp_json_at(list, strtoul(where + 1, &end, 10));
    const tp_json *member = v && *end == '.' ? tp_json_get(v, end + 1) : NULL;
    return member ? member->line : v ? v->line : list->line;
}

static tp_status read_text(tp_alarm_plan *plan, tp_arena *arena, const char *path,
                           const tp_buf *text, tp_error *err)
{
    const tp_json *root;
    char where[64];
    TP_TRY(tp_yaml_parse(arena, path, tp_buf_str(text), text->len, &root, err));
    const tp_json *list = root;
    if (root->type == TP_JSON_OBJECT && !tp_json_get(root, "when"))
        list = tp_json_get(tp_json_get(root, "monitor"), "alarms");
    if (!list)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s: no alarms here: it needs a list of them, or monitor: {alarms: [...]}",
                       path);
    tp_status status = tp_alarm_plan_read(plan, list, where, err);
    return status == TP_OK ? TP_OK
                           : tp_error_prefix(err, status, "%s:%u: ", path, line_of(list, where));
}

tp_status tp_alarm_plan_load(tp_alarm_plan *plan, const char *path, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_OWN(tp_arena) arena = {0};
    TP_TRY(tp_file_read(path, TP_YAML_MAX_BYTES, &text, err));
    TP_TRY(tp_arena_init(&arena, 64 << 20, err));
    return read_text(plan, &arena, path, &text, err);
}

void tp_alarm_plan_release(tp_alarm_plan *plan)
{
    for (size_t i = 0; plan->deeds && i < plan->set.n; i++)
        release_deed(&plan->deeds[i]);
    free(plan->deeds);
    tp_alarm_set_release(&plan->set);
    *plan = (tp_alarm_plan){0};
}
