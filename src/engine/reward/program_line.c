/* program_line.c - writing requests to a scoring program, and reading its replies, one JSON
 * object per line. */
#include "engine/reward/program_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- asking ---- */

void tp_program_line_write(int64_t id, const char *environment, const tp_completion *c, tp_buf *out)
{
    const tp_prompt *p = c->prompt;
    tp_json_w w = tp_json_w_open(out, 0, '{');
    tp_json_w_put_i64(&w, "id", id);
    tp_json_w_put_str(&w, "env", environment);
    tp_json_w_put_str(&w, "prompt_id", p->id);
    tp_json_w_put_i64(&w, "sample", c->sample);
    tp_json_w_put_str(&w, "prompt", p->text);
    if (p->messages) {
        tp_json_w_put_value(&w, "messages", p->messages);
    }
    tp_json_w_put_strn(&w, "completion", c->text, c->n_text);
    tp_json_w_put_str(&w, "truth", p->truth);
    if (p->row) {
        tp_json_w_put_value(&w, "row", p->row);
    }
    tp_json_w_put_i64(&w, "n_tokens", (int64_t)c->n_ids);
    tp_json_w_put_bool(&w, "truncated", c->is_truncated);
    tp_json_w_close(&w, '}');
}

/* ---- hearing ---- */

static bool is_nonfinite_word(const tp_json *v)
{
    const char *text = tp_json_str(v);
    static const char *const words[] = {"NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"};
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

static tp_correct correct_of(const tp_json *object, double reward)
{
    bool yes;
    if (tp_json_bool(tp_json_get(object, "correct"), &yes))
        return yes ? TP_CORRECT_YES : TP_CORRECT_NO;
    return reward == 1 ? TP_CORRECT_YES : reward == 0 ? TP_CORRECT_NO : TP_CORRECT_UNKNOWN;
}

static void read_metrics(const tp_json *metrics, tp_reward *ret)
{
    enum { MOST = 64 };
    if (!metrics || metrics->type != TP_JSON_OBJECT)
        return;
    for (const tp_json *m = metrics->child; m && ret->n_parts < MOST; m = m->next) {
        double value;
        if (tp_json_f64(m, &value))
            tp_reward_add_part(ret, m->key.data, value);
    }
}

static void read_reward(const tp_json *object, tp_reward *ret)
{
    static const char *const types[] = {"null",     "false",    "true",     "a number",
                                        "a string", "an array", "an object"};
    const tp_json *reward = tp_json_get(object, "reward"), *answer = tp_json_get(object, "answer");
    bool yes;
    double value;
    if (tp_json_bool(reward, &yes))
        value = yes;
    else if (is_nonfinite_word(reward) || (reward && reward->type == TP_JSON_NUMBER))
        value = tp_json_f64(reward, &value) ? value : strtod(reward->text.data, NULL);
    else {
        tp_reward_exclude(ret, TP_REWARD_NONSENSE, "the answer's \"reward\" is %s",
                          reward ? types[reward->type] : "missing");
        return;
    }
    bool has_text = answer && (answer->type == TP_JSON_STRING || answer->type == TP_JSON_NUMBER);
    tp_reward_give(ret, value, correct_of(object, value), has_text ? answer->text.data : NULL);
    read_metrics(tp_json_get(object, "metrics"), ret);
}

static int64_t read_object(const tp_json *object, tp_reward *ret)
{
    int64_t id = TP_PROGRAM_NO_ID;
    if (object->type != TP_JSON_OBJECT || !tp_json_i64(tp_json_get(object, "id"), &id) || id < 0) {
        tp_reward_exclude(ret, TP_REWARD_NONSENSE, "the answer is no object with an \"id\"");
        return TP_PROGRAM_NO_ID;
    }
    const tp_json *error = tp_json_get(object, "error");
    if (error && error->type != TP_JSON_NULL)
        tp_reward_exclude(ret, TP_REWARD_REFUSED, "%s",
                          tp_json_str(error) ? tp_json_str(error) : "the program refused");
    else
        read_reward(object, ret);
    return id;
}

int64_t tp_program_line_read(tp_slice line, tp_reward *ret)
{
    TP_OWN(tp_arena) arena = {0};
    tp_error err = {0};
    tp_json_options options = TP_JSON_TOLERANT;
    const tp_json *object;
    int64_t id = TP_PROGRAM_NO_ID;
    if (tp_arena_init(&arena, line.len * 64 + (1 << 16), &err) != TP_OK ||
        tp_json_parse(&arena, "answer", line.data, line.len, &options, &object, &err) != TP_OK) {
        char shown[64];
        size_t n = line.len < 60 ? line.len : 60;
        memcpy(shown, line.data, n);
        shown[n] = 0;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)shown[i] < ' ' || (unsigned char)shown[i] >= 0x7f)
                shown[i] = '?';
        tp_reward_exclude(ret, TP_REWARD_NONSENSE, "the answer is no JSON: '%s'%s", shown,
                          line.len > n ? "..." : "");
    } else {
        id = read_object(object, ret);
    }
    return id;
}
