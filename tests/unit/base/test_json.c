/* test_json.c - JSON: reading, writing, limits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "text/json/tree.h"

static tp_arena arena;

static int open_arena(void **state) { return tp_arena_init(&arena, 64 << 20, NULL) != TP_OK; }

static int close_arena(void **state)
{
    tp_arena_release(&arena);
    return 0;
}

static const tp_json *parse(const char *text)
{
    const tp_json *root = NULL;
    tp_error err = {0};
    if (tp_json_parse(&arena, "t.json", text, strlen(text), NULL, &root, &err) != TP_OK)
        fail_msg("%s", err.message);
    return root;
}

static void refuse(const char *text, size_t n, const tp_json_options *options, const char *message)
{
    const tp_json *root = NULL;
    tp_error err = {0};

    tp_status status = tp_json_parse(&arena, "t.json", text, n, options, &root, &err);

    if (status == TP_OK)
        fail_msg("accepted: %s", text);
    assert_null(root);
    assert_string_equal(err.message, message);
}

#define REFUSE(text, message) refuse((text), sizeof(text) - 1, NULL, (message))

static void document_keeps_order_types_and_lines(void **state)
{
    const tp_json *root =
        parse("{\"b\": [1, -0.5e3,\n true],\n \"a\": {\"x\": null}, \"s\": \"t\"}");

    assert_int_equal(root->type, TP_JSON_OBJECT);
    assert_int_equal(root->n, 3);
    assert_string_equal(root->child->key.data, "b");
    assert_string_equal(root->child->next->key.data, "a");
    const tp_json *b = tp_json_get(root, "b");
    assert_int_equal(b->n, 3);
    assert_string_equal(tp_json_at(b, 1)->text.data, "-0.5e3");
    assert_int_equal(tp_json_at(b, 2)->type, TP_JSON_TRUE);
    assert_int_equal(tp_json_at(b, 2)->line, 2);
    assert_null(tp_json_at(b, 3));
    const tp_json *a = tp_json_get(root, "a");
    assert_int_equal(a->line, 3);
    assert_int_equal(tp_json_get(a, "x")->type, TP_JSON_NULL);
    assert_string_equal(tp_json_str(tp_json_get(root, "s")), "t");
    assert_null(tp_json_get(tp_json_get(root, "missing"), "x"));
}

static void values_may_stand_alone(void **state)
{
    assert_int_equal(parse(" 17 ")->type, TP_JSON_NUMBER);
    assert_int_equal(parse("[]")->n, 0);
    assert_int_equal(parse("{}")->type, TP_JSON_OBJECT);
    assert_int_equal(parse("\"\"")->text.len, 0);
    assert_int_equal(parse("\r\n\tnull")->line, 2);
}

static void conversions_are_exact_or_refused(void **state)
{
    const tp_json *v =
        parse("[9223372036854775807, 9223372036854775808, 2.0, 1e3, 1.5, 1e999, \"1\", true, -0]");
    int64_t i = 0;
    double d = 0;
    bool b = false;

    assert_true(tp_json_i64(tp_json_at(v, 0), &i));
    assert_true(i == INT64_MAX);
    assert_false(tp_json_i64(tp_json_at(v, 1), &i));
    assert_true(tp_json_i64(tp_json_at(v, 2), &i));
    assert_int_equal(i, 2);
    assert_true(tp_json_i64(tp_json_at(v, 3), &i));
    assert_int_equal(i, 1000);
    assert_false(tp_json_i64(tp_json_at(v, 4), &i));
    assert_true(tp_json_f64(tp_json_at(v, 4), &d));
    assert_true(d == 1.5);
    assert_false(tp_json_f64(tp_json_at(v, 5), &d));
    assert_false(tp_json_i64(tp_json_at(v, 6), &i));
    assert_false(tp_json_f64(tp_json_at(v, 6), &d));
    assert_true(tp_json_bool(tp_json_at(v, 7), &b));
    assert_true(b);
    assert_false(tp_json_bool(tp_json_at(v, 6), &b));
    assert_true(tp_json_i64(tp_json_at(v, 8), &i));
    assert_int_equal(i, 0);
    assert_false(tp_json_i64(NULL, &i));
    assert_null(tp_json_str(tp_json_at(v, 0)));
}

static void strings_are_unescaped(void **state)
{
    const tp_json *v =
        parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\\u0000!\"");

    static const char expected[] = "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0!";
    assert_int_equal(v->text.len, sizeof expected - 1);
    assert_memory_equal(v->text.data, expected, sizeof expected);
}

static void long_strings_cross_the_vector_width(void **state)
{
    for (size_t n = 0; n < 70; n++) {
        char text[100];
        memset(text, 'x', sizeof text);
        text[0] = '"';
        text[1 + n] = '"';
        const tp_json *v;

        assert_int_equal(tp_json_parse(&arena, "t", text, n + 2, NULL, &v, NULL), TP_OK);

        assert_int_equal(v->text.len, n);
        text[1 + n / 2] = '\x1f';
        tp_status expected = n == 0 ? TP_OK : TP_ERR_FORMAT;
        text[1 + n] = '"';
        assert_int_equal(tp_json_parse(&arena, "t", text, n + 2, NULL, &v, NULL), expected);
    }
}

static void utf8_is_kept(void **state)
{
    const tp_json *v =
        parse("{\"\xc3\xa4\": \"\xe4\xbd\xa0\xe5\xa5\xbd, world, \xf0\x9f\x98\x80\"}");

    assert_string_equal(tp_json_str(tp_json_get(v, "\xc3\xa4")),
                        "\xe4\xbd\xa0\xe5\xa5\xbd, world, \xf0\x9f\x98\x80");
}

static void errors_name_place_and_remedy(void **state)
{
    REFUSE("", "t.json:1:1: expected a value, found the end of the text");
    REFUSE("{\n  \"a\": 1,\n}", "t.json:3:1: a comma before '}' has nothing after it; remove it");
    REFUSE("[1, ]", "t.json:1:5: a comma before ']' has nothing after it; remove it");
    REFUSE("[1 2]", "t.json:1:4: expected ',' or ']' after an element");
    REFUSE("{\"a\" 1}", "t.json:1:6: expected ':' after a key");
    REFUSE("{\"a\": 1 \"b\": 2}", "t.json:1:9: expected ',' or '}' after a member");
    REFUSE("{a: 1}", "t.json:1:2: expected a key in double quotes");
    REFUSE("['a']", "t.json:1:2: strings are written in double quotes");
    REFUSE("[True]", "t.json:1:2: unknown word; expected true, false, null or a quoted string");
    REFUSE("[nul", "t.json:1:2: unknown word; expected true, false, null or a quoted string");
    REFUSE("{} {}", "t.json:1:4: text after the end of the value; remove it");
    REFUSE("[1, 2", "t.json:1:6: the text ends before its brackets are closed; it is cut off");
    REFUSE("[\"abc", "t.json:1:2: this string is never closed; the text is cut off");
    REFUSE("[\"abc\n\"]",
           "t.json:1:6: a string ends at the end of its line; close it, or write \\n");
    REFUSE("[\"a\tb\"]", "t.json:1:4: control character in a string; write it as \\u00XX");
    REFUSE("\"\\x41\"", "t.json:1:2: unknown escape in a string; a backslash is written \\\\");
    REFUSE("\"\\u12g4\"", "t.json:1:2: \\u needs four hexadecimal digits");
    REFUSE("\"\xc3\xa4 \xff\"", "t.json:1:4: invalid UTF-8 in a string; convert the file to UTF-8");
    REFUSE("\"\xed\xa0\x80\"", "t.json:1:2: invalid UTF-8 in a string; convert the file to UTF-8");
    REFUSE("\xef\xbb\xbf{}", "t.json:1:1: byte order mark; save the file as UTF-8 without one");
    REFUSE("[,]", "t.json:1:2: expected a value");
    REFUSE("]", "t.json:1:1: expected a value");
    REFUSE("{\"a\": }", "t.json:1:7: expected a value");
    REFUSE("[1}", "t.json:1:3: expected ',' or ']' after an element");
}

static void numbers_follow_the_grammar(void **state)
{
    static const char *const bad[] = {"01",   "-",     "+1",  ".5",    "1.", "1e", "1e+",
                                      "0x10", "1_000", "--1", "1.5.2", "00", "-01"};
    for (size_t i = 0; i < TP_COUNTOF(bad); i++)
        refuse(bad[i], strlen(bad[i]), NULL,
               "t.json:1:1: malformed number; expected digits as in -12, 0.5 or 1e-3");

    static const char *const good[] = {"0", "-0", "10", "0.5", "1e5", "1E+5", "-1.25e-10", "0e0"};
    for (size_t i = 0; i < TP_COUNTOF(good); i++)
        assert_string_equal(parse(good[i])->text.data, good[i]);
}

static void non_finite_numbers_need_permission(void **state)
{
    REFUSE("[NaN]", "t.json:1:2: not a finite number; JSON has none, write null or a string");
    const tp_json *v;
    double d = 0;
    const char *text = "[NaN, Infinity, -Infinity]";

    assert_int_equal(tp_json_parse(&arena, "t", text, strlen(text), &TP_JSON_TOLERANT, &v, NULL),
                     TP_OK);

    assert_true(tp_json_f64(tp_json_at(v, 0), &d) && isnan(d));
    assert_true(tp_json_f64(tp_json_at(v, 1), &d) && d == INFINITY);
    assert_true(tp_json_f64(tp_json_at(v, 2), &d) && d == -INFINITY);
    refuse("[nan]", 5, &TP_JSON_TOLERANT,
           "t.json:1:2: not a finite number; JSON has none, write null or a string");
}

static void lone_surrogates_need_permission(void **state)
{
    static const char *const lone[] = {"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\ud800\"",
                                       "\"\\ud800\\n\""};
    static const char *const read[] = {"\xef\xbf\xbd", "\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd",
                                       "\xef\xbf\xbd\n"};
    for (size_t i = 0; i < TP_COUNTOF(lone); i++) {
        refuse(lone[i], strlen(lone[i]), NULL,
               "t.json:1:2: half of a surrogate pair; write the character itself or both halves");
        const tp_json *v;
        assert_int_equal(
            tp_json_parse(&arena, "t", lone[i], strlen(lone[i]), &TP_JSON_TOLERANT, &v, NULL),
            TP_OK);
        assert_string_equal(v->text.data, read[i]);
    }
}

static void duplicate_keys_are_refused(void **state)
{
    REFUSE("{\"a\": 1,\n\"a\": 2}", "t.json:2: key \"a\" appears twice in one object; remove one");
    REFUSE("{\"a\": 1, \"\\u0061\": 2}",
           "t.json:1: key \"a\" appears twice in one object; remove one");
    const tp_json *v;
    int64_t i = 0;
    assert_int_equal(
        tp_json_parse(&arena, "t", "{\"a\":1,\"a\":2}", 13, &TP_JSON_TOLERANT, &v, NULL), TP_OK);
    assert_true(tp_json_i64(tp_json_get(v, "a"), &i));
    assert_int_equal(i, 2);
}

static void duplicates_are_found_among_many_keys(void **state)
{
    tp_buf text = {0};
    tp_buf_addc(&text, '{');
    for (int i = 0; i < 5000; i++)
        tp_buf_addf(&text, "\"k%d\": %d,\n", i, i);
    tp_buf_adds(&text, "\"last\": 0}");
    assert_int_equal(parse(text.data)->n, 5001);

    text.len -= strlen("\"last\": 0}");
    tp_buf_adds(&text, "\"k4321\": 0}");
    refuse(text.data, text.len, NULL,
           "t.json:5001: key \"k4321\" appears twice in one object; remove one");
    tp_buf_release(&text);
}

static void depth_is_limited(void **state)
{
    char text[140];
    memset(text, '[', 65);
    memset(text + 65, ']', 65);

    refuse(text, 130, NULL, "t.json:1:65: nested more than 64 levels deep");
    const tp_json *v;
    assert_int_equal(tp_json_parse(&arena, "t", text + 1, 128, NULL, &v, NULL), TP_OK);
}

static void size_is_limited(void **state)
{
    refuse("[1,2,3]", 7, &(tp_json_options){.max_bytes = 6},
           "t.json: 7 bytes is more than the 6 allowed for this file");
}

static void first_line_is_counted_from_the_option(void **state)
{
    refuse("{\n]", 3, &(tp_json_options){.first_line = 40},
           "t.json:41:1: expected a key in double quotes");
}

static void a_full_arena_is_an_error(void **state)
{
    tp_arena small;
    assert_int_equal(tp_arena_init(&small, 4096, NULL), TP_OK);
    tp_buf text = {0};
    tp_buf_addc(&text, '[');
    for (int i = 0; i < 1000; i++)
        tp_buf_adds(&text, "1,\n");
    tp_buf_adds(&text, "1]");
    const tp_json *v = NULL;
    tp_error err;

    assert_int_equal(tp_json_parse(&small, "t", text.data, text.len, NULL, &v, &err), TP_ERR_NOMEM);

    assert_null(v);
    assert_int_equal(tp_arena_mark(&small), 0);
    assert_non_null(strstr(err.message, "needs more than the 4096 bytes"));
    tp_buf_release(&text);
    tp_arena_release(&small);
}

/* One letter per token, so that a stream can be compared with a literal. */
static char letter(tp_json_token_type type) { return ".{}[]ks#tf0"[type]; }

