/* Expected merges come from the `tokenizers` library's BpeTrainer with the alphabet of
 * all bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/files.h"
#include "base/platform.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer.h"

static char folder[64];
static tp_arena arena;
static tp_buf json;

static int set_up(void **state)
{
    strcpy(folder, "/tmp/temper-train-XXXXXX");
    return tp_arena_init(&arena, 64 << 20, NULL) != TP_OK || mkdtemp(folder) == NULL;
}

static int tear_down(void **state)
{
    tp_arena_release(&arena);
    tp_buf_release(&json);
    return tp_dir_remove(folder, NULL) != TP_OK;
}

static tp_status train(const char *style, int32_t vocab_size, const char *const *texts, size_t n,
                       tp_bpe_train_options options, tp_error *err)
{
    size_t lengths[16];
    for (size_t i = 0; i < n; i++)
        lengths[i] = strlen(texts[i]);
    options.pre_tokenizer = style;
    options.vocab_size = vocab_size;
    return tp_tokenizer_train(texts, lengths, n, &options, folder, err);
}

static const tp_json *read_back(const char *name)
{
    char path[128];
    const tp_json *root = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    tp_buf_clear(&json);
    assert_int_equal(tp_file_read(path, 0, &json, NULL), TP_OK);
    assert_int_equal(tp_json_parse(&arena, path, json.data, json.len, NULL, &root, NULL), TP_OK);
    return root;
}

/* `expected` is "left right|left right|...". */
static void check_merges(const char *expected)
{
    tp_buf got = {0};
    const tp_json *merges =
        tp_json_get(tp_json_get(read_back("tokenizer.json"), "model"), "merges");
    for (const tp_json *v = merges->child; v; v = v->next)
        tp_buf_addf(&got, "%s%s %s", got.len ? "|" : "", tp_json_str(tp_json_at(v, 0)),
                    tp_json_str(tp_json_at(v, 1)));
    assert_string_equal(tp_buf_str(&got), expected);
    tp_buf_release(&got);
}

#define TRAIN(style, size, ...)                                \
    train((style), (size), (const char *const[]){__VA_ARGS__}, \
          TP_COUNTOF(((const char *const[]){__VA_ARGS__})), (tp_bpe_train_options){0}, NULL)

static void the_most_frequent_pair_merges_first(void **state)
{
    assert_int_equal(TRAIN("gpt2", 264, "aaaa abab aaab", "ab ab abc"), TP_OK);
    check_merges("a b|a a|\xc4\xa0 ab|\xc4\xa0 aa|aa aa|\xc4\xa0"
                 "ab c|\xc4\xa0"
                 "ab ab|\xc4\xa0"
                 "aa ab");
}

static void equal_counts_go_to_the_smaller_pair(void **state)
{
    assert_int_equal(TRAIN("gpt2", 260, "ba ab ba ab"), TP_OK);
    check_merges("a b|b a|\xc4\xa0 ab|\xc4\xa0 ba");
}

static void words_are_cut_by_the_pre_tokenizer(void **state)
{
    assert_int_equal(TRAIN("gpt2", 262, "12 12 123", "x12"), TP_OK);
    check_merges("1 2|\xc4\xa0 12|\xc4\xa0"
                 "12 3");
    assert_int_equal(TRAIN("smollm2", 262, "12 12 123", "x12"), TP_OK);
    check_merges("");
    assert_int_equal(TRAIN("llama3", 262, "don't DON'T don't"), TP_OK);
    check_merges("' t|d o|do n|' T|D O|\xc4\xa0 don");
}

static void qwen2_normalises_first(void **state)
{
    assert_int_equal(TRAIN("qwen2", 262, "e\xcc\x81 \xc3\xa9 e\xcc\x81"), TP_OK);
    check_merges("\xc3\x83 \xc2\xa9|\xc4\xa0 \xc3\x83\xc2\xa9");
}

/* A text that has no more pairs gives a smaller vocabulary. */
static void training_stops_when_nothing_is_left(void **state)
{
    tp_tokenizer *tok = NULL;
    assert_int_equal(TRAIN("gpt2", 1000, "abc"), TP_OK);
    assert_int_equal(tp_tokenizer_load(folder, &tok, NULL), TP_OK);
    assert_int_equal(tp_tokenizer_vocab_size(tok), 258);
    tp_tokenizer_free(tok);
}

