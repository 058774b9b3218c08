/* adapter_files.c - the tensors of an adapter: drawn, from and to PEFT's files, and added to the
 * base for good. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "engine/model/adapter_internal.h"
#include "engine/model/convert.h"
#include "engine/model/frozen.h"
#include "engine/model/safetensors.h"

static const char peft_prefix[] = "base_model.model.";

static tp_status read_packed(const tp_states *states, const tp_param *p, float **ret, tp_error *err)
{
    float *out = malloc((size_t)(p->dim[0] * p->dim[1]) * sizeof *out);
    if (!out)
        return tp_fail(err, TP_ERR_NOMEM, "cannot read '%s': out of memory", p->name);
    TP_HAND_OVER(tp_param_unpack(p, states, out, err), ret, out, free(out));
}

/* A tensor's elements in f32; free() them. */
static tp_status read_all(const tp_states *states, const tp_param *p, float **ret, tp_error *err)
{
    if (tp_param_is_packed(p))
        return read_packed(states, p, ret, err);
    const tp_tensor *t = tp_states_find(states, p->name);
    if (!t || !t->span.buffer)
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' is not in memory", p->name);
    size_t n = (size_t)(p->dim[0] * p->dim[1]), size = tp_dtype_size(t->dtype);
    float *out = malloc(n * sizeof *out);
    void *stored = size == sizeof *out ? out : malloc(n * size);
    tp_status status = out && stored
                           ? tp_tensor_read(t, 0, stored, n * size, err)
                           : tp_fail(err, TP_ERR_NOMEM, "cannot read '%s': out of memory", p->name);
    if (status == TP_OK && stored != out)
        tp_convert_to_f32(stored, t->dtype, out, n);
    if (stored != out)
        free(stored);
    TP_HAND_OVER(status, ret, out, free(out));
}

static tp_status write_all(const tp_states *states, const tp_param *p, const float *x,
                           tp_error *err)
{
    const tp_tensor *t = tp_states_find(states, p->name);
    TP_ASSERT(t && t->dtype == TP_DTYPE_F32);
    return tp_tensor_write(t, 0, x, tp_tensor_count(t) * sizeof *x, err);
}

tp_status tp_model_round_base(const tp_model *model, tp_states *states, tp_base_storage storage,
                              tp_error *err)
{
    for (size_t i = 0; i < model->n_params; i++) {
        const tp_param *p = &model->params[i];
        TP_FREED float *x = NULL;
        if (!tp_param_is_hidden(p))
            continue;
        TP_TRY(read_all(states, p, &x, err));
        TP_TRY(tp_param_round(p, storage, x, err));
        TP_TRY(write_all(states, p, x, err));
    }
    return TP_OK;
}

/* ---- from the base: norms of rows, and sums ---- */

/* The adapter of one module with the weight that it is on, in f32. */
typedef struct {
    const tp_adapted *module;
    int64_t out, in, r;
    int64_t out_step, in_step; /* from one output's weight to the next in w */
    float *w, *a, *b, *m;
} whole;

static void release(whole *x)
{
    free(x->w);
    free(x->a);
    free(x->b);
    free(x->m);
}

static tp_status open_module(const tp_states *states, const tp_adapted *m, whole *ret,
                             tp_error *err)
{
    bool transposed = m->weight->is_transposed;
    whole x = {.module = m, .out = m->b->dim[0], .in = m->a->dim[1], .r = m->a->dim[0]};
    x.out_step = transposed ? 1 : x.in;
    x.in_step = transposed ? x.out : 1;
    tp_status status = read_all(states, m->weight, &x.w, err);
    if (status == TP_OK)
        status = read_all(states, m->a, &x.a, err);
    if (status == TP_OK)
        status = read_all(states, m->b, &x.b, err);
    if (status == TP_OK && m->m)
        status = read_all(states, m->m, &x.m, err);
    TP_HAND_OVER(status, ret, x, release(&x));
}

/* Weights of output i with the adapter: w + scale * b a, into row[in]. */
static void add_to_row(const whole *x, double scale, int64_t i, double *row)
{
    for (int64_t k = 0; k < x->in; k++)
        row[k] = 0;
    for (int64_t r = 0; r < x->r; r++) {
        double factor = (double)x->b[i * x->r + r];
        const float *a = x->a + r * x->in;
        for (int64_t k = 0; k < x->in; k++)
            row[k] += factor * (double)a[k];
    }
    const float *w = x->w + i * x->out_step;
    for (int64_t k = 0; k < x->in; k++)
        row[k] = (double)w[k * x->in_step] + scale * row[k];
}

