#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "cli/cli.h"
#include "engine/data/chat.h"
#include "engine/data/tokenizer.h"
#include "engine/generate/engine.h"
#include "engine/train/checkpoint.h"

typedef struct {
    int64_t max_new_tokens, top_k, threads, seed, max_length;
    double temperature, top_p;
    bool chat, json;
    const char *precision, *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_NUMBER("max-new-tokens", 'n', "N", INT, max_new_tokens, 1, 1e9,
              "length of the answer at most (default 128)"),
    TP_NUMBER("temperature", 't', "T", FLOAT, temperature, 0, 1000, "0 is greedy (default)"),
    TP_NUMBER("top-k", 0, "K", INT, top_k, 0, 1e9,
              "draw from the K likeliest; 0 = from all (default)"),
    TP_NUMBER("top-p", 0, "P", FLOAT, top_p, 0, 1,
              "draw from the likeliest that make up P; 0 = from all (default)"),
    TP_NUMBER("seed", 's', "N", INT, seed, 0, 1e18, "same seed, same text (default 0)"),
    TP_SWITCH("chat", 'c', chat, "the text is a user's message: apply the chat template"),
    TP_TEXT("precision", 0, "P", precision, "bfloat16 (default) or float32"),
    TP_NUMBER("threads", 0, "N", INT, threads, 1, 4096, "default: one per core"),
    TP_TEXT("isa", 0, "LEVEL", isa,
            "highest instruction set to use: portable, avx2, avx512, avx512_bf16, amx"),
    TP_NUMBER("max-length", 0, "N", INT, max_length, 2, 1e9,
              "prompt and answer together (default: what is needed)"),
    TP_SWITCH("json", 0, json, "one JSON object with ids, log-probabilities and times"),
    {0}};

typedef struct {
    tp_model *model;
    tp_tokenizer *tokenizer;
    tp_states states;
    tp_engine *engine;
    tp_ids prompt;
    char folder[4096];
} job;

/* A model folder, a checkpoint, or a run folder (then its newest checkpoint). */
static tp_status find_model(const char *path, char out[4096], tp_error *err)
{
    char file[4200];
    tp_buf newest = {0};
    snprintf(out, 4096, "%s", path);
    snprintf(file, sizeof file, "%s/config.json", path);
    if (tp_file_exists(file))
        return TP_OK;
    snprintf(file, sizeof file, "%s/model/config.json", path);
    if (tp_file_exists(file)) {
        snprintf(out, 4096, "%s/model", path);
        return TP_OK;
    }
    snprintf(file, sizeof file, "%s/checkpoints", path);
    tp_status status = tp_checkpoint_find(file, &newest, err);
    if (status == TP_OK && newest.len)
        snprintf(out, 4096, "%s/model", newest.data);
    else if (status == TP_OK)
        status = tp_fail(err, TP_ERR_CONFIG,
                         "'%s' is neither a model folder (config.json), nor a "
                         "checkpoint, nor a run with checkpoints",
                         path);
    tp_buf_release(&newest);
    return status;
}

static tp_status render_chat(const job *j, const char *text, tp_buf *out, tp_error *err)
{
    const char *source = tp_tokenizer_chat_template(j->tokenizer);
    if (!source)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' has no chat template: leave out --chat",
                       j->folder);
    tp_buf context = {0};
    tp_arena arena;
    tp_template *t = NULL;
    const tp_json *root;
    tp_json_w w;
    tp_json_w_init(&w, &context, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_key(&w, "messages");
    tp_json_w_raw(&w, "[{\"role\":\"user\",\"content\":");
    tp_json_quote(&context, text, strlen(text));
    tp_buf_adds(&context, "}],\"add_generation_prompt\":true");
    const struct {
        const char *key;
        int32_t id;
    } tokens[] = {{"bos_token", tp_tokenizer_bos(j->tokenizer)},
                  {"eos_token", tp_tokenizer_eos(j->tokenizer)}};
    for (int i = 0; i < 2; i++) {
        const char *token = tokens[i].id >= 0 ? tp_tokenizer_token(j->tokenizer, tokens[i].id) : "";
        tp_buf_addf(&context, ",\"%s\":", tokens[i].key);
        tp_json_quote(&context, token ? token : "", token ? strlen(token) : 0);
    }
    tp_buf_addc(&context, '}');
    TP_TRY(tp_arena_init(&arena, 64 << 20, err));
    tp_status status =
        tp_json_parse(&arena, "context", context.data, context.len, NULL, &root, err);
    if (status == TP_OK)
        status = tp_template_parse("chat template", source, strlen(source), &t, err);
    if (status == TP_OK)
        status = tp_template_render(t, root, NULL, out, NULL, err);
    tp_template_free(t);
    tp_buf_release(&context);
    tp_arena_release(&arena);
    return status;
}

