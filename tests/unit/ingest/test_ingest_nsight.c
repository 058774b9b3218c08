#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/files.h"
#include "support/ingest.h"

static const tp_event_track *track_of(const tp_events *e, size_t i)
{
    return &e->tracks[e->track[i]];
}

static void activities_of_devices(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight.sqlite"));
    const tp_events *e = f->events;

    assert_int_equal(f->kind, TP_FILE_NSIGHT);
    assert_int_equal(e->counts.kind[TP_EVENT_KERNEL], 2);
    size_t i = ingest_row(e, "gemm");
    assert_int_equal(e->start[i], 1000);
    assert_int_equal(e->dur[i], 600);
    assert_int_equal(track_of(e, i)->device, 0);
    assert_int_equal(track_of(e, i)->stream, 7);
    assert_int_equal(track_of(e, i)->pid, 4242);
    size_t c = ingest_row(e, "Memcpy HtoD (Pinned -> Device)");
    assert_int_equal(tp_events_copy(e, c)->bytes, 4096);
    assert_int_equal(tp_events_copy(e, c)->copy_kind, 1);
    assert_int_equal(e->kind[ingest_row(e, "Stream Sync")], TP_EVENT_SYNC);
    assert_int_equal(e->kind[ingest_row(e, "CUDA graph")], TP_EVENT_GRAPH);
    assert_int_equal(e->info.memcpy_bytes, 4096);
    assert_int_equal(e->info.memcpy_ns, 100);
    assert_int_equal(e->info.runtime_total_ns, 50);
    tp_trace_close(f);
}

static void correlations_of_two_processes_differ(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight.sqlite"));
    const tp_events *e = f->events;

    size_t call = ingest_row(e, "cudaLaunchKernel_v7000"), own = ingest_row(e, "gemm");
    size_t other = ingest_row(e, "ncclDevKernel_AllReduce");

    assert_int_equal(e->correlation[call], e->correlation[own]);
    assert_int_not_equal(e->correlation[call], e->correlation[other]);
    tp_trace_close(f);
}

static void ranges_and_threads(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight.sqlite"));
    const tp_events *e = f->events;

    size_t step = ingest_row(e, "step 1"), op = ingest_row(e, "aten::mm");
    assert_int_equal(e->kind[step], TP_EVENT_ANNOTATION);
    assert_int_equal(e->dur[step], 1700);
    assert_int_equal(track_of(e, step)->tid, 4243);
    assert_string_equal(tp_events_str(e, track_of(e, step)->process_name), "torchrun");
    assert_string_equal(tp_events_str(e, track_of(e, step)->thread_name), "python3");
    assert_int_equal(e->kind[op], TP_EVENT_CPU_OP);
    assert_int_equal(e->external[op], 12);
    assert_int_equal(e->dur[ingest_row(e, "registered")], 0);
    assert_int_equal(e->counts.unpaired, 1);
    assert_int_equal(e->kind[ingest_row(e, "mark")], TP_EVENT_INSTANT);
    assert_int_equal(e->counts.not_kept, 1);
    tp_trace_close(f);
}

static void about_the_recording(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight.sqlite"));
    const tp_events *e = f->events;

    assert_true(e->info.graphs_hide_kernels);
    assert_int_equal(e->info.base_ns, 1779782330176752435);
    assert_int_equal(e->info.devices[0].sms, 132);
    assert_int_equal(e->counts.memory_instants, 2);
    assert_int_equal(e->memory[1].bytes, -1048576);
    assert_int_equal(e->info.n_tables, 8);
    assert_true(ingest_has_note(&f->notes, "--cuda-graph-trace=node"));
    tp_trace_close(f);
}

static void an_old_schema_with_few_columns(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight_2022.sqlite"));
    const tp_events *e = f->events;

    size_t i = ingest_row(e, "void gemm<float>(float*)");
    assert_int_equal(e->dur[i], 50);
    assert_int_equal(e->info.memcpy_bytes, 0);
    tp_trace_close(f);
}

