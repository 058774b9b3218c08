/* Memory snapshots (pickles) and memory timelines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files.h"
#include "instrument/ingest/event_builder.h"
#include "support/ingest.h"

static void check_snapshot(const char *path, int protocol)
{
    tp_trace_file *f = ingest_open(path);
    const tp_snapshot *s = f->snapshot;

    assert_int_equal(f->kind, TP_FILE_SNAPSHOT);
    assert_int_equal(s->protocol, protocol);
    assert_int_equal(s->n_segments, 1);
    assert_int_equal(s->segments[0].addr, INT64_C(1) << 45);
    assert_int_equal(s->segments[0].total, 2097152);
    assert_int_equal(s->segments[0].requested, 4000);
    assert_int_equal(s->segments[0].pool[1], 1);
    assert_int_equal(s->segments[0].n_blocks, 3);
    assert_int_equal(s->blocks[0].state, TP_BLOCK_INACTIVE);
    assert_int_equal(s->blocks[1].state, TP_BLOCK_ALLOCATED);
    assert_int_equal(s->blocks[1].requested, 4000);
    assert_int_equal(s->blocks[2].state, TP_BLOCK_PENDING);
    assert_int_equal(s->n_devices, 2);
    assert_int_equal(s->device_first[1], 6);
    assert_int_equal(s->device_first[2], 6);
    assert_int_equal(s->entries[1].action, TP_MEM_ALLOC);
    assert_int_equal(s->entries[1].size, 1000);
    assert_int_equal(s->entries[1].time_us, 1783874495854988);
    assert_int_equal(s->entries[5].action, TP_MEM_OOM);
    assert_int_equal(s->entries[5].size, INT64_C(1) << 40);
    assert_int_equal(s->n_annotations, 2);
    assert_string_equal(tp_snapshot_str(s, s->annotations[1].stage), "END");
    assert_int_equal(s->n_settings, 4);
    assert_string_equal(tp_snapshot_str(s, s->settings[0].value), "true");
    assert_string_equal(tp_snapshot_str(s, s->settings[2].value), "0.5");
    assert_int_equal(f->notes.n, 0);
    tp_trace_close(f);
}

static void snapshots_of_each_protocol(void **state)
{
    check_snapshot(TP_SAMPLE("snapshot_p2.pickle"), 2);
    check_snapshot(TP_SAMPLE("snapshot_p4.pickle"), 4);
    check_snapshot(TP_SAMPLE("snapshot_p5.pickle"), 5);
}

static void stacks_are_shared(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("snapshot_p4.pickle"));
    const tp_snapshot *s = f->snapshot;

    assert_int_equal(s->n_frames, 3);
    assert_int_equal(s->n_stacks, 3);
    assert_int_equal(s->blocks[0].stack, 0);
    assert_int_equal(s->entries[0].stack, s->entries[1].stack);
    assert_int_equal(s->entries[2].stack, s->blocks[1].stack);
    const tp_mem_stack *stack = &s->stacks[s->entries[1].stack];
    assert_int_equal(stack->n, 2);
    const tp_mem_frame *inner = &s->frames[s->stack_frames[stack->first]];
    assert_string_equal(tp_snapshot_str(s, inner->file), "train.py");
    assert_string_equal(tp_snapshot_str(s, inner->function), "step");
    assert_int_equal(inner->line, 12);
    tp_trace_close(f);
}

static tp_status open_bytes(const void *bytes, size_t n, tp_trace_file **ret, tp_error *err)
{
    return tp_trace_open_memory("s.pickle", bytes, n, NULL, ret, err);
}

static void pickles_that_could_run_code_are_refused(void **state)
{
    /* os.system("x"), in protocols 2 and 4 */
    static const char by_global[] = "\x80\x02"
                                    "cos\nsystem\nX\x01\0\0\0x\x85R.";
    static const char by_stack[] = "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01x\x85R.";
    tp_trace_file *f = NULL;
    tp_error err = {0};

    assert_int_equal(open_bytes(by_global, sizeof by_global - 1, &f, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message,
                        "'s.pickle': opcode 0x63 (GLOBAL) at byte 2 could run code; a memory "
                        "snapshot does not need it, so this file is refused");
    assert_int_equal(open_bytes(by_stack, sizeof by_stack - 1, &f, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "STACK_GLOBAL"));
    assert_null(f);
}

