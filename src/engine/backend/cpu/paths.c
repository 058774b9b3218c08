/* paths.c - verdicts on instruction sets: from the file or from the self-test, and what follows. */
#include "engine/backend/cpu/paths.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/build_key.h"
#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/backend/cpu/peaks.h"
#include "engine/backend/cpu/self_test.h"

enum {
    MAX_FILE = 1 << 16,
    KEPT = 32, /* verdicts in the file: other builds, other processors with this home */
    KEY = TP_BUILD_KEY,
    MAX_LINE = 1024
};

static const char heading[] = "temper instruction sets 1";
static pthread_once_t once = PTHREAD_ONCE_INIT;
static tp_path paths[TP_ISA_COUNT];

/* False when a verdict cannot be told from that of another build, or is not one of the
 * processor: nothing is read or kept then. */
static bool make_key(char key[KEY]) { return !getenv("TEMPER_BREAK_ISA") && tp_build_key(key); }

/* ---- the file: key, a field per level, checksum, divided by tabs ---- */

static void format_line(const char *key, char *line, size_t size)
{
    size_t n = (size_t)snprintf(line, size, "%s", key);
    for (int i = 0; i < TP_ISA_COUNT; i++) {
        const tp_path *p = &paths[i];
        n += (size_t)snprintf(line + n, size - n, "\t%s%s",
                              p->state == TP_PATH_FAILED   ? "failed: "
                              : p->state == TP_PATH_SLOWER ? "slower: "
                              : p->state == TP_PATH_PROVEN ? "proven"
                                                           : "-",
                              p->why);
    }
    snprintf(line + n, size - n, "\t%016llx", (unsigned long long)XXH3_64bits(line, n));
}

/* Is it as format_line() wrote it? */
static bool is_whole(const char *line, size_t n)
{
    char sum[20];
    if (n < KEY + 17 || n >= MAX_LINE || line[n - 17] != '\t')
        return false;
    snprintf(sum, sizeof sum, "%016llx", (unsigned long long)XXH3_64bits(line, n - 17));
    return memcmp(line + n - 16, sum, 16) == 0;
}

/* `line` has all its fields: the checksum says who wrote them. */
static void parse_line(const char *line)
{
    const char *at = strchr(line, '\t') + 1;
    for (int i = 0; i < TP_ISA_COUNT; i++) {
        size_t n = strcspn(at, "\t\n");
        tp_path *p = &paths[i];
        *p = (tp_path){.is_stored = true};
        bool is_failed = n > 8 && memcmp(at, "failed: ", 8) == 0;
        if (is_failed || (n > 8 && memcmp(at, "slower: ", 8) == 0)) {
            p->state = is_failed ? TP_PATH_FAILED : TP_PATH_SLOWER;
            snprintf(p->why, sizeof p->why, "%.*s", (int)(n - 8), at + 8);
        } else if (n == 6 && memcmp(at, "proven", 6) == 0)
            p->state = TP_PATH_PROVEN;
        at += n + (at[n] == '\t');
    }
}

/* The whole file, of ours and sound at its head; empty when there is none. */
static void read_file(char *text)
{
    char path[4096];
    struct stat st;
    text[0] = 0;
    if (tp_cache_path("instruction-sets.txt", false, path, sizeof path, NULL) != TP_OK)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return;
    bool is_ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                   (st.st_uid == geteuid() || st.st_uid == 0) && st.st_size < MAX_FILE;
    ssize_t n = is_ours ? read(fd, text, MAX_FILE - 1) : 0;
    close(fd);
    text[n > 0 ? n : 0] = 0;
    size_t head = sizeof heading - 1;
    if (strncmp(text, heading, head) != 0 || text[head] != '\n')
        text[0] = 0;
}

static const char *next_line(const char *line) { return line + strcspn(line, "\n") + 1; }

static bool find_verdict(const char *key)
{
    char text[MAX_FILE];
    read_file(text);
    if (!text[0])
        return false;
    for (const char *line = next_line(text); strchr(line, '\n'); line = next_line(line)) {
        if (strncmp(line, key, KEY - 1) == 0 && is_whole(line, strcspn(line, "\n"))) {
            parse_line(line);
            return true;
        }
    }
    return false;
}

/* The new verdict first, then the newest of the others. */
static void keep_verdict(const char *key)
{
    char text[MAX_FILE], line[MAX_LINE], path[4096];
    TP_OWN(tp_buf) out = {0};
    tp_error err = {0};
    read_file(text);
    format_line(key, line, sizeof line);
    tp_buf_addf(&out, "%s\n%s\n", heading, line);
    const char *old = text[0] ? next_line(text) : "";
    for (int n = 1; n < KEPT && strchr(old, '\n'); old = next_line(old)) {
        size_t len = strcspn(old, "\n");
        if (strncmp(old, key, KEY - 1) == 0 || !is_whole(old, len))
            continue;
        tp_buf_addf(&out, "%.*s\n", (int)len, old);
        n++;
    }
    if (tp_cache_path("instruction-sets.txt", true, path, sizeof path, &err) != TP_OK ||
        tp_file_write_atomic(path, out.data, out.len, &err) != TP_OK)
        tp_log(TP_LOG_DEBUG, "cpu", "the verdicts on instruction sets are not kept: %s",
               err.message);
}

/* ---- breaking on purpose ---- */

