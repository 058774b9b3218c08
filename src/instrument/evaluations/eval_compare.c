/* eval_compare.c - evaluations read back from files, summed up or paired question by question. */
#include "instrument/evaluations/eval_compare.h"

#include <math.h>
#include <string.h>

#include "base/output.h"
#include "base/strings.h"
#include "instrument/evaluations/eval_read.h"
#include "instrument/evaluations/validation_read.h"

enum { SHOWN_IDS = 5 };

/* ---- pairing ---- */

static void add_id(tp_buf *list, size_t *count, const char *id)
{
    if (++*count <= SHOWN_IDS)
        tp_buf_addf(list, "%s%s", *count > 1 ? ", " : "", id);
    else if (*count == SHOWN_IDS + 1)
        tp_buf_adds(list, " ...");
}

typedef struct {
    tp_buf only_a, only_b, different;
    size_t n_only_a, n_only_b, n_different;
} mismatch;

static void find_mismatch(const tp_eval_file *a, const tp_eval_file *b, mismatch *m)
{
    size_t i = 0, j = 0;
    while (i < a->n || j < b->n) {
        int order = i == a->n ? 1 : j == b->n ? -1 : strcmp(a->prompts[i].id, b->prompts[j].id);
        if (order < 0) {
            add_id(&m->only_a, &m->n_only_a, a->prompts[i++].id);
        } else if (order > 0) {
            add_id(&m->only_b, &m->n_only_b, b->prompts[j++].id);
        } else {
            const char *p = a->prompts[i].question, *q = b->prompts[j].question;
            if (p && q && strcmp(p, q) != 0)
                add_id(&m->different, &m->n_different, a->prompts[i].id);
            i++;
            j++;
        }
    }
}

/* The ids that one side has and the other has not, and those whose question differs. */
static tp_status check_pairs(const tp_eval_file *a, const tp_eval_file *b, tp_error *err)
{
    mismatch m = {0};
    tp_status status = TP_OK;
    find_mismatch(a, b, &m);
    if (m.n_only_a || m.n_only_b)
        status =
            tp_fail(err, TP_ERR_CONFIG,
                    "the evaluations do not ask the same questions: %zu only in '%s' (%s), %zu "
                    "only in '%s' (%s); evaluate both models on the same data",
                    m.n_only_a, a->path, m.n_only_a ? tp_buf_str(&m.only_a) : "none", m.n_only_b,
                    b->path, m.n_only_b ? tp_buf_str(&m.only_b) : "none");
    else if (m.n_different)
        status = tp_fail(err, TP_ERR_CONFIG,
                         "%zu prompts have the same id and another wording in '%s' and '%s': %s; "
                         "evaluate both models on the same data with the same template",
                         m.n_different, a->path, b->path, tp_buf_str(&m.different));
    tp_buf_release(&m.only_a);
    tp_buf_release(&m.only_b);
    tp_buf_release(&m.different);
    return status;
}

/* ---- text ---- */

static void add_estimate(tp_buf *out, const char *name, const tp_eval_estimate *e, size_t n_prompts)
{
    char value[32], lo[32], hi[32];
    tp_buf_addf(out, "   %-12s %s", name, tp_eval_share(e->value, value));
    if (!isnan(e->lo))
        tp_buf_addf(out, "  (%s .. %s)", tp_eval_share(e->lo, lo), tp_eval_share(e->hi, hi));
    else if (e->why || e->why_ci)
        tp_buf_addf(out, "  (%s)", e->why ? e->why : e->why_ci);
    if (!e->why && e->n_prompts < n_prompts)
        tp_buf_addf(out, "  of %zu prompt%s only", e->n_prompts, tp_plural((uint64_t)e->n_prompts));
    tp_buf_addf(out, "\n");
}

