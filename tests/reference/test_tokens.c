/* test_tokens.c - token ids against the `tokenizers` library.
 *
 * tests/data/tokenizers was made by tools/reference/make_tokenizers.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "support/sha256.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer.h"

static const char *const names[] = {"gpt2", "smollm2", "llama3", "qwen2", "odd", "sequence"};
enum { N_NAMES = 6 };

typedef struct {
    tp_tokenizer *tokenizer;
    tp_tokenizer_scratch *scratch;
    tp_arena arena;
    tp_buf text;
    const tp_json *want;
} fixture;

static void set_up(fixture *f, const char *name)
{
    char path[1024];
    tp_error err = {0};
    tp_buf json = {0};
    memset(f, 0, sizeof *f);
    snprintf(path, sizeof path, "%s/tests/data/tokenizers/%s.json", TP_SOURCE_DIR, name);
    if (tp_file_read(path, 0, &json, &err) != TP_OK ||
        tp_tokenizer_parse(path, json.data, json.len, &f->tokenizer, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&json);
    snprintf(path, sizeof path, "%s/tests/data/tokenizers/%s.expected.json", TP_SOURCE_DIR, name);
    if (tp_arena_init(&f->arena, (size_t)1 << 30, &err) != TP_OK ||
        tp_file_read(path, 0, &f->text, &err) != TP_OK ||
        tp_json_parse(&f->arena, path, f->text.data, f->text.len, NULL, &f->want, &err) != TP_OK)
        fail_msg("%s", err.message);
    f->scratch = tp_tokenizer_scratch_new(f->tokenizer);
}

static void tear_down(fixture *f)
{
    tp_tokenizer_scratch_free(f->scratch);
    tp_tokenizer_free(f->tokenizer);
    tp_buf_release(&f->text);
    tp_arena_release(&f->arena);
}

static bool flag(const tp_json *object, const char *key)
{
    bool v = false;
    return tp_json_bool(tp_json_get(object, key), &v) && v;
}

static bool same_ids(const tp_ids *ids, const tp_json *want)
{
    size_t i = 0;
    for (const tp_json *v = want->child; v; v = v->next, i++) {
        int64_t id;
        if (i >= ids->len || !tp_json_i64(v, &id) || ids->data[i] != id)
            return false;
    }
    return i == ids->len;
}

static void check_cases(const char *name)
{
    fixture f;
    size_t checked = 0;
    set_up(&f, name);
    for (const tp_json *c = tp_json_get(f.want, "cases")->child; c; c = c->next, checked++) {
        tp_slice text = tp_json_get(c, "text")->text;
        tp_ids ids = {0};
        tp_encode_options o = {.add_special = flag(c, "add_special_tokens"),
                               .parse_special = !flag(c, "encode_special_tokens")};
        tp_tokenizer_encode(f.tokenizer, f.scratch, text.data, text.len, o, &ids, NULL);
        if (!same_ids(&ids, tp_json_get(c, "ids")))
            fail_msg("%s: case %zu ('%s') has other ids", name, checked, text.data);
        const tp_json *decoded = tp_json_get(c, "decoded");
        if (decoded && decoded->type == TP_JSON_STRING) {
            tp_buf out = {0};
            tp_tokenizer_decode(f.tokenizer, ids.data, ids.len, false, &out);
            if (!tp_slice_eq((tp_slice){tp_buf_str(&out), out.len}, decoded->text))
                fail_msg("%s: case %zu decodes to '%s'", name, checked, tp_buf_str(&out));
            tp_buf_release(&out);
        }
        tp_ids_release(&ids);
    }
    assert_true(checked > 250);
    tear_down(&f);
}

static void test_ids_are_those_of_tokenizers(void **state)
{
    for (int i = 0; i < N_NAMES; i++)
        check_cases(names[i]);
}

static void digest(sha256 *s, const tp_ids *ids)
{
    sha256_add(s, ids->data, ids->len * sizeof *ids->data); /* little-endian, as recorded */
}

static void check_digest(const char *name, const char *what, sha256 *s, const tp_json *want)
{
    char hex[65];
    sha256_hex(s, hex);
    if (strcmp(hex, tp_json_str(tp_json_get(want, "sha256"))) != 0)
        fail_msg("%s: %s has other ids", name, what);
}

static void test_ten_megabytes_of_one_letter(void **state)
{
    for (int i = 0; i < N_NAMES; i++) {
        fixture f;
        set_up(&f, names[i]);
        for (const tp_json *r = tp_json_get(f.want, "runs")->child; r; r = r->next) {
            int64_t count;
            tp_ids ids = {0};
            sha256 s;
            assert_true(tp_json_i64(tp_json_get(r, "count"), &count));
            char *text = malloc((size_t)count);
            memset(text, tp_json_str(tp_json_get(r, "unit"))[0], (size_t)count);
            tp_tokenizer_encode(f.tokenizer, f.scratch, text, (size_t)count,
                                (tp_encode_options){.parse_special = true}, &ids, NULL);
            sha256_init(&s);
            digest(&s, &ids);
            check_digest(names[i], "a long run", &s, r);
            free(text);
            tp_ids_release(&ids);
        }
        tear_down(&f);
    }
}

static void encode_row(fixture *f, const tp_json *row, const char *key, sha256 *s)
{
    tp_ids ids = {0};
    tp_slice text = tp_json_get(row, key)->text;
    tp_tokenizer_encode(f->tokenizer, f->scratch, text.data, text.len,
                        (tp_encode_options){.parse_special = true}, &ids, NULL);
    digest(s, &ids);
    tp_ids_release(&ids);
}

static void test_all_of_gsm8k(void **state)
{
    static const char path[] = TP_SOURCE_DIR "/../shared/data/gsm8k_train.jsonl";
    tp_buf file = {0};
    tp_error err = {0};
    if (!tp_file_exists(path)) {
        print_message("skipped: gsm8k_train.jsonl is not beside the repository\n");
        skip();
    }
    assert_int_equal(tp_file_read(path, 0, &file, &err), TP_OK);
    for (int i = 0; i < N_NAMES; i++) {
        fixture f;
        sha256 s;
        set_up(&f, names[i]);
        sha256_init(&s);
        for (char *line = file.data; *line;) {
            char *end = strchr(line, '\n');
            size_t n = end ? (size_t)(end - line) : strlen(line), mark = tp_arena_mark(&f.arena);
            const tp_json *row;
            if (tp_json_parse(&f.arena, path, line, n, NULL, &row, &err) != TP_OK)
                fail_msg("%s", err.message);
            encode_row(&f, row, "question", &s);
            encode_row(&f, row, "answer", &s);
            tp_arena_rewind(&f.arena, mark);
            line += n + (end != NULL);
        }
        check_digest(names[i], "GSM8K", &s, tp_json_get(f.want, "gsm8k"));
        tear_down(&f);
    }
    tp_buf_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_are_those_of_tokenizers),
        cmocka_unit_test(test_ten_megabytes_of_one_letter),
        cmocka_unit_test(test_all_of_gsm8k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