static void reader_yields_tokens_with_places(void **state)
{
    static const char text[] = "{\"a\": [1, \"x\\n\"],\n \"b\": true}";
    tp_json_reader r;
    tp_json_token token;
    char seen[32] = "";
    size_t n = 0;
    tp_json_reader_init(&r, "t", text, sizeof text - 1, NULL);

    do {
        assert_int_equal(tp_json_reader_next(&r, &token, NULL), TP_OK);
        seen[n++] = letter(token.type);
        if (token.type == TP_JSON_TOKEN_STRING) {
            assert_int_equal(token.offset, 10);
            assert_true(token.has_escapes);
            assert_int_equal(token.text.len, 3);
        }
        if (token.type == TP_JSON_TOKEN_TRUE) {
            assert_int_equal(token.line, 2);
            assert_int_equal(token.offset, 24);
        }
    } while (token.type != TP_JSON_TOKEN_END);

    assert_string_equal(seen, "{k[#s]kt}.");
}

static void reader_skips_a_value(void **state)
{
    static const char text[] = "{\"a\": {\"x\": [1, {\"y\": \"}\"}]}, \"b\": 2}";
    tp_json_reader r;
    tp_json_token token;
    tp_json_reader_init(&r, "t", text, sizeof text - 1, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tp_json_reader_next(&r, &token, NULL), TP_OK);
    assert_int_equal(token.type, TP_JSON_TOKEN_BEGIN_OBJECT);

    assert_int_equal(tp_json_reader_skip(&r, NULL), TP_OK);

    assert_int_equal(tp_json_reader_next(&r, &token, NULL), TP_OK);
    assert_int_equal(token.type, TP_JSON_TOKEN_KEY);
    assert_true(tp_slice_is(token.text, "b"));
}

