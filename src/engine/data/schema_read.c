/* schema_read.c - one row of a known schema as a conversation or a text. */
#include <string.h>

#include "base/platform.h"
#include "engine/data/row_example.h"
#include "engine/data/row_message.h"
#include "engine/data/schema.h"
#include "text/json/tree.h"

typedef struct {
    const tp_schema *schema;
    const tp_row *row;
    tp_arena *arena;
    tp_error *err;
} reading;

static tp_slice copy_slice(tp_arena *arena, const char *s, size_t n)
{
    return (tp_slice){tp_arena_strndup(arena, s, n), n};
}

/* A string member that must be there. */
static tp_status get_text(reading *r, const tp_json *object, const char *key, tp_slice *ret)
{
    const tp_json *v = tp_json_get(object, key);
    tp_row_step path[] = {{.key = key}};
    if (!v)
        return tp_row_fail_at(r->row, NULL, 0, r->err, "\"%s\" is missing from this %s row", key,
                              tp_schema_name(r->schema->kind));
    if (v->type != TP_JSON_STRING)
        return tp_row_fail_at(r->row, path, 1, r->err, "\"%s\" is %s; a string is needed", key,
                              tp_row_type_name(v));
    *ret = v->text;
    return TP_OK;
}

static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", "function"};

static tp_status check_message(reading *r, tp_message_place at, const tp_json *message)
{
    char why[200];
    TP_TRY(tp_message_check(r->row, at, message, r->err));
    tp_slice role = tp_json_get(message, "role")->text;
    for (size_t i = 0; i < TP_COUNTOF(roles); i++)
        if (tp_slice_is(role, roles[i]))
            return TP_OK;
    snprintf(why, sizeof why,
             "is \"%.40s\"; known roles are system, developer, user, assistant, tool, function",
             role.data);
    return tp_message_fail(r->row, at, "role", r->err, why);
}

/* Change the content of a message of our own list; its other members are shared with
 * the parsed row, so the list of members is copied. */
static void set_content(tp_arena *arena, tp_json *message, tp_slice text)
{
    tp_json *members = message->child, **end = &message->child;
    bool found = false;
    for (const tp_json *m = members; m; m = m->next) {
        tp_json *copy = tp_arena_new(arena, tp_json);
        *copy = *m;
        copy->next = NULL;
        if (tp_slice_is(m->key, "content")) {
            copy->type = TP_JSON_STRING;
            copy->text = text;
            copy->child = NULL;
            found = true;
        }
        *end = copy;
        end = &copy->next;
    }
    if (!found)
        tp_tree_append(message, tp_tree_text(arena, "content", text));
}

static tp_status refuse_empty(reading *r, const char *key, const tp_json *list)
{
    tp_row_step path[] = {{.key = key}};
    return list->n ? TP_OK
                   : tp_row_fail_at(r->row, path, 1, r->err,
                                    "\"%s\" is empty; there is nothing to learn from it", key);
}

/* Append shallow copies of a row's messages to `to`: siblings are relinked there. */
static tp_status add_messages(reading *r, const char *key, const tp_json *list, tp_json *to)
{
    TP_TRY(refuse_empty(r, key, list));
    tp_message_place at = {.list = key};
    tp_json **end = &to->child;
    while (*end)
        end = &(*end)->next;
    for (const tp_json *m = list->child; m; m = m->next, at.index++) {
        tp_json *copy = tp_arena_new(r->arena, tp_json);
        *copy = *m;
        copy->next = NULL;
        TP_TRY(check_message(r, at, copy));
        *end = copy;
        end = &copy->next;
        to->n++;
    }
    return TP_OK;
}

static const tp_json *get_list(reading *r, const tp_json *object, const char *key)
{
    const tp_json *list = tp_json_get(object, key);
    tp_row_step path[] = {{.key = key}};
    if (list && list->type == TP_JSON_ARRAY)
        return list;
    if (!list)
        tp_row_fail_at(r->row, NULL, 0, r->err, "\"%s\" is missing from this %s row", key,
                       tp_schema_name(r->schema->kind));
    else
        tp_row_fail_at(r->row, path, 1, r->err, "\"%s\" is %s; a list of messages is needed", key,
                       tp_row_type_name(list));
    return NULL;
}

