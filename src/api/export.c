/* export.c - a model wherever it lies, as one file. */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/sized.h"
#include "base/strings.h"
#include "engine/model/gguf_export.h"
#include "engine/train/checkpoint.h"
#include "temper/model.h"
#include "text/tokenizer/tokenizer.h"

/* The last part of the path as it was given, or as it is when that is ".". */
static void name_of(const char *path, tp_buf *out)
{
    TP_FREED char *real = realpath(path, NULL);
    const char *from = real ? real : path, *slash = strrchr(from, '/');
    tp_buf_adds(out, slash && slash[1] ? slash + 1 : from);
    if (tp_str_ends(out->data, ".gguf"))
        out->data[out->len -= strlen(".gguf")] = '\0';
}

static tp_status export_from(const char *folder, const char *out, const tp_gguf_export_options *o,
                             tp_gguf_export_result *ret, tp_error *err)
{
    tp_model *model = NULL;
    tp_tokenizer *tokenizer = NULL;
    tp_status status = tp_model_open(folder, &model, err);
    if (status == TP_OK)
        status = tp_tokenizer_load(folder, &tokenizer, err);
    if (status == TP_OK)
        status = tp_gguf_export(model, tokenizer, out, o, ret, err);
    tp_tokenizer_free(tokenizer);
    tp_model_free(model);
    return status;
}

tp_status tp_model_export(const char *path, const char *out, const tp_export_options *options,
                          tp_export_result *ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_export_options o;
    tp_gguf_export_result result;
    TP_OWN(tp_buf) folder = {0}, name = {0};
    TP_NEED(path && out, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_export_options", err));
    TP_TRY(tp_sized_check(ret, "tp_export_result", err));
    if (!o.type)
        return tp_fail(err, TP_ERR_ARG, "tp_model_export: options.type is NULL");
    if (o.threads < 0 || o.threads > 4096)
        return tp_fail(err, TP_ERR_ARG, "threads is %d; expected 1 to 4096, or 0 for one per core",
                       o.threads);
    TP_TRY(tp_checkpoint_find_model(path, &folder, err));
    name_of(path, &name);
    tp_gguf_export_options own = {.type = o.type,
                                  .name = o.name ? o.name : name.data,
                                  .threads = o.threads ? o.threads : tp_cpu_count(),
                                  .note = o.note,
                                  .user = o.user};
    TP_TRY(export_from(folder.data, out, &own, &result, err));
    if (ret) {
        tp_export_result filled = {
            .bytes = result.bytes, .n_tensors = result.n_tensors, .n_fallback = result.n_fallback};
        memcpy(filled.types, result.types, sizeof filled.types);
        tp_sized_write(ret, &filled, sizeof filled);
    }
    return TP_OK;
}
