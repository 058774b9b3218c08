/* merge.c - an adapter added to its base for good, as a folder. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/sized.h"
#include "base/strings.h"
#include "engine/backend/backend.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/model/adapter.h"
#include "temper/model.h"

static tp_status read_dtype(const char *name, tp_dtype file, tp_dtype *ret, tp_error *err)
{
    static const struct {
        const char *name;
        tp_dtype dtype;
    } known[] = {{"float32", TP_DTYPE_F32}, {"bfloat16", TP_DTYPE_BF16}, {"float16", TP_DTYPE_F16}};
    *ret = file;
    for (size_t i = 0; i < TP_COUNTOF(known); i++) {
        if (name && strcmp(name, known[i].name) == 0)
            *ret = known[i].dtype;
        if (name && strcmp(name, known[i].name) == 0)
            return TP_OK;
    }
    return name ? tp_fail(err, TP_ERR_ARG,
                          "the type is '%s'; expected float32, bfloat16 or float16", name)
                : TP_OK;
}

/* Companions are the adapter's where it has a tokenizer, else the base's. */
static tp_companions companions_of(const tp_model *model, const char *folder)
{
    TP_OWN(tp_buf) file = {0};
    tp_buf_addf(&file, "%s/tokenizer.json", folder);
    const char *base = tp_model_base_folder(model);
    tp_companions c = {.tokenizer = tp_file_exists(file.data) ? folder : base, .model = base};
    return c;
}

/* Written beside, then renamed. */
static tp_status save(const tp_model *model, const tp_states *states, const char *folder,
                      const char *out, tp_dtype dtype, tp_error *err)
{
    TP_OWN(tp_buf) beside = {0};
    tp_error ignored;
    tp_companions companions = companions_of(model, folder);
    tp_buf_addf(&beside, "%s.tmp-%d", out, (int)getpid());
    tp_status status = tp_model_save(model, states, beside.data, dtype, 0, &companions, err);
    if (status == TP_OK)
        status = tp_rename_synced(beside.data, out, err);
    if (status != TP_OK && tp_dir_remove(beside.data, &ignored) != TP_OK)
        status = tp_error_prefix(err, status, "'%s' is left over: ", beside.data);
    return status;
}

static tp_status merge_on(tp_device *device, const tp_model *model, const char *folder,
                          const char *out, const tp_merge_options *o, tp_merge_result *ret,
                          tp_error *err)
{
    TP_OWN(tp_states) states = {0};
    tp_load_report report;
    tp_dtype dtype = TP_DTYPE_F32;
    tp_base_storage storage = TP_BASE_F32;
    if (o->base)
        TP_TRY(tp_base_storage_parse(o->base, &storage, err));
    TP_TRY(tp_states_init(&states, err));
    TP_TRY(tp_model_declare(model, 1, &states, err));
    TP_TRY(tp_states_alloc(&states, device, err));
    TP_TRY(tp_model_load(model, &states, &report, err));
    TP_TRY(read_dtype(o->dtype, report.file_dtype, &dtype, err));
    if (o->base)
        TP_TRY(tp_model_round_base(model, &states, storage, err));
    TP_TRY(tp_adapter_merge(model, &states, err));
    TP_TRY(save(model, &states, folder, out, dtype, err));
    snprintf(ret->dtype, sizeof ret->dtype, "%s", tp_dtype_name(dtype));
    snprintf(ret->base, sizeof ret->base, "%s", tp_model_base_folder(model));
    ret->n_modules = tp_model_adapter_count(model);
    return TP_OK;
}

static tp_status merge(const char *folder, const char *out, const tp_merge_options *o,
                       tp_merge_result *ret, tp_error *err)
{
    tp_model *model;
    tp_device *device = NULL;
    TP_TRY(tp_model_open(folder, &model, err));
    tp_status status = TP_OK;
    if (!tp_model_has_adapter(model))
        status = tp_fail(err, TP_ERR_CONFIG,
                         "'%s' is no adapter: it has no adapter_config.json, there is nothing to "
                         "merge",
                         folder);
    if (status == TP_OK) /* only memory is wanted of it */
        status = tp_device_open(&tp_backend_ref, &(tp_device_options){0}, &device, err);
    if (status == TP_OK)
        status = merge_on(device, model, folder, out, o, ret, err);
    tp_device_close(device);
    tp_model_free(model);
    return status;
}

tp_status tp_model_merge(const char *path, const char *out, const tp_merge_options *options,
                         tp_merge_result *ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_merge_options o;
    tp_merge_result result = {0};
    TP_OWN(tp_buf) folder = {0};
    tp_dtype unused;
    struct stat there;
    TP_NEED(path && out, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_merge_options", err));
    TP_TRY(tp_sized_check(ret, "tp_merge_result", err));
    TP_TRY(read_dtype(o.dtype, TP_DTYPE_F32, &unused, err));
    TP_TRY(tp_dir_check_name(out, err));
    if (lstat(out, &there) == 0)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' is there already: name a folder that is not", out);
    TP_TRY(tp_checkpoint_find_model(path, &folder, err));
    TP_TRY(merge(folder.data, out, &o, &result, err));
    if (ret)
        tp_sized_write(ret, &result, sizeof result);
    return TP_OK;
}
