/* grpo_ranks.c - answers, scores and sums that ranks have of their shares, told to all.
 *
 * What the ranks exchange is a list of groups as bytes, of one program on machines of one kind:
 * ids, log-probabilities, texts and verdicts as they lie in memory. */
#include "engine/algorithms/grpo_ranks.h"

#include <string.h>

bool tp_grpo_answers(const trainer *t, uint32_t i)
{
    return i % (uint32_t)tp_trainer_ranks(t) == (uint32_t)tp_comm_rank(t->comm);
}

/* ---- to bytes ---- */

static void put(tp_buf *out, const void *data, size_t n) { tp_buf_add(out, data, n); }

static void put_text(tp_buf *out, const char *text, size_t n)
{
    uint64_t length = text ? n : UINT64_MAX;
    put(out, &length, sizeof length);
    if (text)
        put(out, text, n);
}

static void put_string(tp_buf *out, const char *text)
{
    put_text(out, text, text ? strlen(text) : 0);
}

/* The members of a sample that are numbers; its arrays follow. */
typedef struct {
    uint64_t prompt;
    uint32_t index;
    int32_t n_prompt, n_answer;
    int32_t status, correct, finish;
    double reward;
} sample_head;

static void put_sample(tp_buf *out, const grpo_sample *s)
{
    const sample_head head = {.prompt = s->prompt,
                              .index = s->index,
                              .n_prompt = s->n_prompt,
                              .n_answer = s->n_answer,
                              .status = (int32_t)s->status,
                              .correct = (int32_t)s->correct,
                              .finish = (int32_t)s->finish,
                              .reward = s->raw_reward};
    put(out, &head, sizeof head);
    put(out, s->ids, (size_t)(s->n_prompt + s->n_answer) * sizeof *s->ids);
    put(out, s->gen, (size_t)s->n_answer * sizeof *s->gen);
    put_text(out, s->text, s->n_text);
    put_string(out, s->verdict);
}

static void put_group(tp_buf *out, const grpo_rollout *r, const grpo_group *group, uint32_t prompt)
{
    put(out, &prompt, sizeof prompt);
    put(out, &group->n, sizeof group->n);
    put_string(out, group->id);
    put_string(out, group->text);
    put_string(out, group->truth);
    for (uint32_t k = 0; k < group->n; k++)
        put_sample(out, &r->samples[group->first + k]);
}

/* ---- and back ---- */

typedef struct {
    const char *at, *end;
} reading;

static void take(reading *from, void *to, size_t n)
{
    TP_ASSERT((size_t)(from->end - from->at) >= n);
    memcpy(to, from->at, n);
    from->at += n;
}

static const char *take_text(reading *from, tp_arena *arena, size_t *ret_n)
{
    uint64_t n;
    take(from, &n, sizeof n);
    *ret_n = n == UINT64_MAX ? 0 : (size_t)n;
    if (n == UINT64_MAX)
        return NULL;
    const char *text = tp_arena_strndup(arena, from->at, (size_t)n);
    from->at += n;
    return text;
}

static const char *take_string(reading *from, tp_arena *arena)
{
    size_t n;
    return take_text(from, arena, &n);
}

static void take_sample(trainer *t, reading *from, grpo_sample *s, uint32_t group,
                        grpo_counts *counts)
{
    grpo *g = t->own;
    sample_head head;
    take(from, &head, sizeof head);
    size_t n = (size_t)head.n_answer, all = (size_t)head.n_prompt + n;
    *s = (grpo_sample){.prompt = head.prompt,
                       .group = group,
                       .index = head.index,
                       .n_prompt = head.n_prompt,
                       .n_answer = head.n_answer,
                       .finish = (tp_finish)head.finish,
                       .ids = tp_arena_array(&g->arena, int32_t, all),
                       .gen = tp_arena_array(&g->arena, float, n + 1)};
    take(from, s->ids, all * sizeof *s->ids);
    take(from, s->gen, n * sizeof *s->gen);
    s->text = take_text(from, &g->arena, &s->n_text);
    const char *said = take_string(from, &g->arena);
    const tp_reward verdict = {.status = (tp_reward_status)head.status,
                               .correct = (tp_correct)head.correct,
                               .reward = head.reward};
    tp_grpo_settle(t, s, &verdict, counts);
    s->verdict = said;
}

static void take_group(trainer *t, reading *from, grpo_rollout *to, grpo_counts *counts)
{
    grpo *g = t->own;
    grpo_group *group = &to->groups[to->n_groups];
    *group = (grpo_group){.first = to->n_samples};
    take(from, &group->n, sizeof group->n);
    group->id = take_string(from, &g->arena);
    group->text = take_string(from, &g->arena);
    group->truth = take_string(from, &g->arena);
    for (uint32_t k = 0; k < group->n; k++)
        take_sample(t, from, &to->samples[to->n_samples++], to->n_groups, counts);
    to->n_groups++;
}

/* ---- all together ---- */

static tp_status gather(trainer *t, const tp_buf *own, size_t *starts, tp_buf *all, tp_error *err)
{
    int n = tp_trainer_ranks(t);
    uint64_t mine = own->len;
    TP_FREED uint64_t *lengths = tp_new((size_t)n, sizeof *lengths);
    TP_TRY(tp_comm_gather(t->comm, &mine, sizeof mine, lengths, err));
    for (int i = 0; i < n; i++)
        starts[i + 1] = starts[i] + (size_t)lengths[i];
    tp_buf_reserve(all, starts[n] + 1);
    memcpy(all->data + starts[tp_comm_rank(t->comm)], own->data, own->len);
    const tp_exchange_spec spec = {
        .kind = TP_ALL_GATHER, .element = 1, .data = all->data, .starts = starts};
    return tp_comm_exchange(t->comm, &spec, err);
}

