/* fit.c - what a level may choose: a fast micro-batch, and whatever makes a run fit; the
 * micro-batch that a budget of memory allows; and what would make a run fit that does not. */
#include "engine/train/fit.h"

#include <inttypes.h>
#include <math.h>

#include "base/order.h"
#include "base/platform.h"
#include "engine/train/algorithm.h"
#include "engine/train/levers.h"

/* ---- when it does not fit ---- */

typedef struct {
    const tp_train_options *asked;
    const tp_model *model;
    bool resumes;
    size_t limit, before;
} search;

/* Bytes with other options; SIZE_MAX where there is no such plan. */
static size_t bytes_with(const search *s, const tp_train_options *o)
{
    tp_run_plan plan;
    return tp_run_plan_compute(o, s->model, s->resumes, NULL, &plan, NULL) == TP_OK
               ? plan.peak_bytes
               : SIZE_MAX;
}

/* Halve a number down to `least` as long as it does not fit, to a divisor of `whole` if that is
 * not 0; false when it is there already. */
static bool halve(const search *s, tp_train_options *o, int64_t *v, int64_t least, int64_t whole)
{
    if (*v <= least)
        return false;
    do {
        *v = TP_MAX(*v / 2, least);
        while (whole && whole % *v != 0)
            --*v;
    } while (*v > least && bytes_with(s, o) > s->limit);
    return true;
}

static bool with_recompute(const search *s, tp_train_options *o, char text[96])
{
    (void)s;
    snprintf(text, 96, "policy.recompute=full");
    bool is_new = o->policy.recompute != TP_RECOMPUTE_FULL;
    o->policy.recompute = TP_RECOMPUTE_FULL;
    return is_new;
}

static bool with_cheap_recompute(const search *s, tp_train_options *o, char text[96])
{
    (void)s;
    snprintf(text, 96, "policy.recompute=selective");
    bool is_new = o->policy.recompute == TP_RECOMPUTE_NONE;
    if (is_new)
        o->policy.recompute = TP_RECOMPUTE_SELECTIVE;
    return is_new;
}

static bool with_bf16(const search *s, tp_train_options *o, char text[96])
{
    (void)s;
    snprintf(text, 96, "policy.precision=bfloat16");
    bool is_new = o->policy.precision == TP_PRECISION_FLOAT32;
    o->policy.precision = TP_PRECISION_BFLOAT16;
    return is_new;
}

/* Where the size of a micro-batch stands, and that of the smallest. */
typedef struct {
    int64_t *v;
    const char *key; /* after "policy." */
    int64_t least;   /* one unit: a sequence, or a pair, of full length */
    int64_t step;    /* what sizes differ by */
    int64_t whole;   /* what it must divide; 0: nothing, as it counts tokens */
} micro_batch;

static micro_batch micro_batch_of(tp_train_options *o)
{
    int64_t unit = tp_trainer_unit_tokens(o);
    int64_t step = (unit + 255) / 256 * 16; /* a sixteenth of a unit, whole blocks of 16 tokens */
    if (o->policy.packing.enabled)
        return (micro_batch){&o->policy.packing.train_mb_tokens, "sequence_packing.train_mb_tokens",
                             unit, step, 0};
    if (o->policy.dynamic_batching.enabled)
        return (micro_batch){&o->policy.dynamic_batching.train_mb_tokens,
                             "dynamic_batching.train_mb_tokens", unit, step, 0};
    return (micro_batch){&o->policy.train_micro_batch_size, "train_micro_batch_size", 1, 1,
                         o->policy.train_global_batch_size};
}

static bool with_smaller_batches(const search *s, tp_train_options *o, char text[96])
{
    micro_batch m = micro_batch_of(o);
    bool is_new = halve(s, o, m.v, m.least, m.whole);
    snprintf(text, 96, "policy.%s=%lld", m.key, (long long)*m.v);
    return is_new;
}

static bool with_smaller_cache(const search *s, tp_train_options *o, char text[96])
{
    if (!o->algorithm->generates)
        return false;
    tp_engine_options e = tp_trainer_engine_options(o, NULL);
    double token = (double)tp_model_cache_block_bytes(s->model, 1, e.cache_dtype);
    double one = token * (double)(e.max_length + TP_ENGINE_BLOCK_TOKENS) /
                 1048576.0; /* one answer, whole blocks */
    double now = isfinite(o->generation.cache_mib)
                     ? o->generation.cache_mib
                     : fmin(1024, one * (double)o->generation.max_running);
    int64_t mib = (int64_t)ceil(now), least = TP_MAX((int64_t)ceil(one), 1);
    if (mib <= least)
        return false;
    do {
        mib = TP_MAX(mib / 2, least);
        o->generation.cache_mib = (double)mib;
    } while (mib > least && bytes_with(s, o) > s->limit);
    snprintf(text, 96, "policy.generation.cache_mib=%lld", (long long)mib);
    return true;
}

