/* jinja_run.c - what bounds a rendering: memory, turns of work, depth; and how it fails. */
#include "text/template/jinja_run.h"

#include <stdio.h>
#include <string.h>

enum { MOST_MESSAGE = 900 };

static _Noreturn void fail(tp_jinja_run *run, tp_status status, const char *message)
{
    (void)tp_fail(&run->failure, status, "%s:%u: %s", run->template->name, (unsigned)run->line,
                  message);
    longjmp(*run->failed, 1);
}

void tp_jinja_fail(tp_jinja_run *run, const char *fmt, ...)
{
    char message[MOST_MESSAGE];
    TP_FORMAT(message, fmt);
    fail(run, TP_ERR_FORMAT, message);
}

void tp_jinja_unsupported(tp_jinja_run *run, const char *fmt, ...)
{
    char message[MOST_MESSAGE];
    TP_FORMAT(message, fmt);
    fail(run, TP_ERR_UNSUPPORTED, message);
}

void *tp_jinja_take(tp_jinja_run *run, size_t count, size_t size)
{
    size_t bytes = 0, align = size == 1 ? 1 : 16;
    run->is_exhausted = __builtin_mul_overflow(count, size, &bytes) || bytes > run->max_memory ||
                        tp_arena_mark(&run->arena) + bytes > run->max_memory;
    if (run->is_exhausted)
        tp_jinja_fail(run, "rendering needs more than %zu bytes of memory", run->max_memory);
    return tp_arena_alloc(&run->arena, count, size, align);
}

void *tp_jinja_room(tp_jinja_run *run, void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return items;
    *cap = 2 * *cap + 4;
    void *more = tp_jinja_take(run, *cap, size);
    return n ? memcpy(more, items, n * size) : more;
}

void tp_jinja_charge(tp_jinja_run *run, uint64_t n)
{
    run->n_turns += n;
    run->is_exhausted = run->n_turns > run->max_turns;
    if (run->is_exhausted)
        tp_jinja_fail(run, "rendering takes more than %llu steps",
                      (unsigned long long)run->max_turns);
}

void tp_jinja_enter(tp_jinja_run *run)
{
    run->is_exhausted = ++run->depth > TP_JINJA_MAX_DEPTH;
    if (run->is_exhausted)
        tp_jinja_fail(run, "expressions, blocks and macros nest deeper than %d",
                      TP_JINJA_MAX_DEPTH);
}
