/* import_rows.h - the rows of a source's table, and what the conversions share.
 *
 *     SAME (who, key, fallback, target, remark)
 *         the value as it is
 *     WORDS(who, key, fallback, target, words, remark)
 *         "a=b|c=d": a becomes b; others are refused
 *     MADE (who, key, role, fallback, target, remark)
 *         conversions.c makes its targets, under the name that TRL has for it
 *     IDLE (who, key, remark)
 *         changes no result
 *     ONLY (who, key, values, remark)
 *         any other value is refused
 *
 * who: ALL, SFT, DPO or GRPO.  fallback: the source's default in YAML, NULL where it has none or
 * where nothing follows from it.  In a target @ stands for the section of the algorithm.  A key
 * that ends in * stands for all that begin so. */
#ifndef TP_CONFIG_IMPORT_IMPORT_ROWS_H
#define TP_CONFIG_IMPORT_IMPORT_ROWS_H

#include "config/import/import.h"

enum { TP_FOR_SFT = 1, TP_FOR_DPO = 2, TP_FOR_GRPO = 4, TP_FOR_ALL = 7 };

typedef struct tp_import_row {
    const char *key;
    enum { TP_ROW_SAME, TP_ROW_WORDS, TP_ROW_MADE, TP_ROW_IDLE, TP_ROW_ONLY } kind;
    unsigned who;
    const char *role, *fallback, *target, *values, *remark;
} tp_import_row;

#define SAME(whom, name, text, to, why) \
    {.key = name,                       \
     .kind = TP_ROW_SAME,               \
     .who = TP_FOR_##whom,              \
     .fallback = text,                  \
     .target = to,                      \
     .remark = why},
#define WORDS(whom, name, text, to, words, why) \
    {.key = name,                               \
     .kind = TP_ROW_WORDS,                      \
     .who = TP_FOR_##whom,                      \
     .fallback = text,                          \
     .target = to,                              \
     .values = words,                           \
     .remark = why},
#define MADE(whom, name, called, text, to, why) \
    {.key = name,                               \
     .kind = TP_ROW_MADE,                       \
     .who = TP_FOR_##whom,                      \
     .role = called,                            \
     .fallback = text,                          \
     .target = to,                              \
     .remark = why},
#define IDLE(whom, name, why) \
    {.key = name, .kind = TP_ROW_IDLE, .who = TP_FOR_##whom, .remark = why},
#define ONLY(whom, name, allowed, why) \
    {.key = name, .kind = TP_ROW_ONLY, .who = TP_FOR_##whom, .values = allowed, .remark = why},

/* ---- rows ---- */

bool tp_import_matches(const tp_import_row *row, const char *key);
/* The row of a key: its own before one that stands for many; NULL: none. */
const tp_import_row *tp_import_find(const tp_import *im, unsigned for_whom, const char *key);
unsigned tp_import_who(const char *algorithm); /* TP_FOR_...; 0: unknown */

/* Is there a row below it, as trl.beta below trl? */
bool tp_import_is_section(const tp_import *im, const char *key);
const char *tp_import_target(tp_import *im, const char *target); /* with the section for @ */
/* A value as tables of words have it. */
const char *tp_import_spelled(tp_import *im, const tp_json *value);
/* A piece of YAML; `from` may be NULL. */
void tp_import_set(tp_import *im, tp_import_key *from, const char *target, const char *value);

/* ---- recognise.c ---- */

/* Files that are known, and no configurations. */
TP_CHECKED tp_status tp_import_not_these(const char *path, const tp_json *root, tp_error *err);
TP_CHECKED tp_status tp_import_choose_source(tp_import *im, const tp_json *root, tp_error *err);
TP_CHECKED tp_status tp_import_choose_algorithm(tp_import *im, const tp_json *root, tp_error *err);

/* ---- for conversions ---- */

bool tp_import_is(const tp_import *im, const char *algorithm);
/* The key with that role: the one of the file, else the source's default, else NULL. */
tp_import_key *tp_import_role(tp_import *im, const char *role);
bool tp_import_given(tp_import *im, const char *role);
/* Its value; NAN when there is none, or null.  What is no number is refused. */
double tp_import_number(tp_import *im, const char *role);
bool tp_import_flag(tp_import *im, const char *role); /* false without one */
/* Text of a string, number or boolean; NULL when there is none, or null. */
const char *tp_import_word(tp_import *im, const char *role);
/* Is it one of "a|b|c"? */
bool tp_import_one_of(const char *word, const char *words);

/* Set a key of the recipe to a piece of YAML, `@` for the algorithm's section; `role` is whence. */
void tp_import_put(tp_import *im, const char *role, const char *target, const char *fmt, ...)
    TP_PRINTF(4, 5);
void tp_import_put_json(tp_import *im, tp_import_key *from, const char *target,
                        const tp_json *value);
/* The state of a role's key, with a remark; where there is no such key the conversion's own. */
void tp_import_mark(tp_import *im, const char *role, tp_import_state state, const char *fmt, ...)
    TP_PRINTF(4, 5);

tp_import_key *tp_import_add(tp_import *im, tp_import_key key);

/* conversions*.c: everything that takes more than one key. */
void tp_import_convert(tp_import *im);
void tp_import_optimizer(tp_import *im);
void tp_import_adapter(tp_import *im);
void tp_import_data(tp_import *im);
void tp_import_rewards(tp_import *im);
/* nemo_rl.c */
TP_CHECKED tp_status tp_import_nemo_rl(tp_import *im, tp_error *err);

#endif
