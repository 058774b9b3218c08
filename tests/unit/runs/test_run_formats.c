/* test_run_formats.c - formats one by one: names of steps and times, attempts, restarts, several
 * runs in one place. */
#include <math.h>

#include "run_files.h"

static void expect_point(tp_metrics *m, const char *tag, tp_points_view view, size_t at,
                         int64_t step, double wall, double value)
{
    const tp_metric_point *p;
    size_t n = points_of(m, tag, view, &p);
    assert_true(at < n);
    assert_true(p[at].step == step);
    assert_true(p[at].wall_time == wall || (isnan(wall) && isnan(p[at].wall_time)));
    assert_true(p[at].value == value || (isnan(value) && isnan(p[at].value)));
}

static size_t count(tp_metrics *m, const char *tag, tp_points_view view)
{
    const tp_metric_point *p;
    return points_of(m, tag, view, &p);
}

static void temper_attempts(void **state)
{
    write_text("run.json", "{}");
    write_text("metrics.jsonl", "{\"v\":1,\"t\":1.5,\"run\":\"r\",\"attempt\":1,\"step\":1,"
                                "\"axis\":\"train\",\"m\":{\"train/loss\":4}}\n"
                                "{\"v\":1,\"t\":2.5,\"run\":\"r\",\"attempt\":1,\"step\":2,"
                                "\"axis\":\"train\",\"m\":{\"train/loss\":3,\"train/old\":1}}\n"
                                "{\"v\":1,\"t\":2.6,\"run\":\"r\",\"attempt\":1,\"step\":2,"
                                "\"axis\":\"validation\",\"m\":{\"validation/loss\":9}}\n"
                                "{\"v\":1,\"t\":3.5,\"run\":\"r\",\"attempt\":1,\"step\":3,"
                                "\"axis\":\"train\",\"m\":{\"train/loss\":\"NaN\"}}\n"
                                "{\"v\":1,\"t\":4.5,\"run\":\"r\",\"attempt\":2,\"step\":2,"
                                "\"axis\":\"train\",\"m\":{\"train/loss\":2}}\n");
    write_text("config.yaml", "policy:\n  lr: 1.0e-3 # file\nname: x\n");
    tp_metrics *m = open_run(run_folder);
    assert_string_equal(tp_metrics_format(m), "temper");
    /* step 2 of attempt 1 is written again, step 3 is not */
    assert_int_equal(count(m, "train/loss", TP_POINTS_NATIVE), 3);
    expect_point(m, "train/loss", TP_POINTS_NATIVE, 0, 1, 1.5, 4);
    expect_point(m, "train/loss", TP_POINTS_NATIVE, 1, 3, 3.5, NAN);
    expect_point(m, "train/loss", TP_POINTS_NATIVE, 2, 2, 4.5, 2);
    assert_int_equal(count(m, "train/old", TP_POINTS_NATIVE), 0);
    assert_int_equal(count(m, "validation/loss", TP_POINTS_NATIVE), 1);
    assert_int_equal(count(m, "train/loss", TP_POINTS_ALL), 4);
    const tp_metric_point *p;
    assert_int_equal(tp_metrics_curve(m, tp_metrics_find(m, "train/loss"), &p), 3);
    assert_true(p[1].step == 2 && p[1].value == 2);
    const char *value;
    assert_string_equal(tp_metrics_setting(m, 0, &value), "policy.lr");
    assert_string_equal(value, "1.0e-3");
    tp_metrics_close(m);
}

static void names_of_steps_and_times(void **state)
{
    write_text("a.jsonl",
               "{\"_step\": 5, \"_timestamp\": 1700000000.25, \"loss\": 1, \"time\": 3}\n"
               "{\"global_step\": 6, \"timestamp\": \"2025-01-01T01:00:00+01:00\", \"m\": "
               "{\"loss\": 2}, \"eval\": {\"acc\": 0.5}}\n"
               "{\"loss\": 3, \"ts\": 1700000000250}\n");
    tp_metrics *m = open_run(run_path("a.jsonl"));
    expect_point(m, "loss", TP_POINTS_NATIVE, 0, 5, 1700000000.25, 1);
    expect_point(m, "time", TP_POINTS_NATIVE, 0, 5, 1700000000.25, 3);
    expect_point(m, "loss", TP_POINTS_NATIVE, 1, 6, 1735689600, 2);
    expect_point(m, "eval/acc", TP_POINTS_NATIVE, 0, 6, 1735689600, 0.5);
    expect_point(m, "loss", TP_POINTS_NATIVE, 2, 2, 1700000000.25, 3);
    tp_metrics_close(m);
}

