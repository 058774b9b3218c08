/* lines.c - JSONL. */
#include "instrument/ingest/runs/lines.h"

#include <string.h>

#include "base/files.h"
#include "base/strings.h"

void tp_flat_row_lines_init(tp_flat_row_lines *l, const char *path)
{
    *l = (tp_flat_row_lines){.line = 1};
    tp_tail_init(&l->tail, path);
}

void tp_flat_row_lines_release(tp_flat_row_lines *l)
{
    tp_tail_release(&l->tail);
    tp_flat_row_release(&l->row);
}

void tp_flat_row_lines_restart(tp_flat_row_lines *l)
{
    TP_FREED char *path = tp_strdup(l->tail.path);
    tp_flat_row_lines_release(l);
    tp_flat_row_lines_init(l, path);
}

static bool is_blank(tp_slice s)
{
    size_t i = 0;
    while (i < s.len && strchr(" \t\r", s.data[i]) && s.data[i])
        i++;
    return i == s.len;
}

static void pass_over(tp_flat_row_lines *l, const tp_error *why)
{
    if (l->n_bad++)
        return;
    l->first_bad_line = l->line;
    const char *reason = strstr(why->message, ": ");
    snprintf(l->first_bad, sizeof l->first_bad, "%s", reason ? reason + 2 : why->message);
}

static tp_status read_lines(tp_flat_row_lines *l, void (*see)(void *user, tp_flat_row_lines *lines),
                            void *user, tp_error *err)
{
    for (;;) {
        tp_slice text;
        tp_error why = {0};
        bool has, ended;
        TP_TRY(tp_tail_line(&l->tail, &text, &has, &ended, err));
        if (!has)
            return TP_OK;
        size_t n_line = text.len;
        size_t mark = l->line == 1 ? tp_utf8_mark(text.data, text.len) : 0;
        text = (tp_slice){text.data + mark, text.len - mark};
        bool blank = is_blank(text);
        bool good =
            !blank && tp_flat_row_parse(&l->row, "line", text.data, text.len, &why) == TP_OK;
        if (!ended && !good)
            return TP_OK;
        if (!ended)
            tp_tail_skip(&l->tail, n_line);
        if (good) {
            see(user, l);
            l->n_rows++;
        } else if (!blank) {
            pass_over(l, &why);
        }
        l->line += ended;
    }
}

tp_status tp_flat_row_lines_read(tp_flat_row_lines *l,
                                 void (*see)(void *user, tp_flat_row_lines *lines), void *user,
                                 tp_error *err)
{
    tp_status status = read_lines(l, see, user, err);
    tp_tail_pause(&l->tail);
    return status;
}

void tp_flat_row_lines_say(const tp_flat_row_lines *l, tp_notes *notes)
{
    int64_t size = tp_file_size(l->tail.path);
    uint64_t at = tp_tail_offset(&l->tail);
    if (l->n_bad)
        tp_notes_add(notes, TP_NOTE_WARNING,
                     "'%s': %llu line%s passed over for no JSON object, the first is line "
                     "%llu: %s",
                     l->tail.path, (unsigned long long)l->n_bad, tp_plural((uint64_t)l->n_bad),
                     (unsigned long long)l->first_bad_line, l->first_bad);
    if (size > 0 && (uint64_t)size > at)
        tp_notes_add(notes, TP_NOTE_WARNING,
                     "'%s': the last line, at byte %llu, is incomplete: cut short, or still being "
                     "written",
                     l->tail.path, (unsigned long long)at);
}
