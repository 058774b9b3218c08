/* option_rows.h - the rows of a table of options, one macro a kind.
 *
 * Whoever writes rows says first which struct the members are of, and where that lies in the
 * struct that is bound:
 *
 *     #define HOLDER tp_train_options
 *     #define HOLDER_AT 0
 *
 * What the kinds mean stands in engine/train/options.def. */
#ifndef TP_CONFIG_OPTION_ROWS_H
#define TP_CONFIG_OPTION_ROWS_H

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "config/config.h"

/* The offset of a member, which must have the type that the row stores. */
#define AT(member, type_name)               \
    (HOLDER_AT + offsetof(HOLDER, member) + \
     0 * sizeof(char[_Generic(((HOLDER *)0)->member, type_name : 1)]))

#define ROW(key, row_type, place, text, meaning, ...) \
    {.name = key,                                     \
     .type = row_type,                                \
     .offset = place,                                 \
     .default_value = text,                           \
     .doc = meaning,                                  \
     __VA_ARGS__},

#define FLAG(key, member, text, meaning) ROW(key, TP_OPT_BOOL, AT(member, bool), text, meaning)
#define COUNT(key, member, text, least, most, meaning) \
    ROW(key, TP_OPT_INT, AT(member, int64_t), text, meaning, .min = least, .max = most)
#define REAL(key, member, text, least, most, meaning) \
    ROW(key, TP_OPT_FLOAT, AT(member, double), text, meaning, .min = least, .max = most)
#define COUNT_OR_NULL(key, member, text, least, most, meaning)                          \
    ROW(key, TP_OPT_INT, AT(member, int64_t), text, meaning, .min = least, .max = most, \
        .nullable = true)
#define REAL_OR_NULL(key, member, text, least, most, meaning)                            \
    ROW(key, TP_OPT_FLOAT, AT(member, double), text, meaning, .min = least, .max = most, \
        .nullable = true)
#define TEXT_OR_NULL(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING, AT(member, const char *), text, meaning, .nullable = true)
#define REALS(key, member, text, least, most, meaning) \
    ROW(key, TP_OPT_FLOAT_LIST, AT(member, tp_f64_list), text, meaning, .min = least, .max = most)
#define TEXT(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING, AT(member, const char *), text, meaning)
#define TEXTS(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING_LIST, AT(member, tp_str_list), text, meaning)
#define REALS_OR_NULL(key, member, text, least, most, meaning)                                     \
    ROW(key, TP_OPT_FLOAT_LIST, AT(member, tp_f64_list), text, meaning, .min = least, .max = most, \
        .nullable = true)
#define TEXTS_OR_NULL(key, member, text, meaning) \
    ROW(key, TP_OPT_STRING_LIST, AT(member, tp_str_list), text, meaning, .nullable = true)
#define PATH(key, member, text, meaning, ...)                                          \
    ROW(key, TP_OPT_STRING, AT(member, const char *), text, meaning, .nullable = true, \
        .is_path = true, __VA_ARGS__)
#define WORD(key, member, text, words, meaning) \
    ROW(key, TP_OPT_ENUM, AT(member, int), text, meaning, .choices = words)
/* The words are the names of a table's rows. */
#define ROW_OF(key, member, text, table, meaning)                        \
    ROW(key, TP_OPT_ENUM, AT(member, int), text, meaning, .rows = table, \
        .row_bytes = sizeof *(table))
#define ROW_OF_OR_NULL(key, member, text, table, meaning)                \
    ROW(key, TP_OPT_ENUM, AT(member, int), text, meaning, .rows = table, \
        .row_bytes = sizeof *(table), .nullable = true)
#define WORD_OR_NULL(key, member, text, words, meaning) \
    ROW(key, TP_OPT_ENUM, AT(member, int), text, meaning, .choices = words, .nullable = true)
#define TREE(key, member, text, meaning) \
    ROW(key, TP_OPT_SECTION, AT(member, const tp_json *), text, meaning)

#define IDLE(key, kind, text, meaning) \
    ROW(key, TYPE_##kind, TP_OPT_NOT_STORED, text, meaning, .ignored = true, .nullable = true)
#define IDLE_WORD(key, text, words, meaning)                                                   \
    ROW(key, TP_OPT_ENUM, TP_OPT_NOT_STORED, text, meaning, .ignored = true, .nullable = true, \
        .choices = words)
#define MUTE(key, meaning)                                                        \
    ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, "null", meaning, .ignored = true, \
        .unannounced = true)

#define UNDER(key, on, text, meaning) \
    ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, text, meaning, .ignored = true, .when = on)
#define REFUSED(key, on, values, meaning)                                       \
    ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, NULL, meaning, .ignored = true, \
        .accepted = values, .when = on)

#define PART(key, meaning) ROW(key, TP_OPT_SECTION, TP_OPT_NOT_STORED, "null", meaning)

#define TYPE_FLAG TP_OPT_BOOL
#define TYPE_COUNT TP_OPT_INT
#define TYPE_TEXT TP_OPT_STRING
#define TYPE_TREE TP_OPT_SECTION

#endif
