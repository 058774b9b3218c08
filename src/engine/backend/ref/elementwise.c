/* elementwise.c - ops whose output element depends on the input elements at its
 * place, and concat.  Reading all inputs of a place before writing it makes
 * output 0 free to share input 0's memory. */
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double silu(double x) { return x * sigmoid(x); }

static double silu_slope(double x)
{
    double s = sigmoid(x);
    return s + x * s * (1 - s);
}

static const double gelu_cubic = 0.044715;

double tp_ref_gelu_of(double x, bool use_tanh)
{
    if (use_tanh)
        return 0.5 * x * (1 + tanh(sqrt(M_2_PI) * (x + gelu_cubic * x * x * x)));
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

static double gelu_slope(double x, bool use_tanh)
{
    if (use_tanh) {
        double t = tanh(sqrt(M_2_PI) * (x + gelu_cubic * x * x * x));
        double inner_slope = sqrt(M_2_PI) * (1 + 3 * gelu_cubic * x * x);
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner_slope;
    }
    double density = exp(-0.5 * x * x) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * density;
}

/* out[0] = f(in[0], in[1]) at every place; f ignores the second argument when there is none. */
static void map(const tp_launch *launch, double (*f)(double a, double b, const tp_attrs *attrs))
{
    const tp_operand *a = &launch->in[0], *b = &launch->in[1], *y = &launch->out[0];
    ref_each (y, r, c) {
        double second = is_bound(b) ? ref_load(b, r, c) : 0;
        ref_store(y, r, c, f(ref_load(a, r, c), second, &launch->attrs));
    }
}

/* An op whose element is `value` of the elements a and b. */
#define PLACE(name, value)                                             \
    static double name##_of(double a, double b, const tp_attrs *attrs) \
    {                                                                  \
        (void)b, (void)attrs;                                          \
        return value;                                                  \
    }                                                                  \
    TP_REF_KERNEL(name) { map(launch, name##_of); }

PLACE(add, a + b)
PLACE(mul, a *b)
PLACE(silu, silu(a))
PLACE(gelu, tp_ref_gelu_of(a, attrs->tanh))
PLACE(swiglu, silu(a) * b)
PLACE(cast, a)
PLACE(host, a)
PLACE(silu_grad, b *silu_slope(a))
PLACE(gelu_grad, b *gelu_slope(a, attrs->tanh))

TP_REF_KERNEL(swiglu_grad)
{
    const tp_operand *gate = &launch->in[0], *up = &launch->in[1], *dy = &launch->in[2];
    const tp_operand *dgate = &launch->out[0], *dup = &launch->out[1];
    ref_each (gate, r, c) {
        double g = ref_load(gate, r, c), u = ref_load(up, r, c), d = ref_load(dy, r, c);
        if (is_bound(dgate))
            ref_store(dgate, r, c, d * u * silu_slope(g));
        if (is_bound(dup))
            ref_store(dup, r, c, d * silu(g));
    }
}

TP_REF_KERNEL(concat)
{
    const tp_operand *y = &launch->out[0];
    if (!is_bound(y))
        return;
    int64_t first_column = 0;
    for (int i = 0; i < 3; i++) {
        const tp_operand *x = &launch->in[i];
        if (!is_bound(x))
            continue;
        ref_each (x, r, c)
            ref_store(y, r, first_column + c, ref_load(x, r, c));
        first_column += x->dim[1];
    }
}
