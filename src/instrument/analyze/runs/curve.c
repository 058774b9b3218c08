/* curve.c - names of quantities, curves out of runs, means of batches. */
#include "instrument/analyze/runs/curve.h"

#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"
#include "base/vec.h"
#include "stats/curves.h"
#include "stats/descriptive.h"
#include "stats/special.h"

enum { NAMES = 20 };

/* Patterns of whole names, of either case.  TRL's (trainer_state.json, then TensorBoard), NeMo
 * RL's and Temper's, verl's, torchtitan's, Megatron's, torchtune's, Lightning's, Keras', and those
 * of PyTorch's own tutorials. */
static const char *const role_names[TP_ROLE_COUNT][NAMES] = {
    [TP_ROLE_LOSS] = {"train/loss", "loss", "actor/pg_loss", "loss_metrics/global_avg_loss",
                      "lm loss", "training_loss", "train_loss_step", "train_loss",
                      "train_loss_epoch", "loss/train", "epoch_loss", "training/loss"},
    [TP_ROLE_REWARD] = {"train/reward", "reward", "critic/score/mean", "critic/rewards/mean",
                        "train_data/rewards", "objective/scores", "reward/mean"},
    [TP_ROLE_EVAL_LOSS] = {"validation/val_loss", "eval_loss", "eval/loss", "val_loss", "val/loss",
                           "validation_metrics/loss", "lm loss validation", "validation/loss",
                           "validation-*/loss", "validation-*_loss", "eval_*_loss", "eval/*_loss",
                           "loss/val*", "loss/eval", "loss/test", "valid_loss", "validation_loss"},
    [TP_ROLE_MEMORY] = {"memory/resident_bytes", "memory/allocated_bytes",
                        "perf/max_memory_allocated_gb", "memory/max_reserved(GiB)",
                        "memory/max_active(GiB)", "mem-allocated-bytes", "ray/node.*.gpu.*.mem_gb",
                        "ray/node.*.mem_gb", "system:gpu/*/memory*", "system:*memory*",
                        "system:*/*memory*", "peak_memory_active", "peak_memory_alloc"},
    [TP_ROLE_STEP_TIME] = {"timing/train/total_step_time", "train/step_time", "step_time",
                           "timing_s/step", "perf/time_per_step", "time_metrics/end_to_end(s)",
                           "iteration-time"},
    [TP_ROLE_TRAIN_RATE] = {"performance/tokens_per_sec", "performance/tokens_per_sec_per_gpu",
                            "perf/throughput", "throughput(tps)",
                            "timing/train/valid_tokens_per_sec_per_gpu", "train_samples_per_second",
                            "train/train_samples_per_second", "tokens_per_second_per_gpu"},
    [TP_ROLE_OWN_RATE] = {"performance/undisturbed_tokens_per_sec", "performance/tokens_per_sec",
                          "performance/tokens_per_sec_per_gpu", "perf/throughput",
                          "throughput(tps)", "timing/train/valid_tokens_per_sec_per_gpu",
                          "train_samples_per_second", "train/train_samples_per_second",
                          "tokens_per_second_per_gpu"},
    [TP_ROLE_INFERENCE_RATE] = {"performance/generated_tokens_per_sec",
                                "performance/generation_tokens_per_sec*", "eval_samples_per_second",
                                "eval/samples_per_second", "validation/tokens_per_sec",
                                "eval_*_samples_per_second", "eval/*_samples_per_second"},
    [TP_ROLE_INFERENCE_TIME] = {"timing/train/generation", "timing_s/gen",
                                "profiling/Time taken: *generate",
                                "timing/validation/total_validation_time", "eval_runtime",
                                "eval/runtime", "eval_*_runtime", "eval/*_runtime"},
    [TP_ROLE_UTILIZATION] = {"train/train_fp_utilization", "performance/train_fp_utilization",
                             "perf/mfu/actor", "mfu(%)", "mfu", "train/mfu"},
    [TP_ROLE_OF_PRODUCT] = {"train/best_product_utilization"},
    [TP_ROLE_OF_ROOFLINE] = {"train/roofline_share"},
    [TP_ROLE_POWER] = {"system/power_watts"},
    [TP_ROLE_MEMORY_SHARE] = {"memory/used_share"},
    [TP_ROLE_KL] = {"train/kl_penalty", "train/kl", "kl", "actor/kl_loss",
                    "actor/reward_kl_penalty"},
    [TP_ROLE_ENTROPY] = {"train/approx_entropy", "train/entropy", "entropy", "actor/entropy",
                         "actor/entropy_loss"},
    [TP_ROLE_CLIP_FRACTION] = {"policy/clip_fraction", "train/clip_ratio/region_mean",
                               "clip_ratio/region_mean", "train/clip_ratio", "clip_ratio",
                               "actor/pg_clipfrac"},
    [TP_ROLE_LENGTH] = {"train/mean_gen_tokens_per_sample", "train/completions/mean_length",
                        "completions/mean_length", "train/completion_length", "completion_length",
                        "response_length/mean"},
    [TP_ROLE_GRAD_NORM] = {"train/grad_norm", "grad_norm", "actor/grad_norm", "grad-norm"},
    [TP_ROLE_LEARNING_RATE] = {"train/lr", "train/learning_rate", "learning_rate", "lr", "actor/lr",
                               "learning-rate"},
    [TP_ROLE_ACCURACY] = {"validation/accuracy", "validation-default/accuracy", "eval/accuracy",
                          "eval_accuracy", "val/accuracy", "val-core/*", "val_accuracy",
                          "accuracy/val*", "accuracy/test"},
    [TP_ROLE_DATA] = {"train/data_fingerprint", "train/global_valid_toks",
                      "train/total_num_tokens"},
};

