/* arena.c - objects in blocks that grow, kept after a rewind. */
#include "base/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/no_memory.h"
#include "base/platform.h"

/* Under AddressSanitizer the bytes after the last object are out of bounds.  Only the
 * next few: poisoning a whole block would touch an eighth of its size. */
enum { GUARD = 4096, FIRST_BLOCK = 64 << 10, LARGEST_BLOCK = 64 << 20 };

/* Bytes that stay out of bounds between two objects; not behind text, which grows in place
 * (tp_arena_room). */
#ifdef TP_ASAN
enum { RED_ZONE = 32 };
#else
enum { RED_ZONE = 0 };
#endif

/* Below what is mapped. */
struct tp_arena_block {
    tp_arena_block *before, *behind; /* behind: empty, kept for later */
    size_t mapped, room;             /* room: bytes for objects */
    size_t start;                    /* bytes of objects in the blocks before */
    size_t used, high;               /* used: when it was left */
};

static char *base_of(tp_arena_block *b) { return (char *)(b + 1); }

static void guard(tp_arena *arena)
{
    tp_arena_block *b = arena->block;
    b->high = TP_MAX(b->high, arena->used);
    arena->high = TP_MAX(arena->high, b->start + arena->used);
    TP_POISON(arena->base + arena->used, TP_MIN((size_t)GUARD, b->room - arena->used));
}

tp_status tp_arena_init(tp_arena *arena, size_t reserve, tp_error *err)
{
    if (reserve > (size_t)1 << 46)
        return tp_fail(err, TP_ERR_NOMEM, "cannot reserve %zu bytes of address space: %s", reserve,
                       strerror(ENOMEM));
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *arena = (tp_arena){.reserved = (reserve + page - 1) / page * page};
    return TP_OK;
}

/* Unmap a block and those behind it. */
static void unmap(tp_arena_block *b)
{
    while (b) {
        tp_arena_block *behind = b->behind;
        TP_UNPOISON(base_of(b), TP_MIN(b->high + GUARD, b->room));
        munmap(b, b->mapped);
        b = behind;
    }
}

void tp_arena_release(tp_arena *arena)
{
    if (!arena)
        return;
    tp_arena_block *first = arena->block;
    while (first && first->before)
        first = first->before;
    unmap(first);
    *arena = (tp_arena){0};
}

static _Noreturn void exhausted(size_t count, size_t size, size_t reserved)
{
    char sentence[160];
    snprintf(sentence, sizeof sentence,
             "no memory: %zu objects of %zu bytes do not fit in the %zu bytes that are set aside "
             "for their kind",
             count, size, reserved);
    tp_no_memory_because(sentence);
}

static tp_arena_block *map(size_t room)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped;
    if (__builtin_add_overflow(room, sizeof(tp_arena_block) + page - 1, &mapped))
        return NULL;
    mapped = mapped / page * page;
    tp_arena_block *b = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b == MAP_FAILED)
        return NULL;
    b->mapped = mapped;
    b->room = mapped - sizeof *b;
    return b;
}

/* Go on in a block with room for `bytes` at any alignment: the one behind, or a new one, each
 * twice the one before.  False when the system has none. */
static bool next_block(tp_arena *arena, size_t bytes, size_t align)
{
    tp_arena_block *old = arena->block, *b = old ? old->behind : NULL;
    size_t need = bytes + align, room = old ? 2 * old->room : FIRST_BLOCK;
    if (b && b->room < need) {
        unmap(b);
        old->behind = b = NULL;
    }
    if (!b) {
        room = TP_MIN(room, (size_t)LARGEST_BLOCK);
        b = map(TP_MAX(TP_MIN(room, arena->reserved + align), need));
        if (!b)
            return false;
        b->before = old;
        if (old)
            old->behind = b;
    }
    if (old)
        old->used = arena->used;
    b->start = old ? old->start + old->used : 0;
    arena->block = b;
    arena->base = base_of(b);
    arena->used = 0;
    return true;
}

/* Where an object would begin in the block; false when it does not fit there. */
static bool place(const tp_arena *arena, size_t bytes, size_t align, size_t *ret)
{
    if (!arena->block)
        return false;
    uintptr_t free = (uintptr_t)arena->base + arena->used;
    *ret = (size_t)(((free + align - 1) & ~(uintptr_t)(align - 1)) - (uintptr_t)arena->base);
    return *ret <= arena->block->room && bytes <= arena->block->room - *ret;
}

/* Pages past the high-water mark are zero already; rewound ones are not, so rewind clears what it
 * gives back.  NULL: *ret_over says whether it was over the reservation. */
static void *take(tp_arena *arena, size_t count, size_t size, size_t align, bool *ret_over)
{
    size_t bytes, start, taken = tp_arena_mark(arena);
    *ret_over = __builtin_mul_overflow(count, size, &bytes) ||
                bytes > arena->reserved - TP_MIN(taken, arena->reserved);
    if (*ret_over)
        return NULL;
    if (!place(arena, bytes, align, &start)) {
        if (!next_block(arena, bytes, align))
            return NULL;
        TP_ASSERT(place(arena, bytes, align, &start));
    }
    TP_UNPOISON(arena->base + start, bytes);
    arena->used = start + bytes;
    if (align > 1) {
        size_t zone = TP_MIN((size_t)RED_ZONE, arena->block->room - arena->used);
        TP_POISON(arena->base + arena->used, zone);
        arena->used += zone;
    }
    guard(arena);
    return arena->base + start;
}

void *tp_arena_alloc(tp_arena *arena, size_t count, size_t size, size_t align)
{
    bool over;
    void *memory = take(arena, count, size, align, &over);
    if (over)
        exhausted(count, size, arena->reserved);
    if (!memory)
        tp_no_memory(count * size);
    return memory;
}

void *tp_arena_try_alloc(tp_arena *arena, size_t count, size_t size, size_t align)
{
    bool over;
    void *memory = take(arena, count, size, align, &over);
    if (!memory && !over)
        tp_no_memory(count * size);
    return memory;
}

void *tp_arena_grow(tp_arena *arena, const void *v, size_t *cap, size_t size)
{
    size_t has = *cap;
    *cap = has ? 2 * has : 8;
    void *grown = tp_arena_alloc(arena, *cap, size, _Alignof(max_align_t));
    return has ? memcpy(grown, v, has * size) : grown;
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

size_t tp_arena_room(const tp_arena *arena)
{
    return arena->block ? arena->block->room - arena->used : 0;
}

size_t tp_arena_mark(const tp_arena *arena)
{
    return arena->block ? arena->block->start + arena->used : 0;
}

static void clear(tp_arena *arena, size_t from)
{
    size_t n = arena->used - from;
    TP_UNPOISON(arena->base + from, n);
    memset(arena->base + from, 0, n);
    TP_POISON(arena->base + from, n);
    arena->used = from;
}

void tp_arena_rewind(tp_arena *arena, size_t mark)
{
    TP_ASSERT(mark <= tp_arena_mark(arena));
    while (arena->block && arena->block->start > mark) {
        clear(arena, 0);
        arena->block = arena->block->before;
        arena->base = base_of(arena->block);
        arena->used = arena->block->used;
    }
    if (arena->block)
        clear(arena, mark - arena->block->start);
}
