#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "base/rng.h"
#include "engine/reward/number.h"

typedef struct {
    const char *text, *value; /* value: NULL when there is no number */
} sample;

static void expect_last(const sample *s)
{
    tp_number v;
    char text[TP_RATIONAL_TEXT];
    bool found = tp_number_last(tp_slice_of(s->text), &v);
    if (!s->value) {
        if (found)
            fail_msg("'%s' has a number", s->text);
        return;
    }
    if (!found)
        fail_msg("'%s' has no number", s->text);
    tp_number_text(&v, text);
    if (strcmp(text, s->value) != 0)
        fail_msg("'%s' gives %s, not %s", s->text, text, s->value);
}

static void the_last_number_of_a_text(void **state)
{
    static const sample samples[] = {
        {"The answer is 42.", "42"},
        {"so 16 - 3 - 4 = 9 eggs", "9"},
        {"She makes $18 every day.", "18"},
        {"$1,234,567", "1234567"},
        {"1,234,567.89 dollars", "123456789/100"},
        {"3,4", "4"},
        {"1,23", "23"},
        {"1,2345", "2345"},
        {"1{,}000", "1000"},
        {"-7", "-7"},
        {"−7", "-7"},
        {"-$5.50", "-11/2"},
        {"$-5", "-5"},
        {"+3", "3"},
        {"10-5", "5"},
        {"x = -5", "-5"},
        {"(-5)", "-5"},
        {"GPT-4", "4"},
        {"答案：-5", "-5"},
        {"答案为-5", "-5"},
        {"คือ-5", "-5"},
        {"“-5”", "-5"},
        {"x≈-5", "-5"},
        {"→-5", "-5"},
        {"➡️-5", "-5"},
        {"≈–5", "-5"},
        {"\\text{is}-5", "-5"},
        {"5\\text{ cm}-3", "3"},
        {"\\frac{a}-5", "5"},
        {"é-5", "5"},
        {"e\u0301-5", "5"},
        {"ответ-5", "5"},
        {"90°-5", "5"},
        {"2²-5", "5"},
        {"（3）-5", "5"},
        {"1–3", "3"},
        {"10 - 5", "5"},
        {".5", "1/2"},
        {"5.", "5"},
        {"0.50", "1/2"},
        {"007", "7"},
        {"3/4", "3/4"},
        {"6 / 8", "3/4"},
        {"3/0", NULL},
        {"1/0", NULL},
        {"5 or 1/0", "5"},
        {"\\frac{1}{0}", NULL},
        {"1\\frac{1}{0}", NULL},
        {"1.000.000", "1000000"},
        {"1.234.567", "1234567"},
        {"-1.234.567 dollars", "-1234567"},
        {"1 000", "1000"},
        {"1 000 500", "1000500"},
        {"100 200", "200"},
        {"1_000", "1000"},
        {"10_2", "2"},
        {"1'000", "1000"},
        {"1\\,000", "1000"},
        {"1~100", "100"}, /* a range */
        {"$3,\\!250$ ways", "3250"},
        {"900,\\!000,\\!000", "900000000"},
        {"11,\\! 111,\\! 111", "11111111"},
        {"111, \\! 111, \\! 111", "111111111"},
        {"\\$16,\\!386.16", "409654/25"},
        {"\\frac{12}{5,\\!525}", "12/5525"},
        {"1\xe2\x80\xaf"
         "234",
         "1234"},
        {"1,00", NULL},
        {"7, or 1,00", "7"},
        {"1.000,50", NULL},
        {"1.125,2.5", "5/2"},
        {"1.000.00", NULL},
        {"-1.2.3", NULL},
        {"10.0.0.1", NULL},
        {"12.05.2024", NULL},
        {"1,0,5", "5"},
        {"0,245", NULL},
        {"-0,245,100", NULL},
        {"0\\,245", NULL},
        {"5 or 0,245", "5"},
        {"0.5,100", "100"},
        {"3/4/2021", "2021"},
        {"1 1/2 cups", "3/2"},
        {"2½", "5/2"},
        {"¾", "3/4"},
        {"\\frac{3}{4}", "3/4"},
        {"\\dfrac{6}{8}", "3/4"},
        {"\\frac12", "1/2"},
        {"-\\frac{1}{2}", "-1/2"},
        {"1\\frac{1}{2}", "3/2"},
        {"12%", "3/25"},
        {"2.5e3", "2500"},
        {"1e-2", "1/100"},
        {"6.02 \\times 10^{23}", "602000000000000000000000"},
        {"3 x 10^2", "300"},
        {"3 x 4", "4"},
        {"5e", "5"},
        {"5kg", "5"},
        {"€20", "20"},
        {"£3.20", "16/5"},
        {"no numbers here", NULL},
        {"", NULL},
        {"-", NULL},
        {"$", NULL},
        {"...", NULL},
        {"\\frac{a}{b}", NULL},
        {"1 2", "2"},
        {"The result: 1,000,000", "1000000"},
        {"99999999999999999999999999999999999999", "99999999999999999999999999999999999999"},
    };
    for (size_t i = 0; i < TP_COUNTOF(samples); i++)
        expect_last(&samples[i]);
}

