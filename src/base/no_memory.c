/* no_memory.c - the guards of each thread, innermost first, and the way back to them. */
#include "base/no_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/working.h"

static _Thread_local tp_memory_guard *innermost;

void tp_memory_guard_enter(tp_memory_guard *guard, tp_error *err)
{
    guard->outer = innermost;
    guard->err = err;
    innermost = guard;
}

void tp_memory_guard_leave(tp_memory_guard *guard) { innermost = guard->outer; }

void tp_no_memory_because(const char *sentence)
{
    tp_memory_guard *guard = innermost;
    if (!guard) {
        fprintf(stderr, "temper: %s\n", sentence);
        _exit(5);
    }
    innermost = guard->outer;
    tp_work_forget();
    (void)tp_fail(guard->err, TP_ERR_NOMEM, "%s", sentence);
    longjmp(guard->jump, 1);
}

void tp_no_memory(size_t bytes)
{
    struct rlimit r;
    bool limited = getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY;
    char size[40] = "", sentence[200];
    if (bytes)
        snprintf(size, sizeof size, " for %zu bytes", bytes);
    snprintf(sentence, sizeof sentence, "no memory%s: the system has none left%s", size,
             limited ? "; the address space is limited (RLIMIT_AS, ulimit -v)" : "");
    tp_no_memory_because(sentence);
}

void *tp_new(size_t n, size_t size)
{
    void *items = calloc(n ? n : 1, size);
    if (!items)
        tp_no_memory(n * size);
    return items;
}

void *tp_grow(void *old, size_t n, size_t size)
{
    void *items = reallocarray(old, n ? n : 1, size);
    size_t bytes;
    if (!items)
        tp_no_memory(__builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes);
    return items;
}

char *tp_strdup(const char *text) { return text ? tp_strndup(text, strlen(text)) : NULL; }

char *tp_strndup(const char *text, size_t n)
{
    char *copy = text ? strndup(text, n) : NULL;
    TP_HAVE(copy || !text);
    return copy;
}
