/* test_autodiff_property.c - gradients of whole random models against finite differences.
 *
 * With f64 in all kernels a central difference of step h is off by about h^2, so the
 * slope along a random direction of all weights must agree to 1e-6.
 * TP_SEED=n runs one seed and prints its graph. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "property/evaluate.h"
#include "property/random_graph.h"
#include "support/devices.h"
#include "support/draws.h"

enum { N_SEEDS = 400, N_DIRECTIONS = 2 };

static const double LOSS_SCALE = 2; /* as environment_next_batch() sets it */

typedef struct {
    tp_graph forward, whole;
    environment env;
    tp_arena arena;
} trial;

static double loss_of(trial *t)
{
    size_t mark = tp_arena_mark(&t->arena);
    const tp_operand *values = evaluate(&t->forward, &t->env, false, &t->arena);
    double loss = element(&values[t->forward.outputs[0]], 0, 0);
    tp_arena_rewind(&t->arena, mark);
    return loss;
}

static double direction_of(uint64_t draw, size_t state, int64_t i)
{
    tp_rng rng = tp_rng_make(draw, (uint64_t)state << 32 | (uint64_t)i);
    return draw_normal(&rng);
}

/* Only weights that have a gradient move. */
static const tp_tensor *gradient_of(const trial *t, size_t state)
{
    char name[256];
    snprintf(name, sizeof name, "grad.%s", t->env.states.items[state].name);
    return tp_states_find(&t->env.states, name);
}

static void move(trial *t, uint64_t draw, double step)
{
    for (size_t s = 0; s < t->env.states.n; s++) {
        if (!gradient_of(t, s))
            continue;
        double *w = data_of(&t->env.states.items[s]);
        int64_t n = (int64_t)(t->env.states.items[s].bytes / sizeof *w);
        for (int64_t i = 0; i < n; i++)
            w[i] += step * direction_of(draw, s, i);
    }
}

static double slope_by_gradient(const trial *t, uint64_t draw, double *ret_size)
{
    double sum = 0;
    *ret_size = 1e-3;
    for (size_t s = 0; s < t->env.states.n; s++) {
        const tp_tensor *grad = gradient_of(t, s);
        int64_t n = grad ? (int64_t)(grad->bytes / sizeof(double)) : 0;
        for (int64_t i = 0; i < n; i++) {
            double term = ((const double *)data_of(grad))[i] * direction_of(draw, s, i);
            sum += term;
            *ret_size += fabs(term);
        }
    }
    return sum / LOSS_SCALE;
}

static double slope_by_difference(trial *t, uint64_t draw)
{
    const double h = 1e-5;
    move(t, draw, h);
    double above = loss_of(t);
    move(t, draw, -2 * h);
    double below = loss_of(t);
    move(t, draw, h);
    return (above - below) / (2 * h);
}

static void check(uint64_t seed)
{
    trial t;
    random_graph_options options = {.with_gradient = true, .freeze_some = seed % 3 == 0};
    random_graph(seed, &options, &t.whole);
    copy_graph(&t.whole, &t.forward);
    t.forward.n_outputs = 1; /* the loss: what only the gradient needs goes */
    for (uint32_t i = 1; i < t.forward.n_nodes; i++)
        t.forward.nodes[i].is_dead = t.forward.nodes[i].phase != TP_PHASE_FORWARD;
    tp_graph_compact(&t.forward);
    if (getenv("TP_SEED")) {
        tp_buf text = {0};
        tp_graph_print(&t.whole, &text);
        fprintf(stderr, "%s\n", tp_buf_str(&text));
        tp_buf_release(&text);
    }
    assert_int_equal(tp_arena_init(&t.arena, (size_t)1 << 30, NULL), TP_OK);
    environment_init(&t.env, seed, true);
    environment_add(&t.env, &t.whole);
    environment_next_batch(&t.env, 0);
    evaluate(&t.whole, &t.env, false, &t.arena);

    for (uint64_t draw = 0; draw < N_DIRECTIONS; draw++) {
        double size, actual = slope_by_gradient(&t, draw, &size);
        double expected = slope_by_difference(&t, draw);
        if (!(fabs(actual - expected) <= 1e-5 * size)) {
            print_error("seed %llu: slope %.12g by gradient, %.12g by difference\n",
                        (unsigned long long)seed, actual, expected);
            fail();
        }
    }
    environment_release(&t.env);
    tp_arena_release(&t.arena);
    tp_graph_release(&t.forward);
    tp_graph_release(&t.whole);
}

static void gradients_are_slopes(void **state)
{
    const char *only_seed = getenv("TP_SEED");
    if (only_seed) {
        check(strtoull(only_seed, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++)
        check(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
