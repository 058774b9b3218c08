/* test_model_config.c - config.json: what is used, refused and warned of. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "engine/model/fields.h"
#include "engine/model/model.h"
#include "support/devices.h"

#define CONFIGS TP_SOURCE_DIR "/tests/data/configs/"

static tp_model *open_model(const char *path)
{
    tp_model *model = NULL;
    tp_error err = {0};
    if (tp_model_open(path, &model, &err) != TP_OK)
        fail_msg("%s", err.message);
    return model;
}

static tp_model *parse(const char *text)
{
    tp_model *model = NULL;
    tp_error err = {0};
    if (tp_model_parse("config.json", text, strlen(text), &model, &err) != TP_OK)
        fail_msg("%s", err.message);
    return model;
}

static void parameter_counts_are_those_of_the_published_models(void **state)
{
    static const struct {
        const char *path;
        int64_t count;
    } rows[] = {
        {CONFIGS "gpt2.json", 124439808},          {CONFIGS "smollm2-135m.json", 134515008},
        {CONFIGS "smollm2-360m.json", 361821120},  {CONFIGS "smollm2-1.7b.json", 1711376384},
        {CONFIGS "llama-3.2-1b.json", 1235814400}, {CONFIGS "qwen2.5-0.5b.json", 494032768},
        {CONFIGS "qwen2.5-1.5b.json", 1543714304}, {CONFIGS "qwen3-0.6b.json", 596049920},
        {CONFIGS "qwen3-1.7b.json", 1720574976},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tp_model *model = open_model(rows[i].path);

        size_t n;
        int64_t sum = 0;
        const tp_param *params = tp_model_params(model, &n);
        for (size_t k = 0; k < n; k++)
            sum += params[k].dim[0] * params[k].dim[1];
        assert_int_equal(tp_model_param_count(model), rows[i].count);
        assert_int_equal(sum, rows[i].count);
        tp_model_free(model);
    }
}

static void facts_of_llama(void **state)
{
    tp_model *model = open_model(CONFIGS "llama-3.2-1b.json");
    const tp_model_info *info = tp_model_get_info(model);

    assert_string_equal(info->family, "llama");
    assert_int_equal(info->hidden, 2048);
    assert_int_equal(info->intermediate, 8192);
    assert_int_equal(info->layers, 16);
    assert_int_equal(info->heads, 32);
    assert_int_equal(info->kv_heads, 8);
    assert_int_equal(info->head_dim, 64);
    assert_int_equal(info->vocab, 128256);
    assert_int_equal(info->max_positions, 131072);
    assert_true(info->rope_theta == 500000);
    assert_true(info->norm_eps == 1e-5);
    assert_true(info->tied);
    assert_int_equal(info->bos, 128000);
    assert_int_equal(info->n_eos, 3);
    assert_int_equal(info->eos[2], 128009);
    tp_model_free(model);
}

static void facts_of_gpt2(void **state)
{
    tp_model *model = open_model(CONFIGS "gpt2.json");
    const tp_model_info *info = tp_model_get_info(model);
    size_t n;
    const tp_param *p = tp_model_params(model, &n);

    assert_int_equal(info->intermediate, 3072);
    assert_int_equal(info->head_dim, 64);
    assert_true(info->tied);
    assert_true(info->rope_theta == 0);
    assert_true(info->ignored_dropout == 0.1);
    assert_int_equal(n, 148);
    assert_string_equal(p[0].name, "transformer.wte.weight");
    assert_true(p[0].is_matrix);
    assert_string_equal(p[4].name, "transformer.h.0.attn.c_attn.weight");
    assert_int_equal(p[4].dim[0], 768);
    assert_int_equal(p[4].dim[1], 2304);
    assert_string_equal(p[6].name, "transformer.h.0.attn.c_proj.weight");
    assert_true(p[6].is_residual_out);
    assert_int_equal(p[7].init, TP_INIT_ZERO);
    assert_string_equal(p[147].name, "transformer.ln_f.bias");
    tp_model_free(model);
}

static void head_dim_of_qwen3_is_independent_of_the_width(void **state)
{
    tp_model *model = open_model(CONFIGS "qwen3-0.6b.json");
    size_t n;
    const tp_param *p = tp_model_params(model, &n);

    assert_int_equal(tp_model_get_info(model)->head_dim, 128);
    assert_string_equal(p[1].name, "model.layers.0.self_attn.q_proj.weight");
    assert_int_equal(p[1].dim[0], 2048);
    assert_int_equal(p[1].dim[1], 1024);
    assert_string_equal(p[5].name, "model.layers.0.self_attn.q_norm.weight");
    assert_int_equal(p[5].dim[0], 128);
    assert_int_equal(p[5].rank, 1);
    tp_model_free(model);
}

#define SIZES                                                                             \
    "\"vocab_size\":8,\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":1," \
    "\"num_attention_heads\":2,\"max_position_embeddings\":16"

static void absent_fields_take_their_defaults(void **state)
{
    tp_model *model = parse("{\"model_type\":\"llama\",\"head_dim\":null," SIZES "}");
    const tp_model_info *info = tp_model_get_info(model);
    size_t n;

    assert_int_equal(info->kv_heads, 2);
    assert_int_equal(info->head_dim, 4);
    assert_true(info->rope_theta == 10000);
    assert_false(info->tied);
    assert_int_equal(info->n_eos, 0);
    assert_int_equal(info->bos, -1);
    const tp_param *p = tp_model_params(model, &n);
    assert_string_equal(p[n - 1].name, "lm_head.weight");
    tp_model_free(model);
}

static void biases_are_optional_in_llama(void **state)
{
    tp_model *plain = parse("{\"model_type\":\"llama\"," SIZES "}");
    tp_model *attention = parse("{\"model_type\":\"llama\",\"attention_bias\":true," SIZES "}");
    tp_model *mlp = parse("{\"model_type\":\"llama\",\"mlp_bias\":true," SIZES "}");

    assert_int_equal(tp_model_param_count(attention) - tp_model_param_count(plain), 4 * 8);
    assert_int_equal(tp_model_param_count(mlp) - tp_model_param_count(plain), 3 * 8);
    tp_model_free(plain);
    tp_model_free(attention);
    tp_model_free(mlp);
}

static void rope_table_of(const char *text, int64_t rows, float *out, size_t n)
{
    tp_model *model = parse(text);
    tp_states states;
    assert_int_equal(tp_states_init(&states, NULL), TP_OK);
    assert_int_equal(tp_model_declare(model, rows, &states, NULL), TP_OK);
    assert_int_equal(tp_states_alloc(&states, device_of("ref", 1), NULL), TP_OK);
    MUST(tp_model_fill_constants(model, &states, NULL));
    const tp_tensor *table = tp_states_find(&states, "rope.table");
    assert_int_equal(table->bytes, n * sizeof(float));
    memcpy(out, data_of(table), n * sizeof(float));
    tp_states_release(&states);
    tp_model_free(model);
}

static void rope_table_holds_cosines_then_sines(void **state)
{
    float table[12];

    rope_table_of("{\"model_type\":\"llama\",\"rope_theta\":100," SIZES "}", 3, table, 12);

    /* pairs turn by 1 and 100^(-1/2) = 0.1 per position */
    const float want[] = {1,           1,          0,          0,          /* p = 0 */
                          0.5403023f,  0.9950042f, 0.8414710f, 0.0998334f, /* p = 1 */
                          -0.4161468f, 0.9800666f, 0.9092974f, 0.1986693f};
    for (int i = 0; i < 12; i++)
        assert_true(fabsf(table[i] - want[i]) < 1e-7f);
}

