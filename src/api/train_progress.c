/* train_progress.c - a run while it goes, as text: a live block, plain lines or JSON lines. */
#include "api/train_progress.h"

#include <math.h>
#include <string.h>

#include "api/cells.h"
#include "api/tables.h"
#include "base/clock.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/terminal.h"
#include "base/wrap.h"
#include "text/json/json.h"

enum { MAX_LOSSES = 24 };

void tp_progress_init(tp_progress *p, int mode, const tp_training_screen *screen)
{
    *p = (tp_progress){.mode = mode, .screen = screen};
    if (mode == TP_PROGRESS_AUTO)
        p->mode = screen->is_terminal ? TP_PROGRESS_BLOCK : TP_PROGRESS_PLAIN;
}

static void print(const tp_progress *p, tp_buf *text)
{
    if (text->len && p->screen->print)
        p->screen->print(p->screen->user, text->data, text->len);
    tp_buf_release(text);
}

static double metric(const tp_train_event *e, const char *name)
{
    return name ? tp_metric_latest(e->metrics, name) : NAN;
}

/* ---- the block ---- */

static void add_bar(tp_buf *out, double share, int cells)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double filled = fmax(0, fmin(1, share)) * cells;
    int whole = (int)filled, part = (int)((filled - whole) * 8);
    tp_buf_adds(out, "▕");
    for (int i = 0; i < whole; i++)
        tp_buf_adds(out, "█");
    int used = whole;
    if (part > 0 && whole < cells) {
        tp_buf_adds(out, eighths[part]);
        used++;
    }
    for (; used < cells; used++)
        tp_buf_addc(out, ' ');
    tp_buf_adds(out, "▏");
}

/* NaN is what is not known. */
static void add_number(tp_buf *out, const char *name, int decimals, double v)
{
    char text[32];
    tp_buf_addf(out, "%s %s  ", name, isnan(v) ? "unknown" : tp_human_value(v, decimals, text));
}

/* NaN is what was computed. */
static void add_result(tp_buf *out, const char *name, int decimals, double v)
{
    char text[32];
    tp_buf_addf(out, "%s %s  ", name, tp_human_value(v, decimals, text));
}

static void add_rate(tp_buf *out, const char *name, double v)
{
    char text[32];
    tp_buf_addf(out, "%s %s tok/s  ", name, isnan(v) ? "unknown" : tp_human_count(v, text));
}

static void head_line(const tp_train_event *e, tp_cells *out)
{
    char a[32], b[32], c[32], d[32];
    const char *slash = e->model_name ? strrchr(e->model_name, '/') : NULL;
    double share = e->max_steps > 0 ? (double)e->step / (double)e->max_steps : 0;
    const char *model = slash && slash[1] ? slash + 1 : e->model_name ? e->model_name : "";
    tp_buf_addf(tp_cell(out, 4), "%s %s  ", e->algorithm->title, model);
    tp_buf_addf(tp_cell(out, 3), "run %s  ", e->run_name);
    tp_buf_addf(tp_cell(out, 0), "step %lld/%lld ", (long long)e->step, (long long)e->max_steps);
    add_bar(tp_cell(out, 5), share, 16);
    tp_buf_addf(tp_cell(out, 1), " %.0f%%  ", 100 * share);
    tp_buf_addf(tp_cell(out, 6), "elapsed %s  ", tp_human_seconds(e->elapsed_s, a));
    if (isnan(e->eta_s))
        return;
    tp_buf_addf(tp_cell(out, 0), "ETA %s ", tp_human_seconds(e->eta_s, b));
    tp_buf_addf(tp_cell(out, 7), "(%s-%s)", tp_human_seconds(e->eta_low_s, c),
                tp_human_seconds(e->eta_high_s, d));
}

static void phase_line(const tp_train_event *e, tp_cells *out)
{
    static const tp_time_phase shown[] = {TP_TIME_GENERATION, TP_TIME_REWARD,  TP_TIME_LOGPROBS,
                                          TP_TIME_REFERENCE,  TP_TIME_FORWARD, TP_TIME_BACKWARD,
                                          TP_TIME_OPTIMIZER,  TP_TIME_DATA,    TP_TIME_VALIDATION,
                                          TP_TIME_CHECKPOINT};
    double total = 0, rest = 0;
    for (int i = TP_TIME_DATA; i < TP_TIME_COUNT; i++)
        total += e->phase_s[i];
    rest = total;
    for (size_t i = 0; i < sizeof shown / sizeof *shown && total > 0; i++) {
        double s = e->phase_s[shown[i]];
        rest -= s;
        if (s / total >= 0.005)
            tp_buf_addf(tp_cell(out, s / total < 0.1 ? 6 : 5), "%s %.0f%%  ",
                        tp_time_name(shown[i]), 100 * s / total);
    }
    if (total > 0)
        tp_buf_addf(tp_cell(out, 7), "other %.0f%%   ", 100 * rest / total);
}