static bool with_small_chunks(const search *s, tp_train_options *o, char text[96])
{
    (void)s;
    enum { ROWS = 64 };
    bool is_new = o->engine.loss_chunk == 0 || o->engine.loss_chunk > ROWS;
    o->engine.loss_chunk = ROWS;
    snprintf(text, 96, "engine.loss_chunk=%d", ROWS);
    return is_new;
}

/* Weights are gathered in each step of generation: the same answers, more bytes. */
static bool without_gathered_copy(const search *s, tp_train_options *o, char text[96])
{
    (void)s;
    bool is_new = o->algorithm->generates && o->ranks.ranks > 1 && o->ranks.tensor.count < 2 &&
                  o->distributed.strategy >= TP_STRATEGY_FULL_SHARD && o->distributed.gathered_copy;
    o->distributed.gathered_copy &= !is_new;
    snprintf(text, 96, "distributed.gathered_copy=false");
    return is_new;
}

typedef bool change_fn(const search *s, tp_train_options *o, char text[96]);
static change_fn *const changes[] = {with_recompute,    with_smaller_batches,
                                     with_bf16,         with_smaller_cache,
                                     with_small_chunks, without_gathered_copy};
enum { N_CHANGES = sizeof changes / sizeof *changes };

typedef struct {
    tp_plan_remedy lever;
    change_fn *change;
} candidate;

TP_ORDER(by_bytes, candidate, TP_COMPARE(x->lever.peak_bytes, y->lever.peak_bytes))

static void apply_all(const search *s, const candidate *list, tp_plan_remedies *levers)
{
    tp_train_options o = *s->asked;
    char text[96];
    for (int i = 0; i < levers->n; i++)
        (void)list[i].change(s, &o, text);
    levers->all.peak_bytes = bytes_with(s, &o);
    levers->all.fits = levers->all.peak_bytes <= s->limit;
}

void tp_run_plan_remedies(const tp_train_options *o, const tp_model *model, bool resumes,
                          const tp_run_plan *plan, tp_plan_remedies *ret)
{
    candidate list[N_CHANGES];
    int n = 0;
    search s = {o, model, resumes, (size_t)plan->allowance.bytes, plan->peak_bytes};
    for (int i = 0; i < N_CHANGES; i++) {
        tp_train_options changed = *o;
        candidate c = {.change = changes[i]};
        if (!changes[i](&s, &changed, c.lever.change))
            continue;
        c.lever.peak_bytes = bytes_with(&s, &changed);
        c.lever.fits = c.lever.peak_bytes <= s.limit;
        if (c.lever.peak_bytes < s.before)
            list[n++] = c;
    }
    qsort(list, (size_t)n, sizeof *list, by_bytes);
    *ret = (tp_plan_remedies){.n = TP_MIN(n, TP_PLAN_REMEDIES)};
    for (int i = 0; i < ret->n; i++)
        ret->v[i] = list[i].lever;
    apply_all(&s, list, ret);
}

static void add_lever(const tp_run_plan *plan, const char *change, const tp_plan_remedy *l,
                      const char *separator, tp_buf *out)
{
    tp_buf_addf(out, "%swith %s it needs %s (%s less) and %s", separator, change,
                tp_human_bytes((double)l->peak_bytes, TP_ROOM),
                tp_human_bytes((double)(plan->peak_bytes - l->peak_bytes), TP_ROOM),
                l->fits ? "fits" : "does not fit");
}

void tp_run_plan_verdict(const tp_run_plan *plan, const tp_plan_remedies *levers,
                         const char *separator, tp_buf *out)
{
    const tp_memory_allowance *m = &plan->allowance;
    tp_buf_addf(out, "%s: needs %s, limit %s (", plan->fits ? "fits" : "does not fit",
                tp_human_bytes((double)plan->peak_bytes, TP_ROOM),
                tp_human_bytes(m->bytes, TP_ROOM));
    if (m->of > 0)
        tp_buf_addf(out, "engine.memory_fraction %g of %s: ", m->fraction,
                    tp_human_bytes(m->of, TP_ROOM));
    tp_buf_addf(out, "%s)", m->source);
    if (plan->fits || !levers)
        return;
    bool any_fits = false;
    for (int i = 0; i < levers->n; i++) {
        add_lever(plan, levers->v[i].change, &levers->v[i], separator, out);
        any_fits |= levers->v[i].fits;
    }
    if (!any_fits && levers->n > 1)
        add_lever(plan, "all of these", &levers->all, separator, out);
    if (levers->n == 0)
        tp_buf_addf(out, "%sno setting of Temper makes it smaller", separator);
}