/* Whose names all stand for one quantity in one unit, whichever program writes it. */
static const bool has_one_unit[TP_ROLE_COUNT] = {
    [TP_ROLE_LOSS] = true,         [TP_ROLE_REWARD] = true,
    [TP_ROLE_EVAL_LOSS] = true,    [TP_ROLE_STEP_TIME] = true,
    [TP_ROLE_KL] = true,           [TP_ROLE_ENTROPY] = true,
    [TP_ROLE_LENGTH] = true,       [TP_ROLE_CLIP_FRACTION] = true,
    [TP_ROLE_GRAD_NORM] = true,    [TP_ROLE_ACCURACY] = true,
    [TP_ROLE_LEARNING_RATE] = true};

const char *tp_role_names(tp_run_role role, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < NAMES && role_names[role][i] && at + 1 < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", role_names[role][i]);
    return out;
}

/* A set's name may hold a "/", as in eval_HuggingFaceH4/ultra_loss, so that a star stands for one
 * too; not where what follows is a part of a validation's loss (validation-default/sft_loss,
 * loss/val/aux) and not that loss. */
static int flags_of(const char *pattern)
{
    static const char *const with_parts[] = {"validation-*_loss", "loss/val*"};
    for (size_t i = 0; i < TP_COUNTOF(with_parts); i++)
        if (strcmp(pattern, with_parts[i]) == 0)
            return FNM_CASEFOLD | FNM_PATHNAME;
    return FNM_CASEFOLD;
}

/* W&B's tables call a column "RUN - TAG". */
static bool is_named(const char *pattern, const char *tag)
{
    const char *dash = strstr(tag, " - ");
    int flags = flags_of(pattern);
    return fnmatch(pattern, tag, flags) == 0 || (dash && fnmatch(pattern, dash + 3, flags) == 0);
}

int tp_role_rank(tp_run_role role, const char *tag)
{
    for (int k = 0; k < NAMES && role_names[role][k]; k++)
        if (is_named(role_names[role][k], tag))
            return k;
    return -1;
}

/* transformers writes "loss" and "eval_loss" into its state, and "train/loss" and "eval/loss" to
 * everybody else. */