static void rows_of_one_figure(void **state)
{
    write_text("a.jsonl", "{\"step\": 1, \"name\": \"loss\", \"value\": 2}\n"
                          "{\"step\": 1, \"name\": \"acc\", \"value\": 0.5}\n");
    tp_metrics *m = open_run(run_path("a.jsonl"));
    expect_point(m, "loss", TP_POINTS_NATIVE, 0, 1, NAN, 2);
    expect_point(m, "acc", TP_POINTS_NATIVE, 0, 1, NAN, 0.5);
    tp_metrics_close(m);
}

static void a_list_of_objects(void **state)
{
    write_text("a.json", "[{\"step\": 1, \"loss\": 2}, {\"step\": 2, \"loss\": Infinity}]");
    tp_metrics *m = open_run(run_path("a.json"));
    expect_point(m, "loss", TP_POINTS_NATIVE, 1, 2, NAN, INFINITY);
    tp_metrics_close(m);
}

/* Steps that the latest view has, and their values. */
static void expect_latest(tp_metrics *m, const char *tag, size_t n, const int64_t *steps,
                          const double *values)
{
    assert_int_equal(count(m, tag, TP_POINTS_LATEST), n);
    for (size_t i = 0; i < n; i++)
        expect_point(m, tag, TP_POINTS_LATEST, i, steps[i], NAN, values[i]);
}

/* MMCV counts "iter" within an epoch, and those of an evaluation are its batches; an epoch that is
 * written again begins where it did. */
static void steps_within_epochs(void **state)
{
    static const char rows[] = "{\"env_info\": \"x\", \"seed\": 0}\n"
                               "{\"mode\": \"train\", \"epoch\": 1, \"iter\": 50, \"loss\": 9}\n"
                               "{\"mode\": \"train\", \"epoch\": 1, \"iter\": 100, \"loss\": 8}\n"
                               "{\"mode\": \"val\", \"epoch\": 1, \"iter\": 5000, \"mAP\": 0.5}\n"
                               "{\"mode\": \"train\", \"epoch\": 2, \"iter\": 50, \"loss\": 7}\n"
                               "{\"mode\": \"train\", \"epoch\": 2, \"iter\": 100, \"loss\": 6}\n"
                               "{\"mode\": \"val\", \"epoch\": 2, \"iter\": 5000, \"mAP\": 0.75}\n";
    write_text("a.log.json", rows);
    tp_metrics *m = open_run(run_path("a.log.json"));
    expect_latest(m, "loss", 4, (int64_t[]){50, 100, 150, 200}, (double[]){9, 8, 7, 6});
    expect_latest(m, "mAP", 2, (int64_t[]){100, 200}, (double[]){0.5, 0.75});
    assert_true(has_note(m, "steps begin again with each epoch, and are counted on: those of epoch "
                            "2 behind 100"));
    assert_false(has_note(m, "of a later row"));
    append_text("a.log.json", "{\"mode\": \"train\", \"epoch\": 2, \"iter\": 50, \"loss\": 5}\n"
                              "{\"mode\": \"train\", \"epoch\": 2, \"iter\": 100, \"loss\": 4}\n"
                              "{\"mode\": \"train\", \"epoch\": 3, \"iter\": 50, \"loss\": 3}\n");
    assert_int_equal(tp_metrics_refresh(m, NULL, NULL), TP_OK);
    expect_latest(m, "loss", 5, (int64_t[]){50, 100, 150, 200, 250}, (double[]){9, 8, 5, 4, 3});
    tp_metrics_close(m);

    /* Epochs with parts stand beside steps of the run. */
    write_text("b.jsonl", "{\"epoch\": 1, \"step\": 10, \"loss\": 3}\n"
                          "{\"epoch\": 1.5, \"step\": 20, \"loss\": 2}\n"
                          "{\"epoch\": 2, \"step\": 5, \"loss\": 1}\n");
    m = open_run(run_path("b.jsonl"));
    expect_point(m, "loss", TP_POINTS_ALL, 2, 5, NAN, 1);
    tp_metrics_close(m);
}

