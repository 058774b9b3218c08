/* program_settings.h - the keys of an environment that is a program. */
#ifndef TP_ENGINE_REWARD_PROGRAM_SETTINGS_H
#define TP_ENGINE_REWARD_PROGRAM_SETTINGS_H

#include "config/config.h"

enum { TP_PROGRAM_MOST_IN_FLIGHT = 256, TP_PROGRAM_ROWS = 8 };

typedef struct {
    tp_str_list command;
    double timeout, grace, backoff;
    int64_t in_flight, retries, max_failures, max_line_bytes;
} tp_program_settings;

extern const tp_option tp_program_rows[TP_PROGRAM_ROWS];

#endif
