/* optimizer_rows.h - the table of keys of an optimizer's row, and what reads its own settings.
 *
 * Rows of config/option_rows.h are of the row's own struct, which the file names first:
 *
 *     TP_OPTIMIZER_OWN(adamw_settings)        own(settings)->eps
 *     #define HOLDER adamw_settings
 *
 * OF_ALL(key, member, default, meaning) is a row of what every optimizer has. */
#ifndef TP_ENGINE_TRAIN_OPTIMIZERS_OPTIMIZER_ROWS_H
#define TP_ENGINE_TRAIN_OPTIMIZERS_OPTIMIZER_ROWS_H

#include "config/option_rows.h"
#include "engine/train/optimizers/optimizer.h"

#define TP_OPTIMIZER_OWN(type)                                                          \
    static_assert(sizeof(type) <= TP_OPTIMIZER_OWN_BYTES, "see tp_optimizer_settings"); \
    static const type *own(const tp_optimizer_settings *s)                              \
    {                                                                                   \
        return (const type *)(const void *)s->own.bytes;                                \
    }
#define HOLDER_AT offsetof(tp_optimizer_settings, own)

#define OF_ALL(key, member, text, meaning) \
    ROW(key, TP_OPT_FLOAT, offsetof(tp_optimizer_settings, member), text, meaning, .max = 1000)
#define OF_ALL_OR_NULL(key, member, text, meaning)                                              \
    ROW(key, TP_OPT_FLOAT, offsetof(tp_optimizer_settings, member), text, meaning, .max = 1000, \
        .nullable = true)

#endif
