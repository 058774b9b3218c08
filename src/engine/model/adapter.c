/* adapter.c - which modules an adapter is on, and the tensors that it has there. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/model/adapter_internal.h"

#include <fnmatch.h>
#include <math.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"

enum { MATCH_LIMIT = 1000 * 1000 };

/* ---- matching ---- */

static bool is_whole_word_at_end(const char *name, const char *word)
{
    size_t n = strlen(name), w = strlen(word);
    return n >= w && strcmp(name + n - w, word) == 0 && (n == w || name[n - w - 1] == '.');
}

/* What `text` is when nobody said. */
static tp_match guess(const char *text)
{
    bool is_regex = strpbrk(text, "()[]{}|\\^$+?") || strstr(text, ".*");
    return is_regex && *text != '*' /* nothing to repeat: a wildcard */ ? TP_MATCH_PATTERN
                                                                        : TP_MATCH_NAME;
}

/* A regular expression of `key` and what it is looked for in. */
typedef struct {
    const char *key, *pattern, *name;
    bool whole; /* the name to its end */
} search;

static tp_status compile(const search *s, pcre2_code **ret, tp_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t options = PCRE2_UTF | PCRE2_ANCHORED | (s->whole ? PCRE2_ENDANCHORED : 0);
    *ret = pcre2_compile((PCRE2_SPTR)s->pattern, PCRE2_ZERO_TERMINATED, options, &code, &at, NULL);
    if (*ret)
        return TP_OK;
    char why[128];
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    return tp_fail(err, TP_ERR_CONFIG,
                   "%s: the regular expression '%s' is wrong at character %zu: %s", s->key,
                   s->pattern, (size_t)at + 1, why);
}

/* *ret_idx (NULL: nobody asks): what the group "idx" holds. */
static tp_status match_pattern(const search *s, bool *ret, int64_t *ret_idx, tp_error *err)
{
    pcre2_code *regex;
    TP_TRY(compile(s, &regex, err));
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(regex, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    TP_ASSERT(data && limits);
    pcre2_set_match_limit(limits, MATCH_LIMIT);
    *ret = pcre2_match(regex, (PCRE2_SPTR)s->name, PCRE2_ZERO_TERMINATED, 0, 0, data, limits) >= 0;
    if (*ret && ret_idx) {
        PCRE2_UCHAR digits[24];
        PCRE2_SIZE n = sizeof digits;
        *ret = pcre2_substring_copy_byname(data, (PCRE2_SPTR) "idx", digits, &n) == 0;
        *ret_idx = *ret ? strtoll((const char *)digits, NULL, 10) : 0;
    }
    pcre2_match_context_free(limits);
    pcre2_match_data_free(data);
    pcre2_code_free(regex);
    return TP_OK;
}

static tp_status match_one(const char *text, tp_match kind, const char *name, bool *ret,
                           tp_error *err)
{
    if (strcmp(text, "all-linear") == 0) {
        *ret = true;
        return TP_OK;
    }
    if (kind == TP_MATCH_PATTERN || (kind == TP_MATCH_GUESS && guess(text) == TP_MATCH_PATTERN))
        return match_pattern(&(search){"target_modules", text, name, true}, ret, NULL, err);
    const char *dot = strrchr(name, '.');
    *ret = is_whole_word_at_end(name, text) ||
           (kind == TP_MATCH_GUESS && strchr(text, '*') &&
            (fnmatch(text, name, 0) == 0 || fnmatch(text, dot ? dot + 1 : name, 0) == 0));
    return TP_OK;
}

/* used[i]: entry i has matched something. */
static tp_status match(const tp_modules *list, const char *name, bool *used, bool *ret,
                       tp_error *err)
{
    *ret = false;
    for (size_t i = 0; i < list->n; i++) {
        bool matches = false;
        TP_TRY(match_one(list->v[i], list->kind, name, &matches, err));
        *ret |= matches;
        if (used)
            used[i] |= matches;
    }
    return TP_OK;
}

/* The number of the first entry that matches; *ret stays where none does. */
static tp_status number_of(const char *key, const tp_module_numbers *list, const char *name,
                           double *ret, tp_error *err)
{
    bool matches = false;
    for (size_t i = 0; i < list->n && !matches; i++) {
        TP_OWN(tp_buf) pattern = {0};
        tp_buf_addf(&pattern, "(?:.*\\.)?(?:%s)", list->v[i].pattern);
        const search s = {key, tp_buf_str(&pattern), name, true};
        TP_TRY(match_pattern(&s, &matches, NULL, err));
        if (matches)
            *ret = list->v[i].value;
    }
    return TP_OK;
}

static bool is_listed(const tp_modules *list, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < list->n; i++)
        found |= strcmp(list->v[i], name) == 0;
    return found;
}

