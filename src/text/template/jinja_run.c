/* jinja_run.c - what bounds a rendering: memory, turns of work, depth; and how it fails. */
#include "text/template/jinja_run.h"

#include <stdarg.h>
#include <stdio.h>

static tp_status fail(tp_jinja_run *run, tp_status status, const char *fmt, va_list ap)
{
    char message[900];
    vsnprintf(message, sizeof message, fmt, ap);
    return tp_fail(run->err, status, "%s:%u: %s", run->template->name, (unsigned)run->line,
                   message);
}

tp_status tp_jinja_fail(tp_jinja_run *run, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tp_status status = fail(run, TP_ERR_FORMAT, fmt, ap);
    va_end(ap);
    return status;
}

tp_status tp_jinja_unsupported(tp_jinja_run *run, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tp_status status = fail(run, TP_ERR_UNSUPPORTED, fmt, ap);
    va_end(ap);
    return status;
}

/* A limit is final: no filter may put its failure off. */
static tp_status exhausted(tp_jinja_run *run, const char *fmt, ...) TP_PRINTF(2, 3);

static tp_status exhausted(tp_jinja_run *run, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tp_status status = fail(run, TP_ERR_FORMAT, fmt, ap);
    va_end(ap);
    run->is_exhausted = true;
    return status;
}

tp_status tp_jinja_take(tp_jinja_run *run, size_t count, size_t size, void **ret)
{
    size_t bytes = 0, align = size == 1 ? 1 : 16;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > run->max_memory ||
        tp_arena_mark(&run->arena) + bytes > run->max_memory)
        return exhausted(run, "rendering needs more than %zu bytes of memory", run->max_memory);
    *ret = tp_arena_alloc(&run->arena, count, size, align);
    return TP_OK;
}

tp_status tp_jinja_charge(tp_jinja_run *run, uint64_t n)
{
    run->n_turns += n;
    if (run->n_turns > run->max_turns)
        return exhausted(run, "rendering takes more than %llu steps",
                         (unsigned long long)run->max_turns);
    return TP_OK;
}

tp_status tp_jinja_enter(tp_jinja_run *run)
{
    if (++run->depth > TP_JINJA_MAX_DEPTH)
        return exhausted(run, "expressions, blocks and macros nest deeper than %d",
                         TP_JINJA_MAX_DEPTH);
    return TP_OK;
}

void tp_jinja_leave(tp_jinja_run *run) { run->depth--; }
