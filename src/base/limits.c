/* limits.c - what of the machine this process may use, from the places where Linux says so. */
#include "base/limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/error.h"

enum { PATH_CAP = 4096 };

/* Version 1 writes "no limit" as the largest multiple of a page in 63 bits. */
static const double UNLIMITED = 4611686018427387904.0;

static TP_PRINTF(3, 4) void add(tp_limits *limits, double value, const char *fmt, ...)
{
    if (limits->n == TP_LIMITS_MAX || !(value >= 0) || value >= UNLIMITED)
        return;
    tp_limit *l = &limits->v[limits->n++];
    l->value = value;
    l->used = NAN;
    TP_FORMAT(l->source, fmt);
}

const tp_limit *tp_limits_least(const tp_limits *limits)
{
    const tp_limit *least = &limits->v[0];
    TP_ASSERT(limits->n > 0);
    for (int i = 1; i < limits->n; i++)
        if (limits->v[i].value < least->value)
            least = &limits->v[i];
    return least;
}

FILE *tp_system_open(const char *path)
{
    const char *root = getenv("TEMPER_SYSTEM_ROOT");
    char whole[PATH_CAP];
    int n = snprintf(whole, sizeof whole, "%s%s", root ? root : "", path);
    return n > 0 && (size_t)n < sizeof whole ? fopen(whole, "re") : NULL;
}

/* Up to `n` numbers of a file's first line; "max" is infinite.  Returns how many there are. */
static int read_numbers(const char *path, double *ret, int n)
{
    char word[64];
    int k = 0;
    FILE *f = tp_system_open(path);
    if (!f)
        return 0;
    for (char *end; k < n && fscanf(f, "%63s", word) == 1; k++) {
        ret[k] = strcmp(word, "max") == 0 ? INFINITY : strtod(word, &end);
        if (strcmp(word, "max") != 0 && (end == word || *end))
            break;
    }
    fclose(f);
    return k;
}

double tp_system_number(const char *path, const char *name)
{
    char line[256];
    double value = NAN;
    size_t n = strlen(name);
    FILE *f = tp_system_open(path);
    while (f && isnan(value) && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == ':'))
            (void)!sscanf(line + n + 1, "%lf", &value);
    if (f)
        fclose(f);
    return value;
}

/* ---- cgroups ---- */

/* One cgroup: where its hierarchy is mounted, and its path below. */
typedef void visit_fn(tp_limits *limits, const char *mount, const char *group, bool is_v2);

/* From the process's cgroup up to the root of what is mounted: a container may see paths of the
 * host that are not mounted in it, whose files are just not there. */
static void visit_upwards(tp_limits *limits, visit_fn *visit, const char *mount, char *group,
                          bool is_v2)
{
    for (;;) {
        char *slash = strrchr(group, '/');
        visit(limits, mount, group, is_v2);
        if (!slash || !*group)
            return;
        *slash = 0;
    }
}

static bool has_controller(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; (p = strstr(p, name)); p += n)
        if ((p == list || p[-1] == ',') && (p[n] == 0 || p[n] == ','))
            return true;
    return false;
}

static bool is_there(const char *mount, const char *file)
{
    char path[PATH_CAP];
    snprintf(path, sizeof path, "%s/%s", mount, file);
    FILE *f = tp_system_open(path);
    if (f)
        fclose(f);
    return f != NULL;
}

static void visit_cgroups(tp_limits *limits, const char *controller, visit_fn *visit)
{
    char line[PATH_CAP], mount[PATH_CAP];
    FILE *f = tp_system_open("/proc/self/cgroup");
    while (f && fgets(line, sizeof line, f)) { /* number:controllers:path */
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        list++;
        if (strcmp(group, "/") == 0)
            group = "";
        char own[PATH_CAP];
        snprintf(own, sizeof own, "%s", group);
        if (!*list) {
            bool unified = is_there("/sys/fs/cgroup", "cgroup.controllers");
            snprintf(mount, sizeof mount, "/sys/fs/cgroup%s", unified ? "" : "/unified");
            visit_upwards(limits, visit, mount, own, true);
        } else if (has_controller(list, controller)) {
            snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", list);
            if (!is_there(mount, "cgroup.procs"))
                snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", controller);
            visit_upwards(limits, visit, mount, own, false);
        }
    }
    if (f)
        fclose(f);
}

static const char *name_of(const char *group) { return *group ? group : "/"; }