static tp_status encode(job *j, const flags *f, const char *text, tp_error *err)
{
    tp_buf rendered = {0};
    tp_encode_options options = {.add_special = !f->chat, .parse_special = true};
    tp_status status = TP_OK;
    if (f->chat)
        status = render_chat(j, text, &rendered, err);
    else
        tp_buf_adds(&rendered, text);
    if (status == TP_OK) {
        tp_tokenizer_scratch *scratch = tp_tokenizer_scratch_new(j->tokenizer);
        tp_tokenizer_encode(j->tokenizer, scratch, tp_buf_str(&rendered), rendered.len, options,
                            &j->prompt, NULL);
        tp_tokenizer_scratch_free(scratch);
    }
    tp_buf_release(&rendered);
    return status;
}

static tp_status check_vocabulary(const job *j, tp_error *err)
{
    int64_t vocab = tp_model_get_info(j->model)->vocab;
    int32_t ids = tp_tokenizer_vocab_size(j->tokenizer);
    if (ids <= vocab)
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "'%s': the tokenizer has %d ids, the model's vocabulary is %lld: they do not "
                   "belong together",
                   j->folder, ids, (long long)vocab);
}

static tp_status open_job(job *j, const flags *f, const char *path, const char *text, tp_error *err)
{
    tp_load_report report;
    TP_TRY(find_model(path, j->folder, err));
    TP_TRY(tp_model_open(j->folder, &j->model, err));
    TP_TRY(tp_tokenizer_load(j->folder, &j->tokenizer, err));
    TP_TRY(check_vocabulary(j, err));
    TP_TRY(encode(j, f, text, err));
    if (j->prompt.len == 0)
        return tp_fail(err, TP_ERR_CONFIG, "the prompt is empty: give some text");
    int64_t longest = tp_model_get_info(j->model)->max_positions;
    int64_t length = (int64_t)j->prompt.len + f->max_new_tokens;
    if (f->max_length > 0)
        length = f->max_length;
    if (length > longest)
        length = longest;
    if ((int64_t)j->prompt.len >= length)
        return tp_fail(err, TP_ERR_CONFIG, "the prompt has %zu tokens, at most %lld fit",
                       j->prompt.len, (long long)length - 1);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    tp_dtype dtype = strcmp(f->precision, "float32") == 0 ? TP_DTYPE_F32 : TP_DTYPE_BF16;
    tp_engine_options options = {.backend = &tp_backend_cpu,
                                 .threads = f->threads > 0 ? (int)f->threads
                                            : cores > 0    ? (int)cores
                                                           : 1,
                                 .compute_dtype = dtype,
                                 .cache_dtype = dtype,
                                 .max_running = 1,
                                 .n_tokens = tp_tokenizer_vocab_size(j->tokenizer),
                                 .max_length = length};
    TP_TRY(tp_states_init(&j->states, err));
    TP_TRY(tp_engine_create(j->model, &options, &j->states, &j->engine, err));
    TP_TRY(tp_engine_alloc(j->engine, err));
    TP_TRY(tp_model_load(j->model, &j->states, &report, err));
    tp_engine_weights_changed(j->engine);
    return TP_OK;
}

static void close_job(job *j)
{
    tp_engine_free(j->engine);
    tp_states_release(&j->states);
    tp_tokenizer_free(j->tokenizer);
    tp_model_free(j->model);
    tp_ids_release(&j->prompt);
}

typedef struct {
    const tp_tokenizer *tokenizer;
    tp_decode_stream stream;
    tp_buf text;
    tp_ids ids;
    tp_buf logps;
    bool live;
} output;

static bool on_token(void *user, const tp_engine_token *token)
{
    output *o = user;
    size_t before = o->text.len;
    if (token->is_stop)
        return true;
    tp_ids_add(&o->ids, token->id);
    tp_buf_addf(&o->logps, "%s%.6g", o->logps.len ? "," : "", (double)token->logp);
    tp_tokenizer_decode_next(o->tokenizer, &o->stream, token->id, true, &o->text);
    if (o->live) {
        fwrite(o->text.data + before, 1, o->text.len - before, stdout);
        return fflush(stdout) == 0; /* nobody reads any more: stop */
    }
    return true;
}

