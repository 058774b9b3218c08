/* test_run_damage.c - what is left of damaged files is read, and what is wrong is named. */
#include "run_files.h"

/* Version, then loss 1..8 at steps 1..8; record i begins at begins[i]. */
static size_t begins[10];

static void make_events(tp_buf *events)
{
    add_version(events);
    for (int step = 1; step <= 8; step++) {
        begins[step] = events->len;
        add_scalar(events, "loss", step, (float)step);
    }
}

static size_t count(tp_metrics *m, tp_points_view view)
{
    const tp_metric_point *p;
    return points_of(m, "loss", view, &p);
}

static void vectors_of_the_checksum(void **state)
{
    static const char zeros[32];
    assert_int_equal(tp_event_checksum("123456789", 9), 0xc78ab0e5);
    /* unmasked 8a9136aa */
    assert_int_equal(tp_event_checksum(zeros, 32),
                     (0x8a9136aau >> 15 | 0x8a9136aau << 17) + 0xa282ead8);
}

static void wrong_data_is_left_out(void **state)
{
    tp_buf events = {0};
    make_events(&events);
    events.data[begins[4] + 12 + 3] ^= 1;
    write_bytes("events.out.tfevents.1", "w", events.data, events.len);
    tp_metrics *m = open_run(run_folder);
    assert_int_equal(count(m, TP_POINTS_NATIVE), 3);
    assert_int_equal(count(m, TP_POINTS_ALL), 7);
    char place[64];
    snprintf(place, sizeof place, "the record at byte %zu has a wrong checksum", begins[4]);
    assert_true(has_note(m, place));
    tp_metrics_close(m);
    tp_buf_release(&events);
}

static void wrong_length_is_crossed(void **state)
{
    tp_buf events = {0};
    make_events(&events);
    events.data[begins[4]] ^= 1;
    write_bytes("events.out.tfevents.1", "w", events.data, events.len);
    tp_metrics *m = open_run(run_folder);
    assert_int_equal(count(m, TP_POINTS_NATIVE), 3);
    assert_int_equal(count(m, TP_POINTS_FAST), 3);
    assert_int_equal(count(m, TP_POINTS_ALL), 7);
    char place[64];
    snprintf(place, sizeof place, "from byte %zu on are no records", begins[4]);
    assert_true(has_note(m, place));
    tp_metrics_close(m);
    tp_buf_release(&events);
}

static void any_cut_and_any_flip_is_survived(void **state)
{
    tp_buf events = {0};
    make_events(&events);
    for (size_t at = 0; at < events.len; at++) {
        write_bytes("events.out.tfevents.1", "w", events.data, at);
        tp_metrics *m = open_run(run_folder);
        size_t whole = 0;
        while (whole < 8 && begins[whole + 1] && at >= (whole < 7 ? begins[whole + 2] : events.len))
            whole++;
        if (tp_metrics_count(m))
            assert_int_equal(count(m, TP_POINTS_NATIVE), whole);
        else
            assert_int_equal(whole, 0);
        tp_metrics_close(m);

        events.data[at] ^= 0x10;
        write_bytes("events.out.tfevents.1", "w", events.data, events.len);
        m = open_run(run_folder);
        assert_true(at < begins[1] || count(m, TP_POINTS_ALL) == 7);
        assert_true(tp_metrics_notes(m) > 0);
        tp_metrics_close(m);
        events.data[at] ^= 0x10;
    }
    tp_buf_release(&events);
}

static void a_length_without_bounds_is_no_allocation(void **state)
{
    static const uint64_t length = UINT64_MAX - 7;
    uint32_t crc = tp_event_checksum(&length, 8);
    tp_buf events = {0};
    make_events(&events);
    tp_buf_add(&events, &length, 8);
    tp_buf_add(&events, &crc, 4);
    write_bytes("events.out.tfevents.1", "w", events.data, events.len);
    tp_metrics *m = open_run(run_folder);
    assert_int_equal(count(m, TP_POINTS_NATIVE), 8);
    assert_true(has_note(m, "incomplete"));
    tp_metrics_close(m);
    tp_buf_release(&events);
}

static void trainer_state_without_a_history_says_so(void **state)
{
    write_text("trainer_state.json", "{\"global_step\": 3, \"best_metric\": null}");
    tp_metrics *m = open_run(run_folder);
    assert_true(has_note(m, "the file has no log_history"));
    tp_metrics_close(m);
    write_text("trainer_state.json", "{\"log_history\": {\"loss\": 1}, \"max_steps\": 5}");
    m = open_run(run_folder);
    assert_true(has_note(m, "log_history is a list of objects"));
    tp_metrics_close(m);
    write_text("trainer_state.json", "{\"max_steps\": 5, \"log_history\": []}");
    m = open_run(run_folder);
    assert_false(has_note(m, "log_history"));
    tp_metrics_close(m);
}

static void trainer_state_is_read_up_to_the_damage(void **state)
{
    write_text("trainer_state.json",
               "{\"epoch\": 1.0, \"log_history\": [{\"loss\": 2.5, \"step\": 1}, "
               "{\"loss\": NaN, \"step\": 2}, {\"loss\": 1.5, \"st");
    tp_metrics *m = open_run(run_folder);
    assert_int_equal(count(m, TP_POINTS_NATIVE), 2);
    assert_true(has_note(m, "read up to the damage"));
    assert_true(has_note(m, "trainer_state.json:1:"));
    tp_metrics_close(m);
}

static void bad_lines_are_counted(void **state)
{
    write_text("metrics.jsonl", "{\"step\": 1, \"loss\": 4}\nnonsense\n{\"step\": 2, \"loss\": 2}\n"
                                "[1]\n{\"step\": 3, \"loss\": 1}");
    tp_metrics *m = open_run(run_folder);
    assert_int_equal(count(m, TP_POINTS_NATIVE), 3);
    assert_true(has_note(m, "2 lines passed over for no JSON object"));
    assert_true(has_note(m, "line 2"));
    tp_metrics_close(m);
}

static void a_damaged_data_base_is_an_error_or_a_note(void **state)
{
    tp_buf bytes = {0};
    assert_int_equal(
        tp_file_read(TP_SOURCE_DIR "/tests/data/runs/trackio-old/old.db", 0, &bytes, NULL), TP_OK);
    for (size_t i = 4096; i < bytes.len; i += 7)
        bytes.data[i] = 0x55;
    write_bytes("old.db", "w", bytes.data, bytes.len);
    tp_metrics *m = NULL;
    tp_error err = {0};
    if (tp_metrics_open(run_path("old.db#alpha"), NULL, &m, &err) == TP_OK)
        tp_metrics_close(m);
    else
        assert_non_null(strstr(err.message, "old.db"));
    tp_buf_release(&bytes);
}

static void a_run_that_is_none_is_refused(void **state)
{
    tp_metrics *m;
    tp_error err = {0};
    write_text("notes.txt", "nothing\n");
    assert_int_equal(tp_metrics_open(run_folder, NULL, &m, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "known are"));
}

#define DAMAGE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_checksum),
        DAMAGE(wrong_data_is_left_out),
        DAMAGE(wrong_length_is_crossed),
        DAMAGE(any_cut_and_any_flip_is_survived),
        DAMAGE(a_length_without_bounds_is_no_allocation),
        DAMAGE(trainer_state_is_read_up_to_the_damage),
        DAMAGE(trainer_state_without_a_history_says_so),
        DAMAGE(bad_lines_are_counted),
        DAMAGE(a_damaged_data_base_is_an_error_or_a_note),
        DAMAGE(a_run_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
