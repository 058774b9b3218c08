/* command.c - a command line as a subject of measurement: fork, exec, wait4, and Callgrind for
 * instructions. */
#include "instrument/bench/command.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/rng.h"
#include "instrument/bench/metric_rows.h"

enum { TIME, MEMORY, USER, SYSTEM, INSTRUCTIONS, MAX_ARGUMENTS = 4096, PADDING_STREAM = 0x706164 };

tp_status tp_command_words(tp_arena *arena, const char *const *words, size_t n,
                           const char *const **ret_argv, tp_error *err)
{
    if (n == 0 || n > MAX_ARGUMENTS || (n == 1 && words[0][strspn(words[0], " \t\n")] == 0))
        return tp_fail(err, TP_ERR_ARG, "the command is empty");
    bool needs_shell = n == 1 && words[0][strcspn(words[0], "|&;<>()$`\\\"'*?[]#~=%!{}\n")] != 0;
    if (n > 1) {
        const char **argv = tp_arena_array(arena, const char *, n + 1);
        memcpy(argv, words, n * sizeof *argv);
        *ret_argv = argv;
    } else if (needs_shell) {
        const char **argv = tp_arena_array(arena, const char *, 4);
        argv[0] = "/bin/sh";
        argv[1] = "-c";
        argv[2] = words[0];
        *ret_argv = argv;
    } else {
        char *text = tp_arena_strdup(arena, words[0]), *rest = NULL;
        const char **argv = tp_arena_array(arena, const char *, strlen(text) / 2 + 2);
        size_t used = 0;
        for (char *w = strtok_r(text, " \t\n", &rest); w; w = strtok_r(NULL, " \t\n", &rest))
            argv[used++] = w;
        *ret_argv = argv;
    }
    return TP_OK;
}

/* ---- instructions ---- */

static tp_status read_count(const char *path, double *ret, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_status status = tp_file_read(path, 256 << 20, &text, err);
    const char *at = status == TP_OK ? strstr(tp_buf_str(&text), "\ntotals: ") : NULL;
    if (status == TP_OK && !at)
        status = tp_fail(err, TP_ERR_FORMAT, "Callgrind's output '%s' has no totals", path);
    if (status == TP_OK)
        *ret = strtod(at + 9, NULL);
    return status;
}

static tp_status count_instructions(const tp_command_subject *s, double *ret, tp_error *err)
{
    char path[] = "/tmp/temper-callgrind-XXXXXX", option[64];
    size_t n = 0;
    while (s->argv[n])
        n++;
    int fd = mkstemp(path);
    if (fd < 0)
        return tp_fail(err, TP_ERR_IO, "no temporary file for Callgrind's output");
    close(fd);
    TP_FREED const char **argv = tp_new(n + 5, sizeof *argv);
    snprintf(option, sizeof option, "--callgrind-out-file=%s", path);
    argv[0] = "valgrind";
    argv[1] = "--tool=callgrind";
    argv[2] = "-q";
    argv[3] = option;
    memcpy(argv + 4, s->argv, n * sizeof *argv);
    tp_process_command command = {.argv = argv, .folder = s->options.folder};
    tp_process_usage usage;
    tp_status status = tp_process_run(&command, &usage, err);
    if (status == TP_OK)
        status = read_count(path, ret, err);
    unlink(path);
    return status;
}

/* ---- the subject ---- */

static tp_status check_end(const tp_command_subject *s, const tp_process_usage *u, tp_error *err)
{
    if (u->has_timed_out)
        return tp_fail(err, TP_ERR_IO, "'%s' took longer than %.3g s; --timeout allows more",
                       s->argv[0], s->options.timeout_s);
    if (s->options.allow_failure || (u->exit_status == 0 && u->signal == 0))
        return TP_OK;
    if (u->signal)
        return tp_fail(err, TP_ERR_IO, "'%s' was ended by signal %d (%s)", s->argv[0], u->signal,
                       strsignal(u->signal));
    return tp_fail(err, TP_ERR_IO, "'%s' returned %d; --ignore-failure measures it anyway",
                   s->argv[0], u->exit_status);
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    tp_command_subject *s = (tp_command_subject *)subject;
    (void)work; /* a command is one unit */
    uint32_t draw[4];
    tp_philox(s->options.seed, PADDING_STREAM, s->n_runs, draw);
    tp_process_command command = {.argv = s->argv,
                                  .folder = s->options.folder,
                                  .timeout_s = s->options.timeout_s,
                                  .padding = draw[0] % 4096};
    tp_process_usage usage;
    TP_TRY(tp_process_run(&command, &usage, err));
    TP_TRY(check_end(s, &usage, err));
    ret->elapsed_ns = usage.wall_ns;
    ret->has_switches = true;
    ret->switches = usage.involuntary_switches;
    ret->values[MEMORY] = (double)usage.peak_bytes;
    ret->values[USER] = usage.user_s;
    ret->values[SYSTEM] = usage.system_s;
    s->is_memory_resolved &= usage.peak_bytes > usage.floor_bytes;
    s->floor_bytes = usage.floor_bytes;
    /* Counting is slow and exact: twice is enough to see that it is. */
    if (s->options.count_instructions && s->n_runs < 2)
        TP_TRY(count_instructions(s, &s->instructions, err));
    if (s->options.count_instructions)
        ret->values[INSTRUCTIONS] = s->instructions;
    s->n_runs++;
    return TP_OK;
}

static const tp_subject_class command_class = {.run = run};

void tp_command_subject_init(tp_command_subject *s, const char *const *argv,
                             const tp_command_options *options)
{
    static const tp_metric metrics[] = {
        [TIME] = {.name = "time", .unit = "s", .source = TP_METRIC_DURATION, .floor = 1e-6},
        [MEMORY] = TP_NOISY_MEMORY_ROW("peak_memory"),
        [USER] = TP_USER_TIME_ROW,
        [SYSTEM] = TP_SYSTEM_TIME_ROW,
        [INSTRUCTIONS] = TP_INSTRUCTIONS_ROW};
    *s = (tp_command_subject){.argv = argv, .options = *options, .is_memory_resolved = true};
    memcpy(s->metrics, metrics, sizeof metrics);
    s->subject = (tp_subject){.class = &command_class,
                              .metrics = s->metrics,
                              .n_metrics = options->count_instructions ? 5 : 4,
                              .work_unit = "runs",
                              .work = 1};
}
