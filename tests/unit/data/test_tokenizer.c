/* Expected ids come from the `tokenizers` library (tools/reference/make_tokenizers.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "support/sha256.h"
#include "text/json/json.h"
#include "text/template/chat_context.h"
#include "text/tokenizer/tokenizer.h"

#define DATA TP_SOURCE_DIR "/tests/data/tokenizers/"

static const char *const names[] = {"gpt2", "smollm2", "llama3", "qwen2", "odd", "sequence"};

/* A reference tokenizer and what it must produce; NULL members when absent. */
typedef struct {
    tp_arena arena;
    tp_buf text;
    const tp_json *expected;
    tp_tokenizer *tok;
    tp_tokenizer_scratch *scratch;
    tp_ids ids, offsets;
    tp_buf out;
} fixture;

static tp_tokenizer *parse(const char *json)
{
    tp_tokenizer *tok = NULL;
    tp_error err = {0};
    if (tp_tokenizer_parse("t.json", json, strlen(json), &tok, &err) != TP_OK)
        fail_msg("%s", err.message);
    return tok;
}

/* False when the files are not there. */
static bool open_fixture(fixture *f, const char *name)
{
    char path[4096];
    tp_buf json = {0};
    tp_error err = {0};
    *f = (fixture){0};
    snprintf(path, sizeof path, DATA "%s.json", name);
    if (!tp_file_exists(path))
        return false;
    if (tp_file_read(path, 0, &json, &err) != TP_OK ||
        tp_tokenizer_parse(path, json.data, json.len, &f->tok, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&json);
    snprintf(path, sizeof path, DATA "%s.expected.json", name);
    if (tp_file_read(path, 0, &f->text, &err) != TP_OK ||
        tp_arena_init(&f->arena, 64 * f->text.len + 4096, &err) != TP_OK ||
        tp_json_parse(&f->arena, path, f->text.data, f->text.len, NULL, &f->expected, &err) !=
            TP_OK)
        fail_msg("%s", err.message);
    f->scratch = tp_tokenizer_scratch_new(f->tok);
    return true;
}

static void close_fixture(fixture *f)
{
    tp_tokenizer_scratch_free(f->scratch);
    tp_tokenizer_free(f->tok);
    tp_ids_release(&f->ids);
    tp_ids_release(&f->offsets);
    tp_buf_release(&f->out);
    tp_buf_release(&f->text);
    tp_arena_release(&f->arena);
}

static void encode(fixture *f, const char *text, size_t n, tp_encode_options options)
{
    f->ids.len = 0;
    tp_tokenizer_encode(f->tok, f->scratch, text, n, options, &f->ids, NULL);
}

static void check_ids(const fixture *f, const tp_json *ids, const char *text)
{
    size_t i = 0;
    if (f->ids.len != ids->n)
        fail_msg("'%s': %zu ids instead of %zu", text, f->ids.len, ids->n);
    for (const tp_json *v = ids->child; v; v = v->next, i++) {
        int64_t id = -1;
        assert_true(tp_json_i64(v, &id));
        if (f->ids.data[i] != id)
            fail_msg("'%s': id %zu is %d instead of %d", text, i, f->ids.data[i], (int)id);
    }
}

/* Longest beginning of a valid sequence at s: how much one U+FFFD replaces. */
static size_t broken_length(const char *s, size_t n)
{
    uint8_t lead = (uint8_t)s[0], second = n > 1 ? (uint8_t)s[1] : 0;
    size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || (lead == 0xe0 && second < 0xa0) ||
        (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f))
        return 1;
    size_t len = 1;
    while (len < need && len < n && ((uint8_t)s[len] & 0xc0) == 0x80)
        len++;
    return len;
}

/* What is not UTF-8 becomes U+FFFD, as the reference decodes. */
static void replace_invalid(const tp_buf *bytes, tp_buf *out)
{
    tp_buf_clear(out);
    for (size_t i = 0, len; i < bytes->len; i += len) {
        uint32_t cp;
        len = tp_utf8_decode(bytes->data + i, bytes->len - i, &cp);
        if (len)
            tp_buf_add(out, bytes->data + i, len);
        else
            tp_buf_adds(out, "\xef\xbf\xbd");
        len = len ? len : broken_length(bytes->data + i, bytes->len - i);
    }
}

static void check_decoded(fixture *f, const tp_json *expected, const tp_json *fallback)
{
    tp_buf readable = {0};
    const tp_json *want = expected ? expected : fallback;
    if (want->type == TP_JSON_NULL)
        return; /* the reference gives no example here */
    tp_buf_clear(&f->out);
    tp_tokenizer_decode(f->tok, f->ids.data, f->ids.len, false, &f->out);
    replace_invalid(&f->out, &readable);
    if (readable.len != want->text.len ||
        (readable.len && memcmp(readable.data, want->text.data, readable.len) != 0))
        fail_msg("'%s' decodes to '%s'", want->text.data, tp_buf_str(&readable));
    tp_buf_release(&readable);
}

static void run_cases(const char *name)
{
    fixture f;
    if (!open_fixture(&f, name)) {
        print_message("%s%s.json is not there\n", DATA, name);
        skip();
    }
    const tp_json *cases = tp_json_get(f.expected, "cases");
    assert_true(cases && cases->n > 200);
    for (const tp_json *v = cases->child; v; v = v->next) {
        bool special = false, plain = false;
        const tp_json *text = tp_json_get(v, "text");
        tp_json_bool(tp_json_get(v, "add_special_tokens"), &special);
        tp_json_bool(tp_json_get(v, "encode_special_tokens"), &plain);
        encode(&f, text->text.data, text->text.len,
               (tp_encode_options){.add_special = special, .parse_special = !plain});
        check_ids(&f, tp_json_get(v, "ids"), text->text.data);
        check_decoded(&f, tp_json_get(v, "decoded"), text);
    }
    for (const tp_json *v = tp_json_get(f.expected, "decode")->child; v; v = v->next) {
        f.ids.len = 0;
        for (const tp_json *id = tp_json_get(v, "ids")->child; id; id = id->next) {
            int64_t number = -1;
            assert_true(tp_json_i64(id, &number));
            tp_ids_add(&f.ids, (int32_t)number);
        }
        check_decoded(&f, tp_json_get(v, "text"), NULL);
    }
    int64_t size = 0;
    assert_true(tp_json_i64(tp_json_get(f.expected, "vocab_size"), &size));
    assert_int_equal(tp_tokenizer_vocab_size(f.tok), size);
    close_fixture(&f);
}

