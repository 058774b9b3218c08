/* cmd_serve.c - `temper serve`: a local web page of all runs, until Ctrl-C. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "temper/serve.h"

typedef struct {
    const char *address, *token, *priority;
    int64_t port;
    bool needs_token, fresh;
} flags;

static const tp_flag flag_table[] = {
    TP_NUMBER("port", 0, "N", INT, port, -1, 65535,
              "to listen on (default 6996; -1: any that is free)"),
    TP_TEXT("address", 0, "ADDRESS", address,
            "to listen on (default 127.0.0.1); another one asks for a token"),
    TP_TEXT("token", 0, "WORD", token, "what a browser has to know; drawn where one is needed"),
    TP_SWITCH("with-token", 0, needs_token, "ask for a token on 127.0.0.1 as well"),
    TP_CHOICE(
        "priority", 0, "WORD", priority, "low idle normal",
        "where a run wants every processor: low (default), a seventieth of one for pages; idle, "
        "pages wait; normal, as any program"),
    TP_SWITCH("no-index", 0, fresh, "read every run anew, keep nothing"),
    {0}};

static int end_pipe[2] = {-1, -1};

static void end(int signal)
{
    (void)signal;
    (void)!write(end_pipe[1], "", 1);
}

/* -1: no such word. */
static int priority_of(const char *word)
{
    static const char *const words[] = {
        [TP_SERVE_LOW] = "low", [TP_SERVE_IDLE] = "idle", [TP_SERVE_NORMAL] = "normal"};
    for (int i = 0; word && i <= TP_SERVE_NORMAL; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    return word ? -1 : TP_SERVE_LOW;
}

/* Where the kernel shares processors among sessions (autogroup), priorities within one mean nothing
 * to others: a server that has a session for itself lowers all of it. */
static void lower_own_session(void)
{
    FILE *group = getsid(0) == getpid() ? fopen("/proc/self/autogroup", "we") : NULL;
    if (!group)
        return;
    fputs("19", group);
    fclose(group);
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char byte;
    tp_error err = {0};
    tp_server *server;
    int priority = priority_of(f->priority);
    if (priority < 0)
        return tp_cli_refuse("serve", "--priority is low, idle or normal, not '%.40s'",
                             f->priority);
    const tp_serve_options options = {.size = sizeof options,
                                      .address = f->address,
                                      .port = (int)f->port,
                                      .token = f->token,
                                      .needs_token = f->needs_token,
                                      .without_index = f->fresh,
                                      .priority = (tp_serve_priority)priority};
    if (priority != TP_SERVE_NORMAL)
        lower_own_session();
    if (pipe(end_pipe) != 0)
        return tp_cli_refuse("serve", "no pipe: %s", strerror(errno));
    tp_waiting_begin("temper serve: looking for runs");
    if (tp_server_start(n ? words[0] : "runs", &options, &server, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_waiting_end();
    tp_cli_catch(SIGINT, end);
    tp_cli_catch(SIGTERM, end);
    printf("%s\n", tp_server_url(server));
    (void)tp_cli_flush();
    if (priority != TP_SERVE_NORMAL)
        fputs("temper serve: a run beside it goes first (--priority normal: as any program)\n",
              stderr);
    while (read(end_pipe[0], &byte, 1) < 0 && errno == EINTR)
        ;
    tp_server_stop(server);
    return 0;
}

const tp_usage tp_usage_serve = {
    .command = "serve",
    .arguments = "[FOLDER]",
    .summary = "A local web page of every run below FOLDER (default: runs): curves that move, "
               "comparison, operators, memory, timeline, samples, report; /metrics for "
               "Prometheus.",
    .flags = flag_table,
    .details = "It is reached from this machine alone, unless --address says otherwise, and "
               "reads nothing outside FOLDER.  Ctrl-C ends it.\n\n"
               "  temper serve\n"
               "  temper serve ~/experiments --port 8080",
    .max_words = 1,
    .size = sizeof(flags),
    .run = execute};
