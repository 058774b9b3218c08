/* linear_db.c - db[N] = the sums of the columns of dy[T,N].  An item is a strip of
 * columns: every column is added up by one thread from top to bottom. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

enum { STRIP = 8 * VF_N };
enum { AHEAD = 8 }; /* rows, which lie too far apart for the processor's own prefetches */

/* The sums of `n` columns from `first` on; n is STRIP but for the last strip. */
VF_INLINE void strip_sum(const tp_operand *dy, int64_t first, int64_t n, float *to, bool accumulate)
{
    vf sum[8] = {vf_zero()};
    bool bf16 = is_half(dy);
    for (int j = 0; j < 8; j++)
        sum[j] = vf_zero();
    if (n == STRIP) {
        for (int64_t t = 0; t < dy->dim[0]; t++) {
            const void *row = row_at(dy, t), *later = row_at(dy, t + AHEAD);
            for (int j = 0; j < 8; j += bf16 ? 2 : 1)
                __builtin_prefetch((const char *)later + (first + j * VF_N) * (bf16 ? 2 : 4));
            for (int j = 0; j < 8; j++)
                sum[j] += vf_get(row, bf16, first + j * VF_N);
        }
    } else {
        for (int64_t t = 0; t < dy->dim[0]; t++) {
            const void *row = row_at(dy, t);
            for (int j = 0; j * VF_N < n; j++)
                sum[j] += vf_get_at(row, bf16, first + j * VF_N, n - j * VF_N);
        }
    }
    for (int j = 0; j * VF_N < n; j++) {
        int64_t at = first + j * VF_N, left = n - j * VF_N;
        if (accumulate)
            sum[j] += vf_get_at(to, false, at, left);
        vf_put_at(to, false, at, left, sum[j]);
    }
}

static void strip_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *dy = &launch->in[0];
    for (int64_t strip = begin; strip < end; strip++) {
        int64_t first = strip * STRIP;
        int64_t n = dy->dim[1] - first < STRIP ? dy->dim[1] - first : STRIP;
        strip_sum(dy, first, n, launch->out[0].data, adds_to(launch, 1));
    }
}

static void linear_db(const tp_launch *launch)
{
    const tp_operand *dy = &launch->in[0];
    if (is_bound(&launch->out[0])) {
        tp_cpu_static(launch, ceil_div(dy->dim[1], STRIP), dy->dim[0] * dy->dim[1] * 4, strip_range,
                      launch);
    }
}

static bool accepts(const tp_launch *launch)
{
    return are_floats(launch, 1, 0) && launch->out[0].dtype == TP_DTYPE_F32;
}

TP_CPU_KERNEL(linear_db, .accepts = accepts, .run = linear_db);
