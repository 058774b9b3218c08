/* test_tokenizer_settings.c - every key of tokenizer_config.json against transformers.
 *
 * tests/data/tokenizers/settings.json was made by tools/reference/make_tokenizer_settings.py.  A
 * case is right here when ids, text and named tokens are those of transformers, or the folder is
 * refused by the name of the key where they are not what the class alone gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer.h"

static tp_arena arena;
static const tp_json *dump;
static tp_buf text;
static char folder[] = "/tmp/temper-settings-XXXXXX";
static int failures, n_same, n_used, n_refused;

static void put(const char *name, const tp_json *v)
{
    char path[1024];
    tp_buf out = {0};
    tp_json_w w;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    if (!v || v->type == TP_JSON_NULL)
        return;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_value(&w, v);
    assert_int_equal(tp_file_write_atomic(path, out.data, out.len, NULL), TP_OK);
    tp_buf_release(&out);
}

static void put_tokenizer(const char *name)
{
    char from[1024], to[1024];
    tp_buf json = {0};
    snprintf(from, sizeof from, "%s/tests/data/tokenizers/%s.json", TP_SOURCE_DIR, name);
    snprintf(to, sizeof to, "%s/tokenizer.json", folder);
    assert_int_equal(tp_file_read(from, 0, &json, NULL), TP_OK);
    assert_int_equal(tp_file_write_atomic(to, json.data, json.len, NULL), TP_OK);
    tp_buf_release(&json);
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

static bool same_token(int32_t id, const tp_json *want)
{
    int64_t number;
    return tp_json_i64(want, &number) ? id == number : id < 0;
}

static bool same_text(const tp_tokenizer *tok, const tp_ids *ids, const tp_json *want)
{
    tp_buf out = {0};
    tp_tokenizer_decode(tok, ids->data, ids->len, false, &out);
    bool same = strcmp(tp_buf_str(&out), tp_json_str(want)) == 0;
    tp_buf_release(&out);
    return same;
}

/* What differs from transformers, or NULL. */
static const char *difference(const tp_tokenizer *tok, const tp_json *want)
{
    tp_tokenizer_scratch *scratch = tp_tokenizer_scratch_new(tok);
    const tp_json *plain = tp_json_get(want, "ids")->child,
                  *with = tp_json_get(want, "with")->child;
    const tp_json *decoded = tp_json_get(want, "decoded")->child;
    const char *what = NULL;
    for (const tp_json *t = tp_json_get(dump, "texts")->child; t && !what; t = t->next) {
        tp_ids ids = {0}, all = {0};
        tp_encode_options o = {.parse_special = true};
        tp_tokenizer_encode(tok, scratch, t->text.data, t->text.len, o, &ids, NULL);
        o.add_special = true;
        tp_tokenizer_encode(tok, scratch, t->text.data, t->text.len, o, &all, NULL);
        what = !same_ids(&ids, plain)           ? "ids"
               : !same_ids(&all, with)          ? "ids with special tokens"
               : !same_text(tok, &ids, decoded) ? "text"
                                                : NULL;
        plain = plain->next;
        with = with->next;
        decoded = decoded->next;
        tp_ids_release(&ids);
        tp_ids_release(&all);
    }
    tp_tokenizer_scratch_free(scratch);
    if (!what && !same_token(tp_tokenizer_bos(tok), tp_json_get(want, "bos")))
        what = "bos_token";
    if (!what && !same_token(tp_tokenizer_eos(tok), tp_json_get(want, "eos")))
        what = "eos_token";
    if (!what && !same_token(tp_tokenizer_pad(tok), tp_json_get(want, "pad")))
        what = "pad_token";
    return what;
}

static void complain(const tp_json *c, const char *what)
{
    tp_buf config = {0};
    tp_json_w w;
    tp_json_w_init(&w, &config, 0);
    tp_json_w_value(&w, tp_json_get(c, "config"));
    print_message("%s: %s: %s\n", tp_json_str(tp_json_get(c, "tokenizer")), tp_buf_str(&config),
                  what);
    tp_buf_release(&config);
    failures++;
}

static void check(const tp_json *c, const tp_json *alone)
{
    tp_tokenizer *tok = NULL;
    tp_error err = {0};
    bool is_same = false, has_error = tp_json_get(c, "error") != NULL;
    const char *key = tp_json_str(tp_json_get(c, "key"));
    tp_json_bool(tp_json_get(c, "same"), &is_same);
    put("tokenizer_config.json", tp_json_get(c, "config"));
    put("special_tokens_map.json", tp_json_get(c, "map"));
    if (tp_tokenizer_load(folder, &tok, &err) != TP_OK) {
        const char *name = strcmp(key, "special_tokens_map.json") == 0 ? "_token" : key;
        n_refused++;
        if (is_same && !strstr(err.message, "added_tokens_decoder"))
            complain(c, "refused, though it changes nothing");
        else if (!strstr(err.message, name) && !strstr(err.message, "added_tokens_decoder"))
            complain(c, err.message);
        return;
    }
    const char *what =
        has_error ? "taken, though transformers fails" : difference(tok, is_same ? alone : c);
    n_same += is_same;
    n_used += !is_same;
    if (what)
        complain(c, what);
    tp_tokenizer_free(tok);
}

static void every_key_is_used_or_refused_or_harmless(void **state)
{
    (void)state;
    char path[1024], last[64] = "";
    tp_error err = {0};
    const tp_json *alone = NULL;
    snprintf(path, sizeof path, "%s/tests/data/tokenizers/settings.json", TP_SOURCE_DIR);
    assert_int_equal(tp_arena_init(&arena, (size_t)1 << 30, &err), TP_OK);
    assert_int_equal(tp_file_read(path, 0, &text, &err), TP_OK);
    assert_int_equal(tp_json_parse(&arena, path, text.data, text.len, NULL, &dump, &err), TP_OK);
    assert_non_null(mkdtemp(folder));
    for (const tp_json *c = tp_json_get(dump, "cases")->child; c; c = c->next) {
        const char *name = tp_json_str(tp_json_get(c, "tokenizer"));
        if (strcmp(name, last) != 0)
            put_tokenizer(name);
        snprintf(last, sizeof last, "%s", name);
        if (*tp_json_str(tp_json_get(c, "key")) == 0)
            alone = c;
        check(c, alone);
    }
    assert_int_equal(tp_dir_remove(folder, NULL), TP_OK);
    print_message("%d as the class alone, %d used, %d refused\n", n_same, n_used, n_refused);
    assert_int_equal(failures, 0);
    assert_true(n_same > 250 && n_used > 40 && n_refused > 100);
    tp_buf_release(&text);
    tp_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_key_is_used_or_refused_or_harmless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
