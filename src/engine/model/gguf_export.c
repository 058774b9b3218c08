/* gguf_export.c - header first, since all sizes are known; then the tensors, each read, laid out as
 * llama.cpp wants it, quantised and written. */
#include "engine/model/gguf_export.h"
#include "engine/model/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/output.h"
#include "base/platform.h"
#include "base/threads.h"
#include "base/working.h"
#include "engine/model/ggml.h"
#include "engine/model/gguf_config.h"
#include "engine/model/weights.h"
#include "text/gguf/gguf.h"
#include "text/tokenizer/tokenizer_gguf.h"

enum { PIECE = 16 << 20 /* elements in memory at a time */, PARTS = 64 };

static const struct {
    const char *name;
    tp_ggml_type type;
    uint32_t file_type; /* general.file_type, for people: tensors say what they are */
    bool is_mixed;
} kinds[] = {
    {"F32", TP_GGML_F32, 0, false},     {"F16", TP_GGML_F16, 1, false},
    {"BF16", TP_GGML_BF16, 32, false},  {"Q8_0", TP_GGML_Q8_0, 7, false},
    {"Q4_0", TP_GGML_Q4_0, 2, false},   {"Q4_K", TP_GGML_Q4_K, 14, false},
    {"Q4_K_M", TP_GGML_Q4_K, 15, true},
};

static char *gguf_export_types(char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < TP_COUNTOF(kinds); i++)
        at += (size_t)snprintf(out + at, 128 - at, "%s%s", i ? ", " : "", kinds[i].name);
    return out;
}

typedef struct {
    const tp_model *model;
    const tp_gguf_export_options *options;
    tp_weights weights;
    tp_gguf_keys keys;
    tp_gguf_tensor *tensors; /* by parameter; then perhaps one more, rope_freqs */
    tp_gguf_place *places;
    uint32_t *wanted; /* by parameter: its type, did its rows divide */
    float *divisors;  /* of rope_freqs */
    size_t n;
    uint32_t type, file_type;
    bool is_mixed;
    tp_buf header, notes;
    uint64_t bytes;
    tp_pool *pool;
    float *wide, *turned;
    unsigned char *blocks;
    tp_gguf_export_result result;
} exporting;

/* ---- what goes where ---- */

static tp_status choose_type(exporting *x, tp_error *err)
{
    char list[128];
    for (size_t i = 0; i < TP_COUNTOF(kinds); i++)
        if (strcasecmp(x->options->type, kinds[i].name) == 0) {
            x->type = kinds[i].type;
            x->file_type = kinds[i].file_type;
            x->is_mixed = kinds[i].is_mixed;
            return TP_OK;
        }
    return tp_fail(err, TP_ERR_CONFIG, "there is no type '%.40s'; choose one of %s",
                   x->options->type, gguf_export_types(list));
}

/* llama-quantize's rule for rows that do not divide into blocks. */
static uint32_t fitting(uint32_t type, int64_t length)
{
    if (length % tp_ggml_info_of(type)->block == 0)
        return type;
    uint32_t smaller = type == TP_GGML_Q4_K   ? TP_GGML_Q5_0
                       : type == TP_GGML_Q5_K ? TP_GGML_Q5_1
                       : type == TP_GGML_Q6_K ? TP_GGML_Q8_0
                                              : TP_GGML_F16;
    return length % tp_ggml_info_of(smaller)->block == 0 ? smaller : TP_GGML_F16;
}

static bool fell_back(const exporting *x, size_t i) { return x->tensors[i].type != x->wanted[i]; }

static bool fell_alike(const exporting *x, size_t i, size_t j)
{
    return fell_back(x, j) && x->wanted[j] == x->wanted[i] &&
           x->tensors[j].dim[0] == x->tensors[i].dim[0];
}

