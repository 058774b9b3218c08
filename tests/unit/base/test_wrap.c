/* Lines that are wider than the screen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/wrap.h"

static void wraps(const char *text, size_t room, const char *expected)
{
    tp_buf out = {0};
    tp_add_wrapped(&out, text, strlen(text), room);
    assert_string_equal(tp_buf_str(&out), expected);
    tp_buf_release(&out);
}

static void prose_is_broken_at_blanks(void **state)
{
    (void)state;
    wraps("one two three four\n", 10, "one two\n  three\n  four\n");
    wraps("  one two three\n", 10, "  one two\n    three\n");
    wraps("short\n\nlines\n", 10, "short\n\nlines\n");
    wraps("no end", 10, "no end");
    wraps("exactly 10\n", 10, "exactly 10\n");
}

static void text_behind_a_label_goes_on_under_itself(void **state)
{
    (void)state;
    wraps("peak   12 MiB of 24 MiB\n", 16, "peak   12 MiB of\n       24 MiB\n");
    wraps("A sentence.  Then two.\n", 14, "A sentence.\n  Then two.\n");
}

static void a_word_that_is_wider_stays_whole(void **state)
{
    (void)state;
    wraps("see /a/very/long/path here\n", 10, "see\n/a/very/long/path\nhere\n");
    wraps("/a/very/long/path\n", 10, "/a/very/long/path\n");
    wraps("label   word_of_14ch__ x\n", 16, "label\n  word_of_14ch__\n  x\n");
}

static void what_is_no_column_is_not_counted(void **state)
{
    (void)state;
    wraps("\033[1mone two\033[0m\n", 7, "\033[1mone two\033[0m\n");
    wraps("\033[1mone two\033[0m\n", 6, "\033[1mone\n  two\033[0m\n");
    wraps("\xc3\xa4\xc3\xb6\xc3\xbc \xe2\x82\xac\xe2\x82\xac\n", 6,
          "\xc3\xa4\xc3\xb6\xc3\xbc \xe2\x82\xac\xe2\x82\xac\n");
    assert_int_equal(tp_columns_of("\033[1;31m\xc3\xa4z\033[0m", 14), 2);
    assert_int_equal(tp_columns_skip("\xc3\xa4z", 3, 1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prose_is_broken_at_blanks),
        cmocka_unit_test(text_behind_a_label_goes_on_under_itself),
        cmocka_unit_test(a_word_that_is_wider_stays_whole),
        cmocka_unit_test(what_is_no_column_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
