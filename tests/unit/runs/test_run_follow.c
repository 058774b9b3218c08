/* test_run_follow.c - runs that are still being written are read on from where reading stopped. */
#include <math.h>
#include <sqlite3.h>

#include "run_files.h"

static void refresh(tp_metrics *m, bool expected)
{
    bool changed = !expected;
    tp_error err = {0};
    if (tp_metrics_refresh(m, &changed, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(changed, expected);
}

static void expect_values(tp_metrics *m, const char *tag, const double *values, size_t n)
{
    const tp_metric_point *p;
    assert_int_equal(points_of(m, tag, TP_POINTS_NATIVE, &p), n);
    for (size_t i = 0; i < n; i++)
        assert_true(p[i].value == values[i]);
}

static void event_file_grows_within_a_record(void **state)
{
    tp_buf events = {0};
    add_version(&events);
    add_scalar(&events, "loss", 1, 4);
    size_t first = events.len;
    add_scalar(&events, "loss", 2, 2);
    write_bytes("events.out.tfevents.1", "w", events.data, first + 13);

    tp_metrics *m = open_run(run_folder);
    expect_values(m, "loss", (double[]){4}, 1);
    assert_true(has_note(m, "incomplete"));
    write_bytes("events.out.tfevents.1", "a", events.data + first + 13, events.len - first - 13);
    refresh(m, true);
    expect_values(m, "loss", (double[]){4, 2}, 2);
    assert_false(has_note(m, "incomplete"));
    refresh(m, false);
    tp_metrics_close(m);
    tp_buf_release(&events);
}

/* What a file is shows as it grows, whenever it was opened. */
static void what_a_file_is_shows_later(void **state)
{
    write_text("tree.json", "{\n");
    tp_metrics *m = open_run(run_path("tree.json"));
    append_text("tree.json", "  \"loss\": {\"1\": 3, \"2\": 4}\n}\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){3, 4}, 2);
    assert_int_equal(tp_metrics_notes(m), 0);
    tp_metrics_close(m);

    write_text("rows.jsonl", "{\"loss\": {\"1\": 3}}\n");
    m = open_run(run_path("rows.jsonl"));
    expect_values(m, "loss", (double[]){3}, 1);
    append_text("rows.jsonl", "{\"loss\": {\"1\": 2}}\n");
    refresh(m, true);
    expect_values(m, "loss/1", (double[]){3, 2}, 2);
    append_text("rows.jsonl", "{\"loss\": {\"1\": 1}}\n");
    refresh(m, true);
    expect_values(m, "loss/1", (double[]){3, 2, 1}, 3);
    tp_metrics_close(m);
}

/* Half of the line behind a comment does not say whether it is the names. */
static void half_a_line_behind_a_comment(void **state)
{
    const tp_metrics_options options = {.size = sizeof options, .follows = true};
    tp_metrics *m;
    write_text("monitor.csv", "# by 1,2\n3d");
    assert_int_equal(tp_metrics_open(run_path("monitor.csv"), &options, &m, NULL), TP_OK);
    append_text("monitor.csv", ",loss\n1,0.5\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){0.5}, 1);
    tp_metrics_close(m);
    write_text("monitor.csv", "# by x\n# a,b\n1");
    assert_int_equal(tp_metrics_open(run_path("monitor.csv"), &options, &m, NULL), TP_OK);
    append_text("monitor.csv", "st,loss,z\n1,0.5,2\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){0.5}, 1);
    tp_metrics_close(m);
}

static void event_files_appear(void **state)
{
    tp_buf events = {0};
    add_version(&events);
    add_scalar(&events, "loss", 1, 4);
    write_bytes("events.out.tfevents.2", "w", events.data, events.len);
    tp_metrics *m = open_run(run_folder);
    expect_values(m, "loss", (double[]){4}, 1);

    tp_buf_clear(&events);
    add_scalar(&events, "loss", 2, 2);
    write_bytes("events.out.tfevents.3", "w", events.data, events.len);
    refresh(m, true);
    expect_values(m, "loss", (double[]){4, 2}, 2);

    /* one whose name comes first is read first */
    tp_buf_clear(&events);
    add_scalar(&events, "loss", 0, 8);
    write_bytes("events.out.tfevents.1", "w", events.data, events.len);
    refresh(m, true);
    expect_values(m, "loss", (double[]){8, 4, 2}, 3);
    tp_metrics_close(m);
    tp_buf_release(&events);
}

static void a_replaced_file_is_read_anew(void **state)
{
    write_text("metrics.jsonl", "{\"step\": 1, \"loss\": 4}\n{\"step\": 2, \"loss\": 2}\n");
    tp_metrics *m = open_run(run_folder);
    expect_values(m, "loss", (double[]){4, 2}, 2);
    write_text("metrics.jsonl", "{\"step\": 1, \"loss\": 5}\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){5}, 1);
    tp_metrics_close(m);
}

/* The same file, no shorter: as Lightning's and SB3's loggers do when a column comes. */
static void a_file_written_anew_in_its_place_is_read_anew(void **state)
{
    write_text("metrics.csv", "step,loss\n1,4\n2,2\n");
    tp_metrics *m = open_run(run_folder);
    expect_values(m, "loss", (double[]){4, 2}, 2);
    write_text("metrics.csv", "acc,step,loss\n,1,4\n,2,2\n0.5,2,\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){4, 2}, 2);
    expect_values(m, "acc", (double[]){0.5}, 1);
    append_text("metrics.csv", "0.25,3,1\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){4, 2, 1}, 3);
    expect_values(m, "acc", (double[]){0.5, 0.25}, 2);
    write_text("metrics.csv", "acc,step,loss\n,1,4\n,2,3.5\n0.5,2,\n0.25,3,1\n");
    refresh(m, true); /* as many records, and others */
    expect_values(m, "loss", (double[]){4, 3.5, 1}, 3);
    tp_metrics_close(m);
}

/* A head that is the same, and other bytes before the place where reading stopped. */
static void the_end_of_what_was_read_is_looked_at_too(void **state)
{
    enum { ROWS = 200 };
    TP_OWN(tp_buf) text = {0};
    const tp_metric_point *p;
    for (int i = 0; i < ROWS; i++)
        tp_buf_addf(&text, "{\"step\": %d, \"loss\": 4}\n", 100 + i);
    write_text("metrics.jsonl", text.data);
    tp_metrics *m = open_run(run_folder);
    assert_int_equal(points_of(m, "loss", TP_POINTS_NATIVE, &p), ROWS);
    text.data[text.len - 3] = '5';
    tp_buf_addf(&text, "{\"step\": %d, \"loss\": 3}\n", 100 + ROWS);
    write_text("metrics.jsonl", text.data);
    assert_int_equal(tp_metrics_refresh(m, NULL, NULL), TP_OK);
    assert_int_equal(points_of(m, "loss", TP_POINTS_NATIVE, &p), ROWS + 1);
    assert_true(p[ROWS - 1].value == 5 && p[ROWS].value == 3);
    tp_metrics_close(m);
}

/* Half of a new document says less than what was read before. */
static void half_a_document_waits(void **state)
{
    static const char *const names[] = {"trainer_state.json", "list.json"},
                             *const begins[] = {"{\"log_history\": [", "["},
                             *const ends[] = {"]}", "]"};
    for (int i = 0; i < 2; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s{\"step\": 1, \"loss\": 4}, {\"step\": 2, \"loss\": 2}%s",
                 begins[i], ends[i]);
        write_text(names[i], text);
        tp_metrics *m = open_run(run_path(names[i]));
        expect_values(m, "loss", (double[]){4, 2}, 2);
        snprintf(text, sizeof text, "%s{\"step\": 1, \"loss\": 4}, {\"st", begins[i]);
        write_text(names[i], text);
        refresh(m, false);
        expect_values(m, "loss", (double[]){4, 2}, 2);
        assert_true(has_note(m, "is incomplete now"));
        snprintf(text, sizeof text, "ep\": 2, \"loss\": 2}, {\"step\": 3, \"loss\": 1}%s", ends[i]);
        append_text(names[i], text);
        refresh(m, true);
        expect_values(m, "loss", (double[]){4, 2, 1}, 3);
        assert_false(has_note(m, "incomplete"));
        tp_metrics_close(m);
    }
}

static void half_a_line_waits(void **state)
{
    write_text("metrics.jsonl", "{\"step\": 1, \"loss\": 4}\n{\"step\": 2, \"lo");
    tp_metrics *m = open_run(run_folder);
    expect_values(m, "loss", (double[]){4}, 1);
    assert_true(has_note(m, "incomplete"));
    append_text("metrics.jsonl", "ss\": 2}\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){4, 2}, 2);
    assert_false(has_note(m, "incomplete"));
    tp_metrics_close(m);
}

static void a_number_may_be_half_written(void **state)
{
    write_text("metrics.csv", "step,loss\n1,4\n2,2");
    tp_metrics *m = open_run(run_folder);
    expect_values(m, "loss", (double[]){4, 2}, 2);
    assert_true(has_note(m, "the last line has no newline"));
    append_text("metrics.csv", ".5\n3,1\n");
    bool changed;
    assert_int_equal(tp_metrics_refresh(m, &changed, NULL), TP_OK);
    expect_values(m, "loss", (double[]){4, 2.5, 1}, 3);
    tp_metrics_close(m);
}

/* All fields are there, whatever the last one is; what is in quotes that do not end is not. */
static void a_last_line_without_its_end(void **state)
{
    static const char *const whole[] = {"step,loss,acc\n1,4,\n2,2,",
                                        "step,loss,note\n1,4,a\n2,2,b c",
                                        "step,loss,acc\n1,4,1\n2,2,\"\""};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        write_text("metrics.csv", whole[i]);
        tp_metrics *m = open_run(run_folder);
        expect_values(m, "loss", (double[]){4, 2}, 2);
        assert_true(has_note(m, "the last line has no newline"));
        assert_false(has_note(m, "incomplete"));
        tp_metrics_close(m);
    }
    write_text("metrics.csv", "step,loss,note\n1,4,a\n2,2,\"b");
    tp_metrics *m = open_run(run_folder);
    expect_values(m, "loss", (double[]){4}, 1);
    assert_true(has_note(m, "incomplete"));
    tp_metrics_close(m);
}

/* A comment is one because of the line behind it, which may not be there yet. */
static void names_behind_a_comment_are_waited_for(void **state)
{
    const tp_metrics_options options = {.size = sizeof options, .follows = true};
    tp_metrics *m;
    write_text("metrics.csv", "# step,loss\n1");
    assert_int_equal(tp_metrics_open(run_folder, &options, &m, NULL), TP_OK);
    assert_int_equal(tp_metrics_count(m), 0);
    append_text("metrics.csv", ",4\n2,2\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){4, 2}, 2);
    write_text("metrics.csv", "#{\"a\": 1}");
    assert_int_equal(tp_metrics_refresh(m, NULL, NULL), TP_OK);
    append_text("metrics.csv", "\nstep\tl");
    assert_int_equal(tp_metrics_refresh(m, NULL, NULL), TP_OK);
    append_text("metrics.csv", "oss\n1\t8\n");
    refresh(m, true);
    expect_values(m, "loss", (double[]){8}, 1);
    tp_metrics_close(m);
}

static void who_follows_waits_for_the_rest_of_a_number(void **state)
{
    const tp_metrics_options options = {.size = sizeof options, .follows = true};
    tp_metrics *m;
    write_text("metrics.csv", "step,loss\n1,4\n2,77");
    assert_int_equal(tp_metrics_open(run_folder, &options, &m, NULL), TP_OK);
    expect_values(m, "loss", (double[]){4}, 1);
    assert_true(has_note(m, "the last record, at byte 14, is incomplete"));
    append_text("metrics.csv", "1");
    refresh(m, false);
    append_text("metrics.csv", "33\n3,1");
    refresh(m, true);
    expect_values(m, "loss", (double[]){4, 77133}, 2);
    write_text("metrics.csv", "step,loss\n1,5\n2,7"); /* also when it begins again */
    refresh(m, true);
    expect_values(m, "loss", (double[]){5}, 1);
    tp_metrics_close(m);
}

/* n points, of which so many are finite, and the last of all. */
static void expect_end(tp_metrics *m, const char *tag, size_t n, size_t finite, int64_t step,
                       double value)
{
    tp_metric_point last = {0};
    size_t seen;
    assert_int_equal(tp_metrics_curve_end(m, tp_metrics_find(m, tag), &seen, &last), n);
    assert_int_equal(seen, finite);
    assert_int_equal(last.step, step);
    assert_true(isnan(value) ? isnan(last.value) : last.value == value);
}

/* An attempt that goes on behind a checkpoint, while somebody looks. */
static void what_is_written_again_is_told_as_it_comes(void **state)
{
    const tp_metric_point *p;
    write_text("metrics.jsonl", "{\"v\":1,\"t\":1,\"run\":\"r\",\"attempt\":1,\"step\":1,\"axis\":"
                                "\"train\",\"m\":{\"loss\":8}}\n"
                                "{\"v\":1,\"t\":2,\"run\":\"r\",\"attempt\":1,\"step\":2,\"axis\":"
                                "\"train\",\"m\":{\"loss\":7}}\n"
                                "{\"v\":1,\"t\":2,\"run\":\"r\",\"attempt\":1,\"step\":2,\"axis\":"
                                "\"time\",\"m\":{\"memory\":3}}\n"
                                "{\"v\":1,\"t\":3,\"run\":\"r\",\"attempt\":1,\"step\":2,\"axis\":"
                                "\"time\",\"m\":{\"memory\":5}}\n"
                                "{\"v\":1,\"t\":3,\"run\":\"r\",\"attempt\":1,\"step\":3,\"axis\":"
                                "\"train\",\"m\":{\"loss\":\"NaN\"}}\n");
    tp_metrics *m = open_run(run_folder);
    expect_end(m, "loss", 3, 2, 3, (double)NAN);
    expect_end(m, "memory", 1, 1, 2, 4);
    assert_false(has_note(m, "earlier attempts"));
    append_text("metrics.jsonl", "{\"v\":1,\"t\":4,\"run\":\"r\",\"attempt\":2,\"step\":2,\"axis\":"
                                 "\"train\",\"m\":{\"loss\":6}}\n");
    refresh(m, true);
    expect_end(m, "loss", 3, 2, 2, 6);
    assert_true(has_note(m, "1 record of earlier attempts"));
    append_text("metrics.jsonl", "{\"v\":1,\"t\":5,\"run\":\"r\",\"attempt\":2,\"step\":3,\"axis\":"
                                 "\"train\",\"m\":{\"loss\":5}}\n");
    refresh(m, true);
    assert_true(has_note(m, "2 records of earlier attempts"));
    for (int step = 4; step < 40; step++) {
        char line[128];
        snprintf(line, sizeof line,
                 "{\"v\":1,\"t\":6,\"run\":\"r\",\"attempt\":2,\"step\":%d,\"axis\":\"train\","
                 "\"m\":{\"loss\":%d}}\n",
                 step, 40 - step);
        append_text("metrics.jsonl", line);
        refresh(m, true);
    }
    assert_true(has_note(m, "2 records of earlier attempts"));
    expect_end(m, "loss", 39, 39, 39, 1);
    assert_int_equal(tp_metrics_curve(m, tp_metrics_find(m, "loss"), &p), 39);
    assert_true(p[0].value == 8 && p[1].value == 6 && p[2].value == 5 && p[3].value == 36);
    assert_int_equal(points_of(m, "loss", TP_POINTS_ALL, &p), 41);
    tp_metrics_close(m);
}

/* Without a look at all points what a look at them would say. */
static void ends_of_curves(void **state)
{
    write_text("metrics.csv",
               "step,rises,falls,odd,gone\n1,8,1,NaN,NaN\n2,7,2,3,inf\n3,6,3,NaN,-inf\n");
    tp_metrics *m = open_run(run_folder);
    expect_end(m, "rises", 3, 3, 3, 6);
    expect_end(m, "odd", 3, 1, 3, (double)NAN);
    expect_end(m, "gone", 3, 0, 3, -(double)INFINITY);
    append_text("metrics.csv", "2,5,4,9,1\n"); /* back, and not again */
    refresh(m, true);
    expect_end(m, "rises", 3, 3, 3, 6);
    expect_end(m, "odd", 3, 1, 3, (double)NAN);
    expect_end(m, "gone", 3, 1, 3, -(double)INFINITY);
    tp_metrics_close(m);
}

static void sql(sqlite3 *db, const char *text)
{
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
}

static void a_data_base_in_use_is_followed(void **state)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(run_path("live.db"), &db), SQLITE_OK);
    sql(db, "PRAGMA journal_mode=WAL; CREATE TABLE metrics(id INTEGER PRIMARY KEY, timestamp TEXT, "
            "run_name TEXT, step INTEGER, metrics TEXT)");
    sql(db,
        "INSERT INTO metrics VALUES (1, '2025-01-01T00:00:00.5+00:00', 'a', 0, '{\"loss\": 4}')");
    tp_metrics *m = open_run(run_path("live.db#a"));
    expect_values(m, "loss", (double[]){4}, 1);
    const tp_metric_point *p;
    points_of(m, "loss", TP_POINTS_NATIVE, &p);
    assert_true(p[0].wall_time == 1735689600.5);

    sql(db, "INSERT INTO metrics VALUES (2, '2025-01-01T00:00:01+00:00', 'a', 1, "
            "'{\"loss\": \"NaN\", \"acc\": 0.5}')");
    refresh(m, true);
    assert_int_equal(points_of(m, "loss", TP_POINTS_NATIVE, &p), 2);
    assert_true(p[1].value != p[1].value);
    expect_values(m, "acc", (double[]){0.5}, 1);
    tp_metrics_close(m);
    sqlite3_close(db);
}

/* Pages that were not committed lie in the file already: they are not read. */
static void who_writes_without_a_log_is_waited_for(void **state)
{
    sqlite3 *db;
    tp_metrics *m = NULL;
    tp_error err = {0};
    assert_int_equal(sqlite3_open(run_path("live.db"), &db), SQLITE_OK);
    sql(db, "PRAGMA journal_mode=DELETE; CREATE TABLE metrics(id INTEGER PRIMARY KEY, timestamp "
            "TEXT, run_name TEXT, step INTEGER, metrics TEXT);"
            "INSERT INTO metrics VALUES (1, NULL, 'a', 0, '{\"loss\": 4}')");
    sql(db, "PRAGMA cache_size=1; BEGIN EXCLUSIVE; WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL "
            "SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO metrics SELECT i, NULL, 'a', i, "
            "'{\"loss\": 1}' FROM n");
    assert_int_equal(tp_metrics_open(run_path("live.db#a"), NULL, &m, &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "is locked by who writes it"));
    sql(db, "ROLLBACK");
    m = open_run(run_path("live.db#a"));
    expect_values(m, "loss", (double[]){4}, 1);
    sql(db, "INSERT INTO metrics VALUES (2, NULL, 'a', 1, '{\"loss\": 2}')");
    refresh(m, true);
    expect_values(m, "loss", (double[]){4, 2}, 2);
    tp_metrics_close(m);
    sqlite3_close(db);
}

static void reading_leaves_nothing_beside(void **state)
{
    static const char wal[] = TP_SOURCE_DIR "/tests/data/runs/trackio-manual/manual.db";
    tp_buf bytes = {0};
    assert_int_equal(tp_file_read(wal, 0, &bytes, NULL), TP_OK);
    write_bytes("copy.db", "w", bytes.data, bytes.len);
    tp_metrics *m = open_run(run_path("copy.db#run-a"));
    tp_metrics_close(m);
    assert_false(tp_file_exists(run_path("copy.db-wal")));
    assert_false(tp_file_exists(run_path("copy.db-shm")));
    tp_buf_release(&bytes);
}

static void runs_of_one_name_are_told_by_their_ids(void **state)
{
    sqlite3 *db;
    tp_metrics *m;
    tp_error err;
    assert_int_equal(sqlite3_open(run_path("twins.db"), &db), SQLITE_OK);
    sql(db, "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_id TEXT, "
            "run_name TEXT, step INTEGER, metrics TEXT)");
    sql(db,
        "INSERT INTO metrics VALUES (1, NULL, 'id1', 'one', 0, '{\"loss\": 1}'), "
        "(2, NULL, 'id2', 'two', 0, '{\"loss\": 2}'), (3, NULL, 'id3', 'one', 0, '{\"loss\": 3}')");
    sqlite3_close(db);
    assert_int_equal(tp_metrics_open(run_path("twins.db#one"), NULL, &m, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "has 2 runs called 'one'; name one by its id: id1, id3"));
    assert_null(strstr(err.message, "id2"));
    m = open_run(run_path("twins.db#id3"));
    expect_values(m, "loss", (double[]){3}, 1);
    tp_metrics_close(m);
}

/* As in exports of Nsight Systems: who wrote the file decides about none of our memory. */
static void a_table_too_wide_is_refused(void **state)
{
    enum { COLUMNS = 300 };
    sqlite3 *db;
    tp_metrics *m = NULL;
    tp_error err = {0};
    TP_OWN(tp_buf) text = {0};
    tp_buf_adds(&text, "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name "
                       "TEXT, step INTEGER, metrics TEXT");
    for (int i = 0; i < COLUMNS; i++)
        tp_buf_addf(&text, ", c%d", i);
    tp_buf_adds(&text, ")");
    assert_int_equal(sqlite3_open(run_path("wide.db"), &db), SQLITE_OK);
    sql(db, tp_buf_str(&text));
    sqlite3_close(db);
    assert_int_equal(tp_metrics_open(run_path("wide.db#a"), NULL, &m, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "too many columns"));
}

#define FOLLOWS(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLLOWS(event_file_grows_within_a_record),
        FOLLOWS(what_a_file_is_shows_later),
        FOLLOWS(half_a_line_behind_a_comment),
        FOLLOWS(event_files_appear),
        FOLLOWS(a_replaced_file_is_read_anew),
        FOLLOWS(a_file_written_anew_in_its_place_is_read_anew),
        FOLLOWS(the_end_of_what_was_read_is_looked_at_too),
        FOLLOWS(half_a_document_waits),
        FOLLOWS(half_a_line_waits),
        FOLLOWS(a_number_may_be_half_written),
        FOLLOWS(who_follows_waits_for_the_rest_of_a_number),
        FOLLOWS(a_last_line_without_its_end),
        FOLLOWS(names_behind_a_comment_are_waited_for),
        FOLLOWS(what_is_written_again_is_told_as_it_comes),
        FOLLOWS(ends_of_curves),
        FOLLOWS(a_data_base_in_use_is_followed),
        FOLLOWS(who_writes_without_a_log_is_waited_for),
        FOLLOWS(reading_leaves_nothing_beside),
        FOLLOWS(runs_of_one_name_are_told_by_their_ids),
        FOLLOWS(a_table_too_wide_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
