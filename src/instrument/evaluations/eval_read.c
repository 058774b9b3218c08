/* eval_read.c - results of evaluations from their file, prompt by prompt, whoever wrote it. */
#include "instrument/evaluations/eval_read.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"

enum { MAX_BYTES = 1 << 30, MAX_SAMPLES = 1 << 20, VERSION = 1, EXCERPT = 40 };

/* One of a file that names no prompts. */
typedef struct {
    const char *question;
    size_t index;
    double reward;
} answer;

TP_ORDER(by_question, answer, strcmp(x->question, y->question) ?: TP_COMPARE(x->index, y->index))

typedef struct {
    tp_eval_file *f;
    double threshold;
    size_t cap;
    answer *answers;
    size_t n_answers, answers_cap;
    tp_error *err;
} reading;

static tp_status fail(const reading *r, uint32_t line, const char *what)
{
    return tp_fail(r->err, TP_ERR_FORMAT, "%s:%u: %s", r->f->path, line, what);
}

/* ---- prompts ---- */

static tp_eval_prompt *add_prompt(reading *r, const char *id, const char *question)
{
    tp_eval_prompt *p = TP_VEC_PUSH(r->f->prompts, r->f->n, r->cap);
    *p = (tp_eval_prompt){.id = id, .question = question, .majority = NAN};
    return p;
}

static uint64_t hash_of(const char *s)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *s; s++)
        hash = (hash ^ (uint8_t)*s) * 0x100000001b3u;
    return hash;
}

/* "How many apples ...#1f3a..": an id that is the same in every file with this question. */
static const char *make_id(reading *r, const char *question)
{
    char excerpt[EXCERPT + 4];
    size_t n = 0;
    for (const char *p = question; *p && n < EXCERPT; p++)
        if ((unsigned char)*p > ' ' || n > 0)
            excerpt[n++] = (unsigned char)*p < ' ' ? ' ' : *p;
    while (n && ((unsigned char)excerpt[n - 1] & 0xc0) == 0x80)
        n--; /* no half of a character */
    excerpt[n] = 0;
    return tp_arena_printf(&r->f->arena, "%s#%08x", excerpt, (unsigned)(hash_of(question) >> 32));
}

static void add_reward(const reading *r, tp_eval_prompt *p, double reward)
{
    if (!isfinite(reward)) {
        p->excluded++;
        return;
    }
    p->n++;
    p->correct += reward >= r->threshold;
    p->n_rewarded += reward > 0;
    p->reward_sum += (long double)reward;
}

/* Answers to the same question are one prompt. */
static void group_answers(reading *r)
{
    tp_eval_prompt *p = NULL;
    if (r->n_answers)
        qsort(r->answers, r->n_answers, sizeof *r->answers, by_question);
    for (size_t i = 0; i < r->n_answers; i++) {
        const answer *a = &r->answers[i];
        if (!p || strcmp(p->question, a->question) != 0)
            p = add_prompt(r, make_id(r, a->question), a->question);
        add_reward(r, p, a->reward);
    }
}

/* ---- our own ---- */

/* The share of right answers among the most frequent; null or none: nobody answered. */
static tp_status read_majority(const reading *r, const tp_json *v, double *ret)
{
    const tp_json *majority = tp_json_get(v, "majority");
    *ret = NAN;
    if (!majority || majority->type == TP_JSON_NULL)
        return TP_OK;
    if (!tp_json_f64(majority, ret) || !(*ret >= 0 && *ret <= 1))
        return fail(r, v->line, "\"majority\" of a prompt must be between 0 and 1");
    return TP_OK;
}

static tp_status read_own_prompt(reading *r, const tp_json *v)
{
    const char *id = tp_json_str(tp_json_get(v, "id"));
    double mean;
    if (!id)
        return fail(r, v->line, "a prompt has no \"id\"");
    tp_eval_prompt *p = add_prompt(r, id, tp_json_str(tp_json_get(v, "prompt")));
    if (!tp_json_i64(tp_json_get(v, "n"), &p->n) ||
        !tp_json_i64(tp_json_get(v, "correct"), &p->correct) || p->correct < 0 || p->correct > p->n)
        return fail(r, v->line, "a prompt has no \"n\" with at most as many \"correct\"");
    if (!tp_json_i64(tp_json_get(v, "excluded"), &p->excluded) || p->excluded < 0)
        p->excluded = 0;
    if (!tp_json_i64(tp_json_get(v, "rewarded"), &p->n_rewarded))
        p->n_rewarded = -1;
    else if (p->n_rewarded < 0 || p->n_rewarded > p->n)
        return fail(r, v->line, "a prompt has more \"rewarded\" answers than \"n\"");
    if (p->n > MAX_SAMPLES || p->excluded > MAX_SAMPLES)
        return fail(r, v->line, "a prompt has more than 1048576 answers");
    if (tp_json_f64(tp_json_get(v, "mean_reward"), &mean) && isfinite(mean))
        p->reward_sum = (long double)mean * p->n;
    else if (p->n > 0)
        return fail(r, v->line, "a prompt has verdicts and no \"mean_reward\"");
    return read_majority(r, v, &p->majority);
}