static const char *other_spelling(const char *tag, char *out, size_t size)
{
    if (tp_str_starts(tag, "train/"))
        return tag + 6;
    if (tp_str_starts(tag, "eval/"))
        snprintf(out, size, "eval_%s", tag + 5);
    else if (tp_str_starts(tag, "eval_"))
        snprintf(out, size, "eval/%s", tag + 5);
    else
        snprintf(out, size, "train/%s", tag);
    return out;
}

size_t tp_curve_same(const tp_metrics *m, const char *tag)
{
    char other[300];
    size_t index = tp_metrics_find(m, tag);
    if (index == SIZE_MAX)
        index = tp_metrics_find(m, other_spelling(tag, other, sizeof other));
    for (int role = 0; role < TP_ROLE_COUNT && index == SIZE_MAX; role++)
        if (has_one_unit[role] && tp_role_rank((tp_run_role)role, tag) >= 0)
            for (size_t k = 0; k < NAMES && role_names[role][k] && index == SIZE_MAX; k++)
                index = tp_metrics_find(m, role_names[role][k]);
    return index;
}

static tp_curve read_curve(tp_metrics *m, size_t index, bool keeps_odd)
{
    const tp_metric_point *p;
    size_t n = tp_metrics_curve(m, index, &p);
    tp_curve c = {.tag = tp_metrics_tag(m, index)};
    c.step = tp_vec_new(n, sizeof *c.step);
    c.value = tp_vec_new(n, sizeof *c.value);
    c.is_lost = n && !isfinite(p[n - 1].value);
    for (size_t i = 0; i < n; i++) {
        bool is_odd = !isfinite(p[i].value);
        c.n_odd += is_odd;
        if (is_odd && !keeps_odd)
            continue;
        c.step[c.n] = (double)p[i].step;
        c.value[c.n++] = is_odd ? (double)NAN : p[i].value;
    }
    return c;
}

tp_curve tp_curve_at(tp_metrics *m, size_t index) { return read_curve(m, index, false); }

size_t tp_role_find(tp_metrics *m, tp_run_role role)
{
    size_t best = SIZE_MAX, most = 0;
    tp_metric_point last;
    for (size_t k = 0; k < NAMES && role_names[role][k]; k++)
        for (size_t i = 0; i < tp_metrics_count(m); i++) {
            if (!is_named(role_names[role][k], tp_metrics_tag(m, i)))
                continue;
            size_t finite, n = tp_metrics_curve_end(m, i, &finite, &last);
            if (n && (finite > most || best == SIZE_MAX)) {
                best = i;
                most = finite;
            }
        }
    return best;
}

tp_curve tp_curve_of(tp_metrics *m, tp_run_role role)
{
    size_t i = tp_role_find(m, role);
    return i == SIZE_MAX ? (tp_curve){0} : read_curve(m, i, false);
}

tp_curve tp_curve_learned(tp_metrics *m, bool *ret_is_reward)
{
    tp_curve c = tp_curve_of(m, TP_ROLE_REWARD);
    *ret_is_reward = c.tag != NULL;
    return c.tag ? c : tp_curve_of(m, TP_ROLE_LOSS);
}

tp_curve tp_curve_drawn(tp_metrics *m, tp_run_role role)
{
    size_t i = tp_role_find(m, role);
    return i == SIZE_MAX ? (tp_curve){0} : read_curve(m, i, true);
}

void tp_curve_others(tp_metrics *m, tp_run_role role, const char *tag, char *out, size_t size)
{
    enum { ROOM = 24 }; /* for those that do not fit */
    char other[300];
    size_t at = 0, more = 0;
    out[0] = 0;
    if (tp_role_rank(role, tag) < 0)
        return;
    const char *same = other_spelling(tag, other, sizeof other);
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        const char *name = tp_metrics_tag(m, i);
        bool is_other =
            tp_role_rank(role, name) >= 0 && strcmp(name, tag) != 0 && strcmp(name, same) != 0;
        if (is_other && at + strlen(name) + ROOM < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", name);
        else
            more += is_other;
    }
    if (more)
        snprintf(out + at, size - at, "%s%zu more", at ? " and " : "", more);
}

