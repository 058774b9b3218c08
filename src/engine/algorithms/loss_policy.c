/* loss_policy.c - importance ratios, clipping, KL and the sums that are reported. */
#include "engine/algorithms/loss_policy.h"

#include <math.h>

/* What every mean is divided by besides its count. */
static const double tiny = 1e-8;

void tp_policy_sums_init(tp_policy_sums *sums)
{
    *sums = (tp_policy_sums){.ratio_min = INFINITY,
                             .ratio_max = -INFINITY,
                             .ratio_clipped_min = INFINITY,
                             .ratio_clipped_max = -INFINITY};
}

void tp_policy_sums_merge(tp_policy_sums *total, const tp_policy_sums *part)
{
#define ADD(name) total->name += part->name;
#define LEAST(name) total->name = fmin(total->name, part->name);
#define MOST(name) total->name = fmax(total->name, part->name);
    TP_POLICY_SUMS(ADD)
    TP_POLICY_LEAST(LEAST)
    TP_POLICY_MOST(MOST)
#undef ADD
#undef LEAST
#undef MOST
}

static double k1(double x, double *ret_slope)
{
    *ret_slope = -1;
    return -x;
}

static double k2(double x, double *ret_slope)
{
    *ret_slope = x;
    return x * x / 2;
}

static double k3(double x, double *ret_slope)
{
    *ret_slope = expm1(x);
    return expm1(x) - x;
}

const tp_kl_row tp_kl_types[] = {
    [TP_KL_K1] = {"k1", k1}, [TP_KL_K2] = {"k2", k2}, [TP_KL_K3] = {"k3", k3}, {NULL, NULL}};

const char *const tp_truncations[] = {[TP_TRUNCATE_CLAMP - 1] = "tis",
                                      [TP_TRUNCATE_ZERO - 1] = "icepop",
                                      [TP_TRUNCATE_SEQUENCES - 1] = "seq-mask-tis",
                                      NULL};

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Beyond the input clamp, where nothing has a gradient. */
static bool is_far(const tp_policy_loss *o, double x)
{
    return !isnan(o->kl_input_clamp) && fabs(x) > o->kl_input_clamp;
}

double tp_policy_kl(const tp_policy_loss *o, double lp, double ref, double *ret_slope)
{
    double x = ref - lp, slope, moves = is_far(o, x) ? 0 : -1; /* dx/dlp */
    if (is_far(o, x))
        x = clamp(x, -o->kl_input_clamp, o->kl_input_clamp);
    double k = tp_kl_types[o->kl_type].k(x, &slope);
    slope *= moves;
    if (!isnan(o->kl_output_clamp)) {
        slope = fabs(k) > o->kl_output_clamp ? 0 : slope;
        k = clamp(k, -o->kl_output_clamp, o->kl_output_clamp);
    }
    if (ret_slope)
        *ret_slope = slope;
    return k;
}

/* The same times weight v, whose derivative is v as well but beyond the input clamp; the output
 * clamp is the last. */
static double weighted_kl(const tp_policy_loss *o, double lp, double gen, double ref,
                          double *ret_slope)
{
    tp_policy_loss open = *o;
    double slope;
    bool weight_moves = !o->kl_without_sampling && !is_far(o, ref - lp);
    open.kl_output_clamp = NAN;
    double k = tp_policy_kl(&open, lp, ref, &slope);
    double v = o->kl_from_generator ? exp(lp - gen) : 1;
    if (!isfinite(v)) {
        *ret_slope = 0;
        return 0;
    }
    slope = v * (slope + (weight_moves ? k : 0));
    k *= v;
    if (!isnan(o->kl_output_clamp)) {
        slope = fabs(k) > o->kl_output_clamp ? 0 : slope;
        k = clamp(k, -o->kl_output_clamp, o->kl_output_clamp);
    }
    *ret_slope = slope;
    return k;
}

/* ---- importance of a rollout whose generator was not quite the trained policy ---- */

static double finite_or_zero(double x) { return isfinite(x) ? x : 0; }

static bool is_outside(const tp_policy_loss *o, double x)
{
    double low = isnan(o->truncate_min) ? 0 : o->truncate_min;
    return !(x >= low && x <= o->truncate_max);
}

