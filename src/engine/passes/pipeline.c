/* pipeline.c - the passes in order, each verified after it ran, and how to leave one out. */
#include <string.h>

#include "engine/passes/pipeline.h"
#include "engine/passes/plugin.h"

const tp_pass *const tp_pass_pipeline[] = {
    &tp_pass_cse,
    &tp_pass_dce,
    &tp_pass_tensor_parallel,
    &tp_pass_shard_update,
    &tp_pass_autocast,
    &tp_pass_fuse_swiglu,
    &tp_pass_fuse_bias_gelu,
    &tp_pass_fuse_linear_ce,
    &tp_pass_fuse_residual_norm,
    &tp_pass_fuse_grad_add,
    &tp_pass_fuse_grad_norm,
    &tp_pass_pack_weights,
    &tp_pass_recompute,
    &tp_pass_int8_activations,
    &tp_pass_schedule,
    &tp_pass_shard,
    &tp_pass_compress,
    &tp_pass_bucket,
    &tp_pass_overlap,
    NULL,
};

const tp_pass *tp_pass_find(const char *name)
{
    for (const tp_pass *const *p = tp_pass_pipeline; *p; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    return NULL;
}

bool tp_pass_named(const char *word, const char *name)
{
    return strcmp(word, name) == 0 || (strcmp(word, "fuse") == 0 && strncmp(name, "fuse-", 5) == 0);
}

bool tp_pass_is_disabled(const char *const *words, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (tp_pass_named(words[i], name))
            return true;
    return false;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; words && *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

tp_status tp_passes_check(const char *const *words, size_t n, const char *const *more,
                          tp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i], "fuse") == 0 || tp_pass_find(words[i]) || is_one_of(words[i], more) ||
            tp_plugin_is_loaded(words[i]))
            continue;
        TP_OWN(tp_buf) known = {0};
        for (const char *const *m = more; m && *m; m++)
            tp_buf_addf(&known, "%s%s", known.len ? ", " : "", *m);
        for (const tp_pass *const *p = tp_pass_pipeline; *p; p++)
            tp_buf_addf(&known, "%s%s", known.len ? ", " : "", (*p)->name);
        for (size_t k = 0; k < tp_plugins_count(); k++)
            tp_buf_addf(&known, ", %s", tp_plugin_name(k));
        return tp_fail(err, TP_ERR_CONFIG, "there is no pass '%s'; known: fuse, %s", words[i],
                       tp_buf_str(&known));
    }
    return TP_OK;
}

/* Sources first, so that a rewrite may put a node anywhere after them. */
static void hoist_sources(tp_graph *g)
{
    uint32_t n = g->n_nodes - 1, at = 0;
    uint32_t *order = tp_arena_array(&g->arena, uint32_t, n + 1);
    for (int sources = 1; sources >= 0; sources--)
        for (uint32_t i = 1; i <= n; i++)
            if (!!(tp_ops[g->nodes[i].op]->traits & TP_OP_SOURCE) == sources)
                order[at++] = i;
    tp_graph_reorder(g, order, n);
}

static tp_status settle(const tp_pass *pass, tp_graph *g, tp_status status, bool changed,
                        tp_error *err)
{
    if (status == TP_OK && changed) {
        hoist_sources(g);
        status = tp_graph_verify(g, err);
    }
    return status == TP_OK ? TP_OK : tp_error_prefix(err, status, "after pass %s: ", pass->name);
}

static tp_status run_one(const tp_pass *pass, tp_graph *const *set, size_t n,
                         const tp_pass_options *options, tp_error *err)
{
    for (size_t i = 0; i < n && pass->run; i++) {
        bool changed = false;
        tp_graph_count_uses(set[i]);
        tp_status status = pass->run(set[i], options, &changed, err);
        TP_TRY(settle(pass, set[i], status, changed, err));
    }
    for (size_t i = 0; i < n && pass->join; i++) {
        bool changed = false;
        tp_status status = pass->join(set[i], set, n, options, &changed, err);
        TP_TRY(settle(pass, set[i], status, changed, err));
    }
    for (size_t i = 0; i < n && options->observe; i++)
        options->observe(options->observe_user, pass->name, i);
    return TP_OK;
}

/* Those of shared objects, before layouts, recomputation and order are chosen. */
static tp_status run_plugins(tp_graph *const *set, size_t n, const tp_pass_options *options,
                             tp_error *err)
{
    for (size_t k = 0; k < tp_plugins_count(); k++) {
        const tp_pass pass = {.name = tp_plugin_name(k)};
        if (tp_pass_find(pass.name))
            return tp_fail(err, TP_ERR_CONFIG, "plug-in '%s': there is a pass of the name %s",
                           tp_plugin_path(k), pass.name);
        if (tp_pass_is_disabled(options->disabled, options->n_disabled, pass.name))
            continue;
        for (size_t i = 0; i < n; i++) {
            bool changed = false;
            tp_graph_count_uses(set[i]);
            tp_status status = tp_plugin_run(k, set[i], &changed, err);
            TP_TRY(settle(&pass, set[i], status, changed, err));
        }
        for (size_t i = 0; i < n && options->observe; i++)
            options->observe(options->observe_user, pass.name, i);
    }
    return TP_OK;
}

/* See shapes.c. */
static tp_status size_shares(tp_graph *const *set, size_t n, const tp_pass_options *options,
                             bool longest, tp_error *err)
{
    for (size_t i = 0; i < n && options->tensor.count > 1; i++)
        TP_TRY(tp_pass_size_shares(set[i], longest, err));
    return TP_OK;
}

tp_status tp_passes_run(tp_graph *const *set, size_t n, const tp_pass_options *options,
                        tp_error *err)
{
    TP_TRY(tp_passes_check(options->disabled, options->n_disabled, NULL, err));
    for (size_t i = 0; i < n; i++) {
        hoist_sources(set[i]);
        TP_TRY(tp_graph_verify(set[i], err));
    }
    for (const tp_pass *const *p = tp_pass_pipeline; *p; p++) {
        if (*p == &tp_pass_pack_weights)
            TP_TRY(run_plugins(set, n, options, err));
        if (*p == &tp_pass_schedule)
            TP_TRY(size_shares(set, n, options, true, err));
        if (!tp_pass_is_disabled(options->disabled, options->n_disabled, (*p)->name))
            TP_TRY(run_one(*p, set, n, options, err));
    }
    return size_shares(set, n, options, false, err);
}

tp_status tp_recompute_parse(const char *text, tp_recompute *ret_mode, int *ret_every,
                             tp_error *err)
{
    int64_t k;
    *ret_every = 1;
    if (strcmp(text, "none") == 0)
        *ret_mode = TP_RECOMPUTE_NONE;
    else if (strcmp(text, "full") == 0)
        *ret_mode = TP_RECOMPUTE_FULL;
    else if (strcmp(text, "selective") == 0)
        *ret_mode = TP_RECOMPUTE_SELECTIVE;
    else if (tp_str_starts(text, "every:") && tp_str_to_i64(text + 6, &k) && k >= 1 && k <= 4096) {
        *ret_mode = TP_RECOMPUTE_EVERY;
        *ret_every = (int)k;
    } else
        return tp_fail(err, TP_ERR_CONFIG,
                       "recompute '%s' is unknown; use none, full, selective or every:K", text);
    return TP_OK;
}
