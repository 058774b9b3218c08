/* cmd_generate.c - `temper generate`: continue prompts, as text, ids or JSON lines. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/terminal.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/prompts.h"

typedef struct {
    int64_t samples, max_new_tokens, top_k, threads, seed, max_length, batch;
    double temperature, top_p, min_p;
    bool chat, json, ignore_eos, ignore_config;
    const char *prompts, *prompt_key, *precision, *kv_dtype, *kv_memory, *isa;
    tp_flag_list stop;
} flags;

static const tp_flag flag_table[] = {
    TP_TEXT("prompts", 'f', "FILE", prompts,
            "prompts as JSON lines: strings, or objects with messages, prompt, question or text; "
            "- is standard input"),
    TP_TEXT("prompt-key", 0, "KEY", prompt_key, "the key of --prompts that holds the prompt"),
    TP_SWITCH("chat", 'c', chat, "a text is a user's message: apply the chat template"),
    TP_NUMBER("samples", 'n', "N", INT, samples, 1, 1e6, "answers to each prompt (default 1)"),
    TP_NUMBER("max-new-tokens", 'm', "N", INT, max_new_tokens, 1, 1e9,
              "length of an answer at most (default: the model's generation_config.json, or 128)"),
    TP_NUMBER("temperature", 't', "T", FLOAT, temperature, 0, 1000,
              "0 is greedy (default: the model's generation_config.json, or 0)"),
    TP_NUMBER("top-k", 0, "K", INT, top_k, 0, 1e9,
              "draw from the K likeliest; 0 = from all (default)"),
    TP_NUMBER("top-p", 0, "P", FLOAT, top_p, 0, 1,
              "draw from the likeliest that make up P; 0 = from all (default)"),
    TP_NUMBER("min-p", 0, "P", FLOAT, min_p, 0, 1,
              "draw from those at least P times as likely as the likeliest"),
    TP_NUMBER("seed", 's', "N", INT, seed, 0, 1e18, "same seed, same text (default 0)"),
    {.name = "stop",
     .argument = "TEXT",
     .type = TP_FLAG_LIST,
     .offset = offsetof(flags, stop),
     .doc = "end an answer where TEXT appears, which is left out; may be given again"},
    TP_SWITCH("ignore-generation-config", 0, ignore_config,
              "take no defaults or rules from the model's generation_config.json"),
    TP_SWITCH("ignore-eos", 0, ignore_eos, "do not end where the model says so"),
    TP_TEXT("precision", 0, "P", precision, "of products: bfloat16 (default) or float32"),
    TP_TEXT("dtype", 0, "P", precision, "the same as --precision"),
    TP_TEXT("kv-dtype", 0, "P", kv_dtype, "of keys and values (default: as --precision)"),
    TP_TEXT("kv-memory", 0, "SIZE", kv_memory,
            "for keys and values at most, as 512MiB or 2G; what does not fit waits (default 1G)"),
    TP_NUMBER("batch", 0, "N", INT, batch, 1, 65536, "answers at the same time (default 64)"),
    TP_NUMBER("threads", 0, "N", INT, threads, 1, 4096, "default: one per core"),
    TP_TEXT("isa", 0, "LEVEL", isa,
            "highest instruction set to use: portable, avx2, avx512, avx512_bf16, amx"),
    TP_NUMBER("max-length", 0, "N", INT, max_length, 2, 1e9,
              "prompt and answer together (default: what is needed)"),
    TP_SWITCH("json", 0, json,
              "one JSON object per answer and line: text, ids, log-probabilities, finish reason"),
    TP_SWITCH("jsonl", 0, json, "the same as --json"),
    {0}};

/* The answers go out in the order of the prompts, each as far as it is. */
typedef struct {
    const flags *f;
    const tp_text_settings *settings;
    tp_text_model *model;
    const tp_text_prompts *prompts;
    int64_t *requests;
    size_t prompt;             /* the one to go out next ... */
    int64_t sample;            /* ... and which of its samples */
    tp_streamed_answer answer; /* begun when it has a tokenizer */
    size_t n_written;          /* bytes of the answer */
    double start_s, last_status_s;
    int64_t n_capacity, n_nonfinite, n_done;
} output;

