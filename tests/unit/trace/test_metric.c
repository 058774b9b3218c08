/* test_metric.c - the metric bus: who hears what, and what the newest value is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/metric.h"

typedef struct {
    int n;
    char axis[16];
    int64_t step;
    char names[4][40];
    double values[4];
    size_t n_points;
} heard;

static void hear(void *user, const tp_metric_record *record)
{
    heard *h = user;
    h->n++;
    h->step = record->step;
    h->n_points = record->n;
    strcpy(h->axis, record->axis);
    for (size_t i = 0; i < record->n && i < 4; i++) {
        strcpy(h->names[i], record->points[i].def->name);
        h->values[i] = record->points[i].value;
    }
}

static void publish(tp_metric_bus *bus, const char *axis, int64_t step, const char *name, double v)
{
    tp_metric_begin(bus, axis, step);
    tp_metric_put(bus, name, v);
    tp_metric_end(bus);
}

static void every_subscriber_hears_a_record(void **state)
{
    static tp_metric_bus bus;
    heard a = {0}, b = {0};
    (void)state;
    tp_metric_subscribe(&bus, hear, &a);
    tp_metric_subscribe(&bus, hear, &b);
    tp_metric_begin(&bus, "train", 7);
    tp_metric_put(&bus, "train/loss", 2.5);
    tp_metric_put(&bus, "train/grad_norm", 1.5);
    tp_metric_end(&bus);
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 1);
    assert_string_equal(a.axis, "train");
    assert_int_equal(a.step, 7);
    assert_int_equal(a.n_points, 2);
    assert_string_equal(a.names[0], "train/loss");
    assert_string_equal(a.names[1], "train/grad_norm");
    assert_true(a.values[0] == 2.5 && a.values[1] == 1.5);
}

static void the_latest_value_is_that_of_the_newest_record_of_its_axis(void **state)
{
    static tp_metric_bus bus;
    (void)state;
    assert_true(isnan(tp_metric_latest(&bus, "train/kl_penalty")));
    assert_true(isnan(tp_metric_latest(NULL, "train/loss")));
    publish(&bus, "train", 1, "train/kl_penalty", 0.25);
    publish(&bus, "validation", 1, "validation/val_loss", 3);
    assert_true(tp_metric_latest(&bus, "train/kl_penalty") == 0.25);
    publish(&bus, "train", 2, "train/loss", 2);
    assert_true(isnan(tp_metric_latest(&bus, "train/kl_penalty")));
    assert_true(tp_metric_latest(&bus, "validation/val_loss") == 3);
}

static void a_restored_value_is_told_to_nobody(void **state)
{
    static tp_metric_bus bus;
    heard a = {0};
    (void)state;
    tp_metric_subscribe(&bus, hear, &a);
    tp_metric_restore(&bus, "validation", "validation/val_loss", 4);
    assert_int_equal(a.n, 0);
    assert_true(tp_metric_latest(&bus, "validation/val_loss") == 4);
}

/* The table is searched by halves. */
static void metrics_are_declared_in_order_with_a_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < TP_METRIC_DEFS; i++) {
        const tp_metric_def *d = &tp_metric_defs[i];
        if (i && strcmp(tp_metric_defs[i - 1].name, d->name) >= 0)
            fail_msg("%s stands before %s", tp_metric_defs[i - 1].name, d->name);
        if (d->meaning[strlen(d->meaning) - 1] != '.')
            fail_msg("%s: \"%s\" is no sentence", d->name, d->meaning);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_subscriber_hears_a_record),
        cmocka_unit_test(the_latest_value_is_that_of_the_newest_record_of_its_axis),
        cmocka_unit_test(a_restored_value_is_told_to_nobody),
        cmocka_unit_test(metrics_are_declared_in_order_with_a_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
