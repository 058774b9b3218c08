#include "base/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/platform.h"

/* Under AddressSanitizer the bytes after the last object are out of bounds.  Only the
 * next few: poisoning the whole reservation would touch an eighth of its size. */
enum { GUARD = 4096 };

static void guard(tp_arena *arena)
{
    arena->high = TP_MAX(arena->high, arena->used);
    TP_POISON(arena->base + arena->used, TP_MIN((size_t)GUARD, arena->reserved - arena->used));
}

tp_status tp_arena_init(tp_arena *arena, size_t reserve, tp_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    reserve = (reserve + page - 1) / page * page;
    void *base = mmap(NULL, reserve, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return tp_fail(err, TP_ERR_NOMEM, "cannot reserve %zu bytes of address space: %s", reserve,
                       strerror(errno));
    *arena = (tp_arena){.base = base, .reserved = reserve};
    guard(arena);
    return TP_OK;
}

void tp_arena_release(tp_arena *arena)
{
    if (!arena || !arena->base)
        return;
    TP_UNPOISON(arena->base, TP_MIN(arena->high + GUARD, arena->reserved));
    munmap(arena->base, arena->reserved);
    *arena = (tp_arena){0};
}

static _Noreturn void exhausted(size_t count, size_t size, size_t reserved)
{
    fprintf(stderr, "temper: out of arena memory: %zu objects of %zu bytes, %zu bytes reserved\n",
            count, size, reserved);
    abort();
}

void *tp_arena_alloc(tp_arena *arena, size_t count, size_t size, size_t align)
{
    size_t bytes, start, end;
    start = (arena->used + align - 1) & ~(align - 1);
    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(start, bytes, &end) ||
        end > arena->reserved)
        exhausted(count, size, arena->reserved);
    /* Pages past the high-water mark are zero already; rewound ones are not,
     * so rewind clears what it gives back. */
    TP_UNPOISON(arena->base + start, bytes);
    arena->used = end;
    guard(arena);
    return arena->base + start;
}

void *tp_arena_try_alloc(tp_arena *arena, size_t count, size_t size, size_t align)
{
    size_t room = arena->reserved - arena->used, bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > room || room - bytes < align)
        return NULL;
    return tp_arena_alloc(arena, count, size, align);
}

char *tp_arena_strndup(tp_arena *arena, const char *s, size_t n)
{
    char *copy = tp_arena_array(arena, char, n + 1);
    if (n)
        memcpy(copy, s, n);
    return copy;
}

char *tp_arena_strdup(tp_arena *arena, const char *s)
{
    return tp_arena_strndup(arena, s, strlen(s));
}

char *tp_arena_printf(tp_arena *arena, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    TP_ASSERT(n >= 0);
    char *s = tp_arena_array(arena, char, n + 1);
    va_start(ap, fmt);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}

size_t tp_arena_mark(const tp_arena *arena) { return arena->used; }

void tp_arena_rewind(tp_arena *arena, size_t mark)
{
    TP_ASSERT(mark <= arena->used);
    TP_UNPOISON(arena->base + mark, arena->used - mark);
    memset(arena->base + mark, 0, arena->used - mark);
    TP_POISON(arena->base + mark, arena->used - mark);
    arena->used = mark;
}
