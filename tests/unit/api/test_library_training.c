/* test_library_training.c - plan, run, stop, resume and use a tiny training through
 * libtemper.so. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <temper/temper.h>

typedef struct {
    char folder[64], config[96], run[96];
} fixture;

static const char model[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 260, "
    "\"hidden_size\": 32, \"intermediate_size\": 64, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 16, "
    "\"max_position_embeddings\": 64, \"rope_theta\": 10000.0, \"rms_norm_eps\": 1e-5, "
    "\"hidden_act\": \"silu\", \"tie_word_embeddings\": true}";

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->folder, "/tmp/temper-library-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->config, sizeof f->config, "%s/tiny.yaml", f->folder);
    snprintf(f->run, sizeof f->run, "%s/run", f->folder);
    char path[128];
    snprintf(path, sizeof path, "%s/model.json", f->folder);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(model, out);
    fclose(out);
    out = fopen(f->config, "w");
    assert_non_null(out);
    fprintf(out,
            "run: {dir: %s/run}\n"
            "sft: {max_num_steps: 4, max_num_epochs: 9, val_period: 0, val_at_start: false}\n"
            "policy:\n"
            "  init: random\n"
            "  model_config: %s/model.json\n"
            "  tokenizer: {name: null, chat_template: null, train_vocab_size: 260}\n"
            "  train_global_batch_size: 4\n"
            "  train_micro_batch_size: 2\n"
            "  max_total_sequence_length: 16\n"
            "data:\n"
            "  cache_dir: %s/cache\n"
            "  train: {dataset_name: arithmetic}\n"
            "  arithmetic: {n_examples: 64, n_validation: 8}\n"
            "checkpointing: {metric_name: null}\n"
            "engine: {threads: 2}\n",
            f->folder, f->folder, f->folder);
    fclose(out);
    *state = f;
    return 0;
}

static void clear(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
    fixture *f = *state;
    clear(f->folder);
    free(f);
    return 0;
}

typedef struct {
    int counts[TP_TRAINING_WORKING + 1];
    double losses[8];
    char run_dir[96], text[96];
    int64_t stop_at, step;
    uint64_t planned, peak;
} seen;

static void observe(void *user, const tp_training_progress *p)
{
    seen *s = user;
    s->counts[p->event]++;
    if (p->event == TP_TRAINING_STEP) {
        s->losses[p->step] = tp_training_value(p, "train/loss");
        s->step = p->step;
        assert_true(isfinite(tp_training_value(p, "train/loss")) &&
                    isfinite(tp_training_value(p, "train/grad_norm")) &&
                    tp_training_value(p, "train/global_valid_toks") > 0);
    }
    if (p->event == TP_TRAINING_NOTICE || p->event == TP_TRAINING_EXAMPLE) {
        assert_non_null(p->text);
        assert_true(isnan(tp_training_value(p, "train/loss")));
    }
    if (p->event == TP_TRAINING_FINISHED) {
        snprintf(s->run_dir, sizeof s->run_dir, "%s", p->run_dir);
        snprintf(s->text, sizeof s->text, "%s", p->text);
        s->planned = p->memory_planned_bytes;
        s->peak = p->memory_peak_bytes;
    }
}

static bool should_stop(void *user)
{
    const seen *s = user;
    return s->stop_at && s->step >= s->stop_at;
}

static tp_status train(const fixture *f, bool resume, seen *s, tp_training_result *ret,
                       tp_error *err)
{
    tp_training_options options = {.size = sizeof options,
                                   .resume = resume,
                                   .observe = observe,
                                   .should_stop = should_stop,
                                   .user = s};
    *ret = (tp_training_result){.size = sizeof *ret};
    return tp_training_run(f->config, NULL, 0, &options, ret, err);
}

/* What a run of one piece sees, whose folder is gone again. */
static seen whole_run(const fixture *f)
{
    seen whole = {.counts = {0}};
    tp_training_result result;
    tp_error err;
    if (train(f, false, &whole, &result, &err) != TP_OK)
        fail_msg("%s", err.message);
    clear(f->run);
    return whole;
}

