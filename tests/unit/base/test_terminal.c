/* Text of strangers on a terminal, and the filter in front of a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/terminal.h"

static void shown(const char *s, size_t n, bool one_line, const char *wanted)
{
    tp_buf out = {0};
    tp_buf_add_shown(&out, s, n, one_line);
    assert_string_equal(tp_buf_str(&out), wanted);
    tp_buf_release(&out);
}
#define SHOWN(text, wanted) shown((text), sizeof(text) - 1, false, (wanted))

static void what_a_terminal_obeys_is_spelled_out(void **state)
{
    (void)state;
    SHOWN("plain\ttext\n", "plain\ttext\n");
    SHOWN("a\x1b[31mb\x07", "a\\x1b[31mb\\x07");
    SHOWN("\r\b\x7f\0z", "\\r\\x08\\x7f\\x00z");
    SHOWN("\xc2\x80 \xc2\x9b \xc2\x9f \xc2\xa0", "\\u0080 \\u009b \\u009f \xc2\xa0");
    SHOWN("\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf",
          "\xe2\x80\xa9\\u202a\\u202e\xe2\x80\xaf");
    SHOWN("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
          "\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa");
    SHOWN("\xff\x9b \xc0\xaf \xed\xa0\x80", "\\xff\\x9b \\xc0\\xaf \\xed\\xa0\\x80");
    SHOWN("gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82");
    shown("a\nb\tc", 5, true, "a\\nb\\tc");
}

/* What arrives at a pipe of what `print` printed through a guarded standard output. */
/* Wherever it stands among eight bytes that are looked at together. */
static void one_byte_among_many_is_found(void **state)
{
    (void)state;
    static const struct {
        char byte;
        const char *wanted;
    } bytes[] = {
        {'\0', "\\x00"}, {0x1f, "\\x1f"},       {' ', " "},           {'~', "~"}, {0x7f, "\\x7f"},
        {'\n', "\n"},    {(char)0x80, "\\x80"}, {(char)0xff, "\\xff"}};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        for (size_t at = 0; at < 20; at++) {
            char text[21] = "aaaaaaaaaaaaaaaaaaaa", wanted[32];
            snprintf(wanted, sizeof wanted, "%.*s%s%.*s", (int)at, text, bytes[i].wanted,
                     (int)(19 - at), text);
            text[at] = bytes[i].byte;
            shown(text, 20, false, wanted);
        }
}

static void printed(void (*print)(void), tp_buf *ret)
{
    int ends[2];
    char chunk[4096];
    ssize_t n;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (!tp_terminal_guard())
            _exit(3);
        print();
        tp_terminal_end();
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], chunk, sizeof chunk)) > 0)
        tp_buf_add(ret, chunk, (size_t)n);
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void arrives(void (*print)(void), const char *wanted)
{
    tp_buf out = {0};
    printed(print, &out);
    assert_string_equal(tp_buf_str(&out), wanted);
    tp_buf_release(&out);
}

static void print_foreign(void)
{
    printf("%s%s%s\n", tp_style(TP_STYLE_BOLD), "kern\x1b[31m\xc2\x9b", tp_style(TP_STYLE_PLAIN));
    fflush(stdout);
    fprintf(stderr, "%s\n", "\x1b]0;title\x07");
}

static void styles_pass_and_foreign_sequences_do_not(void **state)
{
    (void)state;
    arrives(print_foreign, "\x1b[1mkern\\x1b[31m\\u009b\x1b[0m\n\\x1b]0;title\\x07\n");
}

static void print_piecemeal(void)
{
    const char *text[] = {tp_style(TP_STYLE_BOLD_RED), "\xe2\x82\xac", "\xc2\x9b", "z"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        for (const char *s = text[i]; *s; s++) {
            putchar(*s);
            fflush(stdout);
        }
}

static void a_character_or_a_style_may_come_in_pieces(void **state)
{
    (void)state;
    arrives(print_piecemeal, "\x1b[1;31m\xe2\x82\xac\\u009bz");
}

static void print_half(void) { printf("half \xe2\x82"); }

static void half_a_character_at_the_end_is_shown(void **state)
{
    (void)state;
    arrives(print_half, "half \\xe2\\x82");
}

static void print_guessed(void)
{
    char guess[32];
    snprintf(guess, sizeof guess, "\xff%016x%c", 0, 'a');
    printf("%s", guess);
}

static void a_guessed_style_is_text(void **state)
{
    (void)state;
    arrives(print_guessed, "\\xff0000000000000000a");
}

static void print_data(void)
{
    printf("\x1b");
    tp_terminal_pass_data();
    printf("\x1b\xff");
}

static void data_pass_where_there_is_no_terminal(void **state)
{
    (void)state;
    arrives(print_data, "\\x1b\x1b\xff");
}

static void print_much(void)
{
    for (int i = 0; i < 20000; i++)
        printf("\xe2\x82\xac");
}

static void buffers_end_anywhere(void **state)
{
    (void)state;
    tp_buf out = {0};
    printed(print_much, &out);
    assert_int_equal(out.len, 60000);
    for (size_t i = 0; i < out.len; i += 3)
        assert_memory_equal(out.data + i, "\xe2\x82\xac", 3);
    tp_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_terminal_obeys_is_spelled_out),
        cmocka_unit_test(one_byte_among_many_is_found),
        cmocka_unit_test(styles_pass_and_foreign_sequences_do_not),
        cmocka_unit_test(a_character_or_a_style_may_come_in_pieces),
        cmocka_unit_test(half_a_character_at_the_end_is_shown),
        cmocka_unit_test(a_guessed_style_is_text),
        cmocka_unit_test(data_pass_where_there_is_no_terminal),
        cmocka_unit_test(buffers_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
