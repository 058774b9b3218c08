/* ggml_k.c - blocks of 256 with scales of scales.
 *
 * Q4_K holds sub-blocks of 32 as scale * code - min, whose scales and minima are 6 bits of a
 * common f16 each.  They are searched for: for 21 steps of the code near 15 / range a weighted
 * least-squares fit gives scale and min, and the one with the least error stays.  Q5_K has codes to
 * 31 and 16 such steps.  Q6_K holds
 * sub-blocks of 16 as scale * code; 19 steps are tried. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "engine/model/convert.h"
#include "engine/model/ggml.h"

enum { SUPER = 256, SUB4 = 32, SUB6 = 16, N4 = SUPER / SUB4, N6 = SUPER / SUB6 };

static const float tiny = 1e-15f; /* all of a block below it: zero */

static float read_f16(const unsigned char *from)
{
    float f;
    (void)tp_convert_to_f32(from, TP_DTYPE_F16, &f, 1);
    return f;
}

/* Stored, and what is read again. */
static float write_f16(float f, unsigned char *to)
{
    tp_convert_from_f32(&f, TP_DTYPE_F16, to, 1);
    return read_f16(to);
}

/* To the nearest, ties to even, within what both fit in. */
static int nearest(float f, int low, int high)
{
    if (!(f > (float)low))
        return low;
    if (f >= (float)high)
        return high;
    return (int)((f + 12582912.0f) - 12582912.0f); /* 1.5 * 2^23: its last bit is a one */
}

/* ---- Q4_K and Q5_K ---- */

/* Scale and min of sub-block j: four pairs have a byte each, the upper bits of these bytes belong
 * to the other four. */
static void read_pair(const unsigned char *s, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        *min = s[j + 4] >> 4 | (s[j] >> 6) << 4;
    }
}

static void write_pair(unsigned char *s, int j, int scale, int min)
{
    if (j < 4) {
        s[j] = (unsigned char)scale;
        s[j + 4] = (unsigned char)min;
    } else {
        s[j + 4] = (unsigned char)((scale & 15) | (min & 15) << 4);
        s[j - 4] = (unsigned char)(s[j - 4] | (scale >> 4) << 6);
        s[j] = (unsigned char)(s[j] | (min >> 4) << 6);
    }
}

/* {f16 d, f16 dmin, pairs[12], fifth bits[32] when there are any, nibbles[128]} */
static void read_45(const unsigned char *b, const unsigned char *fifth, const unsigned char *qs,
                    float *out)
{
    float d = read_f16(b), dmin = read_f16(b + 2);
    for (int j = 0; j < N4; j++) {
        int scale, min;
        read_pair(b + 4, j, &scale, &min);
        float step = d * (float)scale, low = dmin * (float)min;
        for (int l = 0; l < SUB4; l++) {
            int q = j % 2 ? qs[j / 2 * SUB4 + l] >> 4 : qs[j / 2 * SUB4 + l] & 15;
            if (fifth)
                q += (fifth[l] >> j & 1) << 4;
            out[j * SUB4 + l] = step * (float)q - low;
        }
    }
}

void tp_ggml_read_q4_k(const unsigned char *b, float *out) { read_45(b, NULL, b + 16, out); }
void tp_ggml_read_q5_k(const unsigned char *b, float *out) { read_45(b, b + 16, b + 48, out); }

/* What the search of a type goes through. */
typedef struct {
    int most; /* code */
    float first;
    int steps;
} span_of_codes;

static const span_of_codes q4_k = {15, -1.0f, 20}, q5_k = {31, -0.5f, 15};

/* One sub-block while scale and min are looked for. */
typedef struct {
    const span_of_codes *of;
    const float *x;
    float w[SUB4];
    float low, high, sum_w, sum_wx, scale, error;
    unsigned char codes[SUB4];
} search;

static float error_of(const search *s, float scale, float low, const unsigned char *codes)
{
    float error = 0;
    for (int i = 0; i < SUB4; i++) {
        float diff = scale * (float)codes[i] + low - s->x[i];
        diff = diff * diff;
        error += s->w[i] * diff;
    }
    return error;
}

