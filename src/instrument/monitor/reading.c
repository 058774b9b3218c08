/* reading.c - the files of /proc and /sys that tell how a run fares. */
#include "instrument/monitor/reading.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/limits.h"
#include "temper/trace.h"

enum { PATH = 1024, MOST_FOUND = 4096 };

static const char *under_root(const char *path, char out[PATH])
{
    const char *root = getenv("TEMPER_SYSTEM_ROOT");
    int n = snprintf(out, PATH, "%s%s", root ? root : "", path);
    return n > 0 && n < PATH ? out : "";
}

static double first_number(const char *path)
{
    double v;
    FILE *f = tp_system_open(path);
    bool is_read = f && fscanf(f, "%lf", &v) == 1;
    if (f)
        fclose(f);
    return is_read ? v : (double)NAN;
}

/* ---- processors ---- */

/* "cpu  user nice system idle iowait irq softirq steal ...": guests are part of user. */
static void read_ticks(tp_reading *r)
{
    double v[8];
    FILE *f = tp_system_open("/proc/stat");
    int n = f ? fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4],
                       &v[5], &v[6], &v[7])
              : 0;
    if (f)
        fclose(f);
    if (n != 8)
        return;
    r->all_ticks = v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
    r->steal_ticks = v[7];
    r->busy_ticks = r->all_ticks - v[3] - v[4] - v[7];
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", in microseconds. */
static double pressure_s(const char *path)
{
    char line[256];
    double v = NAN;
    FILE *f = tp_system_open(path);
    while (f && isnan(v) && fgets(line, sizeof line, f)) {
        const char *total = strncmp(line, "some ", 5) == 0 ? strstr(line, "total=") : NULL;
        if (!total || sscanf(total, "total=%lf", &v) != 1)
            v = NAN;
    }
    if (f)
        fclose(f);
    return v * 1e-6;
}

/* Version 2 of control groups: "0::/path" in /proc/self/cgroup. */
static double throttled_s(void)
{
    char line[PATH], path[2 * PATH] = "";
    FILE *f = tp_system_open("/proc/self/cgroup");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::/", 4) == 0 && !strstr(line, ".."))
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.stat", line + 3);
    }
    if (f)
        fclose(f);
    return path[0] ? tp_system_number(path, "throttled_usec") * 1e-6 : (double)NAN;
}

/* Over the entries of a folder whose names begin so: the largest of a file's number, or the sum. */
static double over_entries(const char *folder, const char *prefix, const char *file, bool is_sum)
{
    char whole[PATH], path[2 * PATH];
    double all = NAN;
    DIR *dir = opendir(under_root(folder, whole));
    int n = 0;
    for (struct dirent *e; dir && n < MOST_FOUND && (e = readdir(dir)); n++) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%.200s/%s", folder, e->d_name, file);
        double v = first_number(path);
        if (isnan(v))
            continue;
        all = isnan(all) ? v : is_sum ? all + v : fmax(all, v);
    }
    if (dir)
        closedir(dir);
    return all;
}

/* A package is "intel-rapl:0"; "intel-rapl:0:1" is a part of it. */
static double energy_j(void)
{
    char path[128];
    double all = NAN;
    for (int i = 0; i < 64; i++) {
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/energy_uj", i);
        double v = first_number(path);
        if (isnan(v))
            break;
        all = isnan(all) ? v : all + v;
    }
    return all * 1e-6;
}

static void read_process(tp_reading *r)
{
    struct rusage u;
    r->process_s = tp_process_cpu_s();
    if (getrusage(RUSAGE_SELF, &u) != 0)
        return;
    r->minor_faults = (double)u.ru_minflt;
    r->major_faults = (double)u.ru_majflt;
    r->voluntary = (double)u.ru_nvcsw;
    r->involuntary = (double)u.ru_nivcsw;
}

static void read_processors(tp_reading *r)
{
    static const char cpus[] = "/sys/devices/system/cpu";
    read_ticks(r);
    r->pressure_cpu_s = pressure_s("/proc/pressure/cpu");
    r->pressure_io_s = pressure_s("/proc/pressure/io");
    r->throttled_s = throttled_s();
    r->throttles = over_entries(cpus, "cpu", "thermal_throttle/core_throttle_count", true);
    r->temperature = over_entries("/sys/class/thermal", "thermal_zone", "temp", false) * 1e-3;
    r->energy_j = energy_j();
}

/* ---- memory ---- */

static void read_memory(tp_reading *r)
{
    r->resident_bytes = tp_limits_resident();
    r->swapped_bytes = tp_system_number("/proc/self/status", "VmSwap") * 1024;
    r->available_bytes = tp_system_number("/proc/meminfo", "MemAvailable") * 1024;
    r->total_bytes = tp_system_number("/proc/meminfo", "MemTotal") * 1024;
    r->pressure_memory_s = pressure_s("/proc/pressure/memory");
}

void tp_reading_take(tp_reading *r, unsigned parts)
{
    double *all = (double *)r;
    for (size_t i = 0; i < sizeof *r / sizeof *all; i++)
        all[i] = NAN;
    r->clock_s = tp_clock_s();
    read_process(r); /* parts of it belong to each */
    if (parts & TP_READ_TRAINING)
        read_processors(r);
    if (parts & TP_READ_MEMORY)
        read_memory(r);
    if (parts & TP_READ_INFERENCE)
        r->answer_tokens = tp_counter_read(tp_counter_get("generation/answer tokens")).total;
}
