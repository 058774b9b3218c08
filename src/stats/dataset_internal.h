/* dataset_internal.h - filling a data set, for its two readers. */
#ifndef TP_STATS_DATASET_INTERNAL_H
#define TP_STATS_DATASET_INTERNAL_H

#include "stats/dataset.h"

/* The column of that name, made when it is new; NULL makes one named by its place.
 * `hint` is where it is likely to be. */
TP_CHECKED tp_status dataset_column(tp_stats_dataset *data, const char *name, size_t length,
                                    size_t hint, tp_column **ret, tp_error *err);

/* A number in full, perhaps one that no double can hold. */
bool dataset_is_number(const char *text);

/* An empty cell, NA, ... */
bool dataset_is_missing(const char *text, size_t n);

/* A cell as text: missing, a number or a label. */
void dataset_cell(tp_stats_dataset *data, tp_column *c, size_t row, size_t line, const char *text,
                  size_t n);

TP_CHECKED tp_status dataset_json(const char *text, size_t n, tp_stats_dataset *data,
                                  tp_error *err);

#endif