/* Is the module's layer one of those to adapt? */
static tp_status match_layer(const tp_lora_settings *s, const char *name, bool *ret, tp_error *err)
{
    const tp_lora_layers *l = &s->layers;
    int64_t layer = -1;
    bool found = false;
    *ret = l->n == 0 || is_listed(&s->targets, name);
    if (*ret)
        return TP_OK;
    for (size_t i = 0; i < TP_MAX(l->n_patterns, 1) && !found; i++) {
        TP_OWN(tp_buf) pattern = {0};
        if (l->n_patterns)
            tp_buf_addf(&pattern, "(?:^|.*?\\.)%s\\.(?<idx>\\d+)\\.", l->patterns[i]);
        else
            tp_buf_adds(&pattern, ".*?\\.[^.]*\\.(?<idx>\\d+)\\.");
        const search where = {"layers_pattern", tp_buf_str(&pattern), name, false};
        TP_TRY(match_pattern(&where, &found, &layer, err));
    }
    for (size_t i = 0; i < l->n; i++)
        *ret |= found && l->v[i] == layer;
    return TP_OK;
}

bool tp_param_module(const tp_param *p, char out[256])
{
    size_t n = strlen(p->name), end = strlen(".weight");
    if (!tp_param_is_hidden(p) || n - end >= 256)
        return false;
    TP_ASSERT(n > end && strcmp(p->name + n - end, ".weight") == 0);
    snprintf(out, 256, "%.*s", (int)(n - end), p->name);
    return true;
}

static void list_names(const tp_model *model, tp_buf *out)
{
    char name[256];
    for (size_t i = 0; i < model->n_params; i++) {
        if (!tp_param_module(&model->params[i], name))
            continue;
        const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
        if (!out->data || !strstr(out->data, last))
            tp_buf_addf(out, "%s%s", out->len ? ", " : "", last);
    }
}

/* Modules that PEFT adapts and Temper does not. */
static bool is_other_module(const char *text)
{
    static const char *const others[] = {"lm_head", "embed_tokens", "wte", "wpe"};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (is_whole_word_at_end(text, others[i]))
            return true;
    return false;
}

static tp_status refuse_target(const tp_model *model, const char *text, tp_error *err)
{
    TP_OWN(tp_buf) names = {0};
    list_names(model, &names);
    tp_status status =
        tp_fail(err, TP_ERR_CONFIG,
                is_other_module(text)
                    ? "target_modules: adapters on the embedding or the head ('%s') are not "
                      "supported; of this model there are %s, or all-linear"
                    : "target_modules: no module is called '%s'; there are %s, or all-linear",
                text, tp_buf_str(&names));
    return status;
}

/* chosen[i]: parameter i is the weight of a module with an adapter. */
static tp_status choose(const tp_model *model, const tp_lora_settings *s, bool *chosen, size_t *n,
                        tp_error *err)
{
    char name[256];
    TP_FREED bool *used = tp_new(s->targets.n + 1, sizeof *used);
    for (size_t i = 0; i < model->n_params; i++) {
        bool is_out = false;
        if (!tp_param_module(&model->params[i], name))
            continue;
        TP_TRY(match(&s->targets, name, used, &chosen[i], err));
        if (chosen[i])
            TP_TRY(match(&s->exclude, name, NULL, &is_out, err));
        chosen[i] &= !is_out;
        if (chosen[i])
            TP_TRY(match_layer(s, name, &chosen[i], err));
        *n += chosen[i];
    }
    /* PEFT passes over the names of a file's list that the model has not, as long as one fits. */
    bool is_strict = s->targets.kind != TP_MATCH_NAME || *n == 0;
    for (size_t i = 0; i < s->targets.n; i++)
        if (!used[i] && (is_strict || is_other_module(s->targets.v[i])))
            TP_TRY(refuse_target(model, s->targets.v[i], err));
    if (*n == 0)
        return tp_fail(err, TP_ERR_CONFIG, "%s leave no module for an adapter",
                       s->layers.n ? "target_modules in the layers of layers_to_transform"
                                   : "target_modules less exclude_modules");
    return TP_OK;
}

