/* disturbance.c - what the kernel counts (steal, switches, pressure, frequency) around a round,
 * and whether it disturbed the round. */
#include "instrument/bench/disturbance.h"

#include <math.h>
#include <stdio.h>

static const double MOST_STEAL = 0.05, MOST_SWITCHES_PER_S = 1000;
enum { LEAST_STEAL_TICKS = 3, LEAST_SWITCHES = 20, LEAST_DISTURBED = 4, MOST_PROCESSORS = 4096 };

const char *tp_disturbance_name(tp_disturbance disturbance)
{
    static const char *const names[TP_DISTURBANCES] = {"", "steal", "switches", "throttle"};
    return names[disturbance];
}

/* ---- reading ---- */

/* "cpu  user nice system idle iowait irq softirq steal ...": guests are part of user. */
static void read_ticks(const char *path, tp_machine_reading *ret)
{
    long long v[8];
    FILE *f = fopen(path, "r");
    int n = f ? fscanf(f, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &v[0], &v[1], &v[2], &v[3],
                       &v[4], &v[5], &v[6], &v[7])
              : 0;
    if (f)
        fclose(f);
    if (n != 8)
        return;
    int64_t all = 0;
    for (int i = 0; i < 8; i++)
        if (v[i] < 0 || __builtin_add_overflow(all, (int64_t)v[i], &all))
            return;
    ret->steal_ticks = v[7];
    ret->all_ticks = all;
    ret->idle_ticks = v[3] + v[4];
}

static bool read_count(const char *folder, int cpu, const char *name, int64_t *ret)
{
    char path[512];
    long long v;
    snprintf(path, sizeof path, "%s/cpu%d/thermal_throttle/%s", folder, cpu, name);
    FILE *f = fopen(path, "r");
    bool ok = f && fscanf(f, "%lld", &v) == 1 && v >= 0;
    if (f)
        fclose(f);
    if (ok)
        *ret = v;
    return ok;
}

static void read_throttles(const char *folder, tp_machine_reading *ret)
{
    int64_t sum = 0, core, package;
    int cpu = 0;
    for (; cpu < MOST_PROCESSORS; cpu++) {
        if (!read_count(folder, cpu, "core_throttle_count", &core) ||
            __builtin_add_overflow(sum, core, &sum))
            break;
        if (read_count(folder, cpu, "package_throttle_count", &package) &&
            __builtin_add_overflow(sum, package, &sum))
            break;
    }
    if (cpu > 0)
        ret->throttles = sum;
}

void tp_machine_read_from(const char *proc_stat, const char *cpu_folder, tp_machine_reading *ret)
{
    *ret = (tp_machine_reading){TP_READING_UNKNOWN, TP_READING_UNKNOWN, TP_READING_UNKNOWN,
                                TP_READING_UNKNOWN};
    read_ticks(proc_stat, ret);
    read_throttles(cpu_folder, ret);
}

void tp_machine_read(void *unused, tp_machine_reading *ret)
{
    (void)unused;
    tp_machine_read_from("/proc/stat", "/sys/devices/system/cpu", ret);
}

/* ---- judging ---- */

tp_round_conditions tp_round_judge(const tp_machine_reading *before,
                                   const tp_machine_reading *after, const int64_t switches[2],
                                   const double seconds[2])
{
    tp_round_conditions c = {
        .steal_share = (double)NAN, .switches_per_s = (double)NAN, .throttles = TP_READING_UNKNOWN};
    int64_t steal = after->steal_ticks - before->steal_ticks;
    int64_t all = after->all_ticks - before->all_ticks;
    bool has_storm = false;
    /* A counter that ran backwards tells nothing. */
    if (before->all_ticks >= 0 && after->all_ticks >= 0 && all > 0 && steal >= 0)
        c.steal_share = (double)steal / (double)all;
    if (before->throttles >= 0 && after->throttles >= before->throttles)
        c.throttles = after->throttles - before->throttles;
    for (int side = 0; side < 2; side++) {
        if (switches[side] < 0 || !(seconds[side] > 0))
            continue;
        double rate = (double)switches[side] / seconds[side];
        c.switches_per_s = isnan(c.switches_per_s) ? rate : fmax(rate, c.switches_per_s);
        has_storm |= rate > MOST_SWITCHES_PER_S && switches[side] >= LEAST_SWITCHES;
    }
    c.reason = c.steal_share > MOST_STEAL && steal >= LEAST_STEAL_TICKS ? TP_DISTURBED_BY_STEAL
               : has_storm                                              ? TP_DISTURBED_BY_SWITCHES
               : c.throttles > 0                                        ? TP_DISTURBED_BY_THROTTLE
                                                                        : TP_UNDISTURBED;
    return c;
}

bool tp_too_many_disturbed(size_t disturbed, size_t attempts)
{
    return disturbed >= LEAST_DISTURBED && disturbed > attempts / 4;
}
