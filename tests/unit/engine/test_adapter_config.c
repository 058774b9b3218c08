/* test_adapter_config.c - which modules get an adapter, and what adapter_config.json may ask for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/model/adapter_internal.h"

static const char llama[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 16, \"hidden_size\": 8, \"intermediate_size\": 12,"
    " \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"max_position_embeddings\": 8}";

static tp_model *model;
static tp_arena arena;
static tp_error err;

static int set_up(void **state)
{
    err = (tp_error){0};
    return tp_model_parse("config.json", llama, strlen(llama), &model, &err) == TP_OK &&
                   tp_arena_init(&arena, 1 << 20, &err) == TP_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    tp_model_free(model);
    tp_arena_release(&arena);
    return 0;
}

static tp_status read_and_attach(const char *text)
{
    tp_lora_settings settings;
    const char *base;
    TP_TRY(tp_adapter_config_read("a.json", text, strlen(text), &arena, &settings, &base, &err));
    return tp_model_attach(model, &settings, &err);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"peft_type\": \"IA3\"}",
         "a.json:1: \"peft_type\" is \"IA3\": only \"LORA\" is supported"},
        {"{\"peft_type\": \"LORA\", \"bias\": \"all\"}",
         "a.json:1: \"bias\" is \"all\": only \"none\" is supported"},
        {"{\"peft_type\": \"LORA\", \"init_lora_weights\": \"pissa\"}",
         "a.json:1: \"init_lora_weights\" is \"pissa\": supported are true, false, \"gaussian\", "
         "\"eva\" and \"orthogonal\"; the others change the base as well"},
        {"{\"peft_type\": \"LORA\", \"modules_to_save\": [\"lm_head\"]}",
         "a.json:1: \"modules_to_save\" is an array: not supported: only null, false or empty"},
        {"{\"peft_type\": \"LORA\", \"rank_pattern\": {\"q_proj\": 2.5}}",
         "a.json:1: \"rank_pattern\" is an object: \"q_proj\" has rank 2.5; expected a whole "
         "number"},
        {"{\"peft_type\": \"LORA\", \"rank_pattern\": {\"q_proj\": 0}}",
         "a.json:1: \"rank_pattern.q_proj\" is 0: expected a number above 0 and up to"},
        {"{\"peft_type\": \"LORA\", \"rank_pattern\": 4}",
         "\"rank_pattern\" is 4: expected numbers by module"},
        {"{\"peft_type\": \"LORA\", \"rank_pattern\": {\"(q\": 2}}",
         "rank_pattern: the regular expression '(?:.*\\.)?(?:(q)' is wrong at character 16"},
        {"{\"peft_type\": \"LORA\", \"alpha_pattern\": {\"q_proj\": \"2\"}}",
         "\"alpha_pattern.q_proj\" is \"2\": expected a number"},
        {"{\"peft_type\": \"LORA\", \"layers_to_transform\": 2}",
         "target_modules in the layers of layers_to_transform leave no module for an adapter"},
        {"{\"peft_type\": \"LORA\", \"layers_to_transform\": [1, \"2\"]}",
         "\"layers_to_transform\" is an array: expected a layer's number, or a list of them"},
        {"{\"peft_type\": \"LORA\", \"layers_to_transform\": 1, \"target_modules\": "
         "\"all-linear\"}",
         "\"layers_to_transform\" is 1: goes with a list in target_modules, not with a text"},
        {"{\"peft_type\": \"LORA\", \"layers_pattern\": \"layers\"}",
         "\"layers_pattern\" is \"layers\": layers_to_transform is not there to say which layers"},
        {"{\"peft_type\": \"LORA\", \"lora_bias\": true}", "\"lora_bias\" is true"},
        {"{\"peft_type\": \"LORA\", \"use_qalora\": true}", "\"use_qalora\" is true"},
        {"{\"peft_type\": \"LORA\", \"trainable_token_indices\": [3]}",
         "\"trainable_token_indices\" is"},
        {"{\"peft_type\": \"LORA\", \"target_parameters\": [\"x\"]}", "\"target_parameters\" is"},
        {"{\"peft_type\": \"LORA\", \"layer_replication\": [[0, 2]]}", "\"layer_replication\" is"},
        {"{\"peft_type\": \"LORA\", \"megatron_config\": {\"a\": 1}}", "\"megatron_config\" is"},
        {"{\"peft_type\": \"LORA\", \"velora_config\": {\"scale\": 1}}", "\"velora_config\" is"},
        {"{\"peft_type\": \"LORA\", \"kasa_config\": {\"beta\": 1}}", "\"kasa_config\" is"},
        {"{\"peft_type\": \"LORA\", \"task_type\": \"SEQ_CLS\"}", "\"task_type\" is"},
        {"{\"peft_type\": \"LORA\", \"r\": 0}", "\"r\" is 0"},
        {"{\"peft_type\": \"LORA\", \"lora_dropout\": 1.0}", "dropout 1"},
        {"{\"peft_type\": \"LORA\", \"target_modules\": [\"q_proj\", \"lm_head\"]}",
         "adapters on the embedding or the head ('lm_head')"},
        {"{\"peft_type\": \"LORA\", \"something_new\": 1}",
         "a.json:1: \"something_new\" is 1: not supported: only null, false or empty"},
        {"{\"peft_type\": \"LORA\", \"target_modules\": [\"lm_head\"]}",
         "target_modules: adapters on the embedding or the head ('lm_head') are not supported; of "
         "this model there are q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, or "
         "all-linear"},
        {"{\"peft_type\": \"LORA\", \"target_modules\": [\"c_attn\"]}",
         "target_modules: no module is called 'c_attn'; there are q_proj, k_proj, v_proj, o_proj, "
         "gate_proj, up_proj, down_proj, or all-linear"},
        {"{\"peft_type\": \"LORA\", \"target_modules\": [\"q_proj\"], \"exclude_modules\": "
         "[\"q_proj\"]}",
         "target_modules less exclude_modules leave no module for an adapter"},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        assert_true(read_and_attach(cases[i].text) != TP_OK);
        if (!strstr(err.message, cases[i].message))
            fail_msg("'%s', not '%s'", err.message, cases[i].message);
    }
}

static void check_count(const char *targets, size_t want)
{
    char text[256];
    snprintf(text, sizeof text, "{\"peft_type\": \"LORA\", \"r\": 2, %s}", targets);
    if (read_and_attach(text) != TP_OK)
        fail_msg("%s: %s", targets, err.message);
    if (tp_model_adapter_count(model) != want)
        fail_msg("%s: %zu modules, not %zu", targets, tp_model_adapter_count(model), want);
    tear_down(NULL);
    assert_int_equal(set_up(NULL), 0);
}

/* Two layers of seven products. */
static void test_modules_are_chosen_as_peft_does(void **state)
{
    check_count("\"target_modules\": null", 4); /* q_proj, v_proj */
    check_count("\"target_modules\": \"all-linear\"", 14);
    check_count("\"target_modules\": [\"q_proj\", \"mlp.up_proj\"]", 4);
    check_count("\"target_modules\": [\"layers.1.self_attn.q_proj\"]", 1);
    check_count("\"target_modules\": [\"c_attn\", \"q_proj\"]",
                2); /* of another family: passed over */
    check_count("\"target_modules\": \".*\\\\.0\\\\..*_proj\"", 7);
    check_count("\"target_modules\": \"all-linear\", \"exclude_modules\": [\"down_proj\"]", 12);
    check_count("\"target_modules\": \"all-linear\", \"exclude_modules\": \".*mlp.*\"", 8);
    check_count("\"layers_to_transform\": 0", 2);
    check_count("\"layers_to_transform\": [0, 1, 7]", 4);
    check_count("\"layers_to_transform\": [], \"layers_pattern\": []", 4);
    check_count("\"layers_to_transform\": [1], \"layers_pattern\": \"layers\"", 2);
    check_count("\"layers_to_transform\": [1], \"layers_pattern\": \"\"", 2); /* any */
    check_count("\"layers_pattern\": \"\"", 4);
    check_count("\"layers_to_transform\": [1], \"layers_pattern\": [\"h\", \"l.*s\"]", 2);
    check_count("\"layers_to_transform\": [1], \"target_modules\": "
                "[\"model.layers.0.self_attn.q_proj\", \"v_proj\"]",
                2); /* a whole name is adapted in any layer */
}

