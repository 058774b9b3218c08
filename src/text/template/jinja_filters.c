/* jinja_filters.c - the register of filters, and those that make text. */
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_format.h"
#include "text/template/jinja_str.h"

static tp_status f_lower(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    tp_slice s;
    TP_TRY(tp_jinja_bind(run, "lower", args, NULL, 0, 0, NULL));
    TP_TRY(tp_any_to_text(run, self, &s));
    return tp_jinja_change_case(run, TP_CASE_LOWER, s, ret);
}

static tp_status f_upper(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    tp_slice s;
    TP_TRY(tp_jinja_bind(run, "upper", args, NULL, 0, 0, NULL));
    TP_TRY(tp_any_to_text(run, self, &s));
    return tp_jinja_change_case(run, TP_CASE_UPPER, s, ret);
}

static tp_status f_capitalize(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              tp_any *ret)
{
    tp_slice s;
    TP_TRY(tp_jinja_bind(run, "capitalize", args, NULL, 0, 0, NULL));
    TP_TRY(tp_any_to_text(run, self, &s));
    return tp_jinja_change_case(run, TP_CASE_CAPITAL, s, ret);
}

static bool is_word_gap(tp_slice s, size_t at)
{
    size_t len;
    return (s.data[at] && strchr("-({[<", s.data[at])) ||
           tp_python_space_at(s.data + at, s.len - at, &len);
}

/* Words begin after white space and any of - ( { [ <; unlike str.title(), not after
 * every character that is no letter. */