/* Rows are epoch, step, tag; the value is the number of the row. */
typedef struct {
    const char *rows, *tag;
    size_t n;
    int64_t steps[8];
} counted;

static void expect_counted(const counted *x)
{
    write_text("c.jsonl", x->rows);
    tp_metrics *m = open_run(run_path("c.jsonl"));
    assert_int_equal(count(m, x->tag, TP_POINTS_ALL), x->n);
    for (size_t i = 0; i < x->n; i++) {
        const tp_metric_point *p;
        points_of(m, x->tag, TP_POINTS_ALL, &p);
        if (p[i].step != x->steps[i])
            fail_msg("%s of %s: %lld", x->tag, x->rows, (long long)p[i].step);
    }
    tp_metrics_close(m);
}

#define ROW(epoch, step, tag) "{\"epoch\": " #epoch ", \"step\": " #step ", \"" tag "\": 1}\n"

static void steps_are_counted_by_kind(void **state)
{
    static const counted all[] = {
        /* from 0, the same in each epoch, evaluations between */
        {ROW(0, 0, "a") ROW(0, 5, "a") ROW(1, 0, "a") ROW(1, 5, "a"), "a", 4, {0, 5, 6, 11}},
        {ROW(1, 5, "a") ROW(2, 5, "a") ROW(3, 5, "a"), "a", 3, {5, 10, 15}},
        {ROW(1, 5, "a") ROW(1, 9, "a") ROW(1, 2, "e") ROW(2, 5, "a") ROW(2, 9, "a") ROW(2, 2, "e"),
         "a",
         4,
         {5, 9, 14, 18}},
        {ROW(1, 5, "a") ROW(1, 9, "a") "{\"step\": 1, \"e\": 1}\n" ROW(2, 5, "a"),
         "a",
         3,
         {5, 9, 14}},
        /* steps of the run, evaluations that count their batches */
        {ROW(1, 10, "a") ROW(1, 20, "a") ROW(2, 2, "e") ROW(2, 30, "a") ROW(3, 2, "e")
             ROW(3, 40, "a"),
         "a",
         4,
         {10, 20, 30, 40}},
        {ROW(0, 1, "a") ROW(0, 50, "e") ROW(1, 2, "a") ROW(1, 50, "e") ROW(2, 3, "a"),
         "a",
         3,
         {1, 2, 3}},
        {ROW(0, 10, "a") ROW(1, 10, "a") ROW(1, 20, "a") ROW(2, 20, "a"), "a", 4, {10, 10, 20, 20}},
        {ROW(1, 9, "e") ROW(1, 10, "a") ROW(2, 8, "e") ROW(2, 20, "a") ROW(3, 9, "e"),
         "e",
         3,
         {9, 8, 9}},
        /* not clear, or no steps */
        {ROW(1, 5, "a") ROW(1, 9, "a") ROW(2, 5, "a") ROW(2.5, 7, "a"), "a", 4, {5, 9, 5, 7}},
        {ROW(1, 5, "a") ROW(2, 4, "a") ROW(3, 6, "a"), "a", 3, {5, 4, 6}},
        {ROW(1, -5, "a") ROW(2, -7, "a"), "a", 2, {-5, -7}},
        {ROW(1, 9000000000000000000, "a") ROW(2, 8000000000000000000, "a"),
         "a",
         2,
         {9000000000000000000, 8000000000000000000}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        expect_counted(&all[i]);
    write_text("c.jsonl", ROW(1, 5, "a") ROW(2, 4, "a") ROW(3, 6, "a"));
    tp_metrics *m = open_run(run_path("c.jsonl"));
    assert_true(has_note(m, "some steps begin again with an epoch, others go on"));
    tp_metrics_close(m);
    write_text("c.jsonl", ROW(1, 5, "a") ROW(2, 4, "a") "{\"step\": 4, \"lr\": 1}\n");
    m = open_run(run_path("c.jsonl"));
    assert_true(has_note(m, "1 row without an epoch: the steps of these are as written"));
    tp_metrics_close(m);
}

/* What a run that was appended writes again is void in the one before; a step that falls alone is
 * said. */
static void steps_that_fall(void **state)
{
    write_text("again.csv", "step,loss,acc\n1,9,0.1\n2,8,\n3,7,0.3\n4,6,\n1,5,\n2,4,0.4\n");
    tp_metrics *m = open_run(run_path("again.csv"));
    expect_latest(m, "loss", 2, (int64_t[]){1, 2}, (double[]){5, 4});
    expect_latest(m, "acc", 3, (int64_t[]){1, 3, 2}, (double[]){0.1, 0.3, 0.4});
    assert_int_equal(count(m, "loss", TP_POINTS_NATIVE), 6);
    assert_true(has_note(m, "4 of 9 points have the step of a later row"));
    assert_false(has_note(m, "no row goes on"));
    tp_metrics_close(m);

    write_text("closing.jsonl", "{\"current_steps\": 10, \"loss\": 3, \"epoch\": 0.5}\n"
                                "{\"current_steps\": 20, \"loss\": 2, \"epoch\": 1.0}\n"
                                "{\"current_steps\": 2, \"eval_loss\": 1, \"epoch\": 1.0}\n");
    m = open_run(run_path("closing.jsonl"));
    expect_latest(m, "loss", 2, (int64_t[]){10, 20}, (double[]){3, 2});
    expect_latest(m, "eval_loss", 1, (int64_t[]){2}, (double[]){1});
    assert_true(has_note(m, "1 row with a step below that of the row before, from which no row "
                            "goes on (the first: 2 behind 20)"));
    assert_false(has_note(m, "of a later row"));
    tp_metrics_close(m);

    /* Evaluations between, that count their batches. */
    write_text(
        "between.jsonl",
        "{\"step\": 1, \"loss\": 3}\n{\"step\": 5, \"loss\": 2}\n{\"step\": 2, \"acc\": 1}\n"
        "{\"step\": 9, \"loss\": 1}\n{\"step\": 2, \"acc\": 4}\n{\"step\": 12, \"loss\": 0}\n");
    m = open_run(run_path("between.jsonl"));
    assert_int_equal(count(m, "loss", TP_POINTS_LATEST), 4);
    expect_latest(m, "acc", 1, (int64_t[]){2}, (double[]){4});
    assert_true(has_note(m, "2 rows with a step below"));
    assert_true(has_note(m, "1 of 6 points have the step of a later row"));
    tp_metrics_close(m);

    /* Other orders of rows void nothing: one metric behind another, any order, from the end. */
    write_text("long.csv", "tag,step,value\na,1,1\na,2,2\na,3,3\nb,1,1\nb,2,2\n");
    m = open_run(run_path("long.csv"));
    assert_int_equal(count(m, "a", TP_POINTS_LATEST), 3);
    assert_int_equal(tp_metrics_notes(m), 0);
    tp_metrics_close(m);
    write_text("mixed.csv", "step,loss\n5,1\n3,1\n4,1\n1,1\n2,1\n");
    m = open_run(run_path("mixed.csv"));
    assert_int_equal(count(m, "loss", TP_POINTS_LATEST), 5);
    tp_metrics_close(m);
    write_text("async.csv", "step,loss\n100,1\n300,1\n200,1\n250,1\n400,1\n500,1\n500,1\n");
    m = open_run(run_path("async.csv"));
    assert_int_equal(count(m, "loss", TP_POINTS_LATEST), 6);
    tp_metrics_close(m);
    write_text("back.csv", "step,loss\n4,1\n3,1\n2,1\n1,1\n");
    m = open_run(run_path("back.csv"));
    assert_int_equal(count(m, "loss", TP_POINTS_LATEST), 4);
    assert_int_equal(tp_metrics_notes(m), 0);
    tp_metrics_close(m);
}

/* As NeMo RL makes it of event files, with lines and without. */
static void an_object_of_tags(void **state)
{
    static const char *const trees[] = {
        "{\n  \"train/loss\": {\n    \"10\": 1.5,\n    \"2\": NaN,\n    \"1\": 3\n  },\n"
        "  \"a\\/b\": {\"7\": null, \"8\": 0.5}\n}\n",
        "{\"train/loss\": {\"10\": 1.5, \"2\": NaN, \"1\": 3}, \"a/b\": {\"8\": 0.5}}"};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        write_text("metrics.json", trees[i]);
        tp_metrics *m = open_run(run_path("metrics.json"));
        assert_int_equal(tp_metrics_count(m), 2);
        expect_latest(m, "train/loss", 3, (int64_t[]){1, 2, 10}, (double[]){3, NAN, 1.5});
        expect_latest(m, "a/b", 1, (int64_t[]){8}, (double[]){0.5});
        assert_int_equal(tp_metrics_notes(m), 0);
        tp_metrics_close(m);
    }
    write_text("metrics.json", "{\n  \"loss\": {\n    \"1\": 3,\n    \"2\"");
    tp_metrics *m = open_run(run_path("metrics.json"));
    assert_true(has_note(m, "read up to the damage"));
    tp_metrics_close(m);

    /* A row of one line is one, also with such an object in it. */
    write_text("row.jsonl", "{\"by_class\": {\"0\": 0.5, \"1\": 0.25}, \"step\": 3}\n");
    m = open_run(run_path("row.jsonl"));
    expect_point(m, "by_class/1", TP_POINTS_NATIVE, 0, 3, NAN, 0.25);
    tp_metrics_close(m);

    write_text("marked.json", "\xef\xbb\xbf{\"loss\": {\"2\": 0.5}}");
    m = open_run(run_path("marked.json"));
    expect_latest(m, "loss", 1, (int64_t[]){2}, (double[]){0.5});
    tp_metrics_close(m);

    /* What the first tag has is no matter: no figure, nothing, a number as text. */
    static const char *const begins[] = {"{\"loss\": {\"1\": null, \"2\": 0.5}}",
                                         "{\"e\": {}, \"loss\": {\"2\": 0.5}}",
                                         "{\n\"nan\": {\"1\": \"NaN\"}, \"loss\": {\"2\": 0.5}}"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        write_text("begins.json", begins[i]);
        m = open_run(run_path("begins.json"));
        expect_latest(m, "loss", 1, (int64_t[]){2}, (double[]){0.5});
        tp_metrics_close(m);
    }

    /* Rows behind a first line that was cut short are rows. */
    static const char *const cut[] = {"{\"step\": 1, \"loss\":\n", "{\"step\": 1, \"losses\": [\n"};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        write_text("cut.jsonl", cut[i]);
        append_text("cut.jsonl", "{\"step\": 2, \"loss\": 0.5}\n{\"step\": 3, \"loss\": 0.4}\n");
        m = open_run(run_path("cut.jsonl"));
        expect_latest(m, "loss", 2, (int64_t[]){2, 3}, (double[]){0.5, 0.4});
        assert_true(has_note(m, "1 line passed over for no JSON object"));
        tp_metrics_close(m);
    }

    /* Also where a row is longer than what is looked at first. */
    char blanks[6000];
    memset(blanks, ' ', sizeof blanks);
    blanks[sizeof blanks - 1] = 0;
    write_text("cut.jsonl", cut[0]);
    append_text("cut.jsonl", "{\"step\": 2,");
    append_text("cut.jsonl", blanks);
    append_text("cut.jsonl", "\"loss\": 0.5}\n");
    m = open_run(run_path("cut.jsonl"));
    expect_latest(m, "loss", 1, (int64_t[]){2}, (double[]){0.5});
    tp_metrics_close(m);

    static const char *const others[] = {
        "{\"epoch\": 3.0,\n \"loss\": 1.5}\n", "{\n  \"a\": {\"x\": 1}\n}",
        "{\"a\": [\n{\"x\": 1},\n{\"x\": 2}\n]}", "{\n  \"a\": {\"1\": [1]}\n}"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        tp_error err;
        write_text("other.json", others[i]);
        assert_int_equal(tp_metrics_open(run_path("other.json"), NULL, &m, &err), TP_ERR_FORMAT);
        assert_non_null(strstr(err.message, "is one JSON object, not one per line"));
    }
}

