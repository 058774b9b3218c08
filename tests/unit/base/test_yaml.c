#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "text/yaml/yaml.h"

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
    if (tp_yaml_parse(&arena, "r.yaml", text, strlen(text), &root, &err) != TP_OK)
        fail_msg("%s", err.message);
    return root;
}

static void expect_json(const char *yaml, const char *json)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_value(&w, parse(yaml));
    assert_string_equal(out.data, json);
    tp_buf_release(&out);
}

static void refuse_text(const char *text, size_t n, const char *message)
{
    const tp_json *root = NULL;
    tp_error err = {0};
    tp_status status = tp_yaml_parse(&arena, "r.yaml", text, n, &root, &err);
    if (status == TP_OK)
        fail_msg("accepted: %s", text);
    assert_null(root);
    assert_string_equal(err.message, message);
}

#define REFUSE(text, message) refuse_text((text), sizeof(text) - 1, (message))

static void blocks_and_flows_become_a_tree(void **state)
{
    expect_json("policy:\n"
                "  name: tiny # a comment\n"
                "  betas: [0.9, 0.98]\n"
                "  steps:\n"
                "  - {a: 1, b: x}\n"
                "  - - nested\n"
                "data: {}\n",
                "{\"policy\":{\"name\":\"tiny\",\"betas\":[0.9,0.98],"
                "\"steps\":[{\"a\":1,\"b\":\"x\"},[\"nested\"]]},\"data\":{}}");
}

static void plain_scalars_follow_the_core_schema(void **state)
{
    expect_json("[null, Null, NULL, ~, true, True, TRUE, false, False, FALSE]",
                "[null,null,null,null,true,true,true,false,false,false]");
    expect_json("[0, 12, -3, +4, 007, 0x1F]", "[0,12,-3,4,7,31]");
    expect_json("[1e-5, 5.0e-6, .5, .5e-1, 5., 1E3, +2.5, 00.5, 6.02e+23]",
                "[1e-5,5.0e-6,0.5,0.5e-1,5.0,1E3,2.5,0.5,6.02e+23]");
    expect_json("[.inf, -.Inf, +.INF, .nan, .NaN]",
                "[\"Infinity\",\"-Infinity\",\"Infinity\",\"NaN\",\"NaN\"]");
    expect_json("[y, N, 1.2.3, 0x, 0o8, e5, '.', ., -x, 1e, tRUE, 00:30:45, 1:60, _1]",
                "[\"y\",\"N\",\"1.2.3\",\"0x\",\"0o8\",\"e5\",\".\","
                "\".\",\"-x\",\"1e\",\"tRUE\",\"00:30:45\",\"1:60\",\"_1\"]");
    double v = 0;
    assert_true(tp_json_f64(parse(".nan"), &v) && isnan(v));
    assert_true(tp_json_f64(parse("-.inf"), &v) && v == -INFINITY);
    assert_true(tp_json_f64(parse("1e-5"), &v) && v == 1e-5);
}

/* What PyYAML 6 makes of them, but that 1e-5 is a number, and text what needs more than 64 bits. */
static void the_old_version_is_read_as_pyyaml_does(void **state)
{
    static const char text[] =
        "[yes, No, ON, off, y, true, 010, -017, 08, 0o17, 0b101, -0x1F, 1_024, 1__0.5_0, 0_7,\n"
        " 1:30, -190:20:30, 190:20:30.15, 0:30, 1:60, 1e-5, .inf, .nan, ~, 'off', 1e5_0, _1, 0x_1f,"
        " !!bool \"yes\", !!int '010', 1.e+3, 99999999999999999999:59,"
        " -.5, +.5, .5e3, .5E-3, ._5, .5_e+3, 1_0e5, 1_e5, 1__0e5, 1_0.5e5, 1_.5e5, 1_.5e+5]";
    const tp_json *root = NULL;
    tp_buf out = {0};
    tp_json_w w;
    assert_int_equal(tp_yaml_parse_old(&arena, "r.yaml", text, strlen(text), &root, NULL), TP_OK);
    tp_json_w_init(&w, &out, 0);
    tp_json_w_value(&w, root);
    assert_string_equal(
        out.data, "[true,false,true,false,\"y\",true,8,-15,\"08\",\"0o17\",5,-31,1024,10.50,7,"
                  "90,-685230,685230.15,\"0:30\",\"1:60\",1e-5,\"Infinity\",\"NaN\",null,"
                  "\"off\",\"1e5_0\",\"_1\",31,true,8,1.0e+3,\"99999999999999999999:59\","
                  "\"-.5\",\"+.5\",\".5e3\",0.5E-3,\"._5\",0.5e+3,10e5,\"1_e5\",\"1__0e5\","
                  "10.5e5,\"1_.5e5\",1.5e+5]");
    tp_buf_release(&out);
}

