/* sample.c - one id per row of logits.
 *
 * The exponentials e = exp((z - largest) / temperature) of the ids that may be chosen are
 * kept.  A cut is a logit and how many of the ids with just that logit stay; it is found by
 * three passes of a histogram over the bits of the logits, most significant first, which
 * count (top-k) or weigh (top-p).  Then blocks of e are summed, and the draw looks into the
 * block where it falls. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/loss_rows.h"

enum { BLOCK = 1024, BUCKETS = 2048 };

typedef struct {
    const tp_launch *launch;
    char *scratch;
    size_t scratch_bytes;
} sampling;

typedef struct {
    float *e;
    double *blocks; /* sums of e */
    double *weight; /* of a bucket */
    int64_t *count;
} row_scratch;

/* What stays: logits above `limit`, and the first `ties` of those equal to it. */
typedef struct {
    uint32_t limit; /* as ordered() */
    int64_t ties;
} cut;

typedef struct {
    const float *z;
    int64_t n;
    float largest, scale; /* 1 / temperature */
    bool is_whole;        /* no id is left out */
    row_scratch s;
} row;

static row_scratch scratch_at(const tp_launch *launch, char *at, size_t *ret_bytes)
{
    size_t V = (size_t)launch->in[0].dim[1], blocks = V / BLOCK + 1;
    char *begin = at;
    row_scratch s;
    s.e = (float *)(void *)at;
    at += round_up_64(V * sizeof *s.e);
    s.blocks = (double *)(void *)at;
    at += round_up_64(blocks * sizeof *s.blocks);
    s.weight = (double *)(void *)at;
    at += BUCKETS * sizeof *s.weight;
    s.count = (int64_t *)(void *)at;
    at += BUCKETS * sizeof *s.count;
    *ret_bytes = (size_t)(at - begin);
    return s;
}

