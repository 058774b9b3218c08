/* cmd_eval.c - asking a model questions, and what it was worth: set up in eval_job.c. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/output.h"
#include "base/terminal.h"
#include "cli/cli.h"
#include "cli/eval_compare.h"
#include "cli/eval_job.h"
#include "cli/eval_report.h"
#include "cli/recipe.h"

typedef struct {
    bool json, keys, quiet;
    const char *out, *report;
    int64_t prompts;
    double level, threshold;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "the summary and the table of prompts as one JSON object"),
    TP_TEXT("out", 'o', "FILE", out, "write every answer with its verdict, as JSON"),
    TP_NUMBER("prompts", 0, "N", INT, prompts, 0, 1e9, "show the N hardest prompts (default 5)"),
    TP_NUMBER("level", 0, "P", FLOAT, level, 0.5, 0.9999,
              "summarize, compare: level of the intervals (default 0.95)"),
    TP_NUMBER("threshold", 0, "R", FLOAT, threshold, -1e9, 1e9,
              "summarize, compare: rewards from R on are right, where the file does not say "
              "(default 1)"),
    TP_TEXT("report", 0, "FILE", report,
            "compare: write the summaries as eval.before, eval.after and eval.paired too"),
    TP_SWITCH("quiet", 'q', quiet, "no progress on standard error"),
    TP_SWITCH("keys", 0, keys, "every key of a configuration, as Markdown"),
    {0}};

typedef struct {
    const flags *f;
    tp_eval_job j;
    double last_shown;
} run_state;

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    if (stop_signal)
        _exit(128 + number);
    stop_signal = number;
}

/* ---- running ---- */

static bool on_progress(void *user, const tp_evaluate_progress *p)
{
    run_state *s = user;
    double now = tp_clock_s();
    bool is_last = p->done == p->n;
    if (stop_signal)
        return false;
    if (s->f->quiet || !tp_cli_terminal(stderr) || (now - s->last_shown < 0.25 && !is_last))
        return true;
    s->last_shown = now;
    char rate[32], left[32];
    int64_t judged = (int64_t)p->done - p->excluded;
    fprintf(stderr, "%s%zu of %zu answers", tp_style(TP_LINE_BEGIN), p->done, p->n);
    if (judged > 0)
        fprintf(stderr, ", %.1f%% right", 100.0 * (double)p->correct / (double)judged);
    if (p->excluded)
        fprintf(stderr, ", %lld left out", (long long)p->excluded);
    fprintf(stderr, ", %s tokens/s", tp_human_count(p->tokens_per_s, rate));
    if (p->done && !is_last)
        fprintf(stderr, ", %s left",
                tp_human_seconds(p->seconds / (double)p->done * (double)(p->n - p->done), left));
    fputs(tp_style(TP_LINE_ERASE), stderr);
    if (is_last)
        tp_cli_erase_line(stderr);
    fflush(stderr);
    return true;
}

static tp_status evaluate(run_state *s, tp_evaluation *ret, tp_error *err)
{
    tp_eval_job *j = &s->j;
    const tp_eval_options *o = &j->o;
    int64_t top_k = o->generation.top_k == TP_OPT_UNSET_INT ? -1 : o->generation.top_k;
    tp_evaluate_options options = {.max_length = j->max_length,
                                   .n_samples = o->eval.num_tests_per_prompt,
                                   .max_new_tokens = o->generation.max_new_tokens,
                                   .sampling = {.temperature = o->generation.temperature,
                                                .top_k = top_k,
                                                .top_p = o->generation.top_p,
                                                .min_p = o->generation.min_p},
                                   .seed = (uint64_t)o->eval.seed,
                                   .stop_ids = j->stop_ids,
                                   .n_stop_ids = o->generation.stop_token_ids.n,
                                   .stop_strings = o->generation.stop_strings.v,
                                   .n_stop_strings = o->generation.stop_strings.n,
                                   .success_threshold = o->eval.success_threshold,
                                   .pool = j->pool,
                                   .on_progress = on_progress,
                                   .user = s};
    return tp_evaluate(j->engine, j->model, j->tokenizer, j->prompts, j->encoder, j->env, &options,
                       ret, err);
}

static tp_status write_out(const tp_eval_report *r, const char *path, tp_error *err)
{
    tp_buf text = {0};
    tp_eval_report_json(r, true, 1, &text);
    tp_status status = tp_output_put(path, text.data, text.len, err);
    tp_buf_release(&text);
    return status;
}

static void print_report(const tp_eval_report *r, const flags *f)
{
    tp_buf text = {0};
    if (f->json)
        tp_eval_report_json(r, false, 2, &text);
    else
        tp_eval_report_text(r, f->prompts, tp_cli_colour(stdout), &text);
    fwrite(text.data, 1, text.len, stdout);
    tp_buf_release(&text);
}

/* Answers of which none was judged say nothing about the model. */
static tp_status any_verdict(const tp_evaluation *e, tp_error *err)
{
    size_t n = e->n * (size_t)e->n_samples;
    uint64_t judged = 0;
    for (size_t i = 0; i < e->n; i++)
        judged += (uint64_t)e->counts[i].n;
    for (size_t i = 0; i < n && !judged; i++) {
        const tp_reward *r =
            &e->prompts[i / (size_t)e->n_samples].samples[i % (size_t)e->n_samples].reward;
        if (r->status != TP_REWARD_OK)
            return tp_fail(err, TP_ERR_CONFIG, "none of %zu answers got a verdict; %s: %s", n,
                           tp_reward_status_name(r->status), r->why ? r->why : "left out");
    }
    return TP_OK;
}

