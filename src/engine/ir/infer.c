/* infer.c - shapes and dtypes of outputs from the signature of the op.
 *
 * Inputs are looked at from left to right.  The first dimension that is a letter alone
 * decides what the letter is; all that follow must agree.  Outputs are the values of their
 * expressions. */
#include "engine/ir/shapes.h"

#include <math.h>
#include <string.h>

const tp_value *tp_shapes_in(const tp_shapes *s, int i)
{
    static const tp_value absent;
    return i < s->n_in && s->in[i] ? &s->g->values[s->in[i]] : &absent;
}

void tp_shapes_refuse(tp_shapes *s, const char *fmt, ...)
{
    if (s->status != TP_OK)
        return;
    char detail[sizeof s->err->message];
    TP_FORMAT(detail, fmt);
    s->status = tp_fail(s->err, TP_ERR_FORMAT, "op %s: %s", tp_ops[s->op]->name, detail);
}

/* Or any dtype at all. */
static bool takes_any_float(const tp_operand_spec *spec) { return spec->kind <= TP_KIND_w; }

static tp_dtype dtype_of(tp_operand_kind kind)
{
    return kind >= TP_KIND_ids                                                     ? TP_DTYPE_I32
           : kind == TP_KIND_d || kind == TP_KIND_draws || kind == TP_KIND_scalars ? TP_DTYPE_F64
           : kind == TP_KIND_half                                                  ? TP_DTYPE_BF16
           : kind == TP_KIND_codes                                                 ? TP_DTYPE_U8
                                                                                   : TP_DTYPE_F32;
}

static void match_dtype(tp_shapes *s, int i, const tp_operand_spec *spec)
{
    tp_dtype is = tp_shapes_in(s, i)->dtype, want = dtype_of(spec->kind);
    if (spec->kind == TP_KIND_any)
        return;
    if (takes_any_float(spec) && !tp_is_float(is))
        tp_shapes_refuse(s, "operand %d is %s, not a float", i, tp_dtype_name(is));
    else if (spec->kind == TP_KIND_half && is == TP_DTYPE_F16)
        return;
    else if (!takes_any_float(spec) && is != want)
        tp_shapes_refuse(s, "operand %d is %s, not %s", i, tp_dtype_name(is), tp_dtype_name(want));
}

static const char *shape_text(uint8_t rank, const int64_t dim[TP_MAX_RANK], char out[48])
{
    snprintf(out, 48, rank == 2 ? "%lldx%lld" : "%lld", (long long)dim[0], (long long)dim[1]);
    return out;
}

static void refuse_dimension(tp_shapes *s, int i, const tp_operand_spec *spec, const char *text,
                             double want)
{
    const tp_value *v = tp_shapes_in(s, i);
    char is[48];
    bool swaps = spec->swaps && s->attrs->transposed, is_number = text[0] <= '9';
    tp_shapes_refuse(s,
                     is_number ? "operand %d, %s[%s%s%s], is %s"
                               : "operand %d, %s[%s%s%s], is %s, but %s is %.15g",
                     i, spec->name, spec->dim[swaps], spec->rank == 2 ? "," : "",
                     spec->rank == 2 ? spec->dim[!swaps] : "", shape_text(v->rank, v->dim, is),
                     text, want);
}

static void match_dimension(tp_shapes *s, int i, const tp_operand_spec *spec, int d)
{
    const tp_value *v = tp_shapes_in(s, i);
    const char *text = spec->dim[d ^ (spec->swaps && s->attrs->transposed)];
    double want = tp_dimension(text, &s->letters, s->attrs);
    if (isnan(want) && text[1] == 0)
        s->letters.value[(unsigned char)text[0]] = (double)v->dim[d];
    else if (!isnan(want) && want != (double)v->dim[d])
        refuse_dimension(s, i, spec, text, want);
}

static void match_operand(tp_shapes *s, int i, const tp_operand_spec *spec)
{
    const tp_value *v = tp_shapes_in(s, i);
    if (v->rank == 0) {
        if (!spec->is_optional)
            tp_shapes_refuse(s, "operand %d is missing", i);
        return;
    }
    match_dtype(s, i, spec);
    if (spec->any_shape && s->any_rank == 0)
        s->any_rank = v->rank;
    int rank = spec->any_shape ? s->any_rank : spec->rank;
    if (v->rank != rank)
        tp_shapes_refuse(s, "operand %d has rank %d, not %d", i, v->rank, rank);
    for (int d = 0; d < rank; d++)
        match_dimension(s, i, spec, d);
}

/* A letter that only absent operands have is 0. */
static void clear_letters_of(tp_shapes *s, const tp_operand_spec *spec)
{
    for (int d = 0; d < TP_MAX_RANK; d++)
        if (spec->dim[d][1] == 0 && isnan(tp_dimension(spec->dim[d], &s->letters, s->attrs)))
            s->letters.value[(unsigned char)spec->dim[d][0]] = 0;
}

