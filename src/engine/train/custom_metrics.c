/* custom_metrics.c - readings of this process and of accelerators, and what they come to over a
 * run. */
#include "engine/train/custom_metrics.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/limits.h"
#include "base/platform.h"

const char *tp_custom_name(tp_custom_metric metric)
{
    static const char *const names[TP_CUSTOM_METRICS] = {"system/processor_utilization",
                                                         "system/accelerator_utilization",
                                                         "system/accelerator_used_bytes",
                                                         "memory/resident_bytes",
                                                         "memory/allocated_bytes",
                                                         "train/batch_size",
                                                         "train/data_tokens",
                                                         "train/padding_ratio",
                                                         "train/lr",
                                                         "model/parameters"};
    return names[metric];
}

void tp_custom_note(tp_custom_metrics *c, tp_custom_metric metric, double value)
{
    tp_custom_stat *s = &c->stats[metric];
    if (isnan(value))
        return;
    s->most = s->n ? TP_MAX(s->most, value) : value;
    s->n++;
    s->sum += value;
    s->last = value;
}

/* What the scheduler counts of one thread: "nanoseconds on a processor, nanoseconds ready and
 * waiting for one, times". */
static double waited_of(const char *thread)
{
    char path[320];
    double waited = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread);
    FILE *f = fopen(path, "r");
    if (!f)
        return NAN;
    bool read = fscanf(f, "%*f %lf", &waited) == 1;
    fclose(f);
    return read ? waited * 1e-9 : NAN;
}

/* Seconds for which threads of the process were ready and waited for a processor. */
static double waited_seconds(void)
{
    DIR *threads = opendir("/proc/self/task");
    double sum = 0;
    for (struct dirent *e = threads ? readdir(threads) : NULL; e; e = readdir(threads))
        if (e->d_name[0] != '.')
            sum += waited_of(e->d_name);
    if (!threads)
        return NAN;
    closedir(threads);
    return sum;
}

/* Threads of a team wait for each other: what one of them lacks a processor for is lost by all, and
 * no more is lost than they were off their processors. */
static double own_share(double waited, double wall, double busy)
{
    return isnan(waited) || waited < 0 ? NAN : fmin(fmax(1 - waited / wall, busy), 1);
}

void tp_custom_note_process(tp_custom_metrics *c, int threads)
{
    double cpu = tp_process_cpu_s(), waited = waited_seconds(), wall = tp_clock_s();
    c->own_share = NAN;
    if (c->wall_s > 0 && wall > c->wall_s) {
        double s = wall - c->wall_s, busy = (cpu - c->cpu_s) / (s * (double)threads);
        tp_custom_note(c, TP_CUSTOM_PROCESSOR, busy);
        c->own_share = own_share(waited - c->waited_s, s, busy);
    }
    c->cpu_s = cpu;
    c->waited_s = waited;
    c->wall_s = wall;
    tp_custom_note(c, TP_CUSTOM_RESIDENT, tp_limits_resident());
    tp_accelerator_state accelerator = tp_accelerator_read();
    tp_custom_note(c, TP_CUSTOM_ACCELERATOR, accelerator.utilization);
    tp_custom_note(c, TP_CUSTOM_ACCELERATOR_MEMORY, accelerator.used_bytes);
    c->accelerator_why = accelerator.why;
}

const char *tp_custom_why(const tp_custom_metrics *c, tp_custom_metric metric)
{
    bool is_told = metric == TP_CUSTOM_ACCELERATOR || metric == TP_CUSTOM_ACCELERATOR_MEMORY;
    return is_told && c->stats[metric].n == 0 ? c->accelerator_why : NULL;
}

void tp_custom_write(const tp_custom_metrics *c, tp_json_w *w)
{
    tp_json_w_begin(w, '{');
    for (int m = 0; m < TP_CUSTOM_METRICS; m++) {
        const tp_custom_stat *s = &c->stats[m];
        const char *why = tp_custom_why(c, (tp_custom_metric)m);
        if (s->n == 0 && !why)
            continue;
        bool is_known = s->n > 0;
        tp_json_w_put_begin(w, tp_custom_name((tp_custom_metric)m), '{');
        tp_json_w_put_known(w, "mean", is_known ? s->sum / (double)s->n : NAN);
        tp_json_w_put_known(w, "max", is_known ? s->most : NAN);
        tp_json_w_put_known(w, "last", is_known ? s->last : NAN);
        tp_json_w_put_i64(w, "n", (int64_t)s->n);
        if (why)
            tp_json_w_put_str(w, "why", why);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, '}');
}

/* ---- accelerators: NVML by its own names, loaded once, asked once a step ---- */

/* NVML's binary interface, version 2 of the functions that have one. */
typedef void *device;
typedef struct {
    unsigned gpu, memory; /* percent of the last sampling period */
} utilization;
typedef struct {
    unsigned long long total, available, used;
} memory_info;

static struct {
    int (*init)(void);
    int (*count)(unsigned *ret);
    int (*handle)(unsigned index, device *ret);
    int (*utilization)(device device, utilization *ret);
    int (*memory)(device device, memory_info *ret);
    unsigned n;
    const char *why;
} nvml;

static void attach(void)
{
    static const tp_library_function functions[] = {
        {"nvmlInit_v2", &nvml.init},
        {"nvmlDeviceGetCount_v2", &nvml.count},
        {"nvmlDeviceGetHandleByIndex_v2", &nvml.handle},
        {"nvmlDeviceGetUtilizationRates", &nvml.utilization},
        {"nvmlDeviceGetMemoryInfo", &nvml.memory}};
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    nvml.why = "no NVML";
    if (!library)
        return;
    nvml.why = "NVML lacks a function";
    if (!tp_library_find(library, functions, TP_COUNTOF(functions)))
        return;
    nvml.why = "NVML does not start";
    if (nvml.init() != 0 || nvml.count(&nvml.n) != 0)
        return;
    nvml.why = nvml.n ? NULL : "NVML knows no device";
}

tp_accelerator_state tp_accelerator_read(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach);
    tp_accelerator_state s = {.utilization = (double)NAN,
                              .used_bytes = (double)NAN,
                              .total_bytes = (double)NAN,
                              .why = nvml.why};
    double share = 0, used = 0, total = 0;
    int n_shares = 0, n_memories = 0;
    for (unsigned i = 0; i < nvml.n && !nvml.why; i++) {
        device d;
        utilization u;
        memory_info m;
        if (nvml.handle(i, &d) != 0)
            continue;
        s.n++;
        if (nvml.utilization(d, &u) == 0 && u.gpu <= 100) {
            share += u.gpu / 100.0;
            n_shares++;
        }
        if (nvml.memory(d, &m) == 0) {
            used += (double)m.used;
            total += (double)m.total;
            n_memories++;
        }
    }
    if (n_shares)
        s.utilization = share / n_shares;
    if (n_memories) {
        s.used_bytes = used;
        s.total_bytes = total;
    }
    if (!s.why && !(n_shares && n_memories))
        s.why = "the devices do not tell";
    return s;
}
