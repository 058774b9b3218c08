/* environment_kinds.c - the table of environments; a new one is a row here. */
#include <string.h>

#include "engine/reward/environment_kind.h"
#include "engine/reward/environment_rows.h"

const tp_environment_kind *const tp_environment_kinds[] = {
    &tp_env_math,        &tp_env_math_default,
    &tp_env_math_expr,   &tp_env_numeric,
    &tp_env_gsm8k,       &tp_env_exact,
    &tp_env_exact_alnum, &tp_env_arithmetic,
    &tp_env_countdown,   &tp_env_format,
    &tp_env_length,      &tp_env_program,
    &tp_env_library,     NULL};

const tp_environment_kind *tp_environment_kind_find(const char *name)
{
    for (const tp_environment_kind *const *k = tp_environment_kinds; *k; k++)
        if (strcmp((*k)->name, name) == 0)
            return *k;
    return NULL;
}