/* ---- attaching ---- */

static const tp_param *add_tensor(tp_model *model, tp_lora *l, const tp_param *weight,
                                  const char *module, const char *suffix, int64_t dim0,
                                  int64_t dim1, tp_init init)
{
    tp_param *p = &l->params[l->n_params++];
    *p = (tp_param){.name = tp_arena_printf(&model->arena, "%s%s.%s", l->prefix, module, suffix),
                    .of = weight->name,
                    .rank = dim1 ? 2 : 1,
                    .dim = {dim0, dim1 ? dim1 : 1},
                    .init = init,
                    .is_matrix = dim1 != 0};
    return p;
}

static tp_status add_module(tp_model *model, tp_lora *l, const tp_param *weight, tp_error *err)
{
    char name[256];
    const tp_lora_settings *s = &l->settings;
    double rank = (double)s->r, alpha = s->alpha;
    bool transposed = weight->is_transposed;
    int64_t in = weight->dim[!transposed], out = weight->dim[transposed];
    TP_ASSERT(tp_param_module(weight, name));
    TP_TRY(number_of("rank_pattern", &s->ranks, name, &rank, err));
    TP_TRY(number_of("alpha_pattern", &s->alphas, name, &alpha, err));
    int64_t r = (int64_t)rank;
    tp_adapted *m = &l->modules[l->n_modules++];
    m->name = tp_arena_strdup(&model->arena, name);
    m->weight = weight;
    m->scale = alpha / (s->uses_rslora ? sqrt(rank) : rank);
    m->a = add_tensor(model, l, weight, name, "lora_A.weight", r, in, TP_INIT_NORMAL);
    m->b = add_tensor(model, l, weight, name, "lora_B.weight", out, r, TP_INIT_ZERO);
    if (l->settings.uses_dora)
        m->m = add_tensor(model, l, weight, name, "lora_magnitude_vector", out, 0, TP_INIT_ONE);
    l->of_param[weight - model->params] = (uint32_t)l->n_modules;
    return TP_OK;
}

static tp_modules copy_modules(tp_arena *arena, const tp_modules *from)
{
    const char **v = tp_arena_array(arena, const char *, from->n + 1);
    for (size_t i = 0; i < from->n; i++)
        v[i] = tp_arena_strdup(arena, from->v[i]);
    return (tp_modules){v, from->n, from->kind};
}

static tp_module_numbers copy_numbers(tp_arena *arena, const tp_module_numbers *from)
{
    tp_module_number *v = tp_arena_array(arena, tp_module_number, from->n + 1);
    for (size_t i = 0; i < from->n; i++)
        v[i] = (tp_module_number){tp_arena_strdup(arena, from->v[i].pattern), from->v[i].value};
    return (tp_module_numbers){v, from->n};
}

static tp_status check_settings(const tp_lora_settings *s, tp_error *err)
{
    if (s->r < 1 || s->r > TP_MAX_WIDTH)
        return tp_fail(err, TP_ERR_CONFIG, "an adapter's rank is %lld; expected 1 to %d",
                       (long long)s->r, TP_MAX_WIDTH);
    if (!isfinite(s->alpha) || !(s->dropout >= 0 && s->dropout < 1))
        return tp_fail(err, TP_ERR_CONFIG, "an adapter's alpha is %g, its dropout %g", s->alpha,
                       s->dropout);
    return TP_OK;
}

/* PEFT's default when target_modules is null. */
static tp_modules default_targets(const tp_model *model)
{
    static const char *const projections[] = {"q_proj", "v_proj"}, *const conv[] = {"c_attn"};
    bool is_conv = model->family->has_conv1d;
    return (tp_modules){is_conv ? conv : projections, is_conv ? 1 : 2, TP_MATCH_NAME};
}

static tp_status make(tp_model *model, const tp_lora_settings *s, const char *called,
                      const bool *chosen, size_t n, tp_lora **ret, tp_error *err)
{
    tp_arena *arena = &model->arena;
    tp_lora *l = tp_arena_array(arena, tp_lora, 1);
    l->prefix = tp_arena_strdup(arena, called);
    l->settings = *s;
    l->settings.targets = copy_modules(arena, &s->targets);
    l->settings.exclude = copy_modules(arena, &s->exclude);
    l->settings.ranks = copy_numbers(arena, &s->ranks);
    l->settings.alphas = copy_numbers(arena, &s->alphas);
    l->settings.layers = (tp_lora_layers){0}; /* they have done their work: `chosen` */
    l->params = tp_arena_array(arena, tp_param, 3 * n);
    l->modules = tp_arena_array(arena, tp_adapted, n);
    l->of_param = tp_arena_array(arena, uint32_t, model->n_params);
    for (size_t i = 0; i < model->n_params; i++)
        if (chosen[i])
            TP_TRY(add_module(model, l, &model->params[i], err));
    *ret = l;
    return TP_OK;
}

