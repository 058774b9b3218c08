/* test_levers.c - the table of levers: what a level sets, how choices join, what states say. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/plugin.h"
#include "engine/train/levers.h"
#include "engine/train/recipe.h"

static tp_recipe recipe;
static tp_error err;

static int enter(void **state)
{
    memset(&err, 0, sizeof err);
    return chdir(TP_SOURCE_DIR);
}

static int leave(void **state)
{
    tp_recipe_close(&recipe);
    return 0;
}

static void open_with(const char *const *overrides, size_t n)
{
    tp_recipe_close(&recipe);
    if (tp_recipe_open_sizes("recipes/demo.yaml", overrides, n, &recipe, &err) != TP_OK)
        fail_msg("%s", err.message);
}

#define OPEN(...) \
    open_with((const char *const[]){__VA_ARGS__}, TP_COUNTOF(((const char *const[]){__VA_ARGS__})))

static const char *origin(const char *key) { return tp_config_origin(recipe.config, key); }

static const tp_lever_report *report_of(const char *name)
{
    static tp_lever_reports reports;
    tp_levers_look(recipe.config, &recipe.options, &reports);
    for (int i = 0; i < reports.n; i++)
        if (strcmp(reports.v[i].lever->name, name) == 0)
            return &reports.v[i];
    return NULL;
}

/* Whoever adds a pass adds its lever; autocast and recompute go by other names. */
static void every_pass_is_a_lever(void **state)
{
    for (const tp_pass *const *p = tp_pass_pipeline; *p; p++) {
        const char *name = (*p)->name;
        if (strcmp(name, "autocast") == 0)
            name = "mixed-precision";
        if (strcmp(name, "shard") == 0 || strcmp(name, "shard-update") == 0 ||
            strcmp(name, "tensor-parallel") == 0)
            continue; /* without it several processes would compute something else */
        if (!tp_lever_find(name))
            fail_msg("levers.def has no row for the pass %s", name);
    }
}

static void names_are_unique_and_sentences_end(void **state)
{
    const tp_lever *l;
    for (size_t i = 0; (l = tp_lever_at(i)); i++) {
        assert_ptr_equal(tp_lever_find(l->name), l);
        assert_true(tp_str_ends(l->what, "."));
    }
    assert_null(tp_lever_find("nonsense"));
    assert_null(tp_lever_find(NULL));
}

static void advanced_is_the_default(void **state)
{
    OPEN("seed=1");
    assert_int_equal(recipe.options.level, TP_LEVEL_ADVANCED);
    assert_string_equal(origin("policy.sequence_packing.enabled"), "level advanced");
    assert_string_equal(origin("optimization.level"), "default");
    assert_true(recipe.options.policy.packing.enabled);
    assert_int_equal(recipe.options.policy.precision, TP_PRECISION_BFLOAT16);
    assert_int_equal(recipe.options.engine.disable_passes.n, 0);
}

static void basic_switches_everything_off_that_is_not_set(void **state)
{
    OPEN("optimization.level=basic", "engine.in_place=true");
    assert_int_equal(recipe.options.policy.precision, TP_PRECISION_FLOAT32);
    assert_string_equal(origin("policy.precision"), "level basic");
    assert_false(recipe.options.policy.packing.enabled);
    assert_int_equal(recipe.options.data.num_workers, 0);
    assert_int_equal(recipe.options.engine.disable_passes.n, 12);
    assert_true(recipe.options.engine.in_place);
    assert_string_equal(origin("engine.in_place"), "command line");
    assert_int_equal(report_of("fuse-swiglu")->state, TP_LEVER_OFF);
    assert_string_equal(report_of("fuse-swiglu")->why, "level basic");
    assert_int_equal(report_of("in-place")->state, TP_LEVER_ON);
}

static void a_level_is_a_word(void **state)
{
    const char *const bad[] = {"optimization.level=fast"}, *const ref[] = {
                                                               "optimization.level=${run.name}"};
    assert_int_equal(tp_recipe_open_sizes("recipes/demo.yaml", bad, 1, &recipe, &err),
                     TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "optimization.level: \"fast\" is not"));
    assert_int_equal(tp_recipe_open_sizes("recipes/demo.yaml", ref, 1, &recipe, &err),
                     TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "must be a word, no reference"));
}

static void lists_of_a_choice_are_joined(void **state)
{
    const tp_lever_choice choices[] = {{tp_lever_find("cse"), false},
                                       {tp_lever_find("dce"), true},
                                       {tp_lever_find("mixed-precision"), false},
                                       {tp_lever_find("schedule"), false}};
    char **overrides;
    size_t n;
    assert_int_equal(tp_lever_overrides(choices, TP_COUNTOF(choices), &overrides, &n, &err), TP_OK);
    assert_int_equal(n, 2);
    assert_string_equal(overrides[0], "engine.disable_passes=[cse, schedule]");
    assert_string_equal(overrides[1], "policy.precision=float32");
    OPEN(overrides[0], overrides[1]);
    free(overrides);
    assert_int_equal(report_of("cse")->state, TP_LEVER_OFF);
    assert_int_equal(report_of("dce")->state, TP_LEVER_ON);
    assert_string_equal(report_of("schedule")->why, "command line");
    assert_int_equal(tp_lever_overrides(NULL, 1, &overrides, &n, &err), TP_ERR_ARG);
}

