/* cmd_stats.c - `temper stats`: columns chosen from a file, and what is asked of them. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "cli/cli.h"
#include "instrument/report/grid.h"
#include "instrument/report/stats_text.h"
#include "cli/waiting.h"
#include "stats/answer.h"
#include "stats/dataset.h"
#include "text/json/json.h"

typedef struct {
    bool json, paired, trend, equal_var, lower, higher, time;
    double alpha, margin, effect, n, power;
    int64_t seed, resamples, sides;
    const char *by, *at, *share;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "everything, as JSON; a JSON object asks as docs/guide says"),
    TP_SWITCH("paired", 0, paired, "rows are pairs: same seed, same prompt, same round"),
    TP_SWITCH("trend", 0, trend, "the column is a series: trend, change points, decay"),
    TP_TEXT("by", 0, "COLUMN", by, "groups are the words of this column"),
    TP_TEXT("at", 0, "COLUMN", at, "with --trend: the places of the values (default 0, 1, 2, ...)"),
    TP_NUMBER("alpha", 0, "A", FLOAT, alpha, 1e-9, 0.5,
              "error allowed; intervals have level 1 - A (default 0.05)"),
    TP_SWITCH("equal-var", 0, equal_var, "Student's t instead of Welch's"),
    TP_SWITCH("lower-is-better", 0, lower, "say better and worse"),
    TP_SWITCH("higher-is-better", 0, higher, "the same, the other way round"),
    TP_SWITCH("time", 0, time, "the values are times: say slower and faster"),
    TP_NUMBER("margin", 0, "PERCENT", FLOAT, margin, 1e-6, 1000,
              "also test that the difference is within so much of the first column's mean"),
    TP_NUMBER("resamples", 0, "N", INT, resamples, 100, 10000000,
              "of bootstraps (default 9999, fewer of many values)"),
    TP_NUMBER("seed", 's', "N", INT, seed, 0, 9e15, "of all that is random (default 1)"),
    TP_TEXT("share", 0, "X/N[,X/N]", share, "successes of trials, one share or two; no file"),
    TP_NUMBER("effect", 0, "D", FLOAT, effect, 1e-9, 1e9,
              "plan: difference divided by the standard deviation"),
    TP_NUMBER("n", 0, "N", FLOAT, n, 2, 1e12, "plan: values per group, or pairs with --paired"),
    TP_NUMBER("power", 0, "P", FLOAT, power, 0.001, 0.999999,
              "plan: chance to show the effect (default 0.8 where it is not asked for)"),
    TP_NUMBER("sides", 0, "S", INT, sides, 1, 2, "plan: 1 or 2 (default)"),
    {0}};

enum { MAX_BYTES = 1 << 30 };

/* ---- JSON ---- */

static tp_answer_options answer_options(const flags *f)
{
    tp_answer_options o = TP_ANSWER_DEFAULTS;
    o.level = 1 - f->alpha;
    o.seed = (uint64_t)f->seed;
    o.paired = f->paired;
    if (f->resamples)
        o.n_resamples = (size_t)f->resamples;
    return o;
}

static tp_status answer(const flags *f, const char *name, const char *text, size_t n, tp_error *err)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_answer_options o = answer_options(f);
    tp_json_w_init(&w, &out, 2);
    tp_waiting_begin("temper stats: computing");
    tp_status status = tp_answer_text(name, text, n, &o, &w, err);
    tp_waiting_end();
    if (status == TP_OK)
        puts(tp_buf_str(&out));
    tp_buf_release(&out);
    return status;
}

/* Whether the text is one JSON object that asks for itself. */
static bool asks(const char *name, const tp_buf *text)
{
    tp_arena arena;
    const tp_json *root;
    const char *first = tp_buf_str(text);
    while (*first && strchr(" \t\r\n", *first))
        first++;
    if (*first != '{' || tp_arena_init(&arena, 96 * text->len + 65536, NULL) != TP_OK)
        return false;
    bool known = tp_json_parse(&arena, name, text->data, text->len, NULL, &root, NULL) == TP_OK &&
                 tp_answer_knows(root);
    tp_arena_release(&arena);
    return known;
}

