/* test_exec.c - execution: allocation, accumulation, binding, checks, reports. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/exec/exec_build.h"
#include "engine/passes/pipeline.h"
#include "property/evaluate.h"
#include "property/random_graph.h"
#include "support/devices.h"
#include "trace/trace.h"
#include "unit/engine/count_malloc.h"

typedef struct {
    tp_graph g;
    environment env;
    tp_exec *exec;
    tp_exec_pool pool;
} setup;

static void parse(const char *text, tp_graph *ret)
{
    tp_error err;
    if (tp_graph_parse("t", text, strlen(text), ret, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static void create(setup *s, const char *backend, int threads)
{
    tp_device *device = device_of(backend, threads);
    tp_exec_options options = {.device = device, .share_memory = true};
    tp_error err;
    if (tp_exec_create(&s->g, &options, &s->exec, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_exec_pool_fit(&s->pool, s->exec);
    assert_int_equal(tp_exec_pool_alloc(&s->pool, device, NULL), TP_OK);
}

static void write_inputs(setup *s)
{
    for (size_t i = 0; i < s->env.states.n; i++) {
        const tp_tensor *state = &s->env.states.items[i];
        MUST(tp_exec_write(s->exec, tp_exec_input(s->exec, state->name), data_of(state), -1, NULL));
    }
}

static void bind(setup *s)
{
    tp_error err;
    if (tp_exec_bind(s->exec, &s->env.states, &s->pool, &err) != TP_OK)
        fail_msg("%s", err.message);
    write_inputs(s);
}

static void begin_text(setup *s, const char *text, const char *backend)
{
    *s = (setup){0};
    parse(text, &s->g);
    environment_init(&s->env, 1, false);
    environment_add(&s->env, &s->g);
    environment_next_batch(&s->env, 0);
    create(s, backend, 1);
    bind(s);
}

static void end(setup *s)
{
    tp_exec_free(s->exec);
    tp_exec_pool_release(&s->pool);
    environment_release(&s->env);
    tp_graph_release(&s->g);
}

static float *state_data(const setup *s, const char *name)
{
    return data_of(tp_states_find(&s->env.states, name));
}

/* ---- no allocation in a step ---- */

static void begin_model(setup *s, uint64_t seed, tp_dtype dtype, const char *backend)
{
    random_graph_options random = {.with_gradient = true};
    tp_pass_options passes = {
        .compute_dtype = dtype, .recompute = TP_RECOMPUTE_SELECTIVE, .recompute_every = 1};
    *s = (setup){0};
    random_graph(seed, &random, &s->g);
    environment_init(&s->env, seed, false);
    environment_add(&s->env, &s->g);
    assert_int_equal(tp_passes_run((tp_graph *[]){&s->g}, 1, &passes, NULL), TP_OK);
    environment_add(&s->env, &s->g);
    environment_next_batch(&s->env, 0);
    create(s, backend, 2);
    bind(s);
}

static void expect_no_allocation(const char *backend, tp_dtype dtype)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        setup s;
        begin_model(&s, seed, dtype, backend);
        MUST(tp_exec_run(s.exec, false, NULL)); /* threads are made, tables are filled */
        uint64_t large = tp_mem_get_stats().n_allocs;

        for (int step = 0; step < 3; step++) {
            environment_next_batch(&s.env, step);
            uint64_t before = malloc_count();
            write_inputs(&s);
            MUST(tp_exec_run(s.exec, step > 0, NULL));
            assert_int_equal(malloc_count(), before);
        }

        assert_int_equal(tp_mem_get_stats().n_allocs, large);
        end(&s);
    }
}

static void ref_allocates_nothing(void **state)
{
    if (!malloc_is_counted())
        skip();
    expect_no_allocation("ref", TP_DTYPE_F32);
    expect_no_allocation("ref", TP_DTYPE_BF16);
}

static void cpu_allocates_nothing(void **state)
{
    if (!malloc_is_counted())
        skip();
    expect_no_allocation("cpu", TP_DTYPE_F32);
    expect_no_allocation("cpu", TP_DTYPE_BF16);
}

