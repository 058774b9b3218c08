/* run_file.c - what the targets of readers of runs share. */
#include "run_file.h"

#include <stdlib.h>
#include <unistd.h>

#include "own_file.h"
#include "temper/analysis.h"

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

void tp_fuzz_run_file(const char *name, const void *data, size_t size)
{
    const char *path = tp_fuzz_file(name, data, size);
    open_path(path);
    unlink(path);
}

void tp_fuzz_run_folder(const char *name, const void *data, size_t size)
{
    const char *path = tp_fuzz_file(name, data, size);
    open_path(tp_fuzz_folder());
    unlink(path);
}
