/* test_columns.c - columns out of the forms people have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stats/dataset.h"

static tp_stats_dataset read_text(const char *text)
{
    tp_stats_dataset data;
    tp_error err = {0};
    if (tp_dataset_read("in", text, strlen(text), &data, &err) != TP_OK)
        fail_msg("%s", err.message);
    return data;
}

static void check_column(const tp_stats_dataset *data, const char *word, const double *wanted,
                         size_t n)
{
    const tp_column *c = tp_dataset_find(data, word, NULL);
    double *x;
    size_t got, missing;
    assert_non_null(c);
    assert_int_equal(tp_dataset_numbers(data, c, &x, &got, &missing, NULL), TP_OK);
    assert_int_equal(got, n);
    assert_memory_equal(x, wanted, n * sizeof *x);
    free(x);
}

static void check_refusal(const char *text, const char *part)
{
    tp_stats_dataset data;
    tp_error err = {0};
    assert_int_equal(tp_dataset_read("in", text, strlen(text), &data, &err), TP_ERR_FORMAT);
    if (!strstr(err.message, part))
        fail_msg("'%s' lacks '%s'", err.message, part);
}

static void separators_and_names(void **state)
{
    static const char *const texts[] = {
        "a,b\n1,2\n3,4\n", "a\tb\n1\t2\n3\t4", "a;b\r\n1;2\r\n3;4\r\n",
        "# times\n a   b\n 1 2\n\n 3   4 \n", "\"a\",\"b\"\n\"1\",2\n3,\"4\"\n"};
    for (size_t i = 0; i < 5; i++) {
        tp_stats_dataset data = read_text(texts[i]);
        assert_int_equal(data.n_columns, 2);
        check_column(&data, "a", (const double[]){1, 3}, 2);
        check_column(&data, "2", (const double[]){2, 4}, 2);
        assert_null(tp_dataset_find(&data, "3", NULL));
        tp_dataset_release(&data);
    }
}

static void numbers_without_names(void **state)
{
    tp_stats_dataset data = read_text("1.5\n-2e3\n");
    check_column(&data, "1", (const double[]){1.5, -2000}, 2);
    assert_false(data.columns[0].is_named);
    tp_dataset_release(&data);
}

static void names_may_be_numbers_beside_words(void **state)
{
    tp_stats_dataset data = read_text("step,1e-3,1e-4\n1,5,6\n2,7,8\n");
    check_column(&data, "1e-3", (const double[]){5, 7}, 2);
    tp_dataset_release(&data);
    data = read_text("ana,5\nbob,7\n"); /* words below words: no names */
    check_column(&data, "2", (const double[]){5, 7}, 2);
    tp_dataset_release(&data);
    data = read_text(",0,1\n0,5,6\n1,7,8\n"); /* of pandas, without names */
    check_column(&data, "1", (const double[]){6, 8}, 2);
    tp_dataset_release(&data);
    data = read_text(",0,2\n0,5,6\n");
    check_column(&data, "3", (const double[]){2, 6}, 2);
    tp_dataset_release(&data);
    data = read_text("NA,5\n1,7\n");
    check_column(&data, "2", (const double[]){5, 7}, 2);
    tp_dataset_release(&data);
}

static void lines_end_with_carriage_returns_too(void **state)
{
    tp_stats_dataset data = read_text("x\r1\r2\r");
    check_column(&data, "x", (const double[]){1, 2}, 2);
    tp_dataset_release(&data);
    check_refusal("x,y\r\n1,2\r\n1,2,3\r\n", "in:3: more fields");
}

static void the_first_name_may_be_empty(void **state)
{
    static const char *const texts[] = {"\tx\ty\n0\t5\t6\n1\t7\t8\n", "\ty\tx\n0\t6\t5\n1\t8\t7\n",
                                        "\tx\n0\t5\n1\t7\n", ",x\n0,5\n1,7\n"};
    for (size_t i = 0; i < 4; i++) {
        tp_stats_dataset data = read_text(texts[i]);
        check_column(&data, "x", (const double[]){5, 7}, 2);
        check_column(&data, "1", (const double[]){0, 1}, 2);
        tp_dataset_release(&data);
    }
}

static void a_column_that_words_spoil_is_named(void **state)
{
    static const char *const texts[] = {"e,b\nfailed,5\n2,7\n",
                                        "e,b\n\"1,234.5\",5\n\"2,000\",7\n"};
    static const char *const parts[] = {"in:2: 'failed' in column 'e'",
                                        "in:2: '1,234.5' in column 'e'"};
    for (size_t i = 0; i < 2; i++) {
        tp_stats_dataset data = read_text(texts[i]);
        tp_error err = {0};
        double *x;
        size_t n, missing;
        assert_true(data.columns[0].is_mixed && !data.columns[1].is_mixed);
        assert_int_equal(tp_dataset_numbers(&data, &data.columns[0], &x, &n, &missing, &err),
                         TP_ERR_FORMAT);
        assert_non_null(strstr(err.message, parts[i]));
        tp_dataset_release(&data);
    }
}

