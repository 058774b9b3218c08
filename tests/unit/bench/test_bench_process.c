#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/bench/command.h"
#include "instrument/bench/host.h"

static tp_process_usage run(const char *script, double timeout_s, size_t padding)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    tp_process_command command = {.argv = argv, .timeout_s = timeout_s, .padding = padding};
    tp_process_usage usage;
    assert_int_equal(tp_process_run(&command, &usage, NULL), TP_OK);
    return usage;
}

static void the_end_of_a_program_is_told_apart(void **state)
{
    assert_int_equal(run("exit 0", 0, 0).exit_status, 0);
    assert_int_equal(run("exit 7", 0, 0).exit_status, 7);
    tp_process_usage killed = run("kill -TERM $$", 0, 0);
    assert_int_equal(killed.signal, 15);
    assert_int_equal(killed.exit_status, -1);
}

static void a_timeout_ends_the_whole_group(void **state)
{
    tp_process_usage u = run("sleep 30 & sleep 30", 0.05, 0);
    assert_true(u.has_timed_out);
    assert_int_equal(u.signal, 9);
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
    const char *argv[] = {"/no/such/program", NULL};
    tp_process_command command = {.argv = argv};
    tp_process_usage usage;
    tp_error err = {0};
    assert_int_equal(tp_process_run(&command, &usage, &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "'/no/such/program' cannot be started"));
}

static void padding_moves_the_environment_and_nothing_else(void **state)
{
    assert_int_equal(run("test ${#TEMPER_BENCH_PADDING} = 1000", 0, 1000).exit_status, 0);
    assert_int_equal(run("test ${#TEMPER_BENCH_PADDING} = 0", 0, 0).exit_status, 0);
    assert_int_equal(run("test \"$(cat)\" = ''", 0, 0).exit_status, 0); /* input is empty */
}

static void time_and_memory_are_of_the_child(void **state)
{
    /* A shell variable of 40 MB. */
    tp_process_usage small = run("exit 0", 0, 0);
    tp_process_usage large = run("x=$(head -c 40000000 /dev/zero | tr '\\0' x); exit 0", 0, 0);
    assert_true(large.peak_bytes > small.peak_bytes + 30000000);
    assert_true(run("sleep 0.05", 0, 0).wall_ns >= 50000000);
}

static void output_is_read_and_limited_in_time(void **state)
{
    const char *argv[] = {"/bin/sh", "-c", "echo one; echo two; exit 3", NULL};
    tp_process_command command = {.argv = argv};
    tp_process_usage usage;
    tp_buf out = {0};
    assert_int_equal(tp_process_read(&command, 1 << 20, &out, &usage, NULL), TP_OK);
    assert_string_equal(out.data, "one\ntwo\n");
    assert_int_equal(usage.exit_status, 3);
    const char *slow[] = {"/bin/sh", "-c", "sleep 30", NULL};
    command = (tp_process_command){.argv = slow, .timeout_s = 0.05};
    assert_int_equal(tp_process_read(&command, 1 << 20, &out, &usage, NULL), TP_OK);
    assert_true(usage.has_timed_out);
    tp_buf_release(&out);
}

static void a_pipe_talks_line_by_line(void **state)
{
    const char *argv[] = {"/bin/sh", "-c", "while read x; do echo \"got $x\"; done", NULL};
    tp_process_command command = {.argv = argv};
    tp_pipe p;
    tp_buf line = {0};
    tp_error err = {0};
    assert_int_equal(tp_pipe_open(&command, &p, NULL), TP_OK);
    assert_int_equal(tp_pipe_send(&p, "a", NULL), TP_OK);
    assert_int_equal(tp_pipe_receive(&p, 600, &line, NULL), TP_OK);
    assert_string_equal(line.data, "got a");
    assert_int_equal(tp_pipe_send(&p, "b", NULL), TP_OK);
    assert_int_equal(tp_pipe_receive(&p, 600, &line, NULL), TP_OK);
    assert_string_equal(line.data, "got b");
    assert_int_equal(tp_pipe_receive(&p, 0.02, &line, &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "--timeout"));
    tp_pipe_close(&p);
    tp_pipe_close(&p); /* a second time is nothing */
    tp_buf_release(&line);
}

