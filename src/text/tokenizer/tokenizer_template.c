/* tokenizer_template.c - the chat templates of a tokenizer, chosen as transformers chooses.
 *
 * Of several with names, tool_use renders conversations with tools and default the others; nobody
 * asks for the rest.  Both become one template that looks at `tools`, so whatever renders, hashes
 * or keeps a template has both. */
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer_internal.h"

enum { MAX_TEMPLATE_BYTES = 4 << 20 };

static void keep(tp_tokenizer *tok, tp_slice name, tp_slice text)
{
    char **place = tp_slice_is(name, "default")    ? &tok->default_template
                   : tp_slice_is(name, "tool_use") ? &tok->tool_template
                                                   : NULL;
    if (place && text.data)
        *place = tp_arena_strndup(&tok->arena, text.data, text.len);
}

static tp_slice text_of(const tp_json *v) { return tp_json_str(v) ? v->text : (tp_slice){0}; }

/* Text, {name: text} or a list of {"name", "template"}; the last of a name counts. */
static void take_config(tp_tokenizer *tok, const tp_json *v)
{
    if (tp_json_str(v))
        keep(tok, TP_SLICE("default"), v->text);
    for (const tp_json *t = v ? v->child : NULL; t; t = t->next)
        if (v->type == TP_JSON_OBJECT)
            keep(tok, t->key, text_of(t));
        else
            keep(tok, text_of(tp_json_get(t, "name")), text_of(tp_json_get(t, "template")));
}

static tp_status read_file(tp_tokenizer *tok, const char *file, const char *name, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_file_path path = tp_path_of("%s/%s", tok->folder, file);
    if (!tp_file_exists(path.text))
        return TP_OK;
    TP_TRY(tp_file_read(path.text, MAX_TEMPLATE_BYTES, &text, err));
    keep(tok, tp_slice_of(name), tp_slice_of(tp_buf_str(&text)));
    return TP_OK;
}

/* Without the line break that ends it, which Jinja leaves out. */
static int length(const char *text)
{
    size_t n = strlen(text);
    n -= n && text[n - 1] == '\n';
    n -= n && text[n - 1] == '\r';
    return (int)n;
}

/* The line break behind a tag goes (trim_blocks), so each template begins a line, as it did. */
static char *one_of_both(tp_tokenizer *tok)
{
    static const char none[] =
        "{{ raise_exception('the tokenizer has a chat template for conversations with tools "
        "(tool_use), and none for others (default)') }}";
    const char *plain = tok->default_template ? tok->default_template : none;
    const char *tool = tok->tool_template;
    if (!tool)
        return tok->default_template;
    return tp_arena_printf(&tok->arena,
                           "{%% if tools is not defined or tools is none %%}\n%.*s"
                           "{%%+ else %%}\n%.*s{%%+ endif %%}",
                           length(plain), plain, length(tool), tool);
}

tp_status tp_tokenizer_take_templates(tp_tokenizer *tok, const tp_json *config, tp_error *err)
{
    if (tok->folder) {
        TP_TRY(read_file(tok, "chat_template.jinja", "default", err));
        TP_TRY(read_file(tok, TP_MORE_TEMPLATES "/default.jinja", "default", err));
        TP_TRY(read_file(tok, TP_MORE_TEMPLATES "/tool_use.jinja", "tool_use", err));
    }
    if (!tok->default_template && !tok->tool_template)
        take_config(tok, tp_json_get(config, "chat_template"));
    tok->chat_template = one_of_both(tok);
    return TP_OK;
}

const char *tp_tokenizer_template_for(const tp_tokenizer *tok, bool has_tools)
{
    return has_tools && tok->tool_template ? tok->tool_template : tok->default_template;
}
