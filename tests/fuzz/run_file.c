/* run_file.c - what the targets of readers of runs share. */
#include "run_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temper/analysis.h"

static char folder[64];

static void clean(void) { rmdir(folder); }

static const char *own_folder(void)
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

static bool count_bytes(void *user, const char *text, size_t n)
{
    (void)text;
    *(size_t *)user += n;
    return true;
}

static void look(tp_metrics *m)
{
    tp_error err = {0};
    bool changed;
    size_t n = 0;
    for (int view = TP_POINTS_NATIVE; view <= TP_POINTS_FAST; view++)
        if (tp_metrics_write_json(m, (tp_points_view)view, NULL, 0, count_bytes, &n, &err) != TP_OK)
            abort();
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        const tp_metric_point *p;
        (void)tp_metrics_curve(m, i, &p);
    }
    if (tp_metrics_refresh(m, &changed, &err) == TP_OK && changed)
        abort(); /* nobody wrote */
}

static void open_path(const char *path)
{
    tp_metrics *m;
    tp_error err = {0};
    if (tp_metrics_open(path, NULL, &m, &err) == TP_OK) {
        look(m);
        tp_metrics_close(m);
    } else if (!err.message[0]) {
        abort();
    }
}

static void with_file(const char *name, const void *data, size_t size, bool as_folder)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", own_folder(), name);
    FILE *f = fopen(path, "wb");
    if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f) != 0)
        abort();
    open_path(as_folder ? folder : path);
    unlink(path);
}

void tp_fuzz_run_file(const char *name, const void *data, size_t size)
{
    with_file(name, data, size, false);
}

void tp_fuzz_run_folder(const char *name, const void *data, size_t size)
{
    with_file(name, data, size, true);
}