static void gpt2_gives_the_reference_ids(void **state) { run_cases("gpt2"); }
static void smollm2_gives_the_reference_ids(void **state) { run_cases("smollm2"); }
static void llama3_gives_the_reference_ids(void **state) { run_cases("llama3"); }
static void qwen2_gives_the_reference_ids(void **state) { run_cases("qwen2"); }
static void any_regex_gives_the_reference_ids(void **state) { run_cases("odd"); }
static void several_splits_give_the_reference_ids(void **state) { run_cases("sequence"); }

/* Ten million times the same letter, a million spaces. */
static void long_runs_give_the_reference_ids(void **state)
{
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        fixture f;
        if (!open_fixture(&f, names[i]))
            skip();
        for (const tp_json *v = tp_json_get(f.expected, "runs")->child; v; v = v->next) {
            int64_t count = 0, n_ids = 0;
            tp_slice unit = tp_json_get(v, "unit")->text;
            tp_buf text = {0};
            sha256 hash;
            char hex[65];
            assert_true(tp_json_i64(tp_json_get(v, "count"), &count));
            assert_true(tp_json_i64(tp_json_get(v, "n_ids"), &n_ids));
            for (int64_t k = 0; k < count; k++)
                tp_buf_add(&text, unit.data, unit.len);
            encode(&f, text.data, text.len, (tp_encode_options){.parse_special = true});
            assert_int_equal(f.ids.len, n_ids);
            sha256_init(&hash);
            sha256_add(&hash, f.ids.data, f.ids.len * sizeof *f.ids.data);
            sha256_hex(&hash, hex);
            assert_string_equal(hex, tp_json_str(tp_json_get(v, "sha256")));
            tp_buf_release(&text);
        }
        close_fixture(&f);
    }
}

static void hash_gsm8k(fixture *f, const tp_map_file *file, sha256 *hash, size_t *ret_n)
{
    static const char *const keys[] = {"question", "answer"};
    tp_arena arena;
    assert_int_equal(tp_arena_init(&arena, 1 << 20, NULL), TP_OK);
    for (const char *line = file->data, *end; line < file->data + file->len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(file->data + file->len - line));
        end = end ? end : file->data + file->len;
        const tp_json *row = NULL;
        assert_int_equal(
            tp_json_parse(&arena, "gsm8k", line, (size_t)(end - line), NULL, &row, NULL), TP_OK);
        for (size_t k = 0; k < TP_COUNTOF(keys); k++) {
            tp_slice text = tp_json_get(row, keys[k])->text;
            encode(f, text.data, text.len, (tp_encode_options){.parse_special = true});
            sha256_add(hash, f->ids.data, f->ids.len * sizeof *f->ids.data);
            *ret_n += f->ids.len;
        }
        tp_arena_rewind(&arena, 0);
    }
    tp_arena_release(&arena);
}

static void gsm8k_gives_the_reference_ids(void **state)
{
    const char *path = TP_SOURCE_DIR "/../shared/data/gsm8k_train.jsonl";
    tp_map_file file;
    if (!tp_file_exists(path)) {
        print_message("%s is not there\n", path);
        skip();
    }
    assert_int_equal(tp_map_open(&file, path, NULL), TP_OK);
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        fixture f;
        sha256 hash;
        char hex[65];
        size_t n = 0;
        int64_t expected = 0;
        if (!open_fixture(&f, names[i]))
            skip();
        const tp_json *want = tp_json_get(f.expected, "gsm8k");
        sha256_init(&hash);
        hash_gsm8k(&f, &file, &hash, &n);
        sha256_hex(&hash, hex);
        assert_true(tp_json_i64(tp_json_get(want, "n_ids"), &expected));
        assert_int_equal(n, expected);
        assert_string_equal(hex, tp_json_str(tp_json_get(want, "sha256")));
        close_fixture(&f);
    }
    tp_map_close(&file);
}

/* --- small tokenizers written here --- */

#define BYTES_A_TO_D "\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"\xc4\xa0\":4,\"1\":5,\"\xc3\xa9\":6"
#define TAIL(pre) ",\"pre_tokenizer\":" pre ",\"decoder\":{\"type\":\"ByteLevel\"}}"
#define GPT2 "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define SMALL(vocab, merges, added, pre)                                                  \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{" BYTES_A_TO_D vocab "},\"merges\":[" merges \
    "]},\"added_tokens\":[" added "]" TAIL(pre)

static void check_text(tp_tokenizer *tok, const char *text, size_t n_ids, const int32_t *ids,
                       const int32_t *offsets)
{
    tp_ids got = {0}, at = {0};
    tp_tokenizer_scratch *scratch = tp_tokenizer_scratch_new(tok);
    tp_tokenizer_encode(tok, scratch, text, strlen(text),
                        (tp_encode_options){.parse_special = true}, &got, &at);
    assert_int_equal(got.len, n_ids);
    assert_int_equal(at.len, n_ids);
    assert_memory_equal(got.data, ids, n_ids * sizeof *ids);
    if (offsets)
        assert_memory_equal(at.data, offsets, n_ids * sizeof *offsets);
    tp_tokenizer_scratch_free(scratch);
    tp_ids_release(&got);
    tp_ids_release(&at);
}

#define CHECK_TEXT(tok, text, n, ...) \
    check_text((tok), (text), (n), (const int32_t[]){__VA_ARGS__}, NULL)

static void the_lowest_rank_merges_first(void **state)
{
    tp_tokenizer *tok =
        parse(SMALL(",\"bc\":7,\"ab\":8,\"abc\":9", "\"b c\",\"a b\",\"ab c\"", "", GPT2));

    CHECK_TEXT(tok, "abc", 2, 0, 7);
    CHECK_TEXT(tok, "abab", 2, 8, 8);
    tp_tokenizer_free(tok);
}

