/* test_passes_property.c - random graphs keep their meaning.
 *
 * TP_SEED=n runs one seed and prints its graphs; TP_SEEDS=n runs seeds 1 to n. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/exec/exec_build.h"
#include "engine/passes/pipeline.h"
#include "property/check_plan.h"
#include "property/evaluate.h"
#include "property/random_graph.h"
#include "support/devices.h"

typedef struct {
    uint64_t seed;
    tp_rng rng;
    tp_graph base;
    tp_pass_options options;
    const char *disabled[16];
    tp_arena arena; /* of one case: results and plans */
} trial;

static const char *const pass_names[] = {"cse",
                                         "dce",
                                         "autocast",
                                         "fuse-swiglu",
                                         "fuse-bias-gelu",
                                         "fuse-linear-ce",
                                         "fuse-residual-norm",
                                         "fuse-grad-add",
                                         "schedule"};

enum { N_PASSES = sizeof pass_names / sizeof *pass_names };

static void print_graph(const char *title, const tp_graph *g)
{
    tp_buf text = {0};
    tp_graph_print(g, &text);
    fprintf(stderr, "# %s\n%s\n", title, tp_buf_str(&text)); /* cmocka's are cut off */
    tp_buf_release(&text);
}

static void explain(const trial *t)
{
    fprintf(stderr, "seed %llu, recompute %d every %d, %s, off:", (unsigned long long)t->seed,
            (int)t->options.recompute, t->options.recompute_every,
            tp_dtype_name(t->options.compute_dtype));
    for (size_t i = 0; i < t->options.n_disabled; i++)
        fprintf(stderr, " %s", t->options.disabled[i]);
    fputs("\n", stderr);
}

/* Else says with which seed and passes, and why. */
static void expect(const trial *t, bool cond, const char *fmt, ...) TP_PRINTF(3, 4);
static void expect(const trial *t, bool cond, const char *fmt, ...)
{
    if (cond)
        return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\n", stderr);
    explain(t);
    fail();
}

static void trial_begin(trial *t, uint64_t seed, bool with_gradient)
{
    *t = (trial){.seed = seed, .rng = tp_rng_make(seed, 2)};
    t->options.recompute_every = 1;
    random_graph_options options = {.with_gradient = with_gradient, .freeze_some = seed % 3 == 0};
    random_graph(seed, &options, &t->base);
    if (getenv("TP_SEED"))
        print_graph("before", &t->base);
    assert_int_equal(tp_arena_init(&t->arena, (size_t)1 << 30, NULL), TP_OK);
    tp_error err = {0};
    expect(t, tp_graph_verify(&t->base, &err) == TP_OK, "%s", err.message);
}

static void trial_end(trial *t)
{
    tp_graph_release(&t->base);
    tp_arena_release(&t->arena);
}

static void draw_disabled(trial *t)
{
    t->options.n_disabled = 0;
    if (tp_rng_below(&t->rng, 4) == 0)
        return; /* all passes */
    for (int i = 0; i < N_PASSES; i++)
        if (tp_rng_below(&t->rng, 2))
            t->disabled[t->options.n_disabled++] = pass_names[i];
    t->options.disabled = t->disabled;
}

static void draw_recompute(trial *t)
{
    static const tp_recompute modes[] = {TP_RECOMPUTE_NONE, TP_RECOMPUTE_FULL, TP_RECOMPUTE_EVERY,
                                         TP_RECOMPUTE_SELECTIVE};
    t->options.recompute = modes[tp_rng_below(&t->rng, 4)];
    t->options.recompute_every = 1 + (int)tp_rng_below(&t->rng, 3);
}

static void only(trial *t, const char *pass)
{
    t->options.n_disabled = 0;
    for (int i = 0; i < N_PASSES; i++)
        if (strcmp(pass_names[i], pass) != 0)
            t->disabled[t->options.n_disabled++] = pass_names[i];
    t->options.disabled = t->disabled;
}

static void optimise(trial *t, tp_graph *ret)
{
    tp_error err = {0};
    copy_graph(&t->base, ret);
    expect(t, tp_passes_run(&ret, 1, &t->options, &err) == TP_OK, "%s", err.message);
    if (getenv("TP_SEED"))
        print_graph("after", ret);
}

/* The graph outputs after two micro-batches; the second accumulates. */
typedef struct {
    environment env;
    tp_operand *outputs;
} result;

