/* What kind of file it is, and whose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>

#include "base/output.h"
#include "base/platform.h"
#include "instrument/ingest/event_builder.h"
#include "support/ingest.h"

static void refuse(const char *path, const char *bytes, size_t n, const char *message)
{
    tp_trace_file *f = NULL;
    tp_error err = {0};
    assert_int_equal(tp_trace_open_memory(path, bytes, n, NULL, &f, &err), TP_ERR_FORMAT);
    assert_null(f);
    assert_string_equal(err.message, message);
}

#define REFUSE(path, bytes, message) refuse((path), (bytes), sizeof(bytes) - 1, (message))

static void what_is_no_trace_is_told_with_a_remedy(void **state)
{
    REFUSE("e.json", "", "'e.json' is empty");
    REFUSE("e.json", " \n", "'e.json' is empty");
    REFUSE("a.zip", "PK\3\4....", "'a.zip' is a zip archive; unpack it first");
    REFUSE("a.zst", "\x28\xb5\x2f\xfd....", "'a.zst' is compressed with zstd; unpack it first");
    REFUSE("r.nsys-rep", "QDSTRM..",
           "'r.nsys-rep' is a report of Nsight Systems; export it first: nsys "
           "export --type sqlite r.nsys-rep");
    REFUSE("c.json", "{\"a\": 1}",
           "'c.json' has no \"traceEvents\"; it is not a trace, or was cut before them ('temper "
           "metrics' reads the figures of a run)");
    REFUSE("l.json", "[{\"file\": \"a.json.gz\"}, {}]",
           "'l.json' is a list without events: nothing in it has a phase (\"ph\"); it is no trace");
    REFUSE("l.json", "[1, 2]",
           "'l.json' is a list without events: nothing in it has a phase (\"ph\"); it is no trace");
    REFUSE("l.json", "[]",
           "'l.json' is a list without events: nothing in it has a phase (\"ph\"); it is no trace");
    REFUSE("l.json", "[{}]",
           "'l.json' is a list without events: nothing in it has a phase (\"ph\"); it is no trace");
    REFUSE("j.xplane.pb", "\n{\x12\x9/host:CPU..................",
           "'j.xplane.pb' is an XPlane profile of TensorFlow or JAX, which is not read; give the "
           ".trace.json.gz beside it, or convert it to JSON with XProf");
    REFUSE("j.xplane.pb", "\n\xe3\xdc\7\b\1\x12\xe/host:metadata",
           "'j.xplane.pb' is an XPlane profile of TensorFlow or JAX, which is not read; give the "
           ".trace.json.gz beside it, or convert it to JSON with XProf");
    REFUSE("j.xplane.pb", "\n{\b\1\x12\xd/device:GPU:0......",
           "'j.xplane.pb' is an XPlane profile of TensorFlow or JAX, which is not read; give the "
           ".trace.json.gz beside it, or convert it to JSON with XProf");
    REFUSE("p.pftrace", "\n\x12\x42\2\b\1 ..............",
           "'p.pftrace' looks like Perfetto's native format, which is written but not read; "
           "convert it to JSON with traceconv");
    REFUSE("p.pftrace", "\n\x2a\xe2\3\x20\b\1\x1a\x1c\b\1\x32\x18/host:CPU 2 ..............",
           "'p.pftrace' looks like Perfetto's native format, which is written but not read; "
           "convert it to JSON with traceconv");
    REFUSE("t.txt", "hello",
           "'t.txt' is none of: Kineto or Chrome trace (JSON, gzip), Nsight Systems export "
           "(SQLite), PyTorch memory snapshot (pickle), memory timeline");
}

/* A newline in front, names of XPlane inside, a list that was cut, a phase that is none. */
static void what_looks_odd_is_a_trace_all_the_same(void **state)
{
    static const char *const texts[] = {
        "\n[{\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"/host:CPU\"}}]",
        "\n{\"traceEvents\":[{\"name\":\"/device:GPU:0\",\"ph\":\"X\",\"ts\":1,\"dur\":2}]}",
        "[{\"a\":1},{\"ph\":\"X\"", "[{\"ph\":\"XX\",\"ts\":1,\"dur\":3,\"name\":\"a\"}]"};
    (void)state;
    for (size_t i = 0; i < TP_COUNTOF(texts); i++)
        tp_trace_close(ingest_text(texts[i], strlen(texts[i]), 0));
}