static double truncated(const tp_policy_loss *o, double w)
{
    double low = isnan(o->truncate_min) ? 0 : o->truncate_min;
    if (o->truncation == TP_TRUNCATE_CLAMP)
        return clamp(w, low, o->truncate_max);
    if (o->truncation == TP_TRUNCATE_ZERO)
        return is_outside(o, w) ? 0 : w;
    return w;
}

typedef struct {
    double whole;  /* of the sequence, in sequence mode */
    double factor; /* 0 for a sequence that is left out, else 1 */
    double mean_log_ratio;
} sequence_weights;

static double previous(const tp_policy_sequence *s, size_t t)
{
    return (double)(s->prev ? s->prev[t] : s->logp[t]);
}

static sequence_weights weigh_sequence(const tp_policy_loss *o, const tp_policy_sequence *s,
                                       tp_policy_sums *sums)
{
    sequence_weights w = {.whole = 1, .factor = 1};
    double difference = 0, log_ratio = 0;
    for (size_t t = 0; t < s->n; t++) {
        difference += previous(s, t) - (double)s->gen[t];
        log_ratio += (double)s->logp[t] - previous(s, t);
    }
    w.mean_log_ratio = log_ratio / ((double)s->n + tiny);
    w.whole = finite_or_zero(exp(difference));
    if (o->truncation == TP_TRUNCATE_SEQUENCES && s->n > 0) {
        double finite = 0;
        for (size_t t = 0; t < s->n; t++)
            finite += finite_or_zero(previous(s, t) - (double)s->gen[t]);
        bool out = is_outside(o, exp(finite / ((double)s->n + tiny)));
        sums->outside += out;
        w.factor = out ? 0 : 1;
    }
    return w;
}

static double importance(const tp_policy_loss *o, const tp_policy_sequence *s, size_t t,
                         const sequence_weights *sw, tp_policy_sums *sums)
{
    bool by_sequence = o->ratio == TP_RATIO_SEQUENCE;
    double w = by_sequence ? sw->whole : finite_or_zero(exp(previous(s, t) - (double)s->gen[t]));
    if (o->truncation == TP_TRUNCATE_CLAMP || o->truncation == TP_TRUNCATE_ZERO)
        sums->outside += is_outside(o, w);
    double kept = truncated(o, w) * sw->factor;
    sums->importance += by_sequence ? kept / (double)s->n : kept;
    return o->correction ? kept : 1;
}

/* ---- the surrogate ---- */

typedef struct {
    double ratio, clipped; /* as reported */
    double value;          /* of the token, before w */
    double by_ratio;       /* d value / d ratio */
    double by_logp;        /* d value / d logp of this token, beside the ratio */
} surrogate;

static double ratio_of(const tp_policy_loss *o, const tp_policy_sequence *s, size_t t,
                       const sequence_weights *sw)
{
    switch (o->ratio) {
    case TP_RATIO_SEQUENCE:
        return exp(sw->mean_log_ratio);
    case TP_RATIO_NONE:
        return (double)s->logp[t];
    case TP_RATIO_ON_POLICY:
        return 1;
    default:
        return exp((double)s->logp[t] - previous(s, t));
    }
}

static surrogate surrogate_of(const tp_policy_loss *o, const tp_policy_sequence *s, size_t t,
                              const sequence_weights *sw, tp_policy_sums *sums)
{
    double A = s->advantage[t];
    bool clips = o->ratio == TP_RATIO_TOKEN || o->ratio == TP_RATIO_SEQUENCE;
    surrogate r = {.ratio = ratio_of(o, s, t, sw)};
    double low = 1 - o->clip_min, high = 1 + o->clip_max;
    r.clipped = clips ? clamp(r.ratio, low, high) : r.ratio;
    if (o->cispo) {
        r.value = -A * r.clipped * (double)s->logp[t];
        r.by_logp = -A * r.clipped;
    } else {
        bool is_clipped = -A * r.clipped > -A * r.ratio;
        r.value = is_clipped ? -A * r.clipped : -A * r.ratio;
        r.by_ratio = is_clipped ? 0 : -A;
        sums->clipped_low += is_clipped && r.ratio < low;
        sums->clipped_high += is_clipped && r.ratio > high;
    }
    if (!isnan(o->dual_clip) && A < 0 && r.value > -A * o->dual_clip) {
        r.value = -A * o->dual_clip;
        r.by_ratio = r.by_logp = 0;
        sums->dual_clipped++;
    }
    return r;
}

