#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/strings.h"

static void buffers_grow_and_keep_a_nul(void **state)
{
    tp_buf buf = {0};
    assert_string_equal(tp_buf_str(&buf), "");
    tp_buf_adds(&buf, "one");
    tp_buf_addc(&buf, ' ');
    tp_buf_add(&buf, "two\0three", 9);
    tp_buf_add(&buf, NULL, 0);
    assert_int_equal(buf.len, 13);
    assert_memory_equal(buf.data, "one two\0three", 14);

    tp_buf_clear(&buf);
    assert_string_equal(tp_buf_str(&buf), "");
    for (int i = 0; i < 1000; i++)
        tp_buf_addf(&buf, "%d,", i);
    assert_int_equal(buf.len, 3890);
    assert_int_equal(strlen(buf.data), 3890);
    tp_buf_release(&buf);
    assert_null(buf.data);
    tp_buf_release(&buf);
    tp_buf_release(NULL);
}

static void long_formats_fit(void **state)
{
    tp_buf buf = {0};
    tp_buf_addf(&buf, "%*d|", 5000, 7);
    assert_int_equal(buf.len, 5001);
    assert_string_equal(buf.data + 4999, "7|");
    tp_buf_release(&buf);
}

static void slices_compare_by_content(void **state)
{
    assert_true(tp_slice_is(TP_SLICE("abc"), "abc"));
    assert_false(tp_slice_is(TP_SLICE("abc"), "abcd"));
    assert_false(tp_slice_is(TP_SLICE("abc"), "ab"));
    assert_true(tp_slice_eq((tp_slice){NULL, 0}, TP_SLICE("")));
    assert_int_equal(tp_slice_of("four").len, 4);
}

static void prefixes_and_suffixes(void **state)
{
    assert_true(tp_str_starts("fuse-swiglu", "fuse-"));
    assert_false(tp_str_starts("fus", "fuse"));
    assert_true(tp_str_starts("x", ""));
    assert_true(tp_str_ends("a.json", ".json"));
    assert_false(tp_str_ends("json", ".json"));
    assert_true(tp_str_ends("x", ""));
}

static void distances_count_edits(void **state)
{
    assert_int_equal(tp_str_distance("kitten", "sitting"), 3);
    assert_int_equal(tp_str_distance("", "abc"), 3);
    assert_int_equal(tp_str_distance("abc", ""), 3);
    assert_int_equal(tp_str_distance("same", "same"), 0);
    char longer[301];
    memset(longer, 'a', 300);
    longer[300] = 0;
    assert_int_equal(tp_str_distance(longer, "a"), 300); /* too long to look at */
}

static void whole_strings_are_numbers(void **state)
{
    int64_t i = 99;
    double d = 99;
    assert_true(tp_str_to_i64("-42", &i));
    assert_int_equal(i, -42);
    assert_true(tp_str_to_i64("9223372036854775807", &i));
    assert_true(i == INT64_MAX);
    assert_true(tp_str_to_f64("1e-3", &d));
    assert_true(d == 0.001);
    assert_true(tp_str_to_f64("1e-400", &d)); /* rounds to zero or a subnormal */

    i = 99;
    d = 99;
    static const char *const not_integers[] = {
        "", "-", "1.5", "1 ", "0x", "one", "9223372036854775808", "-9223372036854775809"};
    for (size_t k = 0; k < sizeof not_integers / sizeof *not_integers; k++)
        assert_false(tp_str_to_i64(not_integers[k], &i));
    static const char *const not_floats[] = {"", ".", "1.5x", "1e999", "-1e999", "e5"};
    for (size_t k = 0; k < sizeof not_floats / sizeof *not_floats; k++)
        assert_false(tp_str_to_f64(not_floats[k], &d));
    assert_int_equal(i, 99);
    assert_true(d == 99);
}

static void every_code_point_survives(void **state)
{
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        char text[4];
        uint32_t again = 0;
        size_t n = tp_utf8_encode(cp, text);
        bool is_valid = cp <= 0x10ffff && !(cp >= 0xd800 && cp < 0xe000);
        size_t got = tp_utf8_decode(text, n, &again);
        if (got != (is_valid ? n : 0) || (is_valid && again != cp))
            fail_msg("U+%04X", cp);
        if (is_valid && tp_utf8_decode(text, n - 1, &again) != 0)
            fail_msg("U+%04X cut off", cp);
    }
}

static void bad_utf8_is_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",             /* a continuation byte alone */
        "\xc0\x80",         /* overlong NUL */
        "\xc1\xbf",         /* overlong */
        "\xe0\x9f\xbf",     /* overlong */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xed\xa0\x80",     /* surrogate */
        "\xf4\x90\x80\x80", /* beyond U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3(",
        "\xe2\x82(",
        "\xe2(\xa1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(tp_utf8_valid(bad[i], strlen(bad[i])));
    assert_true(tp_utf8_valid("gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82", 11));
    assert_true(tp_utf8_valid("", 0));
    assert_true(tp_utf8_valid("a\0b", 3));
}

static void sizes_are_readable(void **state)
{
    char out[32];
    assert_string_equal(tp_human_bytes(0, out), "0 B");
    assert_string_equal(tp_human_bytes(1023, out), "1023 B");
    assert_string_equal(tp_human_bytes(1536, out), "1.50 KiB");
    assert_string_equal(tp_human_bytes(20.0 * 1024 * 1024, out), "20.0 MiB");
    assert_string_equal(tp_human_count(999, out), "999");
    assert_string_equal(tp_human_count(12345, out), "12.3 k");
    assert_string_equal(tp_human_count(124e6, out), "124 M");
    assert_string_equal(tp_human_count(999.4, out), "999");
    assert_string_equal(tp_human_count(999.6, out), "1 k"); /* what is rounded up has the next */
    assert_string_equal(tp_human_count(999700, out), "1 M");
    assert_string_equal(tp_human_seconds(5e-6, out), "5.0 us");
    assert_string_equal(tp_human_seconds(0.25, out), "250.0 ms");
    assert_string_equal(tp_human_seconds(12, out), "12.0 s");
    assert_string_equal(tp_human_seconds(65, out), "1m05s");
    assert_string_equal(tp_human_seconds(3700, out), "1h01m");
    assert_string_equal(tp_human_seconds(31806780, out), "368d03h");
    assert_string_equal(tp_human_seconds(-1, out), "unknown");
    assert_string_equal(tp_human_seconds((double)INFINITY, out), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_grow_and_keep_a_nul), cmocka_unit_test(long_formats_fit),
        cmocka_unit_test(slices_compare_by_content),   cmocka_unit_test(prefixes_and_suffixes),
        cmocka_unit_test(distances_count_edits),       cmocka_unit_test(whole_strings_are_numbers),
        cmocka_unit_test(every_code_point_survives),   cmocka_unit_test(bad_utf8_is_refused),
        cmocka_unit_test(sizes_are_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
