/* recipe_open.c - a recipe read, bound, and fitted to the memory. */
#include "engine/train/fit.h"

static tp_status read_recipe(const char *path, const char *const *overrides, size_t n,
                             bool sizes_only, tp_recipe *ret, tp_error *err)
{
    tp_recipe r = {0};
    for (size_t i = 0; i < n; i++)
        if (!overrides || !overrides[i])
            return tp_fail(err, TP_ERR_ARG, "override %zu of %zu is NULL", i, n);
    TP_TRY(tp_recipe_load(path, overrides, n, &r.config, err));
    TP_HAND_OVER(tp_recipe_bind(&r, sizes_only, err), ret, r, tp_recipe_close(&r));
}

static tp_status open_recipe(const char *path, const char *const *overrides, size_t n,
                             bool sizes_only, tp_recipe *ret, tp_error *err)
{
    tp_recipe r;
    TP_TRY(read_recipe(path, overrides, n, sizes_only, &r, err));
    TP_HAND_OVER(tp_recipe_fit(&r, sizes_only, err), ret, r, tp_recipe_close(&r));
}

tp_status tp_recipe_open(const char *path, const char *const *overrides, size_t n, tp_recipe *ret,
                         tp_error *err)
{
    return tp_comm_is_launched() ? read_recipe(path, overrides, n, false, ret, err)
                                 : open_recipe(path, overrides, n, false, ret, err);
}

tp_status tp_recipe_open_sizes(const char *path, const char *const *overrides, size_t n,
                               tp_recipe *ret, tp_error *err)
{
    return open_recipe(path, overrides, n, true, ret, err);
}

tp_status tp_recipe_read_sizes(const char *path, const char *const *overrides, size_t n,
                               tp_recipe *ret, tp_error *err)
{
    return read_recipe(path, overrides, n, true, ret, err);
}