static int64_t total_of(const output *o) { return (int64_t)o->prompts->n * o->f->samples; }

/* ---- JSON ---- */

static void write_ids(tp_json_w *w, const char *key, const int32_t *ids, size_t n)
{
    tp_json_w_put_begin(w, key, '[');
    for (size_t i = 0; i < n; i++)
        tp_json_w_i64(w, ids[i]);
    tp_json_w_end(w, ']');
}

static void write_floats(tp_json_w *w, const char *key, const float *x, size_t n)
{
    tp_json_w_put_begin(w, key, '[');
    for (size_t i = 0; i < n; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.9g", (double)x[i]);
        tp_json_w_raw(w, text);
    }
    tp_json_w_end(w, ']');
}

static void print_json(const output *o, const tp_sample_result *r)
{
    const tp_text_prompt *prompt = &o->prompts->items[o->prompt];
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_i64(&w, "index", (int64_t)o->prompt);
    tp_json_w_put_i64(&w, "sample", o->sample);
    tp_json_w_key(&w, "prompt");
    tp_json_w_strn(&w, tp_buf_str(&prompt->text), prompt->text.len);
    tp_json_w_key(&w, "text");
    tp_json_w_strn(&w, tp_buf_str(&o->answer.text), o->answer.text.len);
    tp_json_w_put_str(&w, "finish_reason", tp_finish_name(r->finish));
    tp_json_w_put_str(&w, "stop_string",
                      r->stop_string >= 0 ? o->f->stop.items[r->stop_string] : NULL);
    write_ids(&w, "prompt_ids", prompt->ids.data, prompt->ids.len);
    write_ids(&w, "ids", r->ids, r->n);
    write_floats(&w, "logprobs", r->logp, r->n);
    write_floats(&w, "sampled_logprobs", r->sampled_logp, r->n);
    tp_json_w_end(&w, '}');
    tp_buf_addc(&out, '\n');
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
}

/* ---- text ---- */

static void print_head(const output *o)
{
    if (total_of(o) == 1)
        return;
    bool bold = tp_cli_colour(stdout);
    printf("%s%s==> ", o->n_done ? "\n" : "", bold ? tp_style(TP_STYLE_BOLD) : "");
    if (o->prompts->n > 1)
        printf("prompt %zu of %zu%s", o->prompt + 1, o->prompts->n, o->f->samples > 1 ? ", " : "");
    if (o->f->samples > 1)
        printf("sample %lld of %lld", (long long)o->sample + 1, (long long)o->f->samples);
    printf(" <==%s\n", bold ? tp_style(TP_STYLE_PLAIN) : "");
}

/* Into a file or a pipe go the bytes that the model said. */
static void print_text(output *o)
{
    fwrite(tp_buf_str(&o->answer.text) + o->n_written, 1, o->answer.ready - o->n_written, stdout);
    o->n_written = o->answer.ready;
}

static void note_finish(output *o, const tp_sample_result *r)
{
    o->n_capacity += r->finish == TP_FINISH_CAPACITY;
    o->n_nonfinite += r->finish == TP_FINISH_NONFINITE;
    o->n_done++;
}

/* Everything that can go out now.  False when nobody reads any more. */
static bool write_ready(output *o)
{
    while (o->prompt < o->prompts->n) {
        int64_t request = o->requests[o->prompt];
        tp_sample_result r = tp_engine_sample(o->model->engine, request, o->sample);
        if (!o->answer.tokenizer) {
            tp_answer_begin(&o->answer, o->model->tokenizer, o->f->stop.items, o->f->stop.n);
            if (!o->f->json)
                print_head(o);
        }
        bool ended = r.finish == TP_FINISH_STOP && r.stop_string < 0;
        tp_answer_update(&o->answer, &r, ended);
        if (!o->f->json)
            print_text(o);
        if (r.finish == TP_FINISH_NONE)
            break;
        if (o->f->json)
            print_json(o, &r);
        else
            putchar('\n');
        note_finish(o, &r);
        o->answer.tokenizer = NULL;
        o->n_written = 0;
        if (++o->sample == o->f->samples) {
            tp_engine_forget(o->model->engine, request);
            o->sample = 0;
            o->prompt++;
        }
    }
    return fflush(stdout) == 0;
}