static void pairs_and_strings_are_the_same_merges(void **state)
{
    tp_tokenizer *strings = parse(SMALL(",\"ab\":7,\"abc\":8", "\"a b\",\"ab c\"", "", GPT2));
    tp_tokenizer *pairs =
        parse(SMALL(",\"ab\":7,\"abc\":8", "[\"a\",\"b\"],[\"ab\",\"c\"]", "", GPT2));
    tp_tokenizer *other = parse(SMALL(",\"ab\":7,\"abc\":8", "[\"a\",\"b\"]", "", GPT2));

    CHECK_TEXT(pairs, "abcab", 2, 8, 7);
    assert_string_equal(tp_tokenizer_fingerprint(strings), tp_tokenizer_fingerprint(pairs));
    assert_string_not_equal(tp_tokenizer_fingerprint(strings), tp_tokenizer_fingerprint(other));
    tp_tokenizer_free(strings);
    tp_tokenizer_free(pairs);
    tp_tokenizer_free(other);
}

static void bytes_without_a_token_are_dropped(void **state)
{
    tp_tokenizer *tok = parse(SMALL("", "", "", GPT2));

    check_text(tok, "axb", 2, (const int32_t[]){0, 1}, (const int32_t[]){0, 2});
    tp_tokenizer_free(tok);
}

static void offsets_are_where_tokens_start(void **state)
{
    tp_tokenizer *tok = parse(SMALL(",\"ab\":7", "\"a b\"",
                                    "{\"id\":8,\"content\":\"<x>\",\"special\":true,"
                                    "\"normalized\":false,\"lstrip\":true}",
                                    GPT2));

    check_text(tok, "ab cd <x>ab", 6, (const int32_t[]){7, 4, 2, 3, 8, 7},
               (const int32_t[]){0, 2, 3, 4, 5, 9});
    tp_tokenizer_free(tok);
}

/* "e" and an accent become one character, which is then one token. */
static void offsets_survive_normalisation(void **state)
{
    tp_tokenizer *tok =
        parse("{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"type\":\"BPE\","
              "\"vocab\":{\"a\":0,\"\xc3\x83\":1,\"\xc2\xa9\":2,"
              "\"\xc3\x83\xc2\xa9\":3},\"merges\":[\"\xc3\x83 \xc2\xa9\"]}" TAIL(GPT2));

    check_text(tok,
               "ae\xcc\x81"
               "a",
               3, (const int32_t[]){0, 3, 0}, (const int32_t[]){0, 1, 4});
    check_text(tok, "\xc3\xa9\xc3\xa9", 2, (const int32_t[]){3, 3}, (const int32_t[]){0, 2});
    tp_tokenizer_free(tok);
}

/* The letters a, b, c and the underline under a normalizer of one's own. */
#define NORMALIZED(normalizer)                                               \
    "{\"normalizer\":" normalizer ",\"model\":{\"type\":\"BPE\",\"vocab\":{" \
    "\"a\":0,\"b\":1,\"c\":2,\"_\":3,\"\xc3\x83\":4,\"\xc2\xa9\":5},\"merges\":[]}" TAIL(GPT2)
#define REPLACE(from, to) \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" from "\"},\"content\":\"" to "\"}"

/* Whatever a normalizer did before and behind it, a token knows where it came from. */
static void offsets_survive_every_normalizer(void **state)
{
    tp_tokenizer *tok = parse(NORMALIZED(REPLACE("xx", "_")));
    check_text(tok, "axxbxxxxc", 6, (const int32_t[]){0, 3, 1, 3, 3, 2},
               (const int32_t[]){0, 1, 3, 4, 6, 8});
    tp_tokenizer_free(tok);

    tok = parse(NORMALIZED("{\"type\":\"Prepend\",\"prepend\":\"__\"}"));
    check_text(tok, "ab", 4, (const int32_t[]){3, 3, 0, 1}, (const int32_t[]){0, 0, 0, 1});
    tp_tokenizer_free(tok);

    tok = parse(NORMALIZED("{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}"));
    check_text(tok, "  abc ", 3, (const int32_t[]){0, 1, 2}, (const int32_t[]){2, 3, 4});
    tp_tokenizer_free(tok);

    tok = parse(NORMALIZED("{\"type\":\"Lowercase\"}")); /* the Kelvin sign becomes shorter */
    check_text(tok,
               "A\xe2\x84\xaa"
               "BC",
               3, (const int32_t[]){0, 1, 2}, (const int32_t[]){0, 4, 5});
    tp_tokenizer_free(tok);

    tok = parse(NORMALIZED("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}," REPLACE(
        "x", "__") "," REPLACE("_b", "c") ",{\"type\":\"Strip\",\"strip_left\":true}]}"));
    check_text(tok, " ae\xcc\x81xbxa", 8, (const int32_t[]){0, 4, 5, 3, 2, 3, 3, 0},
               (const int32_t[]){1, 2, 2, 5, 5, 7, 7, 8});
    tp_tokenizer_free(tok);
}

/* U+11A7 stands before the finals of Hangul and is none. */
static void what_no_final_is_composes_with_nothing(void **state)
{
    tp_tokenizer *tok =
        parse("{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"type\":\"BPE\",\"vocab\":{"
              "\"\xc3\xaa\":0,\"\xc2\xb0\":1,\"\xc4\xa2\":2,\"\xc3\xa1\":3,\"\xc4\xa8\":4,"
              "\"\xc2\xa7\":5,\"\xc2\xa8\":6,\"\xc4\x85\":7},\"merges\":[]}" TAIL(GPT2));

    check_text(tok, "\xea\xb0\x80\xe1\x86\xa7", 6, (const int32_t[]){0, 1, 2, 3, 4, 5},
               (const int32_t[]){0, 1, 2, 3, 4, 5});
    tp_tokenizer_free(tok);
}

/* The tokenizers library (0.23.3) has the forms of Unicode 9: the era sign of Reiwa has no
 * compatible form, and U+1DF6 is no mark that goes behind one below. */
static void what_unicode_9_does_not_know_stays(void **state)
{
    tp_tokenizer *tok =
        parse("{\"normalizer\":{\"type\":\"NFKC\"},\"model\":{\"type\":\"BPE\",\"vocab\":{"
              "\"\xc3\xa3\":0,\"\xc4\xad\":1,\"\xc2\xbf\":2,\"\xc3\xa1\":3,\"\xc2\xb7\":4,"
              "\"\xc2\xb6\":5,\"\xc3\x8c\":6,\"\xc4\xb8\":7},\"merges\":[]}" TAIL(GPT2));

    check_text(tok, "\xe3\x8b\xbf\xe1\xb7\xb6\xcc\x96", 8,
               (const int32_t[]){0, 1, 2, 3, 4, 5, 6, 7},
               (const int32_t[]){0, 1, 2, 3, 4, 5, 6, 7});
    tp_tokenizer_free(tok);
}