static void rate_line(const tp_train_event *e, tp_cells *out)
{
    double step_s = metric(e, "timing/train/total_step_time");
    double mfu = metric(e, "train/train_fp_utilization");
    if (e->algorithm->generates)
        add_rate(tp_cell(out, 0), "generated", metric(e, "performance/generation_tokens_per_sec"));
    add_rate(tp_cell(out, 1), "trained", metric(e, "performance/trained_tokens_per_sec"));
    char step[32];
    tp_buf_addf(tp_cell(out, 0), "step %s  ",
                isnan(step_s) ? "unknown" : tp_human_seconds(step_s, step));
    if (!isnan(mfu))
        tp_buf_addf(tp_cell(out, 2), "MFU %.1f%%", 100 * mfu);
}

static void memory_line(const tp_train_event *e, tp_cells *out)
{
    char a[32], b[32], c[32];
    tp_buf_addf(tp_cell(out, 0), "mem %s / peak %s / planned %s   ",
                tp_human_bytes((double)e->memory.total_current, a),
                tp_human_bytes((double)e->memory.total_peak, b),
                tp_human_bytes((double)e->plan->peak_bytes, c));
    if (e->last_checkpoint_step >= 0)
        tp_buf_addf(tp_cell(out, 2), "last checkpoint step %lld   ",
                    (long long)e->last_checkpoint_step);
    if (e->skipped)
        tp_buf_addf(tp_cell(out, 1), "%lld step%s skipped", (long long)e->skipped,
                    tp_plural((uint64_t)e->skipped));
}

static void erase(tp_progress *p, tp_buf *out)
{
    for (int i = 0; i < p->lines_drawn; i++)
        tp_buf_adds(out, tp_style(TP_LINE_UP));
    if (p->lines_drawn)
        tp_buf_addf(out, "%s%s", tp_style(TP_LINE_BEGIN), tp_style(TP_BELOW_ERASE));
    p->lines_drawn = 0;
    p->has_work_line = false;
}

static void erase_work(tp_progress *p, tp_buf *out)
{
    if (p->has_work_line) {
        tp_buf_addf(out, "%s%s%s", tp_style(TP_LINE_UP), tp_style(TP_LINE_BEGIN),
                    tp_style(TP_BELOW_ERASE));
        p->lines_drawn--;
    }
    p->has_work_line = false;
}

static void add_percent(tp_buf *out, const char *name, double v)
{
    tp_buf_addf(out, isnan(v) ? "%s unknown  " : "%s %.1f%%  ", name, 100 * v);
}

static void add_unrewarded(const tp_train_event *e, tp_cells *out)
{
    double n = metric(e, "rollout/unrewarded");
    if (n > 0)
        tp_buf_addf(tp_cell(out, 0), "no reward %.0f/%.0f  ", n, metric(e, "rollout/samples"));
}

/* How far the policy moved, and what its answers are like. */
static void add_policy(const tp_train_event *e, const char *cut, const char *flat, tp_cells *out)
{
    double kl = metric(e, "train/kl_penalty");
    if (!isnan(kl))
        add_number(tp_cell(out, 1), "KL", 4, kl);
    add_number(tp_cell(out, 2), "entropy", 3, metric(e, "train/approx_entropy"));
    add_percent(tp_cell(out, 3), "clip", metric(e, "policy/clip_fraction"));
    add_number(tp_cell(out, 2), "length", 1, metric(e, "train/mean_gen_tokens_per_sample"));
    add_percent(tp_cell(out, 3), cut, metric(e, "train/truncation_rate"));
    add_percent(tp_cell(out, 4), flat, metric(e, "rollout/zero_spread_groups"));
    add_unrewarded(e, out);
}

static void add_learning_rate(const tp_train_event *e, tp_buf *out)
{
    double rate = metric(e, "train/lr");
    tp_buf_addf(out, isnan(rate) ? "lr unknown  " : "lr %.3g  ", rate);
}

static void policy_line(const tp_train_event *e, tp_cells *out)
{
    add_policy(e, "cut off", "groups of zero spread", out);
    add_learning_rate(e, tp_cell(out, 5));
}

static void add_course(const tp_progress *p, tp_buf *out)
{
    tp_buf_add_sparkline(out, p->losses, (size_t)p->n_losses);
    tp_buf_adds(out, "  ");
}