static void tracing_allocates_once(void **state)
{
    if (!malloc_is_counted())
        skip();
    setup s;
    begin_model(&s, 1, TP_DTYPE_F32, "ref");
    if (tp_trace_start(NULL, NULL) != TP_OK)
        skip();
    MUST(tp_exec_run(s.exec, false, NULL)); /* the ring of this thread */
    uint64_t before = malloc_count();

    MUST(tp_exec_run(s.exec, true, NULL));

    assert_int_equal(malloc_count(), before);
    tp_trace_release();
    end(&s);
}

/* ---- a run as a trace ---- */

typedef struct {
    size_t operators, takes, gives;
    int64_t live, most;
} seen;

static void see(void *user, const tp_trace_event *e)
{
    seen *s = user;
    if (e->kind == TP_TRACE_ZONE) {
        s->operators += strcmp(e->site->category, "cpu_op") == 0;
        assert_non_null(strstr(e->site->args, "\"Input Dims\":[["));
    }
    if (e->kind != TP_TRACE_MEMORY)
        return;
    s->takes += e->bytes > 0;
    s->gives += e->bytes < 0;
    s->live += e->bytes;
    assert_true(s->live >= 0);
    assert_int_equal(e->allocated, 1000 + s->live);
    s->most = s->live > s->most ? s->live : s->most;
}

/* Every temporary that is taken is given back, and no moment needs more than was planned. */
static void memory_of_a_trace_is_that_of_the_plan(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        setup s;
        seen all = {0};
        begin_model(&s, seed, TP_DTYPE_BF16, "ref");
        tp_trace_options options = {.size = sizeof options, .events_per_thread = 1 << 16};
        if (tp_trace_start(&options, NULL) != TP_OK)
            skip();
        tp_trace_memory_totals(1000, -1);
        MUST(tp_exec_run(s.exec, false, NULL));
        tp_trace_stop();
        tp_trace_each(see, &all);

        assert_int_equal(all.operators, tp_exec_launch_count(s.exec));
        assert_int_equal(tp_trace_dropped(), 0);
        assert_true(all.takes > 0);
        assert_int_equal(all.takes, all.gives);
        assert_int_equal(all.live, 0);
        assert_true((size_t)all.most <= tp_exec_live_peak_bytes(s.exec));
        tp_trace_release();
        end(&s);
    }
}

static void the_counter_counts(void **state)
{
    if (!malloc_is_counted())
        skip();
    uint64_t before = malloc_count();
    void *volatile p = malloc(10);
    assert_int_equal(malloc_count(), before + 1);
    free(p);
}

/* ---- running ---- */

static const char accumulating[] = "%1 = input f32[2,3] \"x\"\n%2 = input f32[2,2] \"dy\"\n"
                                   "%3 = state f32[2,3] \"grad.w\" role=gradient\n"
                                   "%4 = linear_dw %1, %2, %3 \"first\"\n"
                                   "%5 = linear_dw %1, %2, %4 \"second\"\noutput %5\n";

static void the_first_micro_batch_overwrites(void **state)
{
    static const float x[] = {1, 2, 3, 4, 5, 6}, dy[] = {1, 0, 0, 1};
    static const float twice[] = {2, 4, 6, 8, 10, 12}, four_times[] = {4, 8, 12, 16, 20, 24};
    setup s;
    begin_text(&s, accumulating, "ref");
    MUST(tp_exec_write(s.exec, tp_exec_input(s.exec, "x"), x, -1, NULL));
    MUST(tp_exec_write(s.exec, tp_exec_input(s.exec, "dy"), dy, -1, NULL));
    float *grad = state_data(&s, "grad.w");
    for (int i = 0; i < 6; i++)
        grad[i] = NAN; /* what an earlier step left */

    MUST(tp_exec_run(s.exec, false, NULL));
    assert_memory_equal(grad, twice, sizeof twice);
    MUST(tp_exec_run(s.exec, true, NULL));

    assert_memory_equal(grad, four_times, sizeof four_times);
    assert_ptr_equal(data_at(tp_exec_output(s.exec, 0)), grad);
    end(&s);
}

/* The weight is shared with another norm, the bias is not: one launch would have to
 * overwrite one accumulator and add to the other. */
