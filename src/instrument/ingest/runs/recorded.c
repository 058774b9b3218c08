/* recorded.c - records and series as they grow. */
#include "instrument/ingest/runs/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"
#include "instrument/ingest/runs/steps.h"

static void free_series(tp_metrics *m)
{
    for (size_t i = 0; i < m->n_series; i++)
        free(m->series[i].points);
    free(m->series);
    m->series = NULL;
    m->n_series = m->cap_series = 0;
}

void tp_recorded_clear(tp_metrics *m)
{
    free_series(m);
    for (size_t i = 0; i < m->n_settings; i++) {
        free(m->settings[i].key);
        free(m->settings[i].value);
    }
    free(m->settings);
    free(m->starts);
    free(m->attempts);
    free(m->newest);
    tp_row_steps_release(&m->row_steps);
    free(m->superseded);
    free(m->shown);
    free(m->scratch);
    tp_notes_release(&m->notes);
    tp_string_table_release(&m->tags);
    *m = (tp_metrics){.path = m->path,
                      .name = m->name,
                      .run = m->run,
                      .is_followed = m->is_followed,
                      .reader = m->reader,
                      .state = m->state};
    tp_string_table_init(&m->tags);
}

bool tp_recorded_next(tp_metrics *m)
{
    if (m->n_records == UINT32_MAX)
        return false;
    if (++m->n_records == UINT32_MAX) {
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s' has more than %u records; the rest was not read", m->path, UINT32_MAX);
        return false;
    }
    return true;
}

/* Is it text, as all that hand tags out take it? */
static bool is_text(const char *tag, size_t n)
{
    return !memchr(tag, 0, n) && tp_utf8_valid_len(tag, n) == n;
}

/* Made into text so that tags stay apart: a NUL becomes U+2400, bytes that are no UTF-8 \xNN. */
static void make_text(tp_buf *out, const char *tag, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = tp_utf8_decode(tag + i, n - i, &cp);
        if (!len)
            tp_buf_addf(out, "\\x%02x", (unsigned char)tag[i]);
        else if (!cp)
            tp_buf_adds(out, "\xe2\x90\x80");
        else
            tp_buf_add(out, tag + i, len);
        i += TP_MAX(len, 1);
    }
}

/* Tags come in the same order step by step: the one that followed the last time is tried first. */
tp_recorded_series *tp_recorded_series_of(tp_metrics *m, const char *tag, size_t n)
{
    uint32_t id;
    tag = n ? tag : ""; /* of a slice that is not there */
    if (m->n_series) {
        id = m->series[m->last_series].next;
        tp_slice expected = {tp_string_get(&m->tags, id), tp_string_len(&m->tags, id)};
        if (tp_slice_eq(expected, (tp_slice){tag, n})) {
            m->last_series = id;
            return &m->series[id];
        }
    }
    TP_OWN(tp_buf) text = {0};
    if (!is_text(tag, n)) {
        make_text(&text, tag, n);
        tag = text.data;
        n = text.len;
    }
    id = tp_string_add(&m->tags, tag, n);
    while (m->n_series <= id)
        (void)TP_VEC_PUSH(m->series, m->n_series, m->cap_series);
    m->series[m->last_series].next = id;
    m->last_series = id;
    return &m->series[id];
}

void tp_recorded_add(tp_metrics *m, tp_recorded_series *s, int64_t step, double wall, double value,
                     uint32_t marks)
{
    s->is_uneven |= step == TP_STEP_NONE || (s->n && step <= s->points[s->n - 1].step) ||
                    (marks & (TP_MARK_BAD_DATA | TP_MARK_NO_NUMBER));
    s->n_odd += isfinite(value) ? 0 : 1;
    tp_recorded_point *p = TP_VEC_PUSH(s->points, s->n, s->cap);
    *p = (tp_recorded_point){step, wall, value, m->n_records, marks};
}

void tp_recorded_put(tp_metrics *m, tp_slice tag, int64_t step, double wall, double value,
                     uint32_t marks)
{
    tp_recorded_series *s = tp_recorded_series_of(m, tag.data, tag.len);
    s->is_scalar = true;
    if (s->n && s->points[s->n - 1].record == m->n_records)
        s->n_odd -= isfinite(s->points[--s->n].value) ? 0 : 1;
    tp_recorded_add(m, s, step, wall, value, marks);
}

static char *copy(tp_slice s) { return tp_strndup(s.data ? s.data : "", s.len); }

void tp_recorded_setting_add(tp_metrics *m, tp_slice key, tp_slice value)
{
    for (size_t i = 0; i < m->n_settings; i++)
        if (tp_slice_is(key, m->settings[i].key)) {
            free(m->settings[i].value);
            m->settings[i].value = copy(value);
            return;
        }
    tp_recorded_setting *s = TP_VEC_PUSH(m->settings, m->n_settings, m->cap_settings);
    s->key = copy(key);
    s->value = copy(value);
}