static void reward_line(const tp_progress *p, const tp_train_event *e, tp_cells *out)
{
    double mean = metric(e, "train/reward"), se = metric(e, "rollout/reward_standard_error");
    double val = metric(e, e->algorithm->val_accuracy), best = metric(e, "rollout/best_reward");
    char reward[32], error[32];
    if (isnan(se))
        add_number(tp_cell(out, 0), "reward", 3, mean);
    else
        tp_buf_addf(tp_cell(out, 0), "reward %s ±%s  ", tp_human_value(mean, 3, reward),
                    tp_human_value(1.96 * se, 3, error));
    add_course(p, tp_cell(out, 5));
    if (!isnan(val))
        add_number(tp_cell(out, 1), "validation", 3, val);
    if (!isnan(best))
        add_number(tp_cell(out, 4), "best", 3, best);
    add_number(tp_cell(out, 2), "loss", 4, metric(e, "train/loss"));
    add_number(tp_cell(out, 3), "grad norm", 3, metric(e, "train/grad_norm"));
}

/* What the algorithm is after, with its recent course. */
static void goal_line(const tp_progress *p, const tp_train_event *e, tp_cells *out)
{
    const tp_algorithm *a = e->algorithm;
    if (a->generates) {
        reward_line(p, e, out);
        return;
    }
    add_number(tp_cell(out, 0), "loss", 4, metric(e, "train/loss"));
    add_course(p, tp_cell(out, 3));
    add_number(tp_cell(out, 1), "val", 4, metric(e, a->val_loss));
    if (a->is_preference) {
        add_number(tp_cell(out, 1), "accuracy", 3, metric(e, "train/accuracy"));
        add_number(tp_cell(out, 2), "val", 3, metric(e, a->val_accuracy));
        add_number(tp_cell(out, 2), "margin", 3, metric(e, "dpo/margin_times_beta"));
    }
    add_learning_rate(e, tp_cell(out, 5));
    add_number(tp_cell(out, 4), "grad norm", 3, metric(e, "train/grad_norm"));
    add_number(tp_cell(out, 6), "epoch", 2, metric(e, "train/epoch"));
}

static void end_line(tp_progress *p, tp_buf *out, tp_cells *line)
{
    const tp_training_screen *screen = p->screen;
    tp_cells_add_line(line, screen->columns ? screen->columns(screen->user) : 100, out);
    tp_cells_clear(line);
    p->lines_drawn++;
}

static void draw_block(tp_progress *p, const tp_train_event *e, tp_buf *out)
{
    TP_OWN(tp_cells) line = {0};
    bool rolls_out = e->algorithm->generates;
    erase(p, out);
    head_line(e, &line);
    tp_buf_adds(out, p->screen->colour ? tp_style(TP_STYLE_BOLD) : "");
    end_line(p, out, &line);
    tp_buf_adds(out, p->screen->colour ? tp_style(TP_STYLE_PLAIN) : "");
    goal_line(p, e, &line);
    end_line(p, out, &line);
    if (rolls_out) {
        policy_line(e, &line);
        end_line(p, out, &line);
    }
    phase_line(e, &line);
    if (rolls_out)
        end_line(p, out, &line);
    rate_line(e, &line);
    end_line(p, out, &line);
    memory_line(e, &line);
    end_line(p, out, &line);
}

static void add_work(const tp_train_event *e, tp_buf *out)
{
    tp_buf_add_working(out, e->text, e->work_share, e->work_s);
}

static void draw_work(tp_progress *p, const tp_train_event *e, tp_buf *out)
{
    TP_OWN(tp_cells) line = {0};
    erase_work(p, out);
    add_work(e, tp_cell(&line, 0));
    end_line(p, out, &line);
    p->has_work_line = true;
}

/* Where lines stay, fewer and fewer. */
static bool work_is_due(tp_progress *p, const tp_train_event *e)
{
    if (p->mode == TP_PROGRESS_BLOCK)
        return true;
    if (e->work_s < p->last_work_s) /* another one */
        p->next_work_s = 0;
    p->last_work_s = e->work_s;
    if (e->work_s < p->next_work_s)
        return false;
    p->next_work_s = tp_working_next(e->work_s);
    return true;
}

/* ---- lines and JSON ---- */

