/* jinja_filters.c - the register of filters, and those that make text. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_str.h"

static tp_status f_case(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice s;
    TP_TRY(tp_any_to_text(run, c->self, &s));
    return tp_jinja_change_case(run, (tp_python_case)c->variant, s, ret);
}

static bool is_word_gap(tp_slice s, size_t at)
{
    size_t len;
    return (s.data[at] && strchr("-({[<", s.data[at])) ||
           tp_python_space_at(s.data + at, s.len - at, &len);
}

/* Words begin after white space and any of - ( { [ <; unlike str.title(), not after
 * every character that is no letter. */
static tp_status f_title(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice s;
    tp_jinja_text out = {.run = run};
    tp_any part;
    TP_TRY(tp_any_to_text(run, c->self, &s));
    for (size_t at = 0; at < s.len;) {
        size_t len = tp_utf8_length(s.data + at, s.len - at), end = at + len;
        TP_TRY(tp_jinja_change_case(run, TP_CASE_UPPER, (tp_slice){s.data + at, len}, &part));
        TP_TRY(tp_jinja_add(&out, part.text.data, part.text.len));
        bool gap = is_word_gap(s, at);
        while (end < s.len && is_word_gap(s, end) == gap)
            end += tp_utf8_length(s.data + end, s.len - end);
        size_t rest = at + len;
        TP_TRY(
            tp_jinja_change_case(run, TP_CASE_LOWER, (tp_slice){s.data + rest, end - rest}, &part));
        TP_TRY(tp_jinja_add(&out, part.text.data, part.text.len));
        at = end;
    }
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}

static tp_status f_trim(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice s, set;
    TP_TRY(tp_any_to_text(run, c->self, &s));
    bool is_space = c->arg[0].type == TP_ANY_MISSING || c->arg[0].type == TP_ANY_NONE;
    if (!is_space)
        TP_TRY(tp_jinja_want_text(run, "trim", &c->arg[0], &set));
    s = tp_jinja_strip(s, is_space ? NULL : &set, true, true);
    *ret = tp_any_text(s.data, s.len);
    return TP_OK;
}

static tp_status f_replace(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice s, from, to;
    int64_t count = -1;
    TP_TRY(tp_any_to_text(run, c->self, &s));
    TP_TRY(tp_any_to_text(run, &c->arg[0], &from));
    TP_TRY(tp_any_to_text(run, &c->arg[1], &to));
    if (c->arg[2].type != TP_ANY_NONE)
        TP_TRY(tp_jinja_want_int(run, "replace: count", &c->arg[2], &count));
    return tp_jinja_replace(run, s, from, to, count, ret);
}

static tp_status f_string(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice s;
    *ret = *c->self;
    if (c->self->type == TP_ANY_STR)
        return TP_OK;
    TP_TRY(tp_any_to_text(run, c->self, &s));
    *ret = tp_any_text(s.data, s.len);
    return TP_OK;
}

static tp_status f_safe(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    TP_TRY(f_string(run, c, ret));
    ret->is_safe = true;
    return TP_OK;
}

static tp_status f_escape(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice s;
    *ret = *c->self;
    if (c->self->type == TP_ANY_STR && c->self->is_safe)
        return TP_OK;
    TP_TRY(tp_any_to_text(run, c->self, &s));
    return tp_jinja_escape_html(run, s, ret);
}

/* The text before the first line, between lines, and before each line. */
static tp_status add_indented(tp_jinja_text *out, const struct tp_any_items *lines, tp_slice indent,
                              bool first, bool blank)
{
    for (size_t i = 0; i < lines->n; i++) {
        tp_slice line = lines->values[i].text;
        bool indented = i == 0 ? first : blank || line.len;
        if (i)
            TP_TRY(tp_jinja_adds(out, "\n"));
        if (indented)
            TP_TRY(tp_jinja_add(out, indent.data, indent.len));
        TP_TRY(tp_jinja_add(out, line.data, line.len));
    }
    return TP_OK;
}

