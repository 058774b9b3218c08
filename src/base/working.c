/* working.c - the listener of a thread, and the work that is told to it. */
#include "base/working.h"

#include <stdio.h>

#include "base/platform.h"

static _Thread_local tp_work_listener listener;
static _Thread_local tp_job *current;

tp_work_listener tp_work_listen(tp_work_listener next)
{
    tp_work_listener before = listener;
    listener = next;
    return before;
}

void tp_work_tell(const char *what, uint64_t done, uint64_t total)
{
    if (listener.hear)
        listener.hear(listener.user, what, done, total);
}

void tp_job_begin(tp_job *w, uint64_t total, const char *fmt, ...)
{
    *w = (tp_job){.total = total};
    TP_FORMAT(w->what, fmt);
    if (!current)
        current = w;
    tp_job_add(0);
}

void tp_job_release(tp_job *w)
{
    if (current == w)
        current = NULL;
}

void tp_job_add(uint64_t n)
{
    if (!current)
        return;
    current->done = current->total ? TP_MIN(current->done + n, current->total) : 0;
    tp_work_tell(current->what, current->done, current->total);
}

void tp_working_listen(tp_working *hear, void *user)
{
    (void)tp_work_listen((tp_work_listener){hear, user});
}

void tp_work_forget(void)
{
    listener = (tp_work_listener){0};
    current = NULL;
}
