/* cmd_plan.c - `temper plan`: does a run fit, what does it take, how long is a step. */
#include "cli/commands.h"
#include "temper/plan.h"

typedef struct {
    bool json;
    const char *print, *isa, *level, *ranks, *ranks_per_node, *network;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON"),
    TP_CHOICE("print", 0, "GRAPH", print, "train eval norm update generate reference",
              "print the launches of train, eval, norm, update, generate or reference with their "
              "memory"),
    TP_CHOICE("isa", 0, "LEVEL", isa, TP_CLI_ISA, "the same as engine.isa=LEVEL"),
    TP_CHOICE("level", 0, "LEVEL", level, TP_CLI_LEVELS,
              "the same as optimization.level=LEVEL: basic, advanced, ultra"),
    TP_TEXT("ranks", 0, "N", ranks, "of one of N processes, and what they send, by strategy"),
    TP_TEXT("ranks-per-node", 0, "N", ranks_per_node, "so many of them share a host's memory"),
    TP_TEXT("network", 0, "RATE/LATENCY[/SHAPE]", network,
            "between them, as in 100Gbit/2us, or with its shape: 100Gbit/2us/torus-16x8x8, "
            "100Gbit/2us/fat-tree-32:2"),
    {0}};

static bool take_count(const char *text, int64_t *ret)
{
    *ret = 0;
    return !text || (tp_str_to_i64(text, ret) && *ret >= 1 && *ret <= 65536);
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    char path[TP_CLI_PATH], *text = NULL;
    char isa[TP_CLI_SETTING], level[TP_CLI_SETTING];
    tp_error err = {0};
    bool fits = true;
    n = tp_cli_add_setting(words, n, "engine.isa", f->isa, isa);
    n = tp_cli_add_setting(words, n, "optimization.level", f->level, level);
    if (tp_cli_find_recipe(&words, &n, path, &err) != TP_OK)
        return tp_cli_fail(&err);
    int64_t ranks, ranks_per_node;
    if (!take_count(f->ranks, &ranks))
        return tp_cli_refuse("plan", "--ranks is a number of processes, not '%s'", f->ranks);
    if (!take_count(f->ranks_per_node, &ranks_per_node))
        return tp_cli_refuse("plan", "--ranks-per-node is a number of processes, not '%s'",
                             f->ranks_per_node);
    const tp_plan_options o = {.size = sizeof o,
                               .form = tp_cli_form(f->json, false, false),
                               .graph = f->print,
                               .ranks = (int)ranks,
                               .ranks_per_node = (int)ranks_per_node,
                               .network = f->network,
                               .note = tp_cli_note};
    tp_waiting_begin("temper plan: planning");
    tp_status done = tp_training_plan_text(path[0] ? path : NULL, (const char *const *)words,
                                           (size_t)n, &o, &text, &fits, &err);
    int status = tp_cli_print(done, text, &err);
    return status == 0 && !fits ? tp_status_exit(TP_ERR_NOMEM) : status;
}

const tp_usage tp_usage_plan = {.command = "plan",
                                .arguments = "CONFIG [KEY=VALUE...]",
                                .summary = "Memory, work and time of a run before it runs.",
                                .flags = flag_table,
                                .details =
                                    "No data is read, nothing large is read or allocated.  Exit "
                                    "status 5 when the run does not fit.",
                                .min_words = 1,
                                .max_words = -1,
                                .wraps = true,
                                .size = sizeof(flags),
                                .run = execute};
