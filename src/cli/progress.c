#include "cli/progress.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"

enum { MAX_LOSSES = 24 };

void tp_progress_init(tp_progress *p, int mode)
{
    *p = (tp_progress){.mode = mode,
                       .colour = tp_cli_colour(stdout),
                       .lr = NAN,
                       .grad_norm = NAN,
                       .trained_per_s = NAN,
                       .used_per_s = NAN,
                       .mfu = NAN,
                       .step_s = NAN,
                       .wait_s = NAN};
    if (mode == TP_PROGRESS_AUTO)
        p->mode = tp_cli_terminal(stdout) ? TP_PROGRESS_BLOCK : TP_PROGRESS_PLAIN;
}

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
        return size.ws_col;
    return 100;
}

/* ---- the block ---- */

/* Columns, not bytes: continuation bytes take no room. */
static void add_line(tp_buf *out, const char *text, int width)
{
    int columns = 0;
    for (const char *s = text; *s; s++) {
        bool starts = ((unsigned char)*s & 0xc0) != 0x80;
        if (starts && columns++ >= width - 1)
            break;
        tp_buf_addc(out, *s);
    }
    tp_buf_adds(out, "\033[K\n");
}

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

static void add_sparkline(tp_buf *out, const double *v, int n)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < n; i++)
        if (isfinite(v[i])) {
            low = fmin(low, v[i]);
            high = fmax(high, v[i]);
        }
    for (int i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            tp_buf_addc(out, '!');
        else
            tp_buf_adds(out, levels[high > low ? (int)(7.99 * (v[i] - low) / (high - low)) : 0]);
    }
}

static void add_number(tp_buf *out, const char *name, const char *format, double v)
{
    tp_buf_addf(out, "%s ", name);
    if (isnan(v))
        tp_buf_adds(out, "unknown");
    else
        tp_buf_addf(out, format, v);
    tp_buf_adds(out, "  ");
}

static void add_rate(tp_buf *out, const char *name, double v)
{
    char text[32];
    tp_buf_addf(out, "%s %s tok/s  ", name, isnan(v) ? "unknown" : tp_human_count(v, text));
}

static void head_line(const tp_train_event *e, tp_buf *out)
{
    char a[32], b[32], c[32], d[32];
    const char *slash = e->model_name ? strrchr(e->model_name, '/') : NULL;
    double share = e->max_steps > 0 ? (double)e->step / (double)e->max_steps : 0;
    tp_buf_addf(out, "SFT %s  run %s  step %lld/%lld ",
                slash && slash[1] ? slash + 1
                : e->model_name   ? e->model_name
                                  : "",
                e->run_name, (long long)e->step, (long long)e->max_steps);
    add_bar(out, share, 16);
    tp_buf_addf(out, " %.0f%%  elapsed %s", 100 * share, tp_human_seconds(e->elapsed_s, a));
    if (!isnan(e->eta_s))
        tp_buf_addf(out, "  ETA %s (%s-%s)", tp_human_seconds(e->eta_s, b),
                    tp_human_seconds(e->eta_low_s, c), tp_human_seconds(e->eta_high_s, d));
}

static void phase_line(const tp_progress *p, const tp_train_event *e, tp_buf *out)
{
    static const tp_time_phase shown[] = {TP_TIME_FORWARD, TP_TIME_BACKWARD,   TP_TIME_OPTIMIZER,
                                          TP_TIME_DATA,    TP_TIME_VALIDATION, TP_TIME_CHECKPOINT};
    double total = 0, rest = 0;
    for (int i = TP_TIME_DATA; i < TP_TIME_COUNT; i++)
        total += e->phase_s[i];
    rest = total;
    for (size_t i = 0; i < sizeof shown / sizeof *shown && total > 0; i++) {
        double s = e->phase_s[shown[i]];
        rest -= s;
        if (s / total >= 0.005)
            tp_buf_addf(out, "%s %.0f%%  ", tp_time_name(shown[i]), 100 * s / total);
    }
    if (total > 0)
        tp_buf_addf(out, "other %.0f%%   ", 100 * rest / total);
    add_rate(out, "trained", p->trained_per_s);
    char step[32];
    tp_buf_addf(out, "step %s  ", isnan(p->step_s) ? "unknown" : tp_human_seconds(p->step_s, step));
    if (!isnan(p->mfu))
        tp_buf_addf(out, "MFU %.1f%%", 100 * p->mfu);
}

static void memory_line(const tp_train_event *e, tp_buf *out)
{
    char a[32], b[32], c[32];
    tp_buf_addf(out, "mem %s / peak %s / planned %s", tp_human_bytes((double)e->memory_bytes, a),
                tp_human_bytes((double)e->memory_peak_bytes, b),
                tp_human_bytes((double)e->memory_planned_bytes, c));
    if (e->last_checkpoint_step >= 0)
        tp_buf_addf(out, "   last checkpoint step %lld", (long long)e->last_checkpoint_step);
    if (e->skipped)
        tp_buf_addf(out, "   %lld steps skipped", (long long)e->skipped);
}

static void erase(tp_progress *p)
{
    if (p->lines_drawn)
        printf("\033[%dA\r\033[J", p->lines_drawn);
    p->lines_drawn = 0;
}