static void accumulators_of_two_kinds_are_refused(void **state)
{
    static const char text[] =
        "%1 = input f32[4,8] \"x\"\n%2 = state f32[8] \"w\" role=weight\n"
        "%3 = input f32[4] \"mean\"\n%4 = input f32[4] \"rstd\"\n%5 = input f32[4,8] \"dy\"\n"
        "%6 = state f32[8] \"grad.w\" role=gradient\n%7 = state f32[8] \"grad.b\" role=gradient\n"
        "%8 = state f32[8] \"grad.c\" role=gradient\n"
        "%9, %10, %11 = layernorm_grad %1, %2, %3, %4, %5, %6, %7\n"
        "%12, %13, %14 = layernorm_grad %1, %2, %3, %4, %5, %10, %8 \"second\"\n"
        "output %13\n";
    tp_graph g;
    tp_exec *exec;
    tp_error err;
    tp_exec_options options = {.device = device_of("ref", 1)};
    parse(text, &g);

    assert_int_equal(tp_exec_create(&g, &options, &exec, &err), TP_ERR_UNSUPPORTED);

    assert_string_equal(
        err.message, "op layernorm_grad (second) accumulates into a buffer for the first time "
                     "and into another again; share all of its weights with other nodes or none");
    tp_graph_release(&g);
}

static void inputs_are_bound_wherever_they_are_read(void **state)
{
    static const float ones[] = {1, 1, 1, 1}, twos[] = {2, 2, 2, 2};
    setup s;
    begin_text(&s,
               "%1 = input f32[2,2] \"x\"\n%2 = add %1, %1\n%3 = mul %2, %1\noutput %3\n"
               "output %1\n",
               "ref");
    int x = tp_exec_input(s.exec, "x");

    MUST(tp_exec_write(s.exec, x, ones, -1, NULL));
    MUST(tp_exec_run(s.exec, false, NULL));
    assert_true(((const float *)data_at(tp_exec_output(s.exec, 0)))[3] == 2);
    assert_memory_equal(data_at(tp_exec_output(s.exec, 1)), ones, sizeof ones);
    MUST(tp_exec_write(s.exec, x, twos, -1, NULL));
    MUST(tp_exec_run(s.exec, false, NULL));

    assert_true(((const float *)data_at(tp_exec_output(s.exec, 0)))[3] == 8);
    assert_memory_equal(data_at(tp_exec_output(s.exec, 1)), twos, sizeof twos);
    assert_int_equal(tp_exec_input(s.exec, "y"), -1);
    MUST(tp_exec_write(s.exec, -1, ones, -1, NULL)); /* a no-op */
    end(&s);
}

static void binding_again_moves_everything(void **state)
{
    setup s;
    begin_text(&s, accumulating, "ref");
    MUST(tp_exec_run(s.exec, false, NULL));
    tp_exec_pool_release(&s.pool);
    tp_exec_pool_fit(&s.pool, s.exec);
    assert_int_equal(tp_exec_pool_alloc(&s.pool, device_of("ref", 1), NULL), TP_OK);

    bind(&s);
    MUST(tp_exec_run(s.exec, false, NULL));

    assert_true(isfinite(state_data(&s, "grad.w")[0]));
    end(&s);
}

