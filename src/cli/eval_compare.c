#include "cli/eval_compare.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "cli/cli.h"
#include "cli/eval_report.h"

enum { MAX_BYTES = 1 << 30, SHOWN_IDS = 5 };

/* One file. */
typedef struct {
    const char *path, *model, *data;
    tp_buf text;
    tp_arena arena;
    tp_eval_prompt *prompts;
    const char **questions;
    size_t n;
} side;

/* ---- reading ---- */

static tp_status fail_prompt(const side *s, size_t i, const tp_json *at, const char *what,
                             tp_error *err)
{
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s:%u: prompt %zu %s; 'temper eval --out FILE' writes such "
                   "files",
                   s->path, at->line, i, what);
}

static tp_status read_prompt(side *s, size_t i, const tp_json *v, tp_error *err)
{
    tp_eval_prompt *p = &s->prompts[i];
    double mean;
    p->id = tp_json_str(tp_json_get(v, "id"));
    s->questions[i] = tp_json_str(tp_json_get(v, "prompt"));
    if (!p->id)
        return fail_prompt(s, i, v, "has no \"id\"", err);
    if (!tp_json_i64(tp_json_get(v, "n"), &p->n) ||
        !tp_json_i64(tp_json_get(v, "correct"), &p->correct) || p->n < 0 || p->correct < 0 ||
        p->correct > p->n)
        return fail_prompt(s, i, v, "has no \"n\" with at most as many \"correct\"", err);
    if (!tp_json_i64(tp_json_get(v, "excluded"), &p->excluded))
        p->excluded = 0;
    if (tp_json_f64(tp_json_get(v, "mean_reward"), &mean) && isfinite(mean))
        p->reward_sum = mean * (double)p->n;
    else if (p->n > 0)
        return fail_prompt(s, i, v, "has verdicts and no \"mean_reward\"", err);
    if (!tp_json_f64(tp_json_get(v, "majority"), &p->majority))
        p->majority = NAN;
    return TP_OK;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const tp_eval_prompt *)a)->id, ((const tp_eval_prompt *)b)->id);
}

/* Sorted by id, questions along: the id's pointer leads back to its question. */
static void sort_prompts(side *s)
{
    struct {
        tp_eval_prompt p;
        const char *question;
    } *both = calloc(s->n + 1, sizeof *both);
    TP_ASSERT(both);
    for (size_t i = 0; i < s->n; i++) {
        both[i].p = s->prompts[i];
        both[i].question = s->questions[i];
    }
    qsort(both, s->n, sizeof *both, by_id); /* a prompt comes first in the struct */
    for (size_t i = 0; i < s->n; i++) {
        s->prompts[i] = both[i].p;
        s->questions[i] = both[i].question;
    }
    free(both);
}

