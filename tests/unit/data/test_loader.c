#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/data/loader.h"
#include "engine/device/memory.h"
#include "sample_file.h"

enum { N_SAMPLES = 100, BUDGET = 64 };

static char path[64];
static tp_cache cache;
static tp_sample_set set;
static tp_error err;

static int make_set(void **state)
{
    int lengths[N_SAMPLES];
    tp_rng rng = tp_rng_make(9, 0);
    for (int i = 0; i < N_SAMPLES; i++)
        lengths[i] = 2 + (int)tp_rng_below(&rng, 40);
    snprintf(path, sizeof path, "/tmp/temper-loader-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0 || sample_file_make(path, lengths, N_SAMPLES, 1, &cache))
        return 1;
    close(fd);
    unlink(path);
    set = (tp_sample_set){.cache = &cache, .n = N_SAMPLES};
    return 0;
}

static int drop_set(void **state)
{
    tp_cache_close(&cache);
    return 0;
}

static tp_loader *open_loader(int workers, uint64_t epochs)
{
    tp_loader_options options = {.pack = {.seed = 1,
                                          .shuffle = true,
                                          .batch_size = 8,
                                          .packing = true,
                                          .budget = BUDGET,
                                          .vocab_size = 1000 * (N_SAMPLES + 1)},
                                 .num_workers = workers,
                                 .prefetch_factor = 3,
                                 .epochs = epochs};
    tp_loader *loader = NULL;
    err.message[0] = 0;
    tp_status status = tp_loader_open(&set, &options, &loader, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TP_OK);
    return loader;
}

static const tp_microbatch *next(tp_loader *loader)
{
    const tp_microbatch *mb = NULL;
    assert_int_equal(tp_loader_next(loader, &mb, NULL), TP_OK);
    return mb;
}

static void expect_same(const tp_microbatch *a, const tp_microbatch *b)
{
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->n_in_step, b->n_in_step);
    assert_int_equal(a->step_trained, b->step_trained);
    assert_memory_equal(a->tokens, b->tokens, BUDGET * sizeof *a->tokens);
    assert_memory_equal(a->positions, b->positions, BUDGET * sizeof *a->positions);
    assert_memory_equal(a->targets, b->targets, BUDGET * sizeof *a->targets);
    assert_memory_equal(a->loss_weights, b->loss_weights, BUDGET * sizeof *a->loss_weights);
    assert_memory_equal(a->cu, b->cu, (BUDGET + 1) * sizeof *a->cu);
}

static void threads_change_nothing(void **state)
{
    const int workers[] = {1, 2, 5};
    for (int w = 0; w < 3; w++) {
        tp_loader *plain = open_loader(0, 0), *threaded = open_loader(workers[w], 0);
        for (int i = 0; i < 300; i++)
            expect_same(next(plain), next(threaded));
        tp_loader_close(plain);
        tp_loader_close(threaded);
    }
}

static void micro_batches_come_in_order(void **state)
{
    tp_loader *loader = open_loader(3, 0);
    assert_int_equal(tp_loader_steps_per_epoch(loader), 13);
    uint64_t step = 0;
    uint32_t index = 0;
    for (int i = 0; i < 200; i++) {
        const tp_microbatch *mb = next(loader);
        assert_int_equal(mb->step, step);
        assert_int_equal(mb->index, index);
        assert_int_equal(mb->epoch, step / 13);
        if (++index == mb->n_in_step) {
            index = 0;
            step++;
        }
    }
    tp_loader_close(loader);
}

static void seeking_lands_on_the_step(void **state)
{
    for (int workers = 0; workers <= 3; workers += 3) {
        tp_loader *in_turn = open_loader(0, 0), *jumping = open_loader(workers, 0);
        const tp_microbatch *mb = next(in_turn);
        while (mb->step < 21)
            mb = next(in_turn);
        next(jumping);

        tp_loader_seek(jumping, 21);

        expect_same(mb, next(jumping));
        expect_same(next(in_turn), next(jumping));
        tp_loader_seek(jumping, 0);
        assert_int_equal(next(jumping)->step, 0);
        tp_loader_close(in_turn);
        tp_loader_close(jumping);
    }
}

static void validation_ends_and_can_start_again(void **state)
{
    for (int workers = 0; workers <= 2; workers++) {
        tp_loader *loader = open_loader(workers, 1);
        for (int round = 0; round < 3; round++) {
            int sequences = 0;
            for (const tp_microbatch *mb; (mb = next(loader));)
                sequences += mb->n_sequences;
            assert_int_equal(sequences, N_SAMPLES);
            assert_null(next(loader)); /* and stays there */
            tp_loader_seek(loader, 0);
        }
        tp_loader_seek(loader, 13);
        assert_null(next(loader));
        tp_loader_close(loader);
    }
}

