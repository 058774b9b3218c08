/* text_model.c - a folder opened to generate, and its generation settings with those of the
 * user. */
#include "engine/generate/text_model.h"

#include <string.h>

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/model/adapter.h"
#include "text/gguf/gguf.h"
#include "text/template/chat_context.h"

/* ---- opening ---- */

static bool has_file(const tp_text_model *m, const char *name)
{
    return tp_file_exists(tp_path_of("%s/%s", m->folder.data, name).text);
}

/* Where this companion is: the folder of an adapter need have none. */
static const char *folder_with(const tp_text_model *m, const char *name)
{
    bool is_base = tp_model_has_adapter(m->model) && !has_file(m, name);
    return is_base ? tp_model_base_folder(m->model) : m->folder.data;
}

static tp_status open_tokenizer(tp_text_model *m, const char *other, tp_error *err)
{
    int64_t vocab = tp_model_get_info(m->model)->vocab;
    const char *folder = other ? other : folder_with(m, "tokenizer.json");
    tp_buf file = {0};
    tp_buf_addf(&file, "%s/tokenizer.json", folder);
    bool has_one = other || tp_file_exists(file.data) || tp_gguf_is_file(folder);
    tp_buf_release(&file);
    if (!has_one)
        return TP_OK;
    TP_TRY(tp_tokenizer_load(folder, &m->tokenizer, err));
    m->scratch = tp_tokenizer_scratch_new(m->tokenizer);
    int32_t n_ids = tp_tokenizer_vocab_size(m->tokenizer);
    if (n_ids > vocab)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s': the tokenizer has %d ids, the model's vocabulary is %lld: they do "
                       "not belong together",
                       m->folder.data, n_ids, (long long)vocab);
    return TP_OK;
}

tp_status tp_text_model_open(tp_text_model *m, const char *path, const char *tokenizer,
                             tp_error *err)
{
    TP_TRY(tp_checkpoint_find_model(path, &m->folder, err));
    TP_TRY(tp_model_open(m->folder.data, &m->model, err));
    TP_TRY(open_tokenizer(m, tokenizer, err));
    tp_stop_ids_find(m->model, m->tokenizer, &m->stops);
    return TP_OK;
}

tp_status tp_text_model_keep_base(tp_text_model *m, const char *base, tp_dtype dtype, tp_error *err)
{
    tp_base_storage storage;
    if (!base)
        return TP_OK;
    TP_TRY(tp_base_storage_parse(base, &storage, err));
    tp_model_freeze(m->model, storage, dtype);
    return TP_OK;
}

tp_status tp_text_model_add_adapter(tp_text_model *m, const char *name, const char *path,
                                    tp_error *err)
{
    TP_OWN(tp_buf) folder = {0};
    int32_t known;
    tp_error ignored;
    if (!*name || tp_model_find_adapter(m->model, tp_slice_of(name), &known, &ignored) == TP_OK)
        return tp_fail(err, TP_ERR_CONFIG,
                       *name ? "two adapters are called '%s'" : "an adapter has no name%s", name);
    tp_status status = tp_checkpoint_find_model(path, &folder, err);
    if (status == TP_OK)
        status = tp_model_add_adapter(m->model, name, folder.data, err);
    return status == TP_OK ? TP_OK : tp_error_prefix(err, status, "adapter '%s': ", name);
}

tp_status tp_text_model_need_tokenizer(tp_text_model *m, tp_error *err)
{
    return m->tokenizer ? TP_OK : tp_tokenizer_load(m->folder.data, &m->tokenizer, err);
}

/* An adapter's folder may have such a file as well; as in transformers the base's counts. */
static const char *defaults_folder(const tp_text_model *m)
{
    const char *folder = tp_model_base_folder(m->model);
    return folder ? folder : m->folder.data;
}

tp_file_path tp_text_model_defaults_path(const tp_text_model *m)
{
    return tp_generation_config_path(defaults_folder(m));
}

tp_status tp_text_model_read_defaults(tp_text_model *m, tp_error *err)
{
    const tp_model_info *info = tp_model_get_info(m->model);
    return tp_generation_config_read(defaults_folder(m), info->eos, info->n_eos, &m->defaults, err);
}

static tp_status start(tp_text_model *m, tp_engine_options *o, int threads, tp_load_report *report,
                       tp_error *err)
{
    const tp_device_options device = {.threads = threads > 0 ? threads : tp_cpu_count()};
    TP_TRY(tp_device_open(&tp_backend_cpu, &device, &m->device, err));
    o->device = m->device;
    o->tokenizer = m->tokenizer;
    o->n_tokens = m->tokenizer ? tp_tokenizer_vocab_size(m->tokenizer) : 0;
    TP_TRY(tp_states_init(&m->states, err));
    TP_TRY(tp_engine_create(m->model, o, &m->states, &m->engine, err));
    TP_TRY(tp_engine_alloc(m->engine, err));
    TP_TRY(tp_model_load(m->model, &m->states, report, err));
    return tp_engine_weights_changed(m->engine, err);
}

static void stop(tp_text_model *m)
{
    tp_engine_free(m->engine);
    tp_states_release(&m->states);
    tp_device_close(m->device);
    m->engine = NULL;
    m->device = NULL;
}

tp_status tp_text_model_start(tp_text_model *m, const tp_engine_options *options, int threads,
                              tp_model_note say, void *user, tp_error *err)
{
    tp_load_report report;
    tp_engine_options o = *options;
    tp_status status = start(m, &o, threads, &report, err);
    if (status != TP_OK) {
        stop(m);
        return status;
    }
    if (say)
        tp_model_say(m->model, &report, say, user);
    if (report.has_nonfinite)
        snprintf(m->nonfinite, sizeof m->nonfinite, "%s", report.nonfinite_name);
    return TP_OK;
}

void tp_text_model_close(tp_text_model *m)
{
    stop(m);
    tp_template_free(m->chat_template);
    tp_tokenizer_scratch_free(m->scratch);
    tp_tokenizer_free(m->tokenizer);
    tp_model_free(m->model);
    tp_ids_release(&m->stops);
    tp_buf_release(&m->folder);
    *m = (tp_text_model){0};
}

/* ---- prompts ---- */

void tp_text_model_encode(tp_text_model *m, const char *text, size_t n, tp_ids *out)
{
    tp_encode_options options = {.add_special = true, .parse_special = true};
    tp_tokenizer_encode(m->tokenizer, m->scratch, text, n, options, out, NULL);
}

static tp_status need_template(tp_text_model *m, tp_error *err)
{
    const char *source = tp_tokenizer_chat_template(m->tokenizer);
    if (m->chat_template)
        return TP_OK;
    if (!source)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' has no chat template: give plain text instead of a conversation",
                       m->folder.data);
    return tp_template_parse("chat template", source, strlen(source), &m->chat_template, err);
}

tp_status tp_text_model_encode_chat(tp_text_model *m, const char *conversation, size_t n,
                                    tp_ids *out, tp_buf *ret_text, tp_error *err)
{
    const tp_json_options tolerant = TP_JSON_TOLERANT;
    TP_OWN(tp_buf) text = {0};
    TP_TRY(need_template(m, err));
    TP_TRY(tp_chat_render_json(m->chat_template, m->tokenizer, conversation, n, &tolerant, true,
                               &text, err));
    /* the template writes the special tokens itself */
    tp_encode_options options = {.parse_special = true};
    tp_tokenizer_encode(m->tokenizer, m->scratch, tp_buf_str(&text), text.len, options, out, NULL);
    if (ret_text)
        tp_buf_add(ret_text, tp_buf_str(&text), text.len);
    return TP_OK;
}
