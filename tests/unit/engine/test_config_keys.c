/* test_config_keys.c - every row of config_keys.def does what it says.
 *
 * A small config.json of each family gets one key with the row's example: what is used changes
 * the model, what is harmless does not, the rest is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "engine/model/generation_config.h"
#include "engine/model/model.h"

static const struct {
    unsigned bit;
    const char *fields[24];
} families[] = {
#define DECODER(type, ...)                                                                     \
    {                                                                                          \
        "\"model_type\":\"" type "\"", "\"vocab_size\":16", "\"hidden_size\":8",               \
            "\"intermediate_size\":8", "\"num_hidden_layers\":1", "\"num_attention_heads\":2", \
            "\"num_key_value_heads\":2", "\"head_dim\":4", "\"hidden_act\":\"silu\"",          \
            "\"max_position_embeddings\":16", "\"rms_norm_eps\":1e-5", "\"rope_theta\":100",   \
            "\"tie_word_embeddings\":false", "\"bos_token_id\":1", "\"eos_token_id\":2",       \
            __VA_ARGS__                                                                        \
    }
    {TP_KEYS_LLAMA, DECODER("llama", "\"sliding_window\":null")},
    {TP_KEYS_QWEN2, DECODER("qwen2", "\"max_window_layers\":0")},
    {TP_KEYS_QWEN3, DECODER("qwen3", "\"max_window_layers\":0")},
    {TP_KEYS_GPT2,
     {"\"model_type\":\"gpt2\"", "\"vocab_size\":16", "\"n_embd\":8", "\"n_layer\":1",
      "\"n_head\":2", "\"n_positions\":16", "\"tie_word_embeddings\":false"}},
};

static bool is_field(const char *field, const char *key)
{
    size_t n = strlen(key);
    return strncmp(field + 1, key, n) == 0 && field[n + 1] == '"';
}

/* The family's config.json with `key` set to `value`; the first field is on line 1. */
static void write_config(size_t family, const char *key, const char *value, tp_buf *out)
{
    tp_buf_clear(out);
    tp_buf_addf(out, "{\"%s\":%s", key, value);
    for (const char *const *f = families[family].fields; *f; f++)
        if (!is_field(*f, key))
            tp_buf_addf(out, ",%s", *f);
    tp_buf_adds(out, "}");
}

static tp_status describe(const tp_buf *config, tp_buf *out, tp_error *err)
{
    tp_model *model;
    tp_buf_clear(out);
    TP_TRY(tp_model_parse("config.json", config->data, config->len, &model, err));
    tp_model_describe(model, out);
    tp_model_free(model);
    return TP_OK;
}

static void check_row(const tp_config_key *row, size_t family)
{
    tp_buf config = {0}, plain = {0}, changed = {0};
    char refusal[128];
    tp_error err = {0};
    write_config(family, "unused", "null", &config);
    if (describe(&config, &plain, &err) != TP_OK)
        fail_msg("%s", err.message);
    write_config(family, row->key, row->example, &config);
    tp_status status = describe(&config, &changed, &err);
    snprintf(refusal, sizeof refusal, "config.json:1: \"%s\" is ", row->key);
    bool is_refused = status != TP_OK && strncmp(err.message, refusal, strlen(refusal)) == 0;
    bool is_same = status == TP_OK && strcmp(plain.data, changed.data) == 0;
    bool ok = row->verdict == TP_KEY_USED       ? !is_same && (status == TP_OK || is_refused)
              : row->verdict == TP_KEY_HARMLESS ? is_same
                                                : is_refused;
    if (!ok)
        fail_msg("%s of %s = %s: %s", row->key, families[family].fields[0], row->example,
                 status == TP_OK ? (is_same ? "changes nothing" : "changes the model")
                                 : err.message);
    tp_buf_release(&config);
    tp_buf_release(&plain);
    tp_buf_release(&changed);
}

static void every_key_is_used_refused_or_harmless_as_the_table_says(void **state)
{
    for (size_t i = 0; i < tp_config_key_count; i++)
        for (size_t f = 0; f < TP_COUNTOF(families); f++)
            if (tp_config_keys[i].families & families[f].bit)
                check_row(&tp_config_keys[i], f);
}

