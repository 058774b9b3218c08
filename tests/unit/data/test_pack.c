#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/data/pack.h"
#include "sample_file.h"

static char path[64];
static tp_error err;

/* A data set of n examples of 2 to `longest` tokens. */
enum { N_MANY = 403, LONGEST = 90 };
static tp_cache many;
static tp_sample_set many_set;

static void temporary_path(void)
{
    snprintf(path, sizeof path, "/tmp/temper-pack-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static int make_many(void **state)
{
    int lengths[N_MANY];
    tp_rng rng = tp_rng_make(5, 0);
    for (int i = 0; i < N_MANY; i++)
        lengths[i] = 2 + (int)tp_rng_below(&rng, LONGEST - 1);
    temporary_path();
    if (sample_file_make(path, lengths, N_MANY, 1, &many))
        return 1;
    unlink(path);
    many_set = (tp_sample_set){.cache = &many, .n = N_MANY};
    return 0;
}

static int drop_many(void **state)
{
    tp_cache_close(&many);
    return 0;
}

static tp_pack_options packed(uint64_t batch, int32_t budget)
{
    return (tp_pack_options){.seed = 42,
                             .shuffle = true,
                             .batch_size = batch,
                             .packing = true,
                             .budget = budget,
                             .vocab_size = 1000 * (N_MANY + 1)};
}

static void plan_step(tp_pack_plan *plan, const tp_pack_options *o, const tp_sample_set *set,
                      uint64_t step)
{
    assert_int_equal(tp_pack_plan_step(plan, o, set, step, NULL), TP_OK);
}

static void fill(const tp_pack_plan *plan, const tp_pack_options *o, const tp_sample_set *set,
                 uint32_t m, tp_microbatch *mb)
{
    tp_pack_label(plan, m, mb);
    err.message[0] = 0;
    tp_status status = tp_pack_fill(o, set, plan->items + plan->starts[m],
                                    plan->starts[m + 1] - plan->starts[m], mb, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TP_OK);
}

static void a_micro_batch_lies_as_documented(void **state)
{
    /* Lengths 4, 3, 5 with budget 8: first-fit decreasing gives {5, 3} and {4}. */
    const int lengths[] = {4, 3, 5};
    tp_cache cache;
    temporary_path();
    assert_int_equal(sample_file_make(path, lengths, 3, 2, &cache), 0);
    unlink(path);
    tp_sample_set set = {.cache = &cache, .n = 3};
    tp_pack_options o = packed(3, 8);
    o.shuffle = false;
    tp_pack_plan plan;
    tp_microbatch mb;
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    assert_int_equal(tp_microbatch_init(&mb, 8, NULL), TP_OK);

    plan_step(&plan, &o, &set, 0);

    assert_int_equal(plan.n_micro, 2);
    assert_int_equal(plan.n_trained, 2 + 1 + 3);
    fill(&plan, &o, &set, 0, &mb);
    const int32_t tokens[] = {2000, 2001, 2002, 2003, 2004, 1000, 1001, 1002};
    const int32_t positions[] = {0, 1, 2, 3, 4, 0, 1, 2};
    const int32_t targets[] = {2001, 2002, 2003, 2004, 0, 1001, 1002, 0};
    const float w = 1.0f / 6;
    const float weights[] = {0, w, w, w, 0, 0, w, 0};
    const int32_t cu[] = {0, 5, 8, 8, 8, 8, 8, 8, 8};
    assert_memory_equal(mb.tokens, tokens, sizeof tokens);
    assert_memory_equal(mb.positions, positions, sizeof positions);
    assert_memory_equal(mb.targets, targets, sizeof targets);
    assert_memory_equal(mb.loss_weights, weights, sizeof weights);
    assert_memory_equal(mb.cu, cu, sizeof cu);
    assert_int_equal(mb.n_trained, 4);
    assert_int_equal(mb.sum_of_squares, 25 + 9);
    assert_int_equal(mb.step_sequences, 3);

    fill(&plan, &o, &set, 1, &mb);
    const int32_t tokens1[] = {0, 1, 2, 3, 0, 0, 0, 0};
    const float weights1[] = {0, w, w, 0, 0, 0, 0, 0};
    const int32_t cu1[] = {0, 4, 4, 4, 4, 4, 4, 4, 4};
    assert_memory_equal(mb.tokens, tokens1, sizeof tokens1);
    assert_memory_equal(mb.loss_weights, weights1, sizeof weights1);
    assert_memory_equal(mb.cu, cu1, sizeof cu1);
    assert_int_equal(mb.n_used, 4);
    assert_int_equal(mb.n_tokens, 4);
    assert_int_equal(mb.index, 1);
    assert_int_equal(mb.n_in_step, 2);
    tp_microbatch_release(&mb);
    tp_pack_plan_release(&plan);
    tp_cache_close(&cache);
}

static void without_packing_rows_are_padded(void **state)
{
    const int lengths[] = {4, 3, 6};
    tp_cache cache;
    temporary_path();
    assert_int_equal(sample_file_make(path, lengths, 3, 1, &cache), 0);
    unlink(path);
    tp_sample_set set = {.cache = &cache, .n = 3};
    tp_pack_options o = {
        .batch_size = 3, .micro_batch_size = 2, .row_length = 5, .vocab_size = 4000};
    tp_pack_plan plan;
    tp_microbatch mb;
    assert_int_equal(tp_pack_capacity(&o), 10);
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    assert_int_equal(tp_microbatch_init(&mb, 10, NULL), TP_OK);

    plan_step(&plan, &o, &set, 0);

    assert_int_equal(plan.n_micro, 2);
    assert_int_equal(plan.n_truncated, 1); /* 6 tokens in a row of 5 */
    assert_int_equal(plan.n_trained, 3 + 2 + 4);
    fill(&plan, &o, &set, 0, &mb);
    const int32_t tokens[] = {0, 1, 2, 3, 0, 1000, 1001, 1002, 0, 0};
    const int32_t positions[] = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4};
    const int32_t cu[] = {0, 5, 10, 10, 10, 10, 10, 10, 10, 10, 10};
    assert_memory_equal(mb.tokens, tokens, sizeof tokens);
    assert_memory_equal(mb.positions, positions, sizeof positions);
    assert_memory_equal(mb.cu, cu, sizeof cu);
    assert_int_equal(mb.n_tokens, 7);
    assert_int_equal(mb.n_used, 10);
    fill(&plan, &o, &set, 1, &mb);
    const int32_t tokens1[] = {2000, 2001, 2002, 2003, 2004, 0, 0, 0, 0, 0};
    assert_memory_equal(mb.tokens, tokens1, sizeof tokens1);
    assert_int_equal(mb.targets[4], 0);
    assert_true(mb.loss_weights[4] == 0); /* its successor was cut off */
    assert_int_equal(mb.n_used, 5);

    o.refuse_overlong = true;
    assert_int_equal(tp_pack_plan_step(&plan, &o, &set, 0, &err), TP_ERR_CONFIG);
    assert_string_equal(
        err.message, "the example of line 3 has 6 tokens, a micro-batch holds 5; raise "
                     "policy.sequence_packing.train_mb_tokens or lower data.max_input_seq_length");
    tp_microbatch_release(&mb);
    tp_pack_plan_release(&plan);
    tp_cache_close(&cache);
}

static void an_epoch_has_every_sample_once(void **state)
{
    tp_pack_options o = packed(32, 128);
    tp_pack_plan plan;
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    assert_int_equal(tp_pack_steps_per_epoch(&o, N_MANY), 13);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        int seen[N_MANY] = {0};
        for (uint64_t s = 0; s < 13; s++) {
            plan_step(&plan, &o, &many_set, epoch * 13 + s);
            assert_int_equal(plan.epoch, epoch);
            for (uint32_t i = 0; i < plan.n_items; i++)
                seen[plan.items[i].sample]++;
        }
        for (int i = 0; i < N_MANY; i++)
            assert_int_equal(seen[i], 1);
    }
    o.drop_last = true;
    assert_int_equal(tp_pack_steps_per_epoch(&o, N_MANY), 12);
    tp_pack_plan_release(&plan);
}

