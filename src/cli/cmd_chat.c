/* cmd_chat.c - `temper chat`: a conversation on the terminal. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/platform.h"
#include "base/terminal.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/text_model.h"

typedef struct {
    int64_t max_new_tokens, top_k, threads, seed, max_length;
    double temperature, top_p, min_p;
    bool ignore_config;
    const char *system, *precision, *kv_dtype, *kv_memory, *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_TEXT("system", 0, "TEXT", system, "the system's message, before the conversation"),
    TP_NUMBER("max-new-tokens", 'm', "N", INT, max_new_tokens, 1, 1e9,
              "length of an answer at most (default: the model's generation_config.json, or 1024)"),
    TP_NUMBER("temperature", 't', "T", FLOAT, temperature, 0, 1000,
              "0 is greedy (default: the model's generation_config.json, or 0.7)"),
    TP_NUMBER("top-k", 0, "K", INT, top_k, 0, 1e9,
              "draw from the K likeliest; 0 = from all (default)"),
    TP_NUMBER("top-p", 0, "P", FLOAT, top_p, 0, 1,
              "draw from the likeliest that make up P; 0 = from all (default 0.95)"),
    TP_NUMBER("min-p", 0, "P", FLOAT, min_p, 0, 1,
              "draw from those at least P times as likely as the likeliest"),
    TP_NUMBER("seed", 's', "N", INT, seed, 0, 1e18,
              "same seed, same answers to the same words (default 0)"),
    TP_SWITCH("ignore-generation-config", 0, ignore_config,
              "take no defaults or rules from the model's generation_config.json"),
    TP_TEXT("precision", 0, "P", precision, "of products: bfloat16 (default) or float32"),
    TP_TEXT("dtype", 0, "P", precision, "the same as --precision"),
    TP_TEXT("kv-dtype", 0, "P", kv_dtype, "of keys and values (default: as --precision)"),
    TP_TEXT("kv-memory", 0, "SIZE", kv_memory, "for keys and values at most, as 512MiB or 2G"),
    TP_NUMBER("threads", 0, "N", INT, threads, 1, 4096, "default: one per core"),
    TP_TEXT("isa", 0, "LEVEL", isa,
            "highest instruction set to use: portable, avx2, avx512, avx512_bf16, amx"),
    TP_NUMBER("max-length", 0, "N", INT, max_length, 2, 1e9,
              "the conversation at most, in tokens (default: what the model has, up to 4096)"),
    {0}};

enum { DEFAULT_LENGTH = 4096, LEAST_ROOM = 16 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_)
{
    (void)signal_;
    interrupted = 1;
}

/* Ctrl-C cuts reading short, so that one leaves at the prompt; never writing. */
static void handle_interrupts(bool while_reading)
{
    if (while_reading)
        sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    else
        tp_cli_catch(SIGINT, on_interrupt);
}

typedef struct {
    const flags *f;
    tp_text_settings settings;
    tp_text_model model;
    int64_t max_length;
    tp_buf *messages; /* each a JSON object */
    size_t n_messages, cap;
    uint64_t turn;
    bool is_terminal;
} chat;

/* ---- the conversation ---- */

static void remember(chat *c, const char *role, const char *text, size_t n)
{
    if (c->n_messages == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 16;
        c->messages = realloc(c->messages, c->cap * sizeof *c->messages);
        TP_ASSERT(c->messages);
    }
    tp_buf *m = &c->messages[c->n_messages++];
    *m = (tp_buf){0};
    tp_buf_addf(m, "{\"role\":\"%s\",\"content\":", role);
    tp_json_quote(m, text, n);
    tp_buf_addc(m, '}');
}

static void forget(chat *c, size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++)
        tp_buf_release(&c->messages[i]);
    c->n_messages -= n;
    if (n > 0)
        memmove(c->messages + from, c->messages + from + n,
                (c->n_messages - from) * sizeof *c->messages);
}

static size_t first_turn(const chat *c) { return c->f->system ? 1 : 0; }

static void reset(chat *c)
{
    forget(c, 0, c->n_messages);
    c->turn = 0;
    if (c->f->system)
        remember(c, "system", c->f->system, strlen(c->f->system));
}

static tp_status encode(chat *c, tp_ids *out, tp_error *err)
{
    tp_buf list = {0};
    tp_buf_addc(&list, '[');
    for (size_t i = 0; i < c->n_messages; i++)
        tp_buf_addf(&list, "%s%s", i ? "," : "", tp_buf_str(&c->messages[i]));
    tp_buf_addc(&list, ']');
    out->len = 0;
    tp_status status = tp_text_model_encode_chat(&c->model, list.data, NULL, out, NULL, err);
    tp_buf_release(&list);
    return status;
}

