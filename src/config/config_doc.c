/* config_doc.c - a table of options as Markdown. */
#include <math.h>
#include <string.h>

#include "config/config.h"

static const char *type_word(const tp_option *option)
{
    static const char *const words[] = {[TP_OPT_BOOL] = "true or false",
                                        [TP_OPT_INT] = "whole number",
                                        [TP_OPT_FLOAT] = "number",
                                        [TP_OPT_STRING] = "text",
                                        [TP_OPT_ENUM] = "word",
                                        [TP_OPT_FLOAT_LIST] = "list of numbers",
                                        [TP_OPT_STRING_LIST] = "list of texts",
                                        [TP_OPT_SECTION] = "section"};
    return words[option->type];
}

static void add_cell(tp_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            tp_buf_addc(out, '\\');
        tp_buf_addc(out, *text);
    }
}

static void add_values_cell(tp_buf *out, const tp_option *option)
{
    char least[32], most[32];
    tp_buf_adds(out, type_word(option));
    if (option->type == TP_OPT_ENUM) {
        tp_slice word;
        for (int i = 0; tp_option_word(option, i, &word); i++)
            tp_buf_addf(out, "%s%.*s", i ? ", " : ": ", (int)word.len, word.data);
    }
    if (option->min == 0 && option->max == 0)
        return;
    if (isfinite(option->min)) {
        tp_json_f64_text(option->min, least);
        tp_buf_addf(out, ", from %s", least);
    }
    if (isfinite(option->max)) {
        tp_json_f64_text(option->max, most);
        tp_buf_addf(out, "%s to %s", isfinite(option->min) ? "" : ",", most);
    }
}

static void add_row(tp_buf *out, const tp_option *option)
{
    const char *value = option->default_value ? option->default_value : "null";
    tp_buf_addf(out, "| `%s` | ", option->name);
    if (option->accepted) {
        for (const char *p = option->accepted; *p; p++)
            tp_buf_adds(out, *p == '|' ? ", " : (char[]){*p, 0});
        tp_buf_adds(out, " | none | *Anything else is refused");
        if (option->when)
            tp_buf_addf(out, " while `%s` is true", option->when);
        tp_buf_adds(out, ".* ");
        add_cell(out, option->doc);
        tp_buf_adds(out, " |\n");
        return;
    }
    add_values_cell(out, option);
    tp_buf_adds(out, " | ");
    if (!strcmp(value, "???")) {
        tp_buf_adds(out, "required");
    } else {
        tp_buf_addc(out, '`');
        add_cell(out, value);
        tp_buf_addc(out, '`');
    }
    tp_buf_adds(out, " | ");
    if (option->ignored)
        tp_buf_adds(out, "*No effect.* ");
    add_cell(out, option->doc ? option->doc : "");
    tp_buf_adds(out, " |\n");
}

void tp_options_doc(const tp_option *table, size_t n, tp_buf *out)
{
    tp_slice previous = {0};
    for (size_t i = 0; i < n; i++) {
        tp_slice section = {table[i].name, strcspn(table[i].name, ".")};
        if (!tp_slice_eq(section, previous))
            tp_buf_addf(
                out,
                "%s## %.*s\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n",
                i ? "\n" : "", (int)section.len, section.data);
        add_row(out, &table[i]);
        previous = section;
    }
}
