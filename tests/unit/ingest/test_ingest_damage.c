/* What writers have got wrong, and what crashes and disks do to files.  Each text is read
 * by every scanner that this machine has, whole and in windows of a few bytes: the answer
 * must not depend on either. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/files.h"
#include "instrument/ingest/event_scan.h"
#include "support/ingest.h"

#define GOOD(name, ts)                                       \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" name \
    "\", \"pid\": 0, \"tid\": 7, \"ts\": " ts                \
    ", \"dur\": 2, \"args\": {\"device\": 0, \"stream\": 7}}"
#define OBJECT(events)                                            \
    "{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n  " events \
    "\n  ],\n  \"traceName\": \"t\"\n}\n"

typedef void (*check)(const tp_trace_file *f);

static void each_way(const char *text, size_t n, check verify)
{
    static const uint32_t windows[] = {0, 1, 7, 64, 300};
    for (int isa = TP_ISA_PORTABLE; isa <= TP_ISA_AVX512; isa++) {
        if (tp_cpu_force_isa((tp_isa)isa, NULL) != TP_OK)
            continue;
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
            tp_trace_file *f = ingest_text(text, n, windows[w]);
            verify(f);
            tp_trace_close(f);
        }
    }
    assert_int_equal(tp_cpu_force_isa(tp_cpu_detect(), NULL), TP_OK);
}

#define EACH_WAY(text, verify) each_way((text), sizeof(text) - 1, (verify))

static void all_three(const tp_trace_file *f)
{
    assert_int_equal(f->events->counts.events, 3);
    assert_int_equal(f->events->n, 3);
    assert_string_equal(tp_events_str(f->events, f->events->name[0]), "a");
    assert_string_equal(tp_events_str(f->events, f->events->name[2]), "c");
    assert_int_equal(f->events->counts.skipped_events, 0);
    assert_false(f->events->counts.truncated);
}

static void white_space_before_everything(void **state)
{
    EACH_WAY(" \n\t \r\n                                        " OBJECT(
                 GOOD("a", "1") "," GOOD("b", "2") "," GOOD("c", "3")),
             all_three);
    EACH_WAY(" \n [ \n " GOOD("a", "1") "," GOOD("b", "2") "," GOOD("c", "3") "]", all_three);
}

static void check_odd_numbers(const tp_trace_file *f)
{
    all_three(f);
    assert_int_equal(f->events->counts.odd_numbers, 6);
    assert_true(ingest_has_note(&f->notes, "6 bare words"));
}

static void bare_words_for_numbers(void **state)
{
    EACH_WAY(
        OBJECT(GOOD(
            "a",
            "1") ", {\"ph\": \"X\", \"name\": \"b\", \"ts\": 2, \"dur\": 1, \"args\": {\"x\": inf, "
                 "\"y\": -Infinity, \"z\": NaN, \"blocks per SM\": nan, \"u\": N/A, "
                 "\"v\": -nan}}, " GOOD("c", "3")),
        check_odd_numbers);
}

static void check_repaired(const tp_trace_file *f)
{
    all_three(f);
    assert_int_equal(f->events->counts.repaired_strings, 1);
    assert_string_equal(tp_events_str(f->events, f->events->name[1]),
                        "eval_frame.py(3): \"fn\" of <x>");
}

static void unescaped_quotes_in_names(void **state)
{
    EACH_WAY(OBJECT(GOOD("a", "1") ", " GOOD("eval_frame.py(3): \"fn\" of <x>",
                                             "2") ",\n"
                                                  "  " GOOD("c", "3")),
             check_repaired);
}

static void check_strange_bytes(const tp_trace_file *f)
{
    all_three(f);
    assert_string_equal(tp_events_str(f->events, f->events->name[1]), "x\001y\nz\xff\xfe");
    assert_int_equal(f->events->counts.control_bytes, 1);
    assert_int_equal(f->events->counts.invalid_utf8, 1);
}

static void control_bytes_and_bytes_that_are_no_utf8(void **state)
{
    EACH_WAY(OBJECT(GOOD("a", "1") ", " GOOD("x\001y\nz\xff\xfe", "2") ", " GOOD("c", "3")),
             check_strange_bytes);
}

static void check_backslashes(const tp_trace_file *f)
{
    all_three(f);
    assert_string_equal(tp_events_str(f->events, f->events->name[1]), "C:\\Users\\py \"q\"");
    assert_int_equal(f->events->counts.odd_escapes, 2);
}

static void backslashes_that_escape_nothing(void **state)
{
    EACH_WAY(OBJECT(GOOD("a", "1") ", " GOOD("C:\\Users\\py \\\"q\\\"", "2") ", " GOOD("c", "3")),
             check_backslashes);
}

static void check_metadata(const tp_trace_file *f)
{
    all_three(f);
    assert_int_equal(f->events->info.schema_version, 1);
    assert_string_equal(tp_events_str(f->events, f->events->info.trace_name), "/tmp/x]y},.json");
    assert_int_equal(f->events->info.base_ns, 5);
}

static void metadata_with_line_breaks_empty_parts_and_brackets(void **state)
{
    EACH_WAY(
        "{\n  \"schemaVersion\": 1,\n  \"note\": \"two\nlines \\d\",\n  , \"gone\": ,\n"
        "  \"bare\": N/A, \"obj\": {\"a\": 1,},\n"
        "  \"traceEvents\": [\n" GOOD("a", "1") ",\n" GOOD("b", "2") ",\n" GOOD(
            "c", "3") "\n  ],\n"
                      "  \"traceName\": \"/tmp/x]y},.json\",\n  \"baseTimeNanoseconds\": 5, }\n",
        check_metadata);
}

static void check_log(const tp_trace_file *f)
{
    all_three(f);
    assert_string_equal(tp_events_str(f->events, f->events->info.trace_name), "t");
    assert_true(ingest_has_note(&f->notes, "metadata member"));
}

static void log_lines_with_bare_quotes(void **state)
{
    EACH_WAY("{\n  \"schemaVersion\": 1,\n  \"INFO\": [\"Enabling \"GPU\" tracing [now\", \"x\"],\n"
             "  \"traceEvents\": [\n" GOOD("a", "1") ",\n" GOOD("b", "2") ",\n" GOOD(
                 "c", "3") "\n  ],\n"
                           "  \"traceName\": \"t\"\n}\n",
             check_log);
}

static void check_log_behind(const tp_trace_file *f)
{
    all_three(f);
    assert_int_equal(f->events->info.base_ns, 7);
}

static void log_lines_behind_the_events(void **state)
{
    EACH_WAY(
        "{\n  \"traceEvents\": [\n" GOOD("a", "1") ",\n" GOOD("b", "2") ",\n" GOOD(
            "c",
            "3") "\n  ],\n"
                 "  \"INFO\": [\"say \"hi\" and \"go\", \"x\"],\n  \"baseTimeNanoseconds\": 7\n}\n",
        check_log_behind);
}

static void a_damaged_key_does_not_hide_the_events(void **state)
{
    EACH_WAY("{\n  \"schemaVersion\": 1,\n  \"tracfEvents\": [\n" GOOD("a", "1") ",\n" GOOD(
                 "b", "2") ",\n" GOOD("c", "3") "\n  ],\n  \"traceName\": \"t\"\n}\n",
             all_three);
}

static void check_commas(const tp_trace_file *f)
{
    all_three(f);
    assert_int_equal(f->events->counts.odd_commas, 5);
}

static void commas_missing_doubled_and_trailing(void **state)
{
    EACH_WAY(OBJECT(GOOD("a", "1") " {\"ph\": \"X\",, \"name\": \"b\", \"ts\": 2, \"dur\": 1, "
                                   "\"args\": {\"x\": 1,},},"
                                   ",\n  " GOOD("c", "3")),
             check_commas);
}

static void check_one_skipped(const tp_trace_file *f)
{
    const tp_events *e = f->events;
    assert_int_equal(e->counts.events, 2);
    assert_string_equal(tp_events_str(e, e->name[0]), "a");
    assert_string_equal(tp_events_str(e, e->name[1]), "c");
    assert_int_equal(e->counts.skipped_events, 1);
    assert_true(e->counts.skipped_bytes > 20);
    assert_true(ingest_has_note(&f->notes, "1 place could not be read"));
    assert_string_equal(tp_events_str(e, e->info.trace_name), "t");
    assert_false(e->counts.truncated);
}

static void events_that_cannot_be_read_are_skipped(void **state)
{
    EACH_WAY(
        OBJECT(GOOD("a", "1") ", {\"ph\": \"X\", \"name\": \"b\" \"ts\": 2 }, " GOOD("c", "3")),
        check_one_skipped);
    EACH_WAY(
        OBJECT(
            GOOD("a", "1") ", {\"ph\": \"X\", \"ts\": @, \"args\": {\"name\": \"python\"}}, " GOOD(
                "c", "3")),
        check_one_skipped);
    EACH_WAY(
        OBJECT(GOOD("a", "1") ", {\"ph\": \"X\", \"grid\": [1, 2}, \"ts\": 2}, " GOOD("c", "3")),
        check_one_skipped);
    EACH_WAY(OBJECT(GOOD("a", "1") ", 17, [1, 2], \"text and more text\", null, " GOOD("c", "3")),
             check_one_skipped);
    /* killed and started again: half an event, then the next */
    EACH_WAY(OBJECT(GOOD("a", "1") ", {\"ph\": \"X\", \"cat\": \"kernel\", \"na\n" GOOD("c", "3")),
             check_one_skipped);
}