/* The oldest turns go when there is no room for an answer. */
static tp_status encode_what_fits(chat *c, tp_ids *out, tp_error *err)
{
    int n_dropped = 0;
    TP_TRY(encode(c, out, err));
    while ((int64_t)out->len + LEAST_ROOM > c->max_length && c->n_messages > first_turn(c) + 2) {
        forget(c, first_turn(c), 2);
        n_dropped++;
        TP_TRY(encode(c, out, err));
    }
    if (n_dropped > 0)
        fprintf(stderr, "(the window of %lld tokens is full: %d earlier turn%s left out)\n",
                (long long)c->max_length, n_dropped, n_dropped > 1 ? "s" : "");
    return TP_OK;
}

/* ---- one answer ---- */

static void print_piece(const tp_streamed_answer *a, size_t *written)
{
    fwrite(tp_buf_str(&a->text) + *written, 1, a->ready - *written, stdout);
    *written = a->ready;
    fflush(stdout);
}

static tp_status answer(chat *c, tp_error *err)
{
    tp_ids ids = {0};
    int64_t id;
    tp_sample_result r;
    tp_streamed_answer a = {0};
    size_t written = 0;
    tp_engine *engine = c->model.engine;
    tp_status status = encode_what_fits(c, &ids, err);
    tp_request request =
        tp_text_model_request(&c->model, &c->settings, c->f->ignore_config, ids.data, ids.len);
    request.seed = (uint64_t)c->f->seed;
    request.stream = c->turn++;
    request.stop_ids = c->model.stops.data;
    request.n_stop_ids = c->model.stops.len;
    if (status == TP_OK)
        status = tp_engine_submit(engine, &request, &id, err);
    tp_ids_release(&ids);
    if (status != TP_OK)
        return status;
    tp_answer_begin(&a, c->model.tokenizer, NULL, 0);
    do {
        bool is_busy;
        status = tp_engine_step(engine, &is_busy, err);
        if (status != TP_OK || interrupted)
            tp_engine_cancel(engine, id);
        r = tp_engine_sample(engine, id, 0);
        tp_answer_update(&a, &r, r.finish == TP_FINISH_STOP);
        print_piece(&a, &written);
    } while (r.finish == TP_FINISH_NONE);
    printf("%s\n", interrupted ? " (stopped)" : "");
    fflush(stdout);
    if (c->is_terminal) /* who sits there may go on */
        interrupted = 0;
    tp_finish finish = r.finish;
    tp_engine_forget(engine, id);
    if (finish == TP_FINISH_LENGTH || finish == TP_FINISH_CAPACITY)
        fprintf(stderr, "(cut at %s)\n",
                finish == TP_FINISH_LENGTH ? "the length allowed" : "the size of the KV cache");
    remember(c, "assistant", tp_buf_str(&a.text), a.text.len);
    tp_answer_release(&a);
    if (status != TP_OK)
        return status;
    if (finish == TP_FINISH_NONFINITE)
        return tp_fail(err, TP_ERR_NUMERIC,
                       "the logits of '%s' are no numbers: its weights are "
                       "broken",
                       c->model.folder);
    return TP_OK;
}

/* ---- the talk ---- */

typedef enum { LINE_TEXT, LINE_DONE, LINE_QUIT } line_kind;

static void print_commands(void)
{
    fprintf(stderr,
            "/reset  begin anew\n/quit   leave (also Ctrl-D)\nCtrl-C stops an answer, or leaves; a "
            "line that ends in \\ goes on in the next\n");
}

static line_kind take_command(chat *c, const char *line)
{
    if (line[0] == 0)
        return LINE_DONE;
    if (line[0] != '/')
        return LINE_TEXT;
    if (strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0)
        return LINE_QUIT;
    if (strcmp(line, "/reset") == 0) {
        reset(c);
        fprintf(stderr, "(a new conversation)\n");
    } else if (strcmp(line, "/help") == 0)
        print_commands();
    else
        fprintf(stderr, "there is no command '%s'; see /help\n", line);
    return LINE_DONE;
}

