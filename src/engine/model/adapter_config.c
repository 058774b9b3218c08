/* adapter_config.c - PEFT's adapter_config.json, read with care and written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "engine/model/adapter_internal.h"

/* Read below, or says nothing about what is computed: how an adapter was initialised is over. */
static const char *const known[] = {"peft_type",         "r",
                                    "lora_alpha",        "lora_dropout",
                                    "target_modules",    "exclude_modules",
                                    "use_rslora",        "use_dora",
                                    "fan_in_fan_out",    "bias",
                                    "init_lora_weights", "base_model_name_or_path",
                                    "task_type",         "megatron_core",
                                    "revision",          "inference_mode",
                                    "auto_mapping",      "peft_version",
                                    "runtime_config",    "qalora_group_size",
                                    "rank_pattern",      "alpha_pattern",
                                    "layers_pattern",    "layers_to_transform",
                                    "eva_config",        "corda_config",
                                    "lora_ga_config",    "loftq_config"};

static bool is_empty(const tp_json *v)
{
    bool is_list = v->type == TP_JSON_ARRAY || v->type == TP_JSON_OBJECT;
    const char *word = tp_json_str(v);
    return v->type == TP_JSON_NULL || v->type == TP_JSON_FALSE || (is_list && v->n == 0) ||
           (word && !*word);
}

/* Any other key, known to PEFT or not, may be there as long as it asks for nothing. */
static tp_status check_keys(const tp_fields *c, tp_error *err)
{
    for (const tp_json *v = c->object->child; v; v = v->next) {
        bool is_known = false;
        for (size_t i = 0; i < TP_COUNTOF(known); i++)
            is_known |= strcmp(v->key.data, known[i]) == 0;
        if (!is_known && !is_empty(v))
            return tp_fields_fail(c, v->key.data, TP_ERR_UNSUPPORTED, err,
                                  "not supported: only null, false or empty");
    }
    return TP_OK;
}

static tp_status need_word(const tp_fields *c, const char *key, const char *fallback,
                           const char *want, tp_error *err)
{
    const char *word;
    TP_TRY(tp_fields_string(c, key, fallback, &word, err));
    return word && strcmp(word, want) == 0
               ? TP_OK
               : tp_fields_fail(c, key, TP_ERR_UNSUPPORTED, err, "only \"%s\" is supported", want);
}

/* Those that changed the base when the adapter was made are wrong over the base. */
static tp_status check_init(const tp_fields *c, tp_error *err)
{
    static const char *const safe[] = {"gaussian", "eva", "orthogonal"};
    const tp_json *v = tp_fields_get(c, "init_lora_weights");
    const char *word = tp_json_str(v);
    bool is_safe = !v || v->type == TP_JSON_TRUE || v->type == TP_JSON_FALSE;
    for (size_t i = 0; i < TP_COUNTOF(safe); i++)
        is_safe |= word && strcmp(word, safe[i]) == 0;
    return is_safe ? TP_OK
                   : tp_fields_fail(c, "init_lora_weights", TP_ERR_UNSUPPORTED, err,
                                    "supported are true, false, \"gaussian\", \"eva\" and "
                                    "\"orthogonal\"; the others change the base as well");
}

static tp_status read_modules(const tp_fields *c, const char *key, tp_arena *arena, tp_modules *ret,
                              tp_error *err)
{
    const tp_json *v = tp_fields_get(c, key);
    const char *word = tp_json_str(v);
    *ret = (tp_modules){0};
    if (!v)
        return TP_OK;
    if (v->type != TP_JSON_ARRAY && !word)
        return tp_fields_fail(c, key, TP_ERR_FORMAT, err, "expected a list of names, or a text");
    size_t n = word ? 1 : v->n;
    const char **names = tp_arena_array(arena, const char *, n + 1);
    if (word)
        names[0] = word;
    for (const tp_json *e = word ? NULL : v->child; e; e = e->next) {
        if (!tp_json_str(e))
            return tp_fields_fail(c, key, TP_ERR_FORMAT, err, "expected names in the list");
        names[ret->n++] = tp_json_str(e);
    }
    *ret = (tp_modules){names, n, word ? TP_MATCH_PATTERN : TP_MATCH_NAME};
    return TP_OK;
}

