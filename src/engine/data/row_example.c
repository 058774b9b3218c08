/* row_example.c - pairs of answers and judged answers, refused where examples are learned. */
#include "engine/data/row_example.h"

#include "base/platform.h"
#include "engine/data/row_message.h"
#include "engine/data/row_place.h"

static bool is_said(const tp_json *v) { return v && v->type != TP_JSON_NULL; }

bool tp_row_has_pair(const tp_json *object)
{
    return is_said(tp_json_get(object, "chosen")) && is_said(tp_json_get(object, "rejected"));
}

tp_status tp_row_refuse_pair(const tp_row *row, tp_error *err)
{
    return tp_row_fail_at(row, NULL, 0, err,
                          "a preference pair (chosen, rejected) is no example to imitate; train "
                          "on it with dpo");
}

/* KTO judges one answer where DPO compares two: half of them are to be avoided.  The columns are
 * TRL's and LLaMA-Factory's. */
static tp_status refuse_judged(const tp_row *row, const tp_json *object, tp_error *err)
{
    static const char *const names[] = {"label", "kto_tag"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        const tp_json *v = tp_json_get(object, names[i]);
        if (v && (v->type == TP_JSON_FALSE || v->type == TP_JSON_TRUE))
            return tp_row_fail_at(row, NULL, 0, err,
                                  "an answer with a \"%s\" of true or false was judged (KTO), bad "
                                  "ones are no example to imitate; keep the good ones, as `jq -c "
                                  "'select(.%s) | del(.%s)'` does; `del(.%s)` alone learns all",
                                  names[i], names[i], names[i], names[i]);
    }
    return TP_OK;
}

/* A conversation that the pair of answers goes on (LLaMA-Factory).  Messages that have an answer of
 * their own are whole, as UltraFeedback's are. */
static bool has_answers_beside(const tp_json *object, const char *list_key)
{
    const tp_json *list = tp_json_get(object, list_key);
    const tp_json *last = list && list->n ? tp_json_at(list, list->n - 1) : NULL;
    return tp_row_has_pair(object) && last && !tp_message_is_answer(last);
}

tp_status tp_row_check_example(const tp_row *row, const tp_json *object, tp_schema_kind kind,
                               const char *first, tp_error *err)
{
    bool is_list = kind == TP_SCHEMA_MESSAGES || kind == TP_SCHEMA_SHAREGPT;
    if (is_list && has_answers_beside(object, first))
        return tp_row_refuse_pair(row, err);
    return kind == TP_SCHEMA_TEXT ? TP_OK : refuse_judged(row, object, err);
}