tp_status tp_lora_new(tp_model *model, const tp_lora_settings *settings, const char *called,
                      tp_lora **ret, tp_error *err)
{
    tp_lora_settings s = *settings;
    size_t n = 0;
    TP_TRY(check_settings(&s, err));
    if (s.targets.n == 0)
        s.targets = default_targets(model);
    TP_FREED bool *chosen = tp_new(model->n_params, sizeof *chosen);
    TP_TRY(choose(model, &s, chosen, &n, err));
    return make(model, &s, called, chosen, n, ret, err);
}

tp_status tp_model_attach(tp_model *model, const tp_lora_settings *settings, tp_error *err)
{
    if (model->lora)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' is an adapter already", model->lora->folder);
    return tp_lora_new(model, settings, "", &model->lora, err);
}

bool tp_model_has_adapter(const tp_model *model) { return model->lora != NULL; }

const tp_lora_settings *tp_model_adapter(const tp_model *model)
{
    return model->lora ? &model->lora->settings : NULL;
}

size_t tp_model_adapters_beside(const tp_model *model) { return model->n_beside; }

const char *tp_model_adapter_name(const tp_model *model, size_t index)
{
    return model->beside[index]->name;
}

tp_status tp_model_find_adapter(const tp_model *model, tp_slice name, int32_t *ret, tp_error *err)
{
    TP_OWN(tp_buf) names = {0};
    for (size_t i = 0; i < model->n_beside; i++) {
        if (tp_slice_is(name, model->beside[i]->name)) {
            *ret = (int32_t)i + 1;
            return TP_OK;
        }
        tp_buf_addf(&names, "%s%s", i ? ", " : "", model->beside[i]->name);
    }
    return tp_fail(err, TP_ERR_CONFIG,
                   model->n_beside ? "there is no adapter '%.*s'; there are %s"
                                   : "there is no adapter '%.*s': none was given%s",
                   (int)TP_MIN(name.len, 64), name.data, tp_buf_str(&names));
}

size_t tp_model_adapter_count(const tp_model *model)
{
    return model->lora ? model->lora->n_modules : 0;
}

const char *tp_model_adapter_folder(const tp_model *model)
{
    return model->lora ? model->lora->folder : NULL;
}

const char *tp_model_base_folder(const tp_model *model) { return model->folder; }

tp_status tp_base_storage_parse(const char *word, tp_base_storage *ret, tp_error *err)
{
    bool is_int8 = strcmp(word, "int8") == 0;
    if (!is_int8 && strcmp(word, "nf4") != 0)
        return tp_fail(err, TP_ERR_ARG, "the base is '%.40s'; expected int8 or nf4", word);
    *ret = is_int8 ? TP_BASE_INT8 : TP_BASE_NF4;
    return TP_OK;
}

void tp_model_freeze(tp_model *model, tp_base_storage storage, tp_dtype rest)
{
    for (size_t i = 0; i < model->n_params; i++) {
        tp_param *p = &model->params[i];
        bool is_hidden = tp_param_is_hidden(p);
        p->dtype = !p->is_matrix                          ? TP_DTYPE_F32
                   : is_hidden && storage == TP_BASE_F32  ? TP_DTYPE_F32
                   : is_hidden && storage == TP_BASE_BF16 ? TP_DTYPE_BF16
                                                          : rest;
        if (is_hidden)
            p->storage = storage;
    }
}

const tp_param *tp_model_trained(const tp_model *model, size_t *ret_n)
{
    *ret_n = model->lora ? model->lora->n_params : model->n_params;
    return model->lora ? model->lora->params : model->params;
}

const tp_adapted *tp_lora_module(const tp_lora *l, const tp_model *model, const tp_param *weight)
{
    uint32_t module = l->of_param[weight - model->params];
    return module ? &l->modules[module - 1] : NULL;
}

const char *tp_adapter_reference_name(tp_arena *arena, const tp_param *param)
{
    return tp_arena_printf(arena, "ref.%s", param->name);
}