static void reader_takes_many_values(void **state)
{
    static const char text[] = "{\"a\":1}\n{\"a\":2}\n\n[3]\n4\n";
    tp_json_reader r;
    tp_json_token token;
    char seen[32] = "";
    size_t n = 0;
    tp_json_reader_init(&r, "t", text, sizeof text - 1, &(tp_json_options){.allow_many = true});

    do {
        assert_int_equal(tp_json_reader_next(&r, &token, NULL), TP_OK);
        seen[n++] = letter(token.type);
    } while (token.type != TP_JSON_TOKEN_END);

    assert_string_equal(seen, "{k#}{k#}[#]#.");
    assert_int_equal(token.line, 6);
}

/* Every token with its line and its place. */
static void tokens_know_their_place(void **state)
{
    static const char text[] = "{\"key\": [12.5e-3,\n  true],\n\n\"b\": \"x\"}";
    tp_buf seen = {0};
    tp_json_reader r;
    tp_json_token token;
    tp_json_reader_init(&r, "t", text, sizeof text - 1, NULL);
    do {
        assert_int_equal(tp_json_reader_next(&r, &token, NULL), TP_OK);
        tp_buf_addf(&seen, "%c%llu:%llu:%.*s ", letter(token.type), (unsigned long long)token.line,
                    (unsigned long long)token.offset, (int)token.text.len,
                    token.text.len ? token.text.data : "");
    } while (token.type != TP_JSON_TOKEN_END);

    assert_string_equal(
        tp_buf_str(&seen),
        "{1:0: k1:1:key [1:8: #1:9:12.5e-3 t2:20:true ]2:24: k4:28:b s4:33:x }4:36: .4:37: ");
    tp_buf_release(&seen);
}

