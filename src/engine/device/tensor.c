/* tensor.c - names of roles and layouts, and what a role's memory is charged to. */
#include "engine/device/tensor.h"

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
};

static const char *const layouts[] = {
    [TP_LAYOUT_ROWS] = "rows",
    [TP_LAYOUT_PANELS] = "panels",
    [TP_LAYOUT_PANELS_TRANSPOSED] = "panels_t",
};

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