static tp_status read_sharegpt(reading *r, const tp_json *object, tp_json *to)
{
    const char *key = r->schema->first;
    const tp_json *list = get_list(r, object, key);
    if (!list)
        return TP_ERR_FORMAT;
    if (list->child && tp_json_get(list->child, "role"))
        return add_messages(r, key, list, to); /* OpenAI's names under this key */
    TP_TRY(refuse_empty(r, key, list));
    tp_message_place at = {.list = key};
    tp_json **end = &to->child;
    for (const tp_json *m = list->child; m; m = m->next, at.index++) {
        const tp_json *from = tp_json_get(m, "from"), *value = tp_json_get(m, "value");
        if (!from || from->type != TP_JSON_STRING)
            return tp_message_fail(r->row, at, "from", r->err,
                                   "must be a string such as \"human\" or \"gpt\"");
        const char *role = tp_message_speaker(from->text);
        if (!role)
            return tp_message_fail(r->row, at, "from", r->err,
                                   "must be human, gpt, system or tool");
        if (!value || value->type != TP_JSON_STRING)
            return tp_message_fail(r->row, at, "value", r->err, "must be a string");
        *end = tp_tree_message(r->arena, role, value->text);
        end = &(*end)->next;
        to->n++;
    }
    return TP_OK;
}

/* One side of prompt and completion: a string, or a list of messages. */
static tp_status add_side(reading *r, const tp_json *object, const char *key, const char *role,
                          tp_json *to)
{
    const tp_json *v = tp_json_get(object, key);
    if (v && v->type == TP_JSON_ARRAY)
        return add_messages(r, key, v, to);
    tp_slice text;
    TP_TRY(get_text(r, object, key, &text));
    tp_tree_append(to, tp_tree_message(r->arena, role, text));
    return TP_OK;
}

/* Alpaca: the instruction, and below it its input where there is one. */
static tp_status read_alpaca(reading *r, const tp_json *object, tp_json *to)
{
    tp_slice instruction, output;
    TP_TRY(get_text(r, object, r->schema->first, &instruction));
    TP_TRY(get_text(r, object, r->schema->second, &output));
    const tp_json *input = tp_json_get(object, r->schema->extra);
    tp_slice extra = {"", 0};
    if (input && input->type != TP_JSON_NULL)
        TP_TRY(get_text(r, object, r->schema->extra, &extra));
    if (extra.len) {
        size_t n = instruction.len + 2 + extra.len;
        char *joined = tp_arena_array(r->arena, char, n + 1);
        memcpy(joined, instruction.data, instruction.len);
        memcpy(joined + instruction.len, "\n\n", 2);
        memcpy(joined + instruction.len + 2, extra.data, extra.len);
        instruction = (tp_slice){joined, n};
    }
    tp_tree_append(to, tp_tree_message(r->arena, "user", instruction));
    tp_tree_append(to, tp_tree_message(r->arena, "assistant", output));
    return TP_OK;
}

static bool has_system(const tp_json *list)
{
    return tp_message_has_role(list->child, "system") ||
           tp_message_has_role(list->child, "developer");
}

/* Returns the number of messages put in front. */
static size_t add_system(const tp_schema *schema, tp_slice system, tp_arena *arena, tp_json *list)
{
    if (!system.data && schema->system_prompt)
        system = tp_slice_of(schema->system_prompt);
    if (!system.data || has_system(list))
        return 0;
    tp_json *message = tp_tree_message(arena, "system", system);
    message->next = list->child;
    list->child = message;
    list->n++;
    return 1;
}

static void format_prompt(const tp_schema *schema, tp_arena *arena, tp_json *list)
{
    if (!schema->prompt_template)
        return;
    for (tp_json *m = list->child; m; m = m->next) {
        if (!tp_message_has_role(m, "user"))
            continue;
        size_t n;
        char *text =
            tp_prompt_format(schema->prompt_template, tp_message_text(arena, m), arena, &n);
        set_content(arena, m, (tp_slice){text, n});
        return;
    }
}

const tp_unread_column tp_unread_columns[] = {
    {"system", " (data.train.system_key=system takes it)"},
    {"history", ""},
    {"text", " (data.train.text_key=text learns it instead)"},
    {0}};