static void a_number_and_nothing_else(void **state)
{
    static const struct {
        const char *text;
        bool is_one;
    } samples[] = {
        {"42", true},
        {" 42 ", true},
        {"42.", true},
        {"$42", true},
        {"42 apples", true},
        {"x = 42", true},
        {"42\\text{ km}", true},
        {"90^\\circ", true},
        {"12\\%", true},
        {"12 percent", true},
        {"5kg", true},
        {"**42**", true},
        {"\\frac{1}{2}", true},
        {"2x", false},
        {"3i", false},
        {"x2", false},
        {"\\sqrt{2}", false},
        {"2\\pi", false},
        {"2^3", false},
        {"(1, 2)", false},
        {"2π", false},
        {"√2", false},
        {"±2", false},
        {"2²", false},
        {"≥2", false},
        {"≠ 2", false},
        {"2‰", false},
        {"2∞", false},
        {"minus 2", false},
        {"2pi", false},
        {"(5)", true},
        {" (-5) ", true},
        {"(5)(6)", false},
        {"7 i", false},
        {"$7 i$", false},
        {"-3\\, x", false},
        {"2{x}", false},
        {"{2}x", false},
        {"2\\mathbf{j}", false},
        {"2\\mathrm{i}", false},
        {"20 x y", false},
        {"12 m^{2} n", false},
        {"3s^2", false},
        {"m^{2}", false},
        {"\\text{cm}^2", false},
        {"\\frac{1}{2}^2", false},
        {"{5}^2", false},
        {"5 a", false},
        {"6m", true},
        {"-3 m", true},
        {"$22.1cm^{2}$", true},
        {"2.5 \\mathrm{~m}", true},
        {"2.5 \\mathrm{~m}^2", true},
        {"$5 a day", true},
        {"7 o'clock", true},
        {"5 p.m.", true},
        {"9 (apples)", true},
        {"9 (years old)", true},
        {"9 (t-shirts)", true},
        {"9 (g)", true},
        {"9 (x)", false},
        {"9 (pi)", false},
        {"9 (2 x)", false},
        {"9(apples)", false},
        {"(2,100)", false},
        {"(2,100).", false},
        {"$ (2,100) $", false},
        {"\xef\xbc\x88"
         "2,100\xef\xbc\x89",
         false},
        {"(-2, -100)", false},
        {"($2,100)", true},
        {"(1,234 dollars)", true},
        {"(about 1,500 people)", true},
        {"5 T\xe2\x80\x91shirts", true},
        {"5 X\xe2\x80\x90rays", true},
        {"5 D batteries", true},
        {"5 R in strawberry", true},
        {"5 a  day", true},
        {"5 a\xc2\xa0"
         "day",
         true},
        {"5 a **day**", true},
        {"5 a \"day\"", true},
        {"5 D", false},
        {"5 X Y", false},
        {"5 y z", false},
        {"\\left(2,251,252\\right)", false},
        {"(2{,}100)", true},
        {"f(5)", false},
        {"4!", false},
        {"4!!", false},
        {"{4}!", false},
        {"42 apples!", true},
        {"2 pints", true},
        {"–2", true},
        {"5 м", true},
        {"答案是 42。", true},
        {"“42”", true},
        {"90°", true},
        {"≈ 42", true},
        {"42 ✅", true},
        {"\\frac{-1}{2}", true},
        {"12\\text{ km/h}", true},
        {"12\\text{ m/s}", true},
        {"12\\text{ cm}^2", true},
        {"12\\,\\mathrm{cm}^{3}", true},
        {"\\$4\\text{/hour}", true},
        {"\\left(5\\right)", true},
        {"\\left(-5\\right)", true},
        {"12x^2", false},
        {"\\left(5\\right)^2", false},
        {"\\text{2 or 3}", false},
        {"1+1", false},
        {"1 or 2", false},
        {"apples", false},
        {"", false},
    };
    for (size_t i = 0; i < TP_COUNTOF(samples); i++) {
        tp_number v;
        if (tp_number_only(tp_slice_of(samples[i].text), &v) != samples[i].is_one)
            fail_msg("'%s' is %sone number", samples[i].text, samples[i].is_one ? "not " : "");
    }
}

