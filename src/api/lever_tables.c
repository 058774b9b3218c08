/* lever_tables.c - the orchestrator's summary: which levers are on, why, and what that gives. */
#include <math.h>
#include <string.h>

#include "api/tables.h"

enum { NAME = 19, STATE = 10, SAVED = 10, WHY = 80 - NAME - STATE - 2 * SAVED - 2, LINE = 78 };

static void add_saved(double v, char *(*text_of)(double v, char *out), tp_buf *out)
{
    char text[32], signed_text[40];
    snprintf(signed_text, sizeof signed_text, "%s%s", v < 0 ? "-" : "",
             isnan(v) ? "unknown" : text_of(fabs(v), text));
    tp_buf_addf(out, " %*s", SAVED - 1, v == 0 ? "-" : signed_text);
}

/* "recipes/demo.yaml:12" without its folder, and no longer than the column. */
static const char *reason(const char *why, char out[WHY + 1])
{
    const char *slash = strchr(why, ' ') ? NULL : strrchr(why, '/');
    const char *text = slash ? slash + 1 : why;
    size_t n = tp_utf8_valid_len(text, strnlen(text, WHY));
    snprintf(out, WHY + 1, "%.*s", (int)n, text);
    if (text[n])
        memcpy(out + WHY - 3, "...", 3);
    return out;
}

static void add_row(const tp_lever_report *r, tp_buf *out)
{
    char why[WHY + 1];
    tp_buf_addf(out, "%-*s %-*s", NAME - 1, r->lever->name, STATE - 1,
                tp_lever_state_name(r->state));
    add_saved(r->saved_bytes, tp_human_bytes, out);
    add_saved(r->saved_s, tp_human_seconds, out);
    tp_buf_addf(out, "  %s\n", reason(r->why, why));
}

/* Names, in lines of 80 columns. */
static void add_idle(const tp_lever_reports *levers, tp_buf *out)
{
    size_t line = 0;
    for (int i = 0; i < levers->n; i++) {
        const tp_lever_report *r = &levers->v[i];
        const char *name = r->lever->name;
        if (!tp_lever_is_idle(r))
            continue;
        if (line == 0)
            tp_buf_addf(out, "nothing to do here: %s", name);
        else if (line + strlen(name) + 2 > LINE)
            tp_buf_addf(out, ",\n  %s", name);
        else
            tp_buf_addf(out, ", %s", name);
        const char *last = strrchr(out->data, '\n');
        line = last ? strlen(last + 1) : out->len;
    }
    if (line)
        tp_buf_addc(out, '\n');
}

void tp_table_levers(const tp_lever_reports *levers, tp_buf *out)
{
    tp_buf_addf(out, "%-*s %-*s %*s %*s  %s\n", NAME - 1, "lever", STATE - 1, "state", SAVED - 1,
                "memory", SAVED - 1, "step", "set by, or why");
    for (int i = 0; i < levers->n; i++)
        if (!tp_lever_is_idle(&levers->v[i]))
            add_row(&levers->v[i], out);
    add_idle(levers, out);
    tp_buf_adds(out,
                "(memory and step: what the lever saves by the plan, the others as they are)\n");
}

void tp_table_levers_measured(const tp_lever_reports *levers, tp_buf *out)
{
    char text[32];
    size_t before = out->len;
    for (int i = 0; i < levers->n; i++) {
        const tp_lever_measure *m = &levers->measured[i];
        if (!m->what || isnan(m->value))
            continue;
        if (out->len == before)
            tp_buf_addf(out, "\n%-18s %-9s %s\n", "lever", "state", "gave");
        tp_buf_addf(out, "%-18s %-9s ", levers->v[i].lever->name,
                    tp_lever_state_name(levers->v[i].state));
        if (strcmp(m->unit, "share") == 0)
            tp_buf_addf(out, "%.1f %% %s\n", 100 * m->value, m->what);
        else
            tp_buf_addf(out, "%s %s\n",
                        strcmp(m->unit, "s") == 0 ? tp_human_seconds(m->value, text)
                                                  : tp_human_bytes(m->value, text),
                        m->what);
    }
}
