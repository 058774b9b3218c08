/* check_sizes.c - traces larger than 32 bits of bytes, and of ten million rows.
 *
 * Made here and removed again; slow, so apart from the other tests. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <isa-l/igzip_lib.h>
#include <sqlite3.h>

#include "base/files.h"
#include "instrument/analyze/compare.h"
#include "support/ingest.h"

static char folder[] = "/tmp/temper-sizes-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/trace", folder);
    return 0;
}

static int remove_folder(void **state) { return tp_dir_remove(folder, NULL) != TP_OK; }

/* One gzip member with the text, appended. */
static void add_member(tp_buf *out, const char *text, size_t n)
{
    struct isal_zstream stream;
    isal_deflate_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)(uintptr_t)text;
    stream.avail_in = (uint32_t)n;
    tp_buf_reserve(out, n + 4096);
    stream.next_out = (uint8_t *)out->data + out->len;
    stream.avail_out = (uint32_t)(n + 4096);
    assert_int_equal(isal_deflate(&stream), COMP_OK);
    out->len += stream.total_out;
}

/* `n` members of the same text between two others. */
static void write_members(const char *first, const char *text, size_t n_text, int n,
                          const char *last)
{
    tp_buf member = {0}, file = {0};
    add_member(&file, first, strlen(first));
    add_member(&member, text, n_text);
    for (int i = 0; i < n; i++)
        tp_buf_add(&file, member.data, member.len);
    add_member(&file, last, strlen(last));
    assert_int_equal(tp_file_write_atomic(path, file.data, file.len, NULL), TP_OK);
    tp_buf_release(&member);
    tp_buf_release(&file);
}

static void a_trace_of_more_than_4_gib_is_read(void **state)
{
    enum { N = 4200, NOTE = 1 << 20 };
    static const char head[] =
        "{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1,\"name\":\"k\","
        "\"cat\":\"kernel\",\"args\":{\"note\":\"";
    tp_buf event = {0};
    tp_buf_adds(&event, head);
    for (int i = 0; i < NOTE; i++)
        tp_buf_addc(&event, '0');
    tp_buf_adds(&event, "\"}},\n");
    write_members("{\"traceEvents\":[\n", event.data, event.len, N,
                  "{\"ph\":\"X\",\"ts\":7,\"dur\":3,\"name\":\"last\",\"cat\":\"kernel\"}]}\n");
    const tp_ingest_options options = {.keep = TP_KEEP_FAST};
    tp_trace_file *f;
    tp_error err = {0};
    if (tp_trace_open(path, &options, &f, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(f->events->n, N + 1);
    assert_true(f->json_bytes > UINT64_C(1) << 32);
    assert_int_equal(f->events->counts.skipped_events, 0);
    assert_int_equal(f->events->start[ingest_row(f->events, "last")], 7000);
    tp_trace_close(f);
    tp_buf_release(&event);
}

static void what_unpacks_to_more_than_a_gib_is_not_read_as_a_whole(void **state)
{
    enum { PIECE = 4 << 20 };
    char *zeros = calloc(PIECE, 1);
    tp_trace_file *f;
    tp_error err = {0};
    assert_non_null(zeros);
    write_members("\x80\x04]", zeros, PIECE, 257, "");
    assert_int_equal(tp_trace_open(path, NULL, &f, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "gives more than 1 GiB, and what it holds is read as a "
                                        "whole; unpack it first"));
    free(zeros);
}

static void an_export_of_ten_million_kernels_is_read(void **state)
{
    enum { N = 10000000 };
    static const char sql[] =
        "PRAGMA journal_mode = off; PRAGMA synchronous = off;"
        "CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, 'k');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,"
        " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER,"
        " demangledName INTEGER);"
        "WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 9999999)"
        " INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 10 * i, 10 * i + 7, 0, 7, i, 0, 1, 1"
        " FROM r;";
    sqlite3 *db;
    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    const tp_ingest_options options = {.keep = TP_KEEP_FAST};
    tp_trace_file *f;
    tp_error err = {0};
    if (tp_trace_open(path, &options, &f, &err) != TP_OK)
        fail_msg("%s", err.message);
    int64_t sum = 0;
    for (size_t i = 0; i < f->events->n; i++)
        sum += f->events->dur[i];
    assert_int_equal(f->events->n, N);
    assert_int_equal(sum, 70000000);
    assert_int_equal(f->events->start[N - 1], 99999990);
    tp_trace_close(f);
}

/* As many names as steps: a table of both would have 16 million places, and 9999 draws each. */
static void many_names_and_steps_are_compared_in_bounds(void **state)
{
    enum { N = 4000, TESTED = 100 };
    tp_buf text = {0};
    tp_buf_adds(&text, "{\"traceEvents\":[");
    for (int i = 0; i < N; i++)
        tp_buf_addf(&text,
                    "%s{\"ph\":\"X\",\"ts\":%d,\"dur\":5,\"pid\":1,\"tid\":1,"
                    "\"name\":\"ProfilerStep#%d\",\"cat\":\"user_annotation\"},"
                    "{\"ph\":\"X\",\"ts\":%d,\"dur\":1,\"pid\":0,\"tid\":7,\"name\":\"k%d\","
                    "\"cat\":\"kernel\",\"args\":{\"device\":0,\"stream\":7}}",
                    i ? "," : "", 10 * i, i, 10 * i + 1, i);
    tp_buf_adds(&text, "]}");
    tp_trace_file *f = ingest_text(text.data, text.len, 0);
    tp_selection selection;
    tp_comparison c;
    tp_error err = {0};
    tp_selection_make(f->events, &(tp_select_options){0}, &selection);
    if (tp_compare(&selection, &selection, &c, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(c.kernels.n, N);
    assert_int_equal(c.kernels.n_untested, N - TESTED);
    assert_int_equal(c.totals.n_untested, 0);
    assert_true(c.kernels.rows[TESTED - 1].e.p_permutation <= 1);
    assert_false(c.kernels.rows[TESTED].e.p_permutation <= 1); /* NaN */
    assert_float_equal(c.kernels.rows[0].before_step, 0.25, 0);
    tp_comparison_release(&c);
    tp_selection_release(&selection);
    tp_trace_close(f);
    tp_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_of_more_than_4_gib_is_read),
        cmocka_unit_test(what_unpacks_to_more_than_a_gib_is_not_read_as_a_whole),
        cmocka_unit_test(an_export_of_ten_million_kernels_is_read),
        cmocka_unit_test(many_names_and_steps_are_compared_in_bounds),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