/* A chart as W&B exports it: a run's columns are called after it. */
static void a_chart_of_several_runs(void **state)
{
    tp_metrics *m;
    tp_error err;
    write_text("chart.csv",
               "\"Step\",\"a - b - loss\",\"a - b - loss__MIN\",\"a - b - loss__MAX\",\"c - loss\","
               "\"c - loss__MIN\",\"c - loss__MAX\"\n0,2,1,3,20,10,30\n1,1,1,1,,,\n");
    m = open_run(run_path("chart.csv"));
    expect_point(m, "a - b - loss", TP_POINTS_NATIVE, 1, 1, NAN, 1);
    expect_point(m, "c - loss__MAX", TP_POINTS_NATIVE, 0, 0, NAN, 30);
    assert_true(has_note(m, "columns of 2 runs"));
    assert_true(has_note(m, "chart.csv#a - b': a - b, c"));
    tp_metrics_close(m);
    m = open_run(run_path("chart.csv#a - b"));
    expect_point(m, "loss", TP_POINTS_NATIVE, 0, 0, NAN, 2);
    expect_point(m, "loss__MIN", TP_POINTS_NATIVE, 0, 0, NAN, 1);
    assert_int_equal(count(m, "loss", TP_POINTS_NATIVE), 2);
    tp_metrics_close(m);
    m = open_run(run_path("chart.csv#c"));
    assert_int_equal(count(m, "loss", TP_POINTS_NATIVE), 1);
    tp_metrics_close(m);
    assert_int_equal(tp_metrics_open(run_path("chart.csv#a"), NULL, &m, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "has no run 'a'; it has: a - b, c"));
    assert_int_equal(tp_metrics_open(run_path("chart.csv#"), NULL, &m, &err), TP_ERR_CONFIG);

    /* Where nothing has names, none is taken in silence. */
    write_text("plain.csv", "step,x - y\n1,2\n");
    assert_int_equal(tp_metrics_open(run_path("plain.csv#x"), NULL, &m, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "is one run, without a name"));
    write_text("rows.jsonl", "{\"step\": 1, \"loss\": 2}\n");
    assert_int_equal(tp_metrics_open(run_path("rows.jsonl#x"), NULL, &m, &err), TP_ERR_CONFIG);
}

