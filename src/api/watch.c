/* watch.c - runs as they go: what is new of each, as a screen or as lines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/platform.h"
#include "base/terminal.h"
#include "base/vec.h"
#include "instrument/analyze/runs/curve.h"
#include "temper/monitor.h"
#include "text/json/json.h"

enum { MOST_COLUMNS = 60, SHOWN_ALARMS = 3, RATE_POINTS = 50 };

typedef struct {
    tp_metrics *m;
    tp_alarms *alarms;
    const char *name;                   /* of the path */
    char state[32];                     /* run.json's; "": nobody says */
    double max_steps, step, wall, rate; /* rate: steps per second; NaN: unknown */
    double told_step;
    size_t told_alarms;
    char problem[300];
} watched;

struct tp_watch {
    watched *runs;
    size_t n;
};

/* ---- where a run is ---- */

static void read_record(watched *r)
{
    enum { MOST = 16 << 20 };
    char path[4096];
    TP_OWN(tp_buf) text = {0};
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root = NULL;
    snprintf(path, sizeof path, "%s/run.json", tp_metrics_path(r->m));
    if (strcmp(tp_metrics_format(r->m), "temper") == 0 && tp_file_exists(path) &&
        tp_arena_init(&arena, 64 << 20, NULL) == TP_OK &&
        tp_file_read(path, MOST, &text, NULL) == TP_OK &&
        tp_json_parse(&arena, path, tp_buf_str(&text), text.len, NULL, &root, NULL) == TP_OK) {
        const char *state = tp_json_str(tp_json_get(root, "state"));
        snprintf(r->state, sizeof r->state, "%s", state ? state : "");
        if (!tp_json_f64(tp_json_get(root, "max_steps"), &r->max_steps))
            r->max_steps = NAN;
    }
}

/* Of other programs: the number of steps that they were started with, where they say so. */
static double steps_of_settings(const tp_metrics *m)
{
    static const char *const names[] = {"max_steps", "sft.max_num_steps", "dpo.max_num_steps",
                                        "grpo.max_num_steps", "trainer.total_training_steps"};
    double v;
    for (size_t i = 0; i < tp_metrics_settings(m); i++) {
        const char *value, *key = tp_metrics_setting(m, i, &value);
        for (size_t k = 0; k < TP_COUNTOF(names); k++)
            if (strcmp(key, names[k]) == 0 && tp_str_to_f64(value, &v) && v > 0)
                return v;
    }
    return NAN;
}

/* Steps and their speed, from the curve that every training has. */
static void read_progress(watched *r)
{
    const tp_metric_point *p;
    size_t index = tp_role_find(r->m, TP_ROLE_LOSS);
    if (index == SIZE_MAX)
        index = tp_role_find(r->m, TP_ROLE_REWARD);
    if (index == SIZE_MAX)
        index = 0;
    r->step = r->wall = r->rate = NAN;
    if (index >= tp_metrics_count(r->m))
        return;
    size_t n = tp_metrics_curve(r->m, index, &p);
    if (!n)
        return;
    size_t before = n > RATE_POINTS ? n - RATE_POINTS : 0;
    r->step = (double)p[n - 1].step;
    r->wall = p[n - 1].wall_time;
    double seconds = r->wall - p[before].wall_time;
    if (seconds > 0)
        r->rate = (r->step - (double)p[before].step) / seconds;
}

static void look(watched *r)
{
    r->max_steps = steps_of_settings(r->m);
    read_record(r);
    read_progress(r);
    tp_alarms_hear(r->alarms, r->m);
}

static tp_status open_alarms(watched *r, const char *file, tp_error *err)
{
    char own[4096];
    tp_error ignored;
    if (file)
        return tp_alarms_open(NULL, 0, file, &r->alarms, err);
    snprintf(own, sizeof own, "%s/config.yaml", tp_metrics_path(r->m));
    if (tp_file_exists(own) && tp_alarms_open(NULL, 0, own, &r->alarms, &ignored) == TP_OK)
        return TP_OK;
    return tp_alarms_open(NULL, 0, NULL, &r->alarms, err);
}

static tp_status open_run(watched *r, const char *path, const char *alarms, tp_error *err)
{
    const tp_metrics_options options = {.size = sizeof options, .follows = true};
    TP_TRY(tp_metrics_open(path, &options, &r->m, err));
    r->told_step = NAN;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    r->name = tp_strndup(path, n);
    TP_TRY(open_alarms(r, alarms, err));
    look(r);
    return TP_OK;
}

tp_status tp_watch_open(const char *const *paths, size_t n, const char *alarms, tp_watch **ret,
                        tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(paths && n && ret, err);
    tp_status status = TP_OK;
    tp_watch *w = tp_vec_new(1, sizeof *w);
    w->runs = tp_vec_new(n, sizeof *w->runs);
    for (; w->n < n && status == TP_OK; w->n++)
        status = open_run(&w->runs[w->n], paths[w->n], alarms, err);
    TP_HAND_OVER(status, ret, w, tp_watch_close(w));
}