/* One line for all of a type whose rows have the same length. */
static void note_fallbacks(exporting *x)
{
    for (size_t i = 0; i < x->n; i++) {
        const tp_gguf_tensor *t = &x->tensors[i];
        size_t n = 0;
        bool is_first = fell_back(x, i);
        for (size_t j = 0; j < x->n && is_first; j++) {
            bool is_alike = fell_alike(x, i, j);
            is_first = !is_alike || j >= i;
            n += is_alike;
        }
        if (is_first)
            tp_buf_addf(&x->notes,
                        "%zu tensors (%s ...) are %s: their rows of %lld do not divide into %s's "
                        "blocks of %u\n",
                        n, t->name, tp_ggml_info_of(t->type)->name, (long long)t->dim[0],
                        tp_ggml_info_of(x->wanted[i])->name, tp_ggml_info_of(x->wanted[i])->block);
    }
}

static tp_status place_tensors(exporting *x, tp_error *err)
{
    for (size_t i = 0; i < x->model->n_params; i++) {
        const tp_param *p = &x->model->params[i];
        tp_gguf_place *place = &x->places[i];
        tp_gguf_tensor *t = &x->tensors[i];
        if (!tp_gguf_place_of(x->model, p, place))
            return tp_fail(err, TP_ERR_UNSUPPORTED, "'%s' has no name in GGUF", p->name);
        *t = (tp_gguf_tensor){.name = place->name, .rank = p->rank};
        tp_gguf_shape(p, place, &t->dim[0], &t->dim[1]);
        x->wanted[i] = place->is_f32 ? (uint32_t)TP_GGML_F32
                       : x->is_mixed ? tp_gguf_q4_k_m(x->model, p, place->name)
                                     : x->type;
        t->type = fitting(x->wanted[i], t->dim[0]);
        x->result.n_fallback += fell_back(x, i);
    }
    x->n = x->model->n_params;
    note_fallbacks(x);
    return TP_OK;
}

/* Llama 3's scaling of the rotation is a tensor there. */
static void place_divisors(exporting *x)
{
    int64_t half = x->model->info.head_dim / 2;
    if (!x->model->rope.is_llama3)
        return;
    x->divisors = tp_new((size_t)half, sizeof *x->divisors);
    for (int64_t i = 0; i < half; i++)
        x->divisors[i] = tp_rope_divisor(&x->model->rope, 2 * half, i);
    x->tensors[x->n++] = (tp_gguf_tensor){
        .name = "rope_freqs.weight", .type = TP_GGML_F32, .rank = 1, .dim = {half, 1}};
}

/* Settings that generation would refuse stay behind. */
static void put_generation(exporting *x)
{
    const tp_model_info *info = &x->model->info;
    tp_generation_config config;
    tp_error err;
    if (tp_generation_config_read(x->model->folder, info->eos, info->n_eos, &config, &err) == TP_OK)
        tp_gguf_put_generation(&config, &x->keys, &x->notes);
    else
        tp_buf_addf(&x->notes, "%s: of the settings of generation none is written\n", err.message);
}

static tp_status make_header(exporting *x, const tp_tokenizer *tokenizer, tp_error *err)
{
    const tp_model_info *info = &x->model->info;
    tp_gguf_vocab vocab = {.vocab = info->vocab,
                           .bos = info->bos,
                           .pad = x->model->pad,
                           .eos = info->eos,
                           .n_eos = info->n_eos};
    TP_TRY(tp_gguf_put_model(x->model, x->options->name, &x->keys, err));
    tp_gguf_put_u32(&x->keys, "general.file_type", x->file_type);
    tp_gguf_put_u32(&x->keys, "general.quantization_version", 2);
    TP_TRY(tp_tokenizer_put_gguf(tokenizer, &vocab, &x->keys, &x->notes, err));
    put_generation(x);
    TP_TRY(place_tensors(x, err));
    place_divisors(x);
    return tp_gguf_header(&x->keys, x->tensors, x->n, &x->header, &x->bytes, err);
}

static void say_notes(const exporting *x)
{
    for (char *line = x->notes.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (x->options->note)
            x->options->note(x->options->user, line);
    }
}

