#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/train/plan_ranks.h"

static tp_error err;

static tp_network network(const char *text)
{
    tp_network n;
    assert_int_equal(tp_network_parse(text, &n, &err), TP_OK);
    return n;
}

/* What links that are shared make of the time of the bytes; exchanges in halves gather as they
 * sum. */
static double factor(const char *text, tp_collective_kind kind, int ranks, int stride)
{
    tp_network n = network(text);
    const tp_begun begun = {.bytes = 12.5e9, .rounds = 1, .ranks = ranks, .stride = stride};
    return tp_network_seconds(&n, kind, &begun) - n.latency_s;
}

static void assert_near(double a, double b) { assert_true(fabs(a - b) < 1e-9); }

static void test_flat(void **state)
{
    assert_near(factor("100Gbit/2us", TP_ALL_REDUCE, 1024, 1), 1);
    assert_near(factor("100Gbit/2us", TP_REDUCE_SCATTER, 7, 1), 1);
}

/* Distances 1, 2, 4, 8 in each of the dimensions weigh as much as their bytes: of four ranks two
 * thirds go two places far. */
static void test_torus_in_halves(void **state)
{
    assert_near(factor("100Gbit/2us/torus-4", TP_REDUCE_SCATTER, 4, 1), 5.0 / 3);
    assert_near(factor("100Gbit/2us/torus-4", TP_ALL_GATHER, 4, 1), 5.0 / 3);
    assert_near(factor("100Gbit/2us/torus-16x8x8", TP_ALL_REDUCE, 1024, 1), 3109.0 / 1023);
    assert_near(factor("100Gbit/2us/torus-32x32", TP_ALL_REDUCE, 1024, 1), 11253.0 / 1023);
}

/* Of eight nodes of a row those that are eight places apart are neighbours. */
static void test_torus_with_a_stride(void **state)
{
    assert_near(factor("100Gbit/2us/torus-8x8", TP_ALL_REDUCE, 2, 8), 1);
    assert_near(factor("100Gbit/2us/torus-8x8", TP_ALL_REDUCE, 2, 4), 4);
}

/* Three ranks of a ring of three are neighbours; of five two are two places away. */
static void test_torus_in_a_ring(void **state)
{
    assert_near(factor("100Gbit/2us/torus-3", TP_REDUCE_SCATTER, 3, 1), 1);
    assert_near(factor("100Gbit/2us/torus-5", TP_REDUCE_SCATTER, 5, 1), 1.5);
    assert_near(factor("100Gbit/2us/torus-5", TP_ALL_GATHER, 5, 1), 1);
}

/* Two thirds of the bytes of four ranks leave a rack of two. */
static void test_fat_tree(void **state)
{
    assert_near(factor("100Gbit/2us/fat-tree-2:3", TP_ALL_REDUCE, 4, 1), 7.0 / 3);
    assert_near(factor("100Gbit/2us/fat-tree-4:3", TP_ALL_REDUCE, 4, 1), 1);
}

static void test_words_that_are_none(void **state)
{
    static const char *const words[] = {"100Gbit/2us/",
                                        "100Gbit/2us/ring",
                                        "100Gbit/2us/torus-",
                                        "100Gbit/2us/torus-4x",
                                        "100Gbit/2us/torus-0x4",
                                        "100Gbit/2us/fat-tree-32",
                                        "100Gbit/2us/fat-tree-32:0.5",
                                        "100Gbit"};
    tp_network n;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(tp_network_parse(words[i], &n, &err), TP_ERR_ARG);
}

static void test_nodes(void **state)
{
    tp_network n;
    assert_int_equal(tp_network_parse("1Gbit/2us/torus-16x8x8", &n, &err), TP_OK);
    assert_int_equal(tp_network_nodes(&n), 1024);
    assert_int_equal(tp_network_parse("1Gbit/2us/torus-65536x65536x65536x65536", &n, &err), TP_OK);
    assert_int_equal(tp_network_nodes(&n), 65536);
    assert_int_equal(tp_network_parse("1Gbit/2us", &n, &err), TP_OK);
    assert_true(tp_network_nodes(&n) > 65536);
}

static void test_platforms(void **state)
{
    tp_network_shape torus = tp_network_shape_of_platform(
        "<cluster id=\"c\" topology=\"TORUS\" topo_parameters=\"16,8,4\"/>");
    assert_int_equal(torus.kind, TP_NETWORK_TORUS);
    assert_int_equal(torus.n, 3);
    assert_int_equal(torus.sizes[2], 4);
    tp_network_shape tree = tp_network_shape_of_platform(
        "<cluster topology=\"FAT_TREE\" topo_parameters=\"2;32,32;1,16;1,1\"/>");
    assert_int_equal(tree.kind, TP_NETWORK_FAT_TREE);
    assert_int_equal(tree.sizes[0], 32);
    assert_near(tree.oversubscription, 2);
    assert_int_equal(tp_network_shape_of_platform("<cluster id=\"c\"/>").kind, TP_NETWORK_FLAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_torus_in_halves),
        cmocka_unit_test(test_torus_with_a_stride),
        cmocka_unit_test(test_torus_in_a_ring),
        cmocka_unit_test(test_fat_tree),
        cmocka_unit_test(test_words_that_are_none),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_platforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