/* A system message of the conversation's own goes before the column. */
static uint32_t unread_columns(const tp_schema *schema, const tp_json *object, bool has_own_system)
{
    uint32_t unread = 0;
    for (unsigned i = 0; tp_unread_columns[i].name; i++) {
        const char *name = tp_unread_columns[i].name;
        const tp_json *v = tp_json_get(object, name);
        bool is_used = !strcmp(name, schema->first) || !strcmp(name, schema->second) ||
                       !strcmp(name, schema->system) || (has_own_system && !strcmp(name, "system"));
        bool is_said =
            v && ((v->type == TP_JSON_STRING && v->text.len) || (v->type == TP_JSON_ARRAY && v->n));
        if (is_said && !is_used)
            unread |= 1u << i;
    }
    return unread;
}

static tp_status read_conversation(reading *r, const tp_json *object, tp_example *ret)
{
    const tp_schema *schema = r->schema;
    tp_json *list = tp_tree_new(r->arena, TP_JSON_ARRAY);
    switch (schema->kind) {
    case TP_SCHEMA_SHAREGPT:
        TP_TRY(read_sharegpt(r, object, list));
        break;
    case TP_SCHEMA_ALPACA:
        TP_TRY(read_alpaca(r, object, list));
        break;
    case TP_SCHEMA_MESSAGES: {
        const tp_json *messages = get_list(r, object, schema->first);
        if (!messages)
            return TP_ERR_FORMAT;
        TP_TRY(add_messages(r, schema->first, messages, list));
        break;
    }
    default:
        TP_TRY(add_side(r, object, schema->first, "user", list));
        ret->first_target = list->n;
        TP_TRY(add_side(r, object, schema->second, "assistant", list));
    }
    ret->is_pair =
        schema->kind != TP_SCHEMA_MESSAGES && schema->kind != TP_SCHEMA_SHAREGPT && list->n == 2;
    tp_slice system = {0};
    const tp_json *own = schema->system[0] ? tp_json_get(object, schema->system) : NULL;
    if (own && own->type != TP_JSON_NULL)
        TP_TRY(get_text(r, object, schema->system, &system));
    ret->unread = unread_columns(schema, object, has_system(list));
    format_prompt(schema, r->arena, list);
    ret->first_target += add_system(schema, system, r->arena, list);
    ret->messages = list;
    return tp_tools_read(r->row, object, schema->tools, r->arena, &ret->tools, r->err);
}

tp_status tp_schema_read(const tp_schema *schema, const tp_row *row, tp_arena *arena,
                         tp_example *ret, tp_error *err)
{
    tp_json_options options = tp_row_json_options(row);
    const tp_json *object;
    TP_TRY(tp_json_parse(arena, row->file, row->text, row->n, &options, &object, err));
    return tp_schema_read_object(schema, row, object, arena, ret, err);
}

tp_status tp_schema_read_object(const tp_schema *schema, const tp_row *row, const tp_json *object,
                                tp_arena *arena, tp_example *ret, tp_error *err)
{
    reading r = {.schema = schema, .row = row, .arena = arena, .err = err};
    if (object->type != TP_JSON_OBJECT)
        return tp_row_fail_at(row, NULL, 0, err, "a row must be a JSON object, this is %s",
                              tp_row_type_name(object));
    tp_example example = {.separator = schema->separator, .line = row->line};
    if (schema->kind == TP_SCHEMA_TEXT) {
        example.is_text = true;
        TP_TRY(tp_row_refuse_media(row, object, err));
        TP_TRY(get_text(&r, object, schema->first, &example.text));
    } else {
        if (schema->detected)
            TP_TRY(tp_row_check_example(row, object, schema->kind, schema->first, err));
        TP_TRY(read_conversation(&r, object, &example));
    }
    *ret = example;
    return TP_OK;
}

void tp_schema_pair(const tp_schema *schema, const char *prompt, const char *answer,
                    tp_arena *arena, tp_example *ret)
{
    tp_json *list = tp_tree_new(arena, TP_JSON_ARRAY);
    tp_tree_append(list, tp_tree_message(arena, "user", copy_slice(arena, prompt, strlen(prompt))));
    tp_tree_append(list,
                   tp_tree_message(arena, "assistant", copy_slice(arena, answer, strlen(answer))));
    tp_example example = {.is_pair = true, .messages = list, .separator = schema->separator};
    example.first_target = 1;
    format_prompt(schema, arena, list);
    example.first_target += add_system(schema, (tp_slice){0}, arena, list);
    *ret = example;
}
