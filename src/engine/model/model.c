/* model.c - config.json read and checked, a family chosen, parameters listed. */
#include "engine/model/model.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "engine/model/adapter_internal.h"

enum {
    ARENA_BASE = 64 << 20, /* far above the lists of parameters of the deepest model's adapters */
};

static const int64_t max_parameters = INT64_C(10000000000000); /* 20 TB in bf16 */

static uint32_t *slot_of(const tp_model *model, const char *name)
{
    size_t i = (size_t)XXH3_64bits(name, strlen(name)) & (model->n_slots - 1);
    while (model->slots[i] && strcmp(model->params[model->slots[i] - 1].name, name) != 0)
        i = (i + 1) & (model->n_slots - 1);
    return &model->slots[i];
}

const tp_param *tp_model_find_param(const tp_model *model, const char *name)
{
    uint32_t slot = *slot_of(model, name);
    return slot ? &model->params[slot - 1] : NULL;
}

tp_param *tp_model_add_param(tp_model *model, const char *name, int64_t dim0, int64_t dim1,
                             tp_init init)
{
    tp_param *p = TP_ARENA_PUSH(&model->arena, model->params, model->n_params, model->cap_params);
    *p = (tp_param){.name = tp_arena_strdup(&model->arena, name),
                    .rank = dim1 ? 2 : 1,
                    .dim = {dim0, dim1 ? dim1 : 1},
                    .init = init,
                    .is_matrix = dim1 != 0};
    return p;
}

tp_param *tp_model_add_layer_param(tp_model *model, int64_t layer, const char *name, int64_t dim0,
                                   int64_t dim1, tp_init init)
{
    char full[256];
    snprintf(full, sizeof full, "%s%lld.%s", model->family->layer_prefix, (long long)layer, name);
    return tp_model_add_param(model, full, dim0, dim1, init);
}

/* The list by name, and its sum; the limits on single sizes keep the sum below 2^63,
 * the check stands should they grow. */
static tp_status finish_params(tp_model *model, const tp_fields *c, tp_error *err)
{
    model->n_slots = 64;
    while (model->n_slots < model->n_params * 2)
        model->n_slots *= 2;
    model->slots = tp_arena_array(&model->arena, uint32_t, model->n_slots);
    for (size_t i = 0; i < model->n_params; i++) {
        const tp_param *p = &model->params[i];
        int64_t n;
        *slot_of(model, p->name) = (uint32_t)i + 1;
        if (__builtin_mul_overflow(p->dim[0], p->dim[1], &n) ||
            __builtin_add_overflow(model->param_count, n, &model->param_count) ||
            model->param_count > max_parameters)
            return tp_fail(err, TP_ERR_FORMAT,
                           "%s: %lld layers of width %lld with a vocabulary of %lld make more than "
                           "%lld parameters; one of these sizes must be wrong",
                           c->path, (long long)model->info.layers, (long long)model->info.hidden,
                           (long long)model->info.vocab, (long long)max_parameters);
    }
    return TP_OK;
}

tp_status tp_family_read_positions(tp_model *model, const tp_fields *c, tp_error *err)
{
    bool is_silent = !tp_json_get(c->object, model->positions_field);
    return tp_fields_int(c, model->positions_field, 1, TP_MAX_POSITIONS,
                         is_silent ? model->family->default_positions : TP_REQUIRED,
                         &model->info.max_positions, err);
}

tp_status tp_family_check_heads(tp_model *model, const tp_fields *c, const char *heads_field,
                                tp_error *err)
{
    tp_model_info *i = &model->info;
    if (i->heads % i->kv_heads != 0)
        return tp_fields_fail(c, "num_key_value_heads", TP_ERR_FORMAT, err,
                              "expected a divisor of %s, %lld", heads_field, (long long)i->heads);
    if (i->head_dim == 0) {
        if (i->hidden % i->heads != 0)
            return tp_fields_fail(c, heads_field, TP_ERR_FORMAT, err,
                                  "expected a divisor of the width, %lld", (long long)i->hidden);
        i->head_dim = i->hidden / i->heads;
    }
    return TP_OK;
}

