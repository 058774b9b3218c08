/* tensor.c - names of roles and layouts, and what a role's memory is charged to. */
#include "engine/device/tensor.h"

#include "base/platform.h"

static const struct {
    const char *name;
    tp_mem_kind memory;
} roles[TP_ROLES] = {
    [TP_ROLE_WEIGHT] = {"weight", TP_MEM_WEIGHTS},
    [TP_ROLE_GRADIENT] = {"gradient", TP_MEM_GRADIENTS},
    [TP_ROLE_MOMENT] = {"moment", TP_MEM_OPTIMIZER},
    [TP_ROLE_COPY] = {"copy", TP_MEM_SHADOW},
    [TP_ROLE_CACHE] = {"cache", TP_MEM_KV_CACHE},
    [TP_ROLE_ADAPTER] = {"adapter", TP_MEM_WEIGHTS},
    [TP_ROLE_CONSTANT] = {"constant", TP_MEM_CONSTANTS},
    [TP_ROLE_ERROR] = {"error", TP_MEM_OPTIMIZER},
};

static const char *const layouts[] = {
    [TP_LAYOUT_ROWS] = "rows",
    [TP_LAYOUT_PANELS] = "panels",
    [TP_LAYOUT_PANELS_TRANSPOSED] = "panels_t",
    [TP_LAYOUT_WHOLE] = "whole",
};

enum { LINE_ELEMENTS = 16 };

void tp_shard_part(size_t n, tp_shard shard, size_t *ret_begin, size_t *ret_end)
{
    size_t count = shard.count ? (size_t)shard.count : 1, index = (size_t)shard.index;
    size_t each = (n + count - 1) / count;
    if (count > 1)
        each = (each + LINE_ELEMENTS - 1) / LINE_ELEMENTS * LINE_ELEMENTS;
    *ret_begin = index * each < n ? index * each : n;
    *ret_end = (index + 1) * each < n ? (index + 1) * each : n;
}

bool tp_is_sliced(const tp_tensor *t) { return t->slice.count > 1; }

int64_t tp_tensor_dim(const tp_tensor *t, int d)
{
    if (tp_is_sliced(t) && t->slice.axis == d)
        return t->slice.length;
    return d < t->rank ? t->dim[d] : 1;
}

size_t tp_tensor_count(const tp_tensor *t)
{
    return (size_t)tp_tensor_dim(t, 0) * (size_t)tp_tensor_dim(t, 1);
}

void tp_tensor_held(const tp_tensor *t, size_t *ret_begin, size_t *ret_end)
{
    *ret_begin = 0;
    *ret_end = (size_t)t->dim[0] * (size_t)(t->rank == 2 ? t->dim[1] : 1);
    if (t->keeps_part)
        tp_shard_part(*ret_end, t->shard, ret_begin, ret_end);
}

void tp_tensor_share(const tp_tensor *t, size_t n, tp_shard among, size_t *ret_begin,
                     size_t *ret_end)
{
    int32_t parts = t->shard.count > 1 ? t->shard.count : 1;
    size_t first, last;
    *ret_begin = 0;
    *ret_end = among.index < t->slice.count * (t->keeps_part ? parts : 1) ? n : 0;
    if (tp_is_sliced(t)) /* of others that have the same of it the first write it */
        return;
    tp_shard_part(n, t->shard, &first, &last);
    int32_t copies = TP_MAX(t->copies, 1), group = parts * copies;
    tp_shard copy = {among.index / group * copies + among.index % copies,
                     among.count > parts ? among.count / parts : 1};
    tp_shard_part(last - first, copy, ret_begin, ret_end);
    *ret_begin += first;
    *ret_end += first;
}

bool tp_tensor_part(const tp_tensor *whole, tp_shard shard, tp_arena *arena, tp_tensor *ret)
{
    size_t begin, end;
    tp_shard_part((size_t)whole->dim[0] * (size_t)(whole->rank == 2 ? whole->dim[1] : 1), shard,
                  &begin, &end);
    *ret = *whole;
    ret->keeps_part = false;
    ret->slice = (tp_tensor_slice){0};
    ret->name = tp_arena_printf(arena, "%s.part", whole->name);
    ret->shard = shard;
    ret->rank = 1;
    ret->dim[0] = (int64_t)(end - begin);
    ret->dim[1] = 1;
    ret->within = whole->name;
    ret->within_at = begin;
    return end > begin;
}

