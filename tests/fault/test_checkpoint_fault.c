/* test_checkpoint_fault.c - every write, sync, rename and mkdir of a checkpoint fails in
 * turn, or the process ends there: what is found afterwards is the old checkpoint or the
 * new one, whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/log.h"
#include "engine/train/checkpoint.h"
#include "support/devices.h"
#include "temper/text.h"

enum { TOKENS = 16, MOST_CALLS = 5000, KILLED = 99 };

static const char config[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 20, \"hidden_size\": 16, \"intermediate_size\": "
    "24,"
    " \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"num_key_value_heads\": 1,"
    " \"max_position_embeddings\": 16, \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\"}";

typedef struct {
    char root[64], kept[96];
    tp_model *model;
    tp_session *session;
    tp_checkpoint_options options;
} fixture;

/* Weights that name their step. */
static void fill(fixture *f, int64_t step)
{
    tp_states *states = tp_session_states(f->session);
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].role == TP_ROLE_WEIGHT || states->items[i].role == TP_ROLE_MOMENT)
            for (size_t k = 0; k < states->items[i].bytes / sizeof(float); k++)
                ((float *)data_of(&states->items[i]))[k] =
                    (float)step + 1e-4f * (float)(i + k % 97);
}

static void assert_filled(fixture *f, int64_t step)
{
    const tp_states *states = tp_session_states(f->session);
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].role == TP_ROLE_WEIGHT || states->items[i].role == TP_ROLE_MOMENT)
            for (size_t k = 0; k < states->items[i].bytes / sizeof(float); k++)
                assert_true(((float *)data_of(&states->items[i]))[k] ==
                            (float)step + 1e-4f * (float)(i + k % 97));
}

static void be_silent(void *user, tp_log_level level, const char *component, const char *message)
{
    (void)user, (void)level, (void)component, (void)message;
}

static int set_up(void **state)
{
    static fixture f;
    tp_error err = {0};
    f = (fixture){.root = "/tmp/tp_fault_XXXXXX"};
    assert_non_null(mkdtemp(f.root));
    snprintf(f.kept, sizeof f.kept, "%s/checkpoints", f.root);
    assert_int_equal(tp_model_parse("config", config, sizeof config - 1, &f.model, &err), TP_OK);
    tp_session_options options = {.compile.device = device_of("cpu", 1),
                                  .tokens = TOKENS,
                                  .max_positions = TOKENS,
                                  .compile.passes.compute_dtype = TP_DTYPE_BF16,
                                  .compile.share_memory = true};
    assert_int_equal(tp_session_create(f.model, &options, &f.session, &err), TP_OK);
    assert_int_equal(tp_session_alloc(f.session, &err), TP_OK);
    /* bf16 on disk: the f32 masters have to survive as well. */
    f.options = (tp_checkpoint_options){
        .root = f.kept, .save_optimizer = true, .model_dtype = TP_DTYPE_BF16};
    tp_log_set_sink(be_silent, NULL);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tp_error err = {0};
    tp_fault_arm(0, false);
    tp_log_set_sink(NULL, NULL);
    tp_session_free(f->session);
    tp_model_free(f->model);
    return tp_dir_remove(f->root, &err) != TP_OK;
}

static tp_status save_as(fixture *f, int64_t step, bool is_unvalidated, tp_error *err)
{
    tp_train_state state = {.step = step,
                            .updates = step,
                            .seed = 7,
                            .metric = -(double)step,
                            .is_unvalidated = is_unvalidated};
    tp_model_fingerprint(f->model, state.model_fingerprint);
    strcpy(state.data_fingerprint, "data");
    fill(f, step);
    TP_TRY(tp_checkpoint_save(&f->options, f->session, &state, NULL, err));
    return tp_checkpoint_prune(f->kept, "", 1, false, err);
}

static tp_status save(fixture *f, int64_t step, tp_error *err)
{
    return save_as(f, step, false, err);
}

/* Loads what is found and returns its step; 0 = nothing. */
static int64_t found_step(fixture *f)
{
    tp_buf path = {0};
    tp_error err = {0};
    tp_train_state state = {0};
    assert_int_equal(tp_checkpoint_find(f->kept, "", &path, NULL, &err), TP_OK);
    if (path.len) {
        fill(f, 999);
        assert_int_equal(tp_checkpoint_load(path.data, f->session, &state, &err), TP_OK);
        assert_filled(f, state.step);
    }
    tp_buf_release(&path);
    return state.step;
}

static void start_over(fixture *f)
{
    tp_error err = {0};
    assert_int_equal(tp_dir_remove(f->kept, &err), TP_OK);
    assert_int_equal(save(f, 1, &err), TP_OK);
}