static void test_how_an_adapter_was_initialised_is_over(void **state)
{
    check_count("\"init_lora_weights\": \"eva\", \"eva_config\": {\"rho\": 1.5}", 4);
    check_count("\"corda_config\": {\"corda_method\": \"ipm\"}", 4);
    check_count("\"lora_ga_config\": {\"direction\": \"ArB2r\"}", 4);
    check_count("\"loftq_config\": {\"loftq_bits\": 4}", 4);
}

/* Expected ranks and scales are those that PEFT 0.21 gives the same modules. */
static void test_numbers_by_module(void **state)
{
    static const char text[] =
        "{\"peft_type\": \"LORA\", \"r\": 8, \"lora_alpha\": 16, \"target_modules\": [\"q_proj\", "
        "\"v_proj\", \"up_proj\"], \"rank_pattern\": {\"layers.0.self_attn.q_proj\": 2, "
        "\"[qv]_proj\": 4, \"proj\": 1}, \"alpha_pattern\": {\"model.layers.1.mlp.up_proj\": 3}}";
    static const struct {
        const char *name;
        int64_t rank;
        double scale;
    } want[] = {
        {"model.layers.0.self_attn.q_proj", 2, 8}, {"model.layers.0.self_attn.v_proj", 4, 4},
        {"model.layers.0.mlp.up_proj", 8, 2},      {"model.layers.1.self_attn.q_proj", 4, 4},
        {"model.layers.1.self_attn.v_proj", 4, 4}, {"model.layers.1.mlp.up_proj", 8, 0.375}};
    assert_int_equal(read_and_attach(text), TP_OK);
    assert_int_equal(tp_model_adapter_count(model), TP_COUNTOF(want));
    for (size_t i = 0; i < TP_COUNTOF(want); i++) {
        const tp_adapted *m = &model->lora->modules[i];
        assert_string_equal(m->name, want[i].name);
        assert_int_equal(m->a->dim[0], want[i].rank);
        assert_int_equal(m->b->dim[1], want[i].rank);
        assert_float_equal(m->scale, want[i].scale, 0);
    }
    tp_buf out = {0};
    tp_adapter_config_write(model, &out);
    assert_non_null(strstr(out.data, "\"[qv]_proj\": 4,"));
    assert_non_null(strstr(out.data, "\"model.layers.1.mlp.up_proj\": 3"));
    tp_buf_release(&out);
}

/* Of a configuration: wildcards of NeMo RL as well, and patterns by their looks. */
static void test_modules_of_a_configuration(void **state)
{
    static const struct {
        const char *word;
        size_t want;
    } cases[] = {{"*_proj", 14},         {"all-linear", 14},     {"v_proj", 2},
                 {"*.mlp.*", 6},         {".*\\.(q|k)_proj", 4}, {"model.layers.0.*", 7},
                 {"self_attn.o_proj", 2}};
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        const char *list[] = {cases[i].word};
        const tp_lora_settings s = {.r = 2, .alpha = 2, .targets = {list, 1, TP_MATCH_GUESS}};
        if (tp_model_attach(model, &s, &err) != TP_OK)
            fail_msg("%s: %s", cases[i].word, err.message);
        if (tp_model_adapter_count(model) != cases[i].want)
            fail_msg("%s: %zu modules", cases[i].word, tp_model_adapter_count(model));
        tear_down(NULL);
        assert_int_equal(set_up(NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_modules_are_chosen_as_peft_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_an_adapter_was_initialised_is_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_numbers_by_module, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_modules_of_a_configuration, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
