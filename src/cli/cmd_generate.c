/* cmd_generate.c - `temper generate`: continue prompts, as text, ids or JSON lines. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/text_flags.h"

enum { MOST_NAME = 64 };

typedef struct {
    tp_text_flags text;
    int64_t samples, max_new_tokens, top_k, seed;
    double temperature, top_p, min_p;
    bool chat, json, ignore_eos, ignore_config;
    const char *prompts, *prompt_key, *use;
    tp_flag_list stop, adapters;
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
    TP_LIST("stop", 0, "TEXT", stop,
            "end an answer where TEXT appears, which is left out; may be given again"),
    TP_LIST("adapter", 0, "NAME=FOLDER", adapters,
            "an adapter on MODEL, for the rows of --prompts with \"adapter\": \"NAME\"; may be "
            "given again, all answers run together"),
    TP_TEXT("use", 0, "NAME", use,
            "the adapter of prompts that name none (default: MODEL as it is)"),
    TP_SWITCH("ignore-generation-config", 0, ignore_config,
              "take no defaults or rules from the model's generation_config.json"),
    TP_SWITCH("ignore-eos", 0, ignore_eos, "do not end where the model says so"),
    TP_TEXT_PRECISION_FLAGS,
    TP_TEXT("kv-memory", 0, "SIZE", text.kv_memory,
            "for keys and values at most, as 512MiB or 2G; what does not fit waits (default 1G)"),
    TP_TEXT_LOOKUP_FLAG,
    TP_NUMBER("batch", 0, "N", INT, text.max_running, 1, 65536,
              "answers at the same time (default 64)"),
    TP_TEXT_PROCESSOR_FLAGS,
    TP_NUMBER("max-length", 0, "N", INT, text.most_length, 2, 1e9,
              "prompt and answer together (default: what is needed)"),
    TP_SWITCH("json", 0, json,
              "one JSON object per answer and line: text, ids, log-probabilities, finish reason"),
    TP_SWITCH("jsonl", 0, json, "the same as --json"),
    {0}};

/* The answers go out in the order of the prompts, each as far as it is. */
typedef struct {
    const flags *f;
    size_t n_prompts;
    bool has_head; /* of the answer that is going out */
    double last_status_s;
    int64_t n_capacity;
} output;

static void print_head(const output *o, const tp_text_answer *a)
{
    if (a->work->n == 1)
        return;
    bool bold = tp_cli_colour(stdout);
    printf("%s%s==> ", a->prompt + a->sample > 0 ? "\n" : "", bold ? tp_style(TP_STYLE_BOLD) : "");
    if (o->n_prompts > 1)
        printf("prompt %lld of %zu%s", (long long)a->prompt + 1, o->n_prompts,
               o->f->samples > 1 ? ", " : "");
    if (o->f->samples > 1)
        printf("sample %lld of %lld", (long long)a->sample + 1, (long long)o->f->samples);
    printf(" <==%s\n", bold ? tp_style(TP_STYLE_PLAIN) : "");
}

/* Into a file or a pipe go the bytes that the model said. */
static void print_text(output *o, const tp_text_answer *a)
{
    if (!o->has_head)
        print_head(o, a);
    fwrite(a->text + a->n_text - a->n_new, 1, a->n_new, stdout);
    if (a->finish)
        putchar('\n');
    o->has_head = !a->finish;
}

static void print_json(const tp_text_answer *a)
{
    char *line;
    size_t n;
    tp_text_answer_json(a, &line, &n);
    fwrite(line, 1, n, stdout);
    tp_free(line);
}

static void print_status(output *o, const tp_text_work *w)
{
    char text[200];
    if (w->n == 1 || w->done == w->n || isatty(STDOUT_FILENO) ||
        w->elapsed_s - o->last_status_s < 0.25)
        return;
    o->last_status_s = w->elapsed_s;
    snprintf(text, sizeof text, "%lld of %lld answers, %lld running, %lld waiting, %.0f tokens/s",
             (long long)w->done, (long long)w->n, (long long)w->running, (long long)w->waiting,
             (double)w->new_tokens / w->elapsed_s);
    tp_waiting_say(text);
}

static bool take(void *user, const tp_text_answer *a)
{
    output *o = user;
    if (!o->f->json)
        print_text(o, a);
    else if (a->finish)
        print_json(a);
    o->n_capacity += a->finish && strcmp(a->finish, "capacity") == 0;
    print_status(o, a->work);
    return tp_cli_flush(); /* false: nobody reads any more */
}

static void print_summary(const tp_text_work *w)
{
    char memory[32], lookup[96] = "";
    tp_waiting_end();
    if (!isatty(STDERR_FILENO) || w->n == 0)
        return;
    if (w->drafted_tokens > 0)
        snprintf(lookup, sizeof lookup, "; prompt lookup: %lld of %lld right, %.2f tokens a step",
                 (long long)w->accepted_tokens, (long long)w->drafted_tokens,
                 (double)w->new_tokens / (double)w->steps);
    /* One piece, so that it can be wrapped. */
    fprintf(stderr,
            "%lld + %lld tokens in %.2f s (prompts %.2f s), %.1f new tokens/s, KV cache "
            "%s at most%s\n",
            (long long)w->prompt_tokens, (long long)w->new_tokens, w->seconds, w->prefill_s,
            w->seconds > 0 ? (double)w->new_tokens / w->seconds : 0,
            tp_human_bytes((double)w->kv_peak_bytes, memory), lookup);
}

