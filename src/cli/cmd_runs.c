/* cmd_runs.c - `temper runs`: every run of a folder, whoever ran it, and what was measured. */

#include "cli/commands.h"
#include "temper/runs.h"

typedef struct {
    bool json, fresh;
    const char *filter, *tag, *untag;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "{\"runs\": [{\"id\", \"path\", \"format\", \"state\", ...}]}"),
    TP_TEXT("filter", 0, "WORDS", filter,
            "only those that every word fits: of path, kind, format, state, algorithm, model or a "
            "tag; state:running is of the state alone"),
    TP_TEXT("tag", 0, "TAG", tag, "mark the run, or the file, that is named in place of a folder"),
    TP_TEXT("untag", 0, "TAG", untag, "take the mark away"),
    TP_SWITCH("no-index", 0, fresh, "read every run anew, keep nothing"),
    {0}};

static tp_status list(const flags *f, const char *folder, tp_error *err)
{
    tp_run_index *x;
    const tp_run_index_options options = {
        .size = sizeof options, .without_cache = f->fresh, .all_kinds = true};
    tp_waiting_begin("temper runs: looking for runs");
    tp_status status = tp_run_index_open(folder, &options, &x, err);
    if (status != TP_OK)
        return status;
    status = tp_run_index_scan(x, NULL, err);
    if (status == TP_OK) {
        char *text = f->json ? tp_run_index_json(x, f->filter)
                             : tp_run_index_text(x, f->filter, tp_cli_width());
        tp_waiting_end();
        fputs(text, stdout);
        tp_free(text);
    }
    tp_run_index_close(x);
    return status;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    tp_error err = {0};
    if ((f->tag || f->untag) && n == 0)
        return tp_cli_refuse("runs", "name the run: temper runs RUN --%s ...",
                             f->tag ? "tag" : "untag");
    tp_status status = TP_OK;
    if (f->tag)
        status = tp_run_set_tag(words[0], f->tag, true, &err);
    if (f->untag && status == TP_OK)
        status = tp_run_set_tag(words[0], f->untag, false, &err);
    if (!f->tag && !f->untag)
        status = list(f, n ? words[0] : "runs", &err);
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}

const tp_usage tp_usage_runs = {
    .command = "runs",
    .arguments = "[FOLDER]",
    .summary = "Every run below FOLDER (default: runs): of Temper, TensorBoard, TRL, NeMo RL, "
               "trackio, CSV, JSONL; and every trace, profile, evaluation and result of "
               "benchmarks.",
    .flags = flag_table,
    .details = "What was read is kept in the user's cache folder and read again when a run has "
               "changed.  Tags are a file in the run's folder.\n\n"
               "  temper runs\n"
               "  temper runs ~/experiments --filter 'grpo state:running'\n"
               "  temper runs --filter kind:trace\n"
               "  temper runs runs/first --tag good",
    .max_words = 1,
    .size = sizeof(flags),
    .run = execute};
