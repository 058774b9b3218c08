/* metrics_json.c - the points of a run as JSON, made by all processors, piece by piece: the numbers
 * of a million points take longer to write than to read. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/threads.h"
#include "instrument/ingest/runs/views.h"

enum { PIECE_POINTS = 1024, MOST_PIECES = 64, POINT_BYTES = 3 * TP_JSON_NUMBER_ROOM + 5 };

static tp_status hand_over(tp_buf *text, bool (*write)(void *, const char *, size_t), void *user,
                           tp_error *err)
{
    bool goes_on = write(user, tp_buf_str(text), text->len);
    tp_buf_clear(text);
    return goes_on ? TP_OK : tp_fail(err, TP_ERR_OUTPUT, "the metrics could not be written");
}

static char *put_null(char *out) { return stpcpy(out, "null"); }

/* ",[1,1.7e9,0.5]" in at most POINT_BYTES. */
static char *put_point(char *out, const tp_metric_point *p)
{
    *out++ = ',';
    *out++ = '[';
    out = p->step == TP_STEP_NONE ? put_null(out) : tp_json_put_i64(out, p->step);
    *out++ = ',';
    out = isnan(p->wall_time) ? put_null(out) : tp_json_put_f64(out, p->wall_time);
    *out++ = ',';
    out = tp_json_put_f64(out, p->value);
    *out++ = ']';
    return out;
}

/* Neighbouring pieces of one series, each made into text by itself. */
typedef struct {
    const tp_metric_point *points;
    size_t n;
    tp_buf text[MOST_PIECES]; /* ",[1,2,3],[4,5,6]" */
} piecework;

static tp_status make_piece(void *context, size_t index, int worker, tp_error *err)
{
    (void)worker, (void)err;
    piecework *p = context;
    tp_buf *text = &p->text[index];
    size_t end = TP_MIN((index + 1) * PIECE_POINTS, p->n);
    for (size_t i = index * PIECE_POINTS; i < end; i++) {
        tp_buf_reserve(text, POINT_BYTES);
        text->len = (size_t)(put_point(text->data + text->len, &p->points[i]) - text->data);
    }
    text->data[text->len] = 0;
    return TP_OK;
}

/* Where the text goes, and who makes it. */
typedef struct {
    bool (*write)(void *user, const char *text, size_t n);
    void *user;
    tp_pool *pool;
    tp_buf text;
    piecework pieces;
} json_out;

static tp_status write_points(json_out *o, const tp_metric_point *points, size_t n, tp_error *err)
{
    for (size_t i = 0, step = (size_t)PIECE_POINTS * MOST_PIECES; i < n; i += step) {
        o->pieces.points = points + i;
        o->pieces.n = TP_MIN(n - i, step);
        size_t pieces = (o->pieces.n + PIECE_POINTS - 1) / PIECE_POINTS;
        TP_TRY(tp_pool_for(o->pool, pieces, make_piece, &o->pieces, err));
        for (size_t k = 0; k < pieces; k++) {
            if (!i && !k)
                o->pieces.text[k].data[0] = '[';
            TP_TRY(hand_over(&o->pieces.text[k], o->write, o->user, err));
        }
    }
    return TP_OK;
}

static tp_status write_tags(tp_metrics *m, tp_points_view view, const char *const *tags,
                            size_t n_tags, json_out *o, tp_error *err)
{
    tp_json_w w = tp_json_w_open(&o->text, 0, '{');
    for (size_t i = 0; i < m->n_shown; i++) {
        size_t eligible, n;
        const char *tag = tp_string_get(&m->tags, m->shown[i]);
        if (!tp_metrics_wanted(tag, tags, n_tags))
            continue;
        n = tp_view_select(m, i, view, &eligible);
        if (!eligible)
            continue;
        tp_json_w_put_begin(&w, tag, '[');
        if (n) { /* the bracket comes with them */
            o->text.len--;
            TP_TRY(hand_over(&o->text, o->write, o->user, err));
            TP_TRY(write_points(o, m->scratch, n, err));
        }
        tp_json_w_end(&w, ']');
    }
    tp_json_w_close(&w, '}');
    return hand_over(&o->text, o->write, o->user, err);
}

tp_status tp_metrics_write_json(tp_metrics *m, tp_points_view view, const char *const *tags,
                                size_t n_tags,
                                bool (*write)(void *user, const char *text, size_t n), void *user,
                                tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(m && write && (tags || !n_tags), err);
    TP_TRY(tp_metrics_check_tags(m, tags, n_tags, err));
    json_out o = {.write = write, .user = user};
    tp_status status = tp_pool_create(&o.pool, tp_cpu_count(), err);
    if (status == TP_OK)
        status = write_tags(m, view, tags, n_tags, &o, err);
    tp_pool_free(o.pool);
    tp_buf_release(&o.text);
    for (size_t i = 0; i < MOST_PIECES; i++)
        tp_buf_release(&o.pieces.text[i]);
    return status;
}