/* A line, with those that it continues into.  False at the end of the input. */
static bool read_line(const chat *c, tp_buf *out)
{
    char *line = NULL;
    size_t cap = 0;
    bool goes_on = true, any = false;
    tp_buf_clear(out);
    while (goes_on) {
        if (c->is_terminal) {
            fputs(any ? ". " : "> ", stdout);
            fflush(stdout);
        }
        handle_interrupts(true);
        ssize_t n = interrupted ? -1 : getline(&line, &cap, stdin);
        handle_interrupts(false);
        if (n < 0)
            break;
        any = true;
        if (n > 0 && line[n - 1] == '\n')
            line[--n] = 0;
        goes_on = n > 0 && line[n - 1] == '\\';
        tp_buf_add(out, line, (size_t)n - goes_on);
        if (goes_on)
            tp_buf_addc(out, '\n');
    }
    free(line);
    return any;
}

static tp_status talk(chat *c, tp_error *err)
{
    tp_buf line = {0};
    tp_status status = TP_OK;
    reset(c);
    while (status == TP_OK && !interrupted && read_line(c, &line)) {
        line_kind kind = take_command(c, tp_buf_str(&line));
        if (kind == LINE_QUIT)
            break;
        if (kind != LINE_TEXT)
            continue;
        remember(c, "user", line.data, line.len);
        status = answer(c, err);
        if (status == TP_ERR_CONFIG && c->is_terminal) { /* too long: the talk goes on */
            fprintf(stderr, "temper: %s; /reset begins anew\n", err->message);
            forget(c, c->n_messages - 1, 1);
            status = TP_OK;
        }
    }
    if (c->is_terminal)
        putchar('\n');
    tp_buf_release(&line);
    return status;
}

static tp_status open_chat(chat *c, const char *path, tp_error *err)
{
    const tp_text_settings usual = {.max_new_tokens = 1024, .temperature = 0.7, .top_p = 0.95};
    TP_TRY(tp_text_model_open(&c->model, path, err));
    c->settings = (tp_text_settings){.max_new_tokens = c->f->max_new_tokens,
                                     .temperature = c->f->temperature,
                                     .top_k = c->f->top_k,
                                     .top_p = c->f->top_p,
                                     .min_p = c->f->min_p};
    tp_text_model_settle(&c->model, c->f->ignore_config, &usual, &c->settings);
    if (!tp_tokenizer_chat_template(c->model.tokenizer))
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' has no chat template; 'temper generate' continues plain text",
                       c->model.folder);
    int64_t most = tp_model_get_info(c->model.model)->max_positions;
    c->max_length = TP_MIN(c->f->max_length > 0 ? c->f->max_length : DEFAULT_LENGTH, most);
    tp_text_model_options options = {.dtype = c->f->precision,
                                     .kv_dtype = c->f->kv_dtype,
                                     .kv_memory = c->f->kv_memory,
                                     .threads = c->f->threads,
                                     .max_length = c->max_length,
                                     .max_running = 1};
    return tp_text_model_start(&c->model, &options, err);
}

int tp_cmd_chat(int argc, char **argv)
{
    flags f = {.temperature = NAN, .top_k = -1, .top_p = NAN, .min_p = NAN};
    char *words[argc + 1];
    tp_error err = {0};
    const tp_usage usage = {.command = "chat",
                            .arguments = "MODEL",
                            .summary = "Talk with a model in the terminal; MODEL is a Hugging Face "
                                       "folder with a chat template, a checkpoint or a run folder.",
                            .flags = flag_table,
                            .details =
                                "/reset begins anew, /quit leaves, Ctrl-C stops an answer, or "
                                "leaves when there is none.  Without a terminal every line "
                                "of standard input is a message and only the answers are "
                                "written.",
                            .min_words = 1,
                            .max_words = 1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    tp_text_model_options check = {
        .dtype = f.precision, .kv_dtype = f.kv_dtype, .kv_memory = f.kv_memory};
    if (!tp_text_model_check("chat", &check) || !tp_cli_force_isa(f.isa))
        return 2;
    chat c = {.f = &f, .is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    tp_status status = open_chat(&c, words[0], &err);
    if (status == TP_OK) {
        handle_interrupts(false);
        tp_terminal_pass_data();
        if (c.is_terminal)
            fprintf(stderr, "talking with %s; /help says what else there is\n", c.model.folder);
        status = talk(&c, &err);
    }
    forget(&c, 0, c.n_messages);
    free(c.messages);
    tp_text_model_close(&c.model);
    if (status != TP_OK)
        return tp_cli_fail(&err);
    return interrupted ? tp_status_exit(TP_ERR_INTERRUPTED) : 0;
}
