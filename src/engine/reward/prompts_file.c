/* prompts_file.c - prompts and expected answers from the rows of a JSONL file, by the keys of
 * the schemas. */
#include "engine/reward/prompts_file.h"

#include <string.h>

#include "base/platform.h"
#include "engine/data/row_message.h"
#include "text/json/tree.h"

typedef struct {
    const tp_schema_options *o;
    const tp_row *row;
    tp_arena *arena;
    tp_error *err;
} reading;

/* ---- messages ---- */

static const char *prompt_join(tp_arena *arena, const tp_json *messages, const char *separator)
{
    TP_OWN(tp_buf) out = {0};
    for (const tp_json *m = messages->child; m; m = m->next) {
        tp_slice text = tp_message_text(arena, m);
        if (text.len)
            tp_buf_add(&out, text.data, text.len);
    }
    tp_buf_adds(&out, separator);
    return tp_arena_strndup(arena, tp_buf_str(&out), out.len);
}

/* Shallow copies of the messages, whose siblings can be changed. */
static tp_status copy_messages(reading *r, const char *key, const tp_json *list, tp_json **ret)
{
    tp_row_step path[] = {{.key = key}};
    if (list->n == 0)
        return tp_row_fail_at(r->row, path, 1, r->err, "\"%s\" is empty; there is no question",
                              key);
    tp_json *copy = tp_tree_new(r->arena, TP_JSON_ARRAY), **end = &copy->child;
    for (const tp_json *m = list->child; m; m = m->next) {
        TP_TRY(tp_message_check(r->row, (tp_message_place){key, copy->n}, m, r->err));
        *end = tp_arena_new(r->arena, tp_json);
        **end = *m;
        (*end)->next = NULL;
        end = &(*end)->next;
        copy->n++;
    }
    *ret = copy;
    return TP_OK;
}

/* ---- the expected answer ---- */

/* A number or a truth value is what its text is; of messages the last one counts. */
static const char *answer_text(tp_arena *arena, const tp_json *v)
{
    if (v && v->type == TP_JSON_ARRAY && v->n)
        return tp_message_text(arena, tp_json_at(v, v->n - 1)).data;
    return v && v->type != TP_JSON_NULL ? tp_json_word(v) : NULL;
}

static tp_status find_answer(reading *r, const tp_json *object, const char **ret)
{
    static const char *const known[] = {"answer",     "solution", "ground_truth", "expected_answer",
                                        "completion", "output",   "target",       "label"};
    if (r->o->output_key) {
        const tp_json *v = tp_json_get(object, r->o->output_key);
        tp_row_step path[] = {{.key = r->o->output_key}};
        *ret = answer_text(r->arena, v);
        if (!*ret)
            return tp_row_fail_at(r->row, path, v ? 1 : 0, r->err,
                                  "\"%s\", the expected answer, is %s; a string or a number is "
                                  "needed",
                                  r->o->output_key, tp_row_type_name(v));
        return TP_OK;
    }
    for (size_t i = 0; i < TP_COUNTOF(known) && !*ret; i++)
        *ret = answer_text(r->arena, tp_json_get(object, known[i]));
    return TP_OK;
}

/* ---- the question ---- */

/* A conversation whose last turn is the assistant's gives question and answer. */
static void split_off_answer(tp_arena *arena, tp_json *messages, const char **ret_truth)
{
    tp_json **link = &messages->child;
    while (*link && (*link)->next)
        link = &(*link)->next;
    if (messages->n < 2 || !tp_message_has_role(*link, "assistant"))
        return;
    *ret_truth = tp_message_text(arena, *link).data;
    *link = NULL;
    messages->n--;
}

static tp_status nothing_fits(reading *r)
{
    return tp_row_fail_at(r->row, NULL, 0, r->err,
                          "there is no question under \"messages\", \"prompt\", \"question\", "
                          "\"problem\", \"instruction\" or \"input\"; name its column with "
                          "data.prompt_key or data.input_key");
}

/* A row that only a kind of environment can put into words. */
static tp_status ask(reading *r, const tp_json *object, tp_json **ret)
{
    TP_OWN(tp_buf) text = {0};
    for (const tp_environment_kind *const *k = tp_environment_kinds; *k; k++)
        if ((*k)->ask && (*k)->ask(object, &text)) {
            *ret = tp_tree_new(r->arena, TP_JSON_ARRAY);
            tp_slice copy = {tp_arena_strndup(r->arena, text.data, text.len), text.len};
            (*ret)->child = tp_tree_message(r->arena, "user", copy);
            (*ret)->n = 1;
            return TP_OK;
        }
    return nothing_fits(r);
}

static const char *find_question(const reading *r, const tp_json *object)
{
    static const char *const known[] = {"messages", "prompt",      "question",
                                        "problem",  "instruction", "input"};
    const char *const named[] = {r->o->chat_key, r->o->prompt_key, r->o->input_key};
    for (size_t i = 0; i < TP_COUNTOF(named); i++)
        if (named[i])
            return named[i];
    for (size_t i = 0; i < TP_COUNTOF(known); i++)
        if (tp_json_get(object, known[i]))
            return known[i];
    return NULL;
}

/* Alpaca's rows have an input below the instruction. */
static tp_slice with_input(reading *r, const tp_json *object, const char *key, tp_slice text)
{
    const tp_json *input = tp_json_get(object, "input");
    if (strcmp(key, "instruction") != 0 || !input || input->type != TP_JSON_STRING ||
        !input->text.len)
        return text;
    const char *joined = tp_arena_printf(r->arena, "%s\n\n%s", text.data, input->text.data);
    return tp_slice_of(joined);
}