static result run_twice(trial *t, const tp_graph *g, bool is_exact)
{
    result r;
    environment_init(&r.env, t->seed, is_exact);
    environment_add(&r.env, &t->base);
    environment_add(&r.env, g);
    environment_spoil_gradients(&r.env);
    r.outputs = tp_arena_array(&t->arena, tp_operand, g->n_outputs);
    for (int batch = 0; batch < 2; batch++) {
        environment_next_batch(&r.env, batch);
        const tp_operand *values = evaluate(g, &r.env, batch > 0, &t->arena);
        for (uint32_t i = 0; i < g->n_outputs; i++)
            r.outputs[i] = values[g->outputs[i]];
    }
    return r;
}

static void expect_same_bits(trial *t, uint32_t n, const tp_operand *a, const tp_operand *b,
                             const char *what)
{
    for (uint32_t i = 0; i < n; i++)
        expect(t, same_bits(&a[i], &b[i]), "%s: output %u has other bits (distance %g)", what, i,
               relative_distance(&a[i], &b[i]));
}

static double norm_of(const tp_operand *o)
{
    double squares = 0;
    for (int64_t i = 0; i < o->dim[0]; i++)
        for (int64_t j = 0; j < o->dim[1]; j++)
            squares += element(o, i, j) * element(o, i, j);
    return sqrt(squares);
}

/* Relative to the output itself or, where theory says zero (a key's bias), to all. */
static void expect_close(trial *t, uint32_t n, const tp_operand *a, const tp_operand *b,
                         double tolerance)
{
    double all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += norm_of(&a[i]);
    for (uint32_t i = 0; i < n; i++) {
        double distance = relative_distance(&a[i], &b[i]), size = norm_of(&a[i]);
        expect(t, distance * size <= tolerance * (size + 1e-3 * all), "output %u is off by %g", i,
               distance);
    }
}

/* ---- running many seeds ---- */

static void for_each_seed(uint64_t n, void (*check)(uint64_t seed))
{
    const char *only_seed = getenv("TP_SEED");
    if (only_seed) {
        check(strtoull(only_seed, NULL, 10));
        return;
    }
    if (getenv("TP_SEEDS"))
        n = strtoull(getenv("TP_SEEDS"), NULL, 10);
    for (uint64_t seed = 1; seed <= n; seed++)
        check(seed);
}

/* ---- meaning ---- */

static void check_meaning(uint64_t seed)
{
    trial t;
    trial_begin(&t, seed, seed % 4 != 0);
    result want = run_twice(&t, &t.base, true);
    for (int subset = 0; subset < 3; subset++) {
        tp_graph g;
        draw_disabled(&t);
        draw_recompute(&t);
        optimise(&t, &g);

        result got = run_twice(&t, &g, true);

        expect(&t, g.n_outputs == t.base.n_outputs, "the number of outputs changed");
        expect_close(&t, g.n_outputs, want.outputs, got.outputs, 1e-9);
        environment_release(&got.env);
        tp_graph_release(&g);
    }
    environment_release(&want.env);
    trial_end(&t);
}

static void any_subset_of_passes_keeps_the_meaning(void **state)
{
    for_each_seed(400, check_meaning);
}

/* ---- bits ---- */

static void check_pass_bits(uint64_t seed)
{
    static const char *const exact[] = {"cse", "dce", "schedule", "recompute"};
    trial t;
    trial_begin(&t, seed, seed % 4 != 0);
    result want = run_twice(&t, &t.base, false);
    for (int i = 0; i < 4; i++) {
        tp_graph g;
        only(&t, exact[i]);
        t.options.recompute = TP_RECOMPUTE_NONE;
        if (i == 3)
            draw_recompute(&t);
        optimise(&t, &g);

        result got = run_twice(&t, &g, false);

        expect_same_bits(&t, g.n_outputs, want.outputs, got.outputs, exact[i]);
        environment_release(&got.env);
        tp_graph_release(&g);
    }
    environment_release(&want.env);
    trial_end(&t);
}

static void cse_dce_schedule_and_recompute_keep_the_bits(void **state)
{
    for_each_seed(300, check_pass_bits);
}