static void what_the_settings_do_not_say_is_looked_at(void **state)
{
    OPEN("policy.dtensor_cfg.activation_checkpointing=true", "engine.threads=4096");
    assert_int_equal(report_of("recompute")->state, TP_LEVER_ON);
    assert_int_equal(report_of("threads")->state, TP_LEVER_FELL_BACK);
    assert_non_null(strstr(report_of("threads")->why, ", 4096 asked for"));
    OPEN("policy.compile_mode=none");
    assert_int_equal(report_of("cse")->state, TP_LEVER_OFF);
    assert_string_equal(report_of("in-place")->why, "policy.compile_mode is none");
    assert_null(report_of("batched-generation")); /* nothing is generated */
}

static void the_plan_says_what_a_lever_saves(void **state)
{
    tp_model *model;
    tp_run_plan now, without;
    tp_lever_reports reports;
    OPEN("seed=1");
    assert_int_equal(tp_run_model_open(&recipe.options, &model, NULL, &err), TP_OK);
    assert_int_equal(tp_run_plan_compute(&recipe.options, model, false, NULL, &now, &err), TP_OK);
    tp_levers_look(recipe.config, &recipe.options, &reports);
    tp_levers_predict(recipe.config, &recipe.options, model, &now, false, NULL, &reports);
    OPEN("policy.precision=float32");
    assert_int_equal(tp_run_plan_compute(&recipe.options, model, false, NULL, &without, &err),
                     TP_OK);
    assert_string_equal(reports.v[0].lever->name, "mixed-precision");
    assert_true(reports.v[0].saved_bytes == (double)without.peak_bytes - (double)now.peak_bytes);
    assert_true(isnan(reports.v[0].saved_s)); /* this machine was not measured */
    assert_string_equal(reports.v[2].lever->name, "recompute");
    assert_int_equal(reports.v[2].state, TP_LEVER_OFF);
    assert_true(reports.v[2].saved_bytes > 0);    /* it would */
    assert_true(reports.v[2].saved_launches < 0); /* and cost launches */
    for (int i = 0; i < reports.n; i++)
        if (strcmp(reports.v[i].lever->name, "fuse-bias-gelu") == 0)
            assert_true(tp_lever_is_idle(&reports.v[i])); /* a Llama has none */
    tp_model_free(model);
}

/* examples/pass.c over x -> scale by 1 -> silu -> scale by 2. */
static void a_plug_in_changes_graphs(void **state)
{
    const char *const paths[] = {TP_PLUGIN};
    const tp_pass_options options = {.compute_dtype = TP_DTYPE_F32};
    tp_graph g, *set[] = {&g};
    assert_int_equal(tp_graph_init(&g, &err), TP_OK);
    tp_ref x = tp_graph_input(&g, "x", TP_DTYPE_F32, 2, (const int64_t[]){4, 8});
    tp_ref same = tp_graph_op(&g, TP_OP_scale, &(tp_attrs){.scale = 1}, 1, &x, "same");
    tp_ref y = tp_graph_op(&g, TP_OP_silu, NULL, 1, &same, "y");
    tp_ref twice = tp_graph_op(&g, TP_OP_scale, &(tp_attrs){.scale = 2}, 1, &y, "twice");
    tp_graph_output(&g, twice);
    assert_int_equal(g.n_nodes, 5);
    assert_int_equal(tp_plugins_use(paths, 1, &err), TP_OK);
    assert_int_equal(tp_passes_run(set, 1, &options, &err), TP_OK);
    assert_int_equal(g.n_nodes, 4);
    assert_int_equal(tp_plugin_changes(0), 1);
    assert_string_equal(tp_plugin_name(0), "drop-scale-by-one");
    static tp_lever_reports one, other;
    OPEN("engine.plugins=[" TP_PLUGIN "]");
    tp_levers_look(recipe.config, &recipe.options, &one);
    tp_levers_look(recipe.config, &recipe.options, &other);
    assert_string_equal(one.v[one.n - 1].lever->name, "drop-scale-by-one");
    assert_ptr_not_equal(one.v[one.n - 1].lever, other.v[other.n - 1].lever); /* of another run */
    assert_int_equal(tp_plugins_use(NULL, 0, &err), TP_OK);
    tp_graph_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_is_a_lever),
        cmocka_unit_test(names_are_unique_and_sentences_end),
        cmocka_unit_test(advanced_is_the_default),
        cmocka_unit_test(basic_switches_everything_off_that_is_not_set),
        cmocka_unit_test(a_level_is_a_word),
        cmocka_unit_test(lists_of_a_choice_are_joined),
        cmocka_unit_test(what_the_settings_do_not_say_is_looked_at),
        cmocka_unit_test(the_plan_says_what_a_lever_saves),
        cmocka_unit_test(a_plug_in_changes_graphs),
    };
    for (size_t i = 0; i < TP_COUNTOF(tests); i++) {
        ((struct CMUnitTest *)tests)[i].setup_func = enter;
        ((struct CMUnitTest *)tests)[i].teardown_func = leave;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
