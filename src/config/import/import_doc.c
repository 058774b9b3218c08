/* import_doc.c - a source's table as Markdown. */
#include <string.h>

#include "config/import/import_rows.h"

static void add_cell(tp_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|' || *text == '*')
            tp_buf_addc(out, '\\');
        tp_buf_addc(out, *text);
    }
}

/* "a, b" in back-quotes. */
static void add_keys(tp_buf *out, const char *keys)
{
    for (const char *p = keys; *p;) {
        size_t n = strcspn(p, ",");
        tp_buf_addf(out, "%s`%s%.*s`", p == keys ? "" : ", ", *p == '@' ? "sft" : "", (int)n,
                    *p == '@' ? p + 1 : p);
        if (*p == '@')
            tp_buf_adds(out, " (`dpo`, `grpo`)");
        p += n + strspn(p + n, ", ");
        if (*p == '@' && !n)
            break;
    }
}

static void add_words(tp_buf *out, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, "|"), key = strcspn(p, "=");
        if (n == 1 && *p == '*')
            break;
        if (key < n)
            tp_buf_addf(out, "%s`%.*s` is `%.*s`", p == words ? "" : ", ", (int)key, p,
                        (int)(n - key - 1), p + key + 1);
        else
            tp_buf_addf(out, "%s`%.*s`", p == words ? "" : ", ", (int)n, p);
        p += n + (p[n] == '|');
    }
}

static void add_row(tp_buf *out, const tp_import_row *row)
{
    static const char *const names[] = {
        [TP_FOR_SFT] = "SFT", [TP_FOR_DPO] = "DPO", [TP_FOR_GRPO] = "GRPO", [TP_FOR_ALL] = ""};
    tp_buf_addf(out, "| `%s` | %s | ", row->key, names[row->who]);
    if (row->fallback && strcmp(row->fallback, "\"???\"") != 0)
        tp_buf_addf(out, "`%s`", row->fallback);
    tp_buf_adds(out, " | ");
    if (row->kind == TP_ROW_IDLE)
        tp_buf_adds(out, "no effect");
    else if (row->kind == TP_ROW_ONLY) {
        tp_buf_adds(out, "refused unless ");
        add_words(out, row->values);
    } else if (row->target && *row->target)
        add_keys(out, row->target);
    tp_buf_adds(out, " | ");
    if (row->kind == TP_ROW_WORDS)
        add_words(out, row->values);
    if (row->remark) {
        tp_buf_adds(out, row->kind == TP_ROW_WORDS ? ". " : "");
        add_cell(out, row->remark);
    }
    tp_buf_adds(out, " |\n");
}

void tp_import_doc(const tp_import_source *source, tp_buf *out)
{
    tp_buf_adds(out, "| key | of | default there | here | |\n| --- | --- | --- | --- | --- |\n");
    for (const tp_import_row *row = source->rows; row && row->key; row++)
        add_row(out, row);
}