static tp_status f_indent(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any lines;
    tp_jinja_text text = {.run = run}, spaces = {.run = run}, source = {.run = run};
    int64_t width = 4;
    tp_slice s, indent;
    TP_TRY(tp_jinja_want_text(run, "indent", c->self, &s));
    if (c->arg[0].type == TP_ANY_STR) {
        indent = c->arg[0].text;
    } else {
        TP_TRY(tp_jinja_want_int(run, "indent: width", &c->arg[0], &width));
        for (int64_t i = 0; i < width; i++)
            TP_TRY(tp_jinja_adds(&spaces, " "));
        indent = tp_jinja_text_value(&spaces).text;
    }
    /* A line more, so that a text that ends in a newline has an empty last line. */
    TP_TRY(tp_jinja_add(&source, s.data, s.len));
    TP_TRY(tp_jinja_adds(&source, "\n"));
    TP_TRY(tp_jinja_splitlines(run, tp_jinja_text_value(&source).text, false, &lines));
    TP_TRY(add_indented(&text, lines.items, indent, tp_any_is_true(&c->arg[1]),
                        tp_any_is_true(&c->arg[2])));
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

static tp_status f_join(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any attribute = c->arg[1], element, list = *c->self;
    tp_any_walk walk;
    tp_slice between = {"", 0};
    tp_jinja_text text = {.run = run};
    bool more = false;
    if (c->arg[0].type != TP_ANY_MISSING)
        TP_TRY(tp_any_to_text(run, &c->arg[0], &between));
    if (c->arg[1].type != TP_ANY_MISSING && c->arg[1].type != TP_ANY_NONE) {
        tp_jinja_args by = {
            .names = (tp_slice[]){TP_SLICE("attribute")}, .named = &attribute, .n_named = 1};
        TP_TRY(tp_jinja_call_filter(run, TP_SLICE("map"), c->self, &by, &list));
    }
    TP_TRY(tp_any_walk_begin(run, &list, &walk));
    for (size_t i = 0;; i++) {
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            break;
        if (i)
            TP_TRY(tp_jinja_add(&text, between.data, between.len));
        TP_TRY(tp_any_str(&text, &element));
    }
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

static tp_status separator_at(tp_jinja_run *run, const tp_any *pair, size_t i, tp_slice *ret)
{
    tp_any element, index = tp_any_int((tp_integer)i);
    TP_TRY(tp_jinja_get_item(run, pair, &index, &element));
    return tp_jinja_want_text(run, "tojson: separators", &element, ret);
}

static tp_status f_tojson(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_jinja_text text = {.run = run}, spaces = {.run = run};
    tp_jinja_json_options options = {
        .ensure_ascii = tp_any_is_true(&c->arg[0]),
        .sort_keys = tp_any_is_true(&c->arg[3]),
        .has_indent = c->arg[1].type != TP_ANY_MISSING && c->arg[1].type != TP_ANY_NONE,
        .item_separator = TP_SLICE(", "),
        .key_separator = TP_SLICE(": "),
    };
    if (options.has_indent)
        options.item_separator = TP_SLICE(",");
    if (options.has_indent && c->arg[1].type == TP_ANY_STR) {
        options.indent = c->arg[1].text;
    } else if (options.has_indent) {
        int64_t width = 0;
        TP_TRY(tp_jinja_want_int(run, "tojson: indent", &c->arg[1], &width));
        for (int64_t i = 0; i < width; i++)
            TP_TRY(tp_jinja_adds(&spaces, " "));
        options.indent = tp_jinja_text_value(&spaces).text;
    }
    if (c->arg[2].type != TP_ANY_MISSING && c->arg[2].type != TP_ANY_NONE) {
        TP_TRY(separator_at(run, &c->arg[2], 0, &options.item_separator));
        TP_TRY(separator_at(run, &c->arg[2], 1, &options.key_separator));
    }
    TP_TRY(tp_jinja_json(&text, c->self, &options));
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

static const tp_jinja_function text_filters[] = {
    {"capitalize", f_case, "", TP_CASE_CAPITAL, NULL},
    {"e", f_escape, "", 0, NULL},
    {"escape", f_escape, "", 0, NULL},
    {"indent", f_indent, "[width first blank]", 0, NULL},
    {"join", f_join, "[d attribute]", 0, NULL},
    {"lower", f_case, "", TP_CASE_LOWER, NULL},
    {"replace", f_replace, "old new [count]", 0, NULL},
    {"safe", f_safe, NULL, 0, NULL},
    {"string", f_string, "", 0, NULL},
    {"title", f_title, "", 0, NULL},
    {"tojson", f_tojson, "[ensure_ascii indent separators sort_keys]", 0, NULL},
    {"trim", f_trim, "[chars]", 0, NULL},
    {"upper", f_case, "", TP_CASE_UPPER, NULL},
    {"batch center filesizeformat forceescape format groupby pprint random slice striptags "
     "truncate urlencode urlize wordcount wordwrap xmlattr",
     NULL, NULL, 0, NULL},
    {0}};

static const tp_jinja_function *find_filter(tp_slice name)
{
    static const tp_jinja_function *const tables[] = {
        text_filters, tp_jinja_number_filters, tp_jinja_list_filters, tp_jinja_choice_filters};
    const tp_jinja_function *found = NULL;
    for (size_t i = 0; i < TP_COUNTOF(tables) && !found; i++)
        found = tp_jinja_find_function(tables[i], name);
    return found;
}

bool tp_jinja_has_filter(tp_slice name) { return find_filter(name) != NULL; }

/* In jinja2 these are generators: what goes wrong in them is seen when they are used. */
static bool is_lazy(tp_slice name)
{
    static const char *const names[] = {"items",  "map",        "reject", "rejectattr",
                                        "select", "selectattr", "unique"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (tp_slice_is(name, names[i]))
            return true;
    return false;
}

tp_status tp_jinja_call_filter(tp_jinja_run *run, tp_slice name, const tp_any *self,
                               const tp_jinja_args *args, tp_any *ret)
{
    const tp_jinja_function *filter = find_filter(name);
    if (!filter)
        return tp_jinja_fail(run, "there is no filter '%.*s'", (int)TP_MIN(name.len, 60),
                             name.data);
    if (!filter->call)
        return tp_jinja_unsupported(run, "filter '%.*s' is not supported", (int)name.len,
                                    name.data);
    TP_TRY(tp_jinja_enter(run));
    TP_TRY(tp_jinja_charge(run, 1));
    size_t depth = run->depth;
    tp_status status = tp_jinja_call_function(run, filter, self, args, ret);
    if (status != TP_OK && status != TP_ERR_UNSUPPORTED && is_lazy(name) && !run->is_exhausted) {
        run->depth = depth;
        status = tp_any_new_failure(run, status, ret);
    }
    TP_TRY(status);
    tp_jinja_leave(run);
    return TP_OK;
}