bool tp_curve_last(tp_metrics *m, tp_run_role role, double *ret_step, double *ret_value)
{
    tp_metric_point last;
    size_t finite, i = tp_role_find(m, role);
    if (i == SIZE_MAX || tp_metrics_curve_end(m, i, &finite, &last) == 0)
        return false;
    *ret_step = (double)last.step;
    *ret_value = last.value;
    return true;
}

void tp_curve_release(tp_curve *c)
{
    free(c->step);
    free(c->value);
    *c = (tp_curve){0};
}

double tp_curve_scale(double *at, size_t n)
{
    double first = at[0], length = at[n - 1] - first, count = (double)n - 1;
    for (size_t i = 0; i < n; i++)
        at[i] = length > 0 ? (at[i] - first) * count / length : (double)i;
    return length > 0 ? length / count : 1;
}

double tp_curve_before(const tp_curve *c, double step)
{
    size_t lo = 0, hi = c->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->step[mid] <= step)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? c->value[lo - 1] : NAN;
}

static bool is_among(const size_t *list, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (list[k] == i)
            return true;
    return false;
}

size_t tp_curve_order(tp_metrics *m, size_t *ret)
{
    size_t n = 0, n_first;
    for (int role = 0; role < TP_ROLE_COUNT; role++) {
        size_t i = tp_role_find(m, (tp_run_role)role);
        if (i != SIZE_MAX && !is_among(ret, n, i))
            ret[n++] = i;
    }
    n_first = n;
    for (size_t i = 0; i < tp_metrics_count(m); i++)
        if (!is_among(ret, n_first, i))
            ret[n++] = i;
    return n_first;
}

/* ---- means of batches ---- */

enum { LEAST_BATCHES = 5, MOST_BATCHES = 40, LEAST_EFFECTIVE = 8, PIECES = 5, LEAST_PIECE = 20 };

double tp_batch_lag1(const double *x, size_t n)
{
    size_t pieces = n / LEAST_PIECE;
    return tp_lag1_beside_lines(x, n, pieces > PIECES ? PIECES : pieces ? pieces : 1);
}

size_t tp_batch_count(size_t n, double r)
{
    double length = ceil(4 * (1 + r) / (1 - r));
    size_t count = (size_t)((double)n / length);
    if (n < 2 * LEAST_BATCHES)
        return n;
    return count < LEAST_BATCHES ? LEAST_BATCHES : count > MOST_BATCHES ? MOST_BATCHES : count;
}

double tp_batch_df(double r, size_t n, double df)
{
    return r > 0.5 && tp_effective_n(n, r) < LEAST_EFFECTIVE ? 1 : df;
}

const char *tp_batch_df_text(const tp_batch_mean *m)
{
    return m->batches > 2 && m->df < 2 ? " with 1 df" : "";
}

/* n times the variance of the mean of n values, where neighbours are correlated by r and the rest
 * follows from that (AR(1)); over the variance of one. */
static double memory_of(double r, double n)
{
    return (1 + r) / (1 - r) - 2 * r * (1 - pow(r, n)) / (n * (1 - r) * (1 - r));
}

double tp_batch_inflation(double r, size_t n, size_t length)
{
    return memory_of(r, (double)n) / memory_of(r, (double)length);
}

tp_batch_mean tp_batch_mean_of(const double *x, size_t n, double r, double level)
{
    tp_batch_mean m = {.mean = tp_mean(x, n), .n = n, .p = NAN};
    double means[MOST_BATCHES];
    m.ci = tp_interval_undefined("fewer than 3 values");
    if (n < 3)
        return m;
    m.batches = tp_batch_count(n, r);
    tp_batch_means(x, n, m.batches, means);
    /* A remainder that fills no batch counts in the mean, not in its spread. */
    double se = tp_sd(means, m.batches) / sqrt((double)m.batches);
    m.df = tp_batch_df(r, n, (double)m.batches - 1);
    if (!(se > 0)) { /* all the same */
        m.ci = (tp_interval){m.mean, m.mean, NULL};
        m.p = m.mean == 0 ? 1 : 0;
        return m;
    }
    se *= sqrt(tp_batch_inflation(r, n, n / m.batches));
    m.ci = tp_t_interval(m.mean, se, m.df, level);
    m.p = tp_t_two_sided(m.mean / se, m.df);
    return m;
}