static void check_recompute_bits(uint64_t seed)
{
    trial t;
    tp_graph none, g;
    trial_begin(&t, seed, true);
    draw_disabled(&t);
    t.options.compute_dtype = TP_DTYPE_BF16;
    optimise(&t, &none);
    result want = run_twice(&t, &none, false);
    for (tp_recompute mode = TP_RECOMPUTE_FULL; mode <= TP_RECOMPUTE_SELECTIVE; mode++) {
        t.options.recompute = mode;
        t.options.recompute_every = 2;
        optimise(&t, &g);

        result got = run_twice(&t, &g, false);

        expect_same_bits(&t, g.n_outputs, want.outputs, got.outputs, "recompute");
        environment_release(&got.env);
        tp_graph_release(&g);
    }
    environment_release(&want.env);
    tp_graph_release(&none);
    trial_end(&t);
}

static void recompute_keeps_the_bits_of_bf16(void **state)
{
    for_each_seed(200, check_recompute_bits);
}

/* ---- precision ---- */

/* All outputs as one vector: a gradient that is nearly zero has no digits of its own. */
static double distance_of_all(trial *t, const tp_graph *g, const result *want)
{
    result got = run_twice(t, g, false);
    double squares = 0, size = 0;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        double norm = norm_of(&want->outputs[i]);
        double distance = relative_distance(&want->outputs[i], &got.outputs[i]);
        squares += distance * distance * norm * norm;
        size += norm * norm;
    }
    environment_release(&got.env);
    return sqrt(squares / (size + 1e-30));
}

/* Fused kernels round less often than the ops they replace, never more: in bf16 they
 * may be off by what the plain bf16 graph is off, give or take. */
static void check_bf16(uint64_t seed)
{
    trial t;
    tp_graph plain, fused;
    trial_begin(&t, seed, true);
    result want = run_twice(&t, &t.base, false);
    t.options.compute_dtype = TP_DTYPE_BF16;
    only(&t, "autocast");
    optimise(&t, &plain);
    draw_disabled(&t);
    if (t.options.n_disabled && strcmp(t.disabled[0], "autocast") == 0)
        t.options.n_disabled = 0;
    draw_recompute(&t);
    optimise(&t, &fused);

    double of_plain = distance_of_all(&t, &plain, &want);
    double of_fused = distance_of_all(&t, &fused, &want);

    expect(&t, of_fused <= 0.05 + 3 * of_plain, "bf16 is off by %g, without fusion by %g", of_fused,
           of_plain);
    environment_release(&want.env);
    tp_graph_release(&plain);
    tp_graph_release(&fused);
    trial_end(&t);
}

static void bf16_stays_close_to_f32(void **state) { for_each_seed(200, check_bf16); }

/* ---- execution ---- */

static void expect_right_plan(trial *t, const tp_graph *g, bool share)
{
    tp_memory_plan plan;
    assert_int_equal(tp_plan_memory(g, share, &t->arena, &plan, NULL), TP_OK);
    const char *complaint = check_plan(g, &plan, &t->arena);
    expect(t, !complaint, "memory %s: %s", share ? "shared" : "apart", complaint);
    expect(t, plan.live_peak_bytes <= plan.arena_bytes, "the arena is smaller than its peak");
}

static void write_inputs(tp_exec *e, const environment *env)
{
    for (size_t i = 0; i < env->states.n; i++) {
        const tp_tensor *s = &env->states.items[i];
        MUST(tp_exec_write(e, tp_exec_input(e, s->name), data_of(s), -1, NULL));
    }
}

/* The states of an environment, which lie on the host, on another device. */
static void copy_states(const environment *env, tp_device *device, tp_states *ret)
{
    MUST(tp_states_init(ret, NULL));
    for (size_t i = 0; i < env->states.n; i++) {
        MUST(tp_states_declare(ret, &env->states.items[i], NULL));
    }
    MUST(tp_states_alloc(ret, device, NULL));
    for (size_t i = 0; i < env->states.n; i++)
        MUST(tp_tensor_write(&ret->items[i], 0, data_of(&env->states.items[i]),
                             env->states.items[i].bytes, NULL));
}

static void spoil(tp_buffer *buffer, tp_arena *arena)
{
    void *nan = tp_arena_alloc(arena, 1, buffer->bytes + 1, 64);
    memset(nan, 0xff, buffer->bytes);
    MUST(tp_span_write((tp_span){buffer, 0}, nan, buffer->bytes, NULL));
}

static tp_operand read_output(const tp_exec *e, uint32_t k, tp_arena *arena)
{
    tp_operand o = *tp_exec_output(e, k);
    int64_t elements = (o.dim[0] - 1) * o.stride + o.dim[1];
    size_t bytes = (size_t)elements * tp_dtype_size(o.dtype);
    o.data = tp_arena_alloc(arena, 1, bytes + 1, 64);
    MUST(tp_exec_read(e, k, 0, o.data, bytes, NULL));
    return o;
}

