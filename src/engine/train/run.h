/* run.h - a run's folder: who may write it, its record, its metrics.
 *
 *     run.json       one object, rewritten atomically at every attempt and at the end
 *     config.yaml    the resolved configuration of the newest attempt
 *     config.attempt-N.yaml   that of attempt N, where a later one was given another
 *     metrics.jsonl  one line per step and axis, append-only; the truth
 *     checkpoints/   see checkpoint.h
 *
 * A folder belongs to one process at a time (flock on .lock). */
#ifndef TP_ENGINE_TRAIN_RUN_H
#define TP_ENGINE_TRAIN_RUN_H

#include "engine/checkpoint/run_record.h"
#include "text/json/json.h"
#include "trace/metric.h"

typedef struct tp_run tp_run;

/* Open or create runs/<name>; `resume` continues an existing one (a new attempt), and the folder
 * must be there; otherwise a folder in which a run has begun is refused. */
TP_CHECKED tp_status tp_run_open(const char *dir, bool resume, tp_run **ret, tp_error *err);
/* Set-up is done: metrics.jsonl is made. */
TP_CHECKED tp_status tp_run_begin(tp_run *run, tp_error *err);
bool tp_run_has_begun(const tp_run *run);
/* A folder that was made for a run which has not begun goes.  NULL is a no-op. */
void tp_run_close(tp_run *run);

/* Could it be opened?  Fails as tp_run_open() would; changes nothing. */
TP_CHECKED tp_status tp_run_check(const char *dir, bool resume, tp_error *err);
/* A run in a temporary folder that goes when it is closed, with the name and, when it resumes,
 * the identity of that in `dir`. */
TP_CHECKED tp_status tp_run_open_scratch(const char *dir, bool resume, tp_run **ret, tp_error *err);

const char *tp_run_dir(const tp_run *run);
const char *tp_run_name(const tp_run *run);
int tp_run_attempt(const tp_run *run); /* from 1 */
/* 32 random hex digits that the run keeps for good; its checkpoints carry them. */
const char *tp_run_id(const tp_run *run);
/* What the attempts before said; NULL when there is no run.json. */
const tp_run_record *tp_run_before(const tp_run *run);
/* run.json is gone, the checkpoints know the run still. */
void tp_run_adopt(tp_run *run, const char *id);

/* A subscriber of the metric bus; `run` is the tp_run.  A record is a line of metrics.jsonl,
 * written with one write(2).  When the disk is full the line is kept and written with the next one
 * that succeeds: training does not stop for it.  Beyond 16 MiB lines are lost, which is said. */
void tp_run_write_metrics(void *run, const tp_metric_record *record);

/* Behind the last record.  TP_ERR_OUTPUT: some are not in metrics.jsonl. */
TP_CHECKED tp_status tp_run_end(tp_run *run, tp_error *err);

/* Replace run.json / config.yaml by this text. */
TP_CHECKED tp_status tp_run_write(tp_run *run, const char *file, const tp_buf *text, tp_error *err);
/* A path inside the folder; `out` holds 4096 bytes and is returned. */
char *tp_run_path(const tp_run *run, const char *file, char *out);

#endif