static void draw_block(tp_progress *p, const tp_train_event *e)
{
    tp_buf out = {0}, line = {0};
    int width = terminal_width();
    void (*const simple[])(const tp_train_event *, tp_buf *) = {head_line, memory_line};
    erase(p);
    simple[0](e, &line);
    tp_buf_adds(&out, p->colour ? "\033[1m" : "");
    add_line(&out, tp_buf_str(&line), width);
    tp_buf_adds(&out, p->colour ? "\033[0m" : "");
    tp_buf_clear(&line);
    add_number(&line, "loss", "%.4f", e->loss);
    add_sparkline(&line, p->losses, p->n_losses);
    tp_buf_adds(&line, "  ");
    add_number(&line, "val", "%.4f", e->val_loss);
    add_number(&line, "lr", "%.3g", p->lr);
    add_number(&line, "grad norm", "%.3f", p->grad_norm);
    add_number(&line, "epoch", "%.2f", e->epoch);
    add_line(&out, tp_buf_str(&line), width);
    tp_buf_clear(&line);
    phase_line(p, e, &line);
    add_line(&out, tp_buf_str(&line), width);
    tp_buf_clear(&line);
    simple[1](e, &line);
    add_line(&out, tp_buf_str(&line), width);
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    p->lines_drawn = 4;
    tp_buf_release(&out);
    tp_buf_release(&line);
}

/* ---- lines and JSON ---- */

static void print_plain(const tp_train_event *e)
{
    char wait[32], rate[32];
    if (e->kind == TP_EVENT_STEP) {
        printf("step %lld/%lld  loss %.4f  grad norm %.3f  lr %.3g  %s tok/s  %.3f s  wait %s",
               (long long)e->step, (long long)e->max_steps, e->loss, e->grad_norm, e->lr,
               tp_human_count(e->trained_tokens_per_s, rate), e->step_s,
               tp_human_seconds(e->wait_s, wait));
        if (!isnan(e->mfu))
            printf("  MFU %.1f%%", 100 * e->mfu);
        putchar('\n');
    } else if (e->kind == TP_EVENT_VALIDATION)
        printf("step %lld  validation loss %.4f\n", (long long)e->step, e->val_loss);
    else if (e->kind == TP_EVENT_CHECKPOINT)
        printf("step %lld  checkpoint saved\n", (long long)e->step);
    fflush(stdout);
}

static void print_json(const tp_train_event *e)
{
    static const char *const kinds[] = {"example",    "plan",       "start",  "step",
                                        "validation", "checkpoint", "notice", "finished"};
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_key(&w, "event");
    tp_json_w_str(&w, kinds[e->kind]);
    tp_json_w_key(&w, "step");
    tp_json_w_i64(&w, e->step);
    if (e->text) {
        tp_json_w_key(&w, "text");
        tp_json_w_str(&w, e->text);
    }
    if (e->kind == TP_EVENT_STEP || e->kind == TP_EVENT_VALIDATION) {
        const struct {
            const char *key;
            double v;
        } numbers[] = {{"loss", e->loss},
                       {"val_loss", e->val_loss},
                       {"grad_norm", e->grad_norm},
                       {"lr", e->lr},
                       {"step_s", e->step_s},
                       {"wait_s", e->wait_s},
                       {"mfu", e->mfu},
                       {"trained_tokens_per_s", e->trained_tokens_per_s},
                       {"eta_s", e->eta_s},
                       {"elapsed_s", e->elapsed_s}};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            tp_json_w_key(&w, numbers[i].key);
            tp_json_w_f64(&w, numbers[i].v);
        }
        tp_json_w_key(&w, "max_steps");
        tp_json_w_i64(&w, e->max_steps);
    }
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    fflush(stdout);
    tp_buf_release(&out);
}

static void remember(tp_progress *p, const tp_train_event *e)
{
    if (p->n_losses == MAX_LOSSES) {
        memmove(p->losses, p->losses + 1, (MAX_LOSSES - 1) * sizeof *p->losses);
        p->n_losses--;
    }
    p->losses[p->n_losses++] = e->loss;
    p->lr = e->lr;
    p->grad_norm = e->grad_norm;
    p->trained_per_s = e->trained_tokens_per_s;
    p->used_per_s = e->used_tokens_per_s;
    p->mfu = e->mfu;
    p->step_s = e->step_s;
    p->wait_s = e->wait_s;
}

void tp_progress_event(tp_progress *p, const tp_train_event *e)
{
    if (e->kind == TP_EVENT_STEP)
        remember(p, e);
    if (p->mode == TP_PROGRESS_JSON) {
        print_json(e);
        return;
    }
    if (e->kind == TP_EVENT_NOTICE) {
        if (p->mode == TP_PROGRESS_BLOCK)
            erase(p);
        if (p->mode != TP_PROGRESS_QUIET)
            printf("note: %s\n", e->text);
        fflush(stdout);
        return;
    }
    if (p->mode == TP_PROGRESS_QUIET)
        return;
    if (e->kind == TP_EVENT_EXAMPLE) {
        printf("%s\n", e->text);
        return;
    }
    if (p->mode == TP_PROGRESS_PLAIN) {
        print_plain(e);
        return;
    }
    double now = tp_clock_s();
    bool due = now - p->last_draw_s >= 0.25 || e->step == e->max_steps || !p->lines_drawn;
    if (e->kind != TP_EVENT_PLAN && e->kind != TP_EVENT_FINISHED && due) {
        draw_block(p, e);
        p->last_draw_s = now;
    }
}

void tp_progress_end(tp_progress *p) { p->lines_drawn = 0; /* what is drawn stays */ }
