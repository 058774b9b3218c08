/* cmd_eval.c - `temper eval`: asking a model questions, or evaluations that are in files. */
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "temper/evaluate.h"

typedef struct {
    tp_evaluation_file_options o;
    bool keys, quiet;
    const char *out;
    int64_t prompts;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, o.json, "the summary and the table of prompts as one JSON object"),
    TP_TEXT("out", 'o', "FILE", out, "write every answer with its verdict, as JSON"),
    TP_NUMBER("prompts", 0, "N", INT, prompts, 0, 1e9, "show the N hardest prompts (default 5)"),
    TP_NUMBER("level", 0, "P", FLOAT, o.level, 0.5, 0.9999,
              "summarize, compare: level of the intervals (default 0.95)"),
    TP_NUMBER("threshold", 0, "R", FLOAT, o.threshold, -1e9, 1e9,
              "summarize, compare: rewards from R on are right, where the file does not say "
              "(default 1)"),
    TP_TEXT("report", 0, "FILE", o.report,
            "compare: write the summaries as eval.before, eval.after and eval.paired too"),
    TP_SWITCH("quiet", 'q', quiet, "no progress on standard error"),
    TP_SWITCH("keys", 0, keys, "every key of a configuration, as Markdown"),
    {0}};

typedef struct {
    const flags *f;
    double last_shown;
} run_state;

/* ---- running ---- */

static void on_progress(void *user, const tp_evaluator_progress *p)
{
    run_state *s = user;
    bool is_last = p->done == p->n;
    if (s->f->quiet || (p->seconds - s->last_shown < 0.25 && !is_last))
        return;
    s->last_shown = p->seconds;
    char text[256], rate[32], left[32];
    int64_t judged = (int64_t)p->done - p->excluded;
    int n = snprintf(text, sizeof text, "%llu of %llu answers", (unsigned long long)p->done,
                     (unsigned long long)p->n);
    if (judged > 0)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %.1f%% right",
                      100.0 * (double)p->correct / (double)judged);
    if (p->excluded)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %lld left out", (long long)p->excluded);
    n += snprintf(text + n, sizeof text - (size_t)n, ", %s tokens/s",
                  tp_human_count(p->tokens_per_s, rate));
    if (p->done)
        snprintf(text + n, sizeof text - (size_t)n, ", about %s to go",
                 tp_human_seconds(p->seconds / (double)p->done * (double)(p->n - p->done), left));
    tp_waiting_say(is_last ? NULL : text);
}

static int print(char *text, size_t n)
{
    if (text)
        fwrite(text, 1, n, stdout);
    tp_free(text);
    return 0;
}

static tp_status report(const tp_evaluator *e, const flags *f, tp_error *err)
{
    char *text;
    size_t n;
    tp_evaluation_result result = {.size = sizeof result};
    if (f->o.json)
        tp_evaluator_json(e, &text, &n);
    else
        tp_evaluator_text(e, f->prompts, tp_cli_colour(stdout), &text, &n);
    print(text, n);
    tp_status status = tp_evaluator_write(e, err);
    return status == TP_OK ? tp_evaluator_get_result(e, &result, err) : status;
}

static tp_status run(const flags *f, char **words, int n, tp_error *err)
{
    run_state s = {.f = f};
    tp_evaluator *e = NULL;
    char path[TP_CLI_PATH];
    const tp_evaluator_options options = {.size = sizeof options,
                                          .notice = tp_cli_note,
                                          .progress = on_progress,
                                          .should_stop = tp_cli_should_stop,
                                          .user = &s,
                                          .out = f->out};
    tp_status status = tp_cli_find_recipe(&words, &n, path, err);
    if (status == TP_OK) {
        tp_waiting_begin("temper eval: reading the model");
        status = tp_evaluator_open(path[0] ? path : NULL, (const char *const *)words, (size_t)n,
                                   &options, &e, err);
        tp_waiting_end();
    }
    if (status == TP_OK)
        status = tp_evaluator_run(e, err);
    tp_waiting_end();
    if (status == TP_OK)
        status = report(e, f, err);
    tp_evaluator_free(e);
    return status;
}

/* The words that work on files alone; -1: it was none of them. */
static int from_files(char **words, int n, const flags *f)
{
    bool worse = false;
    tp_evaluation_file_options o = f->o;
    o.worse = &worse;
    bool is_compare = n > 0 && strcmp(words[0], "compare") == 0;
    bool is_summary = n > 0 && strcmp(words[0], "summarize") == 0;
    char *text = NULL;
    size_t n_text = 0;
    tp_error err;
    if ((o.report && !is_compare) || (f->out && (is_compare || is_summary))) {
        fprintf(stderr, "temper eval: %s\n",
                f->out ? "--out is for answers that are asked for here"
                       : "--report is for 'compare A B'");
        return TP_EXIT_INPUT;
    }
    if ((is_compare && n == 3) || (is_summary && n == 2)) {
        tp_waiting_begin("temper eval: reading and resampling");
        tp_status status = is_compare
                               ? tp_evaluation_compare(words[1], words[2], &o, &text, &n_text, &err)
                               : tp_evaluation_summarize(words[1], &o, &text, &n_text, &err);
        tp_waiting_end();
        return status == TP_OK ? tp_cli_verdict(print(text, n_text), worse) : tp_cli_fail(&err);
    }
    if (is_compare)
        fprintf(stderr, "temper eval compare: expected two files, A.json B.json\n");
    if (is_summary)
        fprintf(stderr, "temper eval summarize: expected one file\n");
    return is_compare || is_summary ? TP_EXIT_INPUT : -1;
}

static int print_keys(void)
{
    char *text;
    size_t n;
    tp_evaluator_keys(&text, &n);
    return print(text, n);
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    tp_error err = {0};
    if (!f->o.json && !f->keys)
        tp_cli_wrap();
    if (f->keys)
        return print_keys();
    int done = from_files(words, n, f);
    if (done >= 0)
        return done;
    tp_cli_catch_stop();
    tp_status status = run(f, words, n, &err);
    if (status == TP_OK)
        return 0;
    int exit_status = tp_cli_fail(&err);
    return tp_cli_stopped(exit_status);
}

const tp_usage tp_usage_eval = {
    .command = "eval",
    .arguments = "[CONFIG] [KEY=VALUE...]\nsummarize FILE\ncompare A B",
    .summary = "Ask a model a set of questions, several times each, judge the answers, and say "
               "how good it is and how sure that is.  'summarize' says the same about what "
               "--out wrote, NeMo RL's evaluation_data.json and val_data_step<N>.jsonl, or the "
               "validations of a run folder; "
               "'compare' pairs two of them by prompt (exit status 1: B is worse).",
    .flags = flag_table,
    .details = "CONFIG has NeMo RL's names: generation.model_name, eval.num_tests_per_prompt, "
               "eval.k_value, data.data_path, env.math ...; 'temper eval --keys' lists them.",
    .max_words = -1,
    .size = sizeof(flags),
    .defaults = &(const flags){.o = {.size = sizeof(tp_evaluation_file_options),
                                     .level = 0.95,
                                     .has_threshold = true,
                                     .threshold = 1},
                               .prompts = 5},
    .run = execute};
