/* chat_context.c - messages, tools and special tokens as variables of a template. */
#include "text/template/chat_context.h"

#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "text/json/tree.h"

tp_json *tp_chat_context_new(tp_arena *arena) { return tp_tree_new(arena, TP_JSON_OBJECT); }

static tp_json *add(tp_arena *arena, tp_json *context, const char *key, tp_json_type type)
{
    tp_json *node = tp_tree_new(arena, type);
    node->key = tp_slice_of(key);
    tp_tree_append(context, node);
    return node;
}

void tp_chat_context_share(tp_arena *arena, tp_json *context, const char *key, const tp_json *list)
{
    tp_json *node = add(arena, context, key, list ? TP_JSON_ARRAY : TP_JSON_NULL);
    if (list) {
        node->child = list->child;
        node->n = list->n;
    }
}

/* ---- messages ---- */

/* Names of a message's reasoning, the first first; templates read "reasoning_content", and those
 * of gpt-oss "thinking". */
static const char *const reasoning_names[] = {"reasoning_content", "thinking", "reasoning"};

static bool is_given(const tp_json *v) { return v && v->type != TP_JSON_NULL; }

static const tp_json *find_reasoning(const tp_json *message)
{
    for (size_t i = 0; i < TP_COUNTOF(reasoning_names); i++) {
        const tp_json *v = tp_json_get(message, reasoning_names[i]);
        if (is_given(v))
            return v;
    }
    return NULL;
}

/* A list or object whose children are made one behind the other. */
typedef struct {
    tp_json *parent, **end;
} growing;

static growing grow(tp_json *parent) { return (growing){parent, &parent->child}; }

static void copy_behind(tp_arena *arena, growing *to, tp_slice key, const tp_json *value)
{
    tp_json *copy = tp_arena_new(arena, tp_json);
    *copy = *value;
    copy->key = key;
    copy->next = NULL;
    *to->end = copy;
    to->end = &copy->next;
    to->parent->n++;
}

/* As transformers passes it on: without members that are null, its reasoning under both names. */
static tp_json clean_message(tp_arena *arena, const tp_json *m)
{
    tp_json copy = {.type = TP_JSON_OBJECT, .line = m->line};
    growing members = grow(&copy);
    const tp_json *reasoning = find_reasoning(m);
    tp_slice standard = tp_slice_of(reasoning_names[0]), other = tp_slice_of(reasoning_names[1]);
    if (m->type != TP_JSON_OBJECT)
        return *m;
    const tp_json *own = tp_json_get(m, other.data);
    if (reasoning) /* in front, wherever the message has it */
        copy_behind(arena, &members, other, is_given(own) ? own : reasoning);
    for (const tp_json *v = m->child; v; v = v->next)
        if (is_given(v) && v != own)
            copy_behind(arena, &members, v->key, v);
    if (reasoning && !is_given(tp_json_get(m, standard.data)))
        copy_behind(arena, &members, standard, reasoning);
    return copy;
}

void tp_chat_context_messages(tp_arena *arena, tp_json *context, const tp_json *messages, size_t n)
{
    growing list = grow(add(arena, context, "messages", TP_JSON_ARRAY));
    for (const tp_json *m = messages->child; m && list.parent->n < n; m = m->next) {
        tp_json clean = clean_message(arena, m);
        copy_behind(arena, &list, (tp_slice){0}, &clean);
    }
}

/* ---- the other variables ---- */

static void add_token(tp_arena *arena, const tp_tokenizer *tok, const char *key, int32_t id,
                      tp_json *context)
{
    const char *token = id >= 0 ? tp_tokenizer_token(tok, id) : NULL;
    if (token && !tp_json_get(context, key))
        tp_tree_append(context, tp_tree_text(arena, key, tp_slice_of(token)));
}

static void add_variables(tp_arena *arena, const tp_json *variables, tp_json *context)
{
    for (const tp_json *v = variables ? variables->child : NULL; v; v = v->next) {
        tp_json *copy = tp_arena_new(arena, tp_json);
        *copy = *v;
        copy->next = NULL;
        tp_tree_append(context, copy);
    }
}

void tp_chat_context_finish(tp_arena *arena, const tp_tokenizer *tok, const tp_json *variables,
                            bool generation_prompt, tp_json *context)
{
    static const char *const absent[] = {"tools", "documents"};
    add_variables(arena, variables, context);
    for (int i = 0; i < 2; i++)
        if (!tp_json_get(context, absent[i]))
            add(arena, context, absent[i], TP_JSON_NULL);
    if (!tp_json_get(context, "add_generation_prompt"))
        add(arena, context, "add_generation_prompt",
            generation_prompt ? TP_JSON_TRUE : TP_JSON_FALSE);
    add_token(arena, tok, "bos_token", tp_tokenizer_bos(tok), context);
    add_token(arena, tok, "eos_token", tp_tokenizer_eos(tok), context);
    add_token(arena, tok, "pad_token", tp_tokenizer_pad(tok), context);
    const char *name, *text;
    for (size_t i = 0; (text = tp_tokenizer_named(tok, i, &name)) != NULL; i++)
        if (!tp_json_get(context, name))
            tp_tree_append(context, tp_tree_text(arena, name, tp_slice_of(text)));
}