tp_status tp_family_read_activation(tp_model *model, const tp_fields *c, const char *field,
                                    const char *fallback, tp_error *err)
{
    static const struct {
        const char *name;
        tp_activation activation;
    } known[] = {
        {"silu", TP_ACTIVATION_SILU},
        {"swish", TP_ACTIVATION_SILU},
        {"gelu", TP_ACTIVATION_GELU},
        {"gelu_new", TP_ACTIVATION_GELU_TANH},
        {"gelu_pytorch_tanh", TP_ACTIVATION_GELU_TANH},
    };
    const char *name;
    TP_TRY(tp_fields_string(c, field, fallback, &name, err));
    for (size_t i = 0; i < TP_COUNTOF(known); i++) {
        if (strcmp(known[i].name, name) == 0) {
            model->activation = known[i].activation;
            return TP_OK;
        }
    }
    return tp_fields_fail(c, field, TP_ERR_UNSUPPORTED, err,
                          "supported are silu, swish, gelu, gelu_new and gelu_pytorch_tanh");
}

static tp_status check_architectures(const tp_family *family, const tp_fields *c, tp_error *err)
{
    const tp_json *list = tp_fields_get(c, "architectures");
    if (!list || list->n == 0)
        return TP_OK;
    for (const tp_json *v = list->child; v; v = v->next) {
        const char *name = tp_json_str(v);
        if (name &&
            (!strcmp(name, family->architecture) || !strcmp(name, family->base_architecture)))
            return TP_OK;
    }
    const char *first = tp_json_str(list->child);
    return tp_fields_fail(
        c, "architectures", TP_ERR_UNSUPPORTED, err, "holds \"%.60s\"; a %s model must be %s",
        first ? first : "(not a string)", family->model_type, family->architecture);
}

static tp_status choose_family(const tp_fields *c, const tp_family **ret, tp_error *err)
{
    char list[256];
    const char *type;
    TP_TRY(tp_fields_string(c, "model_type", NULL, &type, err));
    const tp_family *f;
    for (size_t i = 0; type && (f = tp_model_family_at(i)); i++) {
        if (strcmp(f->model_type, type) == 0) {
            *ret = f;
            TP_TRY(check_architectures(*ret, c, err));
            return TP_OK;
        }
    }
    return tp_fields_fail(c, "model_type", TP_ERR_UNSUPPORTED, err, "supported are %s",
                          tp_model_supported(list, sizeof list));
}

static tp_status check_keys(tp_model *model, const tp_fields *c, tp_error *err)
{
    TP_OWN(tp_buf) unknown = {0};
    tp_status status = tp_config_keys_check(c, model->family->keys, &unknown, err);
    model->unknown_keys = tp_arena_strdup(&model->arena, tp_buf_str(&unknown));
    return status;
}

static tp_status parse(tp_model *model, const char *folder, const char *name, const char *text,
                       size_t n, tp_error *err)
{
    size_t names = strlen(name) + (folder ? strlen(folder) : 0);
    TP_TRY(tp_arena_init(&model->arena, n * TP_CONFIG_JSON_FACTOR + names + ARENA_BASE, err));
    model->folder = folder ? tp_arena_strdup(&model->arena, folder) : NULL;
    model->is_gguf = folder && !tp_dir_exists(folder);
    model->config_path = tp_arena_strdup(&model->arena, name);
    model->config_text = tp_arena_strndup(&model->arena, text, n);
    model->config_len = n;
    const tp_json *root;
    tp_json_options options = {.allow_nan = true, .max_bytes = TP_MAX_CONFIG_BYTES};
    TP_TRY(tp_json_parse(&model->arena, name, text, n, &options, &root, err));
    if (root->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_FORMAT, "%s: expected an object", name);
    tp_fields c = {.path = model->config_path, .section = "", .object = root};
    TP_TRY(choose_family(&c, &model->family, err));
    model->info.family = model->family->model_type;
    TP_TRY(check_keys(model, &c, err));
    model->pad = -1;
    TP_TRY(model->family->read(model, &c, err));
    TP_TRY(tp_fields_int(&c, "bos_token_id", 0, INT32_MAX, -1, &model->info.bos, err));
    TP_TRY(tp_fields_ids(&c, "eos_token_id", TP_MAX_EOS, model->info.eos, &model->info.n_eos, err));
    TP_TRY(tp_fields_number(&c, "initializer_range", -1, 1, 0.02, &model->initializer_range, err));
    if (model->initializer_range <= 0)
        model->initializer_range = 0.02;
    if (model->info.tied && model->folder && !model->is_gguf && tp_model_file_has_own_head(model)) {
        model->has_own_head = true;
        model->info.tied = false;
    }
    model->family->list_params(model);
    return finish_params(model, &c, err);
}