static void epochs_are_shuffled_differently_and_by_seed(void **state)
{
    tp_pack_options o = packed(N_MANY, 128);
    tp_pack_plan plan;
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    uint64_t first[3][4];
    for (int i = 0; i < 3; i++) {
        o.seed = i == 2 ? 43 : 42;
        plan_step(&plan, &o, &many_set, i == 1);
        for (int k = 0; k < 4; k++)
            first[i][k] = plan.drawn[k].sample;
    }
    assert_memory_not_equal(first[0], first[1], sizeof first[0]);
    assert_memory_not_equal(first[0], first[2], sizeof first[0]);
    o.shuffle = false;
    plan_step(&plan, &o, &many_set, 0);
    for (uint64_t k = 0; k < 4; k++)
        assert_int_equal(plan.drawn[k].sample, k);
    tp_pack_plan_release(&plan);
}

static void a_step_is_the_same_from_scratch(void **state)
{
    tp_pack_options o = packed(32, 128);
    tp_pack_plan in_turn, alone;
    assert_int_equal(tp_pack_plan_init(&in_turn, &o, NULL), TP_OK);
    for (uint64_t step = 0; step < 30; step++) {
        plan_step(&in_turn, &o, &many_set, step);
        assert_int_equal(tp_pack_plan_init(&alone, &o, NULL), TP_OK);
        plan_step(&alone, &o, &many_set, step);
        assert_int_equal(alone.n_micro, in_turn.n_micro);
        assert_memory_equal(alone.starts, in_turn.starts, (alone.n_micro + 1) * 4);
        assert_memory_equal(alone.items, in_turn.items, alone.n_items * sizeof *alone.items);
        tp_pack_plan_release(&alone);
    }
    tp_pack_plan_release(&in_turn);
}