static void add_file(const char *title, const tp_eval_file *f, const tp_eval_summary *s,
                     tp_buf *out)
{
    char name[32];
    tp_buf_addf(out, "%s%s: %s%s%s, %zu prompt%s, %lld answer%s", title, f->path, f->format,
                f->model ? ", " : "", f->model ? f->model : "", s->n_prompts,
                tp_plural((uint64_t)s->n_prompts), (long long)s->n_samples,
                tp_plural((uint64_t)s->n_samples));
    if (s->n_questions && s->n_questions < s->n_prompts)
        tp_buf_addf(out, " to %zu different questions", s->n_questions);
    if (s->n_excluded)
        tp_buf_addf(out, ", %lld left out", (long long)s->n_excluded);
    tp_buf_addf(out, "\n");
    for (size_t i = 0; i < s->n_k; i++) {
        snprintf(name, sizeof name, "pass@%lld", (long long)s->k[i]);
        add_estimate(out, name, &s->pass[i], s->n_prompts);
    }
    if (!isnan(s->majority.value))
        add_estimate(out, "majority", &s->majority, s->n_prompts);
    add_estimate(out, "mean reward", &s->reward, s->n_prompts);
}

static const char *with_sign(double v, char out[32])
{
    out[0] = '+';
    tp_human_value(v, 4, signbit(v) ? out : out + 1);
    return out;
}

static void add_paired(const tp_eval_paired *r, tp_buf *out)
{
    char p[32], lo[32], hi[32];
    tp_buf_addf(out, "\nB - A, paired by prompt over %zu prompts", r->n_prompts);
    if (r->n_left_out)
        tp_buf_addf(out, " (%zu without a verdict on one side)", r->n_left_out);
    if (r->n_questions < r->n_prompts)
        tp_buf_addf(out, ", %zu different questions", r->n_questions);
    tp_buf_addf(out, "\n   pass@1       %+.4f", r->difference);
    if (!isnan(r->lo))
        tp_buf_addf(out, "  %g%% interval %+.4f .. %+.4f", 100 * r->level, r->lo, r->hi);
    tp_buf_addf(out, "  p = %s (%s): %s\n", tp_eval_p(r->p, p), r->test,
                tp_change_name(r->verdict));
    if (isfinite(r->reward_difference))
        tp_buf_addf(out, "   mean reward  %s", with_sign(r->reward_difference, lo));
    else
        tp_buf_adds(out, "   mean reward  unknown, differences are more than a number holds;");
    if (isfinite(r->reward_difference) && !isnan(r->reward_lo))
        tp_buf_addf(out, "  %g%% interval %s .. %s", 100 * r->level, with_sign(r->reward_lo, lo),
                    with_sign(r->reward_hi, hi));
    tp_buf_addf(out, "  p = %s: %s\n", tp_eval_p(r->reward_p, p),
                tp_change_name(r->reward_verdict));
    tp_buf_addf(out, "   B is better on %zu prompt%s, A on %zu, equal on %zu\n", r->only_b,
                tp_plural((uint64_t)r->only_b), r->only_a, r->ties);
    if (r->why)
        tp_buf_addf(out, "   %s\n", r->why);
    else if (r->verdict == TP_CHANGE_NOT_SHOWN && r->reward_verdict == TP_CHANGE_NOT_SHOWN)
        tp_buf_addf(out,
                    "   No difference is shown at this level; that is not the same as none.\n");
}

/* ---- JSON ---- */

static void write_file(tp_json_w *w, const char *key, const tp_eval_file *f,
                       const tp_eval_summary *s)
{
    if (key)
        tp_json_w_put_begin(w, key, '{');
    tp_json_w_put_str(w, "file", f->path);
    tp_json_w_put_str(w, "format", f->format);
    tp_json_w_put_str(w, "model", f->model);
    tp_eval_summary_json(s, w);
    if (key)
        tp_json_w_end(w, '}');
}

static void write_both(tp_json_w *w, const char *const names[2], const tp_eval_file *files,
                       const tp_eval_summary *sums, const tp_eval_paired *r)
{
    for (int i = 0; i < 2; i++)
        write_file(w, names[i], &files[i], &sums[i]);
    tp_json_w_put_begin(w, "paired", '{');
    tp_eval_paired_json(r, w);
    tp_json_w_end(w, '}');
}