/* Of the pages of files those that were read once are dropped before anything else is. */
static double group_uses(const char *mount, const char *group, bool is_v2)
{
    char path[2 * PATH_CAP];
    double bytes;
    snprintf(path, sizeof path, "%s%s/%s", mount, group,
             is_v2 ? "memory.current" : "memory.usage_in_bytes");
    if (read_numbers(path, &bytes, 1) != 1)
        return NAN;
    snprintf(path, sizeof path, "%s%s/memory.stat", mount, group);
    double files = tp_system_number(path, is_v2 ? "inactive_file" : "total_inactive_file");
    return fmax(bytes - (isnan(files) ? 0 : files), 0);
}

static void visit_memory(tp_limits *limits, const char *mount, const char *group, bool is_v2)
{
    static const char *const v2[] = {"memory.max", "memory.high"};
    static const char *const v1[] = {"memory.limit_in_bytes"};
    char path[2 * PATH_CAP];
    double bytes;
    for (int i = 0; i < (is_v2 ? 2 : 1); i++) {
        const char *file = is_v2 ? v2[i] : v1[i];
        snprintf(path, sizeof path, "%s%s/%s", mount, group, file);
        int before = limits->n;
        if (read_numbers(path, &bytes, 1) == 1)
            add(limits, bytes, "cgroup %s of %s", file, name_of(group));
        if (limits->n > before)
            limits->v[before].used = group_uses(mount, group, is_v2);
    }
}

static void visit_quota(tp_limits *limits, const char *mount, const char *group, bool is_v2)
{
    char path[2 * PATH_CAP];
    double v[2];
    if (is_v2) {
        snprintf(path, sizeof path, "%s%s/cpu.max", mount, group);
        if (read_numbers(path, v, 2) == 2 && v[1] > 0)
            add(limits, v[0] / v[1], "cgroup cpu.max of %s", name_of(group));
        return;
    }
    snprintf(path, sizeof path, "%s%s/cpu.cfs_quota_us", mount, group);
    if (read_numbers(path, &v[0], 1) != 1 || v[0] <= 0)
        return;
    snprintf(path, sizeof path, "%s%s/cpu.cfs_period_us", mount, group);
    if (read_numbers(path, &v[1], 1) == 1 && v[1] > 0)
        add(limits, v[0] / v[1], "cgroup cpu.cfs_quota_us of %s", name_of(group));
}

/* ---- limits of the process ---- */

/* A column of /proc/self/statm, which counts pages, in bytes; NaN: unknown. */
static double own_bytes(int column)
{
    double pages[6];
    int n = read_numbers("/proc/self/statm", pages, column + 1);
    return n > column ? pages[column] * (double)sysconf(_SC_PAGESIZE) : NAN;
}

double tp_limits_resident(void) { return own_bytes(1); }

/* What is left of a resource of which so much is used: fmax() takes the other one for NaN. */
static void add_resource(tp_limits *limits, int resource, double used, const char *source)
{
    struct rlimit r;
    if (getrlimit((__rlimit_resource_t)resource, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
        add(limits, fmax((double)r.rlim_cur - fmax(used, 0), 0), "%s", source);
}

void tp_limits_memory(tp_limits *ret)
{
    struct sysinfo info;
    ret->n = 0;
    bool known = sysinfo(&info) == 0;
    add(ret, known ? (double)info.totalram * (double)info.mem_unit : UNLIMITED / 2, "%s",
        known ? "physical memory" : "nothing: the size of the memory is unknown");
    if (ret->n)
        ret->v[0].used = 1024 * (tp_system_number("/proc/meminfo", "MemTotal") -
                                 tp_system_number("/proc/meminfo", "MemAvailable"));
    visit_cgroups(ret, "memory", visit_memory);
    add_resource(ret, RLIMIT_AS, own_bytes(0), "RLIMIT_AS (ulimit -v), what is left of it");
    add_resource(ret, RLIMIT_DATA, own_bytes(5), "RLIMIT_DATA (ulimit -d), what is left of it");
}

double tp_limits_own_memory(void)
{
    static const char path[] = "/proc/self/status";
    return 1024 * (tp_system_number(path, "RssAnon") + tp_system_number(path, "RssShmem"));
}

static int allowed_processors(void)
{
    cpu_set_t *set;
    size_t bytes;
    int count = tp_affinity_mask(&set, &bytes) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    return count;
}

void tp_limits_processors(tp_limits *ret)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int allowed = allowed_processors();
    ret->n = 0;
    add(ret, online > 0 ? (double)online : 1, "processors online");
    if (allowed > 0)
        add(ret, allowed, "sched_getaffinity (taskset, cpuset)");
    visit_cgroups(ret, "cpu", visit_quota);
}