/* Least squares of w (scale * code + low - x)^2 for these codes, low not above 0. */
static bool fit(const search *s, const unsigned char *codes, float *scale, float *low)
{
    float sum_l = 0, sum_l2 = 0, sum_xl = 0;
    for (int i = 0; i < SUB4; i++) {
        float l = (float)codes[i];
        sum_l += s->w[i] * l;
        sum_l2 += s->w[i] * l * l;
        sum_xl += s->w[i] * l * s->x[i];
    }
    float D = s->sum_w * sum_l2 - sum_l * sum_l;
    if (!(D > 0))
        return false;
    *scale = (s->sum_w * sum_xl - s->sum_wx * sum_l) / D;
    *low = (sum_l2 * s->sum_wx - sum_l * sum_xl) / D;
    if (*low > 0) {
        *low = 0;
        *scale = sum_xl / sum_l2;
    }
    return true;
}

static void quantise(const search *s, float inverse, unsigned char *codes)
{
    for (int i = 0; i < SUB4; i++)
        codes[i] = (unsigned char)nearest(inverse * (s->x[i] - s->low), 0, s->of->most);
}

static void begin(search *s, const span_of_codes *of, const float *x)
{
    float sum_x2 = 0;
    *s = (search){.of = of, .x = x, .low = x[0], .high = x[0]};
    for (int i = 0; i < SUB4; i++)
        sum_x2 += x[i] * x[i];
    float spread = sqrtf(sum_x2 / SUB4);
    for (int i = 0; i < SUB4; i++) {
        s->w[i] = spread + fabsf(x[i]);
        s->low = TP_MIN(s->low, x[i]);
        s->high = TP_MAX(s->high, x[i]);
        s->sum_w += s->w[i];
        s->sum_wx += s->w[i] * x[i];
    }
    s->low = TP_MIN(s->low, 0);
}

/* Codes, scale and low for one sub-block. */
static void find(search *s, const span_of_codes *of, const float *x)
{
    float most = (float)of->most;
    begin(s, of, x);
    if (s->high == s->low)
        return; /* scale and codes are 0 */
    float inverse = most / (s->high - s->low);
    s->scale = 1 / inverse;
    quantise(s, inverse, s->codes);
    s->error = error_of(s, s->scale, s->low, s->codes);
    for (int k = 0; k <= of->steps; k++) {
        unsigned char codes[SUB4];
        float scale, low;
        quantise(s, (of->first + 0.1f * (float)k + most) / (s->high - s->low), codes);
        if (!fit(s, codes, &scale, &low))
            continue;
        float error = error_of(s, scale, low, codes);
        if (error < s->error) {
            s->error = error;
            s->scale = scale;
            s->low = low;
            memcpy(s->codes, codes, sizeof codes);
        }
    }
}

/* Everything but the codes, which are left in `subs`. */
static void write_scales(const span_of_codes *of, const float *x, search subs[N4], unsigned char *b)
{
    float most_scale = 0, most_min = 0;
    for (int j = 0; j < N4; j++) {
        find(&subs[j], of, x + j * SUB4);
        most_scale = subs[j].scale > most_scale ? subs[j].scale : most_scale;
        most_min = -subs[j].low > most_min ? -subs[j].low : most_min; /* 0 stays: it has a sign */
    }
    float to_scale = most_scale > 0 ? 63 / most_scale : 0;
    float to_min = most_min > 0 ? 63 / most_min : 0;
    float d = write_f16(most_scale / 63, b), dmin = write_f16(most_min / 63, b + 2);
    memset(b + 4, 0, 12);
    for (int j = 0; j < N4; j++)
        write_pair(b + 4, j, nearest(to_scale * subs[j].scale, 0, 63),
                   nearest(to_min * -subs[j].low, 0, 63));
    for (int j = 0; j < N4; j++) {
        int scale, min;
        read_pair(b + 4, j, &scale, &min);
        float step = d * (float)scale, low = dmin * (float)min;
        for (int l = 0; l < SUB4 && step != 0; l++)
            subs[j].codes[l] = (unsigned char)nearest((x[j * SUB4 + l] + low) / step, 0, of->most);
    }
}

static void write_nibbles(const search subs[N4], unsigned char *qs)
{
    for (int j = 0; j < N4; j += 2)
        for (int l = 0; l < SUB4; l++)
            qs[j / 2 * SUB4 + l] =
                (unsigned char)((subs[j].codes[l] & 15) | (subs[j + 1].codes[l] & 15) << 4);
}

void tp_ggml_write_q4_k(const float *x, unsigned char *b)
{
    search subs[N4];
    write_scales(&q4_k, x, subs, b);
    write_nibbles(subs, b + 16);
}

