#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/ingest/events.h"
#include "instrument/ingest/fields.h"

/* The text with the readable bytes behind it that the functions want. */
static const char *padded(const char *text)
{
    static char room[256];
    memset(room, 0, sizeof room);
    strcpy(room, text);
    return room;
}

static int64_t ns_of(const char *text, tp_field_result expected, bool decimals)
{
    int64_t v = -77;
    bool seen = false;
    assert_int_equal(tp_field_ns(padded(text), strlen(text), &v, &seen), expected);
    assert_int_equal(seen, decimals);
    return v;
}

static void microseconds_become_exact_nanoseconds(void **state)
{
    assert_int_equal(ns_of("0", TP_FIELD_OK, false), 0);
    assert_int_equal(ns_of("7", TP_FIELD_OK, false), 7000);
    assert_int_equal(ns_of("4458676522690.655", TP_FIELD_OK, true), 4458676522690655);
    assert_int_equal(ns_of("1711964646123456.789", TP_FIELD_OK, true), 1711964646123456789);
    assert_int_equal(ns_of("1711964646123456", TP_FIELD_OK, false), 1711964646123456000);
    assert_int_equal(ns_of("0.5", TP_FIELD_OK, true), 500);
    assert_int_equal(ns_of("22.25", TP_FIELD_OK, true), 22250);
    assert_int_equal(ns_of("-1.5", TP_FIELD_OK, true), -1500);
    assert_int_equal(ns_of("3367344.0", TP_FIELD_OK, true), 3367344000);
}

static void digits_below_a_nanosecond_are_cut_off(void **state)
{
    assert_int_equal(ns_of("1.0009", TP_FIELD_OK, true), 1000);
    assert_int_equal(ns_of("1.99999999999", TP_FIELD_OK, true), 1999);
    assert_int_equal(ns_of("-1.0009", TP_FIELD_OK, true), -1000);
}

static void exponents_move_the_point(void **state)
{
    assert_int_equal(ns_of("1e3", TP_FIELD_OK, true), 1000000);
    assert_int_equal(ns_of("1.682725897226747e+15", TP_FIELD_OK, true), 1682725897226747000);
    assert_int_equal(ns_of("2.5E-1", TP_FIELD_OK, true), 250);
    assert_int_equal(ns_of("9e-05", TP_FIELD_OK, true), 0);
    assert_int_equal(ns_of("1e-400", TP_FIELD_OK, true), 0);
}

static void times_beyond_64_bits_are_clamped(void **state)
{
    assert_int_equal(ns_of("9223372036854775.807", TP_FIELD_OK, true), INT64_MAX);
    assert_int_equal(ns_of("9223372036854775.808", TP_FIELD_CLAMPED, true), INT64_MAX);
    assert_int_equal(ns_of("99999999999999999999999", TP_FIELD_CLAMPED, false), INT64_MAX);
    assert_int_equal(ns_of("-99999999999999999999999", TP_FIELD_CLAMPED, false), -INT64_MAX);
    assert_int_equal(ns_of("1e300", TP_FIELD_CLAMPED, true), INT64_MAX);
}

static void what_is_no_number_is_none(void **state)
{
    static const char *const words[] = {"", "-", "nan", "null", "1x", ".5", "1e", "1e5x", "-.5"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        int64_t v;
        bool seen = false;
        assert_int_equal(tp_field_ns(padded(words[i]), strlen(words[i]), &v, &seen), TP_FIELD_NONE);
    }
}

static int64_t i64_of(const char *text)
{
    int64_t v;
    return tp_field_i64(padded(text), strlen(text), &v) == TP_FIELD_NONE ? TP_UNKNOWN : v;
}

static void whole_numbers_of_every_length(void **state)
{
    assert_int_equal(i64_of("1"), 1);
    assert_int_equal(i64_of("12345678"), 12345678);
    assert_int_equal(i64_of("123456789"), 123456789);
    assert_int_equal(i64_of("1234567890123456"), 1234567890123456);
    assert_int_equal(i64_of("12345678901234567"), 12345678901234567);
    assert_int_equal(i64_of("139926520725504"), 139926520725504);
    assert_int_equal(i64_of("-5177344"), -5177344);
    assert_int_equal(i64_of("9223372036854775807"), INT64_MAX);
    assert_int_equal(i64_of("18446744073709551615"), -1);
    assert_int_equal(i64_of("12.0"), 12);
    assert_int_equal(i64_of("0x1f"), 31);
    assert_int_equal(i64_of("0xffffffffffffffff"), -1);
    assert_int_equal(i64_of("1e3"), 1000);
    assert_int_equal(i64_of("N/A"), TP_UNKNOWN);
    assert_int_equal(i64_of("0x"), TP_UNKNOWN);
    assert_int_equal(i64_of("12345a"), TP_UNKNOWN);
}

static void any_number(void **state)
{
    assert_true(tp_field_f64(padded("0.3"), 3) == 0.3);
    assert_true(isinf(tp_field_f64(padded("inf"), 3)));
    assert_true(isnan(tp_field_f64(padded("N/A"), 3)));
    assert_true(isnan(tp_field_f64(padded(""), 0)));
}

static void escapes_resolve_and_odd_ones_stay(void **state)
{
    const char raw[] = "a\\\"b\\\\c\\n\\u00e9\\ud83d\\ude00\\ud800\\U\\x\\";
    char out[sizeof raw];
    uint64_t odd = 0;

    size_t n = tp_field_unescape((tp_slice){raw, sizeof raw - 1}, out, &odd);

    out[n] = 0;
    assert_string_equal(out, "a\"b\\c\n\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd\\U\\x\\");
    assert_int_equal(odd, 2);
}

static void compact_json_keeps_strings(void **state)
{
    const char raw[] = "[ 1,\n\t{\"a b\" : \"c \\\" d\"} ]";
    char out[sizeof raw];

    size_t n = tp_field_compact((tp_slice){raw, sizeof raw - 1}, out);

    out[n] = 0;
    assert_string_equal(out, "[1,{\"a b\":\"c \\\" d\"}]");
}

static void strings_have_one_number_each(void **state)
{
    tp_string_table t;
    tp_string_table_init(&t);
    char text[32];

    assert_int_equal(tp_string_add(&t, "", 0), 0);
    for (uint32_t i = 0; i < 5000; i++) {
        int n = snprintf(text, sizeof text, "name %u with some length", i * 7);
        assert_int_equal(tp_string_add(&t, text, (size_t)n), i + 1);
    }
    assert_int_equal(tp_string_add(&t, "name 49 with some length", 24), 8);
    assert_int_equal(tp_string_add(&t, "a\0b", 3), 5001);
    assert_int_equal(tp_string_add(&t, "a", 1), 5002);

    uint32_t id = 99;
    assert_true(tp_string_find(&t, "a\0b", 3, &id));
    assert_int_equal(id, 5001);
    assert_int_equal(tp_string_len(&t, id), 3);
    assert_false(tp_string_find(&t, "b", 1, &id));
    tp_string_table_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(microseconds_become_exact_nanoseconds),
        cmocka_unit_test(digits_below_a_nanosecond_are_cut_off),
        cmocka_unit_test(exponents_move_the_point),
        cmocka_unit_test(times_beyond_64_bits_are_clamped),
        cmocka_unit_test(what_is_no_number_is_none),
        cmocka_unit_test(whole_numbers_of_every_length),
        cmocka_unit_test(any_number),
        cmocka_unit_test(escapes_resolve_and_odd_ones_stay),
        cmocka_unit_test(compact_json_keeps_strings),
        cmocka_unit_test(strings_have_one_number_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