static void reader_errors_point_at_a_token(void **state)
{
    static const char text[] = "[1,\n  \"wrong\"]";
    tp_json_reader r;
    tp_json_token token;
    tp_error err;
    tp_json_reader_init(&r, "run.json", text, sizeof text - 1, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tp_json_reader_next(&r, &token, NULL), TP_OK);

    tp_json_reader_fail(&r, &token, &err, "expected %s", "a number");

    assert_string_equal(err.message, "run.json:2:3: expected a number");
}

static const char *f64(double v)
{
    static char text[32];
    tp_json_f64_text(v, text);
    return text;
}

static void doubles_are_written_shortest(void **state)
{
    assert_string_equal(f64(0), "0");
    assert_string_equal(f64(-0.0), "-0.0");
    assert_string_equal(f64(1), "1");
    assert_string_equal(f64(-2.5), "-2.5");
    assert_string_equal(f64(0.1), "0.1");
    assert_string_equal(f64(1.0 / 3), "0.3333333333333333");
    assert_string_equal(f64(0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(f64(5e-6), "5e-6");
    assert_string_equal(f64(0.0001), "0.0001");
    assert_string_equal(f64(1e15), "1000000000000000");
    assert_string_equal(f64(1e16), "1e16");
    assert_string_equal(f64(1e22), "1e22");
    assert_string_equal(f64(5e-324), "5e-324");
    assert_string_equal(f64(1.7976931348623157e308), "1.7976931348623157e308");
    assert_string_equal(f64(2.2250738585072014e-308), "2.2250738585072014e-308");
    /* A power of two whose nearest 16 digits fall short of it. */
    assert_string_equal(f64(0x1p-44), "5.684341886080802e-14");
}

/* Where there is room, without a NUL; nothing is written behind the room. */
static void numbers_are_put(void **state)
{
    static const struct {
        double v;
        const char *text;
    } doubles[] = {{-1763600000.25, "-1763600000.25"},
                   {-0.00012345678901234567, "-0.00012345678901234567"},
                   {-9999999999999998, "-9999999999999998"},
                   {-1.2345678901234568e-300, "-1.2345678901234568e-300"},
                   {NAN, "\"NaN\""},
                   {INFINITY, "\"Infinity\""},
                   {-INFINITY, "\"-Infinity\""},
                   {20000, "20000"},
                   {0.10000000149011612, "0.10000000149011612"}};
    static const struct {
        int64_t v;
        const char *text;
    } whole[] = {{0, "0"},
                 {-7, "-7"},
                 {INT64_MIN, "-9223372036854775808"},
                 {INT64_MAX, "9223372036854775807"}};
    char room[TP_JSON_NUMBER_ROOM + 1];
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        room[TP_JSON_NUMBER_ROOM] = '!';
        *tp_json_put_f64(room, doubles[i].v) = 0;
        assert_string_equal(room, doubles[i].text);
        assert_int_equal(room[TP_JSON_NUMBER_ROOM], '!');
    }
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        room[TP_JSON_NUMBER_ROOM] = '!';
        *tp_json_put_i64(room, whole[i].v) = 0;
        assert_string_equal(room, whole[i].text);
        assert_int_equal(room[TP_JSON_NUMBER_ROOM], '!');
    }
}

