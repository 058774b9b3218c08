/* files_noted.c - which files this process has read and written, by device and inode. */
#include <pthread.h>
#include <stdlib.h>

#include "base/files_internal.h"
#include "base/output.h"

typedef struct {
    dev_t device;
    ino_t inode;
    tp_file_use use;
} noted;

static struct {
    pthread_mutex_t mutex;
    bool is_on;
    noted *files;
    size_t n, cap;
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void tp_outputs_watch(void) { watch.is_on = true; }

static noted *find_noted(const struct stat *st)
{
    for (size_t i = 0; i < watch.n; i++)
        if (watch.files[i].inode == st->st_ino && watch.files[i].device == st->st_dev)
            return &watch.files[i];
    return NULL;
}

void tp_files_note(const struct stat *st, tp_file_use use)
{
    if (!watch.is_on || !S_ISREG(st->st_mode))
        return;
    pthread_mutex_lock(&watch.mutex);
    noted *file = find_noted(st);
    if (!file && watch.n == watch.cap) {
        size_t cap = watch.cap ? 2 * watch.cap : 64;
        noted *more = realloc(watch.files, cap * sizeof *more);
        if (!more)
            pthread_mutex_unlock(&watch.mutex);
        TP_HAVE(more);
        watch.files = more;
        watch.cap = cap;
    }
    if (!file)
        watch.files[watch.n++] = (noted){st->st_dev, st->st_ino, use};
    else
        file->use = use;
    pthread_mutex_unlock(&watch.mutex);
}

void tp_output_note_input(const char *path)
{
    struct stat st;
    if (watch.is_on && stat(path, &st) == 0)
        tp_files_note(&st, TP_FILE_READ);
}

tp_file_use tp_files_noted(const struct stat *st)
{
    pthread_mutex_lock(&watch.mutex);
    const noted *file = find_noted(st);
    tp_file_use use = file ? file->use : TP_FILE_UNKNOWN;
    pthread_mutex_unlock(&watch.mutex);
    return use;
}