static double norm_of(const double *row, int64_t n)
{
    double squares = 0;
    for (int64_t k = 0; k < n; k++)
        squares += row[k] * row[k];
    return sqrt(squares);
}

static double *row_for(const whole *x)
{
    double *row = malloc((size_t)x->in * sizeof *row);
    TP_HAVE(row);
    return row;
}

static tp_status merge_module(const whole *x, tp_error *err)
{
    TP_FREED double *row = row_for(x);
    for (int64_t i = 0; i < x->out; i++) {
        add_to_row(x, x->module->scale, i, row);
        double length = x->m ? norm_of(row, x->in) : 1,
               factor = x->m ? (double)x->m[i] / length : 1;
        if (length == 0)
            return tp_fail(err, TP_ERR_FORMAT,
                           "'%s': row %lld is zero, and DoRA divides by its length: the merged "
                           "weights would be NaN; train the adapter without that module",
                           x->module->weight->name, (long long)i);
        float *w = x->w + i * x->out_step;
        for (int64_t k = 0; k < x->in; k++)
            w[k * x->in_step] = (float)(factor * row[k]);
    }
    return TP_OK;
}

tp_status tp_adapter_merge(const tp_model *model, tp_states *states, tp_error *err)
{
    const tp_lora *l = model->lora;
    for (size_t i = 0; i < l->n_modules; i++) {
        TP_CLEANUP(release) whole x = {0};
        TP_TRY(open_module(states, &l->modules[i], &x, err));
        TP_TRY(merge_module(&x, err));
        TP_TRY(write_all(states, l->modules[i].weight, x.w, err));
    }
    return TP_OK;
}

/* DoRA begins with the lengths that the base has: B is 0 still. */
static tp_status measure(tp_states *states, const tp_adapted *m, tp_error *err)
{
    TP_CLEANUP(release) whole x = {0};
    TP_TRY(open_module(states, m, &x, err));
    TP_FREED double *row = row_for(&x);
    for (int64_t i = 0; i < x.out; i++) {
        add_to_row(&x, 0, i, row);
        x.m[i] = (float)norm_of(row, x.in);
    }
    return write_all(states, m->m, x.m, err);
}

tp_status tp_adapter_init(const tp_model *model, tp_states *states, uint64_t seed, tp_error *err)
{
    const tp_lora *l = model->lora;
    for (size_t i = 0; i < l->n_modules; i++) {
        const tp_adapted *m = &l->modules[i];
        double in = (double)m->a->dim[1], r = (double)m->a->dim[0];
        bool is_uniform = l->settings.init == TP_LORA_KAIMING;
        double spread = is_uniform                           ? 1 / sqrt(in)
                        : l->settings.init == TP_LORA_XAVIER ? sqrt(2 / (in + r))
                                                             : 1 / r;
        TP_TRY(tp_param_draw(m->a, is_uniform, states, seed, spread, err));
        TP_TRY(tp_param_draw(m->b, false, states, seed, 0, err));
        if (m->m) {
            TP_TRY(tp_param_draw(m->m, false, states, seed, 0, err));
            TP_TRY(measure(states, m, err));
        }
    }
    return TP_OK;
}

/* ---- PEFT's file ---- */

/* The tensor of the adapter that a file calls `name`. */
static const tp_param *find(const tp_lora *l, const char *name)
{
    static const char live[] = ".weight"; /* of lora_magnitude_vector, as the live parameter has */
    if (!tp_str_starts(name, peft_prefix))
        return NULL;
    name += strlen(peft_prefix);
    size_t n = strlen(name);
    for (size_t i = 0; i < l->n_params; i++) {
        const char *own = l->params[i].name + strlen(l->prefix);
        size_t m = strlen(own);
        if (strncmp(own, name, m) == 0 &&
            (n == m || (l->params[i].rank == 1 && strcmp(name + m, live) == 0)))
            return &l->params[i];
    }
    return NULL;
}

/* The state that it goes to. */
static tp_param target(const tp_param *p, tp_adapter_use use, tp_arena *arena)
{
    tp_param to = *p;
    if (use == TP_ADAPTER_REFERENCE)
        to.name = tp_adapter_reference_name(arena, p);
    return to;
}