static void a_prefixed_space_has_no_place(void **state)
{
    tp_tokenizer *tok =
        parse(SMALL("", "", "", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}"));

    check_text(tok, "ab", 3, (const int32_t[]){4, 0, 1}, (const int32_t[]){0, 0, 1});
    CHECK_TEXT(tok, " a", 2, 4, 0);
    tp_tokenizer_free(tok);
}

static void special_tokens_can_be_left_as_text(void **state)
{
    fixture f;
    if (!open_fixture(&f, "smollm2"))
        skip();
    int32_t end = tp_tokenizer_id(f.tok, "<|im_end|>");
    assert_int_equal(end, 702);
    assert_true(tp_tokenizer_is_special(f.tok, end));

    encode(&f, "<|im_end|>", 10, (tp_encode_options){.parse_special = true});
    assert_int_equal(f.ids.len, 1);
    assert_int_equal(f.ids.data[0], end);

    encode(&f, "<|im_end|>", 10, (tp_encode_options){.parse_special = false});
    assert_true(f.ids.len > 3);
    for (size_t i = 0; i < f.ids.len; i++)
        assert_false(tp_tokenizer_is_special(f.tok, f.ids.data[i]));
    tp_tokenizer_decode(f.tok, f.ids.data, f.ids.len, true, &f.out);
    assert_string_equal(tp_buf_str(&f.out), "<|im_end|>");
    close_fixture(&f);
}

static void every_byte_comes_back(void **state)
{
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        fixture f;
        char text[3 * 256];
        if (!open_fixture(&f, names[i]))
            skip();
        for (int k = 0; k < 256; k++) { /* each byte among letters, and all in a row */
            text[k] = (char)k;
            text[256 + 2 * k] = 'a';
            text[256 + 2 * k + 1] = (char)k;
        }
        encode(&f, text, sizeof text, (tp_encode_options){.parse_special = true});
        tp_tokenizer_decode(f.tok, f.ids.data, f.ids.len, false, &f.out);
        assert_int_equal(f.out.len, sizeof text);
        assert_memory_equal(f.out.data, text, sizeof text);
        close_fixture(&f);
    }
}

/* A byte that is not UTF-8 is a character of its own, outside of words. */
static void broken_bytes_do_not_join_words(void **state)
{
    fixture f;
    if (!open_fixture(&f, "gpt2"))
        skip();
    tp_ids apart = {0};
    encode(&f,
           "a\xff"
           "b",
           3, (tp_encode_options){0});
    tp_ids whole = f.ids;
    f.ids = (tp_ids){0};
    tp_tokenizer_encode(f.tok, f.scratch, "a", 1, (tp_encode_options){0}, &apart, NULL);
    tp_tokenizer_encode(f.tok, f.scratch, "\xff", 1, (tp_encode_options){0}, &apart, NULL);
    tp_tokenizer_encode(f.tok, f.scratch, "b", 1, (tp_encode_options){0}, &apart, NULL);

    assert_int_equal(whole.len, apart.len);
    assert_memory_equal(whole.data, apart.data, apart.len * sizeof *apart.data);
    tp_ids_release(&whole);
    tp_ids_release(&apart);
    close_fixture(&f);
}

static void streaming_gives_whole_characters(void **state)
{
    fixture f;
    static const char text[] = "caf\xc3\xa9 \xf0\x9f\x98\x80 \xff\xe4\xb8 x\xf0\x9f";
    if (!open_fixture(&f, "gpt2"))
        skip();
    tp_decode_stream stream = {0};
    encode(&f, text, sizeof text - 1, (tp_encode_options){0});
    for (size_t i = 0; i < f.ids.len; i++) {
        size_t before = f.out.len;
        uint32_t cp;
        tp_tokenizer_decode_next(f.tok, &stream, f.ids.data[i], false, &f.out);
        /* Nothing that comes out ends within a character that could go on. */
        if (f.out.len > before && (uint8_t)f.out.data[f.out.len - 1] == 0xa9)
            assert_int_equal(tp_utf8_decode(f.out.data + f.out.len - 2, 2, &cp), 2);
    }
    assert_int_equal(f.out.len, sizeof text - 1 - 2);
    tp_tokenizer_decode_next(f.tok, &stream, -1, false, &f.out);
    assert_string_equal(f.out.data, text);
    close_fixture(&f);
}

static void ids_without_a_token_add_nothing(void **state)
{
    tp_tokenizer *tok =
        parse(SMALL(",\"<e>\":40", "", "{\"id\":40,\"content\":\"<e>\",\"special\":true}", GPT2));
    tp_buf out = {0};

    tp_tokenizer_decode(tok, (const int32_t[]){0, 20, -5, 999, 40, 1}, 6, true, &out);
    assert_string_equal(tp_buf_str(&out), "ab");
    tp_tokenizer_decode(tok, (const int32_t[]){40}, 1, false, &out);
    assert_string_equal(tp_buf_str(&out), "ab<e>");
    assert_int_equal(tp_tokenizer_vocab_size(tok), 41);
    assert_true(tp_tokenizer_has_id(tok, 40));
    assert_false(tp_tokenizer_has_id(tok, 20));
    assert_null(tp_tokenizer_token(tok, 20));
    assert_string_equal(tp_tokenizer_token(tok, 4), "\xc4\xa0");
    assert_int_equal(tp_tokenizer_id(tok, "nope"), -1);
    tp_buf_release(&out);
    tp_tokenizer_free(tok);
}

static void matches_may_join_their_neighbours(void **state)
{
    static const struct {
        const char *behavior, *invert;
        size_t n;
        int32_t ids[4];
    } cases[] = {
        {"Isolated", "false", 3, {7, 5, 8}},        {"Removed", "false", 2, {7, 8}},
        {"MergedWithPrevious", "false", 2, {9, 8}}, {"MergedWithNext", "false", 2, {7, 10}},
        {"Contiguous", "true", 3, {7, 5, 8}},       {"Removed", "true", 1, {5}},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        char json[2000];
        snprintf(json, sizeof json,
                 SMALL(",\"ab\":7,\"cd\":8,\"ab1\":9,\"1cd\":10",
                       "\"a b\",\"c d\",\"ab 1\",\"1 cd\"", "",
                       "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
                       "{\"Regex\":\"\\\\d\"},\"behavior\":\"%s\",\"invert\":%s},{\"type\":"
                       "\"ByteLevel\",\"use_regex\":false,\"add_prefix_space\":false}]}"),
                 cases[i].behavior, cases[i].invert);
        tp_tokenizer *tok = parse(json);
        check_text(tok, "ab1cd", cases[i].n, cases[i].ids, NULL);
        tp_tokenizer_free(tok);
    }
}