/* {"q_proj": 4, ...}: a number above `low` for each. */
static tp_status read_numbers(const tp_fields *c, const char *key, double low, double high,
                              tp_arena *arena, tp_module_numbers *ret, tp_error *err)
{
    const tp_json *v = tp_fields_get(c, key);
    if (!v || is_empty(v))
        return TP_OK;
    if (v->type != TP_JSON_OBJECT)
        return tp_fields_fail(c, key, TP_ERR_FORMAT, err, "expected numbers by module");
    tp_module_number *list = tp_arena_array(arena, tp_module_number, v->n);
    const tp_fields numbers = {c->path, tp_arena_printf(arena, "%s.", key), v};
    for (const tp_json *e = v->child; e; e = e->next) {
        tp_module_number *x = &list[ret->n++];
        x->pattern = e->key.data;
        TP_TRY(tp_fields_number(&numbers, e->key.data, low, high, NAN, &x->value, err));
    }
    ret->v = list;
    return TP_OK;
}

static tp_status read_ranks(const tp_fields *c, tp_arena *arena, tp_module_numbers *ret,
                            tp_error *err)
{
    TP_TRY(read_numbers(c, "rank_pattern", 0, TP_MAX_WIDTH, arena, ret, err));
    for (size_t i = 0; i < ret->n; i++)
        if (ret->v[i].value != floor(ret->v[i].value))
            return tp_fields_fail(c, "rank_pattern", TP_ERR_FORMAT, err,
                                  "\"%s\" has rank %g; expected a whole number", ret->v[i].pattern,
                                  ret->v[i].value);
    return TP_OK;
}

/* layers_to_transform, one or several, and layers_pattern, a name or several. */
static tp_status read_layers(const tp_fields *c, tp_arena *arena, tp_lora_settings *s,
                             tp_error *err)
{
    const tp_json *v = tp_fields_get(c, "layers_to_transform");
    const tp_json *pattern = tp_fields_get(c, "layers_pattern");
    tp_modules patterns;
    TP_TRY(read_modules(c, "layers_pattern", arena, &patterns, err));
    if (!pattern || is_empty(pattern))
        patterns = (tp_modules){0};
    if (patterns.n && !v)
        return tp_fields_fail(c, "layers_pattern", TP_ERR_CONFIG, err,
                              "layers_to_transform is not there to say which layers");
    if (!v || (v->type == TP_JSON_ARRAY && v->n == 0))
        return TP_OK;
    if (s->targets.n && s->targets.kind == TP_MATCH_PATTERN)
        return tp_fields_fail(c, "layers_to_transform", TP_ERR_CONFIG, err,
                              "goes with a list in target_modules, not with a text");
    bool is_list = v->type == TP_JSON_ARRAY;
    int64_t *layers = tp_arena_array(arena, int64_t, is_list ? v->n : 1);
    for (const tp_json *e = is_list ? v->child : v; e; e = is_list ? e->next : NULL)
        if (!tp_json_i64(e, &layers[s->layers.n++]))
            return tp_fields_fail(c, "layers_to_transform", TP_ERR_FORMAT, err,
                                  "expected a layer's number, or a list of them");
    s->layers.v = layers;
    s->layers.patterns = patterns.v;
    s->layers.n_patterns = patterns.n;
    return TP_OK;
}

static tp_status read_settings(const tp_fields *c, tp_arena *arena, tp_lora_settings *s,
                               const char **ret_base, tp_error *err)
{
    bool ignored;
    TP_TRY(need_word(c, "peft_type", NULL, "LORA", err));
    TP_TRY(need_word(c, "task_type", "CAUSAL_LM", "CAUSAL_LM", err));
    TP_TRY(need_word(c, "bias", "none", "none", err));
    TP_TRY(check_keys(c, err));
    TP_TRY(check_init(c, err));
    TP_TRY(tp_fields_int(c, "r", 1, TP_MAX_WIDTH, 8, &s->r, err));
    TP_TRY(tp_fields_number(c, "lora_alpha", -1e30, 1e30, 8, &s->alpha, err));
    TP_TRY(tp_fields_number(c, "lora_dropout", -1e-30, 1, 0, &s->dropout, err));
    TP_TRY(tp_fields_bool(c, "use_rslora", false, &s->uses_rslora, err));
    TP_TRY(tp_fields_bool(c, "use_dora", false, &s->uses_dora, err));
    TP_TRY(tp_fields_bool(c, "fan_in_fan_out", false, &ignored, err)); /* the layer decides */
    TP_TRY(read_modules(c, "target_modules", arena, &s->targets, err));
    TP_TRY(read_modules(c, "exclude_modules", arena, &s->exclude, err));
    TP_TRY(read_ranks(c, arena, &s->ranks, err));
    TP_TRY(read_numbers(c, "alpha_pattern", -1e30, 1e30, arena, &s->alphas, err));
    TP_TRY(read_layers(c, arena, s, err));
    return tp_fields_string(c, "base_model_name_or_path", NULL, ret_base, err);
}