tp_status tp_run_plan_check(const tp_train_options *o, const tp_model *model, bool resumes,
                            const tp_run_plan *plan, tp_error *err)
{
    if (plan->fits)
        return TP_OK;
    TP_OWN(tp_buf) text = {0};
    tp_plan_remedies levers;
    tp_run_plan_remedies(o, model, resumes, plan, &levers);
    tp_run_plan_verdict(plan, &levers, "; ", &text);
    return tp_fail(err, TP_ERR_NOMEM, "%s", tp_buf_str(&text));
}

/* ---- what a level may choose ---- */

/* What changes no bit comes first; each goes on from those above it. */
static const struct {
    change_fn *change;
    const char *keys[2]; /* that the recipe leaves open */
} choices[] = {
    {with_cheap_recompute, {"policy.recompute"}},
    {with_smaller_cache, {"policy.generation.cache_mib"}},
    {with_recompute, {"policy.recompute"}},
    {with_smaller_batches,
     {"policy.sequence_packing.train_mb_tokens", "policy.train_micro_batch_size"}},
    {with_small_chunks, {"engine.loss_chunk"}},
    {without_gathered_copy, {"distributed.gathered_copy"}},
};
enum { N_CHOICES = sizeof choices / sizeof *choices };

bool tp_run_plan_next_remedy(const tp_train_options *o, const tp_model *model, size_t peak_bytes,
                             tp_plan_remedy *ret)
{
    const search s = {o, model, false, peak_bytes - peak_bytes / 100, peak_bytes};
    for (size_t i = 0; i < N_CHOICES; i++) {
        tp_train_options changed = *o;
        *ret = (tp_plan_remedy){0};
        if (!choices[i].change(&s, &changed, ret->change))
            continue;
        ret->peak_bytes = bytes_with(&s, &changed);
        if (ret->peak_bytes < s.limit)
            return true;
    }
    return false;
}

static bool is_open(const tp_config *config, size_t i)
{
    for (size_t k = 0; k < TP_COUNTOF(choices[i].keys) && choices[i].keys[k]; k++)
        if (!tp_level_left_open(config, choices[i].keys[k]))
            return false;
    return true;
}

/* Bytes with the choices of a set, and their settings. */
static size_t bytes_chosen(const search *s, unsigned set, char text[N_CHOICES][96])
{
    tp_train_options o = *s->asked;
    for (size_t i = 0; i < N_CHOICES; i++) {
        text[i][0] = 0;
        if (set & 1u << i && !choices[i].change(s, &o, text[i]))
            text[i][0] = 0;
    }
    return bytes_with(s, &o);
}

/* As few as do, the first ones first; 0: none or all of them are not enough. */
static unsigned choose(const search *s, const tp_config *config, char text[N_CHOICES][96],
                       size_t *ret_bytes)
{
    unsigned set = 0;
    *ret_bytes = SIZE_MAX;
    for (size_t i = 0; i<N_CHOICES && * ret_bytes> s->limit; i++) {
        if (!is_open(config, i))
            continue;
        set |= 1u << i;
        *ret_bytes = bytes_chosen(s, set, text);
    }
    if (*ret_bytes > s->limit)
        return 0;
    for (size_t i = 0; i < N_CHOICES; i++)
        if (set & 1u << i && bytes_chosen(s, set & ~(1u << i), text) <= s->limit)
            set &= ~(1u << i);
    *ret_bytes = bytes_chosen(s, set, text);
    return set;
}

/* The recipe with settings that were chosen, and who chose them. */
static tp_status bind_chosen(const tp_recipe *r, bool sizes_only, char text[][96], size_t n,
                             const char *origin, tp_recipe *ret, tp_error *err)
{
    tp_recipe chosen = {0};
    TP_TRY(tp_config_copy(r->config, &chosen.config, err));
    tp_status status = TP_OK;
    for (size_t i = 0; i < n && status == TP_OK; i++)
        if (text[i][0])
            status = tp_config_set(chosen.config, text[i], origin, err);
    if (status == TP_OK)
        status = tp_recipe_bind(&chosen, sizes_only, err);
    tp_recipe_place(&chosen, &r->options);
    TP_HAND_OVER(status, ret, chosen, tp_recipe_close(&chosen));
}