static void test_the_parts_of_a_plan_make_its_peak(void **state)
{
    const fixture *f = *state;
    static const char *const overrides[] = {"policy.train_micro_batch_size=4",
                                            "policy.sequence_packing.enabled=false"};
    tp_training_plan plan = {.size = sizeof plan};
    tp_error err;

    if (tp_training_plan_compute(f->config, overrides, 2, &plan, &err) != TP_OK)
        fail_msg("%s", err.message);

    /* 260 x 32, and per layer q 32 x 32, k and v 32 x 16, o 32 x 32, three of 32 x 64, two
     * norms; a last norm. */
    assert_int_equal(plan.parameters, 26912);
    assert_int_equal(plan.weight_bytes, 4 * 26912);
    assert_int_equal(plan.gradient_bytes, 4 * 26912 + 8); /* and the norm's sum of squares */
    assert_int_equal(plan.optimizer_bytes, 8 * 26912);
    assert_int_equal(plan.tokens_per_micro_batch, 64);
    assert_int_equal(plan.micro_batches_per_step, 1);
    assert_int_equal(plan.peak_bytes, plan.weight_bytes + plan.shadow_bytes + plan.gradient_bytes +
                                          plan.optimizer_bytes + plan.activation_bytes +
                                          plan.other_bytes);
    assert_int_equal(plan.phase_bytes[TP_PLAN_CHECKPOINT], 12 * 26912);
    assert_int_equal(plan.phase_bytes[TP_PLAN_GENERATE], 0);
    assert_true(plan.phase_bytes[TP_PLAN_TRAIN] < plan.peak_bytes);
    assert_true(plan.flops_per_step > 6.0 * 26912 * 64);
    assert_true(plan.flops_per_step < 12.0 * 26912 * 64);
}