static void describe(exporting *x)
{
    size_t counts[64] = {0}, at = 0, room = sizeof x->result.types;
    for (size_t i = 0; i < x->n; i++)
        counts[x->tensors[i].type]++;
    for (uint32_t type = 0; type < TP_COUNTOF(counts); type++)
        if (counts[type])
            at += (size_t)snprintf(x->result.types + at, room - at, "%s%zu %s", at ? ", " : "",
                                   counts[type], tp_ggml_info_of(type)->name);
    x->result.n_tensors = x->n;
    x->result.bytes = x->bytes;
}

/* ---- the disk ---- */

/* Room for the whole file; what exports that were killed left in the folder goes. */
static tp_status prepare_folder(const exporting *x, const char *path, tp_error *err)
{
    struct statvfs fs;
    struct stat st;
    bool is_there = stat(path, &st) == 0;
    if (strcmp(path, "-") == 0 || (is_there && !S_ISREG(st.st_mode)))
        return TP_OK; /* a stream */
    const char *slash = strrchr(path, '/');
    tp_buf folder = {0};
    tp_buf_add(&folder, slash ? path : ".", slash ? (size_t)TP_MAX(slash - path, 1) : 1);
    tp_outputs_clean(folder.data);
    bool is_known = statvfs(is_there ? path : folder.data, &fs) == 0 && fs.f_blocks != 0;
    double available = is_known ? (double)fs.f_bavail * (double)fs.f_frsize : INFINITY;
    tp_buf_release(&folder);
    if ((double)x->bytes <= available)
        return TP_OK;
    return tp_fail(err, TP_ERR_OUTPUT,
                   "cannot write %s: it takes %s, the disk has %s free; free some space or choose "
                   "another folder",
                   path, tp_human_bytes((double)x->bytes, TP_ROOM),
                   tp_human_bytes(available, TP_ROOM));
}

/* ---- the data ---- */

/* Rows of one tensor that are quantised together. */
typedef struct {
    const float *rows;
    unsigned char *blocks;
    uint32_t type;
    size_t n_rows, length, row_bytes;
} encoding;

static tp_status encode(void *context, size_t index, int worker, tp_error *err)
{
    (void)worker, (void)err;
    encoding *e = context;
    size_t first = e->n_rows * index / PARTS, end = e->n_rows * (index + 1) / PARTS;
    for (size_t r = first; r < end; r++)
        tp_ggml_from_f32(e->type, e->rows + r * e->length, e->blocks + r * e->row_bytes, e->length);
    return TP_OK;
}

/* A half-float holds up to 65504, which is also the most that a block's scale can be. */
static tp_status check_range(const exporting *x, const tp_gguf_tensor *t, const float *v, size_t n,
                             bool is_finite, tp_error *err)
{
    float most = 0;
    if (!is_finite && tp_ggml_info_of(t->type)->block > 1)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: tensor '%s' holds an infinity or NaN, which %s cannot; the model is "
                       "broken",
                       x->model->folder, t->name, tp_ggml_info_of(t->type)->name);
    if (t->type == TP_GGML_F32 || t->type == TP_GGML_BF16)
        return TP_OK;
    for (size_t i = 0; i < n; i++)
        most = isfinite(v[i]) ? TP_MAX(most, fabsf(v[i])) : most;
    if (most < 65520)
        return TP_OK;
    return tp_fail(
        err, TP_ERR_CONFIG,
        "%s: tensor '%s' holds %g, more than a half-float can: it would become infinite; "
        "export as BF16 or F32",
        x->model->folder, t->name, (double)most);
}

static tp_status put_rows(exporting *x, tp_output *o, const tp_gguf_tensor *t, const float *rows,
                          size_t n, bool is_finite, tp_error *err)
{
    size_t length = (size_t)t->dim[0];
    const tp_ggml_info *info = tp_ggml_info_of(t->type);
    encoding e = {.rows = rows,
                  .blocks = x->blocks,
                  .type = t->type,
                  .n_rows = n,
                  .length = length,
                  .row_bytes = length / info->block * info->bytes};
    TP_TRY(check_range(x, t, rows, n * length, is_finite, err));
    TP_TRY(tp_pool_for(x->pool, PARTS, encode, &e, err));
    return tp_output_write(o, x->blocks, n * e.row_bytes, err);
}