static void check_last_skipped(const tp_trace_file *f)
{
    assert_int_equal(f->events->counts.events, 2);
    assert_int_equal(f->events->counts.skipped_events, 1);
    assert_string_equal(tp_events_str(f->events, f->events->info.trace_name), "t");
    assert_false(f->events->counts.truncated);
}

static void a_broken_last_event_does_not_hide_what_follows(void **state)
{
    EACH_WAY(OBJECT(GOOD("a", "1") ", " GOOD("c", "3") ", {\"ph\": \"X\", \"ts\": ?, \"dur\": 1 }"),
             check_last_skipped);
}

static void check_empty_ones(const tp_trace_file *f)
{
    assert_int_equal(f->events->counts.events, 3);
    assert_int_equal(f->events->counts.ph[0], 1);
    assert_int_equal(f->events->counts.missing_time, 1);
    assert_int_equal(f->events->n, 1);
}

static void events_without_anything(void **state)
{
    EACH_WAY(
        OBJECT("{}, {\"args\": {}}, " GOOD("a", "1") ", { }, {\"ph\": \"X\", \"name\": \"late\"}"),
        check_empty_ones);
}

static void check_any_order(const tp_trace_file *f)
{
    const tp_events *e = f->events;
    assert_int_equal(e->n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(e->kind[i], TP_EVENT_KERNEL);
        assert_int_equal(e->correlation[i], 5 + (int64_t)i);
    }
    assert_int_equal(e->counts.odd_commas, 0);
}