static void unknown_and_wrong_states_are_named(void **state)
{
    static const int64_t dim[] = {3, 2};
    static const char missing[] = "tensor 'grad.w' has no memory";
    setup s = {0};
    tp_error err;
    tp_states states;
    parse(accumulating, &s.g);
    create(&s, "ref", 1);
    assert_int_equal(tp_states_init(&states, NULL), TP_OK);

    assert_int_equal(tp_exec_bind(s.exec, &states, &s.pool, &err), TP_ERR_ARG);
    assert_string_equal(err.message, missing);
    assert_int_equal(tp_states_declare(&states,
                                       &(tp_tensor){.name = "grad.w",
                                                    .role = TP_ROLE_GRADIENT,
                                                    .rank = 2,
                                                    .dim = {dim[0], dim[1]}},
                                       NULL),
                     TP_OK);
    assert_int_equal(tp_exec_bind(s.exec, &states, &s.pool, &err), TP_ERR_ARG);
    assert_string_equal(err.message, missing);
    assert_int_equal(tp_states_alloc(&states, device_of("ref", 1), NULL), TP_OK);
    assert_int_equal(tp_exec_bind(s.exec, &states, &s.pool, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "tensor 'grad.w' differs from what the graph expects");

    tp_states_release(&states);
    tp_exec_free(s.exec);
    tp_exec_pool_release(&s.pool);
    tp_graph_release(&s.g);
}

static void a_view_of_an_input_is_refused(void **state)
{
    setup s = {0};
    tp_error err;
    tp_states states;
    parse("%1 = input f32[2,4] \"x\"\n%2, %3 = split %1 {n0=1, n1=3}\n%4 = silu %3\noutput %4\n",
          &s.g);
    create(&s, "ref", 1);
    assert_int_equal(tp_states_init(&states, NULL), TP_OK);

    assert_int_equal(tp_exec_bind(s.exec, &states, &s.pool, &err), TP_ERR_UNSUPPORTED);

    assert_string_equal(err.message, "a view of input 'x' cannot be bound");
    tp_states_release(&states);
    tp_exec_free(s.exec);
    tp_exec_pool_release(&s.pool);
    tp_graph_release(&s.g);
}

/* ---- the first bad launch ---- */

static const char chain[] = "%1 = input f32[2,4] \"x\"\n%2 = state f32[4,4] \"a\" role=weight\n"
                            "%3 = state f32[4,4] \"b\" role=weight\n%4 = linear %1, %2 \"one\"\n"
                            "%5 = silu %4 \"two\"\n%6 = linear %5, %3 \"three\"\n"
                            "%7 = gelu %6 \"four\"\n%8 = sumsq %7 \"five\"\noutput %8\n";

static void the_first_launch_with_a_nan_is_found(void **state)
{
    setup s;
    int bad;
    begin_text(&s, chain, "ref");

    MUST(tp_exec_run_checked(s.exec, false, &bad, NULL));
    assert_int_equal(bad, -1);
    state_data(&s, "b")[5] = NAN;
    MUST(tp_exec_run_checked(s.exec, false, &bad, NULL));
    assert_string_equal(tp_exec_launch(s.exec, (size_t)bad)->label, "three");
    state_data(&s, "a")[0] = INFINITY;
    MUST(tp_exec_run_checked(s.exec, false, &bad, NULL));

    assert_string_equal(tp_exec_launch(s.exec, (size_t)bad)->label, "one");
    end(&s);
}

/* 1e30 squared is beyond f32, but the sum is kept in f64: only its overflow is bad. */
static void sums_of_squares_are_checked_too(void **state)
{
    static const float big[] = {1e30f, 0, 0, INFINITY};
    setup s;
    int bad;
    begin_text(&s, "%1 = input f32[4] \"x\"\n%2 = sumsq %1 \"sum\"\noutput %2\n", "ref");

    MUST(tp_exec_write(s.exec, tp_exec_input(s.exec, "x"), big, -1, NULL));
    MUST(tp_exec_run_checked(s.exec, false, &bad, NULL));

    assert_int_equal(bad, 0);
    end(&s);
}

/* ---- reports ---- */

static void launches_tell_what_they_cost(void **state)
{
    setup s;
    begin_text(&s, chain, "ref");

    MUST(tp_exec_run(s.exec, false, NULL));
    MUST(tp_exec_run(s.exec, false, NULL));

    assert_int_equal(tp_exec_launch_count(s.exec), 5);
    const tp_launch_info *info = tp_exec_launch(s.exec, 0);
    assert_int_equal(info->op, TP_OP_linear);
    assert_int_equal(info->count, 2);
    assert_true(info->flops == 2.0 * 2 * 4 * 4);
    assert_true(info->bytes == 4.0 * (8 + 16 + 8));
    assert_true(tp_exec_flops(s.exec, true) == 2 * 64);
    tp_exec_reset_times(s.exec);
    assert_int_equal(tp_exec_launch(s.exec, 0)->count, 0);
    tp_exec_set_counted(s.exec, false);
    MUST(tp_exec_run(s.exec, false, NULL));
    assert_int_equal(info->count, 0);
    assert_true(info->ns == 0 && info->done_flops == 0 && info->done_bytes == 0);
    tp_exec_set_counted(s.exec, true);
    MUST(tp_exec_run(s.exec, false, NULL));
    assert_int_equal(info->count, 1);
    assert_true(info->done_flops == info->flops);
    end(&s);
}

static void weigh_two(void *user, const float *x, float *y, int64_t n)
{
    (void)user;
    (void)x;
    for (int64_t i = 0; i < n; i++)
        y[i] = i < 2 ? 1 : 0;
}

static void work_is_what_the_host_left_of_it(void **state)
{
    setup s;
    begin_text(
        &s,
        "%1 = input f32[8,4] \"x\"\n%2 = input f32[6,4] \"w\"\n%3 = input i32[8] \"targets\"\n"
        "%4 = input f32[8] \"logp\"\n%5 = host %4\n%6 = input f32[1] \"scale\"\n"
        "%7, %8, %9, %10 = linear_ce_train %1, %2, %3, %5, %6\noutput %9\n",
        "ref");
    tp_exec_set_host(s.exec, weigh_two, NULL);

    MUST(tp_exec_run(s.exec, false, NULL));

    const tp_launch_info *info = tp_exec_launch(s.exec, 1);
    assert_int_equal(info->op, TP_OP_linear_ce_train);
    assert_true(info->flops == 6.0 * 8 * 6 * 4);
    assert_true(info->done_flops == 6.0 * 2 * 6 * 4);
    end(&s);
}

/* Attention needs a row of weights, silu after it nothing. */
static void the_workspace_is_the_largest_that_a_launch_needs(void **state)
{
    setup s;
    begin_text(&s,
               "%1 = input f32[3,4] \"x\"\n%2 = input i32[2] \"cu_seqlens\"\n"
               "%3 = input i32[3] \"tokens\"\n"
               "%4, %5 = attention %1, %1, %1, %2 {heads=2, kv_heads=2, head_dim=2, scale=1}\n"
               "%6 = silu %4\noutput %6\n",
               "ref");

    assert_true(s.pool.workspace_bytes >= 3 * sizeof(float));
    end(&s);
}

static void plans_print(void **state)
{
    setup s;
    tp_buf text = {0};
    begin_text(&s, "%1 = input f32[2,4] \"x\"\n%2 = silu %1\n%3 = gelu %2\noutput %3\n", "ref");

    tp_exec_print(s.exec, &text);

    assert_non_null(strstr(tp_buf_str(&text), "# 2 launches, arena 64 bytes, workspace 0 bytes\n"));
    assert_non_null(strstr(tp_buf_str(&text), "f32[2,4]@x -> f32[2,4]@0\n"));
    assert_non_null(strstr(tp_buf_str(&text), "f32[2,4]@0 -> f32[2,4]@0\n")); /* in place */
    tp_buf_release(&text);
    end(&s);
}

/* ---- executions side by side ---- */

/* Large enough for a team of threads in every launch. */
static const char shared_work[] =
    "%1 = input f32[256,96] \"x\"\n%2 = state f32[160,96] \"w\" role=weight\n"
    "%3 = state f32[160,96] \"grad.w\" role=gradient\n%4 = linear %1, %2\n%5 = silu %4\n"
    "%6 = linear_dw %1, %5, %3\noutput %6\n";

enum { SIDES = 2, STEPS = 4, SHARED_X = 256 * 96, SHARED_W = 160 * 96 };

static void begin_side(setup *s, int threads)
{
    *s = (setup){0};
    parse(shared_work, &s->g);
    environment_init(&s->env, 1, false);
    environment_add(&s->env, &s->g);
    environment_next_batch(&s->env, 0);
    create(s, "cpu", threads);
    bind(s);
}

static void step_of_side(setup *s, int step)
{
    float *x = state_data(s, "x");
    for (int i = 0; i < SHARED_X; i++)
        x[i] = (float)((i * 7 + step * 13) % 101 - 50) * 0.02f;
    write_inputs(s);
    MUST(tp_exec_run(s->exec, step > 0, NULL));
}

static const int side_threads[SIDES] = {1, 4};

static void *steps_of_side(void *side)
{
    for (int step = 0; step < STEPS; step++)
        step_of_side(side, step);
    return NULL;
}

/* What a side gives that has the process to itself. */
static const float *alone(int i)
{
    static float gradients[SIDES][SHARED_W];
    setup side;
    begin_side(&side, side_threads[i]);
    steps_of_side(&side);
    memcpy(gradients[i], state_data(&side, "grad.w"), sizeof gradients[i]);
    end(&side);
    return gradients[i];
}

static void end_sides(setup *sides)
{
    const float *expected[SIDES];
    for (int i = 0; i < SIDES; i++) {
        expected[i] = alone(i);
        assert_memory_equal(expected[i], state_data(&sides[i], "grad.w"), SHARED_W * 4);
        end(&sides[i]);
    }
    assert_memory_equal(expected[0], expected[1], SHARED_W * 4); /* nor do threads matter */
}

static void two_teams_in_turn_give_what_each_gives_alone(void **state)
{
    setup sides[SIDES];
    for (int i = 0; i < SIDES; i++)
        begin_side(&sides[i], side_threads[i]);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < SIDES; i++)
            step_of_side(&sides[i], step);
    end_sides(sides);
}

