/* find_recipe.c - the recipe that a word means: a file, or one that was installed. */
#include "api/find_recipe.h"

#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/platform.h"
#include "temper/config.h"

enum { PATH_CAP = 4096 };

/* ---- the recipes that came with the program ---- */

/* Beside what is at `file`: installed, or in the tree of a build. */
static bool find_beside(const char *file, tp_buf *folder)
{
    static const char *const places[] = {"../share/temper/recipes", "../../share/temper/recipes",
                                         "../../../../recipes"};
    char real[PATH_MAX];
    if (!realpath(file, real))
        return false;
    const char *home = dirname(real);
    for (size_t i = 0; i < TP_COUNTOF(places); i++) {
        char path[PATH_MAX + 64], *clean;
        snprintf(path, sizeof path, "%s/%s/demo.yaml", home, places[i]);
        if (!(clean = realpath(path, NULL)))
            continue;
        tp_buf_adds(folder, dirname(clean));
        free(clean);
        return true;
    }
    return false;
}

bool tp_recipes_folder(tp_buf *folder)
{
    static const char here[] = "";
    Dl_info info;
    if (dladdr(here, &info) && info.dli_fname && find_beside(info.dli_fname, folder))
        return true;
    return find_beside("/proc/self/exe", folder);
}

/* "demo, demo-grpo, dpo ..." in the order of the alphabet. */
static void list_recipes(const char *folder, const char *between, tp_buf *out)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (tp_str_ends(name, ".yaml"))
            tp_buf_addf(out, "%s%.*s", out->len ? between : "", (int)(strlen(name) - 5), name);
        free(entries[i]);
    }
    free(entries);
}

static bool find_in(const char *folder, const char *name, tp_buf *path)
{
    static const char *const endings[] = {"", ".yaml"};
    struct stat st;
    for (int i = 0; i < 2; i++) {
        tp_buf_clear(path);
        tp_buf_addf(path, "%s/%s%s", folder, name, endings[i]);
        if (stat(path->data, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

/* The file that `word` means. */
static tp_status find_recipe(const char *word, tp_buf *path, tp_error *err)
{
    struct stat st;
    TP_OWN(tp_buf) folder = {0}, names = {0};
    const char *name = tp_str_starts(word, "recipes/") ? word + strlen("recipes/") : word;
    tp_buf_adds(path, word);
    if (strcmp(word, "-") == 0)
        return TP_OK;
    if (stat(word, &st) == 0 && S_ISDIR(st.st_mode)) { /* a run, or what is like one */
        tp_buf_adds(path, "/config.yaml");
        if (stat(path->data, &st) == 0)
            return TP_OK;
        return tp_fail(err, TP_ERR_IO,
                       "'%.300s' is a folder without a config.yaml, which that of a run has; name "
                       "the recipe",
                       word);
    }
    if (stat(word, &st) == 0 || !*name || strchr(name, '/') || !tp_recipes_folder(&folder)) {
        return TP_OK; /* opening it says what is wrong, if something is */
    }
    if (!find_in(folder.data, name, path)) {
        list_recipes(folder.data, ", ", &names);
        return tp_fail(err, TP_ERR_IO,
                       "there is no file '%.300s', nor a recipe of that name in %.1000s; there "
                       "are %.1000s",
                       word, folder.data, tp_buf_str(&names));
    }
    return TP_OK;
}

tp_status tp_recipe_find(const char *word, char **ret_path, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_buf found = {0};
    if (!word || !ret_path)
        return tp_fail(err, TP_ERR_ARG, "tp_recipe_find: an argument is NULL");
    tp_status status = find_recipe(word, &found, err);
    if (status == TP_OK && found.len >= PATH_CAP)
        status = tp_fail(err, TP_ERR_CONFIG, "'%.200s...': the path is too long", found.data);
    if (status == TP_OK)
        *ret_path = found.data;
    else
        tp_buf_release(&found);
    return status;
}

tp_status tp_recipe_names(char **ret_names, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_buf folder = {0}, names = {0};
    if (!ret_names)
        return tp_fail(err, TP_ERR_ARG, "tp_recipe_names: ret_names is NULL");
    if (tp_recipes_folder(&folder))
        list_recipes(folder.data, "\n", &names);
    tp_buf_adds(&names, names.len ? "\n" : "");
    tp_buf_release(&folder);
    *ret_names = names.data;
    return TP_OK;
}