static void members_in_any_order_and_layout(void **state)
{
    EACH_WAY(
        OBJECT(
            "{\"args\":{\"grid\":[1,2,3],\"correlation\":5},\"ts\":1,\"dur\":1,\"cat\":\"kernel\","
            "\"ph\":\"X\"},"
            "{\"args\":{\"correlation\":6,\"grid\":[ 1 , 2 , 3 "
            "]},\r\n\t\"ts\":1,\"dur\":1,\"cat\":\"kernel\",\"ph\":\"X\"}"),
        check_any_order);
}

static void check_layouts(const tp_trace_file *f)
{
    assert_int_equal(f->events->n, 4);
    assert_int_equal(f->events->counts.skipped_events, 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(f->events->start[i], 1000 * (int64_t)i);
}

static void layouts_may_change_between_events(void **state)
{
    EACH_WAY(OBJECT("{\"ph\":\"X\",\"ts\":0,\"pid\":1,\"dur\":1},{\"ph\":\"X\",\"ts\": "
                    "1,\"pid\":\"x\",\"dur\":1},"
                    "{\"ph\":\"X\",\"ts\":\n2,\"pid\": \"y\",\"dur\":1},{\"ph\":\"X\",\"ts\":  "
                    "3,\"pid\":[],\"dur\":1}"),
             check_layouts);
}

static void check_text_for_number(const tp_trace_file *f)
{
    const tp_events *e = f->events;
    assert_int_equal(e->counts.events, 4);
    assert_int_equal(e->counts.skipped_events, 0);
    assert_string_equal(tp_events_str(e, e->tracks[e->track[1]].pid_text), "Spans");
    assert_int_equal(e->tracks[e->track[3]].pid, 4);
}

static void the_same_member_as_number_and_as_text(void **state)
{
    EACH_WAY(OBJECT("{\"ph\":\"X\",\"pid\":3,\"ts\":1,\"dur\":1},{\"ph\":\"X\",\"pid\":\"Spans\","
                    "\"ts\":1,\"dur\":1},"
                    "{\"ph\":\"X\",\"pid\":null,\"ts\":1,\"dur\":1},{\"ph\":\"X\",\"pid\":4,\"ts\":"
                    "1,\"dur\":1}"),
             check_text_for_number);
}

static void check_durations(const tp_trace_file *f)
{
    const tp_event_counts *c = &f->events->counts;
    assert_int_equal(c->negative_durations, 1);
    assert_int_equal(c->absurd_durations, 2);
    assert_int_equal(c->clamped_times, 2);
    assert_int_equal(f->events->dur[0], -5000);
    for (size_t i = 0; i < f->events->n; i++) {
        int64_t end;
        assert_false(__builtin_add_overflow(f->events->start[i], f->events->dur[i], &end));
    }
}

static void durations_that_cannot_be(void **state)
{
    EACH_WAY(
        OBJECT("{\"ph\":\"X\",\"ts\":1,\"dur\":-5},{\"ph\":\"X\",\"ts\":1,\"dur\":604800000001},"
               "{\"ph\":\"X\",\"ts\":9223372036854775,\"dur\":99999999999999999999}"),
        check_durations);
}

static void check_deep(const tp_trace_file *f)
{
    assert_int_equal(f->events->counts.events, 2);
    assert_int_equal(f->events->counts.skipped_events, 1);
}

static void nesting_has_a_limit(void **state)
{
    char text[4096];
    int n =
        snprintf(text, sizeof text, "[%s, {\"ph\": \"X\", \"args\": {\"deep\": ", GOOD("a", "1"));
    for (int i = 0; i < 500; i++)
        text[n++] = '[';
    n += snprintf(text + n, sizeof text - (size_t)n, "}}, %s]", GOOD("b", "2"));

    each_way(text, (size_t)n, check_deep);
}

/* Everything about rows that a reader decides. */
static void assert_prefix(const tp_events *part, const tp_events *whole)
{
    assert_true(part->n <= whole->n);
    assert_true(part->counts.events <= whole->counts.events);
    assert_memory_equal(part->start, whole->start, part->n * sizeof *part->start);
    assert_memory_equal(part->dur, whole->dur, part->n * sizeof *part->dur);
    assert_memory_equal(part->name, whole->name, part->n * sizeof *part->name);
    assert_memory_equal(part->track, whole->track, part->n * sizeof *part->track);
    assert_memory_equal(part->correlation, whole->correlation, part->n * sizeof *part->correlation);
}

static void a_trace_cut_anywhere_gives_its_beginning(void **state)
{
    static const char head[] = "{\"schemaVersion\": 1, \"traceEvents\": [";
    static const char text[] =
        "{\"schemaVersion\": 1, \"traceEvents\": [" GOOD("a", "1") ",\n" GOOD(
            "b \\\"quoted\\\"", "2.5") ", " GOOD("c", "3") "], \"traceName\": \"t\"}";
    tp_trace_file *whole = ingest_text(text, sizeof text - 1, 0);
    uint64_t before = 0;

    for (size_t n = sizeof head - 1; n < sizeof text - 1; n++) {
        tp_trace_file *f = ingest_text(text, n, n % 3 ? 0 : 50);
        assert_true(f->events->counts.truncated);
        assert_true(ingest_has_note(&f->notes, "ends in the middle"));
        assert_int_equal(f->events->counts.skipped_events, 0);
        assert_true(f->events->counts.events >= before);
        before = f->events->counts.events;
        assert_prefix(f->events, whole->events);
        tp_trace_close(f);
    }
    assert_int_equal(before, 3);
    tp_trace_close(whole);
}

static void a_gzip_stream_cut_anywhere_gives_its_beginning(void **state)
{
    tp_buf all = {0};
    assert_int_equal(tp_file_read(TP_SAMPLE("kineto_2025.json.gz"), 0, &all, NULL), TP_OK);
    tp_trace_file *whole = ingest_text(all.data, all.len, 0);
    uint64_t most = 0;

    for (size_t n = 20; n < all.len; n++) {
        tp_trace_file *f = NULL;
        tp_error err = {0};
        if (tp_trace_open_memory("t.gz", all.data, n, NULL, &f, &err) != TP_OK) {
            assert_true(err.message[0] != 0);
            assert_int_equal(most, 0);
            continue;
        }
        assert_true(ingest_has_note(&f->notes, "ends inside its gzip stream"));
        assert_prefix(f->events, whole->events);
        most = f->events->counts.events;
        tp_trace_close(f);
    }
    assert_int_equal(most, whole->events->counts.events);
    tp_trace_close(whole);
    tp_buf_release(&all);
}

/* A header with all that it can have, its checksum too (RFC 1952). */
static void a_gzip_header_has_a_checksum(void **state)
{
    tp_buf all = {0}, own = {0};
    tp_trace_file *f = NULL;
    tp_error err = {0};
    assert_int_equal(tp_file_read(TP_SAMPLE("kineto_2025.json.gz"), 0, &all, NULL), TP_OK);
    tp_buf_add(&own, "\x1f\x8b\x08\x1e\0\0\0\0\0\x03", 10);
    tp_buf_add(&own, "\x04\0abcd", 6);
    tp_buf_add(&own, "name\0comment", 13);
    tp_buf_add(&own, "\xe2\x48", 2);  /* CRC-32, the low half */
    assert_int_equal(all.data[3], 0); /* nothing behind the first ten bytes */
    tp_buf_add(&own, all.data + 10, all.len - 10);
    f = ingest_text(own.data, own.len, 0);
    assert_int_equal(f->events->counts.events, 23);
    assert_int_equal(f->notes.n, 0);
    tp_trace_close(f);
    own.data[29] ^= 1;
    assert_int_not_equal(tp_trace_open_memory("t.gz", own.data, own.len, NULL, &f, &err), TP_OK);
    assert_string_equal(err.message, "the gzip stream of 't.gz': its checksum does not match, "
                                     "before anything could be read");
    tp_buf_release(&own);
    tp_buf_release(&all);
}

static void a_gzip_stream_in_members_and_with_a_wrong_sum(void **state)
{
    tp_buf all = {0};
    tp_trace_file *f;
    assert_int_equal(tp_file_read(TP_SAMPLE("kineto_2025.json.gz"), 0, &all, NULL), TP_OK);
    all.data[all.len - 6] ^= 1;
    f = ingest_text(all.data, all.len, 0);
    assert_int_equal(f->events->counts.events, 23);
    assert_true(ingest_has_note(&f->notes, "checksum"));
    tp_trace_close(f);
    all.data[all.len - 6] ^= 1;

    tp_buf_adds(&all, "garbage");
    f = ingest_text(all.data, all.len, 0);
    assert_int_equal(f->events->counts.events, 23);
    assert_true(ingest_has_note(&f->notes, "behind its end"));
    tp_trace_close(f);
    tp_buf_release(&all);
}

static void flipped_bits_do_no_harm(void **state)
{
    static const char *const names[] = {
        TP_SAMPLE("kineto_2021.json"), TP_SAMPLE("kineto_2025.json.gz"),
        TP_SAMPLE("chrome_array.json"), TP_SAMPLE("memory_timeline.raw.json")};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        tp_buf all = {0};
        assert_int_equal(tp_file_read(names[k], 0, &all, NULL), TP_OK);
        for (size_t bit = 0; bit < all.len * 8; bit++) {
            tp_trace_file *f = NULL;
            tp_error err = {0};
            all.data[bit / 8] ^= (char)(1 << bit % 8);
            const tp_ingest_options options = {.window = 100 + (uint32_t)(bit % 999),
                                               .one_thread = true};
            if (tp_trace_open_memory("t", all.data, all.len, &options, &f, &err) == TP_OK)
                tp_trace_close(f);
            else
                assert_true(err.message[0] != 0);
            all.data[bit / 8] ^= (char)(1 << bit % 8);
        }
        tp_buf_release(&all);
    }
}