/* The executor over an arena full of NaN against every value in memory of its own. */
static void expect_right_run(trial *t, const tp_graph *g, const char *backend, bool share)
{
    tp_device *device = device_of(backend, 1);
    tp_exec_options options = {.device = device, .share_memory = share};
    result want = run_twice(t, g, false);
    environment env;
    tp_states states;
    tp_exec *e;
    tp_exec_pool pool = {0};
    environment_init(&env, t->seed, false);
    environment_add(&env, &t->base);
    environment_add(&env, g);
    environment_spoil_gradients(&env);
    copy_states(&env, device, &states);
    assert_int_equal(tp_exec_create(g, &options, &e, NULL), TP_OK);
    tp_exec_pool_fit(&pool, e);
    assert_int_equal(tp_exec_pool_alloc(&pool, device, NULL), TP_OK);
    assert_int_equal(tp_exec_bind(e, &states, &pool, NULL), TP_OK);

    for (int batch = 0; batch < 2; batch++) {
        environment_next_batch(&env, batch);
        spoil(pool.arena, &t->arena);
        spoil(pool.workspace, &t->arena);
        write_inputs(e, &env);
        MUST(tp_exec_run(e, batch > 0, NULL));
    }

    for (uint32_t i = 0; i < g->n_outputs; i++) {
        tp_operand got = read_output(e, i, &t->arena);
        expect_same_bits(t, 1, &want.outputs[i], &got, share ? "shared memory" : "memory apart");
    }
    tp_exec_free(e);
    tp_exec_pool_release(&pool);
    tp_states_release(&states);
    environment_release(&env);
    environment_release(&want.env);
}

static void check_execution(uint64_t seed)
{
    trial t;
    tp_graph g;
    trial_begin(&t, seed, seed % 3 != 0);
    draw_disabled(&t);
    draw_recompute(&t);
    t.options.compute_dtype = seed % 2 ? TP_DTYPE_BF16 : TP_DTYPE_F32;
    optimise(&t, &g);

    for (int share = 0; share < 2; share++) {
        expect_right_plan(&t, &g, share);
        expect_right_run(&t, &g, "ref", share);
        expect_right_run(&t, &g, "guard", share);
    }
    tp_graph_release(&g);
    trial_end(&t);
}

static void plans_hold_what_is_alive(void **state) { for_each_seed(300, check_execution); }

/* ---- text ---- */

static void check_text(uint64_t seed)
{
    trial t;
    tp_graph g, first, second;
    tp_buf a = {0}, b = {0}, c = {0};
    trial_begin(&t, seed, true);
    draw_disabled(&t);
    draw_recompute(&t);
    t.options.compute_dtype = seed % 2 ? TP_DTYPE_BF16 : TP_DTYPE_F32;
    optimise(&t, &g);
    tp_error err = {0};

    tp_graph_print(&g, &a);
    expect(&t, tp_graph_parse("text", a.data, a.len, &first, &err) == TP_OK, "%s", err.message);
    tp_graph_print(&first, &b);
    expect(&t, tp_graph_parse("text", b.data, b.len, &second, &err) == TP_OK, "%s", err.message);
    tp_graph_print(&second, &c);

    assert_string_equal(tp_buf_str(&b), tp_buf_str(&c)); /* the first may number otherwise */
    result want = run_twice(&t, &g, false), got = run_twice(&t, &first, false);
    expect_same_bits(&t, g.n_outputs, want.outputs, got.outputs, "text");
    environment_release(&want.env);
    environment_release(&got.env);
    tp_graph_release(&g);
    tp_graph_release(&first);
    tp_graph_release(&second);
    tp_buf_release(&a);
    tp_buf_release(&b);
    tp_buf_release(&c);
    trial_end(&t);
}

static void text_keeps_the_meaning(void **state) { for_each_seed(100, check_text); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_subset_of_passes_keeps_the_meaning),
        cmocka_unit_test(cse_dce_schedule_and_recompute_keep_the_bits),
        cmocka_unit_test(recompute_keeps_the_bits_of_bf16),
        cmocka_unit_test(bf16_stays_close_to_f32),
        cmocka_unit_test(plans_hold_what_is_alive),
        cmocka_unit_test(text_keeps_the_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