/* The order of floats as the order of unsigned integers; both zeros are one. */
VF_INLINE uint32_t ordered(float x)
{
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static int64_t index_of_largest(const float *z, int64_t n, float largest)
{
    int64_t i = 0;
    while (i < n && z[i] != largest)
        i++;
    return i;
}

/* ---- cuts ---- */

/* Of the ids inside `c`: the cut that leaves the first whose count reaches `most`, or whose
 * weight reaches `share`; the other is INFINITY. */
static cut narrow(const row *r, cut c, double most, double share)
{
    static const int shifts[] = {21, 10, 0}, bits[] = {11, 11, 10};
    uint32_t prefix = 0;
    double count = 0, weight = 0;
    int64_t equal = 0;
    for (int pass = 0; pass < 3; pass++) {
        uint32_t known = pass == 0 ? 0 : ~0u << shifts[pass - 1], mask = (1u << bits[pass]) - 1;
        memset(r->s.count, 0, BUCKETS * sizeof *r->s.count);
        memset(r->s.weight, 0, BUCKETS * sizeof *r->s.weight);
        for (int64_t i = 0; i < r->n; i++) {
            uint32_t key = ordered(r->z[i]);
            if (key < c.limit || (key & known) != prefix)
                continue;
            uint32_t bucket = key >> shifts[pass] & mask;
            r->s.count[bucket]++;
            r->s.weight[bucket] += (double)r->s.e[i];
        }
        uint32_t bucket = mask;
        for (;; bucket--) {
            bool is_last = bucket == 0;
            equal = r->s.count[bucket];
            if (equal > 0 &&
                (count + (double)equal >= most || weight + r->s.weight[bucket] >= share))
                break;
            if (is_last)
                return c; /* all of it is not enough: rounding */
            count += (double)equal;
            weight += r->s.weight[bucket];
        }
        prefix |= bucket << shifts[pass];
    }
    double each = r->s.weight[prefix & 0x3ff] / (double)equal, wanted = most - count;
    if (most == (double)INFINITY)
        wanted = each > 0 ? ceil((share - weight) / each) : 1;
    int64_t ties = wanted < 1 ? 1 : wanted > (double)equal ? equal : (int64_t)wanted;
    if (prefix == c.limit && ties > c.ties)
        ties = c.ties;
    return (cut){prefix, ties};
}

static double weight_inside(const row *r, cut c)
{
    double sum = 0, equal = 0;
    int64_t ties = 0;
    for (int64_t i = 0; i < r->n; i++) {
        uint32_t key = ordered(r->z[i]);
        sum += key > c.limit ? (double)r->s.e[i] : 0;
        if (key == c.limit && ties++ < c.ties)
            equal += (double)r->s.e[i];
    }
    return sum + equal;
}

/* Exponentials outside of the cut become 0. */
static void apply(const row *r, cut c, float min_p)
{
    int64_t ties = 0;
    for (int64_t i = 0; i < r->n; i++) {
        uint32_t key = ordered(r->z[i]);
        bool stays = key > c.limit || (key == c.limit && ties++ < c.ties);
        if (!stays || r->s.e[i] < min_p)
            r->s.e[i] = 0;
    }
}

static void cut_row(const row *r, const float *params)
{
    float top_p = params[2];
    cut c = {0, INT64_MAX};
    if (params[1] >= 1 && params[1] < (float)r->n)
        c = narrow(r, c, (double)params[1], (double)INFINITY);
    if (top_p > 0 && top_p < 1)
        c = narrow(r, c, (double)INFINITY, (double)top_p * weight_inside(r, c));
    apply(r, c, params[3]);
}

/* ---- drawing ---- */

static void exponentials(const row *r)
{
    for (int64_t i = 0; i < r->n; i += VF_N) {
        int64_t left = r->n - i;
        if (left >= VF_N)
            vf_store(r->s.e + i, vf_exp((vf_load(r->z + i) - r->largest) * r->scale));
        else
            vf_store_n(r->s.e + i, left,
                       vf_exp((vf_load_n(r->z + i, left) - r->largest) * r->scale));
    }
}

static double sum_blocks(const row *r)
{
    double total = 0;
    for (int64_t b = 0; b * BLOCK < r->n; b++) {
        int64_t end = (b + 1) * BLOCK < r->n ? (b + 1) * BLOCK : r->n, i = b * BLOCK;
        vf sum = vf_zero();
        for (; i + VF_N <= end; i += VF_N)
            sum += vf_load(r->s.e + i);
        double block = (double)vf_sum(sum);
        for (; i < end; i++)
            block += (double)r->s.e[i];
        r->s.blocks[b] = block;
        total += block;
    }
    return total;
}

/* The first id whose cumulated weight exceeds `target`; the last that has any, should the
 * sums not add up to it. */
static int64_t find(const row *r, double target)
{
    int64_t b = 0, chosen = -1;
    double sum = 0;
    while ((b + 1) * BLOCK < r->n && sum + r->s.blocks[b] <= target)
        sum += r->s.blocks[b++];
    for (int64_t i = b * BLOCK; i < r->n && i < (b + 1) * BLOCK; i++) {
        sum += (double)r->s.e[i];
        if (r->s.e[i] > 0)
            chosen = i;
        if (chosen == i && sum > target)
            return i;
    }
    for (int64_t i = b * BLOCK; chosen < 0 && i-- > 0;)
        chosen = r->s.e[i] > 0 ? i : chosen;
    return chosen;
}

/* The exponentials that are there are those of the whole row at temperature 1. */
static int64_t draw(row *r, const float *params, double u, double *ret_drawn)
{
    r->scale = 1 / params[0];
    if (!r->is_whole || r->scale != 1)
        exponentials(r);
    bool is_cut = params[1] >= 1 || (params[2] > 0 && params[2] < 1) || params[3] > 0;
    if (is_cut)
        cut_row(r, params);
    double total = sum_blocks(r);
    int64_t id = find(r, u * total);
    *ret_drawn = ((double)r->z[id] - (double)r->largest) / (double)params[0] - log(total);
    return id;
}

static void sample_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const sampling *a = context;
    const tp_launch *launch = a->launch;
    size_t bytes;
    row_scratch s = scratch_at(launch, a->scratch + (size_t)thread * a->scratch_bytes, &bytes);
    int64_t V = launch->in[0].dim[1], n0 = launch->attrs.n0;
    int32_t *ids = launch->out[0].data;
    float *logp = launch->out[1].data, *drawn = launch->out[2].data;
    for (int64_t i = begin; i < end; i++) {
        row r = {.z = row_at(&launch->in[0], i), .n = n0 > 0 && n0 < V ? n0 : V, .s = s};
        const float *params = row_at(&launch->in[1], i);
        float top = row_largest(r.z, false, V);
        double lse = (double)top + log(row_exp_sum(r.z, false, s.e, V, top)), row_drawn = 0;
        r.is_whole = r.n == V;
        r.largest = r.is_whole ? top : row_largest(r.z, false, r.n);
        int64_t id = isfinite(lse) ? 0 : -1;
        if (id == 0 && (params[0] <= 0 || !r.is_whole)) {
            id = index_of_largest(r.z, r.n, r.largest);
            id = id < r.n ? id : -1; /* nothing but -infinity before n0 */
        }
        if (id >= 0 && params[0] > 0)
            id = draw(&r, params, ((const double *)launch->in[2].data)[i], &row_drawn);
        if (ids)
            ids[i] = (int32_t)id;
        if (logp)
            logp[i] = id < 0 ? NAN : (float)((double)r.z[id] - lse);
        if (drawn)
            drawn[i] = id < 0 ? NAN : (float)row_drawn;
    }
}

static void sample(const tp_launch *launch)
{
    sampling a = {.launch = launch, .scratch = launch->workspace};
    scratch_at(launch, launch->workspace, &a.scratch_bytes);
    const tp_operand *z = &launch->in[0];
    tp_cpu_dynamic(launch, z->dim[0], z->dim[0] * z->dim[1] * 8, sample_range, &a);
}

static size_t workspace(const tp_launch *launch)
{
    size_t bytes;
    scratch_at(launch, NULL, &bytes);
    return bytes * launch->threads;
}

static bool accepts(const tp_launch *launch)
{
    return launch->in[0].dtype == TP_DTYPE_F32 && launch->in[1].dtype == TP_DTYPE_F32 &&
           launch->in[2].dtype == TP_DTYPE_F64;
}

TP_CPU_KERNEL(sample, .accepts = accepts, .workspace = workspace, .run = sample);