/* TEMPER_BREAK_ISA=amx:sigill,avx512:wrong */
static tp_self_test_break asked_break(tp_isa isa)
{
    static const char *const words[TP_BREAK_COUNT] = {"",    "sigill", "segv", "bus",
                                                      "fpe", "wrong",  "hang", "kill"};
    const char *at = getenv("TEMPER_BREAK_ISA"), *name = tp_isa_name(isa);
    size_t n = strlen(name);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        if (strncmp(at, name, n) != 0 || at[n] != ':')
            continue;
        for (int k = 1; k < TP_BREAK_COUNT; k++) {
            size_t len = strlen(words[k]);
            if (strncmp(at + n + 1, words[k], len) == 0 && strchr(",", at[n + 1 + len]))
                return (tp_self_test_break)k;
        }
    }
    return TP_BREAK_NOTHING;
}

/* ---- proving ---- */

static void try_level(tp_self_test *test, tp_isa isa)
{
    tp_path *p = &paths[isa];
    *p = (tp_path){0};
    if (isa > tp_cpu_detect())
        return;
    tp_self_test_result result = TP_SELF_TEST_NOT_RUN;
    if (test)
        result = tp_self_test_run(test, isa, asked_break(isa), p->why, sizeof p->why);
    else
        snprintf(p->why, sizeof p->why, "no memory");
    p->state = result == TP_SELF_TEST_PASSED   ? TP_PATH_PROVEN
               : result == TP_SELF_TEST_FAILED ? TP_PATH_FAILED
                                               : TP_PATH_UNTRIED;
}

static unsigned levels_in(tp_path_state state)
{
    unsigned levels = 0;
    for (unsigned i = 0; i < TP_ISA_COUNT; i++)
        if (paths[i].state == state)
            levels |= 1u << i;
    return levels;
}

static unsigned left_out(void) { return levels_in(TP_PATH_FAILED) | levels_in(TP_PATH_UNTRIED); }

static void obey_verdicts(void)
{
    tp_cpu_exclude(left_out());
    tp_cpu_pass_over(levels_in(TP_PATH_SLOWER));
}

/* Some processors multiply pairs of bf16 at half the speed of f32: it pays to widen them then.
 * Tiles are faster than both, and what they leave to vectors is bound by memory, but for attention
 * of generation with heads whose width is no multiple of 32. */
static void compare_units(void)
{
    tp_path *p = &paths[TP_ISA_AVX512_BF16];
    if (p->state != TP_PATH_PROVEN || paths[TP_ISA_AVX512].state != TP_PATH_PROVEN ||
        paths[TP_ISA_AMX].state == TP_PATH_PROVEN ||
        !tp_cpu_unit_is_slower(TP_ISA_AVX512_BF16, TP_ISA_AVX512))
        return;
    p->state = TP_PATH_SLOWER;
    snprintf(p->why, sizeof p->why, "bfloat16 is multiplied faster as float32 here");
}

/* From below: a level uses kernels of those below it that are sound. */
static bool try_all(void)
{
    bool all_tried = true;
    tp_cpu_exclude(0);
    tp_cpu_pass_over(0);
    tp_self_test *test = tp_self_test_open();
    for (int i = 0; i < TP_ISA_COUNT; i++) {
        try_level(test, (tp_isa)i);
        all_tried = all_tried && paths[i].state != TP_PATH_UNTRIED;
        tp_cpu_exclude(left_out());
    }
    tp_self_test_close(test);
    compare_units();
    obey_verdicts();
    return all_tried;
}

static void announce(void)
{
    if (tp_cpu_withheld()[0] && tp_cpu_isa() == tp_cpu_detect())
        tp_log(TP_LOG_WARNING, "cpu", "%s; computing with %s", tp_cpu_withheld(),
               tp_isa_name(tp_cpu_isa()));
    char instead[64] = "the plain loops of ref, which are slow";
    if (tp_cpu_may_use(tp_cpu_isa()))
        snprintf(instead, sizeof instead, "%s", tp_isa_name(tp_cpu_isa()));
    for (int i = TP_ISA_COUNT - 1; i >= 0; i--)
        if (left_out() >> i & 1)
            tp_log(TP_LOG_WARNING, "cpu",
                   "the kernels for %s are left out, they %s: %s; computing with %s",
                   tp_isa_name((tp_isa)i),
                   paths[i].state == TP_PATH_FAILED ? "fail their self-test"
                                                    : "could not be tested",
                   paths[i].why, instead);
}

static void check_environment(void)
{
    static const char *const names[] = {"TEMPER_ISA", "TEMPER_ASSUME_ISA"};
    tp_isa isa;
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value && !tp_isa_parse(value, &isa))
            tp_log(TP_LOG_WARNING, "cpu",
                   "%s is portable, avx2, avx512, avx512_bf16 or amx, not '%s'; it is ignored",
                   names[i], value);
        else if (i == 0 && value && *value && isa > tp_cpu_detect())
            tp_log(TP_LOG_WARNING, "cpu", "TEMPER_ISA: this machine lacks '%s': it has '%s'", value,
                   tp_isa_name(tp_cpu_detect()));
    }
}

static void prove(void)
{
    char key[KEY];
    bool has_key = make_key(key);
    check_environment();
    if (has_key && find_verdict(key))
        obey_verdicts();
    else if (try_all() && has_key)
        keep_verdict(key);
    announce();
}

void tp_paths_prove(void) { pthread_once(&once, prove); }

void tp_paths_prove_again(void)
{
    char key[KEY];
    tp_paths_prove();
    unsigned before = left_out();
    if (!paths[TP_ISA_PORTABLE].is_stored) /* tried just now */
        return;
    if (try_all() && make_key(key))
        keep_verdict(key);
    if (left_out() != before)
        announce();
}

const tp_path *tp_paths(void) { return paths; }
