/* waiting.c - a thread that sleeps until a computation is long enough to speak of. */

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

enum { SILENT_S = 10 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_t thread;
    const char *what;
    double begin_s;
    bool runs, is_over;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

double tp_cli_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *tell(void *unused)
{
    struct timespec until;
    bool has_told = false;
    (void)unused;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SILENT_S;
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.is_over) {
        if (pthread_cond_timedwait(&waiting.ended, &waiting.lock, &until) == 0)
            continue;
        fprintf(stderr, "%s%s, %.0f s%s", tp_style(TP_LINE_BEGIN), waiting.what,
                tp_cli_clock_s() - waiting.begin_s, tp_style(TP_LINE_ERASE));
        fflush(stderr);
        has_told = true;
        until.tv_sec++;
    }
    pthread_mutex_unlock(&waiting.lock);
    if (has_told)
        fprintf(stderr, "%s%s", tp_style(TP_LINE_BEGIN), tp_style(TP_LINE_ERASE));
    fflush(stderr);
    return NULL;
}

void tp_waiting_begin(const char *what)
{
    if (waiting.runs || !isatty(STDERR_FILENO))
        return;
    waiting.what = what;
    waiting.begin_s = tp_cli_clock_s();
    waiting.is_over = false;
    sigset_t all,
        before; /* a signal is for the thread at work: it interrupts what that waits for */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    waiting.runs = pthread_create(&waiting.thread, NULL, tell, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tp_waiting_end(void)
{
    if (!waiting.runs)
        return;
    pthread_mutex_lock(&waiting.lock);
    waiting.is_over = true;
    pthread_cond_signal(&waiting.ended);
    pthread_mutex_unlock(&waiting.lock);
    pthread_join(waiting.thread, NULL);
    waiting.runs = false;
}