static void weights_of_a_step_add_up_to_one(void **state)
{
    tp_pack_options o = packed(32, 128);
    tp_pack_plan plan;
    tp_microbatch mb;
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    assert_int_equal(tp_microbatch_init(&mb, 128, NULL), TP_OK);
    for (uint64_t step = 0; step < 13; step++) {
        double sum = 0;
        uint64_t n_trained = 0;
        plan_step(&plan, &o, &many_set, step);
        for (uint32_t m = 0; m < plan.n_micro; m++) {
            fill(&plan, &o, &many_set, m, &mb);
            n_trained += (uint64_t)mb.n_trained;
            for (int k = 0; k < 128; k++) {
                sum += (double)mb.loss_weights[k];
                if (mb.loss_weights[k] != 0)
                    assert_int_equal(mb.targets[k], mb.tokens[k] + 1);
            }
        }
        assert_true(fabs(sum - 1) < 1e-6);
        assert_int_equal(n_trained, plan.n_trained);
    }
    tp_microbatch_release(&mb);
    tp_pack_plan_release(&plan);
}

/* First-fit decreasing needs at most 11/9 of the best possible number of bins, plus
 * 6/9; that is at least the sum of the lengths over the budget. */
static void packing_wastes_little(void **state)
{
    tp_pack_options o = packed(64, 128);
    tp_pack_plan plan;
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    uint64_t n_micro = 0, n_tokens = 0;
    for (uint64_t step = 0; step < 6; step++) {
        plan_step(&plan, &o, &many_set, step);
        double least = ceil((double)plan.n_tokens / 128);
        assert_true(plan.n_micro <= 11.0 / 9 * least + 1);
        for (uint32_t m = 0; m < plan.n_micro; m++) {
            int used = 0;
            for (uint32_t i = plan.starts[m]; i < plan.starts[m + 1]; i++)
                used += plan.items[i].n_tokens;
            assert_in_range(used, 1, 128);
        }
        n_micro += plan.n_micro;
        n_tokens += plan.n_tokens;
    }
    assert_true((double)n_tokens / (double)(n_micro * 128) > 0.95);
    tp_pack_plan_release(&plan);
}