tp_tensor tp_tensor_beside(const tp_tensor *weight, tp_role role, const char *prefix,
                           tp_arena *arena)
{
    return (tp_tensor){.name = tp_arena_printf(arena, "%s.%s", prefix, weight->name),
                       .of = weight->name,
                       .role = role,
                       .dtype = TP_DTYPE_F32,
                       .rank = weight->rank,
                       .dim = {weight->dim[0], weight->dim[1]}};
}

tp_tensor tp_tensor_gradient(const tp_tensor *weight, tp_arena *arena)
{
    return tp_tensor_beside(weight, TP_ROLE_GRADIENT, "grad", arena);
}

/* ---- slices ---- */

void tp_slice_part(tp_tensor_slice s, int64_t length, int64_t *ret_begin, int64_t *ret_end)
{
    int64_t each = (length + s.count - 1) / s.count;
    *ret_begin = TP_MIN(s.index * each, length);
    *ret_end = TP_MIN((s.index + 1) * each, length);
}

int64_t tp_slice_length(tp_tensor_slice s)
{
    int64_t begin, end, groups = TP_MAX(s.groups, 1);
    tp_slice_part(s, s.length / groups, &begin, &end);
    return groups * (end - begin);
}

/* The elements of a slice come back with a period: a group of rows, or of columns of a row. */
typedef struct {
    size_t period, begin, n;
} comb;

static comb comb_of(const tp_tensor *t)
{
    tp_tensor_slice s = t->slice;
    int64_t begin, end, group = s.length / TP_MAX(s.groups, 1);
    size_t inner = s.axis == 0 ? (size_t)tp_tensor_dim(t, 1) : 1;
    tp_slice_part(s, group, &begin, &end);
    return (comb){(size_t)group * inner, (size_t)begin * inner, (size_t)(end - begin) * inner};
}

static bool next_run(const tp_tensor *t, size_t *from, size_t end, tp_slice_run *ret)
{
    comb c = comb_of(t);
    size_t tooth = *from / c.period, first = tooth * c.period + c.begin;
    if (*from >= first + c.n) {
        tooth++;
        first += c.period;
    }
    size_t at = TP_MAX(*from, first), last = TP_MIN(first + c.n, end);
    if (!c.n || at >= last)
        return false;
    *ret = (tp_slice_run){at, tooth * c.n + (at - first), last - at};
    *from = last;
    return true;
}

bool tp_slice_next_held(const tp_tensor *t, size_t *from, size_t end, tp_slice_run *ret)
{
    size_t first, last;
    tp_tensor_held(t, &first, &last);
    if (!tp_is_sliced(t)) {
        size_t at = TP_MAX(*from, first);
        *from = TP_MAX(at, TP_MIN(end, last));
        *ret = (tp_slice_run){at, at, *from - at};
        return ret->n > 0;
    }
    while (next_run(t, from, end, ret) && ret->own < last) {
        size_t before = ret->own < first ? TP_MIN(first - ret->own, ret->n) : 0;
        *ret = (tp_slice_run){ret->at + before, ret->own + before, ret->n - before};
        ret->n = TP_MIN(ret->n, last - TP_MIN(ret->own, last));
        if (ret->n)
            return true;
    }
    return false;
}

const char *tp_role_name(tp_role role) { return roles[role].name; }

tp_mem_kind tp_role_memory(tp_role role) { return roles[role].memory; }

bool tp_role_parse(const char *name, tp_role *ret)
{
    for (int i = 0; i < TP_ROLES; i++)
        if (strcmp(name, roles[i].name) == 0) {
            *ret = (tp_role)i;
            return true;
        }
    return false;
}

const char *tp_layout_name(tp_layout layout) { return layouts[layout]; }

bool tp_layout_parse(const char *name, tp_layout *ret)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(name, layouts[i]) == 0) {
            *ret = (tp_layout)i;
            return true;
        }
    return false;
}
