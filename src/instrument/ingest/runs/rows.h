/* rows.h - records that are JSON objects: which member is the step, which the time, which are
 * figures.
 *
 * Nested objects are flattened with '/'; members named m, data and metrics without a prefix. Bools,
 * texts and arrays are no figures, but "NaN", "Infinity" and "-Infinity" are, as Temper and trackio
 * write them. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_ROWS_H
#define TP_INSTRUMENT_INGEST_RUNS_ROWS_H

#include "instrument/ingest/runs/recorded.h"
#include "instrument/ingest/runs/tail.h"
#include "text/json/json.h"

typedef struct {
    size_t tag, n_tag;   /* in `text` */
    size_t said, n_said; /* of a text: likewise */
    double value;
    bool is_number, is_text;
} tp_flat_row_member;

/* The object that was read last. */
typedef struct {
    tp_buf text, prefix;
    tp_flat_row_member *members;
    size_t n, cap;
    bool unwraps;    /* a list of one number counts as the number */
    bool is_flat;    /* objects inside are left out, not flattened */
    bool is_plain;   /* a text is never a number */
    bool is_anyones; /* "nan", "inf" and their kin are numbers in any case: Python's str() */
} tp_flat_row;

void tp_flat_row_release(tp_flat_row *row);
tp_slice tp_flat_row_tag(const tp_flat_row *row, const tp_flat_row_member *m);
tp_slice tp_flat_row_text(const tp_flat_row *row, const tp_flat_row_member *m);
/* The last member of that name, or NULL. */
const tp_flat_row_member *tp_flat_row_find(const tp_flat_row *row, const char *tag);

/* Read an object from right behind its BEGIN_OBJECT to its end; MORE is an error. */
TP_CHECKED tp_status tp_flat_row_read(tp_flat_row *row, tp_json_reader *r, tp_error *err);
/* A whole text that is one object. */
TP_CHECKED tp_status tp_flat_row_parse(tp_flat_row *row, const char *name, const char *text,
                                       size_t n, tp_error *err);

/* Which members of a row of unknown origin are its step, its time and its long-form tag. */
typedef struct {
    const tp_flat_row_member *step, *wall, *tag, *value;
} tp_flat_row_roles;
/* Append the row as a record; without a step it gets `row_number`. */
void tp_flat_row_record(tp_metrics *m, const tp_flat_row *row, int64_t row_number);

/* A number of seconds since 1970 from one in seconds, milliseconds, ... or an ISO date; NaN. */
/* "2025-01-31T12:00:00.123456+02:00" exactly as Python's datetime.timestamp(); NaN: not one. */
double tp_iso_seconds(const char *text, size_t n);
/* Whether the text is "nan", "inf" or "infinity" in any case, with a sign or without. */
bool tp_flat_row_spelled(tp_slice text, double *ret);
bool tp_flat_row_is_step_name(const char *name); /* of a member that may be the step */
int64_t tp_flat_row_step(double value);          /* TP_STEP_NONE when it is no whole number */

/* A file that is one JSON value and written anew as a whole, as tp_file_changed(): half of a new
 * one is waited for, and what was read before holds until then. */
typedef struct {
    tp_file_state file; /* zeroed is not read yet */
    bool is_half;
} tp_json_file;
bool tp_json_file_changed(const char *path, tp_json_file *f, bool *ret_again);
void tp_json_file_say(const char *path, const tp_json_file *f, tp_notes *notes);
/* The whole text of it, behind a byte order mark. */
TP_CHECKED tp_status tp_json_file_read(const char *path, tp_buf *ret, tp_error *err);

/* Every member as a setting of the run. */
void tp_flat_row_settings(tp_metrics *m, const tp_flat_row *row);
/* Of event files: hparams as add_hparams() writes them; a text that is a JSON object. */
void tp_rows_hparams(tp_metrics *m, tp_slice content);
void tp_rows_text_settings(tp_metrics *m, tp_slice tag, tp_slice text);

#endif
