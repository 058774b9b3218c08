/* test_output.c - outputs: every kind of target that may be there already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/output.h"

static char root[64], path_memory[4][256];

/* A path inside the test's folder; four may be alive at once. */
static const char *at(const char *name)
{
    static int next;
    char *path = path_memory[next++ % 4];
    snprintf(path, sizeof path_memory[0], "%s/%s", root, name);
    return path;
}

static int make_root(void **state)
{
    snprintf(root, sizeof root, "/tmp/temper-output-XXXXXX");
    tp_outputs_watch();
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state) { return tp_dir_remove(root, NULL) != TP_OK; }

static tp_status put(const char *name, const char *text)
{
    tp_error err;
    return tp_output_put(at(name), text, strlen(text), &err);
}

static void expect(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "r"); /* not as an input */
    char read[64] = "";
    assert_non_null(f);
    (void)!fread(read, 1, sizeof read - 1, f);
    fclose(f);
    assert_string_equal(read, text);
}

static void a_file_is_replaced_and_keeps_its_mode(void **state)
{
    struct stat st;
    FILE *f = fopen(at("mode"), "w");
    fputs("old", f);
    fclose(f);
    assert_int_equal(chmod(at("mode"), 0640), 0);

    assert_int_equal(put("mode", "new"), TP_OK);

    expect("mode", "new");
    assert_int_equal(stat(at("mode"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void links_stay_and_lead_to_the_new_file(void **state)
{
    struct stat st;
    assert_int_equal(mkdir(at("far"), 0755), 0);
    assert_int_equal(symlink("far/one", at("first")), 0);
    assert_int_equal(symlink("first", at("second")), 0);

    assert_int_equal(put("second", "through two"), TP_OK);

    expect("far/one", "through two");
    assert_int_equal(lstat(at("second"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static void what_was_read_is_refused_by_every_name(void **state)
{
    tp_buf buf = {0};
    tp_error err;
    FILE *f = fopen(at("input"), "w");
    fputs("precious", f);
    fclose(f);
    assert_int_equal(symlink("input", at("soft")), 0);
    assert_int_equal(link(at("input"), at("hard")), 0);
    assert_int_equal(tp_file_read(at("input"), 0, &buf, NULL), TP_OK);

    assert_int_equal(put("input", "x"), TP_ERR_ARG);
    assert_int_equal(put("soft", "x"), TP_ERR_ARG);
    assert_int_equal(put("hard", "x"), TP_ERR_ARG);
    assert_int_equal(tp_output_check(at("hard"), &err), TP_ERR_ARG);

    assert_non_null(strstr(err.message, "this command reads it"));
    expect("input", "precious");
    /* The program's own file may have been read. */
    assert_int_equal(tp_file_write_atomic(at("input"), "next", 4, NULL), TP_OK);
    expect("input", "next");
    tp_buf_release(&buf);
}

static void two_results_do_not_share_a_file(void **state)
{
    assert_int_equal(put("result", "one"), TP_OK);

    assert_int_equal(put("result", "two"), TP_ERR_ARG);

    expect("result", "one");
}

static void an_output_that_is_given_up_changes_nothing(void **state)
{
    tp_output *o;
    FILE *f = fopen(at("kept"), "w");
    fputs("old", f);
    fclose(f);
    assert_int_equal(tp_output_open(&o, at("kept"), NULL), TP_OK);
    assert_int_equal(tp_output_write(o, "half", 4, NULL), TP_OK);

    tp_output_abandon(o);

    expect("kept", "old");
}

static void names_that_cannot_be_written_are_told(void **state)
{
    tp_error err;
    assert_int_equal(tp_output_check(root, &err), TP_ERR_ARG);
    assert_non_null(strstr(err.message, "it is a folder"));
    assert_int_equal(tp_output_check(at("none/x"), &err), TP_ERR_ARG);
    assert_non_null(strstr(err.message, "its folder does not exist"));
    assert_int_equal(tp_output_check("", &err), TP_ERR_ARG);
    assert_int_equal(tp_output_check(at("new/"), &err), TP_ERR_ARG);
    assert_int_equal(symlink("loop", at("loop")), 0);
    assert_int_equal(tp_output_check(at("loop"), &err), TP_ERR_OUTPUT);
    assert_int_equal(tp_output_check(NULL, &err), TP_OK);
}

static void what_killed_writers_left_goes(void **state)
{
    assert_int_equal(put(".run.json.tmp-999999999", "left"), TP_OK);
    assert_int_equal(put(".notes.tmp-mine", "not ours"), TP_OK);

    tp_outputs_clean(root);

    assert_false(tp_file_exists(at(".run.json.tmp-999999999")));
    assert_true(tp_file_exists(at(".notes.tmp-mine")));
}

static void a_file_that_is_read_meanwhile_is_refreshed(void **state)
{
    struct stat st;
    assert_int_equal(tp_file_write_atomic(at("figures"), "old", 3, NULL), TP_OK);
    assert_int_equal(chmod(at("figures"), 0640), 0);
    assert_int_equal(symlink("figures", at("link")), 0);
    assert_int_equal(tp_file_refresh(at("link"), "new", 3, NULL), TP_OK);
    assert_int_equal(lstat(at("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(at("figures"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_size, 3);
    tp_fault_arm(3, false); /* opened and written, and not renamed: nothing is synced */
    assert_int_equal(tp_file_refresh(at("figures"), "newer", 5, NULL), TP_ERR_OUTPUT);
    tp_fault_arm(0, false);
    assert_int_equal(tp_file_size(at("figures")), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_and_keeps_its_mode),
        cmocka_unit_test(links_stay_and_lead_to_the_new_file),
        cmocka_unit_test(what_was_read_is_refused_by_every_name),
        cmocka_unit_test(two_results_do_not_share_a_file),
        cmocka_unit_test(an_output_that_is_given_up_changes_nothing),
        cmocka_unit_test(names_that_cannot_be_written_are_told),
        cmocka_unit_test(what_killed_writers_left_goes),
        cmocka_unit_test(a_file_that_is_read_meanwhile_is_refreshed),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
