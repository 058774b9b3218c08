/* lever_rows.h - a row of the table of levers, between the files that work with it. */
#ifndef TP_ENGINE_TRAIN_LEVER_ROWS_H
#define TP_ENGINE_TRAIN_LEVER_ROWS_H

#include "engine/train/levers.h"

/* What a plan with the lever the other way can tell about it. */
enum { TP_TELLS_BYTES = 1, TP_TELLS_SECONDS = 2, TP_TELLS_LAUNCHES = 4 };

typedef struct {
    tp_lever shown;
    unsigned told;
    /* (optional) state and reason where the settings do not say them */
    void (*look)(const tp_train_options *o, tp_lever_report *r);
    /* (optional) */
    tp_lever_measure (*measure)(const trainer *t);
} tp_lever_row;

extern const tp_lever_row tp_lever_rows[];
extern const size_t tp_lever_row_count;

/* The next of "key=value key=value"; false behind the last. */
bool tp_setting_next(const char **text, tp_slice *ret_key, tp_slice *ret_value);

#endif
