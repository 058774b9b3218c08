#include "cli/recipe.h"

#include <string.h>

typedef tp_status open_fn(const char *path, const char *const *overrides, size_t n, tp_recipe *ret,
                          tp_error *err);

static tp_status open_recipe(open_fn *open, char **words, int n, tp_recipe *ret, tp_error *err)
{
    bool has_file = n > 0 && !strchr(words[0], '=');
    const char *const *overrides = (const char *const *)words + has_file;
    return open(has_file ? words[0] : NULL, overrides, (size_t)(n - has_file), ret, err);
}

tp_status tp_cli_open_recipe(char **words, int n, tp_recipe *ret, tp_error *err)
{
    return open_recipe(tp_recipe_open, words, n, ret, err);
}

tp_status tp_cli_open_recipe_sizes(char **words, int n, tp_recipe *ret, tp_error *err)
{
    return open_recipe(tp_recipe_open_sizes, words, n, ret, err);
}

int tp_cli_add_isa(char **words, int n, const char *isa, char *text)
{
    if (!isa)
        return n;
    snprintf(text, 64, "engine.isa=%s", isa);
    words[n] = text;
    return n + 1;
}