static void two_teams_at_once_give_what_each_gives_alone(void **state)
{
    setup sides[SIDES];
    pthread_t other;
    for (int i = 0; i < SIDES; i++)
        begin_side(&sides[i], side_threads[i]);
    for (int round = 0; round < 8; round++) {
        assert_int_equal(pthread_create(&other, NULL, steps_of_side, &sides[0]), 0);
        steps_of_side(&sides[1]);
        pthread_join(other, NULL);
    }
    end_sides(sides);
}

/* What an early write is given must stay as it is until the device is waited for. */
static void a_source_that_changes_before_its_copy_is_told_on_guard(void **state)
{
    tp_device *device = device_of("guard", 1);
    tp_buffer *buffer;
    float x[4] = {1, 2, 3, 4}, y[4];
    tp_error err;
    MUST(tp_buffer_alloc(device, TP_MEM_WEIGHTS, sizeof x, &buffer, &err));
    const tp_span span = {buffer, 0};
    MUST(tp_span_write_early(span, x, sizeof x, &err));
    MUST(tp_span_read(y, span, sizeof y, &err));
    assert_memory_equal(x, y, sizeof x);
    MUST(tp_span_write_early(span, x, sizeof x, &err));
    x[3] = 5;
    assert_int_equal(tp_span_read(y, span, sizeof y, &err), TP_ERR_ARG);
    assert_non_null(strstr(err.message, "16 bytes changed"));
    MUST(tp_span_read(y, span, sizeof y, &err)); /* told once */
    tp_buffer_free(buffer);
}