/* `chosen` in its place, with a sentence about it; takes both. */
static void replace(tp_recipe *r, const tp_recipe *chosen, const tp_buf *said)
{
    tp_recipe_close(r);
    *r = *chosen;
    r->said = *said;
    r->options.said = r->said.data;
}

static void say_chosen(const search *s, const tp_memory_allowance *m, size_t bytes,
                       char text[N_CHOICES][96], tp_buf *out)
{
    tp_buf_addf(out, "chosen to fit %s (%s): ", tp_human_bytes(m->bytes, TP_ROOM), m->source);
    const char *separator = "";
    for (size_t i = 0; i < N_CHOICES; i++)
        if (text[i][0]) {
            tp_buf_addf(out, "%s%s", separator, text[i]);
            separator = ", ";
        }
    tp_buf_addf(out, "; it needs %s, and %s without", tp_human_bytes((double)bytes, TP_ROOM),
                tp_human_bytes((double)s->before, TP_ROOM));
}

static tp_status fit(tp_recipe *r, const tp_model *model, bool sizes_only, tp_error *err)
{
    tp_run_plan plan;
    char text[N_CHOICES][96];
    size_t bytes;
    tp_buf said = {0};
    if (tp_run_plan_compute(&r->options, model, false, NULL, &plan, NULL) != TP_OK || plan.fits)
        return TP_OK;
    const search s = {&r->options, model, false, (size_t)plan.allowance.bytes, plan.peak_bytes};
    if (!choose(&s, r->config, text, &bytes))
        return TP_OK; /* the run says what would be needed */
    tp_recipe chosen;
    TP_TRY(bind_chosen(r, sizes_only, text, N_CHOICES, "chosen to fit the memory", &chosen, err));
    say_chosen(&s, &plan.allowance, bytes, text, &said);
    replace(r, &chosen, &said);
    return TP_OK;
}

/* ---- what a level chooses for speed ---- */

/* Tokens at once by which the weights are read seldom enough: more of them were faster for none of
 * the models that were measured (bench/PERFLOG.md), and every one takes memory. */
enum { FAST_TOKENS = 512 };

/* What a process has of the global batch. */
static int64_t share_of_batch(const tp_train_options *o)
{
    return TP_MAX(o->policy.train_global_batch_size / TP_MAX(o->ranks.ranks, 1), 1);
}

/* The largest up to n that divides the global batch, so that every micro-batch is full. */
static int64_t divisor_of_batch(const tp_train_options *o, int64_t n)
{
    while (n > 1 && o->policy.train_global_batch_size % n != 0)
        n--;
    return n;
}

static bool leaves_micro_batch_open(const tp_config *config)
{
    return tp_level_left_open(config, "policy.train_micro_batch_size") &&
           tp_level_left_open(config, "policy.sequence_packing.train_mb_tokens") &&
           tp_level_left_open(config, "policy.dynamic_batching.train_mb_tokens");
}

/* *ret_fits false: the recipe stays as it is. */
static tp_status take_micro_batch(tp_recipe *r, const tp_model *model, int64_t n, bool sizes_only,
                                  bool *ret_fits, tp_error *err)
{
    tp_recipe faster;
    char text[3][96];
    tp_run_plan plan;
    tp_buf said = {0};
    const micro_batch m = micro_batch_of(&r->options);
    int64_t tokens = n * tp_trainer_unit_tokens(&r->options);
    snprintf(text[0], sizeof text[0], "policy.train_micro_batch_size=%" PRId64, n);
    for (int i = 0; i < 2; i++) /* whose defaults have been computed from it */
        snprintf(text[1 + i], sizeof text[0], "policy.%s.train_mb_tokens=%" PRId64,
                 i ? "dynamic_batching" : "sequence_packing", tokens);
    TP_TRY(bind_chosen(r, sizes_only, text, TP_COUNTOF(text), "chosen for speed", &faster, err));
    *ret_fits =
        tp_run_plan_compute(&faster.options, model, false, NULL, &plan, NULL) == TP_OK && plan.fits;
    if (!*ret_fits) {
        tp_recipe_close(&faster);
        return TP_OK;
    }
    /* A budget of tokens follows from the size only where a unit is a sequence. */
    if (m.whole || r->options.algorithm->sequences_per_unit == 1)
        tp_buf_addf(&said, "chosen for speed: %s, %" PRId64 " tokens at once", text[0], tokens);
    else
        tp_buf_addf(&said, "chosen for speed: policy.%s=%" PRId64 " at once", m.key, tokens);
    replace(r, &faster, &said);
    return TP_OK;
}

/* A micro-batch of more sequences than the default: the first that fits of the fast one, half of it
 * and so on. */