static void put_array(tp_json_w *w, const char *key, const tp_stats_column *c)
{
    if (key)
        tp_json_w_key(w, key);
    tp_json_w_begin(w, '[');
    for (size_t i = 0; i < c->n; i++)
        tp_json_w_f64(w, c->x[i]);
    tp_json_w_end(w, ']');
}

/* ---- columns ---- */

typedef struct {
    tp_stats_column c[TP_DATASET_MAX_COLUMNS];
    double *owned[TP_DATASET_MAX_COLUMNS];
    size_t n;
    tp_stats_column at; /* of a series, .x NULL without */
    double *owned_at;
} selection;

static void release(selection *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->owned[i]);
    free(s->owned_at);
    free(s);
}

static tp_status find(const tp_stats_dataset *data, const char *word, const tp_column **ret,
                      tp_error *err)
{
    tp_nearest near = {.word = word};
    tp_buf names = {0};
    *ret = tp_dataset_find(data, word);
    if (*ret)
        return TP_OK;
    for (size_t i = 0; i < data->n_columns; i++) {
        tp_nearest_offer(&near, data->columns[i].name);
        if (i < 8)
            tp_buf_addf(&names, "%s%.30s", i ? ", " : "", data->columns[i].name);
    }
    tp_status status =
        tp_fail(err, TP_ERR_CONFIG, "%s has no column '%.40s'%s%.40s%s; there are: %.160s%s",
                data->name, word, near.best ? "; did you mean '" : "", near.best ? near.best : "",
                near.best ? "'" : "", tp_buf_str(&names), data->n_columns > 8 ? ", ..." : "");
    tp_buf_release(&names);
    return status;
}

static tp_status add(selection *s, const tp_stats_dataset *data, const tp_column *column,
                     tp_error *err)
{
    tp_stats_column *c = &s->c[s->n];
    TP_TRY(tp_dataset_numbers(data, column, &s->owned[s->n], &c->n, &c->n_missing, err));
    c->name = column->name;
    c->x = s->owned[s->n++];
    return TP_OK;
}

/* One group for every word of column `by`. */
static tp_status split(selection *s, const tp_stats_dataset *data, const tp_column *by,
                       const tp_column *value, tp_error *err)
{
    if (!by->is_label)
        return tp_fail(err, TP_ERR_CONFIG, "column '%.60s' holds numbers; --by wants words",
                       by->name);
    double *unused;
    size_t n, n_missing;
    TP_TRY(tp_dataset_numbers(data, value, &unused, &n, &n_missing, err));
    free(unused);
    size_t rows = value->n < by->n ? value->n : by->n;
    for (size_t g = 0; g < by->n_labels; g++) {
        double *x = malloc((rows + 1) * sizeof *x);
        if (!x)
            return tp_fail(err, TP_ERR_NOMEM, "no memory for the groups of '%.60s'", by->name);
        n = 0;
        for (size_t i = 0; i < rows; i++)
            if (by->values[i] == (double)g && !isnan(value->values[i]))
                x[n++] = value->values[i];
        s->owned[s->n] = x;
        s->c[s->n++] = (tp_stats_column){.name = by->labels[g], .x = x, .n = n};
    }
    return TP_OK;
}

static tp_status select_pair(selection *s, const tp_stats_dataset *data, const tp_column *a,
                             const tp_column *b, tp_error *err)
{
    size_t n, dropped;
    TP_TRY(tp_dataset_pairs(data, a, b, &s->owned[0], &s->owned[1], &n, &dropped, err));
    s->n = 2;
    s->c[0] = (tp_stats_column){a->name, s->owned[0], n, dropped};
    s->c[1] = (tp_stats_column){b->name, s->owned[1], n, dropped};
    return TP_OK;
}