#define SPLIT(regex)                                                                         \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"  \
    "\"" regex "\"},\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\",\"use_regex\":false," \
    "\"add_prefix_space\":false}]}"

/* Where PCRE2 would take an expression otherwise, words would be cut elsewhere. */
static void expressions_mean_what_oniguruma_means(void **state)
{
    /* The ideographic full stop is common to several scripts, that of Han among them. */
    tp_tokenizer *tok = parse(
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\xc3\xa5\":0,\"\xc2\xa5\":1,\"\xc2\xbd\":2,"
        "\"\xc3\xa3\":3,\"\xc4\xa2\":4,\"\xc4\xa4\":5,\"\xc2\xbd\xc3\xa3\":6},\"merges\":["
        "\"\xc2\xbd \xc3\xa3\"]}" TAIL(SPLIT("\\\\p{Han}+")));
    CHECK_TEXT(tok, "\xe5\xa5\xbd\xe3\x80\x82", 6, 0, 1, 2, 3, 4, 5);
    tp_tokenizer_free(tok);

    tok = parse(SMALL(",\"\xc4\xa0"
                      "1\":7",
                      "\"\xc4\xa0 1\"", "", SPLIT("\\\\P{L}+\\\\P{N}")));
    CHECK_TEXT(tok, "  1", 3, 4, 4, 5);
    tp_tokenizer_free(tok);

    /* Options hold for all branches behind them, and no branch begins before them. */
    tok = parse(SMALL(",\"dc\":7", "\"d c\"", "", SPLIT("a(?i)B|C")));
    CHECK_TEXT(tok, "dcab", 3, 7, 0, 1);
    tp_tokenizer_free(tok);
    tok = parse(SMALL(",\"dc\":7", "\"d c\"", "", SPLIT("(a(?i)B|x)c|(?i)D")));
    CHECK_TEXT(tok, "dc", 2, 3, 2);
    tp_tokenizer_free(tok);
}

/* What is wrong is said with the file, the line and the token. */
static void mistakes_are_named(void **state)
{
    static const struct {
        const char *json, *message;
        tp_status status;
    } cases[] = {
        {"[]", "t.json: has no 'model' object", TP_ERR_FORMAT},
        {"{\"model\":{\"type\":\"Unigram\"}}",
         "t.json:1: model type 'Unigram' is not supported; byte-level BPE is", TP_ERR_UNSUPPORTED},
        {"{\"model\":{\"vocab\":{},\"merges\":[]}}",
         "t.json: 'model.vocab' is not an object with tokens", TP_ERR_FORMAT},
        {SMALL("", "\"a x\"", "", GPT2),
         "t.json:1: merge 0 needs the token 'x', which is not in the vocabulary", TP_ERR_FORMAT},
        {SMALL(",\"ab\":7", "\"a b\",\"ab c\"", "", GPT2),
         "t.json:1: merge 1 needs the token 'abc', which is not in the vocabulary", TP_ERR_FORMAT},
        {SMALL("", "\"a b c\"", "", GPT2),
         "t.json:1: merge 0 is neither \"a b\" nor [\"a\", \"b\"]", TP_ERR_FORMAT},
        {SMALL("", "[\"a\"]", "", GPT2), "t.json:1: merge 0 is neither \"a b\" nor [\"a\", \"b\"]",
         TP_ERR_FORMAT},
        {SMALL(",\"x\":3", "", "", GPT2), "t.json:1: tokens 'd' and 'x' share id 3", TP_ERR_FORMAT},
        {SMALL(",\"x\":-1", "", "", GPT2),
         "t.json:1: token 'x' has id -1; ids of 8 tokens must be whole numbers from 0 to 65567",
         TP_ERR_FORMAT},
        {SMALL(",\"x\":4000000000", "", "", GPT2),
         "t.json:1: token 'x' has id 4000000000; ids of 8 tokens must be whole numbers from 0 to "
         "65567",
         TP_ERR_FORMAT},
        {SMALL(",\"x\":1.5", "", "", GPT2),
         "t.json:1: token 'x' has id 1.5; ids of 8 tokens must be whole numbers from 0 to 65567",
         TP_ERR_FORMAT},
        {SMALL("", "", "{\"id\":3,\"content\":\"<x>\"}", GPT2),
         "t.json:1: added token '<x>' takes id 3, which 'd' has", TP_ERR_FORMAT},
        {SMALL("", "", "{\"id\":9,\"content\":\"d\"}", GPT2),
         "t.json:1: added token 'd' has id 9 here and 3 in the vocabulary", TP_ERR_FORMAT},
        {SMALL("", "", "{\"id\":7,\"content\":\"<x>\"},{\"id\":8,\"content\":\"<x>\"}", GPT2),
         "t.json:1: added token '<x>' is listed twice", TP_ERR_FORMAT},
        {SMALL("", "", "{\"id\":3,\"content\":\"d\"},{\"id\":8,\"content\":\"<x>\"}", GPT2),
         "t.json:1: added token '<x>' has id 8, but the tokenizers library counts on from the "
         "vocabulary's 7 tokens and gives it 7; list added tokens in that order, or give this one "
         "its id in 'model.vocab' too",
         TP_ERR_UNSUPPORTED},
        {SMALL(",\"x\":9", "", "{\"id\":9,\"content\":\"x\"},{\"id\":10,\"content\":\"<x>\"}",
               GPT2),
         "t.json:1: added token '<x>' has id 10, but the tokenizers library counts on from the "
         "vocabulary's 8 tokens and gives it 8; list added tokens in that order, or give this "
         "one its id in 'model.vocab' too",
         TP_ERR_UNSUPPORTED},
        {"{\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true},\"added_tokens\":[{\"id\":1,"
         "\"content\":\" "
         "\",\"normalized\":true}],\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}" TAIL(GPT2),
         "t.json:1: the normalizer leaves nothing of the added token ' ', which would be found "
         "everywhere; set its 'normalized' to false",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "{\"id\":8}", GPT2), "t.json:1: an added token without 'content'",
         TP_ERR_FORMAT},
        {SMALL("", "", "", "{\"type\":\"Metaspace\"}"),
         "t.json:1: pre-tokenizer 'Metaspace' is not supported; Split, Digits, Punctuation, "
         "ByteLevel and Sequence are",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "", "{\"type\":\"Digits\"}"),
         "t.json:1: pre-tokenizer 'ByteLevel' must be the last one, and there must be one",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "", "null"),
         "t.json: 'pre_tokenizer' is missing or null; only byte-level BPE is supported, whose "
         "pre-tokenizer is or ends with 'ByteLevel'",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "", SPLIT("(a")),
         "t.json:1: regular expression '(a': '(' without ')' at offset 2 is not supported",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "", SPLIT("[a&&b]")),
         "t.json:1: regular expression '[a&&b]': class intersection at offset 2 is not supported",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "", SPLIT("(?i:x(?-i)ss)|(?i:a[\\\\p{Lu}])")),
         "t.json:1: regular expression '(?i:x(?-i)ss)|(?i:a[\\p{Lu}])': a property of case where "
         "case is ignored at offset 20 is not supported",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "", SPLIT("(?i)s(?:S|t)")),
         "t.json:1: regular expression '(?i)s(?:S|t)': ignoring case across several letters, as "
         "of ss and U+00DF, at offset 8 is not supported",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "", SPLIT("(?i:[\xc3\x9f])")),
         "t.json:1: regular expression '(?i:[\xc3\x9f])': ignoring case across several letters, as "
         "of ss and U+00DF, at offset 5 is not supported",
         TP_ERR_UNSUPPORTED},
        {SMALL("", "", "", SPLIT("[z-a]")),
         "t.json:1: regular expression '[z-a]': range out of order in character class",
         TP_ERR_FORMAT},
        {"{\"normalizer\":{\"type\":\"Nmt\"},\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}",
         "t.json:1: normalizer 'Nmt' is not supported; NFC, NFD, NFKC, NFKD, Lowercase, Strip, "
         "Prepend, Replace and Sequence are",
         TP_ERR_UNSUPPORTED},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}}",
         "t.json:1: BPE dropout is not supported; set 'dropout' to null", TP_ERR_UNSUPPORTED},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"a\"}" TAIL(GPT2),
         "t.json: the vocabulary lacks 255 of the 256 bytes and 'unk_token' is set; that is not "
         "supported",
         TP_ERR_UNSUPPORTED},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":" GPT2
         ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"x\",7],\"sep\":[\"a\",0]}}",
         "t.json:1: the post-processor adds token id 7, which no token has", TP_ERR_FORMAT},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":" GPT2 "}",
         "t.json: 'decoder' is missing or null; byte-level BPE needs 'ByteLevel'",
         TP_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        tp_tokenizer *tok = NULL;
        tp_error err = {0};
        tp_status status =
            tp_tokenizer_parse("t.json", cases[i].json, strlen(cases[i].json), &tok, &err);
        assert_string_equal(err.message, cases[i].message);
        assert_int_equal(status, cases[i].status);
        assert_null(tok);
    }
}

