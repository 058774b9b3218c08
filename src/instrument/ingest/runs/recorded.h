/* recorded.h - a run as its readers fill it.
 *
 * A reader appends records: each has a number, that counts up over the whole run, and brings points
 * of any number of tags.  Nothing is ever dropped here: what a restart, a checksum or an attempt
 * means for a point is kept as a mark, and views.h decides which points count. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_RECORDED_H
#define TP_INSTRUMENT_INGEST_RUNS_RECORDED_H

#include <math.h>

#include "instrument/ingest/notes.h"
#include "instrument/ingest/runs/piped.h"
#include "instrument/ingest/string_table.h"
#include "temper/analysis.h"
#include "text/json/json.h"

typedef struct tp_run_reader tp_run_reader;

/* Marks of a point.  The first five are made by readers of event files. */
enum {
    TP_MARK_BAD_DATA = 1,  /* the record's own checksum is wrong */
    TP_MARK_AFTER_BAD = 2, /* behind such a record of the same file */
    TP_MARK_AFTER_GAP = 4, /* behind a place where the framing was lost */
    TP_MARK_PURGES = 8,    /* a file without version: points of the tag before it, from its step on,
                              are void */
    TP_MARK_TENSOR = 16,   /* written as a tensor, not as simple_value */
    TP_MARK_NOT_FLOAT = 32,      /* a tensor that is no float of rank 0 */
    TP_MARK_PURGES_HIGHEST = 64, /* as PURGES, for the reader that goes by the highest step */
    TP_MARK_NO_NUMBER = 128,     /* purges, and is no figure itself */
    TP_MARK_FILE_SHIFT = 8       /* above: which file, or attempt, the point is from */
};

typedef struct {
    int64_t step; /* TP_STEP_NONE */
    double wall;  /* NaN */
    double value;
    uint32_t record; /* counts over the run */
    uint32_t marks;
} tp_recorded_point;

typedef struct {
    tp_recorded_point *points;
    size_t n, cap;
    uint32_t next;            /* the series that came after this one last time */
    bool is_scalar;           /* shown; a tensor of event files is not, before its kind is known */
    bool is_scalar_undamaged; /* the same, known from what is before any damage */
    bool has_simple;          /* of event files: a simple_value, whatever the tag's kind */
    bool is_sampled;          /* several values of one step are samples of it, not corrections */
    bool is_uneven; /* steps that do not rise, points that no view sees: views have to look */
    size_t n_odd;   /* values that are not finite */
    bool is_other_undamaged;
    bool is_other; /* of another kind for good: text, histogram, ... */
} tp_recorded_series;

/* A restart, as an event file marks it: what is from `step` on is written again. */
typedef struct {
    uint32_t record, file;
    int64_t step;
    bool is_first;     /* of the run */
    bool is_versioned; /* a version was known when it came */
    bool is_behind_damage;
} tp_recorded_start;

/* Of formats that count attempts: the record of the highest attempt counts, per step and axis. */
typedef struct {
    int64_t step;
    uint32_t axis, attempt, record;
} tp_recorded_attempt;

/* What is known of the steps of rows of unknown origin; see steps.h. */
typedef struct {
    double epoch;
    int64_t high; /* the highest step of it, as counted; INT64_MIN: none */
} tp_row_epoch;

/* Of rows with the same tags: the last of them. */
typedef struct {
    double epoch; /* NaN: none yet */
    int64_t written;
} tp_row_kind;

/* From this record on so much was added to a step. */
typedef struct {
    uint32_t record;
    int64_t before;
} tp_row_shift;

typedef enum { TP_COUNT_UNKNOWN, TP_COUNT_OF_EPOCH, TP_COUNT_OF_RUN } tp_row_counts;

typedef struct {
    tp_row_counts counts; /* what the numbers in rows with an epoch are */
    tp_row_epoch *epochs; /* rising */
    size_t n_epochs, cap_epochs;
    tp_string_table names; /* of kinds: their tags */
    tp_buf kind;           /* scratch */
    tp_row_kind *kinds;    /* by number of the name */
    size_t n_kinds, cap_kinds;
    tp_row_shift *shifts;
    size_t n_shifts, cap_shifts;
    bool has_parts;  /* an epoch was no whole number */
    bool has_zero;   /* a step was 0 */
    bool varies;     /* a kind's step rose, or there are several kinds */
    bool has_fallen; /* a kind's step fell into a higher epoch */
    bool was_taken_back;
    tp_row_epoch first_on; /* the first epoch that was counted on, and from which step */
    size_t n_without;      /* rows with a step and no epoch */
    bool has_reached;      /* a row with an epoch and a step was there */
    int64_t reached;
    bool any, rises; /* a step was there; the last that was another was above the one before */
    int64_t last;
    bool falls; /* the last step, from `high` to `low` */
    int64_t high, low;
    size_t n_lone; /* falls from which no row went on, and the first of them */
    int64_t first_high, first_low;
} tp_row_steps;

typedef struct {
    char *key, *value;
} tp_recorded_setting;

struct tp_metrics {
    char *path;       /* of the place, without '#' */
    char *name;       /* with it, where a run of several was asked for */
    char *run;        /* of several in it, or NULL */
    bool is_followed; /* what may still be written is waited for */
    tp_piped piped;
    const tp_run_reader *reader;
    void *state; /* the reader's */

    tp_string_table tags;       /* number 0 is the empty text */
    tp_recorded_series *series; /* by tag number */
    size_t n_series, cap_series;
    uint32_t last_series; /* of the point before */
    uint32_t n_records, n_files;

    tp_recorded_start *starts;
    size_t n_starts, cap_starts;
    tp_recorded_attempt *attempts;
    size_t n_attempts, cap_attempts;
    uint8_t *superseded; /* by record; NULL: none ever was */
    size_t n_superseded, cap_superseded;
    size_t n_judged;             /* attempts that it knows */
    tp_recorded_attempt *newest; /* of those the one with the highest step, by axis */
    size_t n_axes, cap_axes;

    tp_row_steps row_steps;
    const char *step_tag; /* carries the training's step in the same record, or NULL */
    tp_recorded_setting *settings;
    size_t n_settings, cap_settings;
    tp_notes notes;
    size_t n_lasting_notes; /* those before it hold for good, the rest is made anew each time */

    uint32_t *shown; /* series that are scalars, in order of appearance */
    size_t n_shown, cap_shown;
    tp_metric_point *scratch; /* what the last call handed out */
    size_t cap_scratch;
};

/* Forget what was read, keep where it is. */
void tp_recorded_clear(tp_metrics *m);

/* The next record's number.  False when there are no more (2^32), which is noted once. */
bool tp_recorded_next(tp_metrics *m);
/* The series of a tag, made when there is none. */
tp_recorded_series *tp_recorded_series_of(tp_metrics *m, const char *tag, size_t n);
/* A point of the current record. */
void tp_recorded_add(tp_metrics *m, tp_recorded_series *s, int64_t step, double wall, double value,
                     uint32_t marks);
/* The same for records that are objects: a tag that comes twice in one counts once, as its last. */
void tp_recorded_put(tp_metrics *m, tp_slice tag, int64_t step, double wall, double value,
                     uint32_t marks);
void tp_recorded_setting_add(tp_metrics *m, tp_slice key, tp_slice value);

static inline uint32_t tp_recorded_file(const tp_recorded_point *p)
{
    return p->marks >> TP_MARK_FILE_SHIFT;
}

#endif