static tp_status read_side(side *s, tp_error *err)
{
    const tp_json *root;
    TP_TRY(tp_file_read(s->path, MAX_BYTES, &s->text, err));
    TP_TRY(tp_arena_init(&s->arena, 64 * s->text.len + (1 << 20), err));
    TP_TRY(tp_json_parse(&s->arena, s->path, tp_buf_str(&s->text), s->text.len, NULL, &root, err));
    const char *kind = tp_json_str(tp_json_get(root, "kind"));
    const tp_json *prompts = tp_json_get(root, "prompts");
    if (!kind || strcmp(kind, "temper-eval") != 0 || !prompts || prompts->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' is no evaluation; 'temper eval --out FILE' writes one", s->path);
    s->model = tp_json_str(tp_json_get(root, "model"));
    s->data = tp_json_str(tp_json_get(root, "data"));
    s->prompts = calloc(prompts->n + 1, sizeof *s->prompts);
    s->questions = calloc(prompts->n + 1, sizeof *s->questions);
    TP_ASSERT(s->prompts && s->questions);
    for (const tp_json *v = prompts->child; v; v = v->next, s->n++)
        TP_TRY(read_prompt(s, s->n, v, err));
    sort_prompts(s);
    for (size_t i = 1; i < s->n; i++)
        if (strcmp(s->prompts[i - 1].id, s->prompts[i].id) == 0)
            return tp_fail(err, TP_ERR_FORMAT, "'%s': the prompt %s is there twice", s->path,
                           s->prompts[i].id);
    return TP_OK;
}

static void close_side(side *s)
{
    tp_buf_release(&s->text);
    tp_arena_release(&s->arena);
    free(s->prompts);
    free(s->questions);
}

/* ---- pairing ---- */

static void add_id(tp_buf *list, size_t *count, const char *id)
{
    if (++*count <= SHOWN_IDS)
        tp_buf_addf(list, "%s%s", *count > 1 ? ", " : "", id);
    else if (*count == SHOWN_IDS + 1)
        tp_buf_adds(list, " ...");
}

/* The ids that one side has and the other has not, and those whose question differs. */
static tp_status check_pairs(const side *a, const side *b, tp_error *err)
{
    tp_buf lists[3] = {{0}, {0}, {0}}; /* only a, only b, different */
    size_t counts[3] = {0}, i = 0, j = 0;
    while (i < a->n || j < b->n) {
        int order = i == a->n ? 1 : j == b->n ? -1 : strcmp(a->prompts[i].id, b->prompts[j].id);
        if (order < 0) {
            add_id(&lists[0], &counts[0], a->prompts[i++].id);
        } else if (order > 0) {
            add_id(&lists[1], &counts[1], b->prompts[j++].id);
        } else {
            const char *p = a->questions[i], *q = b->questions[j];
            if (p && q && strcmp(p, q) != 0)
                add_id(&lists[2], &counts[2], a->prompts[i].id);
            i++;
            j++;
        }
    }
    tp_status status = TP_OK;
    if (counts[0] || counts[1])
        status =
            tp_fail(err, TP_ERR_CONFIG,
                    "the evaluations do not ask the same questions: %zu only in '%s' (%s), %zu "
                    "only in '%s' (%s); evaluate both models on the same data",
                    counts[0], a->path, counts[0] ? tp_buf_str(&lists[0]) : "none", counts[1],
                    b->path, counts[1] ? tp_buf_str(&lists[1]) : "none");
    else if (counts[2])
        status = tp_fail(err, TP_ERR_CONFIG,
                         "%zu prompts have the same id and another wording in '%s' and '%s': %s; "
                         "evaluate both models on the same data with the same template",
                         counts[2], a->path, b->path, tp_buf_str(&lists[2]));
    for (int k = 0; k < 3; k++)
        tp_buf_release(&lists[k]);
    return status;
}

/* ---- showing ---- */

static void print_side(char letter, const side *s, const tp_eval_summary *e)
{
    char value[32], lo[32], hi[32];
    printf("%c  %s: %s\n   pass@1 %s", letter, s->path, s->model ? s->model : "unknown model",
           tp_eval_share(e->pass[0].value, value));
    if (!isnan(e->pass[0].lo))
        printf("  (%s .. %s)", tp_eval_share(e->pass[0].lo, lo), tp_eval_share(e->pass[0].hi, hi));
    printf(", %zu prompts, %lld answers", e->n_prompts, (long long)e->n_samples);
    if (e->n_excluded)
        printf(", %lld left out", (long long)e->n_excluded);
    printf("\n");
}

static void print_text(const side *a, const side *b, const tp_eval_summary sums[2],
                       const tp_eval_paired *r)
{
    char p[32];
    print_side('A', a, &sums[0]);
    print_side('B', b, &sums[1]);
    printf("\nB - A, paired by prompt over %zu prompts", r->n_prompts);
    if (r->n_left_out)
        printf(" (%zu without a verdict on one side)", r->n_left_out);
    printf("\n  pass@1       %+.4f", r->difference);
    if (!isnan(r->lo))
        printf("   %g%% interval %+.4f .. %+.4f", 100 * r->level, r->lo, r->hi);
    printf("   p = %s (%s)\n", tp_eval_p(r->p, p), r->test);
    printf("  mean reward  %+.4f", r->reward_difference);
    if (!isnan(r->reward_lo))
        printf("   %g%% interval %+.4f .. %+.4f", 100 * r->level, r->reward_lo, r->reward_hi);
    printf("   p = %s\n", tp_eval_p(r->reward_p, p));
    printf("  B is better on %zu prompts, A on %zu, equal on %zu\n", r->only_b, r->only_a, r->ties);
    if (r->why)
        printf("  %s\n", r->why);
    else if (r->p >= 1 - r->level)
        printf("  No difference is shown at this level; that is not the same as none.\n");
}

static void write_side(tp_json_w *w, const char *key, const side *s, const tp_eval_summary *e)
{
    tp_json_w_key(w, key);
    tp_json_w_begin(w, '{');
    tp_json_w_key(w, "file");
    tp_json_w_str(w, s->path);
    tp_json_w_key(w, "model");
    tp_json_w_str(w, s->model);
    tp_eval_summary_json(e, w);
    tp_json_w_end(w, '}');
}

static void print_json(const side *a, const side *b, const tp_eval_summary sums[2],
                       const tp_eval_paired *r)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 2);
    tp_json_w_begin(&w, '{');
    write_side(&w, "a", a, &sums[0]);
    write_side(&w, "b", b, &sums[1]);
    tp_json_w_key(&w, "paired");
    tp_json_w_begin(&w, '{');
    tp_eval_paired_json(r, &w);
    tp_json_w_end(&w, '}');
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    tp_buf_release(&out);
}

static tp_status compare(side *a, side *b, double level, bool json, tp_error *err)
{
    const int64_t k = 1;
    tp_eval_summary sums[2];
    tp_eval_paired r;
    TP_TRY(read_side(a, err));
    TP_TRY(read_side(b, err));
    TP_TRY(check_pairs(a, b, err));
    TP_TRY(tp_eval_summarize(a->prompts, a->n, &k, 1, level, &sums[0], err));
    TP_TRY(tp_eval_summarize(b->prompts, b->n, &k, 1, level, &sums[1], err));
    TP_TRY(tp_eval_compare_prompts(a->prompts, b->prompts, a->n, level, &r, err));
    if (json)
        print_json(a, b, sums, &r);
    else
        print_text(a, b, sums, &r);
    return TP_OK;
}

int tp_eval_compare_files(const char *a, const char *b, double level, bool json)
{
    tp_error err = {0};
    side sides[2] = {{.path = a}, {.path = b}};
    tp_status status = compare(&sides[0], &sides[1], level, json, &err);
    close_side(&sides[0]);
    close_side(&sides[1]);
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}