static void print_rollout(const tp_train_event *e, tp_buf *out)
{
    char rate[32];
    double generated = metric(e, "performance/generation_tokens_per_sec");
    TP_OWN(tp_cells) line = {0};
    tp_buf_addf(out, "step %lld/%lld  ", (long long)e->step, (long long)e->max_steps);
    add_number(out, "reward", 3, metric(e, "train/reward"));
    add_policy(e, "cut", "zero spread", &line);
    tp_buf_adds(out, tp_buf_str(&line.text));
    add_result(out, "loss", 4, metric(e, "train/loss"));
    add_result(out, "grad norm", 3, metric(e, "train/grad_norm"));
    tp_buf_addf(out, "generated %s tok/s  %.3f s\n",
                isnan(generated) ? "unknown" : tp_human_count(generated, rate),
                metric(e, "timing/train/total_step_time"));
}

static void print_step(const tp_train_event *e, tp_buf *out)
{
    char wait[32], rate[32], loss[32], norm[32];
    double mfu = metric(e, "train/train_fp_utilization");
    tp_buf_addf(out, "step %lld/%lld  loss %s  grad norm %s  lr %.3g  %s tok/s  %.3f s  wait %s",
                (long long)e->step, (long long)e->max_steps,
                tp_human_value(metric(e, "train/loss"), 4, loss),
                tp_human_value(metric(e, "train/grad_norm"), 3, norm), metric(e, "train/lr"),
                tp_human_count(metric(e, "performance/trained_tokens_per_sec"), rate),
                metric(e, "timing/train/total_step_time"),
                tp_human_seconds(metric(e, "timing/train/data_processing"), wait));
    if (e->algorithm->is_preference)
        tp_buf_addf(out, "  accuracy %.3f  margin %.3f", metric(e, "train/accuracy"),
                    metric(e, "dpo/margin_times_beta"));
    if (!isnan(mfu))
        tp_buf_addf(out, "  MFU %.1f%%", 100 * mfu);
    tp_buf_addc(out, '\n');
}

static void print_validation(const tp_train_event *e, tp_buf *out)
{
    char text[32];
    const tp_algorithm *a = e->algorithm;
    tp_buf_addf(out, "step %lld  validation", (long long)e->step);
    if (a->val_loss)
        tp_buf_addf(out, " loss %s", tp_human_value(metric(e, a->val_loss), 4, text));
    if (a->val_accuracy)
        tp_buf_addf(out, " accuracy %s", tp_human_value(metric(e, a->val_accuracy), 4, text));
    tp_buf_addc(out, '\n');
}

static void print_plain(const tp_train_event *e, tp_buf *out)
{
    if (e->kind == TP_EVENT_STEP && e->algorithm->generates)
        print_rollout(e, out);
    else if (e->kind == TP_EVENT_STEP)
        print_step(e, out);
    else if (e->kind == TP_EVENT_VALIDATION)
        print_validation(e, out);
    else if (e->kind == TP_EVENT_CHECKPOINT)
        tp_buf_addf(out, "step %lld  checkpoint saved\n", (long long)e->step);
    else if (e->kind == TP_EVENT_WORKING) {
        add_work(e, out);
        tp_buf_addc(out, '\n');
    }
}

/* A member of an event: a metric, written by every step (null where it is unknown), or where
 * there is one.  A NaN of what was computed is a result. */
static const struct {
    const char *key, *metric;
    bool is_rare, is_result;
} members[] = {{"grad_norm", "train/grad_norm", false, true},
               {"lr", "train/lr", false, false},
               {"step_s", "timing/train/total_step_time", false, false},
               {"wait_s", "timing/train/data_processing", false, false},
               {"mfu", "train/train_fp_utilization", false, false},
               {"trained_tokens_per_s", "performance/trained_tokens_per_sec", false, false},
               {"reward", "train/reward", true, false},
               {"answers", "rollout/samples", true, false},
               {"unrewarded", "rollout/unrewarded", true, false},
               {"kl", "train/kl_penalty", true, false},
               {"entropy", "train/approx_entropy", true, false},
               {"clip_fraction", "policy/clip_fraction", true, false},
               {"mean_length", "train/mean_gen_tokens_per_sample", true, false},
               {"truncated_share", "train/truncation_rate", true, false},
               {"zero_spread_groups", "rollout/zero_spread_groups", true, false},
               {"generated_tokens_per_s", "performance/generation_tokens_per_sec", true, false},
               {"accuracy", "train/accuracy", true, false},
               {"margin", "dpo/margin_times_beta", true, false}};

static void put_number(tp_json_w *w, const char *key, double v, bool is_result)
{
    if (is_result)
        tp_json_w_put_f64(w, key, v);
    else
        tp_json_w_put_known(w, key, v);
}