static void both_spellings_of_rope_agree(void **state)
{
    float old[4 * 4], new[4 * 4];

    rope_table_of("{\"model_type\":\"llama\",\"rope_theta\":500,\"rope_scaling\":{\"type\":"
                  "\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
                  "\"original_max_position_embeddings\":32}," SIZES "}",
                  4, old, 16);
    rope_table_of("{\"model_type\":\"llama\",\"rope_parameters\":{\"rope_type\":\"llama3\","
                  "\"rope_theta\":500,\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
                  "\"original_max_position_embeddings\":32}," SIZES "}",
                  4, new, 16);

    assert_memory_equal(old, new, sizeof old);
    /* wavelengths 2 pi (kept) and 2 pi sqrt(500) = 140 (divided by 8) */
    assert_true(fabsf(old[4] - 0.5403023f) < 1e-7f);
    assert_true(fabsf(old[7] - sinf(0.0447213595f / 8)) < 1e-8f);
}

/* `text` completed with sizes is refused with this message. */
static void refuse(const char *text, tp_status status, const char *message)
{
    tp_model *model = NULL;
    tp_error err = {0};

    tp_status got = tp_model_parse("config.json", text, strlen(text), &model, &err);

    if (got == TP_OK)
        fail_msg("accepted: %s", text);
    assert_string_equal(err.message, message);
    assert_int_equal(got, status);
    assert_null(model);
}