static void failing_call_leaves_old_or_new(void **state)
{
    fixture *f = *state;
    bool faulted = true;
    int n = 1, n_old = 0, n_new = 0;

    for (; faulted && n < MOST_CALLS; n++) {
        tp_error err = {0};
        start_over(f);
        tp_fault_arm((uint64_t)n, false);
        tp_status status = save(f, 2, &err);
        faulted = tp_fault_count() >= (uint64_t)n;
        tp_fault_arm(0, false);

        int64_t step = found_step(f);
        assert_true(step == 1 || step == 2);
        n_old += step == 1;
        n_new += step == 2;
        if (status == TP_OK)
            assert_int_equal(step, 2);
        else
            assert_true(err.message[0] != 0);

        /* Room again: the same save goes through, and nothing stays behind. */
        assert_int_equal(save(f, 2, &err), TP_OK);
        assert_int_equal(found_step(f), 2);
    }

    assert_false(faulted);
    assert_true(n > 20 && n_old > 15 && n_new >= 1);
    print_message("%d calls failed in turn: %d times the old checkpoint, %d times the new\n", n - 2,
                  n_old, n_new);
}

static void dying_at_a_call_leaves_old_or_new(void **state)
{
    fixture *f = *state;
    int died = 1, n = 1;

    for (; died && n < MOST_CALLS; n++) {
        start_over(f);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            tp_fault_arm((uint64_t)n, true);
            _exit(save(f, 2, NULL) == TP_OK ? 0 : 1);
        }
        int status;
        tp_error err = {0};
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        died = WEXITSTATUS(status) == KILLED;
        assert_true(died || WEXITSTATUS(status) == 0);

        int64_t step = found_step(f);
        assert_true(step == 1 || step == 2);
        assert_int_equal(save(f, 2, &err), TP_OK);
        assert_int_equal(found_step(f), 2);
    }

    assert_false(died);
    assert_true(n > 20);
    print_message("died at each of %d calls\n", n - 2);
}

/* The only checkpoint there is becomes one with its validation behind it. */
static void replacing_leaves_old_or_new(void **state)
{
    fixture *f = *state;
    int died = 1, n = 1, n_old = 0;

    for (; died && n < MOST_CALLS; n++) {
        char path[256];
        tp_error err = {0};
        tp_train_state found = {0};
        assert_int_equal(tp_dir_remove(f->kept, &err), TP_OK);
        assert_int_equal(save_as(f, 1, true, &err), TP_OK);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            tp_fault_arm((uint64_t)n, true);
            _exit(save(f, 1, NULL) == TP_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        died = WEXITSTATUS(status) == KILLED;
        assert_true(died || WEXITSTATUS(status) == 0);

        assert_int_equal(found_step(f), 1);
        snprintf(path, sizeof path, "%s/step-1", f->kept);
        assert_int_equal(tp_checkpoint_read_state(path, &found, &err), TP_OK);
        assert_true(died || !found.is_unvalidated);
        n_old += found.is_unvalidated;
    }

    assert_false(died);
    assert_true(n > 20 && n_old > 15 && n_old < n - 1);
}

/* Before the run, where the folder does not exist yet. */
static void room_is_looked_for_where_the_folder_will_be(void **state)
{
    tp_error err = {0};
    (void)state;

    assert_int_equal(tp_checkpoint_check_space("/tmp/not/there/yet", 1, &err), TP_OK);
    assert_int_equal(tp_checkpoint_check_space("not-there", 1, &err), TP_OK);
    assert_int_equal(tp_checkpoint_check_space("/not-there", SIZE_MAX, &err), TP_ERR_OUTPUT);

    assert_non_null(strstr(err.message, "'/not-there' has"));
    assert_non_null(strstr(err.message, "make room or set checkpointing.checkpoint_dir"));
}

typedef struct {
    bool writes, sums, verifies;
    uint64_t written, all;
} heard;

static void hear(void *user, const char *what, uint64_t done, uint64_t total)
{
    heard *h = user;
    h->writes |= strstr(what, "writing ") == what && strstr(what, "/checkpoints/step-1");
    h->sums |= strcmp(what, "checksums of step 1") == 0;
    h->verifies |= strstr(what, "verifying ") == what && done == total;
    if (strstr(what, "writing ") == what) {
        h->written = done;
        h->all = total;
    }
}

/* Whoever waits for it hears what is written, added up and verified, to its end. */
static void saving_and_finding_say_what_they_are_at(void **state)
{
    fixture *f = *state;
    tp_error err = {0};
    heard h = {0};
    tp_working_listen(hear, &h);
    assert_int_equal(save(f, 1, &err), TP_OK);
    assert_true(h.writes && h.sums && !h.verifies);
    assert_true(h.all > 0 && h.written > h.all / 2);
    assert_int_equal(found_step(f), 1);
    assert_true(h.verifies);
    tp_working_listen(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_looked_for_where_the_folder_will_be),
        cmocka_unit_test_setup_teardown(saving_and_finding_say_what_they_are_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failing_call_leaves_old_or_new, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dying_at_a_call_leaves_old_or_new, set_up, tear_down),
        cmocka_unit_test_setup_teardown(replacing_leaves_old_or_new, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