static tp_status select_series(selection *s, const tp_stats_dataset *data, const flags *f,
                               const tp_column *y, tp_error *err)
{
    const tp_column *at;
    size_t n, dropped;
    if (!f->at)
        return add(s, data, y, err);
    TP_TRY(find(data, f->at, &at, err));
    TP_TRY(tp_dataset_pairs(data, at, y, &s->owned_at, &s->owned[0], &n, &dropped, err));
    s->n = 1;
    s->at = (tp_stats_column){at->name, s->owned_at, n, 0};
    s->c[0] = (tp_stats_column){y->name, s->owned[0], n, dropped};
    return TP_OK;
}

/* The columns named, or all that hold numbers. */
static tp_status choose(const tp_stats_dataset *data, char **words, int n_words,
                        const tp_column **ret, size_t *n, tp_error *err)
{
    *n = 0;
    if (n_words > TP_DATASET_MAX_COLUMNS)
        return tp_fail(err, TP_ERR_CONFIG, "%d columns; at most %d", n_words,
                       TP_DATASET_MAX_COLUMNS);
    for (int i = 0; i < n_words; i++)
        TP_TRY(find(data, words[i], &ret[(*n)++], err));
    for (size_t i = 0; n_words == 0 && i < data->n_columns; i++)
        if (!data->columns[i].is_label)
            ret[(*n)++] = &data->columns[i];
    if (*n == 0)
        return tp_fail(err, TP_ERR_FORMAT, "%s has no column of numbers", data->name);
    return TP_OK;
}

static tp_status select_columns(const flags *f, const tp_stats_dataset *data, char **words,
                                int n_words, selection *s, tp_error *err)
{
    const tp_column *chosen[TP_DATASET_MAX_COLUMNS], *by = NULL;
    size_t n;
    TP_TRY(choose(data, words, n_words, chosen, &n, err));
    if (f->by)
        TP_TRY(find(data, f->by, &by, err));
    if ((by || f->trend) && n != 1)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s has %zu columns of numbers; --%s takes one: name it after the file",
                       data->name, n, by ? "by" : "trend");
    if (f->paired && n != 2)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s has %zu columns of numbers; --paired takes two: name them after the "
                       "file",
                       data->name, n);
    if (by)
        return split(s, data, by, chosen[0], err);
    if (f->trend)
        return select_series(s, data, f, chosen[0], err);
    if (f->paired)
        return select_pair(s, data, chosen[0], chosen[1], err);
    for (size_t i = 0; i < n; i++)
        TP_TRY(add(s, data, chosen[i], err));
    return TP_OK;
}

/* ---- answers about columns ---- */

