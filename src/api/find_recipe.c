/* find_recipe.c - the recipe that a word means: a file, or one that was installed. */
#include "api/find_recipe.h"

#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/platform.h"
#include "temper/config.h"

enum { PATH_CAP = 4096, MAX_RECIPE = 1 << 20 };

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
    TP_FREED struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (tp_str_ends(name, ".yaml"))
            tp_buf_addf(out, "%s%.*s", out->len ? between : "", (int)(strlen(name) - 5), name);
        free(entries[i]);
    }
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

/* ---- what is given in a recipe's place ---- */

static bool ends_in_one_of(const char *word, const char *const *endings)
{
    for (; *endings; endings++)
        if (tp_str_ends(word, *endings))
            return true;
    return false;
}

static bool holds_model(const char *folder)
{
    static const char *const names[] = {"config.json", "adapter_config.json"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        TP_OWN(tp_buf) path = {0};
        struct stat st;
        tp_buf_addf(&path, "%s/%s", folder, names[i]);
        if (stat(path.data, &st) == 0)
            return true;
    }
    return false;
}

tp_status tp_recipe_refuse_model(const char *word, tp_error *err)
{
    static const char *const endings[] = {".safetensors", ".gguf", NULL};
    if (!ends_in_one_of(word, endings) && !holds_model(word))
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "'%.300s' is a model, not a recipe; name the recipe before it, as in: sft "
                   "policy.model_name=%.300s data.train.data_path=FILE (evaluations: "
                   "generation.model_name)",
                   word, word);
}

static tp_status refuse_rows(const char *word, tp_error *err)
{
    static const char *const endings[] = {".jsonl", ".csv", ".parquet", NULL};
    if (!ends_in_one_of(word, endings))
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "'%.300s' holds rows, it is no recipe; name the recipe before it, as in: sft "
                   "policy.model_name=DIR data.train.data_path=%.300s (evaluations: "
                   "data.data_path)",
                   word, word);
}

/* The name of a model, as others download it, has a slash too. */
static tp_status refuse_name(const char *word, tp_error *err)
{
    static const char *const endings[] = {".yaml", ".yml", ".json", NULL};
    struct stat st;
    if (stat(word, &st) == 0 || !strchr(word, '/') || tp_str_starts(word, "recipes/") ||
        ends_in_one_of(word, endings))
        return TP_OK;
    return tp_fail(err, TP_ERR_IO,
                   "there is no recipe or run '%.300s'; if it is a model: " TP_MODEL_REMEDY
                   ", and the recipe comes before it, as in: sft policy.model_name=FOLDER "
                   "data.train.data_path=FILE",
                   word);
}

/* ---- the recipe that is named ---- */

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
        TP_TRY(tp_recipe_refuse_model(word, err));
        return tp_fail(err, TP_ERR_IO,
                       "'%.300s' is a folder without a config.yaml, which that of a run has; name "
                       "the recipe",
                       word);
    }
    TP_TRY(tp_recipe_refuse_model(word, err));
    TP_TRY(refuse_rows(word, err));
    TP_TRY(refuse_name(word, err));
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
    TP_NEED(word && ret_path, err);
    tp_status status = find_recipe(word, &found, err);
    if (status == TP_OK && found.len >= PATH_CAP)
        status = tp_fail(err, TP_ERR_CONFIG, "'%.200s...': the path is too long", found.data);
    TP_HAND_OVER(status, ret_path, found.data, tp_buf_release(&found));
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

/* What a recipe is for: its first comment, to the end of the clause. */
static void add_title(const char *folder, tp_slice name, tp_buf *out)
{
    TP_OWN(tp_buf) path = {0}, text = {0};
    tp_buf_addf(&path, "%s/%.*s.yaml", folder, (int)name.len, name.data);
    if (tp_file_read(path.data, MAX_RECIPE, &text, NULL) != TP_OK ||
        !tp_str_starts(tp_buf_str(&text), "# "))
        return;
    const char *title = text.data + 2;
    size_t n = strcspn(title, ":;\n");
    tp_buf_add(out, title, n);
}

tp_status tp_recipe_list(char **ret_text, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_OWN(tp_buf) folder = {0}, names = {0};
    tp_buf text = {0};
    size_t widest = 0;
    if (!ret_text)
        return tp_fail(err, TP_ERR_ARG, "tp_recipe_list: ret_text is NULL");
    if (!tp_recipes_folder(&folder))
        return tp_fail(err, TP_ERR_IO, "no recipes came with this program or library");
    list_recipes(folder.data, "\n", &names);
    for (int pass = 0; pass < 2; pass++)
        for (const char *p = tp_buf_str(&names); *p; p += *p == '\n') {
            tp_slice name = {p, strcspn(p, "\n")};
            p += name.len;
            widest = TP_MAX(widest, name.len);
            if (!pass)
                continue;
            tp_buf_addf(&text, "  %-*.*s  ", (int)widest, (int)name.len, name.data);
            add_title(folder.data, name, &text);
            tp_buf_addc(&text, '\n');
        }
    tp_buf_addf(&text, "in %s\n", folder.data);
    *ret_text = text.data;
    return TP_OK;
}
