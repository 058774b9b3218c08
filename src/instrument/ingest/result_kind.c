/* result_kind.c - what a path holds, by its name and its first bytes. */
#include "instrument/ingest/result_kind.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/vec.h"

enum { HEAD = 65536 };

typedef struct {
    const char *name; /* its last part */
    char head[HEAD];
    size_t n;
} beginning;

static bool has(const beginning *b, const char *text)
{
    return memmem(b->head, b->n, text, strlen(text)) != NULL;
}

static bool begins(const beginning *b, const char *bytes, size_t n)
{
    return b->n >= n && memcmp(b->head, bytes, n) == 0;
}

static bool is_profile(const beginning *b)
{
    return has(b, "\"timed_steps\"") && has(b, "\"step_s\"");
}

static bool is_evaluation(const beginning *b) { return has(b, "\"temper-eval\""); }

static bool is_nemo_rl(const beginning *b)
{
    return has(b, "\"evaluation_data\"") || tp_str_starts(b->name, "val_data_step");
}

static bool is_events(const beginning *b) { return has(b, "\"traceEvents\"") || has(b, "\"ph\""); }

static bool is_gzip(const beginning *b) { return begins(b, "\x1f\x8b", 2); }

static bool is_snapshot(const beginning *b) { return begins(b, "\x80", 1); }

static bool is_nsight(const beginning *b)
{
    return begins(b, "SQLite format 3", 15) && tp_str_ends(b->name, ".sqlite");
}

static bool is_benchmark(const beginning *b) { return has(b, "\"temper-bench"); }

static bool is_pytest(const beginning *b)
{
    return has(b, "\"benchmarks\"") && has(b, "\"machine_info\"");
}

static bool is_google(const beginning *b)
{
    return has(b, "\"benchmarks\"") && has(b, "\"context\"");
}

static bool is_hyperfine(const beginning *b)
{
    return has(b, "\"results\"") && has(b, "\"command\"") && has(b, "\"times\"");
}

static bool opens_with(const beginning *b, const char *brackets)
{
    size_t i = 0;
    for (const char *c = brackets; *c; c++, i++) {
        while (i < b->n && strchr(" \t\r\n", b->head[i]))
            i++;
        if (i >= b->n || b->head[i] != *c)
            return false;
    }
    return true;
}

/* github-action-benchmark: a list of objects. */
static bool is_tracker(const beginning *b)
{
    return opens_with(b, "[{") && has(b, "\"name\"") && has(b, "\"unit\"") && has(b, "\"value\"");
}

/* {"benchmark": {"measure": {"value": ...: objects, three deep from the first member on. */
static bool is_bencher(const beginning *b)
{
    const char *wanted = "{:{:{";
    bool in_text = false;
    for (size_t i = 0; i < b->n && *wanted; i++) {
        char c = b->head[i];
        if (c == '"' && (i == 0 || b->head[i - 1] != '\\'))
            in_text = !in_text;
        else if (!in_text && strchr("{}[],:", c) && c && c != *wanted++)
            return false;
    }
    return !*wanted && has(b, "\"value\"");
}

/* A list of lists of numbers, which is much: its name says so too. */
static bool is_timeline(const beginning *b)
{
    return opens_with(b, "[[") && strstr(b->name, "memory");
}

static bool is_baseline(const beginning *b) { return has(b, "\"throughput_tokens_per_sec\""); }

static bool is_benchstat(const beginning *b) { return has(b, "\nBenchmark"); }

/* The first that fits. */
static const struct {
    tp_result_kind kind;
    const char *format;
    bool (*is)(const beginning *b);
} kinds[] = {
    {TP_RESULT_PROFILE, "temper", is_profile},
    {TP_RESULT_EVALUATION, "temper", is_evaluation},
    {TP_RESULT_EVALUATION, "nemo_rl", is_nemo_rl},
    {TP_RESULT_TRACE, "json", is_events},
    {TP_RESULT_TRACE, "gzip", is_gzip},
    {TP_RESULT_TRACE, "snapshot", is_snapshot},
    {TP_RESULT_TRACE, "nsight", is_nsight},
    {TP_RESULT_TRACE, "memory_timeline", is_timeline},
    {TP_RESULT_BENCHMARK, "temper", is_benchmark},
    {TP_RESULT_BENCHMARK, "pytest-benchmark", is_pytest},
    {TP_RESULT_BENCHMARK, "google", is_google},
    {TP_RESULT_BENCHMARK, "hyperfine", is_hyperfine},
    {TP_RESULT_BENCHMARK, "baselines", is_baseline},
    {TP_RESULT_BENCHMARK, "tracker", is_tracker},
    {TP_RESULT_BENCHMARK, "bencher", is_bencher},
    {TP_RESULT_BENCHMARK, "benchstat", is_benchstat},
};

const char *tp_result_kind_name(tp_result_kind kind)
{
    static const char *const names[] = {"run", "evaluation", "trace", "benchmark", "profile"};
    return names[kind];
}

bool tp_result_name_fits(const char *name)
{
    static const char *const endings[] = {".json", ".json.gz", ".sqlite", ".pickle", ".txt"};
    for (size_t i = 0; i < TP_COUNTOF(endings); i++)
        if (tp_str_ends(name, endings[i]))
            return true;
    return false;
}

/* The folder of a profile is one of a run too, of a few steps that nobody trained for. */
static bool has_profile(const char *folder)
{
    TP_OWN(tp_buf) path = {0};
    tp_buf_addf(&path, "%s/profile.json", folder);
    return tp_dir_exists(folder) && tp_file_exists(path.data);
}

static bool read_beginning(const char *path, beginning *b)
{
    struct stat st;
    int fd = -1;
    int64_t size;
    b->name = tp_str_after(path, '/');
    /* A pipe that is opened to look and closed again kills its writer. */
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        tp_input_open(path, TP_INPUT_FILE, &fd, &size, NULL) != TP_OK)
        return false;
    ssize_t n = read(fd, b->head, HEAD);
    b->n = n > 0 ? (size_t)n : 0;
    close(fd);
    return true;
}

tp_result_kind tp_result_look(const char *path, const char **ret_format)
{
    TP_FREED beginning *b = tp_vec_new(1, sizeof *b);
    size_t found = TP_COUNTOF(kinds);
    bool is_read = read_beginning(path, b);
    for (size_t i = 0; is_read && i < found; i++)
        found = kinds[i].is(b) ? i : found;
    *ret_format = found < TP_COUNTOF(kinds) ? kinds[found].format : NULL;
    return found < TP_COUNTOF(kinds) ? kinds[found].kind : TP_RESULT_RUN;
}

tp_result_kind tp_result_kind_of(const char *path)
{
    const char *format;
    if (!path)
        return TP_RESULT_RUN;
    return has_profile(path) ? TP_RESULT_PROFILE : tp_result_look(path, &format);
}
