/* study.h - what `temper ablate` and `temper tune` share: flags, progress, Ctrl-C. */
#ifndef TP_CLI_STUDY_H
#define TP_CLI_STUDY_H

#include "cli/cli.h"
#include "temper/experiment.h"

typedef struct {
    bool json, quiet;
    const char *budget, *out, *isa;
    int64_t steps, warm_up, seed;
    double timeout_s, margin;
} tp_study_flags;

#define TP_STUDY_DEFAULTS        \
    {                            \
        .seed = 1, .warm_up = -1 \
    }

/* Rows of a command's table; its struct `flags` has a tp_study_flags named `common`. */
#define TP_STUDY_FLAGS(folder)                                                                    \
    TP_TEXT("budget", 'b', "TIME", common.budget, "time for everything: 30s, 10m (default), 1h"), \
        TP_NUMBER("steps", 0, "N", INT, common.steps, 1, 100000,                                  \
                  "measured steps of a run (default: as many as take a second, 5 to 40)"),        \
        TP_NUMBER("warm-up", 0, "N", INT, common.warm_up, 0, 100000,                              \
                  "steps before those (default 2, 1 where the budget is short)"),                 \
        TP_SHARE("margin", common.margin, "\"same\" is within this share (default 1%)"),          \
        TP_NUMBER("timeout", 0, "SECONDS", FLOAT, common.timeout_s, 0.001, 1e7,                   \
                  "of one run (default 600)"),                                                    \
        TP_NUMBER("seed", 's', "N", INT, common.seed, 0, 1e15,                                    \
                  "of the order of the rounds (default 1)"),                                      \
        TP_TEXT("out", 'o', "FOLDER", common.out, "for the evidence (default: " folder ")"),      \
        TP_SWITCH("quiet", 'q', common.quiet, "neither progress nor remarks"),                    \
        TP_SWITCH("json", 0, common.json, "the report as JSON"),                                  \
        TP_CHOICE("isa", 0, "LEVEL", common.isa, TP_CLI_ISA, "the same as engine.isa=LEVEL")

/* 0, or the exit status after saying what is wrong. */
int tp_study_options(const char *command, const tp_study_flags *f, tp_experiment_options *ret);

/* Ctrl-C and SIGTERM end what is measured. */
void tp_study_catch_signals(void);
/* Print the report or the failure; the exit status, of a signal where there was one. */
int tp_study_finish(tp_status done, char *text, const tp_error *err);

#endif