static void words_around_a_number(void **state)
{
    static const sample samples[] = {
        {"42 apples in all, or 6 for each", "42"},
        {"11 apples in 2 boxes.", "11"},
        {"It is 11 apples!", "11"},
        {"**11** of the 20-year-olds", "11"},
        {"60 miles/hour", "60"},
        {"60 km/h", "60"},
        {"60 m/s", "60"},
        {"$60/hour", "60"},
        {"$60 / hour", "60"},
        {"60 (km/h)", "60"},
        {"60 m²", "60"},
        {"60 cm^2", "60"},
        {"60 ft^{3}", "60"},
        {"60 μg", "60"},
        {"60 - done", "60"},
        {"60 [units]", "60"},
        {"60 minutes (1 hour)", "60"},
        {"60 (not 50)", "60"},
        {"60 in 2024", "60"},
        {"60 at 5 pm", "60"},
        {"60 g of CO2", "60"},
        {"11 (all of them)", "11"},
        {"11 T-shirts", "11"},
        {"11 a day", "11"},
        {"11 d’eau", "11"},
        {"11 pêches", "11"},
        {"9.8 m/s^2", "49/5"},
        {"一共11个苹果，每个盒子2个", "11"},
        {"2x+1", NULL},
        {"3x", NULL},
        {"2+3", NULL},
        {"57^2", NULL},
        {"57 x^2", NULL},
        {"3 m^4", NULL},
        {"(3)^2", NULL},
        {"12/h", NULL},
        {"5 and 7", NULL},
        {"3 * 4", NULL},
        {"3**2", NULL},
        {"1,2,3,4,5", NULL},
        {"5 or 7", NULL},
        {"16 and -16", NULL},
        {"3 times 4", NULL},
        {"12 hours 30 minutes", NULL},
        {"[3,4]", NULL},
        {"(3, 4)", NULL},
        {"(5)^2", NULL},
        {"f(5)", NULL},
        {"2(x)", NULL},
        {"2 x in all", NULL},
        {"(2,100)", NULL},
        {"(2,100).", NULL},
        {"the point (2,100)", NULL},
        {"(x, y) = (2,100)", NULL},
        {"5 a/day", "5"},
        {"5 a (day)", "5"},
        {"5 B students", "5"},
        {"60 minutes (1,000 at most)", "60"},
        {"x>4", NULL},
        {"|2-5|", NULL},
        {"-x = 5", NULL},
        {"5 - x", NULL},
        {"2/x", NULL},
        {"7:30", NULL},
        {"4!", NULL},
        {"10_2", NULL},
        {"2 \\times 3", NULL},
        {"no number at all", NULL},
    };
    for (size_t i = 0; i < TP_COUNTOF(samples); i++) {
        tp_number v;
        char text[TP_RATIONAL_TEXT] = "none";
        if (tp_number_in_words(tp_slice_of(samples[i].text), &v))
            tp_number_text(&v, text);
        if (strcmp(text, samples[i].value ? samples[i].value : "none") != 0)
            fail_msg("'%s' gives %s", samples[i].text, text);
    }
}

static bool equal(const char *a, const char *b, double absolute, double relative)
{
    tp_number x, y;
    assert_true(tp_number_last(tp_slice_of(a), &x));
    assert_true(tp_number_last(tp_slice_of(b), &y));
    return tp_number_equal(&x, &y, absolute, relative);
}