/* ---- one sequence ---- */

static void observe(const tp_policy_loss *o, const tp_policy_sequence *s, size_t t,
                    const surrogate *r, tp_policy_sums *sums)
{
    double lp = (double)s->logp[t], prev = previous(s, t), gen = (double)s->gen[t], slope;
    double difference = fabs(gen - prev);
    sums->ratio += r->ratio;
    sums->ratio_clipped += r->clipped;
    sums->ratio_min = fmin(sums->ratio_min, r->ratio);
    sums->ratio_max = fmax(sums->ratio_max, r->ratio);
    sums->ratio_clipped_min = fmin(sums->ratio_clipped_min, r->clipped);
    sums->ratio_clipped_max = fmax(sums->ratio_clipped_max, r->clipped);
    sums->mult_error += exp(difference);
    sums->gen_kl += tp_kl_types[o->kl_type].k(prev - gen, &slope);
    sums->policy_kl += tp_kl_types[o->kl_type].k(gen - prev, &slope);
    double mixture = log(0.5 * exp(prev) + 0.5 * exp(gen));
    sums->js += 0.5 * k3(prev - mixture, &slope) + 0.5 * k3(gen - mixture, &slope);
    sums->entropy += -exp(lp - gen) * lp;
    if (difference > sums->max_logp_difference || isnan(difference))
        sums->max_logp_difference = difference;
}

/* What a token's term is divided by. */
static double divisor(const tp_policy_loss *o, const tp_policy_norm *norm, size_t n)
{
    if (!isnan(o->length_divisor))
        return o->length_divisor * norm->sequences + tiny;
    if (o->token_level)
        return norm->tokens + tiny;
    return ((double)n + tiny) * (norm->sequences + tiny);
}

void tp_policy_loss_add(const tp_policy_loss *o, const tp_policy_norm *norm,
                        const tp_policy_sequence *s, tp_policy_sums *sums, double *ret_gradient)
{
    if (s->n == 0)
        return;
    sequence_weights sw = weigh_sequence(o, s, sums);
    double per_token = 1 / divisor(o, norm, s->n);
    double by_sequence_ratio = 0; /* sum over tokens of d term / d ratio */
    for (size_t t = 0; t < s->n; t++) {
        surrogate r = surrogate_of(o, s, t, &sw, sums);
        double w = importance(o, s, t, &sw, sums) * per_token;
        sums->actor_loss += w * r.value;
        ret_gradient[t] = w * r.by_logp;
        if (o->ratio == TP_RATIO_SEQUENCE)
            by_sequence_ratio += w * r.by_ratio;
        else /* d ratio / d logp is the ratio, but for the bare log-probability */
            ret_gradient[t] += w * r.by_ratio * (o->ratio == TP_RATIO_NONE ? 1 : r.ratio);
        if (s->ref) {
            double slope, k = weighted_kl(o, (double)s->logp[t], (double)s->gen[t],
                                          (double)s->ref[t], &slope);
            sums->kl += per_token * k;
            ret_gradient[t] += o->kl_penalty * per_token * slope;
        }
        if (s->is_positive && o->positive_nll != 0) {
            double n = norm->positive_tokens + tiny;
            sums->nll -= (double)s->logp[t] / n;
            ret_gradient[t] -= o->positive_nll / n;
        }
        observe(o, s, t, &r, sums);
    }
    double spread = by_sequence_ratio * exp(sw.mean_log_ratio) / ((double)s->n + tiny);
    for (size_t t = 0; t < s->n && o->ratio == TP_RATIO_SEQUENCE; t++)
        ret_gradient[t] += spread;
    sums->tokens += (double)s->n;
    sums->sequences += 1;
    sums->loss = sums->actor_loss + o->kl_penalty * sums->kl + o->positive_nll * sums->nll;
}