static tp_status take(const char *path, const tp_tensor_entry *e, const tp_param *p,
                      const tp_states *states, tp_error *err)
{
    size_t n = (size_t)(p->dim[0] * p->dim[1]);
    if (!e->is_known || !tp_convert_is_float(e->dtype))
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s: tensor '%s' is %.40s; expected F32, BF16, F16 or F64", path, e->name,
                       e->dtype_name);
    if (e->rank != p->rank || e->dim[0] != p->dim[0] || (p->rank == 2 && e->dim[1] != p->dim[1]))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: tensor '%s' has another shape than [%lld, %lld], which "
                       "adapter_config.json and the base imply",
                       path, e->name, (long long)p->dim[0], (long long)p->dim[1]);
    TP_FREED float *x = malloc(n * sizeof *x);
    if (!x)
        return tp_fail(err, TP_ERR_NOMEM, "cannot load '%s': out of memory", e->name);
    bool is_finite = tp_convert_to_f32(e->data, e->dtype, x, n);
    return is_finite ? write_all(states, p, x, err)
                     : tp_fail(err, TP_ERR_NUMERIC, "%s: tensor '%s' holds NaN or infinity", path,
                               e->name);
}

static tp_status load_from(const tp_lora *l, const tp_safetensors *file, tp_adapter_use use,
                           tp_states *states, bool *seen, tp_error *err)
{
    const char *path = tp_safetensors_name(file);
    for (size_t i = 0; i < tp_safetensors_count(file); i++) {
        const tp_tensor_entry *e = tp_safetensors_at(file, i);
        const tp_param *p = find(l, e->name);
        if (!p)
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "%s: tensor '%s' belongs to no module that adapter_config.json names",
                           path, e->name);
        if (seen[p - l->params])
            return tp_fail(err, TP_ERR_FORMAT, "%s: '%s' is there twice", path, p->name);
        seen[p - l->params] = true;
        tp_param to = target(p, use, &states->arena);
        TP_TRY(take(path, e, &to, states, err));
    }
    for (size_t i = 0; i < l->n_params; i++)
        if (!seen[i])
            return tp_fail(err, TP_ERR_FORMAT, "%s lacks tensor '%s%s'", path, peft_prefix,
                           l->params[i].name + strlen(l->prefix));
    return TP_OK;
}

tp_status tp_lora_load(const tp_lora *l, const char *folder, tp_adapter_use use, tp_states *states,
                       tp_error *err)
{
    tp_safetensors *file;
    const tp_file_path path = tp_path_of("%s/adapter_model.safetensors", folder);
    if (!tp_file_exists(path.text) &&
        tp_file_exists(tp_path_of("%s/adapter_model.bin", folder).text))
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s has its tensors in adapter_model.bin, a format that can run code: save "
                       "it again with PEFT, which writes adapter_model.safetensors",
                       folder);
    TP_TRY(tp_safetensors_open(path.text, &file, err));
    TP_FREED bool *seen = tp_new(l->n_params, sizeof *seen);
    tp_status status = load_from(l, file, use, states, seen, err);
    tp_safetensors_close(file);
    return status;
}

tp_status tp_adapter_load(const tp_model *model, const char *folder, tp_adapter_use use,
                          tp_states *states, tp_error *err)
{
    return tp_lora_load(model->lora, folder, use, states, err);
}

typedef tp_status (*tensors_writer)(const char *path, const tp_tensor_out *tensors, size_t n,
                                    tp_error *err);

static tp_status write_tensors(const tp_model *model, const tp_states *states, const char *folder,
                               tp_shard among, tensors_writer write, tp_error *err)
{
    const tp_lora *l = model->lora;
    TP_FREED tp_tensor_out *out = tp_new(l->n_params, sizeof *out);
    char(*names)[320] = tp_new(l->n_params, sizeof *names);
    for (size_t i = 0; i < l->n_params; i++) {
        const tp_param *p = &l->params[i];
        const tp_tensor *state = tp_states_find(states, p->name);
        snprintf(names[i], sizeof names[i], "%s%s", peft_prefix, p->name);
        out[i] = tp_tensor_out_of(state, names[i], TP_DTYPE_F32, among);
    }
    tp_status status =
        write(tp_path_of("%s/adapter_model.safetensors", folder).text, out, l->n_params, err);
    free(names);
    return status;
}

tp_status tp_adapter_save_frame(const tp_model *model, const tp_states *states, const char *folder,
                                const tp_companions *companions, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_TRY(tp_dir_make(folder, err));
    TP_TRY(write_tensors(model, states, folder, (tp_shard){0}, tp_safetensors_frame, err));
    tp_adapter_config_write(model, &text);
    tp_status status = tp_model_write_text(folder, "adapter_config.json", &text, err);
    if (status == TP_OK && companions)
        status = tp_companions_write(companions, folder, err);
    return status == TP_OK ? tp_dir_sync(folder, err) : status;
}

tp_status tp_adapter_save_share(const tp_model *model, const tp_states *states, const char *folder,
                                tp_shard among, tp_error *err)
{
    return write_tensors(model, states, folder, among, tp_safetensors_fill, err);
}