void tp_ggml_write_q5_k(const float *x, unsigned char *b)
{
    search subs[N4];
    write_scales(&q5_k, x, subs, b);
    memset(b + 16, 0, SUB4);
    for (int j = 0; j < N4; j++)
        for (int l = 0; l < SUB4; l++)
            b[16 + l] = (unsigned char)(b[16 + l] | (subs[j].codes[l] >> 4) << j);
    write_nibbles(subs, b + 48);
}

/* ---- Q6_K: {low nibbles[128], upper pairs of bits[64], scales[16], f16 d} ---- */

enum { QH = 128, SCALES = 192, D = 208 };

/* Element 128 h + 32 q + l: its nibble is in byte 64 h + 32 (q % 2) + l, the upper half for
 * q > 1; its pair of bits is the q-th of byte 32 h + l. */
void tp_ggml_read_q6_k(const unsigned char *b, float *out)
{
    float d = read_f16(b + D);
    for (int i = 0; i < SUPER; i++) {
        int h = i / 128, q = i % 128 / 32, l = i % 32;
        int nibble = b[64 * h + 32 * (q % 2) + l];
        nibble = q > 1 ? nibble >> 4 : nibble & 15;
        int value = (nibble | (b[QH + 32 * h + l] >> 2 * q & 3) << 4) - 32;
        out[i] = d * (float)(int8_t)b[SCALES + i / SUB6] * (float)value;
    }
}

/* Codes from -32 for this step, and the sums of the fit, weighted by x^2. */
static void quantise_6(const float *x, float inverse, unsigned char *codes, float *sum_lx,
                       float *sum_l2)
{
    *sum_lx = *sum_l2 = 0;
    for (int i = 0; i < SUB6; i++) {
        int l = nearest(inverse * x[i], -32, 31);
        float w = x[i] * x[i];
        codes[i] = (unsigned char)(l + 32);
        *sum_lx += w * x[i] * (float)l;
        *sum_l2 += w * (float)l * (float)l;
    }
}

static float find_6(const float *x, unsigned char *codes)
{
    float size = 0, most = 0, sum_lx, sum_l2;
    for (int i = 0; i < SUB6; i++)
        if (fabsf(x[i]) > size) {
            size = fabsf(x[i]);
            most = x[i];
        }
    memset(codes, 0, SUB6);
    if (size < tiny)
        return 0;
    quantise_6(x, -32 / most, codes, &sum_lx, &sum_l2);
    float scale = sum_l2 != 0 ? sum_lx / sum_l2 : 0, best = scale * sum_lx;
    for (int k = -9; k <= 9; k++) {
        unsigned char other[SUB6];
        if (k == 0)
            continue;
        quantise_6(x, -(32 + 0.1f * (float)k) / most, other, &sum_lx, &sum_l2);
        if (sum_l2 > 0 && sum_lx * sum_lx > best * sum_l2) {
            scale = sum_lx / sum_l2;
            best = scale * sum_lx;
            memcpy(codes, other, sizeof other);
        }
    }
    return scale;
}

void tp_ggml_write_q6_k(const float *x, unsigned char *b)
{
    unsigned char codes[SUPER];
    float scales[N6], size = 0, most = 0;
    memset(b, 0, 210);
    for (int j = 0; j < N6; j++) {
        scales[j] = find_6(x + j * SUB6, codes + j * SUB6);
        if (fabsf(scales[j]) > size) {
            size = fabsf(scales[j]);
            most = scales[j];
        }
    }
    if (size < tiny)
        return;
    float inverse = -128 / most, d = write_f16(1 / inverse, b + D);
    for (int j = 0; j < N6; j++) {
        int scale = nearest(inverse * scales[j], -128, 127);
        float step = d * (float)scale;
        b[SCALES + j] = (unsigned char)scale;
        for (int i = j * SUB6; i < (j + 1) * SUB6 && step != 0; i++)
            codes[i] = (unsigned char)(nearest(x[i] / step, -32, 31) + 32);
    }
    for (int i = 0; i < SUPER; i++) {
        int h = i / 128, q = i % 128 / 32, l = i % 32;
        unsigned char *nibble = &b[64 * h + 32 * (q % 2) + l];
        *nibble = (unsigned char)(*nibble | (codes[i] & 15) << (q > 1 ? 4 : 0));
        b[QH + 32 * h + l] = (unsigned char)(b[QH + 32 * h + l] | (codes[i] >> 4) << 2 * q);
    }
}
