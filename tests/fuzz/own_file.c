/* own_file.c - bytes as a file, for targets of readers that want a path. */
#include "own_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void clean(void) { rmdir(folder); }

const char *tp_fuzz_folder(void)
{
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/temper-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(folder))
            abort();
        atexit(clean);
    }
    return folder;
}

const char *tp_fuzz_file(const char *name, const void *data, size_t size)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", tp_fuzz_folder(), name);
    FILE *f = fopen(path, "wb");
    if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f) != 0)
        abort();
    return path;
}