/* Rows there are rows here, but for their order within a head. */
static tp_status put_by_rows(exporting *x, tp_output *o, size_t i, tp_error *err)
{
    const tp_gguf_tensor *t = &x->tensors[i];
    bool is_turned = x->places[i].layout == TP_GGUF_NEIGHBOURS;
    int64_t head = is_turned ? x->model->info.head_dim : 1, length = t->dim[0];
    int64_t most = TP_MAX(PIECE / length / head, 1) * head;
    for (int64_t first = 0; first < t->dim[1]; first += most) {
        int64_t n = TP_MIN(most, t->dim[1] - first);
        bool is_finite;
        float *rows = x->wide;
        TP_TRY(tp_weights_read(&x->weights, i, first, n, x->wide, &is_finite, err));
        for (int64_t r = 0; r < n && is_turned; r++)
            memcpy(x->turned + (tp_gguf_row(x->model, first + r) - first) * length,
                   x->wide + r * length, (size_t)length * sizeof *rows);
        rows = is_turned ? x->turned : x->wide;
        TP_TRY(put_rows(x, o, t, rows, (size_t)n, is_finite, err));
    }
    return TP_OK;
}

static tp_status put_vector(exporting *x, tp_output *o, size_t i, tp_error *err)
{
    const tp_gguf_tensor *t = &x->tensors[i];
    bool is_finite;
    TP_TRY(tp_weights_read(&x->weights, i, 0, 1, x->wide, &is_finite, err));
    for (int64_t k = 0; k < t->dim[0]; k++)
        x->turned[x->places[i].layout == TP_GGUF_NEIGHBOURS ? tp_gguf_row(x->model, k) : k] =
            x->wide[k];
    return put_rows(x, o, t, x->turned, 1, is_finite, err);
}

static tp_status put_transposed(exporting *x, tp_output *o, size_t i, tp_error *err)
{
    const tp_gguf_tensor *t = &x->tensors[i];
    int64_t in = t->dim[0], out = t->dim[1];
    bool is_finite;
    TP_TRY(tp_weights_read(&x->weights, i, 0, in, x->wide, &is_finite, err));
    for (int64_t k = 0; k < in; k++)
        for (int64_t r = 0; r < out; r++)
            x->turned[r * in + k] = x->wide[k * out + r];
    return put_rows(x, o, t, x->turned, (size_t)out, is_finite, err);
}

static tp_status put_padding(tp_output *o, size_t bytes, tp_error *err)
{
    static const char zeros[TP_GGUF_ALIGNMENT];
    return tp_output_write(
        o, zeros, (TP_GGUF_ALIGNMENT - bytes % TP_GGUF_ALIGNMENT) % TP_GGUF_ALIGNMENT, err);
}

static tp_status put_all(exporting *x, tp_output *o, tp_error *err)
{
    TP_TRY(tp_output_write(o, x->header.data, x->header.len, err));
    for (size_t i = 0; i < x->n; i++) {
        const tp_gguf_tensor *t = &x->tensors[i];
        if (i == x->model->n_params)
            TP_TRY(tp_output_write(o, x->divisors, t->bytes, err));
        else if (t->rank == 1)
            TP_TRY(put_vector(x, o, i, err));
        else if (x->places[i].layout == TP_GGUF_TRANSPOSED)
            TP_TRY(put_transposed(x, o, i, err));
        else
            TP_TRY(put_by_rows(x, o, i, err));
        TP_TRY(put_padding(o, t->bytes, err));
    }
    return TP_OK;
}

/* Room for the largest piece. */
static tp_status allocate(exporting *x, tp_error *err)
{
    size_t most = PIECE;
    for (size_t i = 0; i < x->model->n_params; i++) {
        const tp_gguf_tensor *t = &x->tensors[i];
        size_t row = (size_t)t->dim[0], head = (size_t)x->model->info.head_dim;
        most = TP_MAX(most, x->places[i].layout == TP_GGUF_TRANSPOSED ? row * (size_t)t->dim[1]
                                                                      : row * head);
    }
    x->wide = malloc(most * sizeof *x->wide);
    x->turned = malloc(most * sizeof *x->turned);
    x->blocks = malloc(most * sizeof(float));
    if (x->wide && x->turned && x->blocks)
        return TP_OK;
    return tp_fail(err, TP_ERR_NOMEM, "cannot export %s: out of memory", x->model->folder);
}