/* ---- rendering ---- */

static bool has_text(tp_slice text, const char *needle)
{
    return text.len && memmem(text.data, text.len, needle, strlen(needle)) != NULL;
}

static bool holds_text(const tp_json *v, const char *needle)
{
    bool found = v->type == TP_JSON_STRING && has_text(v->text, needle);
    for (const tp_json *child = v->child; child && !found; child = child->next)
        found = holds_text(child, needle);
    return found;
}

/* Content that is a list of parts; NULL: none. */
static const tp_json *find_parts(const tp_json *messages)
{
    for (const tp_json *m = messages ? messages->child : NULL; m; m = m->next) {
        const tp_json *content = tp_json_get(m, "content");
        if (content && content->type == TP_JSON_ARRAY && content->n)
            return content;
    }
    return NULL;
}

/* Does `out` have the parts as Python prints a list, "[{'type': ", which no message says? */
static bool is_printed(const tp_json *parts, const tp_json *messages, tp_slice out)
{
    char begin[64] = "['";
    if (parts->child->type == TP_JSON_OBJECT)
        snprintf(begin, sizeof begin,
                 "[{'%.40s': ", parts->child->child ? parts->child->child->key.data : "");
    return has_text(out, begin) && !holds_text(messages, begin);
}

tp_status tp_chat_context_render(const tp_template *t, const tp_json *context,
                                 tp_template_memory *memory, tp_buf *out, tp_spans *ret_spans,
                                 tp_error *err)
{
    static const char remedy[] =
        "content is a list of parts; for a template that knows text alone give it as one string";
    size_t begin = out->len;
    tp_error inner;
    const tp_json *messages = tp_json_get(context, "messages"), *parts = find_parts(messages);
    tp_status status =
        tp_template_render(t, context, NULL, memory, out, ret_spans, parts ? &inner : err);
    if (!parts)
        return status;
    if (status != TP_OK)
        return tp_fail(err, status, "%s (%s)", inner.message, remedy);
    if (out->len == begin ||
        !is_printed(parts, messages, (tp_slice){out->data + begin, out->len - begin}))
        return TP_OK;
    if (ret_spans)
        tp_spans_release(ret_spans);
    return tp_fail(err, TP_ERR_FORMAT, "the chat template prints a Python list: %s", remedy);
}

static tp_status read_conversation(tp_arena *arena, const char *text, size_t n,
                                   const tp_json_options *options, tp_json **ret, tp_error *err)
{
    const tp_json *root;
    TP_TRY(tp_json_parse(arena, "conversation", text, n, options, &root, err));
    tp_json *context = tp_chat_context_new(arena);
    const tp_json *messages = root->type == TP_JSON_ARRAY ? root : tp_json_get(root, "messages");
    if (!messages || messages->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT,
                       "conversation:%u: expected a list of messages, or an object with one as "
                       "\"messages\"",
                       root->line);
    if (messages->n == 0)
        return tp_fail(err, TP_ERR_FORMAT, "conversation:%u: no messages", messages->line);
    growing members = grow(context);
    for (const tp_json *v = root == messages ? NULL : root->child; v; v = v->next)
        if (!tp_slice_is(v->key, "messages"))
            copy_behind(arena, &members, v->key, v);
    tp_chat_context_messages(arena, context, messages, messages->n);
    *ret = context;
    return TP_OK;
}

tp_status tp_chat_render_json(const tp_template *t, const tp_tokenizer *tok,
                              const char *conversation, size_t n, const tp_json_options *options,
                              bool generation_prompt, tp_buf *out, tp_error *err)
{
    enum { MOST_BYTES = 64 << 20, CONTEXT_BYTES = 1 << 20 };
    TP_OWN(tp_arena) arena = {0};
    tp_json *context = NULL;
    if (n > MOST_BYTES)
        return tp_fail(err, TP_ERR_ARG, "the conversation has %zu bytes, more than the %d allowed",
                       n, MOST_BYTES);
    TP_TRY(tp_arena_init(&arena, 128 * n + CONTEXT_BYTES, err));
    TP_TRY(read_conversation(&arena, conversation, n, options, &context, err));
    tp_chat_context_finish(&arena, tok, NULL, generation_prompt, context);
    return tp_chat_context_render(t, context, NULL, out, NULL, err);
}

tp_status tp_chat_template_setting(const char *setting, tp_buf *file, const char **ret,
                                   tp_error *err)
{
    if (!setting || !*setting) {
        *ret = "";
    } else if (strcmp(setting, "default") == 0) {
        *ret = NULL;
    } else if (tp_str_ends(setting, ".jinja")) {
        TP_TRY(tp_file_read(setting, 1 << 20, file, err));
        *ret = tp_buf_str(file);
    } else if (!strstr(setting, "{{") && !strstr(setting, "{%")) {
        return tp_fail(
            err, TP_ERR_CONFIG,
            "chat_template \"%.200s\" is neither default, null, a file whose name ends in "
            ".jinja, nor a template, which has {{ }} or {%% %%}",
            setting);
    } else {
        *ret = setting;
    }
    return TP_OK;
}
