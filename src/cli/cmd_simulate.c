/* cmd_simulate.c - `temper simulate`: the run on a network of many ranks, which is not there. */
#include "cli/cli.h"
#include "cli/find_recipe.h"
#include "cli/waiting.h"
#include "temper/simulate.h"

typedef struct {
    bool json;
    int64_t ranks, from, factor;
    const char *platform, *processor, *slow_link, *picture;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON"),
    TP_NUMBER("ranks", 0, "N", INT, ranks, 1, 65536, "1, 2, 4 ... and N processes (default 1024)"),
    TP_NUMBER("from", 0, "N", INT, from, 1, 65536, "leave out fewer processes than these, but 1"),
    TP_NUMBER("factor", 0, "N", INT, factor, 2, 64,
              "from one number of processes to the next: 4 for 1, 4, 16 ... (default 2)"),
    TP_TEXT("platform", 0, "FILE", platform,
            "the network: a file of SimGrid's, or one of fat-tree (default), torus, ethernet"),
    TP_TEXT("processor", 0, "FLOPS/BYTES", processor,
            "of a rank, as in 20TFLOP/400GB a second (default: this machine, as measured)"),
    TP_TEXT("slow-link", 0, "LINK[=PART]", slow_link,
            "what if this link had a part of its speed (default 0.1)"),
    TP_TEXT("picture", 0, "FILE", picture, "speed-up and efficiency: .svg, .png or .pdf"),
    {0}};

static void note(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "temper simulate: %s\n", text);
}

int tp_cmd_simulate(int argc, char **argv)
{
    flags f = {.ranks = 1024, .from = 1, .factor = 2, .platform = "fat-tree"};
    char *given[argc + 1], **words = given, path[TP_CLI_PATH], *text = NULL;
    tp_error err = {0};
    const tp_usage usage = {
        .command = "simulate",
        .arguments = "CONFIG [KEY=VALUE...]",
        .summary = "Step time of a run on many ranks, for every strategy: the real communication "
                   "code in a simulated network, launches as long as the plan says.",
        .flags = flag_table,
        .details = "Needs SimGrid (libsimgrid-dev when temper is built).  No data is read, nothing "
                   "is trained.",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (!f.json)
        tp_cli_wrap();
    if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        return tp_cli_fail(&err);
    const tp_simulate_options o = {.size = sizeof o,
                                   .form = tp_cli_form(f.json, false, false),
                                   .ranks = (int)f.ranks,
                                   .platform = f.platform,
                                   .processor = f.processor,
                                   .slow_link = f.slow_link,
                                   .picture = f.picture,
                                   .note = note,
                                   .from = (int)f.from,
                                   .factor = (int)f.factor};
    tp_waiting_begin("temper simulate: playing the ranks");
    tp_status done = tp_simulate_text(path[0] ? path : NULL, (const char *const *)words, (size_t)n,
                                      &o, &text, &err);
    return tp_cli_print(done, text, &err);
}