static void a_default_is_accepted(void **state)
{
    tp_buf config = {0}, text = {0};
    tp_error err = {0};
    for (size_t i = 0; i < tp_config_key_count; i++) {
        const tp_config_key *row = &tp_config_keys[i];
        for (size_t f = 0; f < TP_COUNTOF(families) && row->verdict == TP_KEY_FIXED; f++) {
            if (!(row->families & families[f].bit))
                continue;
            write_config(f, row->key, row->fallback, &config);
            if (describe(&config, &text, &err) != TP_OK)
                fail_msg("%s", err.message);
        }
    }
    tp_buf_release(&config);
    tp_buf_release(&text);
}

static void no_key_stands_twice_for_a_family(void **state)
{
    for (size_t i = 0; i < tp_config_key_count; i++)
        for (size_t k = i + 1; k < tp_config_key_count; k++)
            if (tp_config_keys[i].families & tp_config_keys[k].families &&
                strcmp(tp_config_keys[i].key, tp_config_keys[k].key) == 0)
                fail_msg("%s stands twice", tp_config_keys[i].key);
}

static void keep(void *user, const char *text) { tp_buf_addf(user, "%s\n", text); }

static void an_unknown_key_is_named(void **state)
{
    tp_model *model;
    tp_error err = {0};
    tp_buf config = {0}, said = {0};
    write_config(0, "residual_multiplier", "0.5", &config);
    config.len--;                                   /* the bracket */
    tp_buf_adds(&config, ",\"min_new_tokens\":3}"); /* of generation: read there */
    assert_int_equal(tp_model_parse("config.json", config.data, config.len, &model, &err), TP_OK);
    tp_model_say(model, NULL, keep, &said);
    assert_string_equal(said.data, "config.json: not used: residual_multiplier; transformers' "
                                   "llama does not read it either\n");
    tp_model_free(model);
    tp_buf_release(&config);
    tp_buf_release(&said);
}

/* LlamaConfig, Qwen2Config, Qwen3Config and GPT2Config of transformers 5.24. */
static void positions_that_are_missing_are_the_family_s(void **state)
{
    static const char *const wanted[] = {" positions 2048 ", " positions 32768 ",
                                         " positions 32768 ", " positions 1024 "};
    tp_error err = {0};
    for (size_t f = 0; f < TP_COUNTOF(families); f++) {
        const char *key =
            families[f].bit == TP_KEYS_GPT2 ? "n_positions" : "max_position_embeddings";
        tp_buf config = {0}, text = {0};
        write_config(f, key, "null", &config);
        assert_int_equal(describe(&config, &text, &err), TP_ERR_FORMAT);
        assert_non_null(strstr(err.message, key));
        memcpy(strstr(config.data, key), "X", 1);
        if (describe(&config, &text, &err) != TP_OK)
            fail_msg("%s", err.message);
        if (!strstr(text.data, wanted[f]))
            fail_msg("%s", text.data);
        tp_buf_release(&config);
        tp_buf_release(&text);
    }
}

/* What transformers 5.23 makes of rotations that are written in several places. */
static void the_older_section_of_the_rotation_goes_first(void **state)
{
    static const char *const cases[][2] = {
        {"\"rope_scaling\":{\"rope_theta\":3},\"rope_parameters\":{\"rope_theta\":5}", " rope 3 0"},
        {"\"rope_scaling\":{},\"rope_parameters\":{\"rope_theta\":5}", " rope 5 0"},
        {"\"rope_scaling\":{\"type\":\"default\"},\"rope_parameters\":{\"rope_theta\":5}",
         " rope 100 0"},
        {"\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
         "\"high_freq_factor\":4,\"original_max_position_embeddings\":8},"
         "\"original_max_position_embeddings\":4",
         " rope 100 1 8 1 4 4 "},
        {"\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
         "\"high_freq_factor\":4}",
         " rope 100 1 8 1 4 16 "},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        tp_buf config = {0}, text = {0};
        tp_error err = {0};
        write_config(0, "unused", "null", &config);
        config.len--; /* the bracket */
        tp_buf_addf(&config, ",%s}", cases[i][0]);
        if (describe(&config, &text, &err) != TP_OK)
            fail_msg("%s", err.message);
        if (!strstr(text.data, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], text.data);
        tp_buf_release(&config);
        tp_buf_release(&text);
    }
}

/* ---- generation_config.json ---- */