static void doubles_read_back(void **state)
{
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        assert_true(strtod(f64(v), NULL) == v);
    }
}

static void members_are_written_in_one_call(void **state)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);

    tp_json_w_begin(&w, '{');
    tp_json_w_put_str(&w, "s", "x");
    tp_json_w_put_i64(&w, "i", -1);
    tp_json_w_put_f64(&w, "f", NAN);
    tp_json_w_put_bool(&w, "b", false);
    tp_json_w_put_known(&w, "k", NAN);
    tp_json_w_put_known(&w, "l", 0.5);
    tp_json_w_put_begin(&w, "o", '[');
    tp_json_w_end(&w, ']');
    tp_json_w_put_interval(&w, "p", -1, 0.5);
    tp_json_w_put_interval(&w, "q", NAN, 0.5);
    tp_json_w_put_f64s(&w, "r", (double[]){1, NAN}, 2);
    tp_json_w_end(&w, '}');

    assert_string_equal(out.data, "{\"s\":\"x\",\"i\":-1,\"f\":\"NaN\",\"b\":false,\"k\":null,"
                                  "\"l\":0.5,\"o\":[],\"p\":[-1,0.5],\"q\":null,"
                                  "\"r\":[1,\"NaN\"]}");
    tp_buf_release(&out);
}

