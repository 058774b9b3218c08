/* text_model.c - a folder opened to generate, and its generation settings with those of the
 * user. */
#include "cli/text_model.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "engine/train/checkpoint.h"
#include "text/template/chat_context.h"

static tp_status find_folder(const char *path, char out[TP_TEXT_MODEL_FOLDER], tp_error *err)
{
    tp_buf folder = {0};
    tp_status status = tp_checkpoint_find_model(path, &folder, err);
    if (status == TP_OK && folder.len >= TP_TEXT_MODEL_FOLDER)
        status = tp_fail(err, TP_ERR_CONFIG, "'%s': the path is too long", path);
    else if (status == TP_OK)
        memcpy(out, folder.data, folder.len + 1);
    tp_buf_release(&folder);
    return status;
}

static tp_status check_vocabulary(const tp_text_model *m, tp_error *err)
{
    int64_t vocab = tp_model_get_info(m->model)->vocab;
    int32_t ids = tp_tokenizer_vocab_size(m->tokenizer);
    if (ids <= vocab)
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "'%s': the tokenizer has %d ids, the model's vocabulary is %lld: they do not "
                   "belong together",
                   m->folder, ids, (long long)vocab);
}

tp_status tp_text_model_open(tp_text_model *m, const char *path, tp_error *err)
{
    TP_TRY(find_folder(path, m->folder, err));
    TP_TRY(tp_model_open(m->folder, &m->model, err));
    TP_TRY(tp_tokenizer_load(m->folder, &m->tokenizer, err));
    TP_TRY(check_vocabulary(m, err));
    m->scratch = tp_tokenizer_scratch_new(m->tokenizer);
    const tp_model_info *info = tp_model_get_info(m->model);
    TP_TRY(tp_generation_config_read(m->folder, info->eos, info->n_eos, &m->defaults, err));
    for (int i = 0; i < info->n_eos; i++)
        tp_ids_add(&m->stops, (int32_t)info->eos[i]);
    if (tp_tokenizer_eos(m->tokenizer) >= 0)
        tp_ids_add(&m->stops, tp_tokenizer_eos(m->tokenizer));
    return TP_OK;
}

void tp_text_model_close(tp_text_model *m)
{
    tp_engine_free(m->engine);
    tp_states_release(&m->states);
    tp_device_close(m->device);
    tp_template_free(m->chat_template);
    tp_tokenizer_scratch_free(m->scratch);
    tp_tokenizer_free(m->tokenizer);
    tp_model_free(m->model);
    tp_ids_release(&m->stops);
    *m = (tp_text_model){0};
}

void tp_text_model_settle(const tp_text_model *m, bool ignore, const tp_text_settings *usual,
                          tp_text_settings *s)
{
    tp_buf said = {0};
    if (!ignore && *m->defaults.unknown)
        fprintf(stderr, "temper: generation_config.json: not used: %s\n", m->defaults.unknown);
    tp_text_settle(ignore ? NULL : &m->defaults, usual, s, &said);
    if (said.len)
        fprintf(stderr, "temper: from generation_config.json: %s\n", said.data);
    tp_buf_release(&said);
}

tp_request tp_text_model_request(const tp_text_model *m, const tp_text_settings *s, bool ignore,
                                 const int32_t *prompt, size_t n_prompt)
{
    return tp_text_request_of(ignore ? NULL : &m->defaults, s, prompt, n_prompt);
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
                       m->folder);
    return tp_template_parse("chat template", source, strlen(source), &m->chat_template, err);
}

/* `messages` and `tools` (may be NULL) are JSON lists. */
static tp_status render_chat(const tp_text_model *m, const char *messages, const char *tools,
                             tp_arena *arena, tp_buf *out, tp_error *err)
{
    const tp_json *list, *tool_list = NULL;
    tp_json_options tolerant = TP_JSON_TOLERANT;
    tp_json *context = tp_chat_context_new(arena);
    TP_TRY(tp_json_parse(arena, "messages", messages, strlen(messages), &tolerant, &list, err));
    if (list->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT, "messages: expected a list of messages");
    if (tools)
        TP_TRY(tp_json_parse(arena, "tools", tools, strlen(tools), &tolerant, &tool_list, err));
    tp_chat_context_share(arena, context, "messages", list);
    tp_chat_context_share(arena, context, "tools", tool_list);
    tp_chat_context_finish(arena, m->tokenizer, NULL, true, context);
    return tp_template_render(m->chat_template, context, NULL, NULL, out, NULL, err);
}

