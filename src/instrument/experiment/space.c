/* space.c - dimensions of a search, out of a resolved configuration and a set of levers. */
#include "instrument/experiment/space.h"

#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "base/vec.h"

/* ---- the configuration ---- */

static const tp_json *find(const tp_json *tree, const char *path)
{
    char part[128];
    while (tree && *path) {
        size_t n = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        tree = tp_json_get(tree, part);
        path += n + (path[n] == '.');
    }
    return tree;
}

static int64_t number(const tp_json *tree, const char *path, int64_t otherwise)
{
    int64_t v;
    return tp_json_i64(find(tree, path), &v) ? v : otherwise;
}

/* ---- sizes ---- */

static tp_space_axis *add_dimension(tp_space *s, const char *name, int lever)
{
    TP_ASSERT(s->n < TP_SPACE_MOST);
    tp_space_axis *d = &s->dimensions[s->n++];
    *d = (tp_space_axis){.name = name, .n = 1, .lever = lever};
    return d;
}

static void add_option(tp_space_axis *d, const char *settings)
{
    if (d->n < TP_SPACE_OPTIONS)
        d->options[d->n++] = settings;
}

static void drop_empty(tp_space *s) { s->n -= s->dimensions[s->n - 1].n < 2; }

/* The tokens of a micro-batch, where `section` is in use. */
static void add_budget(const tp_json *tree, const char *section, int64_t tokens, tp_buf *out)
{
    bool is_enabled = false;
    if (tp_json_bool(tp_json_get(find(tree, section), "enabled"), &is_enabled) && is_enabled)
        tp_buf_addf(out, " %s.train_mb_tokens=%lld", section, (long long)tokens);
}

static void add_micro_batch(tp_space *s, const tp_json *tree, int64_t tokens, tp_arena *arena)
{
    int64_t global = number(tree, "policy.train_global_batch_size", 0);
    int64_t micro = number(tree, "policy.train_micro_batch_size", 0);
    int64_t length = number(tree, "policy.max_total_sequence_length", 0);
    if (global < 1 || micro < 1 || length < 1)
        return;
    tp_space_axis *d = add_dimension(s, "micro-batch", -1);
    for (int64_t b = 1; b <= global && b > 0; b *= 2) {
        if (b * length == (tokens > 0 ? tokens : micro * length) || global % b != 0)
            continue;
        TP_OWN(tp_buf) settings = {0};
        tp_buf_addf(&settings, "policy.train_micro_batch_size=%lld", (long long)b);
        add_budget(tree, "policy.sequence_packing", b * length, &settings);
        add_budget(tree, "policy.dynamic_batching", b * length, &settings);
        add_option(d, tp_arena_strdup(arena, settings.data));
    }
    drop_empty(s);
}

static void add_recompute(tp_space *s, const tp_json *tree)
{
    static const char *const words[] = {"policy.recompute=none", "policy.recompute=selective",
                                        "policy.recompute=full"};
    const char *now = tp_json_str(find(tree, "policy.recompute"));
    if (!find(tree, "policy.recompute"))
        return;
    tp_space_axis *d = add_dimension(s, "recompute", -1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(strchr(words[i], '=') + 1, now ? now : "none") != 0)
            add_option(d, words[i]);
}

static void add_threads(tp_space *s, const tp_json *tree, int processors, tp_arena *arena)
{
    int64_t now = number(tree, "engine.threads", processors);
    tp_space_axis *d = add_dimension(s, "threads", -1);
    for (int n = 1; n <= processors; n = n < processors && 2 * n > processors ? processors : 2 * n)
        if (n != now)
            add_option(d, tp_arena_printf(arena, "engine.threads=%d", n));
    drop_empty(s);
}

static void add_answers(tp_space *s, const tp_json *tree, tp_arena *arena)
{
    int64_t now = number(tree, "policy.generation.max_running", 0);
    if (now < 1)
        return;
    tp_space_axis *d = add_dimension(s, "answers", -1);
    for (int64_t n = 8; n <= 256; n *= 2)
        if (n != now)
            add_option(d,
                       tp_arena_printf(arena, "policy.generation.max_running=%lld", (long long)n));
}

/* ---- levers ---- */

