/* option_rows.h - rows of an algorithm's table of options: those of config/option_rows.h, and what
 * all of them have.  For its own keys, HOLDER is the algorithm's struct and HOLDER_AT is
 * TP_OWN_OPTIONS. */
#ifndef TP_ENGINE_TRAIN_OPTION_ROWS_H
#define TP_ENGINE_TRAIN_OPTION_ROWS_H

#include "config/option_rows.h"
#include "engine/train/options.h"

/* What every algorithm's section has. */
#define LOOP_AT(member) offsetof(tp_train_options, loop.member)
#define LOOP_ROWS(section, epochs, epochs_meaning, steps, steps_meaning, period, at_start)      \
    ROW(section ".max_num_epochs", TP_OPT_INT, LOOP_AT(max_num_epochs), epochs, epochs_meaning, \
        .min = 1, .max = INFINITY)                                                              \
    ROW(section ".max_num_steps", TP_OPT_INT, LOOP_AT(max_num_steps), steps, steps_meaning,     \
        .min = 1, .max = INFINITY)                                                              \
    ROW(section ".val_period", TP_OPT_INT, LOOP_AT(val_period), period,                         \
        "Steps between validations; 0 or -1 = never.", .min = -1, .max = INFINITY)              \
    ROW(section ".val_at_start", TP_OPT_BOOL, LOOP_AT(val_at_start), at_start,                  \
        "Validate before the first step.")                                                      \
    ROW(section ".val_at_end", TP_OPT_BOOL, LOOP_AT(val_at_end), "false",                       \
        "Validate after the last step.")                                                        \
    ROW(section ".seed", TP_OPT_INT, LOOP_AT(seed), "42", "NeMo RL's name for the seed.",       \
        .min = 0, .max = 9007199254740992.0)
/* Of those whose validation goes through a file in batches. */
#define VALIDATION_ROWS(section, batch, batch_meaning)                                       \
    ROW(section ".val_batches", TP_OPT_INT, LOOP_AT(val_batches), "8",                       \
        "Batches per validation; 0 = all.", .min = 0, .max = INFINITY)                       \
    ROW(section ".val_global_batch_size", TP_OPT_INT, LOOP_AT(val_global_batch_size), batch, \
        batch_meaning, .min = 1, .max = 1e9)                                                 \
    IDLE(section ".val_micro_batch_size", COUNT, "1",                                        \
         "Validation uses the micro-batches of training.")

#endif