static void other_pickles_are_no_snapshots(void **state)
{
    static const char number[] = "\x80\x04K\x05.", empty[] = "\x80\x04}.";
    tp_trace_file *f = NULL;
    tp_error err = {0};

    assert_int_equal(open_bytes(number, sizeof number - 1, &f, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "_dump_snapshot"));
    assert_int_equal(open_bytes(empty, sizeof empty - 1, &f, &err), TP_ERR_FORMAT);
}

static void integers_of_every_width(void **state)
{
    /* {'segments': [], 'device_traces': [], 'external_annotations': [
     *  {'time_us': -1}, ..]} by hand: LONG1 of 0, 1, 8 and 9 bytes, BININT, BININT2 */
    static const char bytes[] = "\x80\x02}(X\x08\0\0\0segments]X\x14\0\0\0external_annotations]("
                                "}X\x07\0\0\0time_us\x8a\x01\xffs"
                                "}X\x07\0\0\0time_us\x8a\0s"
                                "}X\x07\0\0\0time_us\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fs"
                                "}X\x07\0\0\0time_us\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0s"
                                "}X\x07\0\0\0time_usJ\xfe\xff\xff\xffs"
                                "}X\x07\0\0\0time_usM\xff\xffs"
                                "eu.";
    static const int64_t expected[] = {-1, 0, INT64_MAX, -1, -2, 65535};
    tp_trace_file *f = NULL;
    tp_error err = {0};
    if (open_bytes(bytes, sizeof bytes - 1, &f, &err) != TP_OK)
        fail_msg("%s", err.message);

    assert_int_equal(f->snapshot->n_annotations, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(f->snapshot->annotations[i].time_us, expected[i]);
    tp_trace_close(f);
}

static void a_snapshot_cut_short_gives_its_beginning(void **state)
{
    tp_buf all = {0};
    tp_error err = {0};
    size_t most = 0;
    assert_int_equal(tp_file_read(TP_SAMPLE("snapshot_p4.pickle"), 0, &all, NULL), TP_OK);

    for (size_t n = 2; n < all.len; n++) {
        tp_trace_file *f = NULL;
        if (open_bytes(all.data, n, &f, &err) != TP_OK) {
            assert_true(n < 40); /* nothing is there yet */
            continue;
        }
        assert_true(ingest_has_note(&f->notes, "ends in the middle"));
        assert_true(f->snapshot->n_entries >= most);
        most = f->snapshot->n_entries;
        tp_trace_close(f);
    }
    assert_int_equal(most, 6);
    tp_buf_release(&all);
}

static void a_snapshot_with_flipped_bits_does_no_harm(void **state)
{
    tp_buf all = {0};
    assert_int_equal(tp_file_read(TP_SAMPLE("snapshot_p4.pickle"), 0, &all, NULL), TP_OK);
    for (size_t bit = 0; bit < all.len * 8; bit++) {
        tp_trace_file *f = NULL;
        tp_error err = {0};
        all.data[bit / 8] ^= (char)(1 << bit % 8);
        if (open_bytes(all.data, all.len, &f, &err) == TP_OK)
            tp_trace_close(f);
        else
            assert_true(err.message[0] != 0);
        all.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    tp_buf_release(&all);
}

static void raw_timelines(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("memory_timeline.raw.json"));
    const tp_memory_timeline *t = f->timeline;

    assert_int_equal(f->kind, TP_FILE_MEMORY_TIMELINE);
    assert_true(t->is_raw);
    assert_int_equal(t->n_rows, 5);
    assert_int_equal(t->rows[0].t_ns, -1);
    assert_int_equal(t->rows[0].action, TP_TIMELINE_PREEXISTING);
    assert_int_equal(t->rows[4].bytes, -512);
    assert_int_equal(t->rows[4].category, 5);
    assert_string_equal(tp_timeline_category_name(t->rows[4].category), "Gradient");
    tp_trace_close(f);
}

static void timelines_of_four_times_are_no_rows(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("memory_timeline.json"));
    const tp_memory_timeline *t = f->timeline;

    assert_false(t->is_raw);
    assert_int_equal(t->n_times, 4);
    assert_int_equal(t->times[3], 400);
    assert_int_equal(t->bytes[0], 1);
    assert_int_equal(t->bytes[3 * TP_TIMELINE_CATEGORIES + 7], 8);
    tp_trace_close(f);
}

