/* study.h - one experiment of temper/experiment.h on disk: its folder, its runs, its remarks.
 *
 *     FOLDER/samples.jsonl   one line a run, written as it ends: what it was, every step's time,
 *                            tokens and loss
 *     FOLDER/report.json, report.md, effects.svg
 *
 * Folders of the runs themselves go as soon as they are read. */
#ifndef TP_INSTRUMENT_EXPERIMENT_STUDY_H
#define TP_INSTRUMENT_EXPERIMENT_STUDY_H

#include <stdio.h>

#include "instrument/experiment/rounds.h"
#include "instrument/experiment/trainings.h"
#include "temper/experiment.h"

typedef struct {
    tp_experiment_options o; /* with defaults in place */
    const char *verb;        /* "ablate" */
    tp_experiment x;
    tp_trainings trainings;
    const tp_json *tree; /* the configuration, resolved */
    char program[4096], folder[4096];
    FILE *samples;
    bool is_worthless;       /* what was measured answers nothing: the folder goes */
    double start_s, spent_s; /* the latter once it is concluded */
    bool may_warm_up_less;   /* nobody asked for a number of steps */
    char stage[64];          /* what is under way: "levers, round 3 of 40" */
    double left_s;           /* seconds to go as the stage began, at most */
    double stage_s;          /* when that was */
    double busy_at_start;    /* share of ten seconds in which somebody waited for a processor */
} tp_study;

/* Defaults, the configuration with `settings` on top (it may be refused), the folder. */
TP_CHECKED tp_status tp_study_open(tp_study *s, const char *verb,
                                   const tp_experiment_options *options, const char *config,
                                   const char *const *overrides, size_t n, tp_error *err);
void tp_study_close(tp_study *s);

/* One run of a variant that is not counted: caches are filled, and it tells how many steps a run
 * has: as many as fill a second, fewer where the budget does not hold the `wanted` runs of that
 * length, down to what pays for the start of a run, and to one where it would not hold the `needed`
 * ones.  A variant that cannot run is an error. */
TP_CHECKED tp_status tp_study_pilot(tp_study *s, size_t variant, int stage, size_t wanted,
                                    size_t needed, tp_error *err);

/* The precision in which the run computes: "bfloat16"; NULL: unknown. */
const char *tp_study_precision(const tp_study *s);

/* What is under way from here on, and what it takes at most; NaN: not known.  Every run says so. */
void tp_study_stage(tp_study *s, double left_s, const char *fmt, ...) TP_PRINTF(3, 4);
/* FOLDER/name gets these bytes. */
TP_CHECKED tp_status tp_study_save(const tp_study *s, const char *name, const tp_buf *text,
                                   tp_error *err);
/* Nothing more is measured. */
void tp_study_end(tp_study *s);
/* Members that every report has: rounds' conditions, versions, budget. */
void tp_study_write(const tp_study *s, tp_json_w *w);
/* Remarks for people about how it went: the machine was busy, the budget ended, runs failed. */
void tp_study_remarks(const tp_study *s, tp_buf *out);

#endif