tp_status tp_text_model_encode_chat(tp_text_model *m, const char *messages, const char *tools,
                                    tp_ids *out, tp_buf *ret_text, tp_error *err)
{
    TP_TRY(need_template(m, err));
    tp_buf text = {0};
    tp_arena arena;
    size_t n = strlen(messages) + (tools ? strlen(tools) : 0);
    TP_TRY(tp_arena_init(&arena, (1 << 20) + 64 * n, err));
    tp_status status = render_chat(m, messages, tools, &arena, &text, err);
    tp_arena_release(&arena);
    if (status == TP_OK) { /* the template writes the special tokens itself */
        tp_encode_options options = {.parse_special = true};
        tp_tokenizer_encode(m->tokenizer, m->scratch, tp_buf_str(&text), text.len, options, out,
                            NULL);
        if (ret_text)
            tp_buf_add(ret_text, tp_buf_str(&text), text.len);
    }
    tp_buf_release(&text);
    return status;
}

/* ---- the engine ---- */

static bool read_dtype(const char *word, tp_dtype *ret)
{
    if (!word || strcmp(word, "bf16") == 0 || strcmp(word, "bfloat16") == 0)
        *ret = TP_DTYPE_BF16;
    else if (strcmp(word, "f32") == 0 || strcmp(word, "float32") == 0)
        *ret = TP_DTYPE_F32;
    else
        return false;
    return true;
}

/* A number with K, M or G (powers of 1024; "iB" and "B" behind it are fine). */
static bool read_bytes(const char *word, size_t *ret)
{
    static const char units[] = "KMG";
    char *end;
    *ret = 0;
    if (!word)
        return true;
    double value = strtod(word, &end);
    if (end == word || !(value > 0))
        return false;
    const char *unit = *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
    if (unit) {
        for (const char *u = units; u <= unit; u++)
            value *= 1024;
        end++;
        end += strncmp(end, "iB", 2) == 0 ? 2 : 0;
    }
    end += *end == 'B';
    *ret = value < 1e15 ? (size_t)value : 0;
    return *end == 0 && *ret > 0;
}

bool tp_text_model_check(const char *command, const tp_text_model_options *o)
{
    tp_dtype dtype;
    size_t bytes;
    const struct {
        const char *flag, *word;
    } dtypes[] = {{"precision", o->dtype}, {"kv-dtype", o->kv_dtype}};
    for (int i = 0; i < 2; i++) {
        if (read_dtype(dtypes[i].word, &dtype))
            continue;
        fprintf(stderr, "temper %s: --%s is bfloat16 or float32, not '%s'\n", command,
                dtypes[i].flag, dtypes[i].word);
        return false;
    }
    if (read_bytes(o->kv_memory, &bytes))
        return true;
    fprintf(stderr, "temper %s: --kv-memory is a size such as 512MiB or 2G, not '%s'\n", command,
            o->kv_memory);
    return false;
}

static void say_note(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "temper: %s\n", text);
}

tp_status tp_text_model_start(tp_text_model *m, const tp_text_model_options *o, tp_error *err)
{
    tp_load_report report;
    const tp_device_options device = {.threads = o->threads > 0 ? (int)o->threads : tp_cpu_count()};
    TP_TRY(tp_device_open(&tp_backend_cpu, &device, &m->device, err));
    tp_engine_options options = {.device = m->device,
                                 .max_length = o->max_length,
                                 .max_running = o->max_running,
                                 .n_tokens = tp_tokenizer_vocab_size(m->tokenizer),
                                 .tokenizer = m->tokenizer};
    TP_ASSERT(read_dtype(o->dtype, &options.compute_dtype));
    TP_ASSERT(read_dtype(o->kv_dtype ? o->kv_dtype : o->dtype, &options.cache_dtype));
    TP_ASSERT(read_bytes(o->kv_memory, &options.cache_bytes));
    TP_TRY(tp_states_init(&m->states, err));
    TP_TRY(tp_engine_create(m->model, &options, &m->states, &m->engine, err));
    TP_TRY(tp_engine_alloc(m->engine, err));
    TP_TRY(tp_model_load(m->model, &m->states, &report, err));
    TP_TRY(tp_engine_weights_changed(m->engine, err));
    tp_model_say(m->model, &report, say_note, NULL);
    if (report.has_nonfinite)
        fprintf(stderr, "temper: '%s' holds numbers that are not finite in %s\n", m->folder,
                report.nonfinite_name);
    return TP_OK;
}