/* ---- commands ---- */

static void a_command_line_becomes_words_or_goes_to_a_shell(void **state)
{
    tp_arena arena;
    const char *const *argv;
    assert_int_equal(tp_arena_init(&arena, 1 << 20, NULL), TP_OK);
    const char *plain[] = {"  ls  -l /tmp"}, *shell[] = {"ls | wc"}, *words[] = {"ls", "a b"};
    const char *empty[] = {"  "};
    assert_int_equal(tp_command_words(&arena, plain, 1, &argv, NULL), TP_OK);
    assert_string_equal(argv[0], "ls");
    assert_string_equal(argv[2], "/tmp");
    assert_null(argv[3]);
    assert_int_equal(tp_command_words(&arena, shell, 1, &argv, NULL), TP_OK);
    assert_string_equal(argv[0], "/bin/sh");
    assert_string_equal(argv[2], "ls | wc");
    assert_int_equal(tp_command_words(&arena, words, 2, &argv, NULL), TP_OK);
    assert_string_equal(argv[1], "a b");
    assert_null(argv[2]);
    assert_int_equal(tp_command_words(&arena, empty, 1, &argv, NULL), TP_ERR_ARG);
    tp_arena_release(&arena);
}

static void a_command_that_fails_fails_the_benchmark(void **state)
{
    const char *argv[] = {"/bin/sh", "-c", "exit 3", NULL};
    tp_command_subject s;
    tp_bench_sample sample = {0};
    tp_error err = {0};
    tp_command_subject_init(&s, argv, &(tp_command_options){0});
    assert_int_equal(s.subject.class->run(&s.subject, 1, &sample, &err), TP_ERR_IO);
    assert_string_equal(err.message, "'/bin/sh' returned 3; --ignore-failure measures it anyway");
    tp_command_subject_init(&s, argv, &(tp_command_options){.allow_failure = true});
    assert_int_equal(s.subject.class->run(&s.subject, 1, &sample, &err), TP_OK);
    assert_true(sample.elapsed_ns > 0);
    assert_true(sample.values[1] > 0);
}

/* ---- the host ---- */

static void the_fingerprint_is_stable(void **state)
{
    tp_host a, b;
    tp_host_detect(&a);
    tp_host_detect(&b);
    assert_int_equal(strlen(a.fingerprint), 32);
    assert_string_equal(a.fingerprint, b.fingerprint);
    assert_true(a.processors >= 1);
    assert_true(a.cpu[0] && a.kernel[0] && a.governor[0] && a.gpu[0]);
    assert_null(strstr(a.kernel_series, "-"));
}

static void a_host_survives_its_json(void **state)
{
    tp_host a, b;
    tp_buf text = {0};
    tp_json_w w;
    tp_arena arena;
    const tp_json *root;
    tp_host_detect(&a);
    tp_json_w_init(&w, &text, 2);
    tp_host_write(&a, &w);
    assert_int_equal(tp_arena_init(&arena, 1 << 20, NULL), TP_OK);
    assert_int_equal(tp_json_parse(&arena, "host", text.data, text.len, NULL, &root, NULL), TP_OK);
    tp_host_read(root, &b);
    assert_string_equal(a.fingerprint, b.fingerprint);
    assert_string_equal(a.cpu, b.cpu);
    assert_int_equal(a.processors, b.processors);
    tp_host_read(NULL, &b);
    assert_string_equal(b.fingerprint, "unknown");
    tp_arena_release(&arena);
    tp_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_program_is_told_apart),
        cmocka_unit_test(a_timeout_ends_the_whole_group),
        cmocka_unit_test(a_program_that_is_not_there_is_an_error),
        cmocka_unit_test(padding_moves_the_environment_and_nothing_else),
        cmocka_unit_test(time_and_memory_are_of_the_child),
        cmocka_unit_test(output_is_read_and_limited_in_time),
        cmocka_unit_test(a_pipe_talks_line_by_line),
        cmocka_unit_test(a_command_line_becomes_words_or_goes_to_a_shell),
        cmocka_unit_test(a_command_that_fails_fails_the_benchmark),
        cmocka_unit_test(the_fingerprint_is_stable),
        cmocka_unit_test(a_host_survives_its_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
