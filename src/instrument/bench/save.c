/* save.c - results of a session to files: formats, baselines, history, GitHub. */
#include <string.h>

#include "base/files.h"
#include "base/output.h"
#include "instrument/bench/history.h"
#include "instrument/bench/session.h"

/* ---- reading ---- */

/* "FORMAT:FILE" with a known format, else a plain path. */
static const tp_bench_format *split_format(const char *word, char *out, size_t cap,
                                           const char **ret_path)
{
    size_t n = strcspn(word, ":");
    *ret_path = word;
    if (!word[n])
        return NULL;
    snprintf(out, cap, "%.*s", (int)n, word);
    const tp_bench_format *format = tp_bench_format_find(out);
    if (format)
        *ret_path = word + n + 1;
    return format;
}

tp_status tp_bench_load(const tp_bench_setup *f, const char *path, tp_bench_report *ret,
                        tp_error *err)
{
    char name[64];
    const char *file;
    TP_OWN(tp_buf) text = {0};
    const tp_bench_format *format = split_format(path, name, sizeof name, &file);
    TP_TRY(tp_file_read(file, TP_BENCH_MAX_FILE, &text, err));
    TP_TRY(tp_bench_read(file, tp_buf_str(&text), text.len, format, ret, err));
    for (size_t i = 0; i < ret->n_results && f->o.ignore_failure; i++) {
        tp_bench_result *result = &ret->results[i];
        if (result->has_bad_exit) {
            result->verdict = TP_BENCH_NONE;
            result->message = NULL;
        }
    }
    return TP_OK;
}

/* ---- writing ---- */

static tp_status write_file(const tp_bench_setup *f, const tp_bench_format *format,
                            const char *path, const tp_bench_report *r, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    format->write(r, &text);
    for (size_t i = 0; i < r->n_results && format->of_times; i++) {
        const tp_bench_result *result = &r->results[i];
        if (result->n_metrics && !result->message && !tp_result_time(result))
            tp_bench_note(f, "%s is not in %s: it has no time in seconds", result->name, path);
    }
    return tp_output_put(path, tp_buf_str(&text), text.len, err);
}

/* Write a word of --save; without results only look whether it can be. */
static tp_status save_one(const tp_bench_setup *f, const char *word, const tp_bench_report *r,
                          tp_error *err)
{
    char name[64];
    const char *path;
    const tp_bench_format *format = split_format(word, name, sizeof name, &path);
    if (!format)
        format = tp_bench_format_find("temper");
    if (path == word && strchr(word, ':'))
        return tp_fail(err, TP_ERR_CONFIG,
                       "--save %s: there is no format '%s'; 'temper bench --formats' lists them",
                       word, name);
    if (!format->write)
        return tp_fail(err, TP_ERR_CONFIG, "--save %s: %s is read, not written", word,
                       format->name);
    if (!*path)
        return tp_fail(err, TP_ERR_CONFIG, "--save takes FORMAT:FILE, not '%s'", word);
    return r ? write_file(f, format, path, r, err) : tp_output_check(path, err);
}

static tp_status save_list(const tp_bench_setup *f, const tp_bench_report *r, tp_error *err)
{
    const char *list = f->o.save;
    char *copy = tp_strdup(list), *rest = NULL;
    size_t n = 0;
    tp_status status = TP_OK;
    for (char *word = strtok_r(copy, ",", &rest); word && status == TP_OK;
         word = strtok_r(NULL, ",", &rest))
        status = save_one(f, word, r, err), n++;
    if (status == TP_OK && n == 0)
        status = tp_fail(err, TP_ERR_CONFIG, "--save takes FORMAT:FILE, not '%s'", list);
    free(copy);
    return status;
}

/* In a workflow of GitHub: annotations on standard output, the table in the summary. */
static tp_status tell_github(const tp_bench_setup *f, const tp_bench_report *r, tp_error *err)
{
    const char *on = getenv("GITHUB_ACTIONS"), *path = getenv("GITHUB_STEP_SUMMARY");
    TP_OWN(tp_buf) text = {0};
    if (!on || strcmp(on, "true") != 0)
        return TP_OK;
    tp_write_annotations(r, &text);
    if (!f->o.json && f->o.print)
        f->o.print(f->o.user, tp_buf_str(&text));
    tp_buf_clear(&text);
    tp_write_markdown(r, &text);
    FILE *file = path && *path ? fopen(path, "a") : NULL;
    bool ok = !path || !*path || (file && fwrite(text.data, 1, text.len, file) == text.len);
    ok = (!file || fclose(file) == 0) && ok;
    return ok ? TP_OK
              : tp_fail(err, TP_ERR_OUTPUT, "the step summary '%s' could not be written", path);
}

/* ---- history ---- */

bool tp_bench_history_path(const char *given, char *out)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (given)
        snprintf(out, 4096, "%s", given);
    else if (data && *data == '/') /* the specification ignores relative ones */
        snprintf(out, 4096, "%s/temper/bench.sqlite", data);
    else if (home && *home)
        snprintf(out, 4096, "%s/.local/share/temper/bench.sqlite", home);
    else
        return false;
    return true;
}

tp_status tp_bench_check_save(const tp_bench_setup *f, tp_error *err)
{
    if (f->o.save)
        TP_TRY(save_list(f, NULL, err));
    return tp_output_check(f->o.benchmark_json, err);
}

tp_status tp_bench_save(const tp_bench_setup *f, const tp_bench_report *r, bool with_history,
                        tp_error *err)
{
    char path[4096];
    if (f->o.save)
        TP_TRY(save_list(f, r, err));
    if (f->o.benchmark_json)
        TP_TRY(
            write_file(f, tp_bench_format_find("pytest-benchmark"), f->o.benchmark_json, r, err));
    TP_TRY(tell_github(f, r, err));
    if (!with_history || f->o.no_history)
        return TP_OK;
    if (!tp_bench_history_path(f->o.history, path)) {
        tp_bench_note(f, "no place for the history: HOME is not set; --history FILE names one");
        return TP_OK;
    }
    return tp_history_record(path, r, err);
}
