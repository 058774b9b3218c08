/* env_program.c - judging by programs that speak one JSON object per line.
 *
 * A pool of programs is served from one loop over poll(), so nothing a program does or
 * does not do can hold the caller longer than the limits say:
 *
 *     free --(question)--> busy --(answer)--> free
 *                           |
 *                           +--(timeout, one question)--> owing --(late answer)--> free
 *                           |                               |
 *                           +--(death, flood, timeout)------+--(grace over)--> down
 *                                                                               |
 *     free <--(back-off over, work to do)---------------------------------------+
 *
 * While a question waits, the caller's watch is asked a few times a second whether to go on
 * (Ctrl-C); when not, all programs see the end of their input and have STOP_GRACE_MS to end.
 *
 * With several questions at one program (in_flight > 1) nobody can tell which one hung or
 * killed it: all of them are asked again, each alone, and judged by that. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/reward/environment_rows.h"
#include "engine/reward/process.h"
#include "engine/reward/program_line.h"

enum { MOST_IN_FLIGHT = 256 };
enum { MAX_STRAY_LINES = 1000, FLOOD_LINES = 16, DEFAULT_WORKERS = 2 };
enum { STOP_PATIENCE_MS = 300, STOP_GRACE_MS = 2000, DEATH_PATIENCE_MS = 50 };
static const double ASK_WATCH_S = 0.2, SAY_AFTER_S = 5, LONGEST_BACKOFF_S = 0.5;

typedef struct {
    tp_str_list command;
    double timeout, grace, backoff;
    int64_t in_flight, retries, max_failures, max_line_bytes;
} settings;

/* clang-format off */
static const tp_option rows[] = {
    TEXTS("command", command, "\?\?\?", "The program and its arguments, [python3, judge.py]; one text goes to the shell.")
    REAL("timeout", timeout, "10.0", 0.001, 86400, "Seconds for one answer.")
    REAL("grace", grace, "1.0", 0, 86400, "Seconds more, without new questions, before a late program is killed.")
    COUNT("in_flight", in_flight, "1", 1, MOST_IN_FLIGHT, "Questions that one program has at a time; it may answer them in any order.")
    COUNT("retries", retries, "1", 0, 100, "Times that a question is asked again after the program died over it.")
    REAL("backoff", backoff, "0.05", 0, 60, "Seconds before a second start in a row; doubled each time, to 0.5 at most.")
    COUNT("max_failures", max_failures, "20", 1, 1e6, "Programs lost in a row, without one verdict between, that end the run.")
    COUNT("max_line_bytes", max_line_bytes, "1048576", 1024, 1 << 26, "Longest answer; a program that says more than 16 times this without a verdict is killed.")
};
/* clang-format on */

typedef struct {
    int64_t id; /* of the question */
    size_t index;
} question;

typedef struct {
    tp_process process;
    question asked[MOST_IN_FLIGHT];
    int n_asked;
    bool is_owing; /* its question was given up; the answer may still come */
    double deadline, restart_at;
    size_t n_stray, n_bytes; /* since the last verdict */
    int64_t stray_id;        /* of the last answer to no question; TP_PROGRAM_NO_ID: none */
} worker;

typedef struct {
    const settings *o;
    const char *name;
    const tp_environment_watch *watch;
    char **argv;
    worker *workers;
    size_t n_workers;
    struct pollfd *fds;
    int64_t next_id;
    int64_t failures; /* in a row */
    tp_environment_counts counts;
    char last_loss[320];
    bool has_judged; /* at least once */
} pool;

/* One call of score_all. */
typedef struct {
    pool *p;
    const tp_completion *completions;
    tp_reward *verdicts;
    size_t n, n_done;
    size_t *waiting; /* indices; a stack from n_waiting down, the next one on top */
    size_t n_waiting;
    uint8_t *tries;
    bool *alone, *done;
    bool has_said; /* that it is taking long */
    tp_error *err;
} batch;

/* ---- opening ---- */

static tp_status start(pool *p, worker *w, tp_error *err)
{
    TP_TRY(tp_process_start(&w->process, p->argv, err));
    w->n_asked = 0;
    w->is_owing = false;
    w->n_stray = w->n_bytes = 0;
    w->stray_id = TP_PROGRAM_NO_ID;
    p->counts.started++;
    return TP_OK;
}