static void test_a_run_tells_what_it_does_and_leaves_a_model(void **state)
{
    const fixture *f = *state;
    seen s = {.counts = {0}};
    tp_training_result result;
    tp_error err;

    if (train(f, false, &s, &result, &err) != TP_OK)
        fail_msg("%s", err.message);

    assert_int_equal(result.steps, 4);
    assert_true(result.final_loss == s.losses[4]);
    assert_int_equal(s.counts[TP_TRAINING_PLAN], 1);
    assert_int_equal(s.counts[TP_TRAINING_START], 1);
    assert_int_equal(s.counts[TP_TRAINING_STEP], 4);
    assert_int_equal(s.counts[TP_TRAINING_FINISHED], 1);
    assert_true(s.counts[TP_TRAINING_CHECKPOINT] >= 1);
    assert_string_equal(s.run_dir, f->run);
    assert_string_equal(s.text, "finished");
    tp_text_generator *gen = NULL;
    if (tp_text_generator_open(f->run, NULL, &gen, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_non_null(tp_text_generator_tokenizer(gen));
    assert_int_equal(tp_model_param_count(tp_text_generator_model(gen)), 26912);
    tp_text_generator_free(gen);
}

static void test_a_run_feeds_the_sinks_that_its_recipe_names(void **state)
{
    const fixture *f = *state;
    char events[128], textfile[128], set[160], text[4096] = "";
    snprintf(events, sizeof events, "%s/tensorboard", f->run);
    snprintf(textfile, sizeof textfile, "%s/run.prom", f->folder);
    snprintf(set, sizeof set, "logger.prometheus.path=%s", textfile);
    const char *const overrides[] = {"logger.tensorboard_enabled=true", set};
    tp_error err;
    if (tp_training_run(f->config, overrides, 2, NULL, NULL, &err) != TP_OK)
        fail_msg("%s", err.message);

    tp_metrics *m;
    const tp_metric_point *points;
    if (tp_metrics_open(events, NULL, &m, &err) != TP_OK)
        fail_msg("%s", err.message);
    size_t loss = tp_metrics_find(m, "train/loss");
    assert_int_equal(tp_metrics_points(m, loss, TP_POINTS_FAST, &points), 4);
    assert_int_equal(points[3].step, 4);
    tp_metrics_close(m);
    FILE *in = fopen(textfile, "r");
    assert_non_null(in);
    assert_true(fread(text, 1, sizeof text - 1, in) > 0);
    fclose(in);
    assert_non_null(strstr(text, "\ntemper_step{run=\"run\"} 4\n"));
}

static void test_a_stopped_run_goes_on_as_if_it_had_not_stopped(void **state)
{
    const fixture *f = *state;
    const seen whole = whole_run(f);
    seen first = {.stop_at = 2}, second = {.counts = {0}};
    tp_training_result result;
    tp_error err;

    assert_int_equal(train(f, false, &first, &result, &err), TP_ERR_INTERRUPTED);
    assert_int_equal(result.steps, 2);
    assert_string_equal(first.text, "interrupted");
    if (train(f, true, &second, &result, &err) != TP_OK)
        fail_msg("%s", err.message);

    assert_int_equal(second.counts[TP_TRAINING_STEP], 2);
    assert_true(second.losses[3] == whole.losses[3]);
    assert_true(second.losses[4] == whole.losses[4]);
}

static tp_training *open_run(const fixture *f, const char *const *overrides, size_t n, bool resume)
{
    tp_training *t = NULL;
    tp_error err;
    const tp_training_options options = {.size = sizeof options, .resume = resume};
    if (tp_training_open(f->config, overrides, n, &options, &t, &err) != TP_OK)
        fail_msg("%s", err.message);
    return t;
}

static tp_training_step_result step_of(tp_training *t)
{
    tp_training_step_result step = {.size = sizeof step};
    tp_error err;
    if (tp_training_step(t, &step, &err) != TP_OK)
        fail_msg("%s", err.message);
    return step;
}

static void test_steps_by_hand_are_those_of_a_run(void **state)
{
    const fixture *f = *state;
    const seen whole = whole_run(f);
    tp_training_result result = {.size = sizeof result};
    tp_error err;

    tp_training *t = open_run(f, NULL, 0, false);
    for (int i = 1; i <= 4; i++) {
        assert_false(tp_training_is_over(t));
        tp_training_step_result step = step_of(t);
        assert_int_equal(step.step, i);
        assert_int_equal(step.max_steps, 4);
        assert_true(step.loss == whole.losses[i]);
        assert_int_equal(step.updates, 1);
        assert_int_equal(step.is_last, i == 4);
    }
    assert_true(tp_training_is_over(t));
    tp_training_step_result none = {.size = sizeof none};
    assert_int_equal(tp_training_step(t, &none, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "all 4 steps of the run are done");
    assert_true(none.step == 4 && none.max_steps == 4 && none.is_last && isnan(none.loss));
    assert_true(none.updates == 0 && !none.skipped && !none.overflowed && !none.restored);
    assert_int_equal(tp_training_close(t, &result, &err), TP_OK);
    assert_int_equal(result.steps, 4);
    assert_true(result.final_loss == whole.losses[4]);
}

static void test_a_training_that_is_closed_early_goes_on(void **state)
{
    const fixture *f = *state;
    const seen whole = whole_run(f);
    tp_training_result result = {.size = sizeof result};
    tp_error err;

    tp_training *t = open_run(f, NULL, 0, false);
    (void)step_of(t);
    assert_int_equal(tp_training_close(t, &result, &err), TP_OK);
    assert_int_equal(result.steps, 1);
    t = open_run(f, NULL, 0, true);
    tp_training_step_result step = step_of(t);
    assert_int_equal(step.step, 2);
    assert_true(step.loss == whole.losses[2]);
    assert_int_equal(tp_training_close(t, NULL, &err), TP_OK);
}

static void test_a_step_says_what_was_done_about_it(void **state)
{
    const fixture *f = *state;
    static const char *const overrides[] = {"policy.precision=float16", "train.inject_nan=[1]"};
    static const char *const stops[] = {"train.inject_nan=[1]"};
    tp_training_step_result step;
    tp_error err;

    tp_training *t = open_run(f, overrides, 2, false);
    step = step_of(t);
    assert_true(step.skipped && step.overflowed);
    assert_int_equal(step.updates, 0);
    assert_true(step.loss_scale == 65536);
    step = step_of(t);
    assert_true(!step.skipped && !step.overflowed);
    assert_true(step.loss_scale == 32768);
    assert_int_equal(tp_training_close(t, NULL, &err), TP_OK);
    clear(f->run);

    t = open_run(f, stops, 1, false);
    assert_int_equal(tp_training_step(t, NULL, &err), TP_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "step 1 is not finite"));
    assert_true(tp_training_is_over(t));
    step = (tp_training_step_result){.size = sizeof step};
    assert_int_equal(tp_training_step(t, &step, &err), TP_ERR_NUMERIC);
    assert_true(isnan(step.loss) && isnan(step.seconds) && step.is_last);
    assert_int_equal(tp_training_close(t, NULL, &err), TP_ERR_NUMERIC);
}

static void test_a_run_takes_what_was_planned(void **state)
{
    const fixture *f = *state;
    seen s = {.counts = {0}};
    tp_training_result result;
    tp_training_plan plan = {.size = sizeof plan};
    tp_error err;

    if (tp_training_plan_compute(f->config, NULL, 0, &plan, &err) != TP_OK ||
        train(f, false, &s, &result, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(plan.fits, 1);
    assert_true(plan.limit_bytes > plan.peak_bytes);
    assert_int_equal(s.planned, plan.peak_bytes);
    assert_true(s.peak >= plan.peak_bytes - plan.peak_bytes / 100);
    assert_true(s.peak <= plan.peak_bytes + plan.peak_bytes / 100);
}

static void test_a_run_that_does_not_fit_is_refused(void **state)
{
    const fixture *f = *state;
    static const char *const large[] = {"policy.train_global_batch_size=33554432",
                                        "policy.train_micro_batch_size=33554432"};
    tp_training_plan plan = {.size = sizeof plan};
    tp_error err;

    if (tp_training_plan_compute(f->config, large, 2, &plan, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(plan.fits, 0);
    assert_int_equal(tp_training_run(f->config, large, 2, NULL, NULL, &err), TP_ERR_NOMEM);
    assert_non_null(strstr(err.message, "does not fit: needs "));
    assert_non_null(strstr(err.message, "; with policy."));
}

static void test_a_wrong_configuration_names_the_place(void **state)
{
    const fixture *f = *state;
    static const char *const unknown[] = {"policy.trian_micro_batch_size=4"};
    static const char *const none[] = {NULL};
    tp_training_plan plan = {.size = sizeof plan, .parameters = 7};
    tp_error err;

    assert_int_equal(tp_training_plan_compute(f->config, unknown, 1, &plan, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "policy.train_micro_batch_size"));
    assert_int_equal(tp_training_run(f->config, unknown, 1, NULL, NULL, &err), TP_ERR_CONFIG);
    assert_int_equal(tp_training_run(f->config, none, 1, NULL, NULL, &err), TP_ERR_ARG);
    assert_int_equal(tp_training_run("/nowhere.yaml", NULL, 0, NULL, NULL, &err), TP_ERR_IO);
    assert_int_equal(plan.parameters, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_parts_of_a_plan_make_its_peak, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_tells_what_it_does_and_leaves_a_model, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_feeds_the_sinks_that_its_recipe_names, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_stopped_run_goes_on_as_if_it_had_not_stopped, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_steps_by_hand_are_those_of_a_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_training_that_is_closed_early_goes_on, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_step_says_what_was_done_about_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_takes_what_was_planned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_that_does_not_fit_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_wrong_configuration_names_the_place, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