static void a_database_that_is_no_export(void **state)
{
    static const char header[100] = "SQLite format 3";
    tp_trace_file *f = NULL;
    tp_error err = {0};
    assert_int_equal(tp_trace_open_memory("x.db", header, sizeof header, NULL, &f, &err),
                     TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "x.db"));
}

static void a_file_that_is_not_there(void **state)
{
    tp_trace_file *f = NULL;
    tp_error err = {0};
    assert_int_equal(tp_trace_open("/nowhere/t.json", NULL, &f, &err), TP_ERR_IO);
    assert_string_equal(err.message,
                        "cannot open /nowhere/t.json: No such file or directory; check the path");
    assert_int_equal(tp_trace_open("/", NULL, &f, &err), TP_ERR_IO);
}

/* All columns have the one capacity: bytes that rows were counted in once, 8 and 1 apart, grew
 * apart.  Memory that is not touched is not taken, so 16 million rows cost nothing here. */
static void columns_grow_together(void **state)
{
    (void)state;
    tp_events e;
    tp_event_builder b;
    tp_builder_init(&b, &e, TP_KEEP_ALL);
    const tp_event_row row = {.start = 1};
    tp_builder_row(&b, &row);
    for (size_t rows = b.row_cap; rows < 16000000; rows = b.row_cap) {
        tp_builder_expect(&b, (rows + 1) * 384);
        assert_true(b.row_cap > rows);
        assert_true(malloc_usable_size(e.start) >= b.row_cap * 8);
        assert_true(malloc_usable_size(e.external) >= b.row_cap * 8);
        assert_true(malloc_usable_size(e.name) >= b.row_cap * 4);
        assert_true(malloc_usable_size(e.category) >= b.row_cap * 2);
        assert_true(malloc_usable_size(e.phase) >= b.row_cap);
    }
    tp_builder_finish(&b);
    tp_events_release(&e);
}

static void ranks_from_names(void **state)
{
    assert_int_equal(tp_rank_from_name("/a/rank-3.json.gz"), 3);
    assert_int_equal(tp_rank_from_name("job_rank12_trace.json"), 12);
    assert_int_equal(tp_rank_from_name("/rank7/Rank_5.json"), 5);
    assert_int_equal(tp_rank_from_name("trace.rank=2"), 2);
    assert_int_equal(tp_rank_from_name("rank_a.json"), TP_UNKNOWN);
    assert_int_equal(tp_rank_from_name("frank3.json"), TP_UNKNOWN);
    assert_int_equal(tp_rank_from_name("rank_non_gpu.json"), TP_UNKNOWN);
    assert_int_equal(tp_rank_from_name("rank99999999999.json"), TP_UNKNOWN);
}

static void a_job_in_order_with_missing_ranks(void **state)
{
    const char *const paths[] = {TP_SAMPLE("kineto_rocm_rank_6.json"),
                                 TP_SAMPLE("kineto_2025.json.gz"), TP_SAMPLE("kineto_mtia.json"),
                                 TP_SAMPLE("chrome_array.json")};
    tp_trace_job job = {0};
    assert_int_equal(tp_trace_job_open(paths, 4, NULL, &job, NULL), TP_OK);

    assert_int_equal(job.n, 4);
    assert_int_equal(job.files[0]->rank, 0);
    assert_int_equal(job.files[1]->rank, 1);
    assert_int_equal(job.files[2]->rank, 6);
    assert_int_equal(job.files[3]->rank, TP_UNKNOWN);
    assert_int_equal(job.world_size, 2);
    assert_int_equal(job.n_missing, 0);
    assert_true(ingest_has_note(&job.notes, "taken from its name"));
    assert_true(ingest_has_note(&job.notes, "does not say its rank"));
    assert_int_equal(tp_trace_job_check_ranks(&job, NULL), TP_OK);
    tp_trace_job_release(&job);
}

