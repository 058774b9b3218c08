/* result_kind.c - what a path holds, by its name and its first bytes. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "temper/analysis.h"

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

static bool is_evaluation(const beginning *b)
{
    return has(b, "\"temper-eval\"") || has(b, "\"evaluation_data\"") ||
           tp_str_starts(b->name, "val_data_step");
}

static bool is_trace(const beginning *b)
{
    return has(b, "\"traceEvents\"") || has(b, "\"ph\"") || begins(b, "\x1f\x8b", 2) ||
           begins(b, "\x80", 1) ||
           (begins(b, "SQLite format 3", 15) && tp_str_ends(b->name, ".sqlite"));
}

/* Results of benchmarks, of Temper and of other tools. */
static bool is_benchmark(const beginning *b)
{
    bool is_google = has(b, "\"context\"") || has(b, "\"machine_info\"");
    return has(b, "\"temper-bench") || (has(b, "\"benchmarks\"") && is_google) ||
           (has(b, "\"results\"") && has(b, "\"command\"") && has(b, "\"times\"")) ||
           has(b, "\"throughput_tokens_per_sec\"") || has(b, "\nBenchmark");
}

tp_result_kind tp_result_kind_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    beginning *b = calloc(1, sizeof *b);
    int fd = -1;
    int64_t size;
    tp_result_kind kind = TP_RESULT_RUN;
    TP_ASSERT(b);
    b->name = slash ? slash + 1 : path;
    if (path && tp_file_exists(path) && !tp_dir_exists(path) &&
        tp_input_open(path, TP_INPUT_FILE, &fd, &size, NULL) == TP_OK) {
        ssize_t n = read(fd, b->head, HEAD);
        b->n = n > 0 ? (size_t)n : 0;
        kind = is_evaluation(b)  ? TP_RESULT_EVALUATION
               : is_trace(b)     ? TP_RESULT_TRACE
               : is_benchmark(b) ? TP_RESULT_BENCHMARK
                                 : TP_RESULT_RUN;
        close(fd);
    }
    free(b);
    return kind;
}
