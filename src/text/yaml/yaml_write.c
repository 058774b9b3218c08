/* yaml_write.c - writes a configuration as YAML, with remarks beside the values. */
#include "text/yaml/yaml.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/platform.h"

enum {
    FLOW_WIDTH = 60,      /* a list of scalars up to this long stays on one line */
    SIMPLE_KEY_MAX = 1000 /* YAML allows 1024 characters before the colon */
};

typedef struct {
    tp_buf *out;
    tp_yaml_remark remark;
    void *context;
} writer;

/* Words that YAML 1.1 or 1.2 would not take for strings. */
static bool is_reserved(const char *s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n"};
    for (size_t i = 0; i < TP_COUNTOF(words); i++) {
        if (!strcasecmp(s, words[i]))
            return true;
    }
    return false;
}

/* Narrower than YAML allows, and beyond doubt in every version of it. */
static bool is_plain(tp_slice s)
{
    if (s.len == 0 || s.len > FLOW_WIDTH ||
        !(isalpha((unsigned char)s.data[0]) || strchr("_/", s.data[0])))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c >= 0x80 || (!isalnum(c) && !memchr("_/.-+@", c, 6)))
            return false;
    }
    return !is_reserved(s.data);
}

/* Characters that YAML 1.1 folds or refuses even inside double quotes. */
static bool needs_escape(uint32_t cp)
{
    return cp < 0x20 || cp == '"' || cp == '\\' || (cp >= 0x7f && cp <= 0xa0) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0xfeff || cp == 0xfffe || cp == 0xffff;
}

static void write_escape(tp_buf *out, uint32_t cp)
{
    if (cp == '\n')
        tp_buf_adds(out, "\\n");
    else if (cp == '\t')
        tp_buf_adds(out, "\\t");
    else if (cp == '"' || cp == '\\')
        tp_buf_addf(out, "\\%c", (char)cp);
    else
        tp_buf_addf(out, "\\u%04x", cp);
}

static void write_quoted(tp_buf *out, tp_slice s)
{
    tp_buf_addc(out, '"');
    for (size_t i = 0; i < s.len;) {
        uint32_t cp = 0xfffd;
        size_t n = tp_utf8_decode(s.data + i, s.len - i, &cp);
        if (!n)
            tp_buf_adds(out, "\\ufffd");
        else if (needs_escape(cp))
            write_escape(out, cp);
        else
            tp_buf_add(out, s.data + i, n);
        i += n ? n : 1;
    }
    tp_buf_addc(out, '"');
}

static void write_string(tp_buf *out, tp_slice s)
{
    if (is_plain(s))
        tp_buf_add(out, s.data, s.len);
    else
        write_quoted(out, s);
}

/* YAML 1.1 wants a point in the mantissa and a sign in the exponent. */
static void write_number(tp_buf *out, const char *text)
{
    if (!strcmp(text, "NaN"))
        tp_buf_adds(out, ".nan");
    else if (strstr(text, "Infinity"))
        tp_buf_adds(out, *text == '-' ? "-.inf" : ".inf");
    else {
        size_t mantissa = strcspn(text, "eE");
        tp_buf_add(out, text, mantissa);
        if (!text[mantissa])
            return;
        if (!memchr(text, '.', mantissa))
            tp_buf_adds(out, ".0");
        const char *exponent = text + mantissa + 1;
        tp_buf_addf(out, "e%s%s", *exponent == '-' || *exponent == '+' ? "" : "+", exponent);
    }
}

static bool is_empty_container(const tp_json *v)
{
    return (v->type == TP_JSON_OBJECT || v->type == TP_JSON_ARRAY) && v->n == 0;
}

static void write_scalar(tp_buf *out, const tp_json *v)
{
    switch (v->type) {
    case TP_JSON_NUMBER:
        write_number(out, v->text.data);
        break;
    case TP_JSON_STRING:
        write_string(out, v->text);
        break;
    case TP_JSON_ARRAY:
        tp_buf_adds(out, "[]");
        break;
    case TP_JSON_OBJECT:
        tp_buf_adds(out, "{}");
        break;
    default:
        tp_buf_adds(out, tp_json_word(v));
    }
}

