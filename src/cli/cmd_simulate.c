/* cmd_simulate.c - `temper simulate`: the run on a network of many ranks, which is not there. */
#include "cli/commands.h"
#include "temper/simulate.h"

typedef struct {
    tp_simulate_options o;
    bool json;
    int64_t ranks, from, factor;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON"),
    TP_NUMBER("ranks", 0, "N", INT, ranks, 1, 65536, "1, 2, 4 ... and N processes (default 1024)"),
    TP_NUMBER("from", 0, "N", INT, from, 1, 65536, "leave out fewer processes than these, but 1"),
    TP_NUMBER("factor", 0, "N", INT, factor, 2, 64,
              "from one number of processes to the next: 4 for 1, 4, 16 ... (default 2)"),
    TP_TEXT("platform", 0, "FILE", o.platform,
            "the network: a file of SimGrid's, or one of fat-tree (default), torus, ethernet"),
    TP_TEXT("processor", 0, "FLOPS/BYTES", o.processor,
            "of a rank, as in 20TFLOP/400GB a second (default: this machine, as measured)"),
    TP_TEXT("slow-link", 0, "LINK[=PART]", o.slow_link,
            "what if this link had a part of its speed (default 0.1)"),
    TP_TEXT("picture", 0, "FILE", o.picture, "speed-up and efficiency: .svg, .png or .pdf"),
    {0}};

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char path[TP_CLI_PATH], *text = NULL;
    tp_error err = {0};
    if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_simulate_options o = f->o;
    o.form = tp_cli_form(f->json, false, false);
    o.ranks = (int)f->ranks;
    o.from = (int)f->from;
    o.factor = (int)f->factor;
    o.note = tp_cli_note;
    tp_waiting_begin("temper simulate: playing the ranks");
    tp_status done = tp_simulate_text(path[0] ? path : NULL, (const char *const *)words, (size_t)n,
                                      &o, &text, &err);
    return tp_cli_print(done, text, &err);
}

const tp_usage tp_usage_simulate = {
    .command = "simulate",
    .arguments = "CONFIG [KEY=VALUE...]",
    .summary = "Step time of a run on many ranks, for every strategy: the real communication "
               "code in a simulated network, launches as long as the plan says.",
    .flags = flag_table,
    .details = "Needs SimGrid (libsimgrid-dev when temper is built).  No data is read, nothing "
               "is trained.",
    .min_words = 1,
    .max_words = -1,
    .size = sizeof(flags),
    .defaults = &(const flags){.o = {.size = sizeof(tp_simulate_options), .platform = "fat-tree"},
                               .ranks = 1024,
                               .from = 1,
                               .factor = 2},
    .wraps = true,
    .run = execute};