/* ---- running ---- */

static void print_status(output *o)
{
    double now = tp_clock_s();
    if (total_of(o) == 1 || !tp_cli_terminal(stderr) || isatty(STDOUT_FILENO) ||
        now - o->last_status_s < 0.25)
        return;
    o->last_status_s = now;
    tp_engine_stats s = tp_engine_get_stats(o->model->engine);
    fprintf(stderr, "%s%lld of %lld answers, %lld running, %lld waiting, %.0f tokens/s%s",
            tp_style(TP_LINE_BEGIN), (long long)o->n_done, (long long)total_of(o),
            (long long)s.running, (long long)s.waiting,
            (double)s.decode_tokens / (now - o->start_s), tp_style(TP_LINE_ERASE));
}

static void print_summary(const output *o)
{
    char memory[32];
    tp_engine_stats s = tp_engine_get_stats(o->model->engine);
    if (!isatty(STDERR_FILENO))
        return;
    tp_cli_erase_line(stderr);
    fprintf(stderr,
            "%lld + %lld tokens in %.2f s (prompts %.2f s), %.1f new tokens/s, KV cache "
            "%s at most\n",
            (long long)(s.prefill_tokens + s.shared_tokens), (long long)s.decode_tokens, s.seconds,
            s.prefill_s, s.seconds > 0 ? (double)s.decode_tokens / s.seconds : 0,
            tp_human_bytes((double)s.peak_bytes, memory));
}

static tp_status submit_all(output *o, tp_error *err)
{
    const flags *f = o->f;
    for (size_t i = 0; i < o->prompts->n; i++) {
        const tp_text_prompt *prompt = &o->prompts->items[i];
        tp_request request = tp_text_model_request(o->model, o->settings, f->ignore_config,
                                                   prompt->ids.data, prompt->ids.len);
        request.n_samples = f->samples;
        request.seed = (uint64_t)f->seed;
        request.stream = (uint64_t)i * (uint64_t)f->samples;
        request.stop_ids = o->model->stops.data;
        request.n_stop_ids = f->ignore_eos ? 0 : o->model->stops.len;
        request.stop_strings = f->stop.items;
        request.n_stop_strings = (size_t)f->stop.n;
        tp_status status = tp_engine_submit(o->model->engine, &request, &o->requests[i], err);
        if (status != TP_OK)
            return tp_error_prefix(err, status, "%s: ", prompt->place);
    }
    return TP_OK;
}

static tp_status run(output *o, tp_error *err)
{
    TP_TRY(submit_all(o, err));
    o->start_s = tp_clock_s();
    for (bool is_busy = true, is_read = true; is_read && is_busy;) {
        TP_TRY(tp_engine_step(o->model->engine, &is_busy, err));
        is_read = write_ready(o);
        print_status(o);
    }
    print_summary(o);
    if (o->n_nonfinite > 0)
        return tp_fail(err, TP_ERR_NUMERIC,
                       "%lld of %lld answers ended because the logits of '%s' are no numbers: its "
                       "weights are broken",
                       (long long)o->n_nonfinite, (long long)total_of(o), o->model->folder);
    if (o->n_capacity > 0)
        fprintf(stderr,
                "temper: %lld of %lld answers were cut short, because the KV cache does not hold "
                "them even alone: raise --kv-memory\n",
                (long long)o->n_capacity, (long long)total_of(o));
    return TP_OK;
}