static void closing_works_in_any_state(void **state)
{
    for (int i = 0; i < 60; i++) {
        tp_loader *loader = open_loader(1 + i % 4, (uint64_t)(i % 3));
        for (int k = 0; k < i % 7; k++)
            (void)next(loader);
        if (i % 5 == 0)
            tp_loader_seek(loader, (uint64_t)i);
        tp_loader_close(loader);
    }
    tp_loader_close(NULL);
}

static void nothing_is_allocated_per_step(void **state)
{
    tp_loader *loader = open_loader(2, 0);
    next(loader);
    uint64_t before = tp_mem_get_stats().n_allocs;
    for (int i = 0; i < 200; i++)
        next(loader);
    assert_int_equal(tp_mem_get_stats().n_allocs, before);
    assert_true(tp_mem_get_stats().current[TP_MEM_DATA] > 0);
    tp_loader_close(loader);
    assert_int_equal(tp_mem_get_stats().current[TP_MEM_DATA], 0);
}

static void waiting_and_padding_are_counted(void **state)
{
    tp_loader *loader = open_loader(0, 1);
    uint64_t n = 0, padding = 0;
    for (const tp_microbatch *mb; (mb = next(loader)); n++)
        padding += (uint64_t)(BUDGET - mb->n_tokens);
    tp_loader_stats stats = tp_loader_get_stats(loader);
    assert_int_equal(stats.n_micro, n);
    assert_int_equal(stats.n_padding, padding);
    assert_int_equal(stats.n_sequences, N_SAMPLES);
    assert_true(stats.waited_s > 0);
    tp_loader_close(loader);
}

static void a_damaged_example_is_an_error_in_its_place(void **state)
{
    int fd = -1;
    char damaged_path[] = "/tmp/temper-loader-XXXXXX";
    const int lengths[] = {10, 10, 10};
    tp_cache damaged;
    fd = mkstemp(damaged_path);
    assert_true(fd >= 0);
    assert_int_equal(sample_file_make(damaged_path, lengths, 3, 1, &damaged), 0);
    uint64_t at = damaged.offsets[1] + 24;
    tp_cache_close(&damaged);
    assert_int_equal(pwrite(fd, "\xff", 1, (off_t)at), 1);
    close(fd);
    assert_int_equal(tp_cache_open(damaged_path, NULL, &damaged, NULL), TP_OK);
    unlink(damaged_path);
    tp_sample_set three = {.cache = &damaged, .n = 3};
    for (int workers = 0; workers <= 2; workers++) {
        tp_loader_options options = {
            .pack = {.batch_size = 1, .packing = true, .budget = 16, .vocab_size = 9000},
            .num_workers = workers};
        tp_loader *loader;
        const tp_microbatch *mb;
        assert_int_equal(tp_loader_open(&three, &options, &loader, NULL), TP_OK);
        assert_int_equal(tp_loader_next(loader, &mb, &err), TP_OK);
        assert_int_equal(tp_loader_next(loader, &mb, &err), TP_ERR_FORMAT);
        assert_non_null(strstr(err.message, "is damaged: example 1 fails its check; delete the "
                                            "file, it will be made again"));
        assert_int_equal(tp_loader_next(loader, &mb, &err), TP_ERR_FORMAT);
        tp_loader_seek(loader, 2);
        assert_int_equal(tp_loader_next(loader, &mb, &err), TP_OK);
        assert_int_equal(mb->tokens[0], 2000);
        tp_loader_close(loader);
    }
    tp_cache_close(&damaged);
}

static void impossible_options_are_refused(void **state)
{
    tp_loader *loader;
    tp_loader_options options = {
        .pack = {.batch_size = 101, .packing = true, .budget = 64, .drop_last = true}};
    assert_int_equal(tp_loader_open(&set, &options, &loader, &err), TP_ERR_CONFIG);
    assert_string_equal(err.message,
                        "100 examples do not make a batch of 101; lower the batch size");
    options.pack.drop_last = false;
    options.num_workers = -1;
    assert_int_equal(tp_loader_open(&set, &options, &loader, &err), TP_ERR_CONFIG);
    assert_string_equal(err.message, "data.num_workers is -1; 0 to 1024 are possible");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(micro_batches_come_in_order),
        cmocka_unit_test(seeking_lands_on_the_step),
        cmocka_unit_test(validation_ends_and_can_start_again),
        cmocka_unit_test(closing_works_in_any_state),
        cmocka_unit_test(nothing_is_allocated_per_step),
        cmocka_unit_test(waiting_and_padding_are_counted),
        cmocka_unit_test(a_damaged_example_is_an_error_in_its_place),
        cmocka_unit_test(impossible_options_are_refused),
    };
    return cmocka_run_group_tests(tests, make_set, drop_set);
}