static void write_flow_list(tp_buf *out, const tp_json *v)
{
    tp_buf_addc(out, '[');
    for (const tp_json *child = v->child; child; child = child->next) {
        write_scalar(out, child);
        if (child->next)
            tp_buf_adds(out, ", ");
    }
    tp_buf_addc(out, ']');
}

/* A list of few scalars reads best as [a, b].  Its width is that of what is
 * written, so that writing what was read back gives the same text. */
static bool is_flow_list(const tp_json *v)
{
    if (v->type != TP_JSON_ARRAY || v->n == 0 || v->n > FLOW_WIDTH / 3)
        return false;
    for (const tp_json *child = v->child; child; child = child->next) {
        if (child->type == TP_JSON_ARRAY || child->type == TP_JSON_OBJECT ||
            child->text.len > FLOW_WIDTH)
            return false;
    }
    TP_OWN(tp_buf) text = {0};
    write_flow_list(&text, v);
    return text.len <= FLOW_WIDTH;
}

/* A comment must stay on its line, whatever the text says. */
static void write_remark(const writer *w, const tp_json *leaf)
{
    const char *text = w->remark ? w->remark(w->context, leaf) : NULL;
    if (!text || !*text)
        return;
    tp_buf_adds(w->out, "  # ");
    size_t left = strlen(text);
    while (left) {
        uint32_t cp = 0;
        size_t n = tp_utf8_decode(text, left, &cp);
        bool is_safe = n && (cp == '"' || cp == '\\' || !needs_escape(cp));
        tp_buf_add(w->out, is_safe ? text : "?", is_safe ? n : 1);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
}

static void indent(tp_buf *out, int depth)
{
    for (int i = 0; i < depth; i++)
        tp_buf_adds(out, "  ");
}

static bool is_leaf(const tp_json *v)
{
    bool is_container = v->type == TP_JSON_OBJECT || v->type == TP_JSON_ARRAY;
    return !is_container || is_empty_container(v) || is_flow_list(v);
}

static void write_leaf(const writer *w, const tp_json *v)
{
    if (is_flow_list(v))
        write_flow_list(w->out, v);
    else
        write_scalar(w->out, v);
    write_remark(w, v);
    tp_buf_addc(w->out, '\n');
}

static void write_key(tp_buf *out, const tp_json *v, int depth)
{
    if (v->key.len > SIMPLE_KEY_MAX / 6) {
        tp_buf_adds(out, "? ");
        write_quoted(out, v->key);
        tp_buf_addc(out, '\n');
        indent(out, depth);
    } else {
        write_string(out, v->key);
    }
    tp_buf_addc(out, ':');
}

/* The lines of a container; the first one is indented by the caller already when
 * it continues a "- ".  Calls nest as deep as the tree: TP_JSON_MAX_DEPTH. */
static void write_block(const writer *w, const tp_json *v, int depth, bool continues)
{
    for (const tp_json *child = v->child; child; child = child->next) {
        if (!continues)
            indent(w->out, depth);
        continues = false;
        if (v->type == TP_JSON_OBJECT)
            write_key(w->out, child, depth);
        else
            tp_buf_addc(w->out, '-');
        if (is_leaf(child)) {
            tp_buf_addc(w->out, ' ');
            write_leaf(w, child);
        } else if (v->type == TP_JSON_OBJECT) {
            tp_buf_addc(w->out, '\n');
            write_block(w, child, depth + 1, false);
        } else {
            tp_buf_addc(w->out, ' ');
            write_block(w, child, depth + 1, true);
        }
    }
}

void tp_yaml_write_remarked(const tp_json *root, tp_buf *out, tp_yaml_remark remark, void *context)
{
    writer w = {.out = out, .remark = remark, .context = context};
    if (is_leaf(root))
        write_leaf(&w, root);
    else
        write_block(&w, root, 0, false);
}