/* ---- directions ---- */

static bool has_word(const char *const *words, const char *word)
{
    for (; *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

/* What a word of a name says. */
enum {
    SAYS_NEUTRAL = 1, /* nobody knows */
    SAYS_MISHAP = 2,  /* something that should not be, whatever of and how often */
    SAYS_SPEED = 4,
    SAYS_TIME = 8,
    SAYS_MEMORY = 16,
    SAYS_LEFT = 32, /* of memory, what is not used */
    SAYS_MORE = 64, /* of these two the later one is the quantity: "accuracy_loss" is a loss */
    SAYS_LESS = 128
};

static int says(const char *word)
{
    static const struct {
        int what;
        const char *const words[24];
    } lists[] = {
        {SAYS_NEUTRAL,
         {"std", "var", "stderr", "standard", "lr", "kl", "entropy", "norm", "epoch", "scale",
          "pct", "rate", "length", "weight", "mask", "logp", "logps", "voluntary"}},
        {SAYS_MISHAP,
         {"error", "errors", "fault", "faults", "crash", "crashes", "crashed", "timeout",
          "timeouts", "nan", "nans", "refused", "rejected", "nonsense", "switches", "failed",
          "failure", "failures"}},
        {SAYS_SPEED, {"throughput", "utilization", "util", "mfu", "tps"}},
        {SAYS_TIME, {"time", "timing", "runtime", "seconds", "duration"}},
        {SAYS_MEMORY, {"memory", "mem"}},
        {SAYS_LEFT, {"available", "free"}},
        {SAYS_MORE,
         {"reward", "rewards", "accuracy", "accuracies", "acc", "score", "pass", "win", "f1",
          "bleu"}},
        {SAYS_LESS, {"loss", "losses", "perplexity", "ppl", "truncated", "truncation"}}};
    for (size_t i = 0; i < TP_COUNTOF(lists); i++)
        if (has_word(lists[i].words, word))
            return lists[i].what;
    return 0;
}

/* "tokens_per_sec" and "tokens/s" are speeds, "sec_per_step" is a time. */
static int says_unit(const char *word, const char *before, char mark)
{
    static const char *const second[] = {"sec", "second", "s", NULL};
    if (has_word(second, word) && strcmp(before, "per") == 0)
        return SAYS_SPEED;
    if (has_word(second, word) && mark == '/')
        return SAYS_MORE;
    return strcmp(word, "per") == 0 && has_word(second, before) ? SAYS_TIME : 0;
}

int tp_metric_direction(const char *tag)
{
    char word[32], before[32] = "";
    int said = 0;
    while (*tag) {
        char mark = 0;
        size_t n = 0;
        for (; *tag && !isalnum((unsigned char)*tag); tag++)
            mark = *tag;
        for (; isalnum((unsigned char)*tag); tag++)
            if (n + 1 < sizeof word)
                word[n++] = (char)tolower((unsigned char)*tag);
        word[n] = 0;
        int now = says(word) | says_unit(word, before, mark);
        if (now & (SAYS_MORE | SAYS_LESS))
            said &= ~(SAYS_MORE | SAYS_LESS);
        said |= now;
        memcpy(before, word, sizeof before);
    }
    if (said & SAYS_NEUTRAL)
        return 0;
    if (said & SAYS_MISHAP)
        return -1;
    if (said & SAYS_SPEED || (said & SAYS_MEMORY && said & SAYS_LEFT))
        return 1;
    if (said & (SAYS_TIME | SAYS_MEMORY))
        return -1;
    return said & SAYS_MORE ? 1 : said & SAYS_LESS ? -1 : 0;
}