static void tables(void **state)
{
    write_text("a.csv", "\xef\xbb\xbfstep,\"train, \"\"loss\"\"\",acc\r\n1,2.5,\r\n2,nan,0.5\r\n");
    tp_metrics *m = open_run(run_path("a.csv"));
    expect_point(m, "train, \"loss\"", TP_POINTS_NATIVE, 0, 1, NAN, 2.5);
    expect_point(m, "train, \"loss\"", TP_POINTS_NATIVE, 1, 2, NAN, NAN);
    assert_int_equal(count(m, "acc", TP_POINTS_NATIVE), 1);
    tp_metrics_close(m);

    write_text("b.csv", "Wall time,Step,Value\n1700000000.5,10,0.25\n");
    m = open_run(run_path("b.csv"));
    expect_point(m, "Value", TP_POINTS_NATIVE, 0, 10, 1700000000.5, 0.25);
    tp_metrics_close(m);
}

/* The lines before the names: of Monitor of Stable-Baselines3, and of NumPy's savetxt(), whose
 * names are a comment themselves. */
static void comments_before_the_names(void **state)
{
    static const char *const commented[] = {
        "#{\"t_start\": 1652871292.64, \"env_id\": \"Ant-v3\"}\nr,l,t\n-13.5,11,1.25\n-44,29,1.5\n",
        "\xef\xbb\xbf#{\"t_start\":1.5,\"env_id\":\"A\",\"x\":[1]}\nr,l,t\n-13.5,11,1.25\n-44,29,1."
        "5\n",
        "# of a run, as it was,\n#\n# r,l,t\n-13.5,11,1.25\n-44,29,1.5",
        "#{\"t_start\": 1.5, \"env_id\": \"A\"}\nr;l;t\n-13.5;11;1.25\n-44;29;1.5\n"};
    for (size_t i = 0; i < sizeof commented / sizeof *commented; i++) {
        write_text("monitor.csv", commented[i]);
        tp_metrics *m = open_run(run_path("monitor.csv"));
        assert_int_equal(tp_metrics_count(m), 3);
        expect_point(m, "r", TP_POINTS_NATIVE, 0, 0, NAN, -13.5);
        expect_point(m, "l", TP_POINTS_NATIVE, 1, 1, NAN, 29);
        expect_point(m, "t", TP_POINTS_NATIVE, 1, 1, NAN, 1.5);
        tp_metrics_close(m);
    }
    write_text("saved.csv", "# step,loss\n10,2\n20,1\n");
    tp_metrics *m = open_run(run_path("saved.csv"));
    expect_point(m, "loss", TP_POINTS_NATIVE, 0, 10, NAN, 2);
    tp_metrics_close(m);
    /* Also with an empty line, other comments, or too few fields behind; in pieces as at once. */
    static const char *const saved[] = {"# step,loss\n\n10,2\n20,1\n",
                                        "# step,loss\n# resumed\n10,2\n20,1\n",
                                        "#step,loss,note\n10,2\n20,1\n", "# step,loss\n10,2\n20,1"};
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        write_text("saved.csv", saved[i]);
        m = open_run(run_path("saved.csv"));
        expect_latest(m, "loss", 2, (int64_t[]){10, 20}, (double[]){2, 1});
        tp_metrics_close(m);
    }
    write_text("numbered.csv", "#,loss\n1,2\n");
    m = open_run(run_path("numbered.csv"));
    expect_point(m, "#", TP_POINTS_NATIVE, 0, 0, NAN, 1);
    tp_metrics_close(m);
}