static void an_inner_name_may_be_that_of_two(void **state)
{
    tp_stats_dataset data =
        read_text("{\"a\":{\"loss\":1,\"lr\":1},\"b\":{\"loss\":2}}\n{\"a\":{\"loss\":1}}\n");
    const tp_column *other;
    assert_non_null(tp_dataset_find(&data, "loss", &other));
    assert_string_equal(other->name, "a.loss");
    assert_non_null(tp_dataset_find(&data, "b.loss", &other));
    assert_null(other);
    assert_non_null(tp_dataset_find(&data, "lr", &other));
    assert_null(other);
    tp_dataset_release(&data);
}

static void missing_cells_and_pairs(void **state)
{
    tp_stats_dataset data = read_text("a,b\n1,2\n,5\nNA,6\n7,\n8,9\n");
    double *x, *y;
    size_t n, dropped;
    check_column(&data, "a", (const double[]){1, 7, 8}, 3);
    assert_int_equal(
        tp_dataset_pairs(&data, &data.columns[0], &data.columns[1], &x, &y, &n, &dropped, NULL),
        TP_OK);
    assert_int_equal(n, 2);
    assert_int_equal(dropped, 3);
    assert_true(x[1] == 8 && y[1] == 9);
    free(x);
    free(y);
    tp_dataset_release(&data);
}

static void labels_and_bad_cells(void **state)
{
    tp_stats_dataset data = read_text("who,t\nana,1\nbob,2\nana,nan\n");
    tp_error err = {0};
    double *x;
    size_t n, missing;
    const tp_column *who = tp_dataset_find(&data, "who", NULL),
                    *t = tp_dataset_find(&data, "t", NULL);
    assert_true(who->is_label && who->n_labels == 2 && who->values[2] == 0);
    assert_int_equal(tp_dataset_numbers(&data, t, &x, &n, &missing, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "in:4: 'nan' in column 't'"));
    assert_int_equal(tp_dataset_numbers(&data, who, &x, &n, &missing, &err), TP_ERR_FORMAT);
    tp_dataset_release(&data);
}

static void a_number_that_fits_no_double_is_no_name(void **state)
{
    tp_stats_dataset data = read_text("1e400\n2\n3\n");
    tp_error err = {0};
    double *x;
    size_t n, missing;
    assert_int_equal(tp_dataset_numbers(&data, &data.columns[0], &x, &n, &missing, &err),
                     TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "in:1: '1e400' in column 'column 1'"));
    tp_dataset_release(&data);
}

static void json_of_every_shape(void **state)
{
    static const char *const texts[] = {"[1, 2]",
                                        "{\"data\": [1, 2]}",
                                        "[[1, 2]]",
                                        "[{\"1\": 1}, {\"1\": 2}]",
                                        "{\"1\": 1}\n{\"1\": 2}\n",
                                        "{\"m\": {\"1\": 1}}\n{\"m\": {\"1\": 2, \"k\": [3]}}",
                                        "{\"groups\": [[1, 2]], \"names\": [\"1\"]}"};
    for (size_t i = 0; i < 7; i++) {
        tp_stats_dataset data = read_text(texts[i]);
        check_column(&data, "1", (const double[]){1, 2}, 2);
        tp_dataset_release(&data);
    }
}

static void what_has_no_columns_is_refused(void **state)
{
    check_refusal("", "holds no numbers");
    check_refusal("# nothing\n", "holds no numbers");
    check_refusal("a,b\n1,2,3\n", "in:2: more fields than the 2 columns");
    check_refusal("a,a\n1,2\n", "in:1: two columns are called 'a'");
    check_refusal("[1, 2", "in:1");
    check_refusal("{\"a\": 1}\n[2]\n", "in:2");
    check_refusal("{\"groups\": [1]}", "group 1 is not an array");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separators_and_names),
        cmocka_unit_test(numbers_without_names),
        cmocka_unit_test(names_may_be_numbers_beside_words),
        cmocka_unit_test(lines_end_with_carriage_returns_too),
        cmocka_unit_test(the_first_name_may_be_empty),
        cmocka_unit_test(a_column_that_words_spoil_is_named),
        cmocka_unit_test(an_inner_name_may_be_that_of_two),
        cmocka_unit_test(missing_cells_and_pairs),
        cmocka_unit_test(labels_and_bad_cells),
        cmocka_unit_test(a_number_that_fits_no_double_is_no_name),
        cmocka_unit_test(json_of_every_shape),
        cmocka_unit_test(what_has_no_columns_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