static void say(const pool *p, const char *fmt, ...) TP_PRINTF(2, 3);
static void say(const pool *p, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    if (!p->watch || !p->watch->say)
        return;
    int n = snprintf(text, sizeof text, "env.%s: ", p->name);
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    p->watch->say(p->watch->user, text);
}

/* One text with a space in it is a line for the shell. */
static char **make_argv(const tp_str_list *command)
{
    bool to_shell = command->n == 1 && strpbrk(command->v[0], " \t\n");
    char **argv = tp_new(command->n + 4, sizeof *argv);
    size_t n = 0;
    if (to_shell) {
        argv[n++] = tp_strdup("/bin/sh");
        argv[n++] = tp_strdup("-c");
    }
    for (size_t i = 0; i < command->n; i++)
        argv[n++] = tp_strdup(command->v[i]);
    return argv;
}

/* All of them see the end of their input before any is waited for; together they have so
 * much time, then they are killed. */
static void end_programs(pool *p, int patience_ms)
{
    char how[64];
    double end = tp_clock_s() + 1e-3 * patience_ms;
    for (size_t i = 0; i < p->n_workers; i++) {
        tp_process *process = &p->workers[i].process;
        if (process->pid > 0 && process->in >= 0) {
            close(process->in);
            process->in = -1;
        }
    }
    for (size_t i = 0; i < p->n_workers; i++) {
        double left_ms = 1e3 * (end - tp_clock_s());
        tp_process_stop(&p->workers[i].process, left_ms > 0 ? (int)left_ms : 0, how);
        p->workers[i].n_asked = 0;
        p->workers[i].is_owing = false;
    }
}

static void close_pool(void *state)
{
    pool *p = state;
    end_programs(p, STOP_PATIENCE_MS);
    for (char **a = p->argv; a && *a; a++)
        free(*a);
    free(p->argv);
    free(p->workers);
    free(p->fds);
    free(p);
}

static tp_status open_pool(const void *settings_, const tp_environment_context *context,
                           void **ret_state, tp_error *err)
{
    const settings *o = settings_;
    if (o->command.n == 0 || !o->command.v[0][0])
        return tp_fail(err, TP_ERR_CONFIG,
                       "command is empty; name a program, as in [python3, "
                       "judge.py]");
    pool *p = tp_new(1, sizeof *p);
    size_t n =
        context->num_workers == TP_OPT_UNSET_INT ? DEFAULT_WORKERS : (size_t)context->num_workers;
    *p = (pool){.o = o,
                .name = context->name,
                .watch = context->watch,
                .argv = make_argv(&o->command),
                .n_workers = n};
    p->workers = tp_new(n, sizeof *p->workers);
    p->fds = tp_new(n * TP_PROCESS_FDS, sizeof *p->fds);
    tp_status status = start(p, &p->workers[0], err); /* does it exist at all? */
    TP_HAND_OVER(status, ret_state, p, close_pool(p));
}

/* ---- questions ---- */

static void put_back(batch *b, size_t index, bool alone)
{
    b->alone[index] |= alone;
    b->waiting[b->n_waiting++] = index;
}

static void decide(batch *b, size_t index)
{
    TP_ASSERT(!b->done[index]);
    b->done[index] = true;
    b->n_done++;
}

static void ask(batch *b, worker *w)
{
    size_t index = b->waiting[--b->n_waiting];
    question q = {.id = b->p->next_id++, .index = index};
    if (w->n_asked == 0)
        w->deadline = tp_clock_s() + b->p->o->timeout;
    w->asked[w->n_asked++] = q;
    tp_program_line_write(q.id, b->p->name, &b->completions[index], &w->process.to_send);
}

static bool has_alone(const batch *b, const worker *w)
{
    return w->n_asked && b->alone[w->asked[0].index];
}

/* Give the worker as much as it may have. */
static void feed(batch *b, worker *w)
{
    while (w->process.pid > 0 && !w->is_owing && b->n_waiting &&
           w->n_asked < (int)b->p->o->in_flight && !has_alone(b, w)) {
        bool next_alone = b->alone[b->waiting[b->n_waiting - 1]];
        if (next_alone && w->n_asked)
            return;
        ask(b, w);
    }
}