/* A question in the form that tp_answer() takes: x is judged against y. */
static tp_status print_json(const flags *f, const char *name, const selection *s, tp_error *err)
{
    tp_buf text = {0};
    tp_json_w w;
    const char *kind = f->trend    ? "series"
                       : s->n > 2  ? "groups"
                       : s->n < 2  ? "one"
                       : f->paired ? "paired"
                                   : "two";
    tp_json_w_init(&w, &text, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_str(&w, "kind", kind);
    if (f->resamples)
        tp_json_w_put_i64(&w, "B", f->resamples);
    tp_json_w_key(&w, "names");
    bool is_two = s->n == 2;
    if (is_two) {
        tp_json_w_begin(&w, '{');
        for (int i = 0; i < 2; i++)
            tp_json_w_put_str(&w, i ? "y" : "x", s->c[1 - i].name);
        tp_json_w_end(&w, '}');
        put_array(&w, "x", &s->c[1]);
        put_array(&w, "y", &s->c[0]);
    } else {
        tp_json_w_begin(&w, '[');
        for (size_t i = 0; i < s->n; i++)
            tp_json_w_str(&w, s->c[i].name);
        tp_json_w_end(&w, ']');
    }
    if (s->at.x)
        put_array(&w, "x", &s->at);
    if (s->n == 1)
        put_array(&w, f->trend ? "y" : "data", &s->c[0]);
    if (s->n > 2) {
        tp_json_w_put_begin(&w, "groups", '[');
        for (size_t i = 0; i < s->n; i++)
            put_array(&w, NULL, &s->c[i]);
        tp_json_w_end(&w, ']');
    }
    tp_json_w_end(&w, '}');
    tp_status status = answer(f, name, text.data, text.len, err);
    tp_buf_release(&text);
    return status;
}

static tp_stats_style style_of(const flags *f)
{
    return (tp_stats_style){.level = 1 - f->alpha,
                            .seed = (uint64_t)f->seed,
                            .n_resamples = (size_t)f->resamples,
                            .equal_variances = f->equal_var,
                            .words = f->time     ? TP_WORDS_TIME
                                     : f->lower  ? TP_WORDS_LOWER
                                     : f->higher ? TP_WORDS_HIGHER
                                                 : TP_WORDS_PLAIN,
                            .margin = f->margin / 100,
                            .bold = tp_cli_colour(stdout)};
}

static tp_status print_text(const flags *f, const selection *s, tp_error *err)
{
    tp_buf out = {0};
    tp_stats_style style = style_of(f);
    tp_status status;
    tp_waiting_begin(f->trend ? "temper stats: looking for the trend" : "temper stats: resampling");
    if (f->trend)
        status = tp_stats_text_series(&style, s->at.x ? &s->at : NULL, &s->c[0], &out, err);
    else if (f->paired)
        status = tp_stats_text_paired(&style, &s->c[0], &s->c[1], &out, err);
    else if (s->n == 1)
        status = tp_stats_text_one(&style, &s->c[0], &out, err);
    else if (s->n == 2)
        status = tp_stats_text_two(&style, &s->c[0], &s->c[1], &out, err);
    else
        status = tp_stats_text_groups(&style, s->c, s->n, &out, err);
    tp_waiting_end();
    if (status == TP_OK)
        fputs(tp_buf_str(&out), stdout);
    tp_buf_release(&out);
    return status;
}

/* Columns of records are different things, as step, time and loss: none is compared unless named.
 */
static tp_status list_columns(const flags *f, const tp_stats_dataset *data, tp_error *err)
{
    tp_grid g = {.name = "columns"};
    tp_buf out = {0};
    tp_status status = TP_OK;
    tp_grid_column(&g, "name", "column", TP_CELL_TEXT);
    tp_grid_column(&g, "n", "n", TP_CELL_COUNT);
    tp_grid_column(&g, "mean", "mean", TP_CELL_REAL);
    tp_grid_column(&g, "min", "least", TP_CELL_REAL);
    tp_grid_column(&g, "max", "most", TP_CELL_REAL);
    for (size_t i = 0; i < data->n_columns && status == TP_OK; i++) {
        const tp_column *column = &data->columns[i];
        tp_description d = {.mean = NAN, .min = NAN, .max = NAN};
        double *x = NULL;
        size_t n = 0, n_missing;
        if (column->is_label)
            continue;
        if (tp_dataset_numbers(data, column, &x, &n, &n_missing, NULL) == TP_OK && n > 0)
            status = tp_describe(x, n, 1 - f->alpha, &d, err);
        free(x);
        tp_grid_text(&g, column->name);
        tp_grid_int(&g, (int64_t)n);
        tp_grid_real(&g, d.mean);
        tp_grid_real(&g, d.min);
        tp_grid_real(&g, d.max);
    }
    if (status == TP_OK && f->json) {
        tp_json_w w;
        tp_json_w_init(&w, &out, 2);
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "file", data->name);
        tp_json_w_key(&w, g.name);
        tp_grid_json(&g, &w);
        tp_json_w_end(&w, '}');
        tp_buf_addc(&out, '\n');
    } else if (status == TP_OK) {
        tp_buf_addf(&out,
                    "%s: %zu columns of numbers.  Name one to describe it, two to compare them, "
                    "more for groups:\n  temper stats %s COLUMN [--trend]\n\n",
                    data->name, tp_grid_rows(&g), data->name);
        tp_grid_print(&g, 0, tp_cli_width(), &out);
    }
    fputs(tp_buf_str(&out), stdout);
    tp_buf_release(&out);
    tp_grid_release(&g);
    return status;
}