/* As YOLO writes its results.csv. */
static void names_with_blanks(void **state)
{
    write_text("quoted.csv", "step, \"loss, train\", note\n1, 0.5, \"a, b\"\n");
    tp_metrics *q = open_run(run_path("quoted.csv"));
    expect_point(q, "loss, train", TP_POINTS_NATIVE, 0, 1, NAN, 0.5);
    assert_int_equal(tp_metrics_notes(q), 0);
    tp_metrics_close(q);
    write_text("results.csv", "      step,\t train/loss ,\" tag \"\n   10,  1.5 ,\t2\n   20, ,3\n");
    tp_metrics *m = open_run(run_path("results.csv"));
    expect_point(m, "train/loss", TP_POINTS_NATIVE, 0, 10, NAN, 1.5);
    expect_point(m, "tag", TP_POINTS_NATIVE, 1, 20, NAN, 3);
    assert_int_equal(count(m, "train/loss", TP_POINTS_NATIVE), 1);
    tp_metrics_close(m);
}

static void a_table_of_runs_is_refused(void **state)
{
    tp_metrics *m;
    tp_error err;
    write_text("runs.csv", "\"Name\",\"State\",\"Created\",\"Runtime\",\"iter\",\"loss\"\n"
                           "\"a\",\"finished\",\"2026-05-25T14:08:33.000Z\",\"732\",\"5\",\"1\"\n");
    assert_int_equal(tp_metrics_open(run_path("runs.csv"), NULL, &m, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "runs.csv' is W&B's table of runs"));
}

