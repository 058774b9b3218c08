/* test_states.c - states: declared and found by name, their memory and its kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/device/states.h"
#include "support/devices.h"

static const int64_t MATRIX[] = {3, 5}, VECTOR[] = {7};

static int make_states(void **state)
{
    static tp_states states;
    *state = &states;
    return tp_states_init(&states, NULL) != TP_OK;
}

static int release_states(void **state)
{
    tp_states_release(*state);
    tp_states_release(*state); /* twice is fine */
    return 0;
}

static tp_tensor tensor(const char *name, uint8_t rank, const int64_t *dim, tp_role role)
{
    return (tp_tensor){
        .name = name, .role = role, .rank = rank, .dim = {dim[0], rank == 2 ? dim[1] : 1}};
}

static void declare(tp_states *s, const char *name, uint8_t rank, const int64_t *dim, tp_role role)
{
    tp_tensor t = tensor(name, rank, dim, role);
    assert_int_equal(tp_states_declare(s, &t, NULL), TP_OK);
}

static void declared_tensors_are_found_by_name(void **state)
{
    tp_states *s = *state;
    char name[] = "w";
    assert_null(tp_states_find(s, "w"));

    declare(s, name, 2, MATRIX, TP_ROLE_WEIGHT);
    name[0] = '?'; /* the name was copied */

    const tp_tensor *w = tp_states_find(s, "w");
    assert_non_null(w);
    assert_string_equal(w->name, "w");
    assert_int_equal(w->bytes, 60);
    assert_int_equal(w->dim[1], 5);
    assert_null(w->span.buffer);
    assert_null(tp_states_find(s, "?"));
}

static void vectors_have_one_column(void **state)
{
    tp_states *s = *state;
    declare(s, "b", 1, VECTOR, TP_ROLE_WEIGHT);
    assert_int_equal(tp_states_find(s, "b")->dim[1], 1);
    assert_int_equal(tp_states_find(s, "b")->bytes, 28);
}

static void declaring_again_must_agree(void **state)
{
    tp_states *s = *state;
    tp_error err;
    static const int64_t other[] = {5, 3};
    declare(s, "w", 2, MATRIX, TP_ROLE_WEIGHT);
    declare(s, "w", 2, MATRIX, TP_ROLE_WEIGHT);
    assert_int_equal(s->n, 1);

    tp_tensor t = tensor("w", 2, other, TP_ROLE_WEIGHT);
    assert_int_equal(tp_states_declare(s, &t, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "tensor 'w' is declared with two different types");
    t = tensor("w", 2, MATRIX, TP_ROLE_WEIGHT);
    t.dtype = TP_DTYPE_BF16;
    assert_int_equal(tp_states_declare(s, &t, &err), TP_ERR_ARG);
    t = tensor("w", 1, MATRIX, TP_ROLE_WEIGHT);
    assert_int_equal(tp_states_declare(s, &t, &err), TP_ERR_ARG);
    t = tensor("w", 2, MATRIX, TP_ROLE_CONSTANT);
    assert_int_equal(tp_states_declare(s, &t, &err), TP_ERR_ARG);
}

static void impossible_shapes_are_refused(void **state)
{
    static const int64_t zero[] = {0, 4}, negative[] = {4, -1}, huge[] = {INT64_MAX, INT64_MAX},
                         bytes[] = {INT64_MAX / 2, 2};
    const int64_t *cases[] = {zero, negative, huge, bytes};
    tp_states *s = *state;
    tp_error err;
    for (int i = 0; i < 4; i++) {
        tp_tensor t = tensor("w", 2, cases[i], TP_ROLE_WEIGHT);
        assert_int_equal(tp_states_declare(s, &t, &err), TP_ERR_FORMAT);
    }
    tp_tensor t = tensor("w", 3, MATRIX, TP_ROLE_WEIGHT);
    assert_int_equal(tp_states_declare(s, &t, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, "tensor 'w' has an impossible shape 3x1");
    assert_int_equal(s->n, 0);
}

static void thousands_are_found_and_keep_their_order(void **state)
{
    enum { N = 3000 };
    tp_states *s = *state;
    char name[32];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "model.layers.%d.w", i);
        declare(s, name, 1, VECTOR, TP_ROLE_WEIGHT);
    }
    assert_int_equal(s->n, N);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "model.layers.%d.w", i);
        assert_ptr_equal(tp_states_find(s, name), &s->items[i]);
    }
    assert_null(tp_states_find(s, "model.layers.3000.w"));
}

static void memory_comes_zeroed_and_stays(void **state)
{
    tp_states *s = *state;
    declare(s, "w", 2, MATRIX, TP_ROLE_WEIGHT);
    assert_int_equal(tp_states_alloc(s, device_of("ref", 1), NULL), TP_OK);
    float *w = data_of(tp_states_find(s, "w"));
    assert_true(w[14] == 0);
    w[14] = 3;

    declare(s, "b", 1, VECTOR, TP_ROLE_WEIGHT);
    assert_int_equal(tp_states_alloc(s, device_of("ref", 1), NULL), TP_OK);

    assert_ptr_equal(data_of(tp_states_find(s, "w")), w);
    assert_true(w[14] == 3);
    assert_non_null(data_of(tp_states_find(s, "b")));
}

static void memory_is_given_back(void **state)
{
    size_t before = tp_mem_get_stats().total_current;
    tp_states s;
    assert_int_equal(tp_states_init(&s, NULL), TP_OK);
    declare(&s, "w", 2, MATRIX, TP_ROLE_WEIGHT);
    assert_int_equal(tp_states_alloc(&s, device_of("ref", 1), NULL), TP_OK);
    assert_int_equal(tp_mem_get_stats().total_current, before + 60);

    tp_states_release(&s);

    assert_int_equal(tp_mem_get_stats().total_current, before);
}

static void refused_memory_names_the_tensor(void **state)
{
    tp_states *s = *state;
    tp_error err;
    declare(s, "model.w", 2, MATRIX, TP_ROLE_MOMENT);
    tp_mem_set_limit(10, "a test");

    tp_status status = tp_states_alloc(s, device_of("ref", 1), &err);

    tp_mem_set_limit(0, "");
    assert_int_equal(status, TP_ERR_NOMEM);
    assert_non_null(strstr(err.message, "tensor 'model.w': cannot allocate 60 B for optimizer"));
}

static void bytes_are_summed_by_kind(void **state)
{
    tp_states *s = *state;
    size_t bytes[TP_MEM_KINDS];
    declare(s, "w", 2, MATRIX, TP_ROLE_WEIGHT);
    declare(s, "b", 1, VECTOR, TP_ROLE_WEIGHT);
    declare(s, "g", 1, VECTOR, TP_ROLE_GRADIENT);

    tp_states_bytes(s, bytes);

    assert_int_equal(bytes[TP_MEM_WEIGHTS], 88);
    assert_int_equal(bytes[TP_MEM_GRADIENTS], 28);
    assert_int_equal(bytes[TP_MEM_DATA], 0);
}

#define STATES_TEST(f) cmocka_unit_test_setup_teardown(f, make_states, release_states)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STATES_TEST(declared_tensors_are_found_by_name),
        STATES_TEST(vectors_have_one_column),
        STATES_TEST(declaring_again_must_agree),
        STATES_TEST(impossible_shapes_are_refused),
        STATES_TEST(thousands_are_found_and_keep_their_order),
        STATES_TEST(memory_comes_zeroed_and_stays),
        STATES_TEST(memory_is_given_back),
        STATES_TEST(refused_memory_names_the_tensor),
        STATES_TEST(bytes_are_summed_by_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