/* The values of k that the summary reports. */
static void read_k(tp_eval_file *f, const tp_json *summary)
{
    for (const tp_json *m = summary ? summary->child : NULL; m; m = m->next) {
        int64_t k;
        if (f->n_k < TP_EVAL_MAX_K && tp_str_starts(m->key.data, "pass_at_") &&
            tp_str_to_i64(m->key.data + 8, &k) && k >= 1 && (!f->n_k || k > f->k[f->n_k - 1]))
            f->k[f->n_k++] = k;
    }
}

static tp_status read_own(reading *r, const tp_json *root)
{
    tp_eval_file *f = r->f;
    const tp_json *prompts = tp_json_get(root, "prompts"), *version = tp_json_get(root, "version");
    int64_t number = VERSION;
    f->format = "temper eval";
    f->model = tp_json_str(tp_json_get(root, "model"));
    f->data = tp_json_str(tp_json_get(root, "data"));
    if (version && (!tp_json_i64(version, &number) || number != VERSION))
        return fail(r, version->line, "\"version\" is not 1, the only one known here");
    if (!prompts || prompts->type != TP_JSON_ARRAY)
        return fail(r, root->line, "there is no list of \"prompts\"");
    for (const tp_json *v = prompts->child; v; v = v->next)
        TP_TRY(read_own_prompt(r, v));
    read_k(f, tp_json_get(root, "summary"));
    return TP_OK;
}

/* ---- NeMo RL's ---- */

/* A reward that is no number, as NaN is in strict JSON, is not known; without one it is an error.
 */
static tp_status add_answer(reading *r, const char *question, const tp_json *reward, uint32_t line,
                            const char *missing)
{
    double value = NAN;
    if (!reward || reward->type == TP_JSON_OBJECT || reward->type == TP_JSON_ARRAY)
        return fail(r, line, missing);
    if (!tp_json_f64(reward, &value))
        value = NAN;
    answer a = {.question = question, .index = r->n_answers, .reward = value};
    *TP_VEC_PUSH(r->answers, r->n_answers, r->answers_cap) = a;
    return TP_OK;
}

static tp_status read_evaluation_data(reading *r, const tp_json *list)
{
    r->f->format = "NeMo RL evaluation";
    for (const tp_json *v = list->child; v; v = v->next) {
        const char *question = tp_json_str(tp_json_get(v, "prompt"));
        if (!question)
            return fail(r, v->line, "a sample has no \"prompt\"");
        TP_TRY(add_answer(r, question, tp_json_get(v, "reward"), v->line,
                          "a sample has no \"reward\""));
    }
    return TP_OK;
}

/* Values come in lists of one. */
static const tp_json *unwrap(const tp_json *v)
{
    return v && v->type == TP_JSON_ARRAY && v->n == 1 ? v->child : v;
}

/* A text, or parts: of those with a text the text, of others, as pictures, all of it. */
static void add_said(tp_buf *out, const tp_json *said)
{
    if (tp_json_str(said))
        tp_buf_adds(out, tp_json_str(said));
    if (!said || said->type != TP_JSON_ARRAY)
        return;
    for (const tp_json *part = said->child; part; part = part->next) {
        const char *text =
            tp_json_str(part->type == TP_JSON_STRING ? part : tp_json_get(part, "text"));
        tp_json_w w;
        tp_json_w_init(&w, out, 0);
        if (text)
            tp_buf_adds(out, text);
        else
            tp_json_w_value(&w, part);
    }
}

static bool is_said_by(const char *who, const tp_json *message)
{
    const char *role = tp_json_str(tp_json_get(message, "role"));
    return role && strcmp(role, who) == 0;
}

/* The first answer to the last user who got one, or where nobody has a role the last message.
 * Answers before it are examples or history; behind it are the remarks of the environment and what
 * followed from them. */
static const tp_json *answer_of(const tp_json *list)
{
    const tp_json *ret = NULL;
    bool is_asked = true;
    for (const tp_json *m = list->child; m; m = m->next) {
        bool has_role = tp_json_str(tp_json_get(m, "role"));
        is_asked |= is_said_by("user", m);
        if (is_asked && (has_role ? is_said_by("assistant", m) : !m->next)) {
            ret = m;
            is_asked = false;
        }
    }
    return ret;
}

/* What a conversation says before the answer, as text. */
static const char *question_of(reading *r, const tp_json *content)
{
    const tp_json *list = content;
    if (list && list->type == TP_JSON_ARRAY && list->n == 1 && list->child->type == TP_JSON_ARRAY)
        list = list->child;
    if (!list || list->type != TP_JSON_ARRAY)
        return NULL;
    TP_OWN(tp_buf) text = {0};
    const tp_json *end = answer_of(list);
    for (const tp_json *m = list->child; end && m != end; m = m->next) {
        if (text.len)
            tp_buf_addc(&text, '\n');
        add_said(&text, m->type == TP_JSON_STRING ? m : tp_json_get(m, "content"));
    }
    return text.len ? tp_arena_strdup(&r->f->arena, tp_buf_str(&text)) : NULL;
}

