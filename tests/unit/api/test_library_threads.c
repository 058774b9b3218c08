/* test_library_threads.c - what the headers allow to several threads: "Threads: any, at once".
 *
 * Four threads share a tokenizer and call functions without an object; two trainings run beside
 * each other.  Everybody gets what one thread alone gets; the thread sanitizer watches. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <temper/temper.h>

enum { THREADS = 4, ROUNDS = 20 };

static const char text[] = "Hello, world! 12 + 34 = 46";
static char folder[] = "/tmp/temper-threads-XXXXXX";

typedef struct {
    tp_tokenizer *tok;
    const int32_t *ids;
    size_t n_ids;
    char *shares, *keys;
    uint64_t peak_bytes;
    int failures;
} job;

static char *shares_of(void)
{
    const int64_t successes[] = {3, 8}, trials[] = {10, 10};
    char *found = NULL;
    tp_error err;
    return tp_stats_shares(successes, trials, 2, NULL, &found, &err) == TP_OK ? found : NULL;
}

static char *keys_of(void)
{
    char *found = NULL;
    size_t n;
    tp_configuration_keys(&found, &n);
    return found;
}

static uint64_t peak_of(void)
{
    tp_training_plan plan = {.size = sizeof plan};
    tp_error err;
    tp_status status =
        tp_training_plan_compute(TP_SOURCE_DIR "/recipes/demo.yaml", NULL, 0, &plan, &err);
    return status == TP_OK ? plan.peak_bytes : 0;
}

static bool is_same(char *a, const char *b)
{
    bool same = a && b && strcmp(a, b) == 0;
    tp_free(a);
    return same;
}

static void *share(void *user)
{
    job *j = user;
    for (int i = 0; i < ROUNDS; i++) {
        int32_t *ids = NULL;
        size_t n = 0;
        tp_error err;
        j->failures += tp_tokenizer_to_ids(j->tok, NULL, text, sizeof text - 1, TP_ENCODE_SPECIAL,
                                           &ids, &n, &err) != TP_OK ||
                       n != j->n_ids || memcmp(ids, j->ids, n * sizeof *ids) != 0;
        tp_free(ids);
        j->failures += !is_same(shares_of(), j->shares);
        if (i % 5 == 0) {
            j->failures += !is_same(keys_of(), j->keys);
            j->failures += peak_of() != j->peak_bytes;
        }
    }
    return NULL;
}

static void functions_without_object_and_shared_tokenizers(void **state)
{
    (void)state;
    char dir[64], command[512];
    job j = {0};
    int32_t *ids = NULL;
    tp_error err = {0};
    snprintf(dir, sizeof dir, "%s/tokenizer", folder);
    snprintf(command, sizeof command,
             "mkdir -p %s && cp %s/tests/data/tokenizers/qwen2.json %s/tokenizer.json", dir,
             TP_SOURCE_DIR, dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(tp_tokenizer_load(dir, &j.tok, &err), TP_OK);
    assert_int_equal(tp_tokenizer_to_ids(j.tok, NULL, text, sizeof text - 1, TP_ENCODE_SPECIAL,
                                         &ids, &j.n_ids, &err),
                     TP_OK);
    j.ids = ids;
    j.shares = shares_of();
    j.keys = keys_of();
    j.peak_bytes = peak_of();
    assert_non_null(j.shares);
    assert_true(j.peak_bytes > 0);

    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = j;
        assert_int_equal(pthread_create(&threads[i], NULL, share, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].failures, 0);
    }
    tp_free(ids);
    tp_free(j.shares);
    tp_free(j.keys);
    tp_tokenizer_free(j.tok);
}

typedef struct {
    char dir[64];
    double loss;
    tp_error err;
} training;

static void *train(void *user)
{
    training *t = user;
    char run_dir[96];
    snprintf(run_dir, sizeof run_dir, "run.dir=%s", t->dir);
    const char *settings[] = {run_dir,
                              "sft.max_num_steps=3",
                              "sft.val_period=0",
                              "sft.val_at_start=false",
                              "sft.val_at_end=false",
                              "policy.train_global_batch_size=8",
                              "policy.train_micro_batch_size=4",
                              "data.arithmetic.n_examples=200",
                              "data.arithmetic.n_validation=20",
                              "checkpointing.enabled=false",
                              "engine.threads=1"};
    tp_training_result result = {.size = sizeof result};
    if (tp_training_run(TP_SOURCE_DIR "/recipes/demo.yaml", settings,
                        sizeof settings / sizeof *settings, NULL, &result, &t->err) == TP_OK)
        t->loss = result.final_loss;
    return NULL;
}

static void trainings_beside_each_other(void **state)
{
    (void)state;
    training alone = {0}, both[2];
    pthread_t threads[2];
    snprintf(alone.dir, sizeof alone.dir, "%s/alone", folder);
    train(&alone);
    assert_string_equal(alone.err.message, "");
    for (int i = 0; i < 2; i++) {
        both[i] = (training){0};
        snprintf(both[i].dir, sizeof both[i].dir, "%s/both-%d", folder, i);
        assert_int_equal(pthread_create(&threads[i], NULL, train, &both[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(both[i].err.message, "");
        assert_true(both[i].loss == alone.loss);
    }
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    char cache[64];
    snprintf(cache, sizeof cache, "%s/cache", folder);
    return setenv("XDG_CACHE_HOME", cache, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_without_object_and_shared_tokenizers),
        cmocka_unit_test(trainings_beside_each_other),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
