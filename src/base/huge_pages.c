/* huge_pages.c - transparent huge pages of Linux: advised per buffer, as the system allows. */
#include "base/huge_pages.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/limits.h"

static atomic_bool is_used = true;
static atomic_int refusal; /* errno of the last madvise() that failed */

void tp_huge_pages_use(bool yes) { is_used = yes; }

void tp_huge_pages_ask(void *address, size_t bytes)
{
    if (is_used && madvise(address, bytes, MADV_HUGEPAGE) != 0)
        refusal = errno;
}

/* Before the first buffer nobody has been refused yet. */
static void try_once(void)
{
    enum { BYTES = 4 << 20 };
    void *m = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        return;
    if (madvise(m, BYTES, MADV_HUGEPAGE) != 0)
        refusal = errno;
    munmap(m, BYTES);
}

bool tp_huge_pages_refused(char *why, size_t size)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    char text[128] = "";
    FILE *f = tp_system_open(path);
    if (!f) {
        snprintf(why, size, "the kernel has none");
        return true;
    }
    bool is_read = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    if (is_read && strstr(text, "[never]")) {
        snprintf(why, size, "the kernel is set to never");
        return true;
    }
    try_once();
    if (refusal)
        snprintf(why, size, "madvise: %s", strerror(refusal));
    return refusal != 0;
}

double tp_huge_pages_in_use(void)
{
    char line[256];
    double kib = NAN;
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "AnonHugePages: %lf", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return 1024 * kib;
}