void tp_watch_close(tp_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++) {
        tp_metrics_close(w->runs[i].m);
        tp_alarms_close(w->runs[i].alarms);
        free((char *)(uintptr_t)w->runs[i].name);
    }
    free(w->runs);
    free(w);
}

void tp_watch_refresh(tp_watch *w)
{
    for (size_t i = 0; w && i < w->n; i++) {
        watched *r = &w->runs[i];
        tp_error why = {0};
        bool is_read = tp_metrics_refresh(r->m, NULL, &why) == TP_OK;
        snprintf(r->problem, sizeof r->problem, "%.290s", is_read ? "" : why.message);
        if (is_read)
            look(r);
    }
}

bool tp_watch_is_over(const tp_watch *w)
{
    for (size_t i = 0; w && i < w->n; i++)
        if (!w->runs[i].state[0] || strcmp(w->runs[i].state, "running") == 0)
            return false;
    return true;
}

/* ---- lines ---- */

typedef enum { AS_VALUE, AS_COUNT, AS_SECONDS, AS_BYTES, AS_SMALL } value_form;

/* Which figures are shown, in this order, and how. */
static const struct {
    const char *label;
    tp_run_role role;
    value_form as;
} figures[] = {{"loss", TP_ROLE_LOSS, AS_VALUE},
               {"validation", TP_ROLE_EVAL_LOSS, AS_VALUE},
               {"reward", TP_ROLE_REWARD, AS_VALUE},
               {"accuracy", TP_ROLE_ACCURACY, AS_VALUE},
               {"KL", TP_ROLE_KL, AS_VALUE},
               {"entropy", TP_ROLE_ENTROPY, AS_VALUE},
               {"length", TP_ROLE_LENGTH, AS_VALUE},
               {"grad norm", TP_ROLE_GRAD_NORM, AS_VALUE},
               {"rate", TP_ROLE_LEARNING_RATE, AS_SMALL},
               {"per second", TP_ROLE_TRAIN_RATE, AS_COUNT},
               {"step time", TP_ROLE_STEP_TIME, AS_SECONDS},
               {"memory", TP_ROLE_MEMORY, AS_BYTES}};

static char *value_text(double v, value_form as, char out[32])
{
    if (as == AS_VALUE || !isfinite(v))
        return tp_human_value(v, 4, out);
    if (as == AS_COUNT)
        return tp_human_count(v, out);
    if (as == AS_SECONDS)
        return tp_human_seconds(v, out);
    if (as == AS_BYTES && v > 1e5) /* others record GiB */
        return tp_human_bytes(v, out);
    snprintf(out, 32, "%.4g", v);
    return out;
}