tp_status tp_adapter_config_read(const char *path, const char *text, size_t n, tp_arena *arena,
                                 tp_lora_settings *ret, const char **ret_base, tp_error *err)
{
    const tp_json *root;
    const tp_json_options options = {.allow_nan = true, .max_bytes = 1 << 20};
    TP_TRY(tp_json_parse(arena, path, text, n, &options, &root, err));
    if (root->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_FORMAT, "%s: expected an object", path);
    tp_fields c = {.path = path, .section = "", .object = root};
    *ret = (tp_lora_settings){0};
    return read_settings(&c, arena, ret, ret_base, err);
}

/* ---- writing ---- */

/* Do the last parts of the names choose these modules and no other? */
static bool last_parts_suffice(const tp_model *model)
{
    const tp_lora *l = model->lora;
    for (size_t i = 0; i < model->n_params; i++) {
        const tp_param *p = &model->params[i];
        char name[256];
        if (!tp_param_module(p, name) || l->of_param[i])
            continue;
        for (size_t k = 0; k < l->n_modules; k++) {
            if (strcmp(tp_str_after(name, '.'), tp_str_after(l->modules[k].name, '.')) == 0)
                return false;
        }
    }
    return true;
}

static void write_targets(const tp_model *model, tp_json_w *w)
{
    const tp_lora *l = model->lora;
    bool is_short = last_parts_suffice(model);
    TP_FREED const char **names = tp_new(l->n_modules, sizeof *names);
    for (size_t i = 0; i < l->n_modules; i++)
        names[i] = is_short ? tp_str_after(l->modules[i].name, '.') : l->modules[i].name;
    qsort(names, l->n_modules, sizeof *names, tp_str_order);
    tp_json_w_put_begin(w, "target_modules", '[');
    for (size_t i = 0; i < l->n_modules; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            tp_json_w_str(w, names[i]);
    tp_json_w_end(w, ']');
}

static void write_numbers(const char *key, const tp_module_numbers *list, tp_json_w *w)
{
    tp_json_w_put_begin(w, key, '{');
    for (size_t i = 0; i < list->n; i++)
        tp_json_w_put_f64(w, list->v[i].pattern, list->v[i].value);
    tp_json_w_end(w, '}');
}

void tp_adapter_config_write(const tp_model *model, tp_buf *out)
{
    const tp_lora_settings *s = &model->lora->settings;
    TP_FREED char *real = model->folder ? realpath(model->folder, NULL) : NULL;
    tp_json_w w = tp_json_w_open(out, 2, '{');
    write_numbers("alpha_pattern", &s->alphas, &w);
    tp_json_w_put_null(&w, "auto_mapping");
    tp_json_w_put_str(&w, "base_model_name_or_path", real ? real : model->folder);
    tp_json_w_put_str(&w, "bias", "none");
    tp_json_w_put_null(&w, "exclude_modules");
    tp_json_w_put_bool(&w, "fan_in_fan_out", model->family->has_conv1d);
    tp_json_w_put_bool(&w, "inference_mode", true);
    tp_json_w_put_bool(&w, "init_lora_weights", true);
    tp_json_w_put_null(&w, "layers_pattern");
    tp_json_w_put_null(&w, "layers_to_transform");
    tp_json_w_put_f64(&w, "lora_alpha", s->alpha);
    tp_json_w_put_bool(&w, "lora_bias", false);
    tp_json_w_put_f64(&w, "lora_dropout", s->dropout);
    tp_json_w_put_null(&w, "modules_to_save");
    tp_json_w_put_str(&w, "peft_type", "LORA");
    tp_json_w_put_i64(&w, "r", s->r);
    write_numbers("rank_pattern", &s->ranks, &w);
    tp_json_w_put_null(&w, "revision");
    write_targets(model, &w);
    tp_json_w_put_str(&w, "task_type", "CAUSAL_LM");
    tp_json_w_put_bool(&w, "use_dora", s->uses_dora);
    tp_json_w_put_bool(&w, "use_rslora", s->uses_rslora);
    tp_json_w_close(&w, '}');
}
