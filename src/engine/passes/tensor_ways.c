/* tensor_ways.c - the ways in which an op may be divided, as its row says (`splits` of
 * ir/ops.h). */
#include <string.h>

#include "base/platform.h"
#include "engine/passes/tensor_parallel.h"

bool tp_way_find(const char *splits, int i, tp_way *ret)
{
    while (splits && i-- > 0) {
        splits = strchr(splits, ';');
        splits = splits ? splits + 2 : NULL;
    }
    if (!splits)
        return false;
    *ret = (tp_way){0};
    for (const char *at = splits;; at++) {
        size_t n = strcspn(at, "+;");
        TP_ASSERT(ret->n < TP_WAY_NAMES && n < TP_WAY_NAME);
        memcpy(ret->names[ret->n++], at, n);
        at += n;
        if (*at != '+')
            return true;
    }
}

static bool has_name(const char *expression, const char *name)
{
    for (const char *at = expression; *at; at += *at != 0) {
        size_t n = strcspn(at, "*/+");
        if (strlen(name) == n && strncmp(at, name, n) == 0)
            return true;
        at += n;
    }
    return false;
}

int tp_way_axis(const tp_way *w, const tp_operand_spec *spec, const tp_attrs *attrs)
{
    bool swaps = spec->swaps && attrs->transposed;
    for (int d = 0; d < TP_MAX_RANK; d++)
        for (int i = 0; i < w->n; i++)
            if (has_name(spec->dim[d ^ swaps], w->names[i]))
                return d;
    return -1;
}

bool tp_way_is_of_rows(const tp_way *w) { return strcmp(w->names[0], "T") == 0; }