static void the_environment_stays_in_the_file(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight.sqlite"));
    const tp_string_table *strings = &f->events->strings;

    for (uint32_t i = 0; i < strings->n; i++)
        assert_null(strstr(tp_string_get(strings, i), "do-not-show"));
    tp_trace_close(f);
}

/* The metadata of the kernel that starts then on that device. */
static const tp_event_collective *collective_at(const tp_events *e, int64_t device, int64_t start)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->kind[i] == TP_EVENT_KERNEL && e->start[i] == start &&
            track_of(e, i)->device == device)
            return tp_events_collective(e, i);
    fail_msg("no such kernel");
    return NULL;
}

static void message_sizes_of_nccl(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight_nccl.sqlite"));
    const tp_events *e = f->events;

    const tp_event_collective *c = collective_at(e, 0, 2000);
    assert_non_null(c);
    assert_string_equal(tp_events_str(e, c->name), "ncclAllReduce");
    assert_string_equal(tp_events_str(e, c->group), "0xf000000000000abc");
    assert_int_equal(c->message_bytes, 4194304);
    assert_int_equal(c->message_calls, 1);
    assert_int_equal(c->group_size, 4);
    assert_int_equal(c->rank, 1);
    tp_trace_close(f);
}

static void grouped_calls_are_one_message(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight_nccl.sqlite"));
    const tp_event_collective *c = collective_at(f->events, 0, 200000);

    assert_non_null(c);
    assert_string_equal(tp_events_str(f->events, c->name), "ncclSendRecv");
    assert_int_equal(c->message_bytes, 3145728); /* sent 1 + 2 MiB, received 1 */
    assert_int_equal(c->message_calls, 3);
    tp_trace_close(f);
}

static void payloads_in_hexadecimal_behind_a_longer_header(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight_nccl.sqlite"));
    const tp_event_collective *c = collective_at(f->events, 0, 400000);

    assert_non_null(c);
    assert_string_equal(tp_events_str(f->events, c->name), "ncclAllGather");
    assert_int_equal(c->message_bytes, 1048576);
    tp_trace_close(f);
}

static void the_file_declares_the_layout(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight_nccl.sqlite"));
    const tp_event_collective *c = collective_at(f->events, 1, 2000);

    assert_non_null(c);
    assert_int_equal(c->message_bytes, 8388608);
    assert_string_equal(tp_events_str(f->events, c->group), "0x7");
    assert_int_equal(c->group_size, TP_UNKNOWN); /* its ncclCommInitRank is not there */
    tp_trace_close(f);
}

static void a_short_payload_is_left_out(void **state)
{
    tp_trace_file *f = ingest_open(TP_SAMPLE("nsight_nccl.sqlite"));

    assert_null(collective_at(f->events, 0, 600000));
    assert_true(ingest_has_note(
        &f->notes,
        "payloads of NCCL's ranges without the layout that the file declares for them: 1"));
    assert_true(ingest_has_note(&f->notes, "1 of 5 NCCL kernels could not be matched"));
    tp_trace_close(f);
}

static void from_memory_and_damaged(void **state)
{
    tp_buf bytes = {0};
    tp_trace_file *f = NULL;
    tp_error err = {0};
    assert_int_equal(tp_file_read(TP_SAMPLE("nsight.sqlite"), 0, &bytes, NULL), TP_OK);
    assert_int_equal(tp_trace_open_memory("m.sqlite", bytes.data, bytes.len, NULL, &f, &err),
                     TP_OK);
    assert_int_equal(f->events->counts.kind[TP_EVENT_KERNEL], 2);
    tp_trace_close(f);

    /* Only the first page is left: the schema is there, the rows are not. */
    f = NULL;
    tp_status status = tp_trace_open_memory("m.sqlite", bytes.data, 4096, NULL, &f, &err);
    if (status == TP_OK) {
        assert_true(f->events->counts.truncated);
        assert_true(ingest_has_note(&f->notes, "could not be read to their end"));
        tp_trace_close(f);
    } else {
        assert_true(strstr(err.message, "m.sqlite") != NULL);
    }
    tp_buf_release(&bytes);
}

