/* waiting.c - a thread that speaks of what goes on while the one at work does not. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

enum { PERIOD_S = 1, LINE = 512 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    char title[LINE];      /* as it began */
    char what[LINE];       /* what the library tells, or the line that was said; "": neither */
    double share;          /* of it; NaN: unknown */
    double begin_s, due_s; /* when it began, when to speak next */
    double since_s;        /* when `what` began */
    bool is_said, runs, is_over, is_terminal, is_drawn;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

double tp_cli_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- with the lock ---- */

static void erase(void)
{
    if (waiting.is_drawn)
        fprintf(stderr, "%s%s", tp_style(TP_LINE_BEGIN), tp_style(TP_LINE_ERASE));
    waiting.is_drawn = false;
    fflush(stderr);
}

static void put(const char *text)
{
    int room = tp_cli_error_width() - 1, n = (int)strlen(text);
    n = n < room ? n : room;
    while (n > 0 && (text[n] & 0xc0) == 0x80) /* within a character */
        n--;
    if (waiting.is_terminal)
        fprintf(stderr, "%s%.*s%s", tp_style(TP_LINE_BEGIN), n, text, tp_style(TP_LINE_ERASE));
    else
        fprintf(stderr, "%s\n", text);
    waiting.is_drawn = waiting.is_terminal;
    fflush(stderr);
}

/* "temper merge: writing out  34%  12.0 s, about 23.3 s to go" */
static void speak(void)
{
    char text[2 * LINE];
    const char *colon = strchr(waiting.title, ':');
    double now = tp_cli_clock_s();
    bool is_known = waiting.what[0] && colon;
    if (waiting.is_said) {
        if (waiting.what[0])
            put(waiting.what);
        return;
    }
    snprintf(text, sizeof text, "%.*s%s%s", is_known ? (int)(colon - waiting.title) : LINE,
             waiting.title, is_known ? ": " : "", is_known ? waiting.what : "");
    char *line = tp_working_text(text, is_known ? waiting.share : (double)NAN,
                                 now - (is_known ? waiting.since_s : waiting.begin_s));
    put(line);
    tp_free(line);
}

static void *tell(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.is_over) {
        struct timespec until = {.tv_sec = (time_t)waiting.due_s,
                                 .tv_nsec = (long)(1e9 * fmod(waiting.due_s, 1))};
        (void)pthread_cond_clockwait(&waiting.changed, &waiting.lock, CLOCK_MONOTONIC, &until);
        double now = tp_cli_clock_s();
        if (waiting.is_over || now < waiting.due_s)
            continue;
        speak();
        waiting.due_s = waiting.is_terminal
                            ? now + PERIOD_S
                            : waiting.begin_s + tp_working_next(now - waiting.begin_s);
    }
    erase();
    pthread_mutex_unlock(&waiting.lock);
    return NULL;
}

/* ---- */

/* Told often: the line changes when it is due. */
static void hear(void *unused, const char *what, uint64_t done, uint64_t total)
{
    (void)unused;
    pthread_mutex_lock(&waiting.lock);
    if (waiting.is_said) {
        pthread_mutex_unlock(&waiting.lock);
        return;
    }
    double share = total ? (double)done / (double)total : (double)NAN;
    if (strncmp(waiting.what, what, LINE - 1) != 0 || share < waiting.share) {
        snprintf(waiting.what, LINE, "%s", what);
        waiting.since_s = tp_cli_clock_s();
    }
    waiting.share = share;
    pthread_mutex_unlock(&waiting.lock);
}

void tp_waiting_begin(const char *what)
{
    if (waiting.runs)
        return;
    snprintf(waiting.title, LINE, "%s", what);
    waiting.what[0] = 0;
    waiting.share = NAN;
    waiting.begin_s = tp_cli_clock_s();
    waiting.due_s = waiting.begin_s + tp_working_next(0);
    waiting.is_over = waiting.is_said = false;
    waiting.is_terminal = tp_cli_terminal(stderr);
    sigset_t all,
        before; /* a signal is for the thread at work: it interrupts what that waits for */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    waiting.runs = pthread_create(&waiting.thread, NULL, tell, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (waiting.runs)
        tp_working_listen(hear, NULL);
}

void tp_waiting_say(const char *text)
{
    tp_waiting_begin("");
    pthread_mutex_lock(&waiting.lock);
    snprintf(waiting.what, LINE, "%s", text ? text : "");
    waiting.is_said = true;
    if (waiting.is_terminal && waiting.what[0])
        put(waiting.what);
    else
        erase();
    pthread_mutex_unlock(&waiting.lock);
}

void tp_waiting_end(void)
{
    if (!waiting.runs)
        return;
    tp_working_listen(NULL, NULL);
    pthread_mutex_lock(&waiting.lock);
    waiting.is_over = true;
    pthread_cond_signal(&waiting.changed);
    pthread_mutex_unlock(&waiting.lock);
    pthread_join(waiting.thread, NULL);
    waiting.runs = false;
}

void tp_cli_note(void *user, const char *text)
{
    (void)user;
    pthread_mutex_lock(&waiting.lock);
    erase();
    fprintf(stderr, "note: %s\n", text);
    pthread_mutex_unlock(&waiting.lock);
}
