/* cmd_chat.c - `temper chat`: a conversation on the terminal. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/text_flags.h"
#include "temper/chat.h"

typedef struct {
    tp_text_flags text;
    int64_t max_new_tokens, top_k, seed;
    double temperature, top_p, min_p;
    bool ignore_config;
    const char *system;
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
    TP_TEXT_PRECISION_FLAGS,
    TP_TEXT("kv-memory", 0, "SIZE", text.kv_memory, "for keys and values at most, as 512MiB or 2G"),
    TP_TEXT_LOOKUP_FLAG,
    TP_TEXT_PROCESSOR_FLAGS,
    TP_NUMBER("max-length", 0, "N", INT, text.most_length, 2, 1e9,
              "the conversation at most, in tokens (default: what the model has, up to 4096)"),
    {0}};

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
    tp_chat *talk;
    bool is_terminal, has_begun; /* talking: notices belong to it */
    bool has_said;               /* some of an answer */
    bool has_refused;            /* a message that was too long */
} chat;

static void notice(void *user, const char *text)
{
    const chat *c = user;
    fprintf(stderr, c->has_begun ? "(%s)\n" : "temper: %s\n", text);
}

/* ---- one answer ---- */

static bool print_piece(void *user, const tp_text_piece *piece)
{
    *(bool *)user = true;
    fwrite(piece->text, 1, piece->n_text, stdout);
    (void)tp_cli_flush();
    return true;
}

static bool is_interrupted(void *user)
{
    (void)user;
    return interrupted;
}

static tp_status answer(chat *c, const char *line, size_t n, tp_error *err)
{
    tp_text_result result = {.size = sizeof result};
    c->has_said = false;
    tp_status status = tp_chat_say(c->talk, line, n, &result, err);
    if ((status == TP_ERR_CONFIG || status == TP_ERR_FORMAT) && !c->has_said)
        return status;
    printf("%s\n", interrupted ? " (stopped)" : "");
    (void)tp_cli_flush();
    if (c->is_terminal) /* who sits there may go on */
        interrupted = 0;
    bool is_full = status == TP_OK && strcmp(result.finish, "capacity") == 0;
    if (is_full || (status == TP_OK && strcmp(result.finish, "length") == 0))
        fprintf(stderr, "(cut at %s)\n",
                is_full ? "the size of the KV cache" : "the length allowed");
    return status;
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
        tp_chat_reset(c->talk);
        fprintf(stderr, "(a new conversation)\n");
    } else if (strcmp(line, "/help") == 0)
        print_commands();
    else
        fprintf(stderr, "there is no command '%s'; see /help\n", line);
    return LINE_DONE;
}

/* A line, with those that it continues into: malloc'ed text of *ret_n bytes, and a NUL.  NULL at
 * the end of the input. */
static char *read_line(const chat *c, size_t *ret_n)
{
    char *text = NULL, *line = NULL;
    size_t cap = 0;
    bool goes_on = true, any = false;
    FILE *out = open_memstream(&text, ret_n);
    while (out && goes_on) {
        if (c->is_terminal) {
            fputs(any ? ". " : "> ", stdout);
            (void)tp_cli_flush();
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
        fwrite(line, 1, (size_t)n - goes_on, out);
        if (goes_on)
            putc('\n', out);
    }
    free(line);
    if (out)
        fclose(out);
    if (!any) {
        free(text);
        text = NULL;
    }
    return text;
}

static tp_status talk(chat *c, tp_error *err)
{
    tp_status status = TP_OK;
    line_kind kind = LINE_DONE;
    size_t n;
    while (status == TP_OK && kind != LINE_QUIT && !interrupted) {
        char *line = read_line(c, &n);
        kind = line ? take_command(c, line) : LINE_QUIT;
        if (kind == LINE_TEXT)
            status = answer(c, line, n, err);
        free(line);
        if (status == TP_ERR_CONFIG) { /* too long: the talk goes on */
            fprintf(stderr, "temper: %s; /reset begins anew\n", err->message);
            c->has_refused = !c->is_terminal;
            status = TP_OK;
        }
    }
    if (c->is_terminal)
        putchar('\n');
    return status;
}

static tp_status run(chat *c, const flags *f, tp_text_generator *gen, tp_error *err)
{
    tp_text_request request = {.size = sizeof request,
                               .max_new_tokens = f->max_new_tokens,
                               .seed = (uint64_t)f->seed,
                               .on_piece = print_piece,
                               .user = &c->has_said,
                               .ignore_generation_config = f->ignore_config,
                               .should_stop = is_interrupted};
    tp_cli_text_sampling(f->temperature, f->top_k, f->top_p, f->min_p, &request);
    tp_status status = tp_chat_open(gen, f->system, &request, &c->talk, err);
    if (status != TP_OK)
        return status;
    handle_interrupts(false);
    tp_terminal_pass_data();
    if (c->is_terminal)
        fprintf(stderr, "talking with %s; /help says what else there is\n",
                tp_text_generator_folder(gen));
    c->has_begun = true;
    status = talk(c, err);
    tp_chat_free(c->talk);
    return status;
}

static int execute(const void *given, char **words, int n)
{
    (void)n;
    const flags *f = given;
    tp_error err = {0};
    tp_text_generator_options options;
    if (!tp_cli_text_options("chat", &f->text, &options))
        return 2;
    chat c = {.is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    tp_text_generator *gen = NULL;
    options.notice = notice;
    options.user = &c;
    tp_waiting_begin("temper chat: reading the model");
    tp_status status = tp_text_generator_open(words[0], &options, &gen, &err);
    tp_waiting_end();
    if (status == TP_OK)
        status = run(&c, f, gen, &err);
    tp_text_generator_free(gen);
    if (status != TP_OK)
        return tp_cli_fail(&err);
    if (interrupted)
        return tp_status_exit(TP_ERR_INTERRUPTED);
    return c.has_refused ? TP_EXIT_INPUT : 0;
}

const tp_usage tp_usage_chat = {
    .command = "chat",
    .arguments = "MODEL",
    .summary = "Talk with a model in the terminal; MODEL is a Hugging Face "
               "folder with a chat template, a checkpoint or a run folder.",
    .flags = flag_table,
    .details = "/reset begins anew, /quit leaves, Ctrl-C stops an answer, or "
               "leaves when there is none; a line that ends in \\ goes on in the next.  "
               "Without a terminal the lines of standard input are messages and "
               "commands all the same, and only the answers are written; the exit "
               "status is 2 when a message was too long.",
    .min_words = 1,
    .max_words = 1,
    .size = sizeof(flags),
    .defaults = &(const flags){.temperature = NAN, .top_k = -1, .top_p = NAN, .min_p = NAN},
    .run = execute};