/* ---- losses ---- */

/* What is to become of the questions of a program that is gone. */
typedef enum { LOST_CRASHED, LOST_FLOODED, LOST_HUNG } loss;

static void settle(batch *b, worker *w, loss what, const char *how)
{
    const settings *o = b->p->o;
    if (w->is_owing) { /* its question has its verdict already */
        w->n_asked = 0;
        w->is_owing = false;
        return;
    }
    bool single = w->n_asked == 1;
    for (int i = w->n_asked; i-- > 0;) {
        size_t index = w->asked[i].index;
        tp_reward *r = &b->verdicts[index];
        if (!single) {
            put_back(b, index, true);
        } else if (what == LOST_CRASHED && b->tries[index]++ < o->retries) {
            put_back(b, index, false);
        } else {
            tp_reward_exclude(r,
                              what == LOST_CRASHED   ? TP_REWARD_CRASHED
                              : what == LOST_FLOODED ? TP_REWARD_NONSENSE
                                                     : TP_REWARD_TIMEOUT,
                              "%s", how);
            decide(b, index);
        }
    }
    w->n_asked = 0;
}

static double back_off(const pool *p)
{
    int doubled = (int)TP_MIN(p->failures - 1, (int64_t)10);
    return p->failures > 1
               ? fmin(p->o->backoff * ldexp(1, doubled - 1), fmax(LONGEST_BACKOFF_S, p->o->backoff))
               : 0;
}

static void lose(batch *b, worker *w, loss what, const char *reason)
{
    pool *p = b->p;
    char how[64] = "", words[200], text[320];
    bool killed = what != LOST_CRASHED;
    tp_process_stop(&w->process, killed ? 0 : DEATH_PATIENCE_MS, how);
    tp_process_last_words(&w->process, words);
    if (killed)
        p->counts.killed++;
    else
        p->counts.died++;
    snprintf(text, sizeof text, "%s%s%s%s%s", reason, killed ? "" : ": ", killed ? "" : how,
             words[0] ? "; it said: " : "", words);
    snprintf(p->last_loss, sizeof p->last_loss, "%s", text);
    tp_log(TP_LOG_DEBUG, "env", "%s: %s", p->name, text);
    bool was_idle = w->n_asked == 0;
    settle(b, w, what, text);
    /* A program that answers and ends between questions has not failed. */
    if (!was_idle || w->n_bytes)
        p->failures++;
    if (p->failures == 1 && !p->has_judged)
        say(p, "%s; it is started again, %lld times at most", text, (long long)p->o->max_failures);
    w->restart_at = tp_clock_s() + back_off(p);
}

/* ---- answers ---- */

static int find_question(const worker *w, int64_t id)
{
    for (int i = 0; i < w->n_asked; i++)
        if (w->asked[i].id == id)
            return i;
    return -1;
}

static void take_verdict(batch *b, worker *w, int place, tp_reward *verdict)
{
    size_t index = w->asked[place].index;
    w->asked[place] = w->asked[--w->n_asked];
    tp_reward_release(&b->verdicts[index]);
    b->verdicts[index] = *verdict;
    *verdict = (tp_reward){0};
    decide(b, index);
    w->deadline = tp_clock_s() + b->p->o->timeout;
}

static void count_progress(batch *b, worker *w)
{
    b->p->failures = 0;
    b->p->has_judged = true;
    w->n_stray = w->n_bytes = 0;
}

/* An answer to a question that was given up, or to none. */
static void take_stray(batch *b, worker *w, int64_t id)
{
    w->n_stray++;
    w->stray_id = w->is_owing ? w->stray_id : id;
    if (id != TP_PROGRAM_NO_ID && id < b->p->next_id)
        b->p->counts.late_answers++;
    if (w->is_owing && id == w->asked[0].id) {
        w->is_owing = false;
        w->n_asked = 0;
        count_progress(b, w);
    }
}