static bool wants_a_list(const flags *f, const tp_stats_dataset *data, int n_words)
{
    size_t n = 0;
    for (size_t i = 0; i < data->n_columns; i++)
        n += !data->columns[i].is_label;
    return data->is_records && n_words == 0 && n > 1 && !f->by && !f->trend && !f->paired;
}

static tp_status about_columns(const flags *f, const char *name, const tp_buf *text, char **words,
                               int n_words, tp_error *err)
{
    tp_stats_dataset data;
    TP_TRY(tp_dataset_read(name, tp_buf_str(text), text->len, &data, err));
    if (wants_a_list(f, &data, n_words)) {
        tp_status listed = list_columns(f, &data, err);
        tp_dataset_release(&data);
        return listed;
    }
    selection *s = calloc(1, sizeof *s);
    tp_status status = s ? select_columns(f, &data, words, n_words, s, err)
                         : tp_fail(err, TP_ERR_NOMEM, "no memory for the columns");
    for (size_t i = 0; status == TP_OK && i < s->n; i++)
        if (s->c[i].n == 0)
            status = tp_fail(err, TP_ERR_FORMAT, "%s: column '%.60s' holds no numbers", name,
                             s->c[i].name);
    if (status == TP_OK)
        status = f->json ? print_json(f, name, s, err) : print_text(f, s, err);
    if (s)
        release(s);
    tp_dataset_release(&data);
    return status;
}

static tp_status about_file(const flags *f, char **words, int n_words, tp_error *err)
{
    tp_buf text = {0};
    const char *name = tp_input_name(words[0], TP_INPUT_STREAM);
    tp_status status = tp_input_read(words[0], TP_INPUT_STREAM, MAX_BYTES, &text, err);
    if (status == TP_OK) {
        bool whole = n_words == 1 && !f->trend && !f->by;
        /* Without --json a data set becomes columns; a question has only one form. */
        if (f->json && whole && asks(name, &text))
            status = answer(f, name, text.data, text.len, err);
        else
            status = about_columns(f, name, &text, words + 1, n_words - 1, err);
    }
    tp_buf_release(&text);
    return status;
}

/* ---- without a file ---- */

static tp_status about_shares(const flags *f, tp_error *err)
{
    int64_t x[2], n[2];
    size_t k = 0;
    const char *at = f->share;
    tp_buf out = {0};
    tp_stats_style style = style_of(f);
    for (int used; k < 2; at += used) {
        long long a, b;
        used = 0;
        if (sscanf(at, k ? ",%lld/%lld%n" : "%lld/%lld%n", &a, &b, &used) != 2 || !used)
            break;
        x[k] = a;
        n[k++] = b;
    }
    if (k == 0 || *at)
        return tp_fail(err, TP_ERR_CONFIG,
                       "--share takes successes/trials, as 56/70 or 56/70,48/80, not '%.60s'",
                       f->share);
    if (f->json) {
        char text[200];
        if (k == 1)
            snprintf(text, sizeof text, "{\"x\": %lld, \"n\": %lld}", (long long)x[0],
                     (long long)n[0]);
        else
            snprintf(text, sizeof text, "{\"x1\": %lld, \"n1\": %lld, \"x2\": %lld, \"n2\": %lld}",
                     (long long)x[1], (long long)n[1], (long long)x[0], (long long)n[0]);
        return answer(f, "--share", text, strlen(text), err);
    }
    tp_status status = tp_stats_text_shares(&style, x, n, k, &out, err);
    if (status == TP_OK)
        fputs(tp_buf_str(&out), stdout);
    tp_buf_release(&out);
    return status;
}

