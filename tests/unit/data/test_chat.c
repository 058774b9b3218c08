/* tests/data/chat/cases.json comes from jinja2 and transformers
 * (tools/reference/make_chat.py); what is written here shows limits and messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/files.h"
#include "base/platform.h"
#include "text/json/json.h"
#include "text/template/chat.h"

#define CASES TP_SOURCE_DIR "/tests/data/chat/cases.json"

static tp_arena arena;

static int open_arena(void **state) { return tp_arena_init(&arena, 256 << 20, NULL) != TP_OK; }

static int close_arena(void **state)
{
    tp_arena_release(&arena);
    return 0;
}

static const tp_json *context_of(const char *text)
{
    const tp_json *root = NULL;
    tp_error err = {0};
    if (tp_json_parse(&arena, "context", text, strlen(text), &TP_JSON_TOLERANT, &root, &err) !=
        TP_OK)
        fail_msg("%s", err.message);
    return root;
}

static tp_status render(const char *source, const tp_json *context,
                        const tp_template_limits *limits, tp_buf *out, tp_spans *spans,
                        tp_error *err)
{
    tp_template *t = NULL;
    tp_status status = tp_template_parse("t", source, strlen(source), &t, err);
    if (status == TP_OK)
        status = tp_template_render(t, context, limits, NULL, out, spans, err);
    tp_template_free(t);
    return status;
}

static void check(const char *source, const char *context, const char *expected)
{
    tp_buf out = {0};
    tp_error err = {0};
    if (render(source, context_of(context), NULL, &out, NULL, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_string_equal(tp_buf_str(&out), expected);
    tp_buf_release(&out);
}

static void refuse(const char *source, const tp_template_limits *limits, const char *message)
{
    tp_buf out = {0};
    tp_error err = {0};
    tp_status status = render(source, NULL, limits, &out, NULL, &err);
    assert_string_equal(err.message, message);
    assert_true(status == TP_ERR_FORMAT || status == TP_ERR_UNSUPPORTED);
    assert_int_equal(out.len, 0);
    tp_buf_release(&out);
}

/* --- the reference --- */

static int64_t local_seconds(const char *iso)
{
    struct tm tm = {0};
    assert_non_null(strptime(iso, "%Y-%m-%dT%H:%M:%S", &tm));
    return (int64_t)timegm(&tm);
}

