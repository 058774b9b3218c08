/* test_exec_program.c - a set of graphs: one pipeline, one plan, options that reach each of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/exec/program.h"
#include "support/devices.h"

static const char product[] = "%1 = input f32[4,8] \"x\"\n"
                              "%2 = state f32[6,8] \"w\" role=weight\n"
                              "%3 = linear %1, %2\n"
                              "%4 = silu %3\n"
                              "output %4\n";
static const char update[] = "%1 = state f32[6,8] \"w\" role=weight\n"
                             "%2 = state f32[6,8] \"grad.w\" role=gradient of \"w\"\n"
                             "%3 = state f32[6,8] \"adam_m.w\" role=moment of \"w\"\n"
                             "%4 = state f32[6,8] \"adam_v.w\" role=moment of \"w\"\n"
                             "%5 = input f64[8] \"scalars\"\n"
                             "%6, %7, %8 = adamw %1, %2, %3, %4, %5 {decay=1} phase=update\n"
                             "output %6\noutput %7\noutput %8\n";

typedef struct {
    tp_program *program;
    tp_states states, others;
    int product, update, other;
} fixture;

static void add(const tp_program *program, int graph, const char *text)
{
    tp_graph *g = tp_program_graph(program, graph);
    tp_error err;
    tp_graph_release(g);
    if (tp_graph_parse("t", text, strlen(text), g, &err) != TP_OK)
        fail_msg("%s", err.message);
}

/* A product and its update on one set of states, a longer product on another. */
static void begin(fixture *f, tp_program_options o)
{
    static const char longer[] = "%1 = input f32[40,8] \"x\"\n"
                                 "%2 = state f32[6,8] \"w\" role=weight\n"
                                 "%3 = linear %1, %2\n"
                                 "output %3\n";
    o.device = device_of("ref", 1);
    MUST(tp_states_init(&f->states, NULL));
    MUST(tp_states_init(&f->others, NULL));
    MUST(tp_program_create(&o, &f->program, NULL));
    MUST(tp_program_add(f->program, "product", &f->states, 0, &f->product, NULL));
    MUST(tp_program_add(f->program, "update", &f->states, 0, &f->update, NULL));
    MUST(tp_program_add(f->program, "other", &f->others, 0, &f->other, NULL));
    add(f->program, f->product, product);
    add(f->program, f->update, update);
    add(f->program, f->other, longer);
    MUST(tp_program_compile(f->program, NULL));
}

static void end(fixture *f)
{
    tp_program_free(f->program);
    tp_states_release(&f->states);
    tp_states_release(&f->others);
}

static void an_update_writes_the_copies_that_others_read(void **state)
{
    fixture f;
    begin(&f, (tp_program_options){.passes.compute_dtype = TP_DTYPE_BF16});
    const tp_graph *g = tp_program_graph(f.program, f.update);
    const tp_tensor *copy = tp_states_find(&f.states, "w.bf16");

    assert_non_null(copy);
    assert_int_equal(copy->role, TP_ROLE_COPY);
    assert_string_equal(copy->of, "w");
    tp_ref ref = tp_graph_find(g, "w.bf16");
    assert_int_not_equal(ref, 0);
    assert_int_equal(g->n_outputs, 4);
    assert_int_equal(tp_graph_memory(g, g->outputs[3]), ref);
    end(&f);
}

static void in_f32_there_is_no_copy_to_write(void **state)
{
    fixture f;
    begin(&f, (tp_program_options){0});
    assert_int_equal(tp_program_graph(f.program, f.update)->n_outputs, 3);
    assert_null(tp_states_find(&f.states, "w.f32"));
    end(&f);
}

static void a_pass_is_switched_off_for_every_graph(void **state)
{
    static const char *const off[] = {"autocast"};
    fixture f;
    begin(&f, (tp_program_options){
                  .passes = {.compute_dtype = TP_DTYPE_BF16, .disabled = off, .n_disabled = 1}});
    assert_null(tp_states_find(&f.states, "w.bf16"));
    assert_null(tp_states_find(&f.others, "w.bf16"));
    assert_int_equal(tp_program_graph(f.program, f.update)->n_outputs, 3);
    end(&f);
}

