/* test_error.c - a message is one line, a list has the lines that we gave it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/terminal.h"

static void what_is_quoted_stays_on_the_line(void **state)
{
    tp_error err = {0};
    assert_int_equal(tp_fail(&err, TP_ERR_CONFIG, "no '%s'", "a\n  data: ok\r\nb"), TP_ERR_CONFIG);
    assert_string_equal(err.message, "no 'a\\n  data: ok\\r\\nb'");
    assert_int_equal(tp_error_prefix(&err, TP_ERR_IO, "'%s': ", "x\n  y"), TP_ERR_CONFIG);
    assert_string_equal(err.message, "'x\\n  y': no 'a\\n  data: ok\\r\\nb'");
}

static void a_list_has_its_items(void **state)
{
    tp_error err = {0};
    assert_int_equal(tp_fail_list(&err, TP_ERR_IO, "2 faults:" TP_ERROR_ITEM "a" TP_ERROR_ITEM "b"),
                     TP_ERR_IO);
    (void)tp_error_prefix(&err, TP_ERR_IO, "%s: ", "f\ng");
    assert_string_equal(err.message, "f\\ng: 2 faults:\n  a\n  b");
    assert_int_equal(tp_fail_list(NULL, TP_ERR_IO, "a"), TP_ERR_IO);
}

static void what_is_too_long_is_cut(void **state)
{
    tp_error err = {0};
    char text[2 * sizeof err.message];
    memset(text, '\n', sizeof text - 1);
    text[sizeof text - 1] = 0;
    (void)tp_fail(&err, TP_ERR_IO, "%s", text);
    assert_in_range(strlen(err.message), sizeof err.message - 4, sizeof err.message - 1);
    assert_null(strchr(err.message, '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_quoted_stays_on_the_line),
        cmocka_unit_test(a_list_has_its_items),
        cmocka_unit_test(what_is_too_long_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