static tp_status write_file(exporting *x, const char *path, tp_error *err)
{
    tp_output *o;
    TP_OWN(tp_job) job = {0};
    TP_TRY(tp_output_check(path, err));
    TP_TRY(prepare_folder(x, path, err));
    TP_TRY(allocate(x, err));
    TP_TRY(tp_pool_create(&x->pool, TP_MAX(x->options->threads, 1), err));
    TP_TRY(tp_output_open(&o, path, err));
    tp_job_begin(&job, x->bytes, "writing %s", path);
    tp_status status = put_all(x, o, err);
    if (status != TP_OK) {
        tp_output_abandon(o);
        return status;
    }
    return tp_output_close(o, NULL, err);
}

static tp_status run(exporting *x, const tp_tokenizer *tokenizer, const char *path, tp_error *err)
{
    TP_TRY(choose_type(x, err));
    TP_TRY(tp_weights_open(x->model, &x->weights, err));
    TP_TRY(make_header(x, tokenizer, err));
    TP_TRY(write_file(x, path, err));
    say_notes(x);
    describe(x);
    return TP_OK;
}

tp_status tp_gguf_export(const tp_model *model, const tp_tokenizer *tokenizer, const char *path,
                         const tp_gguf_export_options *options, tp_gguf_export_result *ret,
                         tp_error *err)
{
    if (tp_model_has_adapter(model))
        return tp_fail(
            err, TP_ERR_UNSUPPORTED,
            "'%s' is an adapter, which this file has no room for: merge it into its base "
            "first (temper merge)",
            tp_model_adapter_folder(model));
    exporting x = {.model = model,
                   .options = options,
                   .tensors = tp_new(model->n_params + 1, sizeof *x.tensors),
                   .places = tp_new(model->n_params, sizeof *x.places),
                   .wanted = tp_new(model->n_params, sizeof *x.wanted)};
    tp_status status = run(&x, tokenizer, path, err);
    if (status == TP_OK)
        *ret = x.result;
    tp_weights_close(&x.weights);
    tp_pool_free(x.pool);
    tp_buf_release(&x.keys.bytes);
    tp_buf_release(&x.header);
    tp_buf_release(&x.notes);
    free(x.tensors);
    free(x.places);
    free(x.wanted);
    free(x.divisors);
    free(x.wide);
    free(x.turned);
    free(x.blocks);
    return status;
}

/* ---- Q4_K_M: the rules of llama-quantize (llama_tensor_get_type() of llama.cpp) ---- */

/* The first eighth of the blocks, the last one, and every third between them. */
static bool gets_more_bits(int64_t layer, int64_t n)
{
    return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
}

/* What llama.cpp calls a 70B: many heads share a small attn_v. */
static bool is_70b(const tp_model_info *info)
{
    bool is_qwen2 = strcmp(info->family, "qwen2") == 0;
    bool is_llama = strcmp(info->family, "llama") == 0 && info->heads != info->kv_heads;
    return info->layers == 80 && (is_qwen2 || is_llama);
}

uint32_t tp_gguf_q4_k_m(const tp_model *model, const tp_param *param, const char *name)
{
    const tp_model_info *info = tp_model_get_info(model);
    char part[32];
    int layer;
    if (tp_model_is_head(model, param))
        return TP_GGML_Q6_K;
    if (sscanf(name, "blk.%d.%31[a-z_].weight", &layer, part) != 2)
        return TP_GGML_Q4_K;
    bool is_value = strcmp(part, "attn_v") == 0 || strcmp(part, "attn_qkv") == 0;
    if ((is_value || strcmp(part, "ffn_down") == 0) && gets_more_bits(layer, info->layers))
        return TP_GGML_Q6_K;
    return is_value && is_70b(info) ? TP_GGML_Q5_K : TP_GGML_Q4_K;
}