static void writer_puts_commas_and_indents(void **state)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 2);

    tp_json_w_begin(&w, '{');
    tp_json_w_key(&w, "a");
    tp_json_w_i64(&w, 1);
    tp_json_w_key(&w, "b");
    tp_json_w_begin(&w, '[');
    tp_json_w_f64(&w, 0.5);
    tp_json_w_f64(&w, NAN);
    tp_json_w_f64(&w, -INFINITY);
    tp_json_w_str(&w, NULL);
    tp_json_w_end(&w, ']');
    tp_json_w_key(&w, "c");
    tp_json_w_begin(&w, '{');
    tp_json_w_end(&w, '}');
    tp_json_w_key(&w, "d");
    tp_json_w_bool(&w, true);
    tp_json_w_put_f64_line(&w, "e", (double[]){1, 2.5}, 2);
    tp_json_w_end(&w, '}');

    assert_string_equal(out.data, "{\n"
                                  "  \"a\": 1,\n"
                                  "  \"b\": [\n"
                                  "    0.5,\n"
                                  "    \"NaN\",\n"
                                  "    \"-Infinity\",\n"
                                  "    null\n"
                                  "  ],\n"
                                  "  \"c\": {},\n"
                                  "  \"d\": true,\n"
                                  "  \"e\": [1,2.5]\n"
                                  "}");
    tp_buf_release(&out);
}

static void strings_are_quoted(void **state)
{
    tp_buf out = {0};

    tp_json_quote(&out, "a\"\\\n\t\x01\x7f\xc3\xa4\xff\0z", 12);

    assert_string_equal(out.data, "\"a\\\"\\\\\\n\\t\\u0001\\u007f\xc3\xa4\xef\xbf\xbd\\u0000z\"");
    tp_buf_release(&out);
}

static void a_document_is_written_as_it_was(void **state)
{
    static const char text[] =
        "{\"a\":[1.50,{\"b\":\"\\u0000\\n\"}],\"\\\"\":null,\"t\":[true,false,[]]}";
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);

    tp_json_w_value(&w, parse(text));

    assert_string_equal(out.data, text);
    tp_buf_release(&out);
}

