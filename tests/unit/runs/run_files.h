/* run_files.h - files of a folder that goes with the test. */
#ifndef TP_TESTS_UNIT_RUNS_RUN_FILES_H
#define TP_TESTS_UNIT_RUNS_RUN_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "instrument/ingest/runs/event_record.h"
#include "temper/analysis.h"

static char run_folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(run_folder, sizeof run_folder, "/tmp/temper-test-run-XXXXXX");
    return mkdtemp(run_folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return tp_dir_remove(run_folder, NULL) == TP_OK ? 0 : -1;
}

static inline const char *run_path(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", run_folder, name);
    return path;
}

static inline void write_bytes(const char *name, const char *mode, const void *bytes, size_t n)
{
    FILE *f = fopen(run_path(name), mode);
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void write_text(const char *name, const char *text)
{
    write_bytes(name, "w", text, strlen(text));
}

static inline void append_text(const char *name, const char *text)
{
    write_bytes(name, "a", text, strlen(text));
}

/* A record with right checksums. */
static inline void add_record(tp_buf *out, const void *data, size_t n)
{
    uint64_t length = n;
    uint32_t crc = tp_event_checksum(&length, 8);
    tp_buf_add(out, &length, 8);
    tp_buf_add(out, &crc, 4);
    tp_buf_add(out, data, n);
    crc = tp_event_checksum(data, n);
    tp_buf_add(out, &crc, 4);
}

/* {wall_time: 1, step, summary {value {tag, simple_value}}}; tag and step below 100. */
static inline void add_scalar(tp_buf *out, const char *tag, int step, float value)
{
    static const unsigned char wall[] = {9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f};
    tp_buf e = {0};
    char n = (char)strlen(tag);
    tp_buf_add(&e, wall, sizeof wall);
    tp_buf_addc(&e, 2 << 3);
    tp_buf_addc(&e, (char)step);
    tp_buf_addc(&e, 5 << 3 | 2);
    tp_buf_addc(&e, (char)(n + 9));
    tp_buf_addc(&e, 1 << 3 | 2);
    tp_buf_addc(&e, (char)(n + 7));
    tp_buf_addc(&e, 1 << 3 | 2);
    tp_buf_addc(&e, n);
    tp_buf_adds(&e, tag);
    tp_buf_addc(&e, 2 << 3 | 5);
    tp_buf_add(&e, &value, 4);
    add_record(out, e.data, e.len);
    tp_buf_release(&e);
}

static inline void add_version(tp_buf *out)
{
    static const char version[] = "\x1a\x0d"
                                  "brain.Event:2";
    add_record(out, version, sizeof version - 1);
}

static inline tp_metrics *open_run(const char *path)
{
    tp_metrics *m = NULL;
    tp_error err = {0};
    if (tp_metrics_open(path, NULL, &m, &err) != TP_OK)
        fail_msg("%s", err.message);
    return m;
}

static inline size_t points_of(tp_metrics *m, const char *tag, tp_points_view view,
                               const tp_metric_point **ret)
{
    size_t index = tp_metrics_find(m, tag);
    if (index == SIZE_MAX)
        fail_msg("no metric '%s'", tag);
    return tp_metrics_points(m, index, view, ret);
}

static inline bool has_note(const tp_metrics *m, const char *part)
{
    for (size_t i = 0; i < tp_metrics_notes(m); i++)
        if (strstr(tp_metrics_note(m, i, NULL), part))
            return true;
    return false;
}

#endif