/* --- folders --- */

static char folder[64];

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), NULL), TP_OK);
}

static int make_folder(void **state)
{
    strcpy(folder, "/tmp/temper-tokenizer-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) { return tp_dir_remove(folder, NULL) != TP_OK; }

#define WITH_SPECIAL                                                                        \
    SMALL("", "",                                                                           \
          "{\"id\":7,\"content\":\"<s>\",\"special\":true},{\"id\":8,\"content\":\"</s>\"," \
          "\"special\":true}",                                                              \
          GPT2)

static void a_folder_names_its_special_tokens(void **state)
{
    tp_tokenizer *tok = NULL;
    tp_error err = {0};
    put("tokenizer.json", WITH_SPECIAL);
    put("tokenizer_config.json", "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": null,"
                                 " \"chat_template\": \"D\","
                                 " \"model_max_length\": 1000000000000000019884624838656}");
    put("special_tokens_map.json", "{\"bos_token\": \"</s>\", \"eos_token\": \"</s>\"}");

    if (tp_tokenizer_load(folder, &tok, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(tp_tokenizer_bos(tok), 8);
    assert_int_equal(tp_tokenizer_eos(tok), 8);
    assert_int_equal(tp_tokenizer_pad(tok), -1);
    assert_string_equal(tp_tokenizer_chat_template(tok), "D");
    tp_tokenizer_free(tok);

    put("chat_template.jinja", "J");
    assert_int_equal(tp_tokenizer_load(folder, &tok, &err), TP_OK);
    assert_string_equal(tp_tokenizer_chat_template(tok), "J");
    tp_tokenizer_free(tok);
}

/* As transformers hands its special_tokens_map to a template. */
static void templates_know_every_named_token(void **state)
{
    static const char source[] =
        "{{ unk_token }}|{{ image_token }}|{{ audio }}|{{ sep_token is defined }}|{{ eos_token }}";
    tp_tokenizer *tok = NULL;
    tp_template *t = NULL;
    tp_buf out = {0};
    put("tokenizer.json", WITH_SPECIAL);
    put("tokenizer_config.json", "{\"unk_token\": \"<s>\", \"sep_token\": null, \"image_token\": "
                                 "{\"content\": \"</s>\"}, \"eos_token\": \"<s>\","
                                 " \"extra_special_tokens\": {\"audio\": \"<s>\"}}");
    put("special_tokens_map.json", "{\"unk_token\": \"</s>\", \"eos_token\": null}");
    assert_int_equal(tp_tokenizer_load(folder, &tok, NULL), TP_OK);
    assert_int_equal(tp_template_parse("t", source, strlen(source), &t, NULL), TP_OK);
    assert_int_equal(tp_chat_render_json(t, tok, "[{}]", 4, NULL, false, &out, NULL), TP_OK);
    assert_string_equal(tp_buf_str(&out), "</s>|</s>|<s>|False|");
    tp_template_free(t);
    tp_tokenizer_free(tok);
    tp_buf_release(&out);
}

/* What the folder's template makes of a conversation; freed by the caller. */
static tp_buf rendered(const char *conversation)
{
    tp_tokenizer *tok = NULL;
    tp_template *t = NULL;
    tp_buf out = {0};
    tp_error err = {0};
    tp_status status = tp_tokenizer_load(folder, &tok, &err);
    const char *source = status == TP_OK ? tp_tokenizer_chat_template(tok) : "";
    if (status == TP_OK)
        status = tp_template_parse("t", source, strlen(source), &t, &err);
    if (status == TP_OK)
        status = tp_chat_render_json(t, tok, conversation, strlen(conversation), NULL, false, &out,
                                     &err);
    if (status != TP_OK) {
        tp_buf_clear(&out);
        tp_buf_adds(&out, err.message);
    }
    tp_template_free(t);
    tp_tokenizer_free(tok);
    return out;
}

#define TOOLS "{\"messages\": [{}], \"tools\": []}"

static void expect_rendered(const char *conversation, const char *want)
{
    tp_buf out = rendered(conversation);
    if (!strstr(tp_buf_str(&out), want))
        fail_msg("renders '%s', not '%s'", tp_buf_str(&out), want);
    tp_buf_release(&out);
}

static void conversations_with_tools_have_a_template_of_their_own(void **state)
{
    static const char *const configs[] = {
        "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"T{{ tools|length }}\\n\"},"
        " {\"name\": \"default\", \"template\": \"E\"}, {\"name\": \"rag\", \"template\": \"R\"},"
        " {\"name\": \"default\", \"template\": \"D\"}]}",
        "{\"chat_template\": {\"rag\": \"R\", \"default\": \"D\", \"tool_use\": "
        "\"T{{ tools|length }}\"}}"};
    char more[160];
    put("tokenizer.json", WITH_SPECIAL);
    for (size_t i = 0; i < TP_COUNTOF(configs); i++) {
        put("tokenizer_config.json", configs[i]);
        expect_rendered(TOOLS, "T0");
        expect_rendered("[{}]", "D");
        expect_rendered("{\"messages\": [{}], \"tools\": null}", "D");
    }
    put("tokenizer_config.json", "{\"chat_template\": {\"tool_use\": \"T\"}}");
    expect_rendered(TOOLS, "T");
    expect_rendered("[{}]", "none for others (default)");
    put("tokenizer_config.json", "{\"chat_template\": {\"default\": \"D\"}}");
    expect_rendered(TOOLS, "D");

    put("chat_template.jinja", "J");
    snprintf(more, sizeof more, "%s/additional_chat_templates", folder);
    assert_int_equal(tp_dir_make(more, NULL), TP_OK);
    put("additional_chat_templates/tool_use.jinja", "U");
    expect_rendered("[{}]", "J");
    expect_rendered(TOOLS, "U");
}

/* White space around tags is the same whether one template is there or two. */
static void templates_side_by_side_render_as_alone(void **state)
{
    static const char *const sources[] = {"  {% if true %}\n a\n  {% endif %}\n\n", "\n{{ 1 }}\r\n",
                                          " \n ", "{#- c -#} x \n\t", "{%- set a = 1 -%}\n a "};
    char more[160];
    put("tokenizer.json", WITH_SPECIAL);
    snprintf(more, sizeof more, "%s/additional_chat_templates", folder);
    assert_int_equal(tp_dir_make(more, NULL), TP_OK);
    for (size_t i = 0; i < TP_COUNTOF(sources); i++) {
        put("chat_template.jinja", sources[i]);
        assert_int_equal(tp_dir_remove(more, NULL), TP_OK);
        tp_buf alone = rendered("[{}]");
        assert_int_equal(tp_dir_make(more, NULL), TP_OK);
        put("additional_chat_templates/tool_use.jinja", sources[i]);
        tp_buf plain = rendered("[{}]"), tools = rendered(TOOLS);
        assert_string_equal(tp_buf_str(&plain), tp_buf_str(&alone));
        assert_string_equal(tp_buf_str(&tools), tp_buf_str(&alone));
        tp_buf_release(&alone);
        tp_buf_release(&plain);
        tp_buf_release(&tools);
    }
}

static void a_folder_may_hold_tokenizer_json_alone(void **state)
{
    tp_tokenizer *tok = NULL;
    put("tokenizer.json", WITH_SPECIAL);

    assert_int_equal(tp_tokenizer_load(folder, &tok, NULL), TP_OK);
    assert_int_equal(tp_tokenizer_bos(tok), -1);
    assert_null(tp_tokenizer_chat_template(tok));
    tp_tokenizer_free(tok);
}

static void a_named_token_must_exist(void **state)
{
    tp_tokenizer *tok = NULL;
    tp_error err = {0};
    char message[256];
    put("tokenizer.json", WITH_SPECIAL);
    put("tokenizer_config.json", "{\"eos_token\":\n\"<end>\"}");

    assert_int_equal(tp_tokenizer_load(folder, &tok, &err), TP_ERR_UNSUPPORTED);
    snprintf(message, sizeof message,
             "%s/tokenizer_config.json:2: \"eos_token\" is '<end>', which is no added token of "
             "tokenizer.json; transformers would add it: add it there or remove it",
             folder);
    assert_string_equal(err.message, message);
    assert_null(tok);
}

/* What transformers 5.23 takes from tokenizer_config.json beside tokenizer.json. */
static void settings_that_would_change_ids_are_refused(void **state)
{
    static const struct {
        const char *config, *says;
    } cases[] = {
        {"{\"split_special_tokens\": true}", "special tokens would be cut up"},
        {"{\"tokenizer_class\": \"Qwen2Tokenizer\", \"add_prefix_space\": true}",
         "this class puts a space before each text"},
        {"{\"additional_special_tokens\": [\"<s>\", \"<new>\"]}",
         "'<new>', which is no added token"},
        {"{\"extra_special_tokens\": {\"image\": \"<new>\"}}", "'<new>', which is no added token"},
        {"{\"added_tokens_decoder\": {\"9\": {\"content\": \"<new>\"}}}",
         "'<new>', which is no added token"},
        {"{\"split_special_tokens\": false, \"add_prefix_space\": true, \"add_bos_token\": true,"
         " \"additional_special_tokens\": [{\"content\": \"<s>\"}]}",
         NULL},
        {"{\"tokenizer_class\": \"GPTNeoXTokenizer\"}",
         "transformers' GPTNeoXTokenizer has its own"},
        {"{\"tokenizer_class\": \"Qwen2TokenizerFast\"}",
         "transformers' Qwen2TokenizerFast has its own"},
        {"{\"tokenizer_class\": \"RobertaTokenizerFast\"}",
         "RobertaTokenizerFast is not supported"},
        {"{\"tokenizer_class\": \"CodeGenTokenizer\", \"add_prefix_space\": true}",
         "this class puts a space before each text"},
        {"{\"tokenizer_class\": \"CodeGenTokenizer\", \"added_tokens_decoder\": {}}",
         "has 0 of the 2 added tokens"},
        {"{\"tokenizer_class\": \"CodeGenTokenizer\"}", NULL},
        {"{\"tokenizer_class\": \"GPT2Tokenizer\"}", NULL},
        {"{\"tokenizer_class\": \"GPT2TokenizerOfMine\", \"add_prefix_space\": true}", NULL},
    };
    put("tokenizer.json", WITH_SPECIAL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_tokenizer *tok = NULL;
        tp_error err = {0};
        put("tokenizer_config.json", cases[i].config);
        tp_status status = tp_tokenizer_load(folder, &tok, &err);
        assert_int_equal(status, cases[i].says ? TP_ERR_UNSUPPORTED : TP_OK);
        if (cases[i].says && !strstr(err.message, cases[i].says))
            fail_msg("%s: %s", cases[i].config, err.message);
        tp_tokenizer_free(tok);
    }
}

/* GPT-NeoX's class normalises; config.json names a class where tokenizer_config.json does not. */
static void a_class_that_builds_its_own_takes_what_is_built_so(void **state)
{
    tp_tokenizer *tok = NULL;
    tp_error err = {0};
    put("tokenizer.json",
        "{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"vocab\":{" BYTES_A_TO_D "},\"merges\":[]},"
        "\"added_tokens\":[{\"id\":7,\"content\":\"<|endoftext|>\",\"special\":true},"
        "{\"id\":8,\"content\":\"<|padding|>\",\"special\":true}]" TAIL(GPT2));
    put("config.json", "{\"tokenizer_class\": \"GPTNeoXTokenizerFast\"}");
    if (tp_tokenizer_load(folder, &tok, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(tp_tokenizer_eos(tok), 7);
    assert_int_equal(tp_tokenizer_pad(tok), 8);
    tp_tokenizer_free(tok);
    put("config.json", "{\"tokenizer_class\": \"WhisperTokenizer\"}");
    assert_int_equal(tp_tokenizer_load(folder, &tok, &err), TP_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "/config.json: transformers' WhisperTokenizer is not"));
    assert_non_null(strstr(err.message, "in tokenizer_config.json stands for"));
    put("tokenizer_config.json", "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}");
    assert_int_equal(tp_tokenizer_load(folder, &tok, &err), TP_OK);
    tp_tokenizer_free(tok);
}

static void a_folder_without_tokenizer_json_is_refused(void **state)
{
    tp_tokenizer *tok = NULL;
    tp_error err = {0};

    assert_int_equal(tp_tokenizer_load(folder, &tok, &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "tokenizer.json"));
}

/* A pathological expression stops at its limit, and says so. */
static void keep_warning(void *user, tp_log_level level, const char *component, const char *message)
{
    snprintf(user, 200, "%d %s: %s", (int)level, component, message);
}

static void a_search_that_runs_away_is_stopped(void **state)
{
    char warning[200] = "";
    tp_tokenizer *tok =
        parse(SMALL("", "", "",
                    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                    "\"pattern\":{\"Regex\":\"(?:a|aa|aaa|b?a)+(?=c)d\"},\"behavior\":"
                    "\"Isolated\"}," GPT2 "]}"));
    tp_tokenizer_scratch *scratch = tp_tokenizer_scratch_new(tok);
    tp_ids ids = {0};
    char text[101];
    memset(text, 'a', 98);
    memcpy(text + 98, "bd", 2);

    tp_log_set_sink(keep_warning, warning);
    tp_tokenizer_encode(tok, scratch, text, 100, (tp_encode_options){0}, &ids, NULL);
    tp_log_set_sink(NULL, NULL);

    assert_int_equal(ids.len, 100);
    assert_non_null(strstr(warning, "2 tokenizer: the pre-tokenizer's regular expression hit a "
                                    "limit"));
    tp_ids_release(&ids);
    tp_tokenizer_scratch_free(scratch);
    tp_tokenizer_free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_gives_the_reference_ids),
        cmocka_unit_test(smollm2_gives_the_reference_ids),
        cmocka_unit_test(llama3_gives_the_reference_ids),
        cmocka_unit_test(qwen2_gives_the_reference_ids),
        cmocka_unit_test(any_regex_gives_the_reference_ids),
        cmocka_unit_test(several_splits_give_the_reference_ids),
        cmocka_unit_test(long_runs_give_the_reference_ids),
        cmocka_unit_test(gsm8k_gives_the_reference_ids),
        cmocka_unit_test(the_lowest_rank_merges_first),
        cmocka_unit_test(pairs_and_strings_are_the_same_merges),
        cmocka_unit_test(bytes_without_a_token_are_dropped),
        cmocka_unit_test(offsets_are_where_tokens_start),
        cmocka_unit_test(offsets_survive_normalisation),
        cmocka_unit_test(offsets_survive_every_normalizer),
        cmocka_unit_test(what_no_final_is_composes_with_nothing),
        cmocka_unit_test(what_unicode_9_does_not_know_stays),
        cmocka_unit_test(a_prefixed_space_has_no_place),
        cmocka_unit_test(special_tokens_can_be_left_as_text),
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(broken_bytes_do_not_join_words),
        cmocka_unit_test(streaming_gives_whole_characters),
        cmocka_unit_test(ids_without_a_token_add_nothing),
        cmocka_unit_test(matches_may_join_their_neighbours),
        cmocka_unit_test(expressions_mean_what_oniguruma_means),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test_setup_teardown(a_folder_names_its_special_tokens, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(templates_know_every_named_token, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(conversations_with_tools_have_a_template_of_their_own,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(templates_side_by_side_render_as_alone, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_may_hold_tokenizer_json_alone, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_named_token_must_exist, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(settings_that_would_change_ids_are_refused, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_class_that_builds_its_own_takes_what_is_built_so,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_without_tokenizer_json_is_refused, make_folder,
                                        remove_folder),
        cmocka_unit_test(a_search_that_runs_away_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