tp_status tp_model_parse_in(const char *folder, const char *name, const char *text, size_t n,
                            tp_model **ret, tp_error *err)
{
    if (n > TP_MAX_CONFIG_BYTES)
        return tp_fail(err, TP_ERR_FORMAT, "%s: %zu bytes are too many for a config.json", name, n);
    tp_model *model = tp_new(1, sizeof *model);
    TP_HAND_OVER(parse(model, folder, name, text, n, err), ret, model, tp_model_free(model));
}

tp_status tp_model_parse(const char *name, const char *text, size_t n, tp_model **ret,
                         tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(name && text && ret, err);
    return tp_model_parse_in(NULL, name, text, n, ret, err);
}

void tp_model_free(tp_model *model)
{
    if (!model)
        return;
    tp_arena_release(&model->arena);
    free(model);
}

const tp_model_info *tp_model_get_info(const tp_model *model) { return &model->info; }

const tp_param *tp_model_params(const tp_model *model, size_t *ret_n)
{
    *ret_n = model->n_params;
    return model->params;
}

void tp_model_positions_place(const tp_model *model, char out[TP_MODEL_PLACE])
{
    snprintf(out, TP_MODEL_PLACE, "%.500s: %s", model->config_path, model->positions_field);
}

void tp_model_describe(const tp_model *m, tp_buf *out)
{
    const tp_model_info *i = &m->info;
    const tp_rope *r = &m->rope;
    tp_buf_addf(out, "%s width %lld mlp %lld layers %lld heads %lld/%lld of %lld vocab %lld",
                i->family, (long long)i->hidden, (long long)i->intermediate, (long long)i->layers,
                (long long)i->heads, (long long)i->kv_heads, (long long)i->head_dim,
                (long long)i->vocab);
    tp_buf_addf(out, " positions %lld eps %.17g activation %d tied %d pad %lld",
                (long long)i->max_positions, i->norm_eps, (int)m->activation, i->tied,
                (long long)m->pad);
    tp_buf_addf(out, " biases %d%d%d qk-norm %d logits %d%d", m->has_qkv_bias, m->has_out_bias,
                m->has_mlp_bias, m->has_qk_norm, m->has_plain_logits, m->scales_by_layer);
    tp_buf_addf(out, " rope %.17g %d %.17g %.17g %.17g %.17g", r->theta, r->is_llama3, r->factor,
                r->low_freq_factor, r->high_freq_factor, r->original_positions);
    tp_buf_addf(out, " bos %lld eos", (long long)i->bos);
    for (int k = 0; k < i->n_eos; k++)
        tp_buf_addf(out, " %lld", (long long)i->eos[k]);
    tp_buf_addf(out, " std %.17g", m->initializer_range);
}

void tp_model_say(const tp_model *model, const tp_load_report *report, tp_model_note say,
                  void *user)
{
    char text[1024];
    if (*model->unknown_keys) {
        snprintf(text, sizeof text, "%s: not used: %s; transformers' %s does not read %s either",
                 model->config_path, model->unknown_keys, model->info.family,
                 strchr(model->unknown_keys, ',') ? "them" : "it");
        say(user, text);
    }
    for (size_t i = 0; i < model->n_beside; i++) {
        const tp_lora *l = model->beside[i];
        if (!l->elsewhere)
            continue;
        snprintf(text, sizeof text, "adapter '%.64s' is one of %.400s, and is put on %.400s",
                 l->name, l->elsewhere, model->folder);
        say(user, text);
    }
    if (model->has_own_head)
        say(user, "config.json ties the head to the embedding, but the file holds a head that "
                  "differs: both are used as they are, as transformers does");
    if (report && report->head_was_embedding)
        say(user, "the file holds no embedding, but the head that config.json ties to it: it is "
                  "used for both");
    if (report && report->n_unused) {
        snprintf(text, sizeof text, "%zu tensor%s of the file not used: %s", report->n_unused,
                 tp_plural((uint64_t)report->n_unused), report->unused_names);
        say(user, text);
    }
    if (report && report->is_quantised) {
        snprintf(text, sizeof text,
                 "tensors of the file: %s; what is quantised was rounded when the file was made",
                 report->gguf_types);
        say(user, text);
    }
    if (report && report->n_other_dtype) {
        snprintf(text, sizeof text,
                 "the embedding is %s, %zu tensors are not (first: %s, %s); a model is written in "
                 "one type, that of the embedding",
                 tp_dtype_name(report->file_dtype), report->n_other_dtype, report->other_dtype_name,
                 tp_dtype_name(report->other_dtype));
        say(user, text);
    }
}