#define LLAMA(vocab, hidden, layers, heads, more)                                              \
    "{\"model_type\":\"llama\",\"vocab_size\":" vocab ",\"hidden_size\":" hidden               \
    ",\"intermediate_size\":8,\"num_hidden_layers\":" layers ",\"num_attention_heads\":" heads \
    ",\"max_position_embeddings\":16" more "}"

static void absurd_sizes_are_refused(void **state)
{
    refuse(LLAMA("8", "8", "-3", "2", ""), TP_ERR_FORMAT,
           "config.json:1: \"num_hidden_layers\" is -3: expected an integer from 1 to 512");
    refuse(LLAMA("8", "8", "100000", "2", ""), TP_ERR_FORMAT,
           "config.json:1: \"num_hidden_layers\" is 100000: expected an integer from 1 to 512");
    refuse(LLAMA("8", "8", "1.5", "2", ""), TP_ERR_FORMAT,
           "config.json:1: \"num_hidden_layers\" is 1.5: expected an integer from 1 to 512");
    refuse(LLAMA("\"8\"", "8", "1", "2", ""), TP_ERR_FORMAT,
           "config.json:1: \"vocab_size\" is \"8\": expected an integer from 1 to 16777216");
    refuse(LLAMA("null", "8", "1", "2", ""), TP_ERR_FORMAT,
           "config.json:1: \"vocab_size\" is null: expected an integer from 1 to 16777216");
    refuse("{\"model_type\":\"llama\"}", TP_ERR_FORMAT,
           "config.json:1: \"vocab_size\" is missing: expected an integer from 1 to 16777216");
    refuse("{\"model_type\":\"gpt2\",\"vocab_size\":8,\"n_embd\":262144,\"n_layer\":1,"
           "\"n_head\":64,\"n_positions\":1000000000}",
           TP_ERR_FORMAT,
           "config.json: 1 layers of width 262144 with a vocabulary of 8 make more than "
           "10000000000000 parameters; one of these sizes must be wrong");
}

static void heads_that_do_not_fit_are_refused(void **state)
{
    refuse(LLAMA("8", "8", "1", "3", ""), TP_ERR_FORMAT,
           "config.json:1: \"num_attention_heads\" is 3: expected a divisor of the width, 8");
    refuse(LLAMA("8", "8", "1", "4", ",\"num_key_value_heads\":3"), TP_ERR_FORMAT,
           "config.json:1: \"num_key_value_heads\" is 3: expected a divisor of "
           "num_attention_heads, 4");
    refuse(LLAMA("8", "8", "1", "2", ",\"head_dim\":5"), TP_ERR_FORMAT,
           "config.json:1: \"head_dim\" is 5: heads of 5 are odd; positions rotate pairs");
    refuse(LLAMA("8", "8", "1", "8", ""), TP_ERR_FORMAT,
           "config.json:1: \"num_attention_heads\" is 8: heads of 1 are odd; positions rotate "
           "pairs");
}

static void unsupported_models_are_refused_with_what_is_supported(void **state)
{
    refuse("{\"model_type\":\"mistral\"}", TP_ERR_UNSUPPORTED,
           "config.json:1: \"model_type\" is \"mistral\": supported are llama (Llama 2 and 3, "
           "SmolLM2), qwen2 (Qwen2, Qwen2.5), qwen3 (Qwen3 dense), gpt2 (GPT-2)");
    refuse("{}", TP_ERR_UNSUPPORTED,
           "config.json:1: \"model_type\" is missing: supported are llama (Llama 2 and 3, "
           "SmolLM2), qwen2 (Qwen2, Qwen2.5), qwen3 (Qwen3 dense), gpt2 (GPT-2)");
    refuse("{\"model_type\":\"llama\",\"architectures\":[\"LlamaForSequenceClassification\"]}",
           TP_ERR_UNSUPPORTED,
           "config.json:1: \"architectures\" is an array: holds "
           "\"LlamaForSequenceClassification\"; a llama model must be LlamaForCausalLM");
    refuse("{\"model_type\":\"llama\",\"quantization_config\":{}}", TP_ERR_UNSUPPORTED,
           "config.json:1: \"quantization_config\" is an object: quantised weights are not "
           "supported; take the model in bf16");
}