static void add_progress(const watched *r, tp_buf *out)
{
    char text[32];
    bool is_known = !isnan(r->max_steps) && r->max_steps > 0;
    if (isnan(r->step))
        tp_buf_adds(out, "no steps yet");
    else if (is_known)
        tp_buf_addf(out, "step %.0f/%.0f, %.0f %%", r->step, r->max_steps,
                    100 * r->step / r->max_steps);
    else
        tp_buf_addf(out, "step %.0f", r->step);
    bool is_going = !r->state[0] || strcmp(r->state, "running") == 0;
    if (is_going && is_known && r->rate > 0 && r->max_steps > r->step)
        tp_buf_addf(out, ", %s to go", tp_human_seconds((r->max_steps - r->step) / r->rate, text));
    double silent = tp_wall_s() - r->wall;
    if (r->state[0] && !is_going)
        tp_buf_addf(out, ", %s", r->state);
    else if (silent > 60)
        tp_buf_addf(out, ", nothing new for %s", tp_human_seconds(silent, text));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void add_line_of(watched *r, tp_buf *out)
{
    static const size_t shown[] = {0, 1, 2, 3, 9, 11};
    tp_buf_addf(out, "%s  ", base_name(r->name));
    add_progress(r, out);
    for (size_t i = 0; i < TP_COUNTOF(shown); i++) {
        const tp_metric_point *p;
        char text[32];
        size_t index = tp_role_find(r->m, figures[shown[i]].role);
        size_t n = index == SIZE_MAX ? 0 : tp_metrics_curve(r->m, index, &p);
        if (n)
            tp_buf_addf(out, "  %s %s", figures[shown[i]].label,
                        value_text(p[n - 1].value, figures[shown[i]].as, text));
    }
    tp_buf_addc(out, '\n');
}

char *tp_watch_lines(tp_watch *w)
{
    TP_OWN(tp_buf) out = {0};
    tp_buf shown = {0};
    for (size_t i = 0; i < w->n; i++) {
        watched *r = &w->runs[i];
        size_t n = tp_alarms_count(r->alarms);
        if (r->problem[0])
            tp_buf_addf(&out, "%s  %s\n", base_name(r->name), r->problem);
        for (r->told_alarms = TP_MIN(r->told_alarms, n); r->told_alarms < n; r->told_alarms++) {
            const tp_alarm_said *s = tp_alarms_at(r->alarms, r->told_alarms);
            tp_buf_addf(&out, "%s  alarm at step %lld: %s: %s\n", base_name(r->name),
                        (long long)s->step, s->name, s->text);
        }
        if (r->step != r->told_step && !(isnan(r->step) && isnan(r->told_step)))
            add_line_of(r, &out);
        r->told_step = r->step;
    }
    tp_buf_add_shown(&shown, tp_buf_str(&out), out.len, false);
    tp_buf_adds(&shown, "");
    return shown.data;
}

/* ---- the screen ---- */

typedef struct {
    tp_buf out, line;
    int width, height, n;
    bool has_colour;
} screen;

/* What was put into the line, as it may be shown, in columns, not bytes. */
static void end_line(screen *s, tp_terminal_code style)
{
    TP_OWN(tp_buf) shown = {0};
    int columns = 0;
    if (s->height > 0 && s->n == s->height) {
        tp_buf_clear(&s->line);
        return;
    }
    tp_buf_add_shown(&shown, tp_buf_str(&s->line), s->line.len, true);
    if (s->has_colour && style != TP_STYLE_PLAIN)
        tp_buf_adds(&s->out, tp_style(style));
    for (const char *c = tp_buf_str(&shown); *c; c++) {
        columns += ((unsigned char)*c & 0xc0) != 0x80;
        if (columns >= s->width)
            break;
        tp_buf_addc(&s->out, *c);
    }
    if (s->has_colour && style != TP_STYLE_PLAIN)
        tp_buf_adds(&s->out, tp_style(TP_STYLE_PLAIN));
    tp_buf_addc(&s->out, '\n');
    s->n++;
    tp_buf_clear(&s->line);
}

/* Means of as many pieces as there are columns; a piece with a value that is not finite shows it.
 */
static size_t shrink(const tp_metric_point *p, size_t n, size_t columns, double *out)
{
    if (columns > n)
        columns = n;
    for (size_t i = 0; i < columns; i++) {
        size_t begin = i * n / columns, end = (i + 1) * n / columns;
        long double sum = 0;
        for (size_t k = begin; k < end; k++)
            sum += (long double)p[k].value;
        out[i] = (double)(sum / (end - begin));
    }
    return columns;
}

static void add_figure(screen *s, watched *r, size_t which)
{
    const tp_metric_point *p;
    double values[MOST_COLUMNS], least = INFINITY, most = -INFINITY;
    char now[32], low[32], high[32];
    size_t index = tp_role_find(r->m, figures[which].role);
    size_t n = index == SIZE_MAX ? 0 : tp_metrics_curve(r->m, index, &p);
    if (!n)
        return;
    for (size_t i = 0; i < n; i++)
        if (isfinite(p[i].value)) {
            least = fmin(least, p[i].value);
            most = fmax(most, p[i].value);
        }
    int room = s->width - 14 - 12 - 28;
    size_t columns = room < 8 ? 8 : room > MOST_COLUMNS ? MOST_COLUMNS : (size_t)room;
    tp_buf_addf(&s->line, "  %-11s %10s  ", figures[which].label,
                value_text(p[n - 1].value, figures[which].as, now));
    columns = shrink(p, n, columns, values);
    tp_buf_add_sparkline(&s->line, values, columns);
    if (least <= most)
        tp_buf_addf(&s->line, "  %s .. %s", value_text(least, figures[which].as, low),
                    value_text(most, figures[which].as, high));
    end_line(s, TP_STYLE_PLAIN);
}

static void add_run(screen *s, watched *r, int rows)
{
    int begin = s->n;
    size_t n = tp_alarms_count(r->alarms), first = n > SHOWN_ALARMS ? n - SHOWN_ALARMS : 0;
    tp_buf_addf(&s->line, "%s  ", r->name);
    add_progress(r, &s->line);
    end_line(s, TP_STYLE_BOLD);
    if (r->problem[0]) {
        tp_buf_addf(&s->line, "  %s", r->problem);
        end_line(s, TP_STYLE_YELLOW);
    }
    int last = begin + rows - (int)(n - first);
    for (size_t i = 0; i < TP_COUNTOF(figures) && (rows <= 0 || s->n < last); i++)
        add_figure(s, r, i);
    for (size_t i = first; i < n; i++) {
        const tp_alarm_said *said = tp_alarms_at(r->alarms, i);
        tp_buf_addf(&s->line, "  ! step %lld, %s: %s", (long long)said->step, said->name,
                    said->text);
        end_line(s, TP_STYLE_BOLD_RED);
    }
}

char *tp_watch_frame(tp_watch *w, int width, int height, bool has_colour)
{
    screen s = {.width = width < 40 ? 40 : width, .height = height, .has_colour = has_colour};
    int rows = height > 0 ? TP_MAX(height / (int)w->n, 2) : 0;
    for (size_t i = 0; i < w->n; i++)
        add_run(&s, &w->runs[i], rows);
    tp_buf_adds(&s.out, "");
    tp_buf_release(&s.line);
    return s.out.data;
}