static tp_status read_validation_line(reading *r, const tp_json *v, uint32_t line)
{
    const char *question = question_of(r, tp_json_get(v, "content"));
    if (!question)
        return fail(r, line,
                    "\"content\" is no conversation of a question with a text and an answer");
    return add_answer(r, question, unwrap(tp_json_get(v, "rewards")), line,
                      "there is no reward in \"rewards\"");
}

static tp_status read_lines(reading *r)
{
    tp_eval_file *f = r->f;
    const char *at = tp_buf_str(&f->text), *end = at + f->text.len;
    f->format = "NeMo RL validation";
    for (uint32_t line = 1; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = newline ? (size_t)(newline - at) : (size_t)(end - at);
        tp_json_options options = TP_JSON_TOLERANT;
        const tp_json *v;
        options.first_line = line;
        if (strspn(at, " \t\r") < n) {
            TP_TRY(tp_json_parse(&f->arena, f->path, at, n, &options, &v, r->err));
            TP_TRY(read_validation_line(r, v, line));
        }
        at += n + 1;
    }
    return TP_OK;
}

/* ---- any of them ---- */

/* A file of ours or evaluation_data.json is one value; JSON lines are not. */
static tp_status read_any(reading *r)
{
    tp_eval_file *f = r->f;
    tp_json_options options = TP_JSON_TOLERANT;
    const tp_json *root, *list;
    tp_error whole = {0};
    size_t mark = tp_arena_mark(&f->arena);
    bool is_one = tp_json_parse(&f->arena, f->path, tp_buf_str(&f->text), f->text.len, &options,
                                &root, &whole) == TP_OK;
    const char *kind = is_one ? tp_json_str(tp_json_get(root, "kind")) : NULL;
    if (kind && strcmp(kind, "temper-eval") == 0)
        return read_own(r, root);
    if (is_one && (list = tp_json_get(root, "evaluation_data")) && list->type == TP_JSON_ARRAY)
        return read_evaluation_data(r, list);
    if (is_one && !(tp_json_get(root, "content") && tp_json_get(root, "rewards")))
        return tp_fail(r->err, TP_ERR_FORMAT,
                       "'%s' is no evaluation; 'temper eval --out FILE' writes one, and NeMo RL "
                       "evaluation_data.json and val_data_step<N>.jsonl",
                       f->path);
    tp_arena_rewind(&f->arena, mark);
    return read_lines(r);
}

static void choose_k(tp_eval_file *f)
{
    int64_t most = 0;
    for (size_t i = 0; i < f->n; i++)
        most = TP_MAX(most, f->prompts[i].n);
    if (f->n_k)
        return;
    for (int64_t k = 1; k <= TP_MAX(most, (int64_t)1) && f->n_k < TP_EVAL_MAX_K; k *= 2)
        f->k[f->n_k++] = k;
}

TP_ORDER(by_id, tp_eval_prompt, strcmp(x->id, y->id))

static tp_status check_twice(const tp_eval_file *f, tp_error *err)
{
    for (size_t i = 1; i < f->n; i++)
        if (strcmp(f->prompts[i - 1].id, f->prompts[i].id) == 0)
            return tp_fail(err, TP_ERR_FORMAT, "'%s': the prompt %s is there twice", f->path,
                           f->prompts[i].id);
    return TP_OK;
}

tp_status tp_eval_file_parse(const char *name, tp_buf *text, double threshold, tp_eval_file *ret,
                             tp_error *err)
{
    tp_eval_file f = {.path = name, .text = *text};
    reading r = {.f = &f, .threshold = threshold, .err = err};
    *text = (tp_buf){0};
    tp_status status = tp_arena_init(&f.arena, 128 * f.text.len + (1 << 20), err);
    if (status == TP_OK)
        status = read_any(&r);
    if (status == TP_OK)
        group_answers(&r);
    if (status == TP_OK && f.n == 0)
        status = tp_fail(err, TP_ERR_FORMAT, "'%s' has no prompts", name);
    free(r.answers);
    if (status == TP_OK) {
        qsort(f.prompts, f.n, sizeof *f.prompts, by_id);
        choose_k(&f);
        status = check_twice(&f, err);
    }
    if (status != TP_OK) {
        tp_eval_file_release(&f);
        return status;
    }
    *ret = f;
    return TP_OK;
}

tp_status tp_eval_file_read(const char *path, double threshold, tp_eval_file *ret, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_TRY(tp_file_read(path, MAX_BYTES, &text, err));
    return tp_eval_file_parse(path, &text, threshold, ret, err);
}

void tp_eval_file_release(tp_eval_file *f)
{
    tp_buf_release(&f->text);
    tp_arena_release(&f->arena);
    free(f->prompts);
    *f = (tp_eval_file){0};
}