static void the_newest_checkpoint_speaks(void **state)
{
    assert_int_equal(tp_dir_make(run_path("checkpoint-9"), NULL), TP_OK);
    assert_int_equal(tp_dir_make(run_path("checkpoint-10"), NULL), TP_OK);
    write_text("checkpoint-9/trainer_state.json",
               "{\"log_history\": [{\"loss\": 9, \"step\": 9}]}");
    write_text("checkpoint-10/trainer_state.json",
               "{\"log_history\": [{\"loss\": 9, \"step\": 9, \"x\": {\"y\": 1}, \"z\": \"NaN\"}, "
               "{\"loss\": 7, \"step\": 10, \"ok\": true}]}");
    tp_metrics *m = open_run(run_folder);
    assert_int_equal(tp_metrics_count(m), 1);
    expect_point(m, "loss", TP_POINTS_NATIVE, 1, 10, NAN, 7);
    tp_metrics_close(m);
}

static void a_restart_counts_once(void **state)
{
    tp_buf events = {0};
    add_version(&events);
    for (int step = 1; step <= 4; step++)
        add_scalar(&events, "loss", step, (float)step);
    write_bytes("events.out.tfevents.1", "w", events.data, events.len);
    tp_buf_clear(&events);
    add_version(&events);
    for (int step = 3; step <= 5; step++)
        add_scalar(&events, "loss", step, (float)(10 * step));
    write_bytes("events.out.tfevents.2", "w", events.data, events.len);
    tp_metrics *m = open_run(run_folder);
    const tp_metric_point *p;
    assert_int_equal(count(m, "loss", TP_POINTS_NATIVE), 7);
    assert_int_equal(count(m, "loss", TP_POINTS_FAST), 5);
    assert_int_equal(tp_metrics_curve(m, 0, &p), 5);
    assert_true(p[1].value == 2 && p[2].value == 30 && p[4].value == 50);
    tp_metrics_close(m);
    tp_buf_release(&events);
}