void tp_shapes_match(tp_shapes *s)
{
    const tp_signature *sig = tp_op_signature(s->op);
    for (size_t i = 0; i < sizeof s->letters.value / sizeof *s->letters.value; i++)
        s->letters.value[i] = NAN;
    for (int i = 0; i < sig->n_in; i++)
        match_operand(s, i, &sig->in[i]);
    if (s->any_rank == 1)
        s->letters.value['C'] = 1;
    for (int i = 0; i < sig->n_in; i++)
        if (tp_shapes_in(s, i)->rank == 0)
            clear_letters_of(s, &sig->in[i]);
}

static void check_attributes(tp_shapes *s)
{
#define ATTR(type, field)                                            \
    if (s->attrs->field != 0 && !tp_op_has_attribute(s->op, #field)) \
        tp_shapes_refuse(s, "there is no attribute '%s'", #field);
#include "engine/ir/attrs.def"
#undef ATTR
}

/* The input whose dtype a float output has: see ops.h. */
static int dtype_source(const tp_shapes *s, const tp_signature *sig, const char *output)
{
    int i = output[0] == 'd' ? tp_operand_find(sig->in, sig->n_in, output + 1) : -1;
    if (i >= 0 && tp_is_float(tp_shapes_in(s, i)->dtype) && tp_shapes_in(s, i)->rank)
        return i;
    for (i = 0; i < sig->n_in; i++)
        if (takes_any_float(&sig->in[i]) && tp_shapes_in(s, i)->rank)
            return i;
    return 0;
}

static int64_t whole(tp_shapes *s, const char *text)
{
    double value = tp_dimension(text, &s->letters, s->attrs);
    TP_ASSERT(!isnan(value));
    if (value != floor(value))
        tp_shapes_refuse(s, "%s is %g, not a whole number", text, value);
    return value < 0x1p62 ? (int64_t)value : INT64_MAX;
}

bool tp_shape_fits(const int64_t dim[TP_MAX_RANK])
{
    int64_t count;
    return dim[0] > 0 && dim[1] > 0 && !__builtin_mul_overflow(dim[0], dim[1], &count) &&
           count < INT64_C(1) << 48;
}

/* False when the output does not exist. */
static bool make_output(tp_shapes *s, const tp_signature *sig, int k, tp_value *ret)
{
    const tp_operand_spec *spec = &sig->out[k];
    int alias = sig->alias[k];
    const tp_value *old = alias >= 0 ? tp_shapes_in(s, alias) : NULL;
    if (old && old->rank) {
        *ret =
            (tp_value){.dtype = old->dtype, .rank = old->rank, .dim = {old->dim[0], old->dim[1]}};
        return true;
    }
    bool swaps = spec->swaps && s->attrs->transposed;
    *ret = (tp_value){.rank = spec->any_shape ? s->any_rank : spec->rank};
    for (int d = 0; d < TP_MAX_RANK; d++)
        ret->dim[d] = whole(s, spec->dim[d ^ swaps]);
    ret->dtype = takes_any_float(spec) ? tp_shapes_in(s, dtype_source(s, sig, spec->name))->dtype
                                       : dtype_of(spec->kind);
    if (spec->is_optional && (old || ret->dim[1] == 0))
        return false;
    char is[48];
    if (s->status == TP_OK && !tp_shape_fits(ret->dim))
        tp_shapes_refuse(s, "output %d of %s is %s", k, shape_text(2, ret->dim, is),
                         ret->dim[0] > 0 && ret->dim[1] > 0 ? "too large" : "empty");
    return true;
}

tp_status tp_op_infer(const tp_graph *g, tp_op op, const tp_attrs *attrs, int n_in,
                      const tp_ref *in, int *ret_n_out, tp_value ret_out[TP_MAX_OUT], tp_error *err)
{
    TP_ASSERT((unsigned)op < TP_OP_COUNT);
    const tp_op_def *def = tp_ops[op];
    const tp_signature *sig = tp_op_signature(op);
    tp_shapes s = {.g = g, .op = op, .attrs = attrs, .n_in = n_in, .in = in, .err = err};
    if (def->traits & TP_OP_SOURCE)
        tp_shapes_refuse(&s, "is a source, not an operation");
    if (n_in > sig->n_in)
        tp_shapes_refuse(&s, "%d operands, at most %d", n_in, sig->n_in);
    for (int i = 0; i < n_in; i++)
        if (in[i] >= g->n_values)
            tp_shapes_refuse(&s, "operand %%%u does not exist", in[i]);
    if (s.status != TP_OK)
        return s.status;
    tp_shapes_match(&s);
    check_attributes(&s);
    if (s.status == TP_OK && def->check)
        def->check(&s);
    tp_value out[TP_MAX_OUT];
    int n_out = 0;
    for (int k = 0; k < sig->n_out && s.status == TP_OK; k++)
        n_out += make_output(&s, sig, k, &out[n_out]);
    if (s.status != TP_OK)
        return s.status;
    memcpy(ret_out, out, (size_t)n_out * sizeof *out);
    *ret_n_out = n_out;
    return TP_OK;
}