static tp_status report(run_state *s, const tp_evaluation *e, tp_error *err)
{
    tp_eval_job *j = &s->j;
    tp_eval_summary summary;
    const tp_model_info *info = tp_model_get_info(j->model);
    TP_TRY(tp_eval_summarize(e->counts, e->n, j->o.k, j->o.n_k, j->o.eval.confidence_level,
                             &summary, err));
    tp_eval_report r = {.config = j->config,
                        .options = &j->o,
                        .model = tp_buf_str(&j->folder),
                        .family = info->family,
                        .n_parameters = tp_model_param_count(j->model),
                        .data = tp_buf_str(&j->data_text),
                        .env = tp_buf_str(&j->env_text),
                        .evaluation = e,
                        .summary = &summary,
                        .judges = tp_environment_get_counts(j->env)};
    print_report(&r, s->f);
    if (s->f->out)
        TP_TRY(write_out(&r, s->f->out, err));
    if (j->o.eval.save_path)
        TP_TRY(tp_eval_report_nemo(&r, j->o.eval.save_path, err));
    return any_verdict(e, err);
}

static void print_notices(const tp_eval_job *j)
{
    tp_cli_print_notice("eval", j->config);
    if (j->o.generation.temperature == 0 && j->o.eval.num_tests_per_prompt > 1)
        fprintf(stderr,
                "temper eval: generation.temperature is 0: the %lld answers to a question are all "
                "the same\n",
                (long long)j->o.eval.num_tests_per_prompt);
}

static bool is_stopped(void *user)
{
    (void)user;
    return stop_signal != 0;
}

static void say(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "temper eval: %s\n", text);
}

static tp_status run(run_state *s, char **words, int n, tp_error *err)
{
    tp_eval_job *j = &s->j;
    tp_evaluation e = {0};
    TP_TRY(tp_eval_job_bind(j, words, n, err));
    TP_TRY(tp_output_check(s->f->out, err)); /* before the work, not after it */
    if (!tp_cli_force_isa(j->o.isa))
        return tp_fail(err, TP_ERR_CONFIG, "engine.isa cannot be had");
    TP_TRY(tp_eval_job_open_judge(j, err));
    tp_environment_set_watch(j->env, &(tp_environment_watch){is_stopped, say, NULL});
    TP_TRY(tp_eval_job_open_questions(j, err));
    print_notices(j);
    TP_TRY(tp_eval_job_open_model(j, err));
    TP_TRY(tp_output_check(s->f->out, err)); /* now that the inputs are known */
    if (j->nonfinite[0])
        fprintf(stderr,
                "temper eval: the weights have values that are not finite, the first in %s\n",
                j->nonfinite);
    tp_status status = evaluate(s, &e, err);
    if (status == TP_OK)
        status = report(s, &e, err);
    tp_evaluation_release(&e);
    return status;
}

static int print_keys(void)
{
    tp_buf out = {0};
    tp_eval_options_doc(&out);
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
    return 0;
}

/* The words that work on files alone; -1: it was none of them. */
static int from_files(char **words, int n, const flags *f)
{
    tp_eval_file_options o = {
        .level = f->level, .threshold = f->threshold, .json = f->json, .report = f->report};
    bool is_compare = n > 0 && strcmp(words[0], "compare") == 0;
    bool is_summary = n > 0 && strcmp(words[0], "summarize") == 0;
    if ((f->report && !is_compare) || (f->out && (is_compare || is_summary))) {
        fprintf(stderr, "temper eval: %s\n",
                f->out ? "--out is for answers that are asked for here"
                       : "--report is for 'compare A B'");
        return TP_EXIT_INPUT;
    }
    if (is_compare && n == 3)
        return tp_eval_compare_files(words[1], words[2], &o);
    if (is_summary && n == 2)
        return tp_eval_is_run(words[1]) ? tp_eval_summarize_run(words[1], &o)
                                        : tp_eval_summarize_file(words[1], &o);
    if (is_compare)
        fprintf(stderr, "temper eval compare: expected two files, A.json B.json\n");
    if (is_summary)
        fprintf(stderr, "temper eval summarize: expected one file\n");
    return is_compare || is_summary ? 2 : -1;
}

int tp_cmd_eval(int argc, char **argv)
{
    flags f = {.prompts = 5, .level = 0.95, .threshold = 1};
    char *words[argc + 1];
    tp_error err = {0};
    run_state s = {.f = &f};
    const tp_usage usage = {
        .command = "eval",
        .arguments = "[CONFIG] [KEY=VALUE...]\nsummarize FILE\ncompare A B",
        .summary = "Ask a model a set of questions, several times each, judge the answers, and say "
                   "how good it is and how sure that is.  'summarize' says the same about what "
                   "--out wrote, NeMo RL's evaluation_data.json and val_data_step<N>.jsonl, or the "
                   "validations of a run folder; "
                   "'compare' pairs two of them by prompt.",
        .flags = flag_table,
        .details = "CONFIG has NeMo RL's names: generation.model_name, eval.num_tests_per_prompt, "
                   "eval.k_value, data.data_path, env.math ...; 'temper eval --keys' lists them.",
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (f.keys)
        return print_keys();
    int done = from_files(words, n, &f);
    if (done >= 0)
        return done;
    tp_cli_catch(SIGINT, on_signal);
    tp_cli_catch(SIGTERM, on_signal);
    tp_status status = run(&s, words, n, &err);
    tp_eval_job_close(&s.j);
    if (status == TP_OK)
        return 0;
    if (!f.quiet && tp_cli_terminal(stderr))
        tp_cli_erase_line(stderr);
    int exit_status = tp_cli_fail(&err);
    return stop_signal ? 128 + stop_signal : exit_status;
}
