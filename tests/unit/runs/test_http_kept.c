/* test_http_kept.c - how long the server's answers are good for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/serve/http_kept.h"

static int n_released;

static void release(void *answer)
{
    (void)answer;
    n_released++;
}

static void add(tp_http_keeper *k, const char *key, const char *answer, double made_s,
                double cost_s, bool is_immutable)
{
    const tp_http_kept fresh = {.key = strdup(key),
                                .answer = (void *)(uintptr_t)answer,
                                .made_s = made_s,
                                .cost_s = cost_s,
                                .n_news = 7,
                                .is_immutable = is_immutable};
    tp_http_kept_add(k, &fresh);
}

static void a_moment_and_no_news(void **state)
{
    (void)state;
    tp_http_keeper k = {.release = release};
    add(&k, "/metrics", "steps", 100, 0.001, false);
    assert_string_equal(tp_http_kept_find(&k, "/metrics", 7, 100.4), "steps");
    assert_null(tp_http_kept_find(&k, "/metrics", 8, 100.4));
    assert_null(tp_http_kept_find(&k, "/metrics", 7, 100.6));
    assert_null(tp_http_kept_find(&k, "/", 7, 100.4));
    tp_http_kept_release(&k);
}

static void what_takes_long_is_kept_for_longer(void **state)
{
    (void)state;
    tp_http_keeper k = {.release = release};
    add(&k, "/report", "eight", 100, 2, false);
    assert_string_equal(tp_http_kept_find(&k, "/report", 9, 119), "eight");
    assert_null(tp_http_kept_find(&k, "/report", 7, 121));
    tp_http_kept_release(&k);
}

static void news_do_not_change_what_is_immutable(void **state)
{
    (void)state;
    tp_http_keeper k = {.release = release};
    add(&k, "/plot?v=3", "curve", 100, 0, true);
    assert_string_equal(tp_http_kept_find(&k, "/plot?v=3", 9, 159), "curve");
    assert_null(tp_http_kept_find(&k, "/plot?v=3", 7, 161));
    tp_http_kept_release(&k);
}

static void the_oldest_goes(void **state)
{
    (void)state;
    tp_http_keeper k = {.release = release};
    char key[16];
    n_released = 0;
    for (int i = 0; i < TP_HTTP_KEPT; i++) {
        snprintf(key, sizeof key, "/%d", i);
        add(&k, key, key, 100 + i, 0, true);
    }
    add(&k, "/0", "renewed", 130, 0, true);
    assert_int_equal(n_released, 1);
    add(&k, "/new", "new", 131, 0, true);
    assert_int_equal(n_released, 2);
    assert_null(tp_http_kept_find(&k, "/1", 7, 132));
    assert_string_equal(tp_http_kept_find(&k, "/0", 7, 132), "renewed");
    assert_string_equal(tp_http_kept_find(&k, "/new", 7, 132), "new");
    tp_http_kept_release(&k);
    assert_int_equal(n_released, 2 + TP_HTTP_KEPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moment_and_no_news),
        cmocka_unit_test(what_takes_long_is_kept_for_longer),
        cmocka_unit_test(news_do_not_change_what_is_immutable),
        cmocka_unit_test(the_oldest_goes),
    };
    return cmocka_run_group_tests_name("http_kept", tests, NULL, NULL);
}