/* own, config: what generation_config.json and config.json hold, NULL: absent. */
static tp_status read_both(const char *own, const char *config, tp_generation_config *ret,
                           tp_error *err)
{
    char folder[] = "/tmp/temper-generation-XXXXXX";
    const char *const texts[] = {own, config};
    static const char *const names[] = {"generation_config.json", "config.json"};
    const int64_t eos[] = {2};
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++)
        if (texts[i])
            assert_int_equal(tp_file_write_atomic(tp_path_of("%s/%s", folder, names[i]).text,
                                                  texts[i], strlen(texts[i]), err),
                             TP_OK);
    tp_status status = tp_generation_config_read(folder, eos, 1, ret, err);
    assert_int_equal(tp_dir_remove(folder, NULL), TP_OK);
    return status;
}

static tp_status read_generation(const char *text, tp_generation_config *ret, tp_error *err)
{
    return read_both(text, NULL, ret, err);
}

/* As GenerationConfig.from_model_config. */
static void without_a_file_config_json_says_how_to_generate(void **state)
{
    static const char config[] =
        "{\"model_type\":\"llama\",\"vocab_size\":16,\"min_new_tokens\":3,\"top_k\":null,"
        "\"repetition_penalty\":1.5}";
    tp_generation_config g;
    tp_error err = {0};
    assert_int_equal(read_both(NULL, config, &g, &err), TP_OK);
    assert_int_equal(g.min_new_tokens, 3);
    assert_int_equal(g.top_k, -1);
    assert_true(g.repetition_penalty == 1.5);
    assert_string_equal(g.unknown, "");
    assert_int_equal(read_both(NULL, "{\"num_beams\":4}", &g, &err), TP_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "/config.json:1: \"num_beams\" is 4"));
    assert_int_equal(read_both("{\"top_p\":0.5}", config, &g, &err), TP_OK);
    assert_int_equal(g.min_new_tokens, -1);
    assert_true(g.top_p == 0.5);
}

static void every_key_of_generation_is_used_refused_or_harmless(void **state)
{
    tp_generation_config plain, changed;
    tp_error err = {0};
    assert_int_equal(read_generation("{}", &plain, &err), TP_OK);
    for (size_t i = 0; i < tp_generation_key_count; i++) {
        const tp_config_key *row = &tp_generation_keys[i];
        char text[256], refusal[128];
        snprintf(text, sizeof text, "{\"%s\": %s}", row->key, row->example);
        snprintf(refusal, sizeof refusal, "generation_config.json:1: \"%s\" is ", row->key);
        tp_status status = read_generation(text, &changed, &err);
        bool is_refused = status == TP_ERR_UNSUPPORTED && strstr(err.message, refusal);
        bool is_same = status == TP_OK && memcmp(&plain, &changed, sizeof plain) == 0;
        bool ok = row->verdict == TP_KEY_FIXED  ? is_refused
                  : row->verdict == TP_KEY_USED ? status == TP_OK && !is_same
                                                : is_same;
        if (!ok)
            fail_msg("%s: %s", text, status == TP_OK ? (is_same ? "same" : "other") : err.message);
    }
}

static void bad_words_of_several_ids_are_refused(void **state)
{
    tp_generation_config g;
    tp_error err = {0};
    assert_int_equal(read_generation("{\"bad_words_ids\": [[3], [2], [5]]}", &g, &err), TP_OK);
    assert_int_equal(g.n_suppressed, 2); /* an end of the text is no bad word */
    assert_int_equal(g.suppressed[1], 5);
    assert_int_equal(read_generation("{\"bad_words_ids\": [[3, 4]]}", &g, &err),
                     TP_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "only words of one id are supported"));
    assert_int_equal(read_generation("{\"bad_words_ids\": 5}", &g, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "\"bad_words_ids\" is 5: expected a list of lists of ids"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_used_refused_or_harmless_as_the_table_says),
        cmocka_unit_test(a_default_is_accepted),
        cmocka_unit_test(no_key_stands_twice_for_a_family),
        cmocka_unit_test(an_unknown_key_is_named),
        cmocka_unit_test(positions_that_are_missing_are_the_family_s),
        cmocka_unit_test(every_key_of_generation_is_used_refused_or_harmless),
        cmocka_unit_test(without_a_file_config_json_says_how_to_generate),
        cmocka_unit_test(bad_words_of_several_ids_are_refused),
        cmocka_unit_test(the_older_section_of_the_rotation_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