static void special_tokens_follow_and_teach_nothing(void **state)
{
    static const char *const special[] = {"<|end|>", "<|user|>"};
    tp_bpe_train_options options = {.special = special,
                                    .n_special = 2,
                                    .bos = "<|user|>",
                                    .eos = "<|end|>",
                                    .pad = "<|end|>",
                                    .chat_template = "{{ messages }}"};
    const char *const texts[] = {"<|user|>ab<|end|>", "<|user|>ab<|end|>"};
    tp_tokenizer *tok = NULL;

    assert_int_equal(train("gpt2", 300, texts, 2, options, NULL), TP_OK);

    check_merges("a b");
    assert_int_equal(tp_tokenizer_load(folder, &tok, NULL), TP_OK);
    assert_int_equal(tp_tokenizer_vocab_size(tok), 259);
    assert_int_equal(tp_tokenizer_id(tok, "<|end|>"), 257);
    assert_int_equal(tp_tokenizer_bos(tok), 258);
    assert_int_equal(tp_tokenizer_eos(tok), 257);
    assert_int_equal(tp_tokenizer_pad(tok), 257);
    assert_true(tp_tokenizer_is_special(tok, 258));
    assert_string_equal(tp_tokenizer_chat_template(tok), "{{ messages }}");
    tp_tokenizer_free(tok);
    const tp_json *config = read_back("tokenizer_config.json");
    assert_string_equal(tp_json_str(tp_json_get(config, "tokenizer_class")),
                        "PreTrainedTokenizerFast");
}

static void what_was_trained_encodes_and_comes_back(void **state)
{
    static const char *const styles[] = {"gpt2", "smollm2", "llama3", "qwen2"};
    static const char text[] = "Don't stop: 1234 caf\xc3\xa9s,\n\n\tand more caf\xc3\xa9s!";
    for (size_t i = 0; i < TP_COUNTOF(styles); i++) {
        tp_tokenizer *tok = NULL;
        tp_ids ids = {0};
        tp_buf out = {0};
        assert_int_equal(TRAIN(styles[i], 280, text), TP_OK);
        assert_int_equal(tp_tokenizer_load(folder, &tok, NULL), TP_OK);
        tp_tokenizer_scratch *scratch = tp_tokenizer_scratch_new(tok);

        tp_tokenizer_encode(tok, scratch, text, sizeof text - 1, (tp_encode_options){0}, &ids,
                            NULL);
        tp_tokenizer_decode(tok, ids.data, ids.len, false, &out);

        assert_string_equal(tp_buf_str(&out), text);
        assert_true(ids.len < sizeof text - 1 - 10);
        tp_buf_release(&out);
        tp_ids_release(&ids);
        tp_tokenizer_scratch_free(scratch);
        tp_tokenizer_free(tok);
    }
}

static void wrong_options_are_refused(void **state)
{
    static const char *const empty[] = {""}, *const twice[] = {"<a>", "<a>"},
                             *const letter[] = {"a"};
    static const struct {
        const char *style;
        int32_t size;
        tp_bpe_train_options options;
        const char *message;
    } cases[] = {
        {"gpt4", 300, {0}, "pre-tokenizer 'gpt4' is none of gpt2, smollm2, llama3, qwen2"},
        {NULL, 300, {0}, "pre-tokenizer '(none)' is none of gpt2, smollm2, llama3, qwen2"},
        {"gpt2",
         256,
         {.special = letter, .n_special = 1},
         "a vocabulary of 256 tokens is too small: 256 bytes and 1 special tokens need 257"},
        {"gpt2", 300, {.special = empty, .n_special = 1}, "special token 0 is empty or not UTF-8"},
        {"gpt2", 300, {.special = twice, .n_special = 2}, "special token '<a>' is given twice"},
        {"gpt2",
         300,
         {.special = twice, .n_special = 1, .eos = "<b>"},
         "'<b>' is not one of the special tokens"},
        {"gpt2",
         300,
         {.special = letter, .n_special = 1},
         "special token 'a' is an ordinary token of this text; choose another, as in '<|a|>'"},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        tp_error err = {0};
        const char *const texts[] = {"abc"};
        assert_int_equal(train(cases[i].style, cases[i].size, texts, 1, cases[i].options, &err),
                         TP_ERR_CONFIG);
        assert_string_equal(err.message, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_frequent_pair_merges_first),
        cmocka_unit_test(equal_counts_go_to_the_smaller_pair),
        cmocka_unit_test(words_are_cut_by_the_pre_tokenizer),
        cmocka_unit_test(qwen2_normalises_first),
        cmocka_unit_test(training_stops_when_nothing_is_left),
        cmocka_unit_test(special_tokens_follow_and_teach_nothing),
        cmocka_unit_test(what_was_trained_encodes_and_comes_back),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
