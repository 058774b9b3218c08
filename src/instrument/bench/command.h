/* command.h - any command as a subject: how long it takes and how much memory it needs.
 *
 * Metrics: time (wall), peak_memory (resident, noisy, floor 1 MiB), user_time and
 * system_time (informative) and, when asked, instructions as Callgrind counts them
 * (exact: two counts that differ are an error).  A command that returns anything but 0
 * is a failed measurement unless that is allowed. */
#ifndef TP_INSTRUMENT_BENCH_COMMAND_H
#define TP_INSTRUMENT_BENCH_COMMAND_H

#include "base/arena.h"
#include "instrument/bench/process.h"
#include "instrument/bench/subject.h"

typedef struct {
    double timeout_s;
    uint64_t seed; /* of the environment's padding */
    bool allow_failure;
    bool count_instructions;
    const char *folder; /* NULL: here */
} tp_command_options;

typedef struct {
    tp_subject subject;
    const char *const *argv;
    tp_command_options options;
    uint64_t n_runs;
    double instructions; /* the last count */
    tp_metric metrics[5];
    bool is_memory_resolved; /* so far, every peak was above the floor */
    uint64_t floor_bytes;
} tp_command_subject;

/* One word is a command line: split at blanks, or given to sh when it holds anything that
 * a shell would interpret.  Several words are taken as they are.  Everything is in
 * `arena`.  An empty command is TP_ERR_ARG. */
TP_CHECKED tp_status tp_command_words(tp_arena *arena, const char *const *words, size_t n,
                                      const char *const **ret_argv, tp_error *err);

void tp_command_subject_init(tp_command_subject *s, const char *const *argv,
                             const tp_command_options *options);

#endif