static void what_two_versions_read_in_two_ways_is_refused(void **state)
{
    REFUSE("a: 010", "r.yaml:1:4: 010 is 10 in YAML 1.2 and 8 in YAML 1.1; write 10 or 8, or "
                     "\"010\" for the text");
    REFUSE("a: [1, off]",
           "r.yaml:1:8: off is text in YAML 1.2 and false in YAML 1.1; write false, or "
           "\"off\" for the text");
    REFUSE("a: 1_024", "r.yaml:1:4: 1_024 is text in YAML 1.2 and 1024 in YAML 1.1; write 1024, or "
                       "\"1_024\" for the text");
    REFUSE("a: 0o17", "r.yaml:1:4: 0o17 is 15 in YAML 1.2 and text in YAML 1.1; write 15, or "
                      "\"0o17\" for the text");
    REFUSE("a: 12:30:45", "r.yaml:1:4: 12:30:45 is text in YAML 1.2 and 45045 in YAML 1.1; write "
                          "45045, or \"12:30:45\" for the text");
    REFUSE("a: -.5", "r.yaml:1:4: -.5 is -0.5 in YAML 1.2 and text in YAML 1.1; write -0.5, or "
                     "\"-.5\" for the text");
    expect_json("{off: 'off', b: !!str 010, c: \"yes\"}",
                "{\"off\":\"off\",\"b\":\"010\",\"c\":\"yes\"}");
}

static void quoted_and_block_scalars_are_strings(void **state)
{
    expect_json("['1', \"2\", \"null\", '', \"a\\tb\\u00e9\", 'it''s']",
                "[\"1\",\"2\",\"null\",\"\",\"a\\tb\xc3\xa9\",\"it's\"]");
    expect_json("a: |\n  one\n   two\nb: >-\n  fold\n  ed\nc: |+\n  x\n\n",
                "{\"a\":\"one\\n two\\n\",\"b\":\"fold ed\",\"c\":\"x\\n\\n\"}");
}

static void an_empty_block_takes_nothing_of_what_follows(void **state)
{
    static const char empty[] =
        "an empty block of text; write \"\", or indent the lines that belong to it";
    static const struct {
        int line;
        const char *text;
    } refused[] = {
        {2, "a:\n  b: |\n  c: 1\n"},
        {2, "a:\n  b: |+\n\n  c: 1\n"},
        {2, "a:\r\n  b: >-\r\n  c: 1\r\n"},
        {2, "a:\n  b: &x !!str | # remark\n  c: 1\n"},
        {2, "a:\n  b: |\n  # remark\n  c: 1\n"},
        {2, "a:\n  - |\n  - b\n"},
        {2, "a:\n  - - >\n    - b\n"},
        {3, "a:\n  - x: 1\n    b: |\n    c: 1\n"},
        {2, "a:\n  ? |\n  b\n  : c\n"},
    };
    for (size_t i = 0; i < TP_COUNTOF(refused); i++) {
        char message[200];
        snprintf(message, sizeof message, "r.yaml:%d:1: %s", refused[i].line, empty);
        refuse_text(refused[i].text, strlen(refused[i].text), message);
    }
    expect_json("a:\n  b: |\nc: >+\n\nd: |\ne: |",
                "{\"a\":{\"b\":\"\"},\"c\":\"\\n\",\"d\":\"\",\"e\":\"\"}");
    expect_json("a:\n  b: |1\n   x\n  c: |2\n  d: |\n\n   x\n  e: 1\n",
                "{\"a\":{\"b\":\"x\\n\",\"c\":\"\",\"d\":\"\\nx\\n\",\"e\":1}}");
    expect_json("- |\n- a:\n  - |\n   x\n  - b: >\n     y\n    c: |\n",
                "[\"\",{\"a\":[\"x\\n\",{\"b\":\"y\\n\",\"c\":\"\"}]}]");
    expect_json("|\n x\n", "\"x\\n\"");
    expect_json("- |\n x\n- |+\n y", "[\"x\\n\",\"y\"]");
}