/* False when the worker had to be given up. */
static bool hear(batch *b, worker *w, tp_slice line)
{
    TP_FREED tp_reward *verdict = tp_rewards_new(1);
    int64_t id = tp_program_line_read(line, verdict);
    int place = w->is_owing ? -1 : find_question(w, id);
    bool fine = true;
    if (place >= 0) {
        take_verdict(b, w, place, verdict);
        count_progress(b, w);
    } else if (id == TP_PROGRAM_NO_ID && !w->is_owing && w->n_asked == 1) {
        take_verdict(b, w, 0, verdict); /* no id: it can only mean the one question */
        w->n_stray++;
    } else if (id == TP_PROGRAM_NO_ID && w->n_asked > 1) {
        lose(b, w, LOST_FLOODED, verdict->why);
        fine = false;
    } else {
        take_stray(b, w, id);
    }
    tp_reward_release(verdict);
    return fine;
}

/* Everything that has arrived. */
static void hear_all(batch *b, worker *w)
{
    size_t most = (size_t)b->p->o->max_line_bytes;
    bool too_long = false;
    tp_slice line;
    while (w->process.pid > 0 && !too_long && tp_process_line(&w->process, &line)) {
        too_long = line.len > most;
        if (!too_long && line.len && !hear(b, w, line))
            return;
    }
    if (w->process.pid <= 0)
        return;
    if (too_long || tp_process_pending(&w->process) > most)
        lose(b, w, LOST_FLOODED, "it floods: a line longer than max_line_bytes");
    else if (w->n_stray > MAX_STRAY_LINES)
        lose(b, w, LOST_FLOODED, "it floods: lines that answer nothing");
    else if (w->n_bytes > FLOOD_LINES * most)
        lose(b, w, LOST_FLOODED, "it floods: too many bytes without a verdict");
    else if (w->process.at_end)
        lose(b, w, LOST_CRASHED, "the program ended");
}

/* ---- the loop ---- */

static void check_deadline(batch *b, worker *w, double now)
{
    char reason[160];
    if (w->process.pid <= 0 || w->n_asked == 0 || now < w->deadline)
        return;
    int n = snprintf(reason, sizeof reason, "no answer within %g s", b->p->o->timeout);
    if (w->stray_id != TP_PROGRAM_NO_ID)
        snprintf(reason + n, sizeof reason - (size_t)n,
                 " to question %lld; it answered \"id\": %lld, which nobody asked",
                 (long long)w->asked[0].id, (long long)w->stray_id);
    w->stray_id = TP_PROGRAM_NO_ID;
    if (w->is_owing || w->n_asked > 1) {
        lose(b, w, LOST_HUNG, reason);
        return;
    }
    size_t index = w->asked[0].index;
    tp_reward_exclude(&b->verdicts[index], TP_REWARD_TIMEOUT, "%s", reason);
    decide(b, index);
    w->is_owing = true;
    w->deadline = now + b->p->o->grace;
}

static void revive(batch *b, worker *w, double now)
{
    tp_error why = {0};
    if (w->process.pid > 0 || b->n_waiting == 0 || now < w->restart_at)
        return;
    if (start(b->p, w, &why) == TP_OK)
        return;
    snprintf(b->p->last_loss, sizeof b->p->last_loss, "%.300s", why.message);
    b->p->failures++;
    w->restart_at = now + fmax(back_off(b->p), 0.01);
}

/* Milliseconds until something is due. */
static int time_left(const batch *b, double now)
{
    double first = now + 3600;
    for (size_t i = 0; i < b->p->n_workers; i++) {
        const worker *w = &b->p->workers[i];
        if (w->process.pid > 0 && w->n_asked)
            first = fmin(first, w->deadline);
        else if (w->process.pid <= 0 && b->n_waiting)
            first = fmin(first, w->restart_at);
    }
    if (b->p->watch && b->p->watch->should_stop)
        first = fmin(first, now + ASK_WATCH_S);
    return first <= now ? 0 : (int)ceil((first - now) * 1000);
}

static bool is_hopeless(const pool *p) { return p->failures >= p->o->max_failures; }

