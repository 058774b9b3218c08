/* Frequencies and angles are rounded to f32 where transformers rounds them, so that
 * far positions turn by the same angle; cosine and sine are then exact to f32. */
#include "engine/model/rope.h"

#include <math.h>
#include <string.h>

static const double max_theta = 1e12;

/* The original context: the top level goes before the section, as in transformers. */
static tp_status read_context(const tp_fields *top, const tp_fields *section, int64_t max_positions,
                              double *ret, tp_error *err)
{
    static const char field[] = "original_max_position_embeddings";
    const tp_fields *from = tp_fields_get(top, field) ? top : section;
    return tp_fields_number(from, field, 0, 0x1p31, (double)max_positions, ret, err);
}

static tp_status read_llama3(const tp_fields *c, tp_rope *rope, tp_error *err)
{
    TP_TRY(tp_fields_number(c, "factor", 0, 1e6, NAN, &rope->factor, err));
    TP_TRY(tp_fields_number(c, "low_freq_factor", 0, 1e6, NAN, &rope->low_freq_factor, err));
    TP_TRY(tp_fields_number(c, "high_freq_factor", 0, 1e6, NAN, &rope->high_freq_factor, err));
    if (rope->high_freq_factor <= rope->low_freq_factor)
        return tp_fields_fail(c, "high_freq_factor", TP_ERR_FORMAT, err,
                              "expected more than low_freq_factor, %g", rope->low_freq_factor);
    rope->is_llama3 = true;
    return TP_OK;
}

static tp_status read_section(const tp_fields *c, tp_rope *rope, tp_error *err)
{
    for (const tp_json *v = c->object->child; v; v = v->next)
        if (v->type == TP_JSON_OBJECT)
            return tp_fields_fail(c, v->key.data, TP_ERR_UNSUPPORTED, err,
                                  "rotations that differ between layers are not supported");
    const char *type_field = tp_fields_get(c, "rope_type") ? "rope_type" : "type";
    const char *type;
    double partial;
    TP_TRY(tp_fields_string(c, type_field, "default", &type, err));
    TP_TRY(tp_fields_number(c, "rope_theta", 0, max_theta, rope->theta, &rope->theta, err));
    TP_TRY(tp_fields_number(c, "partial_rotary_factor", 0, 1, 1, &partial, err));
    if (partial < 1)
        return tp_fields_fail(c, "partial_rotary_factor", TP_ERR_UNSUPPORTED, err,
                              "only whole heads are rotated here");
    if (strcmp(type, "llama3") == 0)
        return read_llama3(c, rope, err);
    if (strcmp(type, "default") != 0)
        return tp_fields_fail(c, type_field, TP_ERR_UNSUPPORTED, err,
                              "supported kinds are default and llama3");
    return TP_OK;
}

/* rope_scaling, the older name, is the one that transformers takes when both are there. */
static const char *section_name(const tp_fields *c)
{
    const tp_json *old = tp_fields_get(c, "rope_scaling");
    return old && (old->type != TP_JSON_OBJECT || old->n > 0) ? "rope_scaling" : "rope_parameters";
}

tp_status tp_rope_read(const tp_fields *c, int64_t max_positions, tp_rope *ret, tp_error *err)
{
    tp_rope rope = {0};
    TP_TRY(tp_fields_number(c, "rope_theta", 0, max_theta, 10000, &rope.theta, err));
    const char *field = section_name(c);
    const tp_json *section = tp_fields_get(c, field);
    if (section && section->type != TP_JSON_OBJECT)
        return tp_fields_fail(c, field, TP_ERR_FORMAT, err, "expected an object");
    if (section) {
        char name[32];
        snprintf(name, sizeof name, "%s.", field);
        tp_fields inner = {.path = c->path, .section = name, .object = section};
        TP_TRY(read_section(&inner, &rope, err));
        if (rope.is_llama3)
            TP_TRY(read_context(c, &inner, max_positions, &rope.original_positions, err));
    }
    *ret = rope;
    return TP_OK;
}

static float plain_frequency(const tp_rope *rope, int64_t head_dim, int64_t i)
{
    float exponent = (float)(2 * i) / (float)head_dim;
    return 1.0f / (float)pow((double)(float)rope->theta, (double)exponent);
}

/* Llama 3.1: pairs that turn less than low_freq_factor times within the original
 * context are slowed by `factor` (0), those above high_freq_factor kept (1), others
 * blended. */
static float smooth_of(const tp_rope *rope, float frequency)
{
    float original = (float)rope->original_positions;
    float low = (float)rope->low_freq_factor, high = (float)rope->high_freq_factor;
    float wavelength = (float)(2 * M_PI) / frequency;
    if (wavelength < original / high)
        return 1;
    if (wavelength > original / low)
        return 0;
    return (original / wavelength - low) / (high - low);
}

static float scaled_frequency(const tp_rope *rope, float frequency)
{
    float factor = (float)rope->factor, smooth = smooth_of(rope, frequency);
    if (smooth == 1)
        return frequency;
    if (smooth == 0)
        return frequency / factor;
    return (1 - smooth) * (frequency / factor) + smooth * frequency;
}

float tp_rope_divisor(const tp_rope *rope, int64_t head_dim, int64_t i)
{
    if (!rope->is_llama3)
        return 1;
    float factor = (float)rope->factor,
          smooth = smooth_of(rope, plain_frequency(rope, head_dim, i));
    if (smooth == 1)
        return 1;
    return smooth == 0 ? factor : 1 / ((1 - smooth) / factor + smooth);
}

tp_tensor tp_rope_tensor(int64_t positions, int64_t head_dim)
{
    return (tp_tensor){.name = "rope.table",
                       .role = TP_ROLE_CONSTANT,
                       .dtype = TP_DTYPE_F32,
                       .rank = 2,
                       .dim = {positions, head_dim}};
}

void tp_rope_fill(const tp_rope *rope, int64_t head_dim, int64_t positions, float *table)
{
    int64_t half = head_dim / 2;
    for (int64_t i = 0; i < half; i++) {
        float frequency = plain_frequency(rope, head_dim, i);
        if (rope->is_llama3)
            frequency = scaled_frequency(rope, frequency);
        for (int64_t p = 0; p < positions; p++) {
            double angle = (double)((float)p * frequency);
            table[p * head_dim + i] = (float)cos(angle);
            table[p * head_dim + half + i] = (float)sin(angle);
        }
    }
}