static tp_status write_report(const char *path, const tp_eval_file *files,
                              const tp_eval_summary *sums, const tp_eval_paired *r, tp_error *err)
{
    static const char *const names[2] = {"before", "after"};
    TP_OWN(tp_buf) out = {0};
    tp_json_w w = tp_json_w_open(&out, 2, '{');
    tp_json_w_put_begin(&w, "eval", '{');
    write_both(&w, names, files, sums, r);
    tp_json_w_end(&w, '}');
    tp_json_w_close(&w, '}');
    return tp_output_put(path, out.data, out.len, err);
}

/* r: NULL: one file */
static void add_json(const tp_eval_file *files, const tp_eval_summary *sums,
                     const tp_eval_paired *r, tp_buf *out)
{
    static const char *const names[2] = {"a", "b"};
    tp_json_w w = tp_json_w_open(out, 2, '{');
    if (r)
        write_both(&w, names, files, sums, r);
    else
        write_file(&w, NULL, &files[0], &sums[0]);
    tp_json_w_close(&w, '}');
}

/* ---- all of it ---- */

static tp_status read_and_sum(const char *path, const tp_evaluation_file_options *o,
                              tp_eval_file *f, tp_eval_summary *s, tp_error *err)
{
    TP_TRY(tp_eval_file_read(path, o->threshold, f, err));
    return tp_eval_summarize(f->prompts, f->n, f->k, f->n_k, o->level, s, err);
}

static void add_summary(const tp_eval_file *f, const tp_eval_summary *s, tp_buf *out)
{
    char any[32], sum[32];
    add_file("", f, s, out);
    tp_buf_addf(out,
                "   intervals: %g%%, clustered by prompt\n"
                "   in NeMo RL's conventions: validation pass_k = %s (any reward above 0), "
                "eval_pass_k() = %s (the sum of pass@%lld, with the sum of rewards)\n",
                100 * s->level, tp_eval_share(s->any_rewarded, any),
                tp_eval_share(s->pass_sum, sum), (long long)s->k[0]);
}

static tp_status summarize_run(const char *path, const tp_evaluation_file_options *o, tp_buf *out,
                               tp_error *err)
{
    TP_OWN(tp_validations) v = {0};
    TP_TRY(tp_validations_read(path, o->level, &v, err));
    (o->json ? tp_validations_json : tp_validations_text)(path, &v, o->level, out);
    return TP_OK;
}

tp_status tp_eval_summarize_path(const char *path, const tp_evaluation_file_options *o, tp_buf *out,
                                 tp_error *err)
{
    TP_OWN(tp_eval_file) f = {0};
    tp_eval_summary s;
    if (tp_validations_are_in(path))
        return summarize_run(path, o, out, err);
    tp_status status = read_and_sum(path, o, &f, &s, err);
    if (status == TP_OK && o->json)
        add_json(&f, &s, NULL, out);
    else if (status == TP_OK)
        add_summary(&f, &s, out);
    return status;
}

static tp_status compare(const char *const paths[2], const tp_evaluation_file_options *o,
                         tp_eval_file files[2], tp_buf *out, tp_error *err)
{
    tp_eval_summary sums[2];
    tp_eval_paired r;
    for (int i = 0; i < 2; i++)
        TP_TRY(read_and_sum(paths[i], o, &files[i], &sums[i], err));
    TP_TRY(check_pairs(&files[0], &files[1], err));
    TP_TRY(
        tp_eval_compare_prompts(files[0].prompts, files[1].prompts, files[0].n, o->level, &r, err));
    if (o->json) {
        add_json(files, sums, &r, out);
    } else {
        add_file("A  ", &files[0], &sums[0], out);
        add_file("B  ", &files[1], &sums[1], out);
        add_paired(&r, out);
    }
    if (o->worse)
        *o->worse = r.verdict == TP_CHANGE_WORSE || r.reward_verdict == TP_CHANGE_WORSE;
    return o->report ? write_report(o->report, files, sums, &r, err) : TP_OK;
}

tp_status tp_eval_compare_files(const char *a, const char *b, const tp_evaluation_file_options *o,
                                tp_buf *out, tp_error *err)
{
    tp_eval_file files[2] = {{0}, {0}};
    const char *const paths[2] = {a, b};
    tp_status status = compare(paths, o, files, out, err);
    for (int i = 0; i < 2; i++)
        tp_eval_file_release(&files[i]);
    return status;
}