int64_t tp_model_param_count(const tp_model *model) { return model->param_count; }

static tp_status check_vector(const tp_graph *g, tp_ref ref, int64_t rows, const char *name,
                              tp_error *err)
{
    const tp_value *v = ref && ref < g->n_values ? &g->values[ref] : NULL;
    if (!v || v->dtype != TP_DTYPE_I32 || v->rank != 1 || (rows && v->dim[0] != rows))
        return tp_fail(err, TP_ERR_ARG, "the forward graph needs '%s' as i32 of one length", name);
    return TP_OK;
}

static tp_status check_forward(const tp_model *model, const tp_graph *g, const tp_forward *f,
                               tp_error *err)
{
    bool has_cache = f->cache_blocks > 0;
    TP_TRY(check_vector(g, f->tokens, 0, "tokens", err));
    TP_TRY(check_vector(g, f->positions, g->values[f->tokens].dim[0], "positions", err));
    if (has_cache)
        TP_TRY(check_vector(g, f->slots, g->values[f->tokens].dim[0], "slots", err));
    else
        TP_TRY(check_vector(g, f->cu, 0, "cu", err));
    if (has_cache && (f->cu || !tp_is_float(f->cache_dtype)))
        return tp_fail(err, TP_ERR_ARG, "caches are f32 or bf16 and exclude packed sequences");
    bool is_learned = model->rope.theta == 0;
    if (f->max_positions < 1 || f->max_positions > TP_MAX_POSITIONS ||
        (is_learned && f->max_positions > model->info.max_positions))
        return tp_fail(err, TP_ERR_CONFIG,
                       "sequences of %lld tokens are asked for; this model has %s%lld positions",
                       (long long)f->max_positions, is_learned ? "" : "at most ",
                       (long long)(is_learned ? model->info.max_positions : TP_MAX_POSITIONS));
    return TP_OK;
}

static const char *head_name(const tp_model *model)
{
    return model->info.tied ? model->embedding_name : "lm_head.weight";
}

bool tp_model_is_head(const tp_model *model, const tp_param *param)
{
    return strcmp(param->name, head_name(model)) == 0;
}

tp_status tp_model_forward(const tp_model *model, tp_graph *g, const tp_forward *f,
                           tp_ref *ret_hidden, tp_ref *ret_head_weight, tp_error *err)
{
    TP_TRY(check_forward(model, g, f, err));
    int16_t block = g->block;
    tp_ref hidden;
    model->family->forward(model, g, f, &hidden);
    g->block = block;
    const tp_param *head = tp_model_find_param(model, head_name(model));
    tp_ref weight = tp_graph_find(g, head->name);
    if (!weight) {
        tp_tensor record = tp_param_tensor(head);
        weight = tp_graph_state(g, &record);
    }
    *ret_hidden = hidden;
    *ret_head_weight = weight;
    return TP_OK;
}

const tp_tensor *tp_model_rope_table(const tp_states *states)
{
    return tp_states_find(states, tp_rope_tensor(1, 1).name);
}

tp_status tp_model_fill_constants(const tp_model *model, tp_states *states, tp_error *err)
{
    const tp_tensor *table = tp_model_rope_table(states);
    if (model->rope.theta == 0 || !table || !table->span.buffer)
        return TP_OK;
    TP_FREED float *values = malloc(table->bytes);
    if (!values)
        return tp_fail(err, TP_ERR_NOMEM, "cannot compute the rope table: out of memory");
    tp_rope_fill(&model->rope, table->dim[1], table->dim[0], values);
    return tp_tensor_write(table, 0, values, table->bytes, err);
}

size_t tp_model_cache_block_bytes(const tp_model *model, int64_t block_tokens, tp_dtype cache_dtype)
{
    const tp_model_info *i = &model->info;
    int64_t row = i->kv_heads * (i->head_dim + i->head_dim % 2);
    return (size_t)(2 * i->layers * row * block_tokens) * tp_dtype_size(cache_dtype);
}