static tp_status gather(const flags *f, char **words, int n, tp_text_model *m, tp_text_prompts *out,
                        tp_error *err)
{
    tp_prompt_options options = {.chat = f->chat, .key = f->prompt_key};
    if (f->prompts)
        TP_TRY(tp_prompts_add_file(out, m, f->prompts, &options, err));
    for (int i = 0; i < n; i++) {
        char place[32];
        snprintf(place, sizeof place, "prompt %d", i + 1);
        TP_TRY(tp_prompts_add_text(out, m, place, words[i], strlen(words[i]), &options, err));
    }
    return out->n > 0 ? TP_OK : tp_prompts_add_input(out, m, &options, err);
}

/* Prompts and answers as long as they are asked for, within what the model has. */
static int64_t needed_length(const flags *f, const tp_text_settings *s, const tp_text_model *m,
                             const tp_text_prompts *p)
{
    int64_t longest = 0, most = tp_model_get_info(m->model)->max_positions;
    for (size_t i = 0; i < p->n; i++)
        longest = TP_MAX(longest, (int64_t)p->items[i].ids.len);
    int64_t length = f->max_length > 0       ? f->max_length
                     : s->max_new_tokens > 0 ? longest + s->max_new_tokens
                                             : TP_MAX(m->defaults.max_length, longest + 1);
    return TP_MAX(TP_MIN(length, most), 2);
}

static tp_status generate(const flags *f, char **words, int n, tp_text_model *m, tp_text_prompts *p,
                          tp_error *err)
{
    TP_TRY(tp_text_model_open(m, words[0], err));
    TP_TRY(gather(f, words + 1, n - 1, m, p, err));
    tp_text_settings settings = {.max_new_tokens = f->max_new_tokens,
                                 .temperature = f->temperature,
                                 .top_k = f->top_k,
                                 .top_p = f->top_p,
                                 .min_p = f->min_p};
    const tp_text_settings usual = {.max_new_tokens = 128};
    tp_text_model_settle(m, f->ignore_config, &usual, &settings);
    if (f->samples > 1 && settings.temperature == 0)
        fprintf(stderr, "temper: at temperature 0 all samples of a prompt are alike; "
                        "give --temperature\n");
    tp_text_model_options options = {.dtype = f->precision,
                                     .kv_dtype = f->kv_dtype,
                                     .kv_memory = f->kv_memory,
                                     .threads = f->threads,
                                     .max_length = needed_length(f, &settings, m, p),
                                     .max_running = TP_MIN(f->batch, (int64_t)p->n * f->samples)};
    TP_TRY(tp_text_model_start(m, &options, err));
    output o = {.f = f, .settings = &settings, .model = m, .prompts = p};
    o.requests = calloc(p->n, sizeof *o.requests);
    TP_ASSERT(o.requests);
    if (!f->json)
        tp_terminal_pass_data();
    tp_status status = run(&o, err);
    tp_answer_release(&o.answer);
    free(o.requests);
    return status;
}

int tp_cmd_generate(int argc, char **argv)
{
    flags f = {
        .samples = 1, .temperature = NAN, .top_k = -1, .top_p = NAN, .min_p = NAN, .batch = 64};
    char *words[argc + 1];
    tp_error err = {0};
    tp_text_model model = {0};
    tp_text_prompts prompts = {0};
    const tp_usage usage = {
        .command = "generate",
        .arguments = "MODEL [TEXT...]",
        .summary = "Continue texts; MODEL is a Hugging Face folder, a checkpoint or a run folder.  "
                   "Each TEXT is a prompt; without any, and without --prompts, standard input is "
                   "one.",
        .flags = flag_table,
        .details = "All prompts run together; answers come in the order of the prompts.  A TEXT "
                   "that begins with '-' goes behind '--'.",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    tp_text_model_options check = {
        .dtype = f.precision, .kv_dtype = f.kv_dtype, .kv_memory = f.kv_memory};
    if (!tp_text_model_check("generate", &check) || !tp_cli_force_isa(f.isa))
        return 2;
    tp_status status = generate(&f, words, n, &model, &prompts, &err);
    tp_text_model_close(&model);
    tp_prompts_release(&prompts);
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}