static tp_status print_plan_json(const flags *f, const tp_stats_plan *p, tp_error *err)
{
    tp_buf text = {0};
    int sides = p->sides;
    double alpha = f->alpha;
    if (isnan(p->n))
        tp_buf_addf(&text, "{\"table\": \"%s\", \"%s\": %.17g, \"alpha\": %.17g, \"power\": %.17g",
                    p->paired ? "n_pairs_paired" : "n_per_group_two_sample", p->paired ? "dz" : "d",
                    p->effect, alpha, p->power);
    else if (isnan(p->effect) && p->paired)
        tp_buf_addf(&text,
                    "{\"table\": \"mde_dz_paired\", \"n_pairs\": %.17g, \"alpha\": %.17g, "
                    "\"power\": %.17g",
                    p->n, alpha, p->power);
    else if (isnan(p->effect))
        tp_buf_addf(&text,
                    "{\"table\": \"mde_d_two_sample\", \"n1\": %.17g, \"n2\": %.17g, "
                    "\"alpha\": %.17g, \"power\": %.17g",
                    p->n, p->n, alpha, p->power);
    else if (p->paired)
        tp_buf_addf(&text,
                    "{\"table\": \"power_t_paired_or_one_sample\", \"dz\": %.17g, \"n\": %.17g, "
                    "\"alpha\": %.17g",
                    p->effect, p->n, alpha);
    else
        tp_buf_addf(&text,
                    "{\"table\": \"power_t_two_sample\", \"d\": %.17g, \"n1\": %.17g, "
                    "\"n2\": %.17g, \"alpha\": %.17g",
                    p->effect, p->n, p->n, alpha);
    tp_buf_addf(&text, ", \"sides\": %d}", sides);
    tp_status status = answer(f, "the plan", text.data, text.len, err);
    tp_buf_release(&text);
    return status;
}

static tp_status about_plan(const flags *f, tp_error *err)
{
    tp_buf out = {0};
    tp_stats_style style = style_of(f);
    tp_stats_plan plan = {.effect = f->effect > 0 ? f->effect : NAN,
                          .n = f->n > 0 ? f->n : NAN,
                          .power = f->power > 0 ? f->power : NAN,
                          .sides = f->sides ? (int)f->sides : 2,
                          .paired = f->paired};
    if (isnan(plan.power) && isnan(plan.effect) + isnan(plan.n) == 1)
        plan.power = 0.8;
    if (f->json && isnan(plan.effect) + isnan(plan.n) + isnan(plan.power) == 1)
        return print_plan_json(f, &plan, err);
    tp_status status = tp_stats_text_plan(&style, &plan, &out, err);
    if (status == TP_OK)
        fputs(tp_buf_str(&out), stdout);
    tp_buf_release(&out);
    return status;
}

int tp_cmd_stats(int argc, char **argv)
{
    flags f = {.alpha = 0.05, .seed = 1};
    char *words[argc + 1];
    tp_error err = {0};
    const tp_usage usage = {
        .command = "stats",
        .arguments = "[FILE|- [COLUMN...]]",
        .summary = "What numbers say and how sure it is: intervals, comparisons, groups, shares, "
                   "trends, change points, sample sizes.",
        .flags = flag_table,
        .details =
            "FILE holds columns (CSV, tabs, spaces; with or without a line of names), JSON, or "
            "one JSON object per line; '-' is standard input.  One column is described; of two "
            "the second is judged against the first; more are groups; of JSON records, as "
            "metrics.jsonl, the columns are listed unless some are named.  --share and the plan "
            "(two of --effect, --n, --power) need no file.\n\n"
            "  temper stats times.csv old new --paired --time\n"
            "  temper stats scores.csv score --by model\n"
            "  temper stats runs/first/metrics.jsonl train/loss --trend\n"
            "  temper stats --share 56/70,48/80\n"
            "  temper stats --effect 0.5",
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    bool plans = f.effect > 0 || f.n > 0 || f.power > 0;
    if ((n > 0) + (f.share != NULL) + plans != 1) {
        fprintf(stderr, "temper stats: give a file, --share, or two of --effect, --n and --power; "
                        "see 'temper help stats'\n");
        return 2;
    }
    tp_status status = f.share ? about_shares(&f, &err)
                       : plans ? about_plan(&f, &err)
                               : about_file(&f, words, n, &err);
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}
