/* host.c - the machine, its settings and the commit of a measurement, and the fingerprint of
 * the host. */
#include "instrument/bench/host.h"

#include <dirent.h>
#include <gnu/libc-version.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/files.h"
#include "instrument/bench/process.h"

static void copy(char *out, size_t cap, const char *text)
{
    snprintf(out, cap, "%s", text && *text ? text : "unknown");
}

/* The first line of a small file of the kernel's. */
static void read_line(const char *path, char *out, size_t cap)
{
    char line[256] = "";
    FILE *f = fopen(path, "r");
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    line[strcspn(line, "\n")] = 0;
    copy(out, cap, line);
}

static void detect_turbo(tp_host *h)
{
    char state[16];
    read_line("/sys/devices/system/cpu/intel_pstate/no_turbo", state, sizeof state);
    if (strcmp(state, "unknown") != 0) {
        copy(h->turbo, sizeof h->turbo, state[0] == '0' ? "on" : "off");
        return;
    }
    read_line("/sys/devices/system/cpu/cpufreq/boost", state, sizeof state);
    copy(h->turbo, sizeof h->turbo,
         strcmp(state, "unknown") == 0 ? "unknown"
         : state[0] == '1'             ? "on"
                                       : "off");
}

/* The model line that NVIDIA's driver keeps per device. */
static void detect_gpu(tp_host *h)
{
    DIR *dir = opendir("/proc/driver/nvidia/gpus");
    struct dirent *entry;
    copy(h->gpu, sizeof h->gpu, dir ? "unknown" : "none");
    while (dir && (entry = readdir(dir))) {
        char path[512], line[96];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", entry->d_name);
        read_line(path, line, sizeof line);
        if (tp_str_starts(line, "Model:"))
            copy(h->gpu, sizeof h->gpu, line + 6 + strspn(line + 6, " \t"));
        break;
    }
    if (dir)
        closedir(dir);
}

static void hash_fields(tp_host *h)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "%s|%s|%d|%lld|%zu|%zu|%s|%s|%s|%s|%s", h->cpu, h->isa,
                     h->processors, (long long)h->memory_gib, h->cache_l2, h->cache_l3, h->governor,
                     h->turbo, h->kernel_series, h->libc, h->gpu);
    tp_hash_bytes(text, (size_t)n, h->fingerprint);
}

void tp_host_detect(tp_host *ret)
{
    struct utsname system;
    tp_host h = {0};
    tp_cpu_caches caches = tp_cpu_cache_sizes();
    copy(h.cpu, sizeof h.cpu, tp_cpu_model());
    copy(h.isa, sizeof h.isa, tp_isa_name(tp_cpu_detect()));
    h.processors = tp_cpu_count();
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    h.memory_gib = (int64_t)(bytes / 1073741824 + 0.5);
    h.cache_l2 = caches.l2;
    h.cache_l3 = caches.l3;
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", h.governor,
              sizeof h.governor);
    detect_turbo(&h);
    detect_gpu(&h);
    bool known = uname(&system) == 0;
    copy(h.name, sizeof h.name, known ? system.nodename : NULL);
    copy(h.kernel, sizeof h.kernel, known ? system.release : NULL);
    size_t series = strcspn(h.kernel, ".");
    series += h.kernel[series] ? 1 + strspn(h.kernel + series + 1, "0123456789") : 0;
    snprintf(h.kernel_series, sizeof h.kernel_series, "%.*s", (int)series, h.kernel);
    snprintf(h.libc, sizeof h.libc, "glibc %s", gnu_get_libc_version());
    snprintf(h.compiler, sizeof h.compiler, "%s", __VERSION__);
    hash_fields(&h);
    *ret = h;
}

void tp_host_write(const tp_host *host, tp_json_w *w)
{
    const char *const pairs[][2] = {{"fingerprint", host->fingerprint},
                                    {"name", host->name},
                                    {"cpu", host->cpu},
                                    {"isa", host->isa},
                                    {"governor", host->governor},
                                    {"turbo", host->turbo},
                                    {"kernel", host->kernel},
                                    {"libc", host->libc},
                                    {"compiler", host->compiler},
                                    {"gpu", host->gpu}};
    tp_json_w_begin(w, '{');
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        tp_json_w_put_str(w, pairs[i][0], strcmp(pairs[i][1], "unknown") ? pairs[i][1] : NULL);
    tp_json_w_put_i64(w, "processors", host->processors);
    tp_json_w_put_i64(w, "memory_gib", host->memory_gib);
    tp_json_w_end(w, '}');
}

void tp_host_read(const tp_json *object, tp_host *ret)
{
    tp_host h = {0};
    int64_t number;
    const struct {
        const char *key;
        char *out;
        size_t cap;
    } fields[] = {{"fingerprint", h.fingerprint, sizeof h.fingerprint},
                  {"name", h.name, sizeof h.name},
                  {"cpu", h.cpu, sizeof h.cpu},
                  {"isa", h.isa, sizeof h.isa},
                  {"governor", h.governor, sizeof h.governor},
                  {"turbo", h.turbo, sizeof h.turbo},
                  {"kernel", h.kernel, sizeof h.kernel},
                  {"libc", h.libc, sizeof h.libc},
                  {"compiler", h.compiler, sizeof h.compiler},
                  {"gpu", h.gpu, sizeof h.gpu}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        copy(fields[i].out, fields[i].cap, tp_json_str(tp_json_get(object, fields[i].key)));
    if (tp_json_i64(tp_json_get(object, "processors"), &number) && number > 0 && number < 1 << 20)
        h.processors = (int)number;
    if (tp_json_i64(tp_json_get(object, "memory_gib"), &number))
        h.memory_gib = number;
    *ret = h;
}

/* ---- the commit ---- */

static bool ask_git(const char *folder, const char *const *argv, char *out, size_t cap)
{
    TP_OWN(tp_buf) text = {0};
    tp_process_usage usage;
    tp_process_command command = {.argv = argv, .folder = folder, .timeout_s = 10};
    bool ok = tp_process_read(&command, 1 << 20, &text, &usage, NULL) == TP_OK &&
              usage.exit_status == 0 && !usage.has_timed_out;
    if (ok)
        snprintf(out, cap, "%.*s", (int)strcspn(tp_buf_str(&text), "\n"), tp_buf_str(&text));
    return ok;
}

bool tp_commit_detect(const char *folder, tp_commit *ret)
{
    tp_commit c = {0};
    char changed[256] = "", top[512] = "";
    const char *head[] = {"git", "rev-parse", "HEAD", NULL};
    const char *branch[] = {"git", "rev-parse", "--abbrev-ref", "HEAD", NULL};
    const char *time[] = {"git", "show", "-s", "--format=%cI", "HEAD", NULL};
    const char *status[] = {"git", "status", "--porcelain", "--untracked-files=no", NULL};
    const char *root[] = {"git", "rev-parse", "--show-toplevel", NULL};
    if (!ask_git(folder, head, c.id, sizeof c.id))
        return false;
    if (!ask_git(folder, branch, c.branch, sizeof c.branch))
        copy(c.branch, sizeof c.branch, NULL);
    if (!ask_git(folder, time, c.time, sizeof c.time))
        copy(c.time, sizeof c.time, NULL);
    c.is_dirty = ask_git(folder, status, changed, sizeof changed) && changed[0];
    if (ask_git(folder, root, top, sizeof top))
        snprintf(c.project, sizeof c.project, "%s", tp_str_after(top, '/'));
    *ret = c;
    return true;
}