static tp_status quicken(tp_recipe *r, const tp_model *model, bool sizes_only, tp_error *err)
{
    const tp_train_options *o = &r->options;
    int64_t n = TP_MIN(FAST_TOKENS / tp_trainer_unit_tokens(o), share_of_batch(o));
    const micro_batch m = micro_batch_of(&r->options);
    int64_t now = m.whole ? *m.v * tp_trainer_unit_tokens(o) : *m.v;
    bool fits = !leaves_micro_batch_open(r->config);
    for (; !fits && (n = divisor_of_batch(o, n)) * tp_trainer_unit_tokens(o) > now; n /= 2)
        TP_TRY(take_micro_batch(r, model, n, sizes_only, &fits, err));
    return TP_OK;
}

/* ---- micro-batches by memory ---- */

/* The n-th size from the smallest on. */
static int64_t nth_size(const micro_batch *m, int64_t n) { return m->least + (n - 1) * m->step; }

/* What the activations of the n-th size take; SIZE_MAX where it has no plan. */
static size_t activation_bytes(const tp_train_options *asked, const tp_model *model, int64_t n)
{
    tp_run_plan plan;
    tp_train_options o = *asked;
    micro_batch m = micro_batch_of(&o);
    *m.v = nth_size(&m, n);
    return tp_run_plan_compute(&o, model, false, NULL, &plan, NULL) == TP_OK
               ? plan.phases[TP_PLAN_TRAIN][TP_MEM_ACTIVATIONS]
               : SIZE_MAX;
}

/* The last size whose activations take no more than `most` bytes; 0: the smallest take more. */
static int64_t last_size(const tp_train_options *o, const micro_batch *m, const tp_model *model,
                         double most)
{
    int64_t fits = 0, high = (share_of_batch(o) - 1) * m->least / m->step + 1;
    while (fits < high) {
        int64_t n = fits + (high - fits + 1) / 2;
        if ((double)activation_bytes(o, model, n) <= most)
            fits = n;
        else
            high = n - 1;
    }
    return fits;
}

static tp_status size_by_memory(tp_recipe *r, const tp_model *model, bool sizes_only, tp_error *err)
{
    char a[32], b[32], text[1][96];
    tp_train_options o = r->options;
    const micro_batch m = micro_batch_of(&o);
    double most = o.policy.train_mb_memory_bytes;
    if (!isfinite(most))
        return TP_OK;
    int64_t n = last_size(&o, &m, model, most);
    if (n == 0)
        return tp_config_fail(r->config, "policy.train_mb_memory", err,
                              "%s is too little: the activations of the smallest micro-batch take "
                              "%s; policy.recompute=full or a shorter "
                              "policy.max_total_sequence_length makes them smaller",
                              tp_human_bytes(most, a),
                              tp_human_bytes((double)activation_bytes(&o, model, 1), b));
    while (m.whole && m.whole % n != 0)
        n--;
    tp_recipe sized;
    tp_buf said = {0};
    snprintf(text[0], sizeof text[0], "policy.%s=%" PRId64, m.key, nth_size(&m, n));
    TP_TRY(bind_chosen(r, sizes_only, text, 1, "chosen by policy.train_mb_memory", &sized, err));
    tp_buf_addf(&said, "chosen by policy.train_mb_memory (%s): %s, whose activations take %s",
                tp_human_bytes(most, a), text[0],
                tp_human_bytes((double)activation_bytes(&o, model, n), b));
    replace(r, &sized, &said);
    return TP_OK;
}

/* Each of them chooses for the first: none has more than that. */
static void stand_for_all(tp_ranks *r)
{
    r->comm = NULL;
    r->rank = r->tensor.index = 0;
}

tp_status tp_recipe_fit(tp_recipe *r, bool sizes_only, tp_error *err)
{
    tp_model *model;
    const tp_ranks own = r->options.ranks;
    bool any = leaves_micro_batch_open(r->config);
    for (size_t i = 0; i < N_CHOICES; i++)
        any |= is_open(r->config, i);
    bool chooses = any && r->options.level != TP_LEVEL_BASIC;
    if ((!chooses && !isfinite(r->options.policy.train_mb_memory_bytes)) ||
        tp_run_model_open(&r->options, &model, NULL, NULL))
        return TP_OK;
    stand_for_all(&r->options.ranks);
    tp_status status = size_by_memory(r, model, sizes_only, err);
    if (status == TP_OK && chooses && !r->said.len)
        status = quicken(r, model, sizes_only, err);
    if (status == TP_OK && chooses && !r->said.len)
        status = fit(r, model, sizes_only, err);
    r->options.ranks = own;
    tp_model_free(model);
    return status;
}