static void print_json(const job *j, const output *o, const tp_engine_stats *r, bool hit_stop)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_key(&w, "text");
    tp_json_w_strn(&w, tp_buf_str(&o->text), o->text.len);
    tp_json_w_key(&w, "prompt_ids");
    tp_json_w_begin(&w, '[');
    for (size_t i = 0; i < j->prompt.len; i++)
        tp_json_w_i64(&w, j->prompt.data[i]);
    tp_json_w_end(&w, ']');
    tp_json_w_key(&w, "ids");
    tp_json_w_begin(&w, '[');
    for (size_t i = 0; i < o->ids.len; i++)
        tp_json_w_i64(&w, o->ids.data[i]);
    tp_json_w_end(&w, ']');
    tp_json_w_key(&w, "logprobs");
    tp_json_w_begin(&w, '[');
    tp_json_w_raw(&w, tp_buf_str(&o->logps));
    tp_json_w_end(&w, ']');
    tp_json_w_key(&w, "stop");
    tp_json_w_str(&w, hit_stop ? "stop_token" : "length");
    tp_json_w_key(&w, "prefill_s");
    tp_json_w_f64(&w, r->prefill_s);
    tp_json_w_key(&w, "decode_s");
    tp_json_w_f64(&w, r->decode_s);
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    tp_buf_release(&out);
}

static tp_status run(job *j, const flags *f, tp_error *err)
{
    int32_t stop[9];
    size_t n_stop = 0;
    const tp_model_info *info = tp_model_get_info(j->model);
    for (int i = 0; i < info->n_eos; i++)
        stop[n_stop++] = (int32_t)info->eos[i];
    if (tp_tokenizer_eos(j->tokenizer) >= 0)
        stop[n_stop++] = tp_tokenizer_eos(j->tokenizer);
    output o = {.tokenizer = j->tokenizer, .live = !f->json};
    tp_request request = {
        .prompt = j->prompt.data,
        .n_prompt = j->prompt.len,
        .max_new_tokens = f->max_new_tokens,
        .sampling = {.temperature = f->temperature, .top_k = f->top_k, .top_p = f->top_p},
        .seed = (uint64_t)f->seed,
        .stop_ids = stop,
        .n_stop_ids = n_stop,
        .on_token = on_token,
        .user = &o};
    int64_t id;
    tp_status status = tp_engine_submit(j->engine, &request, &id, err);
    if (status == TP_OK) {
        tp_engine_run(j->engine);
        tp_engine_stats r = tp_engine_get_stats(j->engine);
        size_t before = o.text.len;
        tp_tokenizer_decode_next(j->tokenizer, &o.stream, -1, true, &o.text);
        if (o.live) {
            fwrite(o.text.data + before, 1, o.text.len - before, stdout);
            putchar('\n');
        } else
            print_json(j, &o, &r, tp_engine_sample(j->engine, id, 0).finish == TP_FINISH_STOP);
    }
    tp_buf_release(&o.text);
    tp_buf_release(&o.logps);
    tp_ids_release(&o.ids);
    return status;
}

/* The words after the model, joined; or standard input when there are none. */
static tp_status gather_text(char **words, int n, tp_buf *out, tp_error *err)
{
    for (int i = 0; i < n; i++)
        tp_buf_addf(out, "%s%s", i ? " " : "", words[i]);
    char block[4096];
    size_t got;
    while (n == 0 && (got = fread(block, 1, sizeof block, stdin)) > 0) {
        if (out->len > (16u << 20))
            return tp_fail(err, TP_ERR_CONFIG, "standard input is longer than 16 MiB");
        tp_buf_add(out, block, got);
    }
    return TP_OK;
}

int tp_cmd_generate(int argc, char **argv)
{
    flags f = {.max_new_tokens = 128, .precision = "bfloat16"};
    char *words[argc + 1];
    tp_error err = {0};
    tp_buf text = {0};
    job j = {0};
    const tp_usage usage = {.command = "generate",
                            .arguments = "MODEL [TEXT...]",
                            .summary = "Continue a text; MODEL is a Hugging Face folder, a "
                                       "checkpoint or a run folder.  Without TEXT it is read from "
                                       "standard input.",
                            .flags = flag_table,
                            .details = "A TEXT that begins with '-' goes behind '--'.",
                            .min_words = 1,
                            .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (strcmp(f.precision, "bfloat16") != 0 && strcmp(f.precision, "float32") != 0) {
        fprintf(stderr, "temper generate: --precision is bfloat16 or float32, not '%s'\n",
                f.precision);
        return 2;
    }
    if (!tp_cli_force_isa(f.isa))
        return 2;
    tp_status status = gather_text(words + 1, n - 1, &text, &err);
    if (status == TP_OK)
        status = open_job(&j, &f, words[0], tp_buf_str(&text), &err);
    if (status == TP_OK)
        status = run(&j, &f, &err);
    close_job(&j);
    tp_buf_release(&text);
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}