static void several_runs_have_to_be_named(void **state)
{
    tp_metrics *m;
    tp_error err = {0};
    static const char db[] = TP_SOURCE_DIR "/tests/data/runs/trackio-manual/manual.db";
    assert_int_equal(tp_metrics_open(db, NULL, &m, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "run-a, run-b"));
    const tp_metrics_options options = {.size = sizeof options, .run = "run-b"};
    assert_int_equal(tp_metrics_open(db, &options, &m, &err), TP_OK);
    tp_metrics_close(m);
    assert_int_equal(tp_metrics_open(TP_SOURCE_DIR "/tests/data/runs", NULL, &m, &err),
                     TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "tb-hparams"));
}

static void settings_of_hparams(void **state)
{
    tp_metrics *m = open_run(TP_SOURCE_DIR "/tests/data/runs/tb-hparams/hp0");
    bool found = false;
    for (size_t i = 0; i < tp_metrics_settings(m); i++) {
        const char *value, *key = tp_metrics_setting(m, i, &value);
        found |= strcmp(key, "lr") == 0 && strtod(value, NULL) > 0;
    }
    assert_true(found);
    tp_metrics_close(m);
}

static void a_newer_program(void **state)
{
    const struct {
        tp_metrics_options known;
        const char *later;
    } newer = {{.size = sizeof newer}, NULL}, asks = {{.size = sizeof asks}, "more"};
    const tp_metrics_options unsized = {0};
    tp_metrics *m = NULL;
    write_text("a.jsonl", "{\"step\": 1, \"loss\": 2}\n");
    assert_int_equal(tp_metrics_open(run_path("a.jsonl"), &unsized, &m, NULL), TP_ERR_ARG);
    assert_int_equal(tp_metrics_open(run_path("a.jsonl"), &asks.known, &m, NULL),
                     TP_ERR_UNSUPPORTED);
    assert_int_equal(tp_metrics_open(run_path("a.jsonl"), &newer.known, &m, NULL), TP_OK);
    assert_int_equal(tp_metrics_refresh(m, NULL, NULL), TP_OK);
    tp_metrics_close(m);
}

static void numbers_as_python_spells_them(void **state)
{
    tp_error err;
    tp_metrics *m;
    write_text("a.jsonl",
               "{\"step\": 1, \"loss\": \"inf\"}\n{\"step\": 2, \"loss\": \"-Inf\"}\n"
               "{\"step\": 3, \"loss\": \"nan\"}\n{\"step\": 4, \"loss\": \"information\"}\n");
    m = open_run(run_path("a.jsonl"));
    assert_int_equal(count(m, "loss", TP_POINTS_ALL), 3);
    expect_point(m, "loss", TP_POINTS_ALL, 0, 1, NAN, INFINITY);
    expect_point(m, "loss", TP_POINTS_ALL, 1, 2, NAN, -INFINITY);
    expect_point(m, "loss", TP_POINTS_ALL, 2, 3, NAN, NAN);
    tp_metrics_close(m);
    write_text("b.csv", "step,loss\n1, 0.75 \n2, nan \n3,  \n");
    m = open_run(run_path("b.csv"));
    assert_int_equal(count(m, "loss", TP_POINTS_ALL), 2);
    expect_point(m, "loss", TP_POINTS_ALL, 0, 1, NAN, 0.75);
    expect_point(m, "loss", TP_POINTS_ALL, 1, 2, NAN, NAN);
    tp_metrics_close(m);
    write_bytes("c.csv.gz", "w", "\x1f\x8b\x08\x00\x00\x00", 6);
    assert_int_equal(tp_metrics_open(run_path("c.csv.gz"), NULL, &m, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "gunzip"));
}

#define FORMAT(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORMAT(temper_attempts),
        FORMAT(names_of_steps_and_times),
        FORMAT(rows_of_one_figure),
        FORMAT(a_list_of_objects),
        FORMAT(steps_within_epochs),
        FORMAT(steps_are_counted_by_kind),
        FORMAT(steps_that_fall),
        FORMAT(an_object_of_tags),
        FORMAT(tables),
        FORMAT(comments_before_the_names),
        FORMAT(names_with_blanks),
        FORMAT(a_table_of_runs_is_refused),
        FORMAT(a_chart_of_several_runs),
        FORMAT(a_newer_program),
        FORMAT(the_newest_checkpoint_speaks),
        FORMAT(a_restart_counts_once),
        FORMAT(several_runs_have_to_be_named),
        FORMAT(numbers_as_python_spells_them),
        cmocka_unit_test(settings_of_hparams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