static void equality_is_exact(void **state)
{
    assert_true(equal("0.5", "1/2", 0, 0));
    assert_true(equal("1,000", "1000.00", 0, 0));
    assert_true(equal("0.1", "1/10", 0, 0));
    assert_true(equal("\\frac{-1}{2}", "-1/2", 0, 0));
    assert_true(equal("\\frac{1}{-2}", "-\\frac{1}{2}", 0, 0));
    assert_true(equal("–5", "-5", 0, 0)); /* U+2013 */
    assert_false(equal("–5", "5", 0, 0));
    assert_false(equal("0.3333", "1/3", 0, 0));
    assert_false(equal("9007199254740993", "9007199254740992", 0, 0));
    assert_true(equal("1e400", "1e400", 0, 0));
    assert_false(equal("123456789012345678901234567890123456789012345",
                       "123456789012345678901234567890123456789012346", 0, 0));
    assert_true(equal("123456789012345678901234567890123456789012345",
                      "123456789012345678901234567890123456789012345.0", 0, 0));
    assert_false(equal("5", "-5", 0, 0));
}

static void equality_within_a_tolerance(void **state)
{
    assert_true(equal("0.3333", "1/3", 1e-4, 0));
    assert_false(equal("0.3333", "1/3", 1e-6, 0));
    assert_true(equal("1001", "1000", 0, 1e-3));
    assert_false(equal("1002", "1000", 0, 1e-3));
}

static void what_no_double_holds(void **state)
{
    tp_number v;
    assert_false(equal("1e400", "0", 1e-6, 0));
    assert_false(equal("-1e400", "1e400", 1e-6, 1e-6));
    assert_false(equal("1e400", "2e400", 0, 0));
    assert_true(tp_number_only(tp_slice_of("1e-310"), &v));
    assert_false(tp_number_only(tp_slice_of("6/1e-310"), &v)); /* it would be infinite */
}

static void percent_signs(void **state)
{
    assert_true(equal("12%", "12", 0, 0));
    assert_true(equal("12%", "0.12", 0, 0));
    assert_true(equal("0.12", "12%", 0, 0));
    assert_true(equal("12%", "12%", 0, 0));
    assert_false(equal("12%", "0.12%", 0, 0));
    assert_false(equal("12%", "1200", 0, 0));
}

static void rationals_refuse_what_does_not_fit(void **state)
{
    tp_rational r = {5, 1}, big = {(tp_int128)1 << 100, 1}, zero = {0, 1};

    assert_false(tp_rational_mul(big, big, &r));
    assert_false(tp_rational_div(big, zero, &r));
    assert_false(tp_rational_make(1, 0, &r));
    assert_true(r.num == 5 && r.den == 1);

    assert_true(tp_rational_make(6, -8, &r));
    assert_true(r.num == -3 && r.den == 4);
    assert_true(tp_rational_mul(big, (tp_rational){1, (tp_int128)1 << 99}, &r));
    assert_true(r.num == 2 && r.den == 1);
}

/* Any decimal that is printed is read back as itself, wherever it stands. */
static void printed_numbers_are_read_back(void **state)
{
    tp_rng rng = tp_rng_make(1, 2);
    for (int i = 0; i < 2000; i++) {
        int64_t whole = (int64_t)tp_rng_below(&rng, 2000000) - 1000000;
        unsigned cents = (unsigned)tp_rng_below(&rng, 100);
        char text[100], expected[TP_RATIONAL_TEXT], got[TP_RATIONAL_TEXT];
        snprintf(text, sizeof text, "it costs %s%lld.%02u dollars", whole < 0 ? "-" : "",
                 (long long)(whole < 0 ? -whole : whole), cents);
        tp_rational r;
        tp_int128 size = (tp_int128)(whole < 0 ? -whole : whole) * 100 + cents;
        assert_true(tp_rational_make(whole < 0 ? -size : size, 100, &r));
        tp_rational_text(r, expected);
        tp_number v;
        assert_true(tp_number_last(tp_slice_of(text), &v));
        tp_number_text(&v, got);
        assert_string_equal(got, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_number_of_a_text),
        cmocka_unit_test(a_number_and_nothing_else),
        cmocka_unit_test(words_around_a_number),
        cmocka_unit_test(equality_is_exact),
        cmocka_unit_test(equality_within_a_tolerance),
        cmocka_unit_test(what_no_double_holds),
        cmocka_unit_test(percent_signs),
        cmocka_unit_test(rationals_refuse_what_does_not_fit),
        cmocka_unit_test(printed_numbers_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