static tp_device *waited_for;
static tp_status second_wait;
static tp_error second_error;

static void wait_within(const tp_launch *launch)
{
    second_wait = tp_device_wait(waited_for, &second_error);
}

/* The kernel runs on the device's own thread while this one waits. */
static void two_threads_at_once_are_told_on_guard(void **state)
{
    static const tp_kernel kernel = {.name = "waits", .run = wait_within};
    tp_launch launch = {.kernel = &kernel};
    tp_error err;
    waited_for = device_of("guard", 1);
    MUST(tp_device_submit(waited_for, &launch, 1, &err));
    MUST(tp_device_wait(waited_for, &err));
    assert_int_equal(second_wait, TP_ERR_ARG);
    assert_non_null(strstr(second_error.message, "one thread at a time"));
    MUST(tp_device_wait(waited_for, &err)); /* the first thread has the device back */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_at_once_are_told_on_guard),
        cmocka_unit_test(a_source_that_changes_before_its_copy_is_told_on_guard),
        cmocka_unit_test(the_counter_counts),
        cmocka_unit_test(ref_allocates_nothing),
        cmocka_unit_test(cpu_allocates_nothing),
        cmocka_unit_test(tracing_allocates_once),
        cmocka_unit_test(memory_of_a_trace_is_that_of_the_plan),
        cmocka_unit_test(the_first_micro_batch_overwrites),
        cmocka_unit_test(accumulators_of_two_kinds_are_refused),
        cmocka_unit_test(inputs_are_bound_wherever_they_are_read),
        cmocka_unit_test(binding_again_moves_everything),
        cmocka_unit_test(unknown_and_wrong_states_are_named),
        cmocka_unit_test(a_view_of_an_input_is_refused),
        cmocka_unit_test(the_first_launch_with_a_nan_is_found),
        cmocka_unit_test(sums_of_squares_are_checked_too),
        cmocka_unit_test(launches_tell_what_they_cost),
        cmocka_unit_test(work_is_what_the_host_left_of_it),
        cmocka_unit_test(the_workspace_is_the_largest_that_a_launch_needs),
        cmocka_unit_test(plans_print),
        cmocka_unit_test(two_teams_in_turn_give_what_each_gives_alone),
        cmocka_unit_test(two_teams_at_once_give_what_each_gives_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