static void rebuild(trainer *t, const grpo_draw *draw, const char *all, const size_t *starts,
                    grpo_rollout *to, grpo_counts *counts, uint64_t *ret_left_out)
{
    uint32_t n = (uint32_t)tp_trainer_ranks(t);
    TP_FREED reading *from = tp_new(n, sizeof *from);
    for (uint32_t r = 0; r < n; r++) {
        char why[sizeof counts->why];
        from[r] = (reading){all + starts[r], all + starts[r + 1]};
        take(&from[r], why, sizeof why);
        if (!counts->why[0])
            memcpy(counts->why, why, sizeof why);
    }
    tp_grpo_reserve(to, draw->n_prompts, draw->n_prompts * draw->n_samples);
    for (uint32_t i = 0; i < draw->n_prompts; i++) {
        reading *its = &from[i % n];
        uint32_t prompt = UINT32_MAX;
        if (its->at < its->end)
            memcpy(&prompt, its->at, sizeof prompt);
        if (prompt != i) {
            ++*ret_left_out;
            continue;
        }
        its->at += sizeof prompt;
        take_group(t, its, to, counts);
    }
}

tp_status tp_grpo_share(trainer *t, const grpo_draw *draw, const grpo_rollout *mine,
                        const uint32_t *prompt_of, const char *why, grpo_rollout *to,
                        grpo_counts *counts, uint64_t *ret_left_out, tp_error *err)
{
    TP_OWN(tp_buf) own = {0}, all = {0};
    char said[sizeof counts->why] = "";
    TP_FREED size_t *starts = tp_new((size_t)tp_trainer_ranks(t) + 1, sizeof *starts);
    snprintf(said, sizeof said, "%s", why);
    put(&own, said, sizeof said);
    for (uint32_t k = 0; k < mine->n_groups; k++)
        put_group(&own, mine, &mine->groups[k], prompt_of[k]);
    *ret_left_out = 0;
    TP_TRY(gather(t, &own, starts, &all, err));
    rebuild(t, draw, all.data, starts, to, counts, ret_left_out);
    return TP_OK;
}

/* ---- learning ---- */

/* The share of the data that a process computes with, and whether it is the one that tells: of
 * those that share the layers the first. */
static uint32_t share_of(const trainer *t, uint32_t process, bool *ret_tells)
{
    uint32_t sharers = (uint32_t)tp_trainer_ranks(t) / tp_trainer_shares(t);
    *ret_tells = process % sharers == 0;
    return process / sharers;
}

/* Each answer of a rank's micro-batches, to or from its place in the buffer; counts when NULL. */
static size_t walk(const grpo *g, uint32_t rank, uint32_t ranks,
                   float *(*scores_of)(const grpo_sample *), float *buffer, bool in)
{
    const tp_batch *a = &g->arrangement;
    size_t at = 0;
    for (uint32_t m = rank; m < a->n_micro; m += ranks)
        for (uint32_t k = a->starts[m]; k < a->starts[m + 1]; k++) {
            const grpo_sample *s = g->trained[a->order[k]];
            size_t n = (size_t)s->n_answer;
            if (buffer && n)
                memcpy(in ? buffer + at : scores_of(s), in ? scores_of(s) : buffer + at,
                       n * sizeof *buffer);
            at += n;
        }
    return at;
}

tp_status tp_grpo_share_scores(trainer *t, float *(*scores_of)(const grpo_sample *), tp_error *err)
{
    grpo *g = t->own;
    uint32_t n = (uint32_t)tp_trainer_ranks(t), rank = (uint32_t)tp_comm_rank(t->comm);
    uint32_t shares = tp_trainer_shares(t);
    bool tells;
    if (n == 1)
        return TP_OK;
    TP_FREED size_t *starts = tp_new(n + 1, sizeof *starts);
    for (uint32_t r = 0; r < n; r++) {
        uint32_t share = share_of(t, r, &tells);
        starts[r + 1] = starts[r] + (tells ? walk(g, share, shares, scores_of, NULL, false) : 0);
    }
    TP_FREED float *all = tp_new(starts[n] + 1, sizeof *all);
    uint32_t own = share_of(t, rank, &tells);
    if (tells)
        walk(g, own, shares, scores_of, all + starts[rank], true);
    const tp_exchange_spec spec = {
        .kind = TP_ALL_GATHER, .element = sizeof *all, .data = all, .starts = starts};
    TP_TRY(tp_comm_exchange(t->comm, &spec, err));
    for (uint32_t r = 0; r < n; r++) {
        uint32_t share = share_of(t, r, &tells);
        if (tells)
            walk(g, share, shares, scores_of, all + starts[r], false);
    }
    return TP_OK;
}

tp_status tp_grpo_join(trainer *t, tp_policy_sums *sums, step_result *part, tp_error *err)
{
    int n = tp_trainer_ranks(t);
    if (n == 1)
        return TP_OK;
    TP_FREED tp_policy_sums *all = tp_new((size_t)n, sizeof *all);
    tp_status status = tp_comm_gather(t->comm, sums, sizeof *sums, all, err);
    tp_policy_sums_init(sums);
    for (int i = 0; i < n && status == TP_OK; i++) {
        bool tells;
        (void)share_of(t, (uint32_t)i, &tells);
        if (tells)
            tp_policy_sums_merge(sums, &all[i]);
    }
    return status == TP_OK ? tp_trainer_join(t, part, err) : status;
}