static void put_metrics(const tp_train_event *e, tp_json_w *w)
{
    bool is_step = e->kind == TP_EVENT_STEP;
    double val_accuracy = metric(e, e->algorithm->val_accuracy);
    put_number(w, "loss", metric(e, "train/loss"), is_step);
    put_number(w, "val_loss", metric(e, e->algorithm->val_loss), !is_step);
    for (size_t i = 0; i < TP_COUNTOF(members); i++) {
        double v = is_step ? metric(e, members[i].metric) : NAN;
        if (!isnan(v) || !members[i].is_rare)
            put_number(w, members[i].key, v, is_step && members[i].is_result);
    }
    if (!isnan(val_accuracy))
        tp_json_w_put_f64(w, "val_accuracy", val_accuracy);
    tp_json_w_put_known(w, "eta_s", e->eta_s);
    tp_json_w_put_known(w, "elapsed_s", e->elapsed_s);
    tp_json_w_put_i64(w, "max_steps", e->max_steps);
}

static void print_json(const tp_train_event *e, tp_buf *out)
{
    static const char *const kinds[] = {"example",    "plan",   "start",    "step",   "validation",
                                        "checkpoint", "notice", "finished", "working"};
    tp_json_w w = tp_json_w_open(out, 0, '{');
    tp_json_w_put_str(&w, "event", kinds[e->kind]);
    tp_json_w_put_i64(&w, "step", e->step);
    if (e->text)
        tp_json_w_put_str(&w, "text", e->text);
    if (e->kind == TP_EVENT_STEP || e->kind == TP_EVENT_VALIDATION)
        put_metrics(e, &w);
    if (e->kind == TP_EVENT_WORKING) {
        tp_json_w_put_f64(&w, "work_s", e->work_s);
        tp_json_w_put_known(&w, "work_share", e->work_share);
    }
    tp_json_w_close(&w, '}');
}

static void remember(tp_progress *p, const tp_train_event *e)
{
    if (p->n_losses == MAX_LOSSES) {
        memmove(p->losses, p->losses + 1, (MAX_LOSSES - 1) * sizeof *p->losses);
        p->n_losses--;
    }
    p->losses[p->n_losses++] = metric(e, e->algorithm->generates ? "train/reward" : "train/loss");
}

/* Lines that keep to the screen, as the block does; what has a style is laid out already. */
static void add_text(const tp_progress *p, const char *text, tp_buf *out)
{
    const tp_training_screen *screen = p->screen;
    size_t room =
        screen->is_terminal && screen->columns ? (size_t)screen->columns(screen->user) : 0;
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (!room || memchr(text, 0xff, n) || memchr(text, '\033', n))
            tp_buf_add(out, text, n);
        else
            tp_add_wrapped(out, text, n, room);
        text += n;
        if (*text)
            tp_buf_addc(out, *text++);
    }
}

static void add_event(tp_progress *p, const tp_train_event *e, tp_buf *out)
{
    if (e->kind == TP_EVENT_WORKING && !work_is_due(p, e))
        return;
    if (p->mode == TP_PROGRESS_JSON) {
        print_json(e, out);
        return;
    }
    if (p->mode == TP_PROGRESS_QUIET)
        return;
    if (e->kind == TP_EVENT_WORKING && p->mode == TP_PROGRESS_BLOCK) {
        draw_work(p, e, out);
        return;
    }
    erase_work(p, out);
    if (e->kind == TP_EVENT_NOTICE) {
        if (p->mode == TP_PROGRESS_BLOCK)
            erase(p, out);
        TP_OWN(tp_buf) line = {0};
        tp_buf_addf(&line, "note: %s\n", e->text);
        add_text(p, line.data, out);
        return;
    }
    if (e->kind == TP_EVENT_EXAMPLE) {
        add_text(p, e->text, out);
        tp_buf_addc(out, '\n');
        return;
    }
    if (e->kind == TP_EVENT_START) {
        tp_table_levers(e->levers, out);
        tp_buf_addc(out, '\n');
    }
    if (p->mode == TP_PROGRESS_PLAIN) {
        print_plain(e, out);
        return;
    }
    double now = tp_clock_s();
    bool due = now - p->last_draw_s >= 0.25 || e->step == e->max_steps || !p->lines_drawn;
    if (e->kind != TP_EVENT_PLAN && e->kind != TP_EVENT_FINISHED && due) {
        draw_block(p, e, out);
        p->last_draw_s = now;
    }
}

void tp_progress_event(tp_progress *p, const tp_train_event *e)
{
    tp_buf out = {0};
    if (e->kind == TP_EVENT_STEP)
        remember(p, e);
    add_event(p, e, &out);
    print(p, &out);
}

void tp_progress_end(tp_progress *p) { p->lines_drawn = 0; /* what is drawn stays */ }
