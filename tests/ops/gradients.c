/* gradients.c - ref's gradients against finite differences of ref's forward ops.
 *
 * With cotangents c_o for the outputs o of the forward op, L(x) = sum c_o . o(x);
 * the gradient op must return dL/dx.  Everything is f64, so a central difference
 * of step h has an error of about h^2 + 1e-16 / h: 1e-9 is reached, 1e-6 asked. */
#include "ops/bench.h"

#include <math.h>
#include <string.h>

enum { MAX_ELEMENTWISE = 150, N_DIRECTIONS = 5 };

typedef struct {
    problem forward, gradient;
    tp_signature renamed; /* the gradient's, with the names of a gradient */
    tp_arena *arena;
} pair;

/* An op that is its own gradient, when run backwards, takes dy and gives dx. */
static void rename_operands(pair *a)
{
    if (a->gradient.op != a->forward.op)
        return;
    strcpy(a->renamed.in[0].name, "dy");
    strcpy(a->renamed.out[0].name, "dx");
}

/* Inputs of the gradient that are inputs or outputs of the forward op hold the same values. */
static void connect(pair *a)
{
    const tp_signature *forward = a->forward.sig;
    problem_solve(&a->forward, a->arena);
    for (int i = 0; i < a->renamed.n_in; i++) {
        const char *name = a->renamed.in[i].name;
        tensor *t = &a->gradient.in[i];
        int input = tp_operand_find(forward->in, forward->n_in, name);
        int output = tp_operand_find(forward->out, forward->n_out, name);
        if (input >= 0) {
            t->f = a->forward.in[input].f;
            t->i = a->forward.in[input].i;
        } else if (output >= 0) {
            memcpy(t->f, a->forward.out[output].f, (size_t)tensor_count(t) * sizeof *t->f);
        }
    }
}

/* sum of cotangent . output over the outputs whose cotangent the gradient takes */
static double objective(pair *a)
{
    const tp_signature *forward = a->forward.sig;
    problem_solve(&a->forward, a->arena);
    double sum = 0;
    for (int o = 0; o < forward->n_out; o++) {
        char name[24];
        snprintf(name, sizeof name, "d%s", forward->out[o].name);
        int cotangent = tp_operand_find(a->renamed.in, a->renamed.n_in, name);
        if (cotangent < 0)
            continue;
        for (int64_t i = 0; i < tensor_count(&a->forward.out[o]); i++)
            sum += a->gradient.in[cotangent].f[i] * a->forward.out[o].f[i];
    }
    return sum;
}

static double slope(pair *a, tensor *x, const double *direction)
{
    const double h = 1e-5;
    int64_t n = tensor_count(x);
    double *original = x->f, *moved = tp_arena_array(a->arena, double, n);
    double value[2];
    x->f = moved;
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < n; i++)
            moved[i] = original[i] + (side ? h : -h) * direction[i];
        value[side] = objective(a);
    }
    x->f = original;
    return (value[1] - value[0]) / (2 * h);
}

/* What the gradient op adds to the slope: the accumulator, and dres to dx. */
static double added(const pair *a, const char *output_name, int64_t i)
{
    char name[24];
    snprintf(name, sizeof name, "%s_acc", output_name);
    int acc = tp_operand_find(a->renamed.in, a->renamed.n_in, name);
    int dres = tp_operand_find(a->renamed.in, a->renamed.n_in, "dres");
    double sum = acc >= 0 ? a->gradient.in[acc].f[i] : 0;
    if (dres >= 0 && strcmp(output_name, "dx") == 0)
        sum += a->gradient.in[dres].f[i];
    return sum;
}

static int compare_slope(pair *a, const char *text, int output, tensor *x, const double *direction,
                         int64_t element)
{
    const tensor *computed = &a->gradient.out[output];
    const char *name = a->renamed.out[output].name;
    double expected = slope(a, x, direction), actual = 0, magnitude = 1e-2;
    for (int64_t i = 0; i < tensor_count(x); i++) {
        double value = computed->f[i] - added(a, name, i);
        actual += value * direction[i];
        magnitude += fabs(value * direction[i]);
    }
    if (fabs(actual - expected) <= 1e-6 * magnitude)
        return 0;
    printf("FAIL %s [%s] %s ", tp_ops[a->gradient.op]->name, text, name);
    if (element >= 0)
        printf("element %lld", (long long)element);
    else
        printf("along a random direction");
    printf(": %.9g, finite difference %.9g\n", actual, expected);
    return 1;
}

static int check_output(pair *a, const char *text, int output, int input)
{
    tensor *x = &a->forward.in[input];
    int64_t n = tensor_count(x);
    double *direction = tp_arena_array(a->arena, double, n);
    int n_failures = 0;
    for (int64_t i = 0; n <= MAX_ELEMENTWISE && i < n; i++) {
        size_t mark = tp_arena_mark(a->arena);
        direction[i] = 1;
        n_failures += compare_slope(a, text, output, x, direction, i);
        direction[i] = 0;
        tp_arena_rewind(a->arena, mark);
    }
    for (uint64_t k = 0; k < N_DIRECTIONS; k++) {
        size_t mark = tp_arena_mark(a->arena);
        for (int64_t i = 0; i < n; i++)
            direction[i] = random_normal(k + 1, (uint64_t)i);
        n_failures += compare_slope(a, text, output, x, direction, -1);
        tp_arena_rewind(a->arena, mark);
    }
    return n_failures;
}

/* Accumulators share memory with outputs in a run of the engine; here they do not, so that
 * what was added can be taken off again. */
static int check_pair(tp_arena *arena, tp_op forward, tp_op gradient, const char *text)
{
    pair a = {.arena = arena, .renamed = *tp_op_signature(gradient)};
    char gradient_text[200];
    snprintf(gradient_text, sizeof gradient_text, "%s%s", text,
             gradient == forward ? " inverse=1" : "");
    problem_init(&a.forward, arena, forward, text, TYPES_F64, ~0u);
    problem_init(&a.gradient, arena, gradient, gradient_text, TYPES_F64, ~0u);
    rename_operands(&a);
    connect(&a);
    problem_solve(&a.gradient, arena);

    int n_failures = 0, n_compared = 0;
    for (int o = 0; o < a.renamed.n_out; o++) {
        const tp_operand_spec *out = &a.renamed.out[o];
        int input = tp_operand_find(a.forward.sig->in, a.forward.sig->n_in, out->name + 1);
        if (out->name[0] != 'd' || input < 0)
            continue;
        n_failures += check_output(&a, text, o, input);
        n_compared++;
    }
    TP_ASSERT(n_compared > 0);
    return n_failures;
}

int check_gradients(tp_arena *arena, const char *only)
{
    int n_failures = 0, n_run = 0;
    for (size_t i = 0; i < n_gradient_cases; i++) {
        const gradient_case *c = &gradient_cases[i];
        tp_op one = c->gradient ? c->gradient : c->op;
        const tp_op *gradients = tp_ops[c->op]->gradients[0] ? tp_ops[c->op]->gradients : &one;
        for (int k = 0; k < 3 && gradients[k]; k++) {
            if (only && strcmp(tp_ops[gradients[k]]->name, only) != 0)
                continue;
            size_t mark = tp_arena_mark(arena);
            n_failures += check_pair(arena, c->op, gradients[k], c->text);
            tp_arena_rewind(arena, mark);
            n_run++;
            if (gradients == &one)
                break;
        }
    }
    printf("gradients: %d cases, %d failures\n", n_run, n_failures);
    return n_failures + (n_run == 0);
}