static void one_huge_value_makes_the_window_grow(void **state)
{
    tp_buf text = {0};
    tp_buf_adds(&text, "[{\"ph\": \"X\", \"name\": \"");
    for (int i = 0; i < 300000; i++)
        tp_buf_adds(&text, "0123456789");
    tp_buf_adds(&text, "\", \"ts\": 1, \"dur\": 1}, " GOOD("b", "2") "]");

    tp_trace_file *f = ingest_text(text.data, text.len, 10000);

    assert_int_equal(f->events->n, 2);
    assert_int_equal(tp_string_len(&f->events->strings, f->events->name[0]), 3000000);
    tp_trace_close(f);
    tp_buf_release(&text);
}

static tp_scan_result ends_otherwise(tp_event_scan *scan)
{
    tp_event_scan_portable(scan);
    return TP_SCAN_MORE;
}

static bool (*commit_of_all)(tp_event_scan *scan);

static bool shorten_a_name(tp_event_scan *scan)
{
    if (tp_scan_has(scan, TP_KEY_NAME))
        scan->slots[TP_KEY_NAME].len--;
    return commit_of_all(scan);
}

static tp_scan_result reads_a_name_short(tp_event_scan *scan)
{
    commit_of_all = scan->commit;
    scan->commit = shorten_a_name;
    return tp_event_scan_portable(scan);
}