/* A data base of these statements; two processes of number 100 and 200 have a kernel each on their
 * device 0. */
static tp_trace_file *two_processes(const char *more)
{
    static const char kernels[] =
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER);"
        "CREATE TABLE StringIds (id INTEGER, value TEXT);"
        "INSERT INTO StringIds VALUES (1, 'first'), (2, 'second'), (3, 'endless');"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 10, 0, 7, 1, 100 << 24, 1),"
        " (5, 15, 0, 7, 1, 200 << 24, 2), (20, NULL, 0, 7, 2, 200 << 24, 3);";
    sqlite3 *db;
    sqlite3_int64 size;
    tp_trace_file *file = NULL;
    tp_error err = {0};
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, kernels, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, more, NULL, NULL, NULL), SQLITE_OK);
    unsigned char *bytes = sqlite3_serialize(db, "main", &size, 0);
    assert_non_null(bytes);
    if (tp_trace_open_memory("two.sqlite", bytes, (size_t)size, NULL, &file, &err) != TP_OK)
        fail_msg("%s", err.message);
    sqlite3_free(bytes);
    sqlite3_close(db);
    return file;
}

static void every_process_numbers_its_own_devices(void **state)
{
    (void)state;
    tp_trace_file *f = two_processes(
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 100), (5, 0, 200);");
    assert_int_equal(track_of(f->events, ingest_row(f->events, "first"))->device, 3);
    assert_int_equal(track_of(f->events, ingest_row(f->events, "second"))->device, 5);
    assert_false(ingest_has_note(&f->notes, "TARGET_INFO_CUDA_DEVICE"));
    tp_trace_close(f);

    f = two_processes("");
    assert_int_equal(track_of(f->events, ingest_row(f->events, "second"))->device, 0);
    assert_true(ingest_has_note(&f->notes, "several processes have a device 0"));
    tp_trace_close(f);
}

/* What was written last is beside the file until its writer closes it. */
static void a_database_that_was_not_closed_says_so(void **state)
{
    static const char path[] = "open.sqlite";
    tp_trace_file *file = NULL;
    tp_error err = {0};
    sqlite3 *db;
    (void)state;
    remove(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA journal_mode=WAL; CREATE TABLE StringIds (id INTEGER, "
                                  "value TEXT)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(tp_trace_open(path, NULL, &file, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "'open.sqlite-wal', which is not read"));

    /* One with tables of its own is what it is. */
    assert_int_equal(sqlite3_exec(db,
                                  "DROP TABLE StringIds; CREATE TABLE metrics (x INTEGER); "
                                  "PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO metrics VALUES (1)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(tp_trace_open(path, NULL, &file, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "no export of Nsight Systems"));
    sqlite3_close(db);
    remove(path);
}

static void a_kernel_without_an_end_has_no_duration(void **state)
{
    (void)state;
    tp_trace_file *f = two_processes("");
    assert_int_equal(f->events->n, 2);
    assert_int_equal(f->events->counts.missing_duration, 1);
    assert_true(ingest_has_note(&f->notes, "1 rows without an end; left out"));
    tp_trace_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activities_of_devices),
        cmocka_unit_test(correlations_of_two_processes_differ),
        cmocka_unit_test(ranges_and_threads),
        cmocka_unit_test(about_the_recording),
        cmocka_unit_test(an_old_schema_with_few_columns),
        cmocka_unit_test(the_environment_stays_in_the_file),
        cmocka_unit_test(message_sizes_of_nccl),
        cmocka_unit_test(grouped_calls_are_one_message),
        cmocka_unit_test(payloads_in_hexadecimal_behind_a_longer_header),
        cmocka_unit_test(the_file_declares_the_layout),
        cmocka_unit_test(a_short_payload_is_left_out),
        cmocka_unit_test(from_memory_and_damaged),
        cmocka_unit_test(every_process_numbers_its_own_devices),
        cmocka_unit_test(a_database_that_was_not_closed_says_so),
        cmocka_unit_test(a_kernel_without_an_end_has_no_duration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