/* NAME=FOLDER, each. */
static bool read_adapters(const flags *f, char names[][MOST_NAME], tp_text_adapter *ret)
{
    for (int i = 0; i < f->adapters.n; i++) {
        const char *word = f->adapters.items[i], *equals = strchr(word, '=');
        size_t n = equals ? (size_t)(equals - word) : 0;
        if (n == 0 || n >= MOST_NAME || !equals[1]) {
            fprintf(stderr, "temper generate: --adapter is NAME=FOLDER, not '%s'\n", word);
            return false;
        }
        snprintf(names[i], MOST_NAME, "%.*s", (int)n, word);
        ret[i] = (tp_text_adapter){names[i], equals + 1};
    }
    return true;
}

static tp_status gather(const flags *f, char **words, int n, tp_text_prompts *p, tp_error *err)
{
    tp_status status = TP_OK;
    if (f->prompts)
        status = tp_text_prompts_add_file(p, f->prompts, f->prompt_key, f->chat, err);
    for (int i = 0; i < n && status == TP_OK; i++) {
        char place[32];
        snprintf(place, sizeof place, "prompt %d", i + 1);
        status = tp_text_prompts_add(p, place, words[i], strlen(words[i]), f->chat, err);
    }
    if (status == TP_OK && tp_text_prompts_count(p) == 0)
        status = tp_text_prompts_add_input(p, f->chat, err);
    return status;
}

static tp_status run(const flags *f, tp_text_generator *gen, const tp_text_prompts *prompts,
                     tp_error *err)
{
    tp_text_work work = {0};
    output o = {.f = f, .n_prompts = tp_text_prompts_count(prompts)};
    tp_text_request request = {.size = sizeof request,
                               .max_new_tokens = f->max_new_tokens,
                               .seed = (uint64_t)f->seed,
                               .ignore_eos = f->ignore_eos,
                               .stop_strings = f->stop.items,
                               .n_stop_strings = (size_t)f->stop.n,
                               .samples = f->samples,
                               .adapter = f->use,
                               .ignore_generation_config = f->ignore_config};
    tp_cli_text_sampling(f->temperature, f->top_k, f->top_p, f->min_p, &request);
    if (!f->json)
        tp_terminal_pass_data();
    if (!isatty(STDOUT_FILENO)) /* else answers are seen as they come */
        tp_waiting_begin("temper generate: answering");
    tp_status status = tp_text_generator_run(gen, prompts, &request, take, &o, &work, err);
    print_summary(&work);
    if (status == TP_OK && o.n_capacity > 0)
        fprintf(stderr,
                "temper: %lld of %lld answers were cut short, because the KV cache does not hold "
                "them even alone: raise --kv-memory\n",
                (long long)o.n_capacity, (long long)work.n);
    return status;
}

static tp_status generate(const flags *f, char **words, int n,
                          const tp_text_generator_options *options, tp_error *err)
{
    tp_text_generator *gen = NULL;
    tp_text_prompts *prompts = NULL;
    tp_waiting_begin("temper generate: reading the model");
    tp_status status = tp_text_generator_open(words[0], options, &gen, err);
    tp_waiting_end();
    if (status == TP_OK)
        status = tp_text_prompts_new(gen, &prompts, err);
    if (status == TP_OK)
        status = gather(f, words + 1, n - 1, prompts, err);
    if (status == TP_OK)
        status = run(f, gen, prompts, err);
    tp_text_prompts_free(prompts);
    tp_text_generator_free(gen);
    return status;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    tp_error err = {0};
    tp_text_generator_options options;
    tp_text_adapter adapters[f->adapters.n + 1];
    char names[f->adapters.n + 1][MOST_NAME];
    if (!tp_cli_text_options("generate", &f->text, &options))
        return 2;
    if (!read_adapters(f, names, adapters))
        return 2;
    options.adapters = adapters;
    options.n_adapters = (size_t)f->adapters.n;
    return generate(f, words, n, &options, &err) == TP_OK ? 0 : tp_cli_fail(&err);
}

const tp_usage tp_usage_generate = {
    .command = "generate",
    .arguments = "MODEL [TEXT...]",
    .summary = "Continue texts; MODEL is a Hugging Face folder, a checkpoint or a run folder.  "
               "Each TEXT is a prompt; without any, and without --prompts, standard input is "
               "one.",
    .flags = flag_table,
    .details = "All prompts run together; answers come in the order of the prompts.  A TEXT "
               "that begins with '-' goes behind '--'.",
    .min_words = 1,
    .max_words = -1,
    .size = sizeof(flags),
    .defaults = &(const flags){.samples = 1,
                               .temperature = NAN,
                               .top_k = -1,
                               .top_p = NAN,
                               .min_p = NAN,
                               .text = {.max_running = 64}},
    .run = execute};