static void timelines_that_are_odd_or_cut_short(void **state)
{
    static const char odd[] = "[[-1, 1, 5, 0], [1, 2], {\"a\": [1]}, 7, [2, 2, 6, 1, 9], "
                              "[3, 4, -5, 0]]";
    static const char cut[] = "[[-1, 1, 5, 0], [1, 2, 8, 0], [1, 4, -";
    tp_trace_file *f = ingest_text(odd, sizeof odd - 1, 0);
    assert_int_equal(f->timeline->n_rows, 2);
    assert_int_equal(f->timeline->skipped, 4);
    assert_true(ingest_has_note(&f->notes, "4 rows"));
    tp_trace_close(f);

    f = ingest_text(cut, sizeof cut - 1, 0);
    assert_int_equal(f->timeline->n_rows, 2);
    assert_true(f->timeline->truncated);
    assert_int_equal(f->notes.n, 1);
    tp_trace_close(f);
}

/* Two bytes of a pickle ask for a tuple, which takes 160. */
static void what_a_pickle_builds_has_a_limit(void **state)
{
    tp_buf text = {0};
    tp_snapshot *snapshot;
    tp_notes notes = {0};
    tp_error err = {0};
    tp_buf_add(&text, "\x80\x04", 2);
    for (int i = 0; i < 20000; i++)
        tp_buf_add(&text, "N\x85", 2);
    assert_int_equal(
        tp_snapshot_read("a.pickle", text.data, text.len, 1 << 20, &snapshot, &notes, &err),
        TP_ERR_FORMAT);
    assert_string_equal(err.message, "'a.pickle': what it builds up to byte 12384 takes more than "
                                     "1 MB, with 6191 lists and dicts; is this a memory snapshot?");
    tp_buf_release(&text);
}

static void the_numbers_of_a_timeline_have_a_limit(void **state)
{
    tp_buf text = {0};
    tp_memory_timeline *timeline;
    tp_notes notes = {0};
    tp_error err = {0};
    tp_buf_adds(&text, "[[");
    for (int i = 0; i < 200000; i++)
        tp_buf_adds(&text, "1,");
    assert_int_equal(
        tp_memory_timeline_read("a.json", text.data, text.len, 1 << 20, &timeline, &notes, &err),
        TP_ERR_FORMAT);
    assert_string_equal(err.message,
                        "'a.json': its numbers take more than 1 MB; is this a memory timeline?");
    tp_buf_release(&text);
}

/* No memory is touched: only the number of rows is made up. */
static void a_trace_of_too_many_events_is_refused_by_name(void **state)
{
    tp_events events = {.n = TP_EVENTS_MOST};
    tp_event_builder full = {.events = &events, .row_cap = TP_EVENTS_MOST};
    tp_error err = {0};
    assert_int_equal(tp_builder_check(&full, "big.json", &err), TP_OK);
    tp_builder_row(&full, &(tp_event_row){.start = 1});
    assert_int_equal(events.n, TP_EVENTS_MOST);
    assert_int_equal(tp_builder_check(&full, "big.json", &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, "'big.json' holds more than 4294967294 events, the most that "
                                     "one trace may have; record fewer steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_of_each_protocol),
        cmocka_unit_test(stacks_are_shared),
        cmocka_unit_test(pickles_that_could_run_code_are_refused),
        cmocka_unit_test(other_pickles_are_no_snapshots),
        cmocka_unit_test(integers_of_every_width),
        cmocka_unit_test(a_snapshot_cut_short_gives_its_beginning),
        cmocka_unit_test(a_snapshot_with_flipped_bits_does_no_harm),
        cmocka_unit_test(raw_timelines),
        cmocka_unit_test(timelines_of_four_times_are_no_rows),
        cmocka_unit_test(timelines_that_are_odd_or_cut_short),
        cmocka_unit_test(what_a_pickle_builds_has_a_limit),
        cmocka_unit_test(the_numbers_of_a_timeline_have_a_limit),
        cmocka_unit_test(a_trace_of_too_many_events_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