static void listen_once(batch *b)
{
    pool *p = b->p;
    for (size_t i = 0; i < p->n_workers; i++)
        tp_process_poll(&p->workers[i].process, p->fds + i * TP_PROCESS_FDS);
    /* Of before listening: an answer that lay there in time counts, however late it is read. */
    double now = tp_clock_s();
    (void)poll(p->fds, p->n_workers * TP_PROCESS_FDS, time_left(b, now));
    for (size_t i = 0; i < p->n_workers && !is_hopeless(p); i++) {
        worker *w = &p->workers[i];
        if (w->process.pid <= 0)
            continue;
        w->n_bytes += tp_process_pump(&w->process, p->fds + i * TP_PROCESS_FDS);
        hear_all(b, w);
    }
    for (size_t i = 0; i < p->n_workers; i++)
        check_deadline(b, &p->workers[i], now);
}

static tp_status give_up(batch *b)
{
    pool *p = b->p;
    end_programs(p, 0);
    return tp_fail(b->err, TP_ERR_IO,
                   "env.%s: '%.100s' was lost %lld times in a row without one verdict; the last "
                   "time: %s",
                   p->name, p->o->command.v[0], (long long)p->failures, p->last_loss);
}

/* Whoever asks to stop is told what that waits for. */
static tp_status stop(batch *b)
{
    pool *p = b->p;
    int busy = 0;
    for (size_t i = 0; i < p->n_workers; i++)
        busy += p->workers[i].process.pid > 0 && p->workers[i].n_asked > 0;
    say(p, "stopping: %d of its programs %s over a question and %s %g s to end, then killed", busy,
        busy == 1 ? "is" : "are", busy == 1 ? "has" : "have", 1e-3 * STOP_GRACE_MS);
    end_programs(p, STOP_GRACE_MS);
    return tp_fail(b->err, TP_ERR_INTERRUPTED, "stopped while answers were judged");
}

static void say_what_lasts(batch *b, double begin, double now)
{
    if (b->has_said || now - begin < SAY_AFTER_S)
        return;
    b->has_said = true;
    say(b->p, "waiting for '%.100s' since %.0f s, %zu of %zu answers are judged (timeout %g s)",
        b->p->o->command.v[0], now - begin, b->n_done, b->n, b->p->o->timeout);
}

static tp_status judge(batch *b)
{
    pool *p = b->p;
    double begin = tp_clock_s();
    while (b->n_done < b->n) {
        double now = tp_clock_s();
        if (p->watch && p->watch->should_stop && p->watch->should_stop(p->watch->user))
            return stop(b);
        say_what_lasts(b, begin, now);
        for (size_t i = 0; i < p->n_workers; i++) {
            revive(b, &p->workers[i], now);
            feed(b, &p->workers[i]);
        }
        listen_once(b);
        if (is_hopeless(p))
            return give_up(b);
    }
    return TP_OK;
}

/* Writing to a program that is gone raises SIGPIPE, which is nobody's business: it is
 * blocked here, and taken away if it came. */
static tp_status judge_without_sigpipe(batch *b)
{
    sigset_t pipe_signal, before, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    tp_status status = judge(b);
    if (!sigismember(&before, SIGPIPE)) {
        if (sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE))
            (void)sigtimedwait(&pipe_signal, NULL, &(struct timespec){0});
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return status;
}

static tp_status score_all(const void *settings_, void *state, const tp_completion *completions,
                           size_t n, tp_reward *ret, tp_error *err)
{
    (void)settings_; /* the pool has them */
    batch b = {.p = state, .completions = completions, .verdicts = ret, .n = n, .err = err};
    b.waiting = tp_new(n + 1, sizeof *b.waiting);
    b.tries = tp_new(n + 1, sizeof *b.tries);
    b.alone = tp_new(n + 1, sizeof *b.alone);
    b.done = tp_new(n + 1, sizeof *b.done);
    for (size_t i = n; i-- > 0;)
        b.waiting[b.n_waiting++] = i;
    tp_status status = judge_without_sigpipe(&b);
    free(b.waiting);
    free(b.tries);
    free(b.alone);
    free(b.done);
    return status;
}

static tp_environment_counts get_counts(const void *state) { return ((const pool *)state)->counts; }

const tp_environment_kind tp_env_program = {
    .name = "program",
    .doc = "Judged by a program that speaks one JSON object per line.",
    .is_outside = true,
    .settings = {rows, TP_COUNTOF(rows), sizeof(settings)},
    .open = open_pool,
    .close = close_pool,
    .score_all = score_all,
    .counts = get_counts};