static void unsupported_details_are_refused(void **state)
{
    refuse(LLAMA("8", "8", "1", "2", ",\"hidden_act\":\"relu\""), TP_ERR_UNSUPPORTED,
           "config.json:1: \"hidden_act\" is \"relu\": supported are silu, swish, gelu, gelu_new "
           "and gelu_pytorch_tanh");
    refuse(LLAMA("8", "8", "1", "2", ",\"attention_dropout\":0.1"), TP_ERR_UNSUPPORTED,
           "config.json:1: \"attention_dropout\" is 0.1: dropout; only 0 is supported");
    refuse(LLAMA("8", "8", "1", "2", ",\"is_causal\":false"), TP_ERR_UNSUPPORTED,
           "config.json:1: \"is_causal\" is false: attention that sees what follows; only true is "
           "supported");
    refuse(LLAMA("8", "8", "1", "2", ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}"),
           TP_ERR_UNSUPPORTED,
           "config.json:1: \"rope_scaling.type\" is \"yarn\": supported kinds are default and "
           "llama3");
    refuse(LLAMA("8", "8", "1", "2", ",\"rope_scaling\":{\"rope_type\":\"llama3\"}"), TP_ERR_FORMAT,
           "config.json:1: \"rope_scaling.factor\" is missing: expected a number above 0 and up "
           "to 1e+06");
    refuse(LLAMA("8", "8", "1", "2",
                 ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
                 "\"high_freq_factor\":4,\"original_max_position_embeddings\":8}"),
           TP_ERR_FORMAT,
           "config.json:1: \"rope_scaling.high_freq_factor\" is 4: expected more than "
           "low_freq_factor, 4");
    refuse(LLAMA("8", "8", "1", "2", ",\"rope_theta\":0"), TP_ERR_FORMAT,
           "config.json:1: \"rope_theta\" is 0: expected a number above 0 and up to 1e+12");
    refuse(LLAMA("8", "8", "1", "2", ",\"rope_parameters\":{\"full_attention\":{}}"),
           TP_ERR_UNSUPPORTED,
           "config.json:1: \"rope_parameters.full_attention\" is an object: rotations that differ "
           "between layers are not supported");
    refuse(LLAMA("8", "8", "1", "2", ",\"eos_token_id\":-1"), TP_ERR_FORMAT,
           "config.json:1: \"eos_token_id\" is -1: expected a token id or a list of at most 8");
    refuse(LLAMA("8", "8", "1", "2", ",\"eos_token_id\":[2, 7.0]"), TP_ERR_FORMAT,
           "config.json:1: \"eos_token_id\" is an array: expected a token id or a list of at most "
           "8");
    refuse(LLAMA("8", "8", "1", "2", ",\"bos_token_id\":[3]"), TP_ERR_FORMAT,
           "config.json:1: \"bos_token_id\" is an array: expected an integer from 0 to 2147483647");
    refuse(LLAMA("8", "8", "1.0", "2", ""), TP_ERR_FORMAT,
           "config.json:1: \"num_hidden_layers\" is 1.0: expected an integer from 1 to 512");
    refuse(LLAMA("8", "8", "1", "2", ",\"layer_types\":[\"full_attention\",\"full_attention\"]"),
           TP_ERR_FORMAT,
           "config.json:1: \"layer_types\" is an array: expected a list of 1 kinds, one per layer");
    refuse(LLAMA("8", "8", "1", "2", ",\"layer_types\":[]"), TP_ERR_FORMAT,
           "config.json:1: \"layer_types\" is an array: expected a list of 1 kinds, one per layer");
    refuse(LLAMA("8", "8", "1", "2", ",\"layer_types\":\"full_attention\""), TP_ERR_FORMAT,
           "config.json:1: \"layer_types\" is \"full_attention\": expected a list of 1 kinds, one "
           "per layer");
}

#define HEADS ",\"num_key_value_heads\":2"

static void sliding_windows_count_only_when_in_use(void **state)
{
    tp_model *unused = parse("{\"model_type\":\"qwen2\",\"sliding_window\":4,"
                             "\"use_sliding_window\":false," SIZES HEADS "}");
    tp_model_free(unused);
    unused = parse("{\"model_type\":\"qwen2\",\"sliding_window\":4,\"max_window_layers\":1,"
                   "\"use_sliding_window\":true," SIZES HEADS "}");
    tp_model_free(unused);
    unused = parse("{\"model_type\":\"qwen2\",\"sliding_window\":4," /* 28 layers without */
                   "\"use_sliding_window\":true," SIZES HEADS "}");
    tp_model_free(unused);

    refuse(
        "{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"max_window_layers\":0," SIZES HEADS
        "}",
        TP_ERR_UNSUPPORTED,
        "config.json:1: \"use_sliding_window\" is true: sliding-window attention is not "
        "supported");
    refuse("{\"model_type\":\"qwen3\",\"layer_types\":[\"sliding_attention\"]," SIZES HEADS "}",
           TP_ERR_UNSUPPORTED,
           "config.json:1: \"layer_types\" is an array: holds \"sliding_attention\"; only "
           "full_attention is supported");
}