/* w 6x8, its gradient and moments; the longer input, 40x8; the longer result, 40x6. */
static void tensors_count_once_and_what_is_shared_as_the_largest(void **state)
{
    fixture f;
    size_t bytes[TP_MEM_KINDS];
    begin(&f, (tp_program_options){.share_memory = true});

    tp_program_bytes(f.program, bytes);

    assert_int_equal(bytes[TP_MEM_WEIGHTS], 2 * 6 * 8 * 4); /* of two sets of states */
    assert_int_equal(bytes[TP_MEM_GRADIENTS], 6 * 8 * 4);
    assert_int_equal(bytes[TP_MEM_OPTIMIZER], 2 * 6 * 8 * 4);
    assert_int_equal(bytes[TP_MEM_DATA], 40 * 8 * 4);
    assert_int_equal(bytes[TP_MEM_ACTIVATIONS], 40 * 6 * 4);
    end(&f);
}

static void a_graph_works_with_its_own_tensors(void **state)
{
    fixture f;
    size_t bytes[TP_MEM_KINDS];
    begin(&f, (tp_program_options){.share_memory = true});

    tp_program_used_bytes(f.program, 1u << f.product, bytes);

    assert_int_equal(bytes[TP_MEM_WEIGHTS], 6 * 8 * 4);
    assert_int_equal(bytes[TP_MEM_OPTIMIZER], 0);
    assert_int_equal(bytes[TP_MEM_DATA], 4 * 8 * 4);
    assert_int_equal(bytes[TP_MEM_ACTIVATIONS], 128); /* 4x6 floats, in lines of 64 bytes */
    end(&f);
}

static void note(void *user, const char *graph, const char *stage, const char *text)
{
    tp_buf_addf(user, "%s.%s%s ", graph, stage, *text ? "" : " is empty");
}

static void stages_of_every_graph_are_shown(void **state)
{
    static const char *const stages[] = {"graph", "dce", "plan"};
    tp_buf seen = {0};
    fixture f;
    begin(&f, (tp_program_options){
                  .dump_stages = stages, .n_dump_stages = 3, .dump = note, .dump_user = &seen});
    assert_string_equal(tp_buf_str(&seen),
                        "product.graph update.graph other.graph product.dce update.dce other.dce "
                        "product.plan update.plan other.plan ");
    tp_buf_release(&seen);
    end(&f);
}

static void an_unknown_stage_is_refused(void **state)
{
    static const char *const stages[] = {"nonsense"};
    tp_program_options o = {.dump_stages = stages, .n_dump_stages = 1};
    tp_program *program;
    tp_error err;
    assert_int_equal(tp_program_create(&o, &program, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "there is no pass 'nonsense'; known: fuse, graph, plan"));
}

/* Two sets of states in one program, given memory one after the other, do not disturb. */
static void graphs_run_on_the_states_they_were_added_with(void **state)
{
    fixture f;
    float x[4 * 8] = {[0] = 1}, w[6 * 8] = {[0] = 2}, y = 0;
    begin(&f, (tp_program_options){.share_memory = true});
    MUST(tp_program_alloc(f.program, &f.states, NULL));
    MUST(tp_program_alloc(f.program, &f.others, NULL));
    MUST(tp_tensor_write(tp_states_find(&f.others, "w"), 0, w, sizeof w, NULL));
    tp_exec *e = tp_program_exec(f.program, f.other);
    float longer[40 * 8] = {[0] = 1};
    MUST(tp_exec_write(e, tp_exec_input(e, "x"), longer, -1, NULL));
    MUST(tp_program_run(f.program, f.other, false, NULL));
    MUST(tp_exec_read(e, 0, 0, &y, sizeof y, NULL));
    assert_true(y == 2);

    e = tp_program_exec(f.program, f.product);
    MUST(tp_exec_write(e, tp_exec_input(e, "x"), x, -1, NULL));
    MUST(tp_program_run(f.program, f.product, false, NULL));
    MUST(tp_exec_read(e, 0, 0, &y, sizeof y, NULL));
    assert_true(y == 0); /* silu(0): its own w was never written */
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_writes_the_copies_that_others_read),
        cmocka_unit_test(in_f32_there_is_no_copy_to_write),
        cmocka_unit_test(a_pass_is_switched_off_for_every_graph),
        cmocka_unit_test(tensors_count_once_and_what_is_shared_as_the_largest),
        cmocka_unit_test(a_graph_works_with_its_own_tensors),
        cmocka_unit_test(stages_of_every_graph_are_shown),
        cmocka_unit_test(an_unknown_stage_is_refused),
        cmocka_unit_test(graphs_run_on_the_states_they_were_added_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
