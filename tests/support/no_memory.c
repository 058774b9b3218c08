/* no_memory.c - loaded by LD_PRELOAD: one allocation of the program fails.
 *
 * TEMPER_TEST_ALLOCATION is the number of it, from 1; 0 only counts.  Those that the program's own
 * code asks for are counted, not those of the libraries that it uses.  How many there were is
 * written to the file TEMPER_TEST_ALLOCATIONS names. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

static uintptr_t text_begin, text_end; /* of the program */
static long wanted = -1;
static atomic_long seen;
static pid_t self;

static int first_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_LOAD && h->p_flags & PF_X) {
            text_begin = info->dlpi_addr + h->p_vaddr;
            text_end = text_begin + h->p_memsz;
        }
    }
    return 1; /* the program comes first */
}

__attribute__((constructor)) static void read_wish(void)
{
    const char *wish = getenv("TEMPER_TEST_ALLOCATION");
    dl_iterate_phdr(first_object, NULL);
    self = getpid();
    wanted = wish ? strtol(wish, NULL, 10) : 0;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("TEMPER_TEST_ALLOCATIONS");
    int fd = path && getpid() == self ? open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600) : -1;
    if (fd >= 0) {
        dprintf(fd, "%ld\n", atomic_load(&seen));
        close(fd);
    }
}

static bool fails(void *from)
{
    uintptr_t at = (uintptr_t)from;
    if (wanted < 0 || at < text_begin || at >= text_end)
        return false;
    bool is_it = atomic_fetch_add(&seen, 1) + 1 == wanted;
    if (is_it)
        errno = ENOMEM;
    return is_it;
}

#define FAILS fails(__builtin_return_address(0))

SEEN void *malloc(size_t n) { return FAILS ? NULL : __libc_malloc(n); }
SEEN void *calloc(size_t n, size_t size) { return FAILS ? NULL : __libc_calloc(n, size); }
SEEN void *realloc(void *old, size_t n) { return FAILS ? NULL : __libc_realloc(old, n); }
SEEN void *aligned_alloc(size_t align, size_t n)
{
    return FAILS ? NULL : __libc_memalign(align, n);
}

SEEN void *reallocarray(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (FAILS || __builtin_mul_overflow(n, size, &bytes))
        return NULL;
    return __libc_realloc(old, bytes);
}

static char *copy(const char *s, size_t n)
{
    char *own = __libc_malloc(n + 1);
    if (own) {
        memcpy(own, s, n);
        own[n] = 0;
    }
    return own;
}

SEEN char *strdup(const char *s) { return FAILS ? NULL : copy(s, strlen(s)); }
SEEN char *strndup(const char *s, size_t n) { return FAILS ? NULL : copy(s, strnlen(s, n)); }

SEEN void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (flags & MAP_ANONYMOUS && FAILS)
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}