static void tags_may_state_what_is_the_case(void **state)
{
    expect_json("[!!str 5, !!int 5, !!float 5, !!bool true, !!null ~, ! 5]",
                "[\"5\",5,5,true,null,\"5\"]");
    expect_json("[!!bool \"true\", !!int '5', !!float \"1.0e-05\", !!null \"null\", !!str \"5\"]",
                "[true,5,1.0e-05,null,\"5\"]"); /* as PyYAML's default_style writes */
    REFUSE("a: !!int 'x'", "r.yaml:1:4: the value is not what its tag !!int says");
    expect_json("a: !!map {b: !!seq [1]}", "{\"a\":{\"b\":[1]}}");
    REFUSE("a: !!set {b: 1}", "r.yaml:1:4: unknown tag; plain values need none, remove it");
    REFUSE("a: !!seq {b: 1}", "r.yaml:1:4: the value is not what its tag !!seq says");
    REFUSE("&a a: 1", "r.yaml:1:4: a key takes neither anchor nor tag");
    REFUSE("a: !!int x", "r.yaml:1:4: the value is not what its tag !!int says");
    REFUSE("a: !!python/tuple [1]", "r.yaml:1:4: unknown tag; plain values need none, remove it");
}

static void aliases_are_copies(void **state)
{
    expect_json("a: &x {p: 1}\nb: *x\nc: [*x, *x]\n",
                "{\"a\":{\"p\":1},\"b\":{\"p\":1},\"c\":[{\"p\":1},{\"p\":1}]}");
    REFUSE("a: *b", "r.yaml:1:5: alias *b has no anchor &b before it");
}

static void merge_keys_yield_to_what_is_written(void **state)
{
    expect_json("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\nc: *x\n",
                "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"p\":1,\"q\":3},\"c\":{\"p\":1,\"q\":2}}");
    expect_json("m: {<<: [{a: 1, b: 2}, {b: 3, c: 4}]}", "{\"m\":{\"c\":4,\"a\":1,\"b\":2}}");
    expect_json("\"<<\": 1", "{\"<<\":1}");
    REFUSE("<<: 3", "r.yaml:1:1: << takes a mapping or a list of mappings");
    REFUSE("{<<: {}, <<: {}}", "r.yaml:1:14: a second << in one mapping; write << : [*a, *b]");
}

static void cycles_are_refused(void **state)
{
    REFUSE("a: &x [1, *x]",
           "r.yaml:1:12: alias *x contains itself; a configuration cannot be endless");
}

static void expansion_is_bounded(void **state)
{
    REFUSE("a: &a [x,x,x,x,x,x,x,x,x,x]\n"
           "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
           "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
           "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
           "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
           "r.yaml:5:9: more than 20000 values, aliases expanded; simplify the file");
}