/* Does one of `settings` set a key that a size sets already? */
static bool is_taken(const tp_space *s, const char *setting)
{
    size_t n = strcspn(setting, "=") + 1;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 1; k < s->dimensions[i].n; k++)
            if (s->dimensions[i].options[k] &&
                strncmp(s->dimensions[i].options[k], setting, n) == 0)
                return true;
    return false;
}

static tp_status add_levers(tp_space *s, bool allow_precision, tp_arena *arena, tp_error *err)
{
    TP_FREED tp_put *put = tp_vec_new(s->set->n + 1, sizeof *put);
    for (size_t i = 0; i < s->set->n; i++)
        put[i] = TP_PUT_AS_IS;
    for (size_t i = 0; i < s->set->n && s->n < TP_SPACE_MOST; i++) {
        const char *const *settings;
        size_t n;
        put[i] = TP_PUT_ON;
        TP_TRY(s->set->settings(s->set->user, put, arena, &settings, &n, err));
        put[i] = TP_PUT_AS_IS;
        bool is_free = s->set->levers[i].recipe != TP_PUT_AS_IS;
        for (size_t k = 0; k < n; k++) {
            is_free &= !is_taken(s, settings[k]);
            is_free &= allow_precision || !tp_str_starts(settings[k], "policy.precision=");
        }
        if (is_free)
            add_option(add_dimension(s, s->set->levers[i].name, (int)i), NULL);
    }
    return TP_OK;
}

tp_status tp_space_make(tp_space *s, const tp_lever_set *set, const tp_json *tree, int64_t tokens,
                        int processors, bool allow_precision, tp_arena *arena, tp_error *err)
{
    *s = (tp_space){.set = set};
    add_micro_batch(s, tree, tokens, arena);
    add_recompute(s, tree);
    add_threads(s, tree, processors, arena);
    add_answers(s, tree, arena);
    return add_levers(s, allow_precision, arena, err);
}

/* ---- points ---- */

static size_t count_settings(const tp_space *s, const tp_space_point *p)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        for (const char *at = s->dimensions[i].options[p->option[i]]; at; at = strchr(at + 1, ' '))
            n++;
    return n;
}

tp_status tp_space_settings(const tp_space *s, const tp_space_point *p, tp_arena *arena,
                            const char *const **ret, size_t *ret_n, tp_error *err)
{
    const char *const *of_levers;
    size_t n_levers, n = 0;
    TP_FREED tp_put *put = tp_vec_new(s->set->n + 1, sizeof *put);
    for (size_t i = 0; i < s->set->n; i++)
        put[i] = TP_PUT_AS_IS;
    for (size_t i = 0; i < s->n; i++) {
        int lever = s->dimensions[i].lever;
        if (lever >= 0 && p->option[i])
            put[lever] = s->set->levers[lever].recipe == TP_PUT_ON ? TP_PUT_OFF : TP_PUT_ON;
    }
    tp_status status = s->set->settings(s->set->user, put, arena, &of_levers, &n_levers, err);
    TP_TRY(status);
    const char **all = tp_arena_array(arena, const char *, n_levers + count_settings(s, p) + 1);
    memcpy(all, of_levers, n_levers * sizeof *all);
    n = n_levers;
    for (size_t i = 0; i < s->n; i++) {
        const char *option = s->dimensions[i].options[p->option[i]];
        char *rest = NULL, *copy = option ? tp_arena_strdup(arena, option) : NULL;
        for (char *w = copy ? strtok_r(copy, " ", &rest) : NULL; w; w = strtok_r(NULL, " ", &rest))
            all[n++] = w;
    }
    *ret = all;
    *ret_n = n;
    return TP_OK;
}

const char *tp_space_name(const tp_space *s, const tp_space_point *p, tp_arena *arena)
{
    TP_OWN(tp_buf) name = {0};
    for (size_t i = 0; i < s->n; i++) {
        const tp_space_axis *d = &s->dimensions[i];
        if (!p->option[i])
            continue;
        tp_buf_addf(&name, "%s%s", name.len ? ", " : "", d->name);
        if (d->lever >= 0) {
            tp_buf_adds(&name, s->set->levers[d->lever].recipe == TP_PUT_ON ? " off" : " on");
        } else {
            const char *value = strchr(d->options[p->option[i]], '=') + 1;
            tp_buf_addf(&name, " %.*s", (int)strcspn(value, " "), value);
        }
    }
    return tp_arena_strdup(arena, name.len ? name.data : "the recipe");
}
