#include "unit/engine/count_malloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/platform.h"

static _Atomic uint64_t count;

uint64_t malloc_count(void) { return atomic_load(&count); }

#if defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_OWN_MALLOC 1
#endif
#endif

#if defined(TP_ASAN) || defined(HAS_OWN_MALLOC) || !defined(__GLIBC__)

bool malloc_is_counted(void) { return false; }

#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void *malloc(size_t bytes);
void *calloc(size_t n, size_t bytes);
void *realloc(void *p, size_t bytes);
void *aligned_alloc(size_t align, size_t bytes);
void *memalign(size_t align, size_t bytes);
int posix_memalign(void **ret, size_t align, size_t bytes);

bool malloc_is_counted(void) { return true; }

void *malloc(size_t bytes)
{
    atomic_fetch_add(&count, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    atomic_fetch_add(&count, 1);
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    atomic_fetch_add(&count, 1);
    return __libc_realloc(p, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    atomic_fetch_add(&count, 1);
    return __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }

int posix_memalign(void **ret, size_t align, size_t bytes)
{
    *ret = memalign(align, bytes);
    return *ret ? 0 : ENOMEM;
}

#endif
