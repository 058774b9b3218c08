/* dataset.h - columns of numbers out of what people have.
 *
 * Text in columns: separated by tabs, commas, semicolons or spaces, with or without a line
 * of names, which may be numbers beside words where the line below has numbers below the words, or
 * where they are years or double (8, 16, 32); it may leave out the first column, which has names of
 * rows; '#' begins a comment; a field in quotes may hold line breaks, and the last line may end in
 * it; an empty cell, NA, null or - is missing.  A column whose first cell is no number holds
 * labels. JSON: an array of numbers or of arrays, an object of arrays ({"x": .., "y": ..},
 * {"groups": ..}), an array of objects, or one object per line (metrics.jsonl; members of inner
 * objects are "outer.inner").
 *
 * Reading fails only on the form.  A cell that is not a finite number where numbers began
 * spoils its column, and tp_dataset_numbers() of that column says where it is. */
#ifndef TP_STATS_DATASET_H
#define TP_STATS_DATASET_H

#include "stats/common.h"

enum { TP_DATASET_MAX_COLUMNS = 1000 };

typedef struct {
    char *name;
    bool is_named; /* by the input, not by its place */
    bool is_label;
    double *values; /* numbers, NaN where missing; of a label its number among `labels` */
    size_t n;       /* rows up to the last cell that is there */
    char **labels;  /* different ones, in order of appearance */
    size_t n_labels;
    size_t bad_line; /* 0: none */
    char bad_text[40];
    bool is_mixed; /* a label column that holds numbers as well: first_text is why it is one */
    size_t first_line;
    char first_text[40];
    size_t capacity, label_capacity; /* private */
} tp_column;

typedef struct {
    char name[200]; /* of the input */
    tp_column *columns;
    size_t n_columns, n_rows;
    bool is_json;
    bool has_row_names;  /* in a first column that the line of names leaves out */
    bool has_names;      /* a table whose first line was read as names */
    bool is_first_mixed; /* the first line has words and numbers: either was guessed */
    size_t cut_line;     /* the last, which ends within quotes and was left out; 0: none */
    bool is_records; /* JSON objects, one a row: columns are different things, not samples of one */
} tp_stats_dataset;

TP_CHECKED tp_status tp_dataset_read(const char *name, const char *text, size_t n,
                                     tp_stats_dataset *ret, tp_error *err);
void tp_dataset_release(tp_stats_dataset *data); /* zeroed is a no-op */

/* A column by its name, by the inner part of one ("loss" finds "m.loss"), or by its place
 * from 1.  NULL when there is none; ret_other (may be NULL): a second one with this inner
 * part, or NULL. */
const tp_column *tp_dataset_find(const tp_stats_dataset *data, const char *word,
                                 const tp_column **ret_other);

/* The numbers of a column without the missing ones: *ret is the caller's to free. */
TP_CHECKED tp_status tp_dataset_numbers(const tp_stats_dataset *data, const tp_column *column,
                                        double **ret, size_t *n, size_t *n_missing, tp_error *err);

/* Rows in which both columns have numbers. */
TP_CHECKED tp_status tp_dataset_pairs(const tp_stats_dataset *data, const tp_column *a,
                                      const tp_column *b, double **ret_a, double **ret_b, size_t *n,
                                      size_t *n_dropped, tp_error *err);

#endif
