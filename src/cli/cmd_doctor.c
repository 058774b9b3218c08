/* cmd_doctor.c - `temper doctor`: what this machine can do, and whether a run could begin or has
 * left sound results. */
#include <string.h>

#include "cli/commands.h"
#include "temper/doctor.h"

typedef struct {
    bool json, cached, resume;
    int64_t threads;
    double seconds;
    const char *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON"),
    TP_SWITCH("cached", 0, cached, "use ceilings on file, measure only what is missing"),
    TP_SWITCH("resume", 'r', resume, "as 'temper train --resume' would begin"),
    TP_NUMBER("threads", 0, "N", INT, threads, 1, 4096, "default: one per core"),
    TP_NUMBER("seconds", 0, "S", FLOAT, seconds, 0.1, 3600, "time for the measurement (default 3)"),
    TP_CHOICE("isa", 0, "LEVEL", isa, TP_CLI_ISA,
              "highest instruction set to use: portable, avx2, avx512, avx512_bf16, amx"),
    {0}};

static int report(const tp_diagnosis *d, bool json)
{
    char *text;
    size_t n;
    tp_diagnosis_text(d, json, &text, &n);
    fwrite(text, 1, n, stdout);
    tp_free(text);
    return tp_diagnosis_failures(d) > 0 ? TP_EXIT_INPUT : TP_EXIT_OK;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    tp_error err = {0};
    tp_diagnosis *d;
    if (!tp_cli_force_isa(f->isa))
        return 2;
    tp_cli_catch_stop();
    char **rest = words;
    const char *config = NULL; /* a recipe or a run: the library looks which */
    if (n > 0 && !strchr(words[0], '=')) {
        config = *rest++;
        n--;
    }
    const tp_doctor_options options = {.size = sizeof options,
                                       .config = config,
                                       .overrides = (const char *const *)rest,
                                       .n_overrides = (size_t)n,
                                       .resume = f->resume,
                                       .use_cached = f->cached,
                                       .threads = (int)f->threads,
                                       .seconds = f->seconds,
                                       .should_stop = tp_cli_should_stop};
    tp_waiting_begin("temper doctor: measuring and looking");
    tp_status status = tp_diagnosis_make(&options, &d, &err);
    tp_waiting_end();
    if (tp_cli_should_stop(NULL)) {
        if (status == TP_OK)
            tp_diagnosis_free(d);
        return tp_cli_stopped(0);
    }
    if (status != TP_OK)
        return tp_cli_fail(&err);
    int exit_status = report(d, f->json);
    tp_diagnosis_free(d);
    return exit_status;
}

const tp_usage tp_usage_doctor = {
    .command = "doctor",
    .arguments = "[CONFIG [KEY=VALUE...]]\nRUN",
    .summary = "Measure what this machine can do.  With a configuration, of a training or an "
               "evaluation, go through everything that comes before the first step with the "
               "same code: every row of the data, files it names, model, weights, tokenizer, "
               "memory, disk, run folder; a judge is asked one question.  With a run folder, "
               "check its records and every file of its checkpoints.",
    .flags = flag_table,
    .details = "The ceilings are kept and used for MFU and for predictions.  Exit status 2 "
               "when a check fails.",
    .max_words = -1,
    .size = sizeof(flags),
    .defaults = &(const flags){.seconds = 3},
    .wraps = true,
    .run = execute};
