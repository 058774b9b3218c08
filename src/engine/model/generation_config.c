/* generation_config.c - what a folder asks of generation, read. */
#include "engine/model/generation_config.h"

#include <math.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/model/gguf_config.h"

enum { MAX_BYTES = 1 << 20 };

static tp_status read_ids(const tp_fields *c, const char *field, int32_t *ids, int *ret_n,
                          tp_error *err)
{
    int64_t wide[TP_GENERATION_IDS];
    TP_TRY(tp_fields_ids(c, field, TP_GENERATION_IDS, wide, ret_n, err));
    for (int i = 0; i < *ret_n; i++)
        ids[i] = (int32_t)wide[i];
    return TP_OK;
}

static bool is_end(int64_t id, const int64_t *eos, int n_eos)
{
    for (int i = 0; i < n_eos; i++)
        if (eos[i] == id)
            return true;
    return false;
}

/* Words of one id join the suppressed ones. */
static tp_status read_bad_words(const tp_fields *c, const int64_t *eos, int n_eos,
                                tp_generation_config *g, tp_error *err)
{
    static const char field[] = "bad_words_ids";
    const tp_json *words = tp_fields_get(c, field);
    if (words && words->type != TP_JSON_ARRAY)
        return tp_fields_fail(c, field, TP_ERR_FORMAT, err, "expected a list of lists of ids");
    for (const tp_json *w = words ? words->child : NULL; w; w = w->next) {
        int64_t id;
        if (w->type != TP_JSON_ARRAY || w->n != 1 || !tp_json_i64(w->child, &id) || id < 0 ||
            id > INT32_MAX)
            return tp_fields_fail(c, field, TP_ERR_UNSUPPORTED, err,
                                  "only words of one id are supported");
        if (is_end(id, eos, n_eos))
            continue;
        if (g->n_suppressed == TP_GENERATION_IDS)
            return tp_fields_fail(c, field, TP_ERR_FORMAT, err, "more than %d ids",
                                  TP_GENERATION_IDS);
        g->suppressed[g->n_suppressed++] = (int32_t)id;
    }
    return TP_OK;
}

static tp_status read_numbers(const tp_fields *c, tp_generation_config *g, tp_error *err)
{
    const struct {
        const char *field;
        int64_t *to;
    } counts[] = {{"top_k", &g->top_k},
                  {"no_repeat_ngram_size", &g->no_repeat_ngram},
                  {"max_new_tokens", &g->max_new_tokens},
                  {"max_length", &g->max_length},
                  {"min_new_tokens", &g->min_new_tokens},
                  {"min_length", &g->min_length}};
    const struct {
        const char *field;
        double most, *to;
    } reals[] = {{"temperature", 1000, &g->temperature},
                 {"top_p", 1, &g->top_p},
                 {"min_p", 1, &g->min_p},
                 {"repetition_penalty", 1000, &g->repetition_penalty}};
    for (size_t i = 0; i < TP_COUNTOF(counts); i++)
        TP_TRY(tp_fields_int(c, counts[i].field, 0, INT32_MAX, -1, counts[i].to, err));
    for (size_t i = 0; i < TP_COUNTOF(reals); i++) {
        if (!tp_fields_get(c, reals[i].field))
            continue;
        TP_TRY(tp_fields_number(c, reals[i].field, -1e-300, reals[i].most, 0, reals[i].to, err));
    }
    if (g->repetition_penalty == 0)
        return tp_fields_fail(c, "repetition_penalty", TP_ERR_FORMAT, err,
                              "expected a number above 0");
    return TP_OK;
}

static tp_status read_object(const tp_fields *c, const int64_t *eos, int n_eos,
                             tp_generation_config *g, tp_error *err)
{
    TP_OWN(tp_buf) unknown = {0};
    tp_status status = tp_generation_keys_check(c, g->is_of_model ? NULL : &unknown, err);
    snprintf(g->unknown, sizeof g->unknown, "%s", tp_buf_str(&unknown));
    if (status != TP_OK)
        return status;
    TP_TRY(tp_fields_bool(c, "do_sample", false, &g->do_sample, err));
    TP_TRY(read_numbers(c, g, err));
    TP_TRY(read_ids(c, "suppress_tokens", g->suppressed, &g->n_suppressed, err));
    TP_TRY(read_ids(c, "begin_suppress_tokens", g->suppressed_first, &g->n_suppressed_first, err));
    return read_bad_words(c, eos, n_eos, g, err);
}

tp_file_path tp_generation_config_path(const char *folder)
{
    tp_file_path own = tp_path_of("%s/generation_config.json", folder);
    return tp_gguf_is_file(folder)    ? tp_path_of("%s", folder)
           : tp_file_exists(own.text) ? own
                                      : tp_path_of("%s/config.json", folder);
}

tp_status tp_generation_config_read(const char *folder, const int64_t *eos, int n_eos,
                                    tp_generation_config *ret, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    const tp_json_options options = {.allow_nan = true};
    tp_file_path path = tp_generation_config_path(folder);
    *ret = (tp_generation_config){.temperature = NAN,
                                  .top_p = NAN,
                                  .min_p = NAN,
                                  .repetition_penalty = NAN,
                                  .top_k = -1,
                                  .no_repeat_ngram = -1,
                                  .max_new_tokens = -1,
                                  .max_length = -1,
                                  .min_new_tokens = -1,
                                  .min_length = -1};
    if (tp_gguf_is_file(folder))
        return tp_gguf_generation_read(folder, ret, err);
    ret->is_there = tp_file_exists(path.text);
    if (!ret->is_there)
        return TP_OK;
    TP_TRY(tp_json_read(&arena, path.text, MAX_BYTES, &options, &root, err));
    if (root->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_FORMAT, "%s: expected an object", path.text);
    const tp_fields c = {.path = path.text, .section = "", .object = root};
    ret->is_of_model = !tp_str_ends(path.text, "/generation_config.json");
    return read_object(&c, eos, n_eos, ret, err);
}