static tp_status f_title(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    tp_slice s;
    tp_jinja_text out = {.run = run};
    tp_any part;
    TP_TRY(tp_jinja_bind(run, "title", args, NULL, 0, 0, NULL));
    TP_TRY(tp_any_to_text(run, self, &s));
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

static tp_status f_trim(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                        tp_any *ret)
{
    tp_any chars;
    tp_slice s, set;
    TP_TRY(tp_jinja_bind(run, "trim", args, (const char *const[]){"chars"}, 1, 0, &chars));
    TP_TRY(tp_any_to_text(run, self, &s));
    bool is_space = chars.type == TP_ANY_MISSING || chars.type == TP_ANY_NONE;
    if (!is_space)
        TP_TRY(tp_jinja_want_text(run, "trim", &chars, &set));
    s = tp_jinja_strip(s, is_space ? NULL : &set, true, true);
    *ret = tp_any_text(s.data, s.len);
    return TP_OK;
}

static tp_status f_replace(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    tp_any out[3];
    tp_slice s, from, to;
    int64_t count = -1;
    TP_TRY(tp_jinja_bind(run, "replace", args, (const char *const[]){"old", "new", "count"}, 3, 2,
                         out));
    TP_TRY(tp_any_to_text(run, self, &s));
    TP_TRY(tp_any_to_text(run, &out[0], &from));
    TP_TRY(tp_any_to_text(run, &out[1], &to));
    if (out[2].type != TP_ANY_NONE)
        TP_TRY(tp_jinja_want_int(run, "replace: count", &out[2], &count));
    return tp_jinja_replace(run, s, from, to, count, ret);
}

static tp_status f_string(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    tp_slice s;
    TP_TRY(tp_jinja_bind(run, "string", args, NULL, 0, 0, NULL));
    *ret = *self;
    if (self->type == TP_ANY_STR)
        return TP_OK;
    TP_TRY(tp_any_to_text(run, self, &s));
    *ret = tp_any_text(s.data, s.len);
    return TP_OK;
}

static tp_status f_safe(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                        tp_any *ret)
{
    TP_TRY(f_string(run, self, args, ret));
    ret->is_safe = true;
    return TP_OK;
}

static tp_status f_escape(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    tp_slice s;
    TP_TRY(tp_jinja_bind(run, "escape", args, NULL, 0, 0, NULL));
    *ret = *self;
    if (self->type == TP_ANY_STR && self->is_safe)
        return TP_OK;
    TP_TRY(tp_any_to_text(run, self, &s));
    return tp_jinja_escape_html(run, s, ret);
}

static tp_status f_forceescape(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                               tp_any *ret)
{
    tp_slice s;
    TP_TRY(tp_jinja_bind(run, "forceescape", args, NULL, 0, 0, NULL));
    TP_TRY(tp_any_to_text(run, self, &s));
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

static tp_status f_indent(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    static const char *const names[] = {"width", "first", "blank"};
    tp_any out[3], lines;
    tp_jinja_text text = {.run = run}, spaces = {.run = run}, source = {.run = run};
    int64_t width = 4;
    tp_slice s, indent;
    TP_TRY(tp_jinja_bind(run, "indent", args, names, 3, 0, out));
    TP_TRY(tp_jinja_want_text(run, "indent", self, &s));
    if (out[0].type == TP_ANY_STR) {
        indent = out[0].text;
    } else {
        TP_TRY(tp_jinja_want_int(run, "indent: width", &out[0], &width));
        for (int64_t i = 0; i < width; i++)
            TP_TRY(tp_jinja_adds(&spaces, " "));
        indent = tp_jinja_text_value(&spaces).text;
    }
    /* A line more, so that a text that ends in a newline has an empty last line. */
    TP_TRY(tp_jinja_add(&source, s.data, s.len));
    TP_TRY(tp_jinja_adds(&source, "\n"));
    TP_TRY(tp_jinja_splitlines(run, tp_jinja_text_value(&source).text, false, &lines));
    TP_TRY(
        add_indented(&text, lines.items, indent, tp_any_is_true(&out[1]), tp_any_is_true(&out[2])));
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

static tp_status f_join(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                        tp_any *ret)
{
    tp_any out[2], element, list = *self;
    tp_any_walk walk;
    tp_slice between = {"", 0};
    tp_jinja_text text = {.run = run};
    bool more = false;
    TP_TRY(tp_jinja_bind(run, "join", args, (const char *const[]){"d", "attribute"}, 2, 0, out));
    if (out[0].type != TP_ANY_MISSING)
        TP_TRY(tp_any_to_text(run, &out[0], &between));
    if (out[1].type != TP_ANY_MISSING && out[1].type != TP_ANY_NONE) {
        tp_jinja_args by = {
            .names = (tp_slice[]){TP_SLICE("attribute")}, .named = &out[1], .n_named = 1};
        TP_TRY(tp_jinja_call_filter(run, TP_SLICE("map"), self, &by, &list));
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

static tp_status f_center(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    tp_any out;
    tp_slice s;
    int64_t width = 80;
    TP_TRY(tp_jinja_bind(run, "center", args, (const char *const[]){"width"}, 1, 0, &out));
    TP_TRY(tp_jinja_want_int(run, "center: width", &out, &width));
    TP_TRY(tp_any_to_text(run, self, &s));
    return tp_jinja_center(run, s, width, TP_SLICE(" "), ret);
}

static tp_status f_format(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    tp_slice s;
    tp_any values, *copy;
    TP_TRY(tp_any_to_text(run, self, &s));
    if (args->n && args->n_named)
        return tp_jinja_fail(run, "format: values are given by position and by name at once");
    if (args->n_named) {
        TP_TRY(tp_any_new_dict(run, args->n_named, &values));
        for (size_t i = 0; i < args->n_named; i++) {
            tp_any key = tp_any_text(args->names[i].data, args->names[i].len);
            TP_TRY(tp_any_dict_put(run, values.dict, &key, &args->named[i]));
        }
    } else {
        TP_TRY(tp_any_new_list(run, TP_ANY_TUPLE, args->n, &values, &copy));
        if (args->n)
            memcpy(copy, args->values, args->n * sizeof *copy);
    }
    return tp_jinja_percent(run, s, &values, ret);
}

static tp_status separator_at(tp_jinja_run *run, const tp_any *pair, size_t i, tp_slice *ret)
{
    tp_any element, index = tp_any_int((tp_integer)i);
    TP_TRY(tp_jinja_get_item(run, pair, &index, &element));
    return tp_jinja_want_text(run, "tojson: separators", &element, ret);
}

static tp_status f_tojson(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    static const char *const names[] = {"ensure_ascii", "indent", "separators", "sort_keys"};
    tp_any out[4];
    tp_jinja_text text = {.run = run}, spaces = {.run = run};
    TP_TRY(tp_jinja_bind(run, "tojson", args, names, 4, 0, out));
    tp_jinja_json_options options = {
        .ensure_ascii = tp_any_is_true(&out[0]),
        .sort_keys = tp_any_is_true(&out[3]),
        .has_indent = out[1].type != TP_ANY_MISSING && out[1].type != TP_ANY_NONE,
        .item_separator = TP_SLICE(", "),
        .key_separator = TP_SLICE(": "),
    };
    if (options.has_indent)
        options.item_separator = TP_SLICE(",");
    if (options.has_indent && out[1].type == TP_ANY_STR) {
        options.indent = out[1].text;
    } else if (options.has_indent) {
        int64_t width = 0;
        TP_TRY(tp_jinja_want_int(run, "tojson: indent", &out[1], &width));
        for (int64_t i = 0; i < width; i++)
            TP_TRY(tp_jinja_adds(&spaces, " "));
        options.indent = tp_jinja_text_value(&spaces).text;
    }
    if (out[2].type != TP_ANY_MISSING && out[2].type != TP_ANY_NONE) {
        TP_TRY(separator_at(run, &out[2], 0, &options.item_separator));
        TP_TRY(separator_at(run, &out[2], 1, &options.key_separator));
    }
    TP_TRY(tp_jinja_json(&text, self, &options));
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

static tp_status f_truncate(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                            tp_any *ret)
{
    static const char *const names[] = {"length", "killwords", "end", "leeway"};
    tp_any out[4];
    tp_slice s, end = TP_SLICE("...");
    int64_t length = 255, leeway = 5;
    tp_jinja_text text = {.run = run};
    TP_TRY(tp_jinja_bind(run, "truncate", args, names, 4, 0, out));
    size_t n = 0;
    TP_TRY(tp_any_length(run, self, &n));
    TP_TRY(tp_jinja_want_int(run, "truncate: length", &out[0], &length));
    if (out[2].type != TP_ANY_MISSING)
        TP_TRY(tp_jinja_want_text(run, "truncate: end", &out[2], &end));
    if (out[3].type != TP_ANY_NONE)
        TP_TRY(tp_jinja_want_int(run, "truncate: leeway", &out[3], &leeway));
    int64_t end_length = (int64_t)tp_utf8_count(end.data, end.len);
    if (length < end_length || leeway < 0)
        return tp_jinja_fail(run, "truncate: length is less than that of its end");
    *ret = *self;
    if ((int64_t)n <= length + leeway)
        return TP_OK;
    TP_TRY(tp_jinja_want_text(run, "truncate", self, &s));
    s.len = tp_utf8_offset(s.data, s.len, (size_t)(length - end_length));
    const char *space = s.len && !tp_any_is_true(&out[1]) ? memrchr(s.data, ' ', s.len) : NULL;
    TP_TRY(tp_jinja_add(&text, s.data, space ? (size_t)(space - s.data) : s.len));
    TP_TRY(tp_jinja_add(&text, end.data, end.len));
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

static tp_status f_wordcount(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             tp_any *ret)
{
    tp_slice s;
    tp_integer n = 0;
    bool in_word = false;
    TP_TRY(tp_jinja_bind(run, "wordcount", args, NULL, 0, 0, NULL));
    TP_TRY(tp_any_to_text(run, self, &s));
    for (size_t at = 0, len; at < s.len; at += len) {
        uint32_t cp = 0;
        len = tp_utf8_length(s.data + at, s.len - at);
        tp_utf8_decode(s.data + at, len, &cp);
        bool is_word = cp == '_' || tp_python_is_alnum(cp);
        n += is_word && !in_word;
        in_word = is_word;
    }
    *ret = tp_any_int(n);
    return TP_OK;
}

static tp_status add_quoted(tp_jinja_text *out, const tp_any *v, bool for_query)
{
    tp_slice s;
    TP_TRY(tp_any_to_text(out->run, v, &s));
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                     (c && strchr("_.-~", c)) || (c == '/' && !for_query);
        if (plain)
            TP_TRY(tp_jinja_add(out, &c, 1));
        else if (c == ' ' && for_query)
            TP_TRY(tp_jinja_adds(out, "+"));
        else
            TP_TRY(tp_jinja_addf(out, "%%%02X", (unsigned)(uint8_t)c));
    }
    return TP_OK;
}

static tp_status f_urlencode(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             tp_any *ret)
{
    tp_jinja_text out = {.run = run};
    TP_TRY(tp_jinja_bind(run, "urlencode", args, NULL, 0, 0, NULL));
    if (self->type == TP_ANY_DICT) {
        for (size_t i = 0; i < self->dict->n; i++) {
            TP_TRY(tp_jinja_adds(&out, i ? "&" : ""));
            TP_TRY(add_quoted(&out, &self->dict->entries[i].key, true));
            TP_TRY(tp_jinja_adds(&out, "="));
            TP_TRY(add_quoted(&out, &self->dict->entries[i].value, true));
        }
    } else if (self->type != TP_ANY_STR && tp_any_is_iterable(self)) {
        return tp_jinja_unsupported(run, "urlencode of a '%s' is not supported",
                                    tp_any_type_name(self));
    } else {
        TP_TRY(add_quoted(&out, self, false));
    }
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}

static tp_status f_unsupported(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                               tp_any *ret)
{
    (void)self, (void)args, (void)ret;
    return tp_jinja_unsupported(run, "the filters pprint, random, striptags, urlize, wordwrap and "
                                     "xmlattr are not supported");
}

static const tp_jinja_function text_filters[] = {{"capitalize", f_capitalize},
                                                 {"center", f_center},
                                                 {"e", f_escape},
                                                 {"escape", f_escape},
                                                 {"forceescape", f_forceescape},
                                                 {"format", f_format},
                                                 {"indent", f_indent},
                                                 {"join", f_join},
                                                 {"lower", f_lower},
                                                 {"pprint", f_unsupported},
                                                 {"random", f_unsupported},
                                                 {"replace", f_replace},
                                                 {"safe", f_safe},
                                                 {"string", f_string},
                                                 {"striptags", f_unsupported},
                                                 {"title", f_title},
                                                 {"tojson", f_tojson},
                                                 {"trim", f_trim},
                                                 {"truncate", f_truncate},
                                                 {"upper", f_upper},
                                                 {"urlencode", f_urlencode},
                                                 {"urlize", f_unsupported},
                                                 {"wordcount", f_wordcount},
                                                 {"wordwrap", f_unsupported},
                                                 {"xmlattr", f_unsupported},
                                                 {NULL, NULL}};

static const tp_jinja_function *find_filter(tp_slice name)
{
    static const tp_jinja_function *const tables[] = {
        text_filters, tp_jinja_number_filters, tp_jinja_list_filters, tp_jinja_choice_filters};
    for (size_t i = 0; i < TP_COUNTOF(tables); i++)
        for (const tp_jinja_function *f = tables[i]; f->name; f++)
            if (tp_slice_is(name, f->name))
                return f;
    return NULL;
}

bool tp_jinja_has_filter(tp_slice name) { return find_filter(name) != NULL; }

/* In jinja2 these are generators: what goes wrong in them is seen when they are used. */
static bool is_lazy(tp_slice name)
{
    static const char *const names[] = {"batch",  "items",      "map",   "reject", "rejectattr",
                                        "select", "selectattr", "slice", "unique"};
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
    TP_TRY(tp_jinja_enter(run));
    TP_TRY(tp_jinja_charge(run, 1));
    size_t depth = run->depth;
    tp_status status = filter->call(run, self, args, ret);
    if (status != TP_OK && status != TP_ERR_UNSUPPORTED && is_lazy(name) && !run->is_exhausted) {
        run->depth = depth;
        status = tp_any_new_failure(run, status, ret);
    }
    TP_TRY(status);
    tp_jinja_leave(run);
    return TP_OK;
}
