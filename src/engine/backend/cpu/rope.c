/* rope.c - rotary positions on x[T, n*D].  The two halves of a head are the
 * coordinates of D/2 points, each turned by the angle of the position's row in
 * the table: cos of D/2 angles, then sin.  A negative position passes unchanged. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

typedef struct {
    const float *cosine, *sine;
    float sign;
    int64_t half;
} turn;

VF_INLINE void turn_places(const turn *by, const void *x, bool x_bf16, void *y, bool y_bf16,
                           int64_t column, int64_t d, int64_t n)
{
    bool whole = n == VF_N;
    int64_t low = column + d, high = column + by->half + d;
    vf x1 = whole ? vf_get(x, x_bf16, low) : vf_get_n(x, x_bf16, low, n);
    vf x2 = whole ? vf_get(x, x_bf16, high) : vf_get_n(x, x_bf16, high, n);
    vf c = whole ? vf_load(by->cosine + d) : vf_load_n(by->cosine + d, n);
    vf s = (whole ? vf_load(by->sine + d) : vf_load_n(by->sine + d, n)) * by->sign;
    vf y1 = x1 * c - x2 * s, y2 = x2 * c + x1 * s;
    if (whole) {
        vf_put(y, y_bf16, low, y1);
        vf_put(y, y_bf16, high, y2);
    } else {
        vf_put_n(y, y_bf16, low, n, y1);
        vf_put_n(y, y_bf16, high, n, y2);
    }
}

VF_INLINE void copy_row(const void *x, bool x_bf16, void *y, bool y_bf16, int64_t width)
{
    int64_t i = 0;
    for (; i + VF_N <= width; i += VF_N)
        vf_put(y, y_bf16, i, vf_get(x, x_bf16, i));
    if (i < width)
        vf_put_n(y, y_bf16, i, width - i, vf_get_n(x, x_bf16, i, width - i));
}

static void rope_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *x = &launch->in[0], *table = &launch->in[2], *y = &launch->out[0];
    const int32_t *positions = launch->in[1].data;
    int64_t D = launch->attrs.head_dim;
    bool x_bf16 = is_half(x), y_bf16 = is_half(y);
    turn by = {.half = D / 2, .sign = launch->attrs.inverse ? -1.0f : 1.0f};
    for (int64_t t = begin; t < end; t++) {
        const void *from = row_at(x, t);
        void *to = row_at(y, t);
        if (positions[t] < 0) {
            if (from != to)
                copy_row(from, x_bf16, to, y_bf16, x->dim[1]);
            continue;
        }
        TP_ASSERT(positions[t] < table->dim[0]);
        by.cosine = row_at(table, positions[t]);
        by.sine = by.cosine + by.half;
        for (int64_t column = 0; column < x->dim[1]; column += D) {
            int64_t d = 0;
            for (; d + VF_N <= by.half; d += VF_N)
                turn_places(&by, from, x_bf16, to, y_bf16, column, d, VF_N);
            if (d < by.half)
                turn_places(&by, from, x_bf16, to, y_bf16, column, d, by.half - d);
        }
    }
}

static bool accepts(const tp_launch *launch)
{
    return are_floats(launch, 1, 1) && is_i32(&launch->in[1]) &&
           launch->in[2].dtype == TP_DTYPE_F32 && launch->attrs.head_dim % 2 == 0;
}

TP_CPU_ROWS_KERNEL(rope, rope_range, accepts);
