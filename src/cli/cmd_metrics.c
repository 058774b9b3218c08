/* cmd_metrics.c - `temper metrics`: the figures that a run recorded, whoever ran it. */
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/runs.h"
#include "temper/monitor.h"

typedef struct {
    bool json, follow;
    const char *points, *run;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "{\"TAG\": [[step, wall_time, value], ...]}"),
    TP_CHOICE("points", 0, "VIEW", points, "native latest all accumulator fast",
              "which count after a restart or damage: native (default), latest, all, accumulator, "
              "fast"),
    TP_TEXT("run", 0, "NAME", run, "of several runs in one file; or RUN#NAME"),
    TP_SWITCH("follow", 0, follow,
              "go on: a line for every figure as it is recorded, TAG STEP VALUE or an object"),
    {0}};

/* What comes, line by line, until somebody ends it or nobody reads any more. */
static tp_status follow(const flags *f, tp_metrics *m, tp_points_view view, const char *const *tags,
                        size_t n_tags, tp_error *err)
{
    tp_follower *follower = tp_follower_new(m, view, tags, n_tags, f->json);
    tp_status status = tp_metrics_check_tags(m, tags, n_tags, err);
    bool is_lost = false;
    tp_cli_catch_stop();
    while (!tp_cli_should_stop(NULL) && status == TP_OK && !ferror(stdout)) {
        char *lines = tp_follower_lines(follower);
        fputs(lines, stdout);
        (void)tp_cli_flush();
        tp_free(lines);
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
        bool was_lost = is_lost; /* a file that is written anew may be gone for a moment */
        is_lost = tp_metrics_refresh(m, NULL, err) != TP_OK;
        if (is_lost && !was_lost)
            tp_cli_note(NULL, err->message);
    }
    tp_follower_free(follower);
    return status;
}

static bool print_piece(void *user, const char *text, size_t n)
{
    return fwrite(text, 1, n, user) == n;
}

static tp_status show(const flags *f, char **words, int n, tp_error *err)
{
    tp_points_view view = TP_POINTS_NATIVE;
    tp_metrics *m;
    const tp_metrics_options options = {
        .size = sizeof options, .run = f->run, .follows = f->follow};
    if (f->points)
        (void)tp_points_view_named(f->points, &view);
    tp_waiting_begin("temper metrics: reading");
    if (tp_metrics_open(words[0], &options, &m, err) != TP_OK)
        return err->status;
    tp_waiting_end();
    tp_runs_say_notes(m);
    const char *const *tags = (const char *const *)(words + 1);
    char *text = NULL;
    tp_status status =
        f->follow ? follow(f, m, view, tags, (size_t)n - 1, err)
        : f->json ? tp_metrics_write_json(m, view, tags, (size_t)n - 1, print_piece, stdout, err)
                  : tp_metrics_text(m, view, tags, (size_t)n - 1, tp_cli_width(), &text, err);
    tp_metrics_close(m);
    if (text)
        fputs(text, stdout);
    tp_free(text);
    return status;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    tp_error err = {0};
    tp_points_view view;
    if (f->points && !tp_points_view_named(f->points, &view))
        return tp_cli_refuse("metrics",
                             "--points is native, latest, all, accumulator or fast, not '%.40s'",
                             f->points);
    if (f->follow && strcmp(words[0], "-") == 0)
        return tp_cli_refuse("metrics", "standard input (-) is read to its end at once; --follow "
                                        "takes a file or a folder");
    return show(f, words, n, &err) == TP_OK ? 0 : tp_cli_fail(&err);
}

const tp_usage tp_usage_metrics = {
    .command = "metrics",
    .arguments = "RUN [TAG...]",
    .summary = "What a run recorded, exactly: a run folder of Temper, TensorBoard event files, "
               "trainer_state.json, NeMo RL's logs, trackio's data bases, CSV, JSONL.",
    .flags = flag_table,
    .details = "RUN is a folder, a file, - for standard input, or FILE#NAME.  TAGs may be "
               "patterns ('train/*'). "
               "Damage is read up to, and named on standard error.\n\n"
               "  temper metrics runs/first\n"
               "  temper metrics logs/exp_001/tensorboard train/loss --json\n"
               "  temper metrics ~/.cache/huggingface/trackio/project.db#run-1 'train/*'",
    .min_words = 1,
    .max_words = -1,
    .size = sizeof(flags),
    .wraps = true,
    .run = execute};