static tp_status read_question(reading *r, const tp_json *object, tp_json **ret_messages,
                               const char **ret_truth, const char **ret_key)
{
    const char *key = find_question(r, object);
    *ret_key = key;
    if (!key)
        return ask(r, object, ret_messages);
    const tp_json *v = tp_json_get(object, key);
    tp_row_step path[] = {{.key = key}};
    if (v && v->type == TP_JSON_ARRAY) {
        TP_TRY(copy_messages(r, key, v, ret_messages));
        split_off_answer(r->arena, *ret_messages, ret_truth);
        return TP_OK;
    }
    if (!v || v->type != TP_JSON_STRING)
        return tp_row_fail_at(r->row, path, v ? 1 : 0, r->err,
                              "\"%s\", the question, is %s; a string or a list of messages is "
                              "needed",
                              key, tp_row_type_name(v));
    *ret_messages = tp_tree_new(r->arena, TP_JSON_ARRAY);
    (*ret_messages)->child = tp_tree_message(r->arena, "user", with_input(r, object, key, v->text));
    (*ret_messages)->n = 1;
    return TP_OK;
}

static void apply_template(reading *r, tp_json *messages)
{
    if (!r->o->prompt_template)
        return;
    for (tp_json **link = &messages->child; *link; link = &(*link)->next) {
        if (!tp_message_has_role(*link, "user"))
            continue;
        size_t n;
        char *text =
            tp_prompt_format(r->o->prompt_template, tp_message_text(r->arena, *link), r->arena, &n);
        tp_json *changed = tp_tree_message(r->arena, "user", (tp_slice){text, n});
        changed->next = (*link)->next;
        *link = changed;
        return;
    }
}

static tp_status add_system(reading *r, const tp_json *object, tp_json *messages)
{
    const char *text = r->o->system_prompt;
    const tp_json *own = r->o->system_key ? tp_json_get(object, r->o->system_key) : NULL;
    tp_row_step path[] = {{.key = r->o->system_key}};
    if (own && own->type == TP_JSON_STRING)
        text = own->text.data;
    else if (own && own->type != TP_JSON_NULL)
        return tp_row_fail_at(r->row, path, 1, r->err,
                              "\"%s\", the system prompt, is %s; a string "
                              "is needed",
                              r->o->system_key, tp_row_type_name(own));
    if (!text || tp_message_has_role(messages->child, "system") ||
        tp_message_has_role(messages->child, "developer"))
        return TP_OK;
    tp_json *message = tp_tree_message(r->arena, "system", tp_slice_of(text));
    message->next = messages->child;
    messages->child = message;
    messages->n++;
    return TP_OK;
}

/* Between question and answer where no chat template stands, as supervised training
 * has it (data/schema.h). */
static const char *separator_for(const reading *r, const char *key)
{
    if (r->o->separator)
        return r->o->separator;
    bool spaced =
        key && (!strcmp(key, "question") || !strcmp(key, "instruction") || !strcmp(key, "problem"));
    return spaced ? "\n" : "";
}

/* Texts of a prompt end at a NUL. */
static bool has_nul(const tp_json *v)
{
    bool found = v->type == TP_JSON_STRING && memchr(v->text.data, 0, v->text.len);
    for (const tp_json *child = v->child; child && !found; child = child->next)
        found = has_nul(child);
    return found;
}

tp_status tp_prompt_row_read(const tp_schema_options *options, const tp_row *row, tp_arena *arena,
                             tp_prompt *ret, tp_error *err)
{
    reading r = {options, row, arena, err};
    tp_json_options json = tp_row_json_options(row);
    const tp_json *object;
    tp_json *messages = NULL;
    const char *key = NULL;
    TP_TRY(tp_json_parse(arena, row->file, row->text, row->n, &json, &object, err));
    if (object->type != TP_JSON_OBJECT)
        return tp_row_fail_at(row, NULL, 0, err,
                              "a row must be a JSON object, this is %s; one object per line, as "
                              "`jq -c '.[]'` makes of an array",
                              tp_row_type_name(object));
    if (has_nul(object))
        return tp_row_fail_at(row, NULL, 0, err,
                              "a text of this row has the character U+0000, which would end a "
                              "question or an answer; remove it");
    tp_prompt p = {.row = object};
    TP_TRY(read_question(&r, object, &messages, &p.truth, &key));
    if (!p.truth || options->output_key)
        TP_TRY(find_answer(&r, object, &p.truth));
    apply_template(&r, messages);
    TP_TRY(add_system(&r, object, messages));
    const char *name = strrchr(row->file, '/');
    p.id = tp_arena_printf(arena, "%s:%llu", name ? name + 1 : row->file,
                           (unsigned long long)row->line);
    p.messages = messages;
    p.text = prompt_join(arena, messages, separator_for(&r, key));
    TP_TRY(tp_tools_read(row, object, options->tool_key ? options->tool_key : "tools", arena,
                         &p.tools, err));
    *ret = p;
    return TP_OK;
}

/* As for tp_schema_arena_bytes(): a parsed row takes at most 64 bytes per byte, the rest is
 * copies of texts. */
size_t tp_prompt_row_arena_bytes(const tp_schema_options *o, size_t longest_row)
{
    size_t fixed = (1 << 20) + (o->system_prompt ? 2 * strlen(o->system_prompt) : 0) +
                   (o->prompt_template ? 2 * strlen(o->prompt_template) : 0);
    return fixed + 256 * longest_row;
}
