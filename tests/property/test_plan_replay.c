/* test_plan_replay.c - the plans of real runs, played through as allocations.
 *
 * For each family, algorithm and way to compile, every graph of the run's set is played launch
 * by launch: no buffer that lives is overwritten, every read finds what was written, and the
 * planned size is what is touched.  Then the set is given its memory, which must be the planned
 * bytes to the last one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/train/graphs.h"
#include "engine/train/recipe.h"
#include "property/check_plan.h"

#define LLAMA_SIZES                                                                      \
    "\"vocab_size\": 23, \"hidden_size\": 16, \"intermediate_size\": 20, "               \
    "\"num_hidden_layers\": 3, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, " \
    "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-5, \"rope_theta\": 100.0, "   \
    "\"hidden_act\": \"silu\""

#define GPT2                                                                                      \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 23, \"n_embd\": 16, \"n_layer\": 3, \"n_head\": " \
    "2, "                                                                                         \
    "\"n_positions\": 32, \"layer_norm_epsilon\": 1e-5, \"activation_function\": \"gelu_new\"}"

static const char *const families[] = {
    "{\"model_type\": \"llama\", \"tie_word_embeddings\": true, " LLAMA_SIZES "}",
    "{\"model_type\": \"qwen2\", \"tie_word_embeddings\": false, " LLAMA_SIZES "}",
    "{\"model_type\": \"qwen3\", \"head_dim\": 8, \"tie_word_embeddings\": true, " LLAMA_SIZES "}",
    GPT2,
};

/* What the sets have in them. */
static const struct {
    const char *algorithm;
    bool resumes;
    int n_graphs;
} runs[] = {{"sft.max_num_steps=1", false, 4},
            {"dpo.max_num_steps=1", true, 5},
            {"grpo.max_num_steps=1", false, 6}};

static const char *const ways[] = {"policy.compile_mode=default",
                                   "policy.compile_mode=none",
                                   "policy.recompute=full",
                                   "policy.recompute=selective",
                                   "engine.disable_passes=[autocast]",
                                   "engine.disable_passes=[fuse]"};

static const char *const graph_names[] = {"train",  "eval",     "norm",
                                          "update", "generate", "reference"};

static void open_recipe(const char *algorithm, const char *precision, const char *way,
                        tp_recipe *ret)
{
    const char *const overrides[] = {algorithm,
                                     precision,
                                     way,
                                     "policy.init=random",
                                     "policy.model_config=unused",
                                     "policy.tokenizer.name=unused",
                                     "policy.train_micro_batch_size=2",
                                     "policy.train_global_batch_size=4",
                                     "policy.max_total_sequence_length=8",
                                     "engine.threads=1",
                                     "policy.generation.max_running=2",
                                     "policy.generation.max_new_tokens=4",
                                     "grpo.num_prompts_per_step=2",
                                     "grpo.num_generations_per_prompt=2",
                                     "loss_fn.reference_policy_kl_penalty=0.1"};
    enum { OF_GRPO = 5 };
    bool generates = strncmp(algorithm, "grpo", 4) == 0;
    size_t n = sizeof overrides / sizeof *overrides - (generates ? 0 : OF_GRPO);
    tp_error err;
    if (tp_recipe_open_sizes(NULL, overrides, n, ret, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static void replay(const tp_program *program, int graph, bool share, const char *what)
{
    tp_arena arena;
    tp_memory_plan plan;
    const tp_graph *g = tp_program_graph(program, graph);
    assert_int_equal(tp_arena_init(&arena, (size_t)1 << 32, NULL), TP_OK);
    assert_int_equal(tp_plan_memory(g, share, &arena, &plan, NULL), TP_OK);
    assert_int_equal(plan.arena_bytes, tp_exec_arena_bytes(tp_program_exec(program, graph)));
    const char *complaint = check_plan(g, &plan, &arena);
    if (complaint)
        fail_msg("%s: %s", what, complaint);
    tp_arena_release(&arena);
}

static size_t sum_of(const size_t bytes[TP_MEM_KINDS])
{
    size_t sum = 0;
    for (int k = 0; k < TP_MEM_KINDS; k++)
        sum += bytes[k];
    return sum;
}

/* The planned bytes against what the set has once it has memory. */
static void expect_bytes(const tp_run_graphs *set)
{
    size_t planned[TP_MEM_KINDS], before = tp_mem_get_stats().total_current;
    tp_program_bytes(set->program, planned);
    assert_int_equal(tp_session_alloc(set->session, NULL), TP_OK);
    if (set->engine)
        assert_int_equal(tp_engine_alloc(set->engine, NULL), TP_OK);
    if (set->reference)
        assert_int_equal(tp_session_alloc(set->reference, NULL), TP_OK);
    assert_int_equal(tp_mem_get_stats().total_current - before, sum_of(planned));
}

static void check_run(const tp_model *model, size_t run, const char *precision, const char *way)
{
    char what[256];
    tp_recipe recipe;
    tp_run_graphs set;
    tp_error err;
    int n = 0;
    const tp_run_graphs_options more = {.resumes = runs[run].resumes};
    open_recipe(runs[run].algorithm, precision, way, &recipe);
    if (tp_run_graphs_create(&recipe.options, model, &more, &set, &err) != TP_OK)
        fail_msg("%s", err.message);
    bool share = tp_program_get_options(set.program)->share_memory;
    for (size_t i = 0; i < sizeof graph_names / sizeof *graph_names; i++) {
        int graph = tp_program_find(set.program, graph_names[i]);
        snprintf(what, sizeof what, "%s %s %s %s", runs[run].algorithm, precision, way,
                 graph_names[i]);
        if (graph >= 0)
            replay(set.program, graph, share, what);
        n += graph >= 0;
    }
    assert_int_equal(n, runs[run].n_graphs);
    expect_bytes(&set);
    tp_run_graphs_release(&set);
    tp_recipe_close(&recipe);
}

static void check_family(const char *config)
{
    tp_model *model;
    tp_error err;
    if (tp_model_parse("config", config, strlen(config), &model, &err) != TP_OK)
        fail_msg("%s", err.message);
    for (size_t run = 0; run < sizeof runs / sizeof *runs; run++)
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            check_run(model, run, "policy.precision=float32", ways[way]);
            check_run(model, run, "policy.precision=bfloat16", ways[way]);
        }
    tp_model_free(model);
}

static void plans_of_llama_hold(void **state) { check_family(families[0]); }
static void plans_of_qwen2_hold(void **state) { check_family(families[1]); }
static void plans_of_qwen3_hold(void **state) { check_family(families[2]); }
static void plans_of_gpt2_hold(void **state) { check_family(families[3]); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_llama_hold),
        cmocka_unit_test(plans_of_qwen2_hold),
        cmocka_unit_test(plans_of_qwen3_hold),
        cmocka_unit_test(plans_of_gpt2_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
