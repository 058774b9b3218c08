/* written.h - a written trace, read back. */
#ifndef TP_TESTS_WRITTEN_H
#define TP_TESTS_WRITTEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "text/json/json.h"
#include "trace/trace.h"

static tp_arena arena;
static tp_buf text;

static inline int written_begin(void **state)
{
    return tp_arena_init(&arena, 256 << 20, NULL) != TP_OK;
}

static inline int written_end(void **state)
{
    tp_trace_release();
    tp_arena_release(&arena);
    tp_buf_release(&text);
    return 0;
}

/* A path that nothing has yet. */
static inline char *new_path(const char *suffix)
{
    static char path[4][64];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, 64, "/tmp/temper-trace-XXXXXX");
    int fd = mkstemp(p);
    assert_true(fd >= 0);
    close(fd);
    unlink(p);
    strcat(p, suffix);
    return p;
}

static inline const tp_json *read_trace(const char *path)
{
    const tp_json *root;
    tp_error err = {0};
    tp_buf_clear(&text);
    assert_int_equal(tp_file_read(path, 0, &text, &err), TP_OK);
    if (tp_json_parse(&arena, path, text.data, text.len, NULL, &root, &err) != TP_OK)
        fail_msg("%s", err.message);
    return root;
}

static inline const tp_json *written(void)
{
    const char *path = new_path(".json");
    tp_error err = {0};
    if (tp_trace_write(path, &err) != TP_OK)
        fail_msg("%s", err.message);
    const tp_json *root = read_trace(path);
    unlink(path);
    return root;
}

/* The k-th event of this phase and name (NULL: any), or NULL. */
static inline const tp_json *event(const tp_json *root, const char *ph, const char *name, int k)
{
    for (const tp_json *e = tp_json_get(root, "traceEvents")->child; e; e = e->next)
        if (strcmp(tp_json_str(tp_json_get(e, "ph")), ph) == 0 &&
            (!name || strcmp(tp_json_str(tp_json_get(e, "name")), name) == 0) && k-- == 0)
            return e;
    return NULL;
}

static inline int count_events(const tp_json *root, const char *ph, const char *name)
{
    int n = 0;
    for (const tp_json *e = tp_json_get(root, "traceEvents")->child; e; e = e->next)
        n += strcmp(tp_json_str(tp_json_get(e, "ph")), ph) == 0 &&
             strcmp(tp_json_str(tp_json_get(e, "name")), name) == 0;
    return n;
}

static inline const tp_json *arg(const tp_json *e, const char *key)
{
    return tp_json_get(tp_json_get(e, "args"), key);
}

/* A time of an event in nanoseconds, from its text. */
static inline int64_t ns_of(const tp_json *e, const char *key)
{
    const char *t = tp_json_get(e, key)->text.data, *point = strchr(t, '.');
    assert_non_null(point);
    assert_int_equal(strlen(point), 4);
    return strtoll(t, NULL, 10) * 1000 + strtoll(point + 1, NULL, 10);
}

static inline void start_keeping(uint32_t events, tp_trace_overflow overflow)
{
    tp_trace_options options = {
        .size = sizeof options, .events_per_thread = events, .overflow = overflow};
    tp_error err = {0};
    if (tp_trace_start(&options, &err) == TP_ERR_UNSUPPORTED)
        skip(); /* compiled out */
    assert_true(tp_trace_enabled());
}

#endif