static const tp_json *open_cases(void)
{
    tp_buf text = {0};
    const tp_json *root = NULL;
    tp_error err = {0};
    if (!tp_file_exists(CASES)) {
        print_message("%s is not there\n", CASES);
        skip();
    }
    if (tp_file_read(CASES, 0, &text, &err) != TP_OK ||
        tp_json_parse(&arena, CASES, text.data, text.len, NULL, &root, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&text);
    return root;
}

static void check_spans(const char *name, const tp_json *expected, const tp_spans *spans)
{
    size_t i = 0;
    if (expected->n != spans->n)
        fail_msg("%s: %zu spans instead of %zu", name, spans->n, expected->n);
    for (const tp_json *v = expected->child; v; v = v->next, i++) {
        int64_t begin = -1, end = -1;
        assert_true(tp_json_i64(tp_json_at(v, 0), &begin));
        assert_true(tp_json_i64(tp_json_at(v, 1), &end));
        if (spans->begin[i] != (size_t)begin || spans->end[i] != (size_t)end)
            fail_msg("%s: span %zu is [%zu, %zu) instead of [%lld, %lld)", name, i, spans->begin[i],
                     spans->end[i], (long long)begin, (long long)end);
    }
}

/* A case named "rare ..." may be one that Temper does not support, and says so. */
static bool is_allowed(const char *name, tp_status status)
{
    return status == TP_ERR_UNSUPPORTED && tp_str_starts(name, "rare ");
}

static bool run_case(const tp_json *root, const tp_json *v, const tp_template_limits *limits)
{
    const char *name = tp_json_str(tp_json_get(v, "name"));
    const tp_json *source = tp_json_get(v, "source"), *context = tp_json_get(v, "context");
    const tp_json *expected = tp_json_get(v, "expected"),
                  *spans = tp_json_get(v, "generation_bytes");
    const char *message = tp_json_str(tp_json_get(v, "error_message"));
    tp_template *t = NULL;
    tp_buf out = {0};
    tp_spans got = {0};
    tp_error err = {0};
    if (!source)
        source =
            tp_json_get(tp_json_get(root, "templates"), tp_json_str(tp_json_get(v, "template")));
    if (tp_json_str(context))
        context = tp_json_get(tp_json_get(root, "contexts"), tp_json_str(context));

    tp_status status = tp_template_parse("t", source->text.data, source->text.len, &t, &err);
    if (status == TP_OK)
        status = tp_template_render(t, context, limits, NULL, &out, spans ? &got : NULL, &err);

    bool supported = !is_allowed(name, status);
    if (!expected && status == TP_OK)
        fail_msg("%s: '%s' gives '%s' instead of an error", name, source->text.data,
                 tp_buf_str(&out));
    if (!expected && message && !strstr(err.message, message))
        fail_msg("%s: '%s' instead of '%s'", name, err.message, message);
    if (expected && supported && status != TP_OK)
        fail_msg("%s: '%s': %s", name, source->text.data, err.message);
    if (expected && supported && strcmp(tp_buf_str(&out), expected->text.data) != 0)
        fail_msg("%s: '%s' gives '%s' instead of '%s'", name, source->text.data, tp_buf_str(&out),
                 expected->text.data);
    if (spans)
        check_spans(name, spans, &got);
    tp_spans_release(&got);
    tp_buf_release(&out);
    tp_template_free(t);
    return supported;
}

static void templates_render_as_the_reference_does(void **state)
{
    const tp_json *root = open_cases(), *cases = tp_json_get(root, "cases");
    tp_template_limits limits = {.now = local_seconds(tp_json_str(tp_json_get(root, "now")))};
    size_t n_unsupported = 0;
    assert_true(cases && cases->n > 400);
    for (const tp_json *v = cases->child; v; v = v->next)
        n_unsupported += !run_case(root, v, &limits);
    print_message("%zu cases, %zu of them not supported\n", cases->n, n_unsupported);
    assert_int_equal(n_unsupported, 16);
}

/* --- this side --- */

static void an_empty_template_gives_nothing(void **state)
{
    check("", "{}", "");
    check("\n", "{}", "");
    check("{# c #}", "{}", "");
}

static void generation_blocks_are_marked_in_bytes(void **state)
{
    tp_spans spans = {0};
    tp_buf out = {0};
    tp_template *t = NULL;
    static const char source[] = "\xc3\xa9{% generation %}\xc3\xa9x{% endgeneration %}";
    assert_int_equal(tp_template_parse("t", source, sizeof source - 1, &t, NULL), TP_OK);
    assert_true(tp_template_has_generation(t));
    tp_buf_adds(&out, "before");

    assert_int_equal(tp_template_render(t, NULL, NULL, NULL, &out, &spans, NULL), TP_OK);

    assert_string_equal(out.data, "before\xc3\xa9\xc3\xa9x");
    assert_int_equal(spans.n, 1);
    assert_int_equal(spans.begin[0], 2); /* of what this call has added */
    assert_int_equal(spans.end[0], 5);
    tp_spans_release(&spans);
    tp_buf_release(&out);
    tp_template_free(t);
}

static void generation_within_a_macro_has_no_place(void **state)
{
    tp_spans spans = {0};
    tp_buf out = {0};
    tp_error err = {0};
    static const char source[] = "{% macro m() %}{% generation %}x{% endgeneration %}{% endmacro %}"
                                 "{{ m() }}";
    assert_int_equal(render(source, NULL, NULL, &out, &spans, &err), TP_ERR_UNSUPPORTED);
    assert_string_equal(err.message, "t:1: a {% generation %} block within a macro or set block "
                                     "has no known place in the text");
    assert_int_equal(render(source, NULL, NULL, &out, NULL, &err), TP_OK);
    assert_string_equal(tp_buf_str(&out), "x");
    tp_buf_release(&out);
}

static void errors_name_the_line(void **state)
{
    refuse("a\n{% if x %}\nb", NULL,
           "t:3: the template ends where '{% endif %}' is expected; the block began in line 2");
    refuse("{{ 1 }}\n{{ 'two\nlines' }}\n{{ , }}", NULL, "t:4: an expression is expected here");
    refuse("{#\n\n#}{{ x.y }}", NULL, "t:3: 'x' is undefined");
}

static void rendering_errors_say_what_is_missing(void **state)
{
    refuse("\n\n{{ messages[0].content }}", NULL, "t:3: 'messages' is undefined");
    refuse("{% set m = {} %}\n{{ m.a.b }}", NULL, "t:2: 'dict' object has no attribute 'a'");
    refuse("{{ [1][3].x }}", NULL, "t:1: 'list' object has no element '3'");
    refuse("{{ [].append(1) }}", NULL,
           "t:1: attribute 'append' of a 'list' is not allowed in "
           "templates");
    refuse("{{ 'a' + 1 }}", NULL, "t:1: '+' is not possible between 'str' and 'int'");
    refuse("{{ raise_exception('Roles must alternate') }}", NULL, "t:1: Roles must alternate");
    refuse("{{ 1 / 0 }}", NULL, "t:1: division by zero");
}

static void mistakes_in_the_source_are_refused(void **state)
{
    refuse("{{ x", NULL, "t:1: expected '}}', got 'the end of the template'");
    refuse("{{ x | nope }}", NULL, "t:1: there is no filter 'nope'");
    refuse("{{ x is nope }}", NULL, "t:1: there is no test 'nope'");
    refuse("{{ 'x }}", NULL, "t:1: a string without its closing quote");
    refuse("{{ (1] }}", NULL, "t:1: a closing bracket that does not match");
    refuse("{% include 'a' %}", NULL, "t:1: '{% include %}' is not supported");
    refuse("{% do x %}", NULL, "t:1: '{% do %}' is not expected here");
    refuse("{% break %}", NULL, "t:1: 'break' outside of a for loop");
    refuse("{{ 1 ? 2 }}", NULL, "t:1: unexpected character '?'");
    refuse("{{ \"\\u12\" }}", NULL, "t:1: a truncated \\x, \\u or \\U escape in a string");
    refuse("\xff", NULL, "t: the template is not valid UTF-8");
}

/* What jinja2 has and no published template uses is refused by its name, never approximated. */
static void what_no_template_uses_is_refused(void **state)
{
    refuse("{{ 'a'|center(9) }}", NULL, "t:1: filter 'center' is not supported");
    refuse("{{ 5|filesizeformat }}", NULL, "t:1: filter 'filesizeformat' is not supported");
    refuse("{{ [1]|batch(2)|list }}", NULL, "t:1: filter 'batch' is not supported");
    refuse("{{ cycler(1, 2) }}", NULL, "t:1: cycler() is not supported");
    refuse("{{ 'a'.casefold() }}", NULL, "t:1: attribute 'casefold' of a 'str' is not supported");
    refuse("\n{% for x in [1] recursive %}{% endfor %}", NULL,
           "t:2: a recursive loop is not supported");
    refuse("{% block a %}{% endblock %}", NULL, "t:1: '{% block %}' is not supported");
    refuse("{% filter upper %}a{% endfilter %}", NULL, "t:1: '{% filter %}' is not supported");
    refuse("{{ 'upper' is filter }}", NULL, "t:1: 'is filter' and 'is test' are not supported");
    refuse("{{ '%g'|format(1.5) }}", NULL, "t:1: filter 'format' is not supported");
    refuse("{{ '%x' % 255 }}", NULL, "t:1: '%' with 'x' is not supported");
    check("{{ '%s %05d %.2f' % ('a', 42, 1.5) }}", "{}", "a 00042 1.50");
}

static void output_is_bounded(void **state)
{
    tp_template_limits limits = {.max_output_bytes = 1000};
    refuse("{% for i in range(1001) %}x{% endfor %}", &limits,
           "t:1: the text becomes longer than 1000 bytes");
    refuse("{{ 'ab' * 501 }}", &limits, "t:1: the text becomes longer than 1000 bytes");
    refuse("{{ 'x'.ljust(3000000) }}", NULL, "t:1: a field wider than 1048576 characters");
    refuse("{{ '%2000000d' % 1 }}", NULL, "t:1: '%': a field wider than 1048576");
}

static void steps_are_bounded(void **state)
{
    tp_template_limits limits = {.max_iterations = 10000};
    refuse("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}", &limits,
           "t:1: rendering takes more than 10000 steps");
    refuse("{% set x = [0] * 1000000 %}", &limits, "t:1: rendering takes more than 10000 steps");
    refuse("{{ range(100001) }}", NULL, "t:1: range() of 100001 elements; 100000 is the limit");
}

static void memory_is_bounded(void **state)
{
    tp_template_limits limits = {.max_output_bytes = 1 << 20, .max_iterations = UINT64_MAX};
    refuse("{% set ns = namespace(l=[]) %}{% for i in range(100000) %}"
           "{% set ns.l = ns.l + [ns.l] %}{% endfor %}",
           &limits, "t:1: rendering needs more than 71303168 bytes of memory");
}

static void depth_is_bounded(void **state)
{
    tp_buf source = {0};
    refuse("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", NULL,
           "t:1: expressions, blocks and macros nest deeper than 400");
    refuse("{% set ns = namespace(l=[]) %}{% for i in range(200) %}"
           "{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
           NULL, "t:1: a value nested deeper than 100 cannot be printed");
    tp_buf_adds(&source, "{{ ");
    for (int i = 0; i < 100; i++)
        tp_buf_adds(&source, "[");
    refuse(tp_buf_str(&source), NULL, "t:1: expressions and blocks nest deeper than 64");
    tp_buf_clear(&source);
    for (int i = 0; i < 100; i++)
        tp_buf_adds(&source, "{% if x %}");
    refuse(tp_buf_str(&source), NULL, "t:1: expressions and blocks nest deeper than 64");
    tp_buf_clear(&source);
    tp_buf_adds(&source, "{{ x");
    for (int i = 0; i < 1000; i++)
        tp_buf_adds(&source, ".x");
    tp_buf_adds(&source, " }}");
    refuse(tp_buf_str(&source), NULL, "t:1: expressions, blocks and macros nest deeper than 400");
    tp_buf_release(&source);
}

static void long_chains_are_not_deep(void **state)
{
    tp_buf source = {0};
    tp_buf_adds(&source, "{{ 0");
    for (int i = 0; i < 5000; i++)
        tp_buf_adds(&source, " + 1");
    tp_buf_adds(&source, " }}");
    check(tp_buf_str(&source), "{}", "5000");
    tp_buf_clear(&source);
    tp_buf_adds(&source, "{{ 0");
    for (int i = 0; i < 5000; i++)
        tp_buf_adds(&source, " <= 0");
    tp_buf_adds(&source, " }}");
    check(tp_buf_str(&source), "{}", "True");
    tp_buf_release(&source);
}

static void numbers_are_read_whole_or_not_at_all(void **state)
{
    tp_buf source = {0};
    check("{{ 0x_1f }} {{ '0x_1f'|int(0, 16) }} {{ 1_000.5 }}", "{}", "31 31 1000.5");
    tp_buf_adds(&source, "{{ 0.");
    for (int i = 0; i < 500; i++)
        tp_buf_adds(&source, "1");
    tp_buf_adds(&source, " }}");
    refuse(tp_buf_str(&source), NULL, "t:1: a number of so many digits is not supported");
    tp_buf_release(&source);
}

static void an_argument_of_another_type_is_named(void **state)
{
    refuse("{{ 'a b'.split(1) }}", NULL, "t:1: split(): sep: a string is needed, not 'int'");
    refuse("{{ 1.5|round('a') }}", NULL, "t:1: round: precision: an integer is needed, not 'str'");
    refuse("{{ 'a'.ljust('b') }}", NULL, "t:1: ljust(): an integer is needed, not 'str'");
}

static void integers_stop_at_127_bits(void **state)
{
    check("{{ 2 ** 126 }} {{ n }}", "{\"n\": 123456789012345678901234567890}",
          "85070591730234615865843651857942052864 123456789012345678901234567890");
    refuse("{{ 2 ** 127 }}", NULL, "t:1: an integer beyond 127 bits is not supported");
    refuse("{{ 10 ** 30 * 10 ** 30 }}", NULL, "t:1: an integer beyond 127 bits is not supported");
}

/* What goes wrong in a filter is put off until its result is used: nothing is left half done. */
static void a_failure_that_is_put_off_leaves_no_trace(void **state)
{
    check("{% macro m(x) %}{{ x.y.z }}{% endmacro %}{% for i in [1, 2] if i < 2 or m(i) %}"
          "{% set g = [loop]|map('string') %}[{{ i }}]{% break %}{% endfor %}end",
          "{}", "[1]end");
}

static void a_part_of_a_range_is_a_range(void **state)
{
    check("{{ range(5)[::2] }} {{ range(5)[1:1] }} {{ range(5)[::-1] }} {{ range(5)[::100] }} "
          "{{ range(0, 5, 2)[:] }} {{ range(9)[2:][::3][1:]|list }} {{ 'abc'[::2 ** 90] }}",
          "{}",
          "range(0, 5, 2) range(1, 1) range(4, -1, -1) range(0, 5, 100) range(0, 6, 2) [5, 8] a");
    refuse("{{ range(1)[::2 ** 62][::2] }}", NULL, "t:1: a range beyond 63 bits is not supported");
}

static void what_has_no_elements_is_not_joined(void **state)
{
    check("{{ []|join(',', attribute='n') }}{{ nothing|join(',', attribute='n') }}"
          "{{ [{'n': 1}, {'n': 2}]|join(',', attribute='n') }}",
          "{}", "1,2");
    refuse("{{ 0|join(',', attribute='n') }}", NULL, "t:1: a 'int' cannot be iterated over");
    refuse("{{ none|join(attribute='n') }}", NULL, "t:1: a 'NoneType' cannot be iterated over");
}

static void a_caller_has_a_default(void **state)
{
    check("{% macro a(caller) %}a{% endmacro %}{% macro b(x, caller=2) %}{{ caller }}{% endmacro %}"
          "{{ a() }}{{ b(1) }}",
          "{}", "a2");
    refuse("{% macro x(caller) %}{{ caller }}{% endmacro %}", NULL,
           "t:1: the parameter 'caller' of a macro needs a default");
    refuse("{% call(caller) x() %}{{ caller }}{% endcall %}", NULL,
           "t:1: the parameter 'caller' of a macro needs a default");
}

static void ascii_ends_before_the_last_control(void **state)
{
    check("{{ s|tojson(ensure_ascii=true) }}{{ s|tojson }}", "{\"s\": \"\x7f~\"}",
          "\"\\u007f~\"\"\x7f~\"");
}

/* Values of a conversation cannot become template code. */
static void text_of_the_context_stays_text(void **state)
{
    check("{{ m }}|{{ m | length }}", "{\"m\": \"{{ 1 + 1 }}{% raw %}\"}",
          "{{ 1 + 1 }}{% raw %}|20");
}

static void a_failed_rendering_leaves_the_output(void **state)
{
    tp_buf out = {0};
    tp_error err = {0};
    tp_buf_adds(&out, "kept");
    assert_int_equal(render("abc{{ x.y }}", NULL, NULL, &out, NULL, &err), TP_ERR_FORMAT);
    assert_string_equal(tp_buf_str(&out), "kept");
    tp_buf_release(&out);
}

static void the_clock_is_the_machines_unless_given(void **state)
{
    char before[32], after[32];
    time_t now = time(NULL);
    tp_buf out = {0};
    strftime(before, sizeof before, "%Y-%m", localtime(&now));
    assert_int_equal(render("{{ strftime_now('%Y-%m') }}", NULL, NULL, &out, NULL, NULL), TP_OK);
    now = time(NULL);
    strftime(after, sizeof after, "%Y-%m", localtime(&now));
    assert_true(strcmp(tp_buf_str(&out), before) == 0 || strcmp(tp_buf_str(&out), after) == 0);
    tp_buf_clear(&out);
    tp_template_limits limits = {.now = 86400};
    assert_int_equal(render("{{ strftime_now('%d %b %Y') }}", NULL, &limits, &out, NULL, NULL),
                     TP_OK);
    assert_string_equal(tp_buf_str(&out), "02 Jan 1970");
    tp_buf_clear(&out);
    for (int i = 0; i < 10; i++) /* of a clock some are not 0 */
        assert_int_equal(render("{{ strftime_now('%f') }}", NULL, NULL, &out, NULL, NULL), TP_OK);
    assert_int_equal(out.len, 60);
    assert_true(strspn(out.data, "0") < 60);
    tp_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_render_as_the_reference_does),
        cmocka_unit_test(an_empty_template_gives_nothing),
        cmocka_unit_test(generation_blocks_are_marked_in_bytes),
        cmocka_unit_test(generation_within_a_macro_has_no_place),
        cmocka_unit_test(errors_name_the_line),
        cmocka_unit_test(rendering_errors_say_what_is_missing),
        cmocka_unit_test(mistakes_in_the_source_are_refused),
        cmocka_unit_test(what_no_template_uses_is_refused),
        cmocka_unit_test(output_is_bounded),
        cmocka_unit_test(steps_are_bounded),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(long_chains_are_not_deep),
        cmocka_unit_test(numbers_are_read_whole_or_not_at_all),
        cmocka_unit_test(an_argument_of_another_type_is_named),
        cmocka_unit_test(integers_stop_at_127_bits),
        cmocka_unit_test(a_failure_that_is_put_off_leaves_no_trace),
        cmocka_unit_test(a_part_of_a_range_is_a_range),
        cmocka_unit_test(what_has_no_elements_is_not_joined),
        cmocka_unit_test(a_caller_has_a_default),
        cmocka_unit_test(ascii_ends_before_the_last_control),
        cmocka_unit_test(text_of_the_context_stays_text),
        cmocka_unit_test(a_failed_rendering_leaves_the_output),
        cmocka_unit_test(the_clock_is_the_machines_unless_given),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