static void nothing_to_learn_is_not_divided_by_zero(void **state)
{
    const int lengths[] = {6, 6};
    tp_cache cache;
    temporary_path();
    assert_int_equal(sample_file_make(path, lengths, 2, 5, &cache), 0);
    unlink(path);
    tp_sample_set set = {.cache = &cache, .n = 2};
    tp_pack_options o = packed(2, 4); /* cuts off the one token to be learned */
    tp_pack_plan plan;
    tp_microbatch mb;
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    assert_int_equal(tp_microbatch_init(&mb, 4, NULL), TP_OK);
    plan_step(&plan, &o, &set, 0);
    assert_int_equal(plan.n_trained, 0);
    assert_int_equal(plan.n_truncated, 2);
    fill(&plan, &o, &set, 0, &mb);
    const float none[4] = {0};
    assert_memory_equal(mb.loss_weights, none, sizeof none);
    assert_int_equal(mb.n_trained, 0);
    tp_microbatch_release(&mb);
    tp_pack_plan_release(&plan);
    tp_cache_close(&cache);
}

static void ids_beyond_the_vocabulary_are_refused(void **state)
{
    tp_pack_options o = packed(8, 128);
    o.shuffle = false;
    o.vocab_size = 5000;
    tp_pack_plan plan;
    tp_microbatch mb;
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    assert_int_equal(tp_microbatch_init(&mb, 128, NULL), TP_OK);
    plan_step(&plan, &o, &many_set, 0);
    tp_status status = TP_OK;
    for (uint32_t m = 0; m < plan.n_micro && status == TP_OK; m++)
        status = tp_pack_fill(&o, &many_set, plan.items + plan.starts[m],
                              plan.starts[m + 1] - plan.starts[m], &mb, &err);
    assert_int_equal(status, TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "the vocabulary has 5000; delete the cache"));
    tp_microbatch_release(&mb);
    tp_pack_plan_release(&plan);
}

static void a_subset_is_addressed_by_its_index(void **state)
{
    const uint64_t index[] = {7, 3};
    tp_sample_set set = {.cache = &many, .index = index, .n = 2};
    tp_pack_options o = packed(1, 128);
    o.shuffle = false;
    tp_pack_plan plan;
    tp_microbatch mb;
    assert_int_equal(tp_pack_plan_init(&plan, &o, NULL), TP_OK);
    assert_int_equal(tp_microbatch_init(&mb, 128, NULL), TP_OK);
    plan_step(&plan, &o, &set, 0);
    fill(&plan, &o, &set, 0, &mb);
    assert_int_equal(mb.tokens[0], 7000);
    plan_step(&plan, &o, &set, 1);
    fill(&plan, &o, &set, 0, &mb);
    assert_int_equal(mb.tokens[0], 3000);
    tp_microbatch_release(&mb);
    tp_pack_plan_release(&plan);
}

static void impossible_sizes_are_refused(void **state)
{
    tp_pack_options o = packed(0, 128);
    assert_int_equal(tp_pack_check(&o, &err), TP_ERR_CONFIG);
    o = packed(4, 1);
    assert_int_equal(tp_pack_check(&o, &err), TP_ERR_CONFIG);
    assert_string_equal(err.message,
                        "policy.sequence_packing.train_mb_tokens is 1; at least 2 are needed");
    o = (tp_pack_options){.batch_size = 4, .micro_batch_size = 1 << 20, .row_length = 1 << 20};
    assert_int_equal(tp_pack_check(&o, &err), TP_ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_micro_batch_lies_as_documented),
        cmocka_unit_test(without_packing_rows_are_padded),
        cmocka_unit_test(an_epoch_has_every_sample_once),
        cmocka_unit_test(epochs_are_shuffled_differently_and_by_seed),
        cmocka_unit_test(a_step_is_the_same_from_scratch),
        cmocka_unit_test(weights_of_a_step_add_up_to_one),
        cmocka_unit_test(packing_wastes_little),
        cmocka_unit_test(nothing_to_learn_is_not_divided_by_zero),
        cmocka_unit_test(ids_beyond_the_vocabulary_are_refused),
        cmocka_unit_test(a_subset_is_addressed_by_its_index),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, make_many, drop_many);
}