static void depth_is_limited(void **state)
{
    char text[201];
    memset(text, '[', 100);
    memset(text + 100, ']', 100);
    refuse_text(text, 200, "r.yaml:1:65: nested more than 64 levels deep");
    /* Depth gained by copying counts too. */
    memset(text, 0, sizeof text);
    snprintf(text, sizeof text, "[&x %.*s%.*s, %.*s*x%.*s]", 40,
             "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 40,
             "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", 30, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 30,
             "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
    refuse_text(text, strlen(text), "r.yaml:1:118: nested more than 64 levels deep");
}

static void duplicate_keys_are_refused(void **state)
{
    REFUSE("a: 1\nb: 2\na: 3\n", "r.yaml:3:1: key \"a\" appears twice in one mapping; remove one");
}

static void errors_name_place(void **state)
{
    REFUSE("a: [1, 2\n", "r.yaml:2:1: flow sequence without a closing bracket");
    REFUSE("a:\n\tb: 1\n", "r.yaml:2:1: tab character may not be used as indentation");
    REFUSE("a: b: c\n", "r.yaml:1:5: invalid nested block mapping on the same line");
    REFUSE("? [1]\n: 2\n", "r.yaml:1:3: a key must be plain text, not a list, mapping or alias");
    REFUSE(": 1\n", "r.yaml:1:1: a key is missing before ':'");
    REFUSE("a: 1\n---\nb: 2\n",
           "r.yaml:2:1: a second document begins; one file holds one configuration");
    REFUSE("a: 1\nb: \xff\n", "r.yaml:2: invalid UTF-8; convert the file to UTF-8");
    REFUSE("a: \0", "r.yaml:1: a NUL byte; this is not a text file");
    REFUSE("a: 'x\n", "r.yaml:1:5: single-quoted scalar without closing quote");
}

static void size_is_limited(void **state)
{
    size_t n = TP_YAML_MAX_BYTES + 1;
    char *text = test_malloc(n);
    memset(text, ' ', n);
    refuse_text(text, n, "r.yaml: 4194305 bytes is more than the 4194304 a configuration may have");
    test_free(text);
}

static void empty_texts_are_null(void **state)
{
    assert_int_equal(parse("")->type, TP_JSON_NULL);
    assert_int_equal(parse("# nothing\n")->type, TP_JSON_NULL);
    assert_int_equal(parse("---\n...\n")->type, TP_JSON_NULL);
}

static void members_have_the_line_of_their_key(void **state)
{
    const tp_json *root = parse("a:\n  b: 1\n  c:\n    - x\n    - y\n");
    const tp_json *a = tp_json_get(root, "a");

    assert_int_equal(a->line, 1);
    assert_int_equal(tp_json_get(a, "b")->line, 2);
    assert_int_equal(tp_json_get(a, "c")->line, 3);
    assert_int_equal(tp_json_at(tp_json_get(a, "c"), 1)->line, 5);
}

static void one_plain_scalar_is_read_alone(void **state)
{
    const tp_json *v = NULL;
    assert_int_equal(tp_yaml_parse_plain(&arena, "x", "1e-5", &v, NULL), TP_OK);
    assert_int_equal(v->type, TP_JSON_NUMBER);
    assert_int_equal(tp_yaml_parse_plain(&arena, "x", "a: [b #c", &v, NULL), TP_OK);
    assert_string_equal(tp_json_str(v), "a: [b #c");
    assert_int_equal(tp_yaml_parse_plain(&arena, "x", "010", &v, NULL), TP_OK);
    assert_string_equal(tp_json_str(v), "010");
    assert_int_equal(tp_yaml_parse_plain(&arena, "x", "-.5e3", &v, NULL), TP_OK);
    assert_int_equal(v->type, TP_JSON_NUMBER);
    assert_int_equal(tp_yaml_parse_plain(&arena, "x", "off", &v, NULL), TP_OK);
    assert_string_equal(tp_json_str(v), "off");
    assert_int_equal(tp_yaml_parse_plain(&arena, "x", "~", &v, NULL), TP_OK);
    assert_int_equal(v->type, TP_JSON_NULL);
}

static const char *remark(void *context, const tp_json *leaf)
{
    return leaf->line > 1 ? context : NULL;
}

static void trees_are_written_for_every_yaml_version(void **state)
{
    tp_buf out = {0};
    const tp_json *root = parse("a: 'yes'\n"
                                "b: {c: 1e-5, d: 5e5, e: .inf, f: -7, g: '010'}\n"
                                "h: [1, 2.50, x, null]\n"
                                "i: [[1, 2], {k: v, l: [m]}, []]\n"
                                "j: \"two\\nlines\\u0085\\u2028\"\n"
                                "'12': ''\n"
                                "'key: x': {}\n"
                                "l: '\?\?\?'\n");

    tp_yaml_write_remarked(root, &out, remark, "from\nr.yaml");

    assert_string_equal(out.data, "a: \"yes\"\n"
                                  "b:\n"
                                  "  c: 1.0e-5  # from?r.yaml\n"
                                  "  d: 5.0e+5  # from?r.yaml\n"
                                  "  e: .inf  # from?r.yaml\n"
                                  "  f: -7  # from?r.yaml\n"
                                  "  g: \"010\"  # from?r.yaml\n"
                                  "h: [1, 2.50, x, null]  # from?r.yaml\n"
                                  "i:\n"
                                  "  - [1, 2]  # from?r.yaml\n"
                                  "  - k: v  # from?r.yaml\n"
                                  "    l: [m]  # from?r.yaml\n"
                                  "  - []  # from?r.yaml\n"
                                  "j: \"two\\nlines\\u0085\\u2028\"  # from?r.yaml\n"
                                  "\"12\": \"\"  # from?r.yaml\n"
                                  "\"key: x\": {}  # from?r.yaml\n"
                                  "l: \"\?\?\?\"  # from?r.yaml\n");
    tp_buf_release(&out);
}

static void what_is_written_reads_back(void **state)
{
    const char *text =
        "a: [[[1]], [{x: [{}, []]}]]\nb: \"\\0\\a \\xa0\\uFEFF\"\nc: {d: {e: {f: g}}}\n";
    tp_buf once = {0}, twice = {0};

    tp_yaml_write_remarked(parse(text), &once, NULL, NULL);
    tp_yaml_write_remarked(parse(once.data), &twice, NULL, NULL);

    assert_string_equal(once.data, twice.data);
    assert_non_null(strstr(once.data, "b: \"\\u0000\\u0007 \\u00a0\\ufeff\"\n"));
    tp_buf_release(&once);
    tp_buf_release(&twice);
}

static void long_keys_are_written_as_complex_ones(void **state)
{
    tp_buf text = {0}, out = {0};
    tp_buf_adds(&text, "{\"");
    for (int i = 0; i < 2000; i++)
        tp_buf_addc(&text, 'k');
    tp_buf_adds(&text, "\": [1]}");
    const tp_json *root = NULL;
    assert_int_equal(tp_json_parse(&arena, "t", text.data, text.len, NULL, &root, NULL), TP_OK);

    tp_yaml_write_remarked(root, &out, NULL, NULL);

    assert_int_equal(tp_json_get(parse(out.data), root->child->key.data)->n, 1);
    tp_buf_release(&text);
    tp_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_and_flows_become_a_tree),
        cmocka_unit_test(plain_scalars_follow_the_core_schema),
        cmocka_unit_test(the_old_version_is_read_as_pyyaml_does),
        cmocka_unit_test(what_two_versions_read_in_two_ways_is_refused),
        cmocka_unit_test(quoted_and_block_scalars_are_strings),
        cmocka_unit_test(an_empty_block_takes_nothing_of_what_follows),
        cmocka_unit_test(tags_may_state_what_is_the_case),
        cmocka_unit_test(aliases_are_copies),
        cmocka_unit_test(merge_keys_yield_to_what_is_written),
        cmocka_unit_test(cycles_are_refused),
        cmocka_unit_test(expansion_is_bounded),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(duplicate_keys_are_refused),
        cmocka_unit_test(errors_name_place),
        cmocka_unit_test(size_is_limited),
        cmocka_unit_test(empty_texts_are_null),
        cmocka_unit_test(members_have_the_line_of_their_key),
        cmocka_unit_test(one_plain_scalar_is_read_alone),
        cmocka_unit_test(trees_are_written_for_every_yaml_version),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(long_keys_are_written_as_complex_ones),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
