/* environment_rows.h - the rows of tp_environment_kinds, each in a file of its own. */
#ifndef TP_ENGINE_REWARD_ENVIRONMENT_ROWS_H
#define TP_ENGINE_REWARD_ENVIRONMENT_ROWS_H

#include "config/option_rows.h"
#include "engine/reward/environment_kind.h"

/* env_math.c: an expected answer that is a number or mathematics. */
extern const tp_environment_kind tp_env_math, tp_env_math_default, tp_env_math_expr, tp_env_numeric,
    tp_env_gsm8k;
/* env_exact.c: an expected answer that is text. */
extern const tp_environment_kind tp_env_exact, tp_env_exact_alnum;
/* env_arithmetic.c, env_countdown.c: questions of their own. */
extern const tp_environment_kind tp_env_arithmetic, tp_env_countdown;
/* env_format.c, env_length.c: how it is said. */
extern const tp_environment_kind tp_env_format, tp_env_length;
/* env_program.c, env_library.c: judges from outside. */
extern const tp_environment_kind tp_env_program, tp_env_library;

/* Rows of keys are of an environment's `settings`; a generator's say so. */
#define HOLDER settings
#define HOLDER_AT 0

#endif