static void numbers_that_json_lacks_are_texts_or_words(void **state)
{
    const char *text = "[NaN,{\"a\":-Infinity},Infinity,1.50]";
    const tp_json *v;
    tp_buf out = {0};
    assert_int_equal(tp_json_parse(&arena, "t", text, strlen(text), &TP_JSON_TOLERANT, &v, NULL),
                     TP_OK);
    tp_json_text(v, &out);
    assert_string_equal(out.data, "[\"NaN\",{\"a\":\"-Infinity\"},\"Infinity\",1.50]");
    tp_buf_clear(&out);
    tp_json_text_tolerant(v, &out);
    assert_string_equal(out.data, text);
    tp_buf_release(&out);
}

static void values_are_the_same_by_what_they_say(void **state)
{
    assert_true(tp_json_same(parse("{\"a\": [1, {\"b\": 1e-3}]}"),
                             parse("{\"a\": [1.0, {\"b\": 0.0010}]}")));
    assert_true(tp_json_same(parse("[{\"a\": 1, \"b\": {\"c\": 2, \"d\": []}}]"),
                             parse("[{\"b\": {\"d\": [], \"c\": 2}, \"a\": 1}]")));
    assert_false(tp_json_same(parse("[1, 2]"), parse("[2, 1]")));
    assert_false(tp_json_same(parse("{\"a\": 1, \"b\": 2}"), parse("{\"a\": 1, \"c\": 2}")));
    static const char *const others[] = {
        "{\"a\": 2}", "{\"b\": 1}", "{\"a\": \"1\"}", "{\"a\": 1, \"b\": 1}", "[1]", "{}", "null"};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        assert_false(tp_json_same(parse("{\"a\": 1}"), parse(others[i])));
    assert_false(tp_json_same(parse("true"), parse("false")));
    assert_true(tp_json_same(NULL, NULL));
    assert_false(tp_json_same(parse("null"), NULL));
}

static void a_value_is_a_word_or_none(void **state)
{
    assert_string_equal(tp_json_word(parse("null")), "null");
    assert_string_equal(tp_json_word(parse("true")), "true");
    assert_string_equal(tp_json_word(parse("1.50")), "1.50");
    assert_string_equal(tp_json_word(parse("\"a\"")), "a");
    assert_null(tp_json_word(parse("[]")));
    assert_null(tp_json_word(parse("{}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_keeps_order_types_and_lines),
        cmocka_unit_test(values_may_stand_alone),
        cmocka_unit_test(conversions_are_exact_or_refused),
        cmocka_unit_test(strings_are_unescaped),
        cmocka_unit_test(long_strings_cross_the_vector_width),
        cmocka_unit_test(utf8_is_kept),
        cmocka_unit_test(errors_name_place_and_remedy),
        cmocka_unit_test(numbers_follow_the_grammar),
        cmocka_unit_test(non_finite_numbers_need_permission),
        cmocka_unit_test(lone_surrogates_need_permission),
        cmocka_unit_test(duplicate_keys_are_refused),
        cmocka_unit_test(duplicates_are_found_among_many_keys),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(size_is_limited),
        cmocka_unit_test(first_line_is_counted_from_the_option),
        cmocka_unit_test(a_full_arena_is_an_error),
        cmocka_unit_test(reader_yields_tokens_with_places),
        cmocka_unit_test(reader_skips_a_value),
        cmocka_unit_test(reader_takes_many_values),
        cmocka_unit_test(tokens_know_their_place),
        cmocka_unit_test(reader_errors_point_at_a_token),
        cmocka_unit_test(doubles_are_written_shortest),
        cmocka_unit_test(numbers_are_put),
        cmocka_unit_test(doubles_read_back),
        cmocka_unit_test(members_are_written_in_one_call),
        cmocka_unit_test(writer_puts_commas_and_indents),
        cmocka_unit_test(strings_are_quoted),
        cmocka_unit_test(a_document_is_written_as_it_was),
        cmocka_unit_test(numbers_that_json_lacks_are_texts_or_words),
        cmocka_unit_test(values_are_the_same_by_what_they_say),
        cmocka_unit_test(a_value_is_a_word_or_none),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