static void the_same_rank_twice_and_one_missing(void **state)
{
    const char *const paths[] = {TP_SAMPLE("kineto_2025.json.gz"),
                                 TP_SAMPLE("kineto_2025.json.gz")};
    tp_trace_job job = {0};
    assert_int_equal(tp_trace_job_open(paths, 2, NULL, &job, NULL), TP_OK);

    assert_int_equal(job.n_missing, 1);
    assert_int_equal(job.missing[0], 0);
    assert_true(ingest_has_note(&job.notes, "are both of rank 1"));
    tp_error err = {0};
    assert_int_equal(tp_trace_job_check_ranks(&job, &err), TP_ERR_ARG);
    assert_non_null(strstr(err.message, "are two recordings of one rank"));
    assert_true(ingest_has_note(&job.notes, "1 of 2 ranks have no file"));
    tp_trace_job_release(&job);
}

/* Memory of rank 0 beside its events is not another recording of it. */
static void memory_of_a_rank_is_no_second_recording(void **state)
{
    static const char text[] =
        "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 0, \"world_size\": 1}, "
        "\"traceEvents\": []}";
    static const char memory[] = "[[-1, 1, 37888, 7], [5, 1, 512, 7]]";
    const char *const paths[] = {"rank0.json", "rank0_memory.raw.json"};
    tp_trace_job job = {0};
    (void)state;
    assert_int_equal(tp_output_put(paths[0], text, strlen(text), NULL), TP_OK);
    assert_int_equal(tp_output_put(paths[1], memory, strlen(memory), NULL), TP_OK);
    assert_int_equal(tp_trace_job_open(paths, 2, NULL, &job, NULL), TP_OK);
    assert_int_equal(job.n, 2);
    assert_null(job.files[1]->events);
    assert_int_equal(job.files[0]->rank, 0);
    assert_int_equal(job.files[1]->rank, 0);
    assert_false(ingest_has_note(&job.notes, "are both of rank"));
    assert_int_equal(tp_trace_job_check_ranks(&job, NULL), TP_OK);
    tp_trace_job_release(&job);
    remove(paths[0]);
    remove(paths[1]);
}

static bool stop_at_once(void *context, uint64_t done, uint64_t total)
{
    *(uint64_t *)context = total;
    return false;
}

static void progress_can_stop(void **state)
{
    uint64_t total = 0;
    tp_trace_file *f = NULL;
    tp_error err = {0};
    const tp_ingest_options options = {.progress = stop_at_once, .context = &total};

    assert_int_equal(tp_trace_open(TP_SAMPLE("kineto_2021.json"), &options, &f, &err), TP_ERR_IO);

    assert_int_equal(total, 1643);
    assert_non_null(strstr(err.message, "interrupted"));
}

static void text_has_a_limit(void **state)
{
    tp_trace_file *f = NULL;
    tp_error err = {0};
    const tp_ingest_options options = {.max_bytes = 100};
    assert_int_equal(tp_trace_open(TP_SAMPLE("kineto_2025.json.gz"), &options, &f, &err),
                     TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "more than 100 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_trace_is_told_with_a_remedy),
        cmocka_unit_test(what_looks_odd_is_a_trace_all_the_same),
        cmocka_unit_test(a_database_that_is_no_export),
        cmocka_unit_test(a_file_that_is_not_there),
        cmocka_unit_test(columns_grow_together),
        cmocka_unit_test(ranks_from_names),
        cmocka_unit_test(a_job_in_order_with_missing_ranks),
        cmocka_unit_test(the_same_rank_twice_and_one_missing),
        cmocka_unit_test(memory_of_a_rank_is_no_second_recording),
        cmocka_unit_test(progress_can_stop),
        cmocka_unit_test(text_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