static void a_scanner_shows_that_it_reads_alike(void **state)
{
    assert_true(tp_event_scan_agrees(tp_event_scan_portable));
    assert_false(tp_event_scan_agrees(ends_otherwise));
    assert_false(tp_event_scan_agrees(reads_a_name_short));
#if defined(__x86_64__)
    if (tp_cpu_detect() >= TP_ISA_AVX2)
        assert_true(tp_event_scan_agrees(tp_event_scan_avx2));
    if (tp_cpu_detect() >= TP_ISA_AVX512)
        assert_true(tp_event_scan_agrees(tp_event_scan_avx512));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scanner_shows_that_it_reads_alike),
        cmocka_unit_test(white_space_before_everything),
        cmocka_unit_test(bare_words_for_numbers),
        cmocka_unit_test(unescaped_quotes_in_names),
        cmocka_unit_test(control_bytes_and_bytes_that_are_no_utf8),
        cmocka_unit_test(backslashes_that_escape_nothing),
        cmocka_unit_test(metadata_with_line_breaks_empty_parts_and_brackets),
        cmocka_unit_test(log_lines_with_bare_quotes),
        cmocka_unit_test(log_lines_behind_the_events),
        cmocka_unit_test(a_damaged_key_does_not_hide_the_events),
        cmocka_unit_test(commas_missing_doubled_and_trailing),
        cmocka_unit_test(events_that_cannot_be_read_are_skipped),
        cmocka_unit_test(a_broken_last_event_does_not_hide_what_follows),
        cmocka_unit_test(events_without_anything),
        cmocka_unit_test(members_in_any_order_and_layout),
        cmocka_unit_test(layouts_may_change_between_events),
        cmocka_unit_test(the_same_member_as_number_and_as_text),
        cmocka_unit_test(durations_that_cannot_be),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(a_trace_cut_anywhere_gives_its_beginning),
        cmocka_unit_test(a_gzip_stream_cut_anywhere_gives_its_beginning),
        cmocka_unit_test(a_gzip_header_has_a_checksum),
        cmocka_unit_test(a_gzip_stream_in_members_and_with_a_wrong_sum),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(one_huge_value_makes_the_window_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