static void gpt2_variants_are_refused(void **state)
{
    refuse("{\"model_type\":\"gpt2\",\"vocab_size\":8,\"n_embd\":8,\"n_layer\":1,\"n_head\":2,"
           "\"n_positions\":8,\"add_cross_attention\":true}",
           TP_ERR_UNSUPPORTED,
           "config.json:1: \"add_cross_attention\" is true: cross attention; only false is "
           "supported");
    refuse("{\"model_type\":\"gpt2\",\"vocab_size\":8,\"n_embd\":8,\"n_layer\":1,\"n_head\":2,"
           "\"n_positions\":8,\"scale_attn_weights\":null}",
           TP_ERR_FORMAT, "config.json:1: \"scale_attn_weights\" is null: expected true or false");
}

static void missing_paths_are_named(void **state)
{
    tp_model *model = NULL;
    tp_error err;

    assert_int_equal(tp_model_open("Qwen/Qwen2.5-0.5B", &model, &err), TP_ERR_IO);
    assert_string_equal(err.message,
                        "there is no model at Qwen/Qwen2.5-0.5B: expected a folder with "
                        "config.json, a config.json or a GGUF file; models are not downloaded: "
                        "'hf download NAME --local-dir FOLDER' fetches one");
    assert_int_equal(tp_model_open("/", &model, &err), TP_ERR_IO);
    assert_string_equal(err.message,
                        "/ has no config.json and no adapter_config.json: expected the folder "
                        "of a Hugging Face model or of an adapter");
}

static void rewrite(const char *text, const char *want)
{
    tp_buf out = {0};
    assert_int_equal(
        tp_fields_rewrite("c", text, strlen(text), "bfloat16", "LlamaForCausalLM", &out, NULL),
        TP_OK);
    assert_string_equal(tp_buf_str(&out), want);
    tp_buf_release(&out);
}

static void rewriting_changes_dtype_and_nothing_else(void **state)
{
    rewrite("{ \"architectures\" : [\"X\"],\n\"torch_dtype\": \"float32\" , \"a\": 1e3 }\n",
            "{ \"architectures\" : [\"X\"],\n\"torch_dtype\": \"bfloat16\" , \"a\": 1e3 }\n");
    rewrite("{\"dtype\":null,\"architectures\":[\"X\"],\"q\":{\"dtype\":\"float32\"}}",
            "{\"dtype\":\"bfloat16\",\"architectures\":[\"X\"],\"q\":{\"dtype\":\"float32\"}}");
    rewrite("{\"architectures\":[\"X\"]}", "{\"architectures\":[\"X\"]}");
    rewrite("{\"architectures\": [ ],\"a\":1}",
            "{\"architectures\": [\"LlamaForCausalLM\"],\"a\":1}");
    rewrite("{\"architectures\":null}", "{\"architectures\":[\"LlamaForCausalLM\"]}");
    rewrite("{\"a\": 1}", "{\n  \"architectures\": [\"LlamaForCausalLM\"],\"a\": 1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameter_counts_are_those_of_the_published_models),
        cmocka_unit_test(facts_of_llama),
        cmocka_unit_test(facts_of_gpt2),
        cmocka_unit_test(head_dim_of_qwen3_is_independent_of_the_width),
        cmocka_unit_test(absent_fields_take_their_defaults),
        cmocka_unit_test(biases_are_optional_in_llama),
        cmocka_unit_test(rope_table_holds_cosines_then_sines),
        cmocka_unit_test(both_spellings_of_rope_agree),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(heads_that_do_not_fit_are_refused),
        cmocka_unit_test(unsupported_models_are_refused_with_what_is_supported),
        cmocka_unit_test(unsupported_details_are_refused),
        cmocka_unit_test(sliding_windows_count_only_when_in_use),
        cmocka_unit_test(gpt2_variants_are_refused),
        cmocka_unit_test(missing_paths_are_named),
        cmocka_unit_test(rewriting_changes_dtype_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
