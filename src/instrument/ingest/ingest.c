/* ingest.c - the kind of a file from its first bytes, and the reader of that kind. */
#include "instrument/ingest/ingest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/platform.h"
#include "instrument/ingest/kineto.h"
#include "instrument/ingest/nsight.h"

/* Digits at p, at most nine; false when there are none. */
static bool number_at(const char *p, int64_t *ret)
{
    int64_t v = 0;
    int n = 0;
    for (; isdigit((unsigned char)p[n]) && n < 10; n++)
        v = v * 10 + (p[n] - '0');
    *ret = v;
    return n > 0 && n < 10;
}

int64_t tp_rank_from_name(const char *path)
{
    const char *name = tp_str_after(path, '/');
    int64_t v, found = TP_UNKNOWN;
    for (const char *p = name; *p; p++) {
        if (strncasecmp(p, "rank", 4) != 0 || (p > name && isalpha((unsigned char)p[-1])))
            continue;
        const char *q = p + 4;
        while (*q == '-' || *q == '_' || *q == '.' || *q == '=')
            q++;
        if (number_at(q, &v))
            found = v; /* the last one: folders of several jobs put theirs in front */
    }
    return found;
}

static const struct {
    const char *name, *about;
} kinds[] = {
    [TP_FILE_KINETO] = {"kineto", "PyTorch profiler trace (Kineto)"},
    [TP_FILE_CHROME] = {"chrome", "Chrome trace"},
    [TP_FILE_TEMPER] = {"temper", "trace of Temper"},
    [TP_FILE_NSIGHT] = {"nsight", "Nsight Systems export"},
    [TP_FILE_SNAPSHOT] = {"snapshot", "PyTorch memory snapshot"},
    [TP_FILE_MEMORY_TIMELINE] = {"memory_timeline", "PyTorch memory timeline"},
};

const char *tp_file_kind_name(tp_file_kind kind)
{
    return kind < TP_COUNTOF(kinds) ? kinds[kind].name : "unknown";
}

const char *tp_file_kind_about(tp_file_kind kind)
{
    return kind < TP_COUNTOF(kinds) ? kinds[kind].about : "unknown";
}

/* --- what it is, by its first bytes --- */

typedef enum { NO, YES, NEEDS_MORE } answer;

enum { MAGIC_MOST = 16 }; /* bytes that tell what is no text */

static bool begins(const char *p, size_t n, const char *magic, size_t len)
{
    return n >= len && memcmp(p, magic, len) == 0;
}

static size_t skip_blanks(const char *p, size_t n, size_t i)
{
    while (i < n && strchr(" \t\r\n", p[i]) && p[i])
        i++;
    return i;
}

static size_t text_of(const char *p, size_t n) { return skip_blanks(p, n, tp_utf8_mark(p, n)); }

static answer is_database(const char *p, size_t n, bool is_all)
{
    static const char sqlite[MAGIC_MOST] = "SQLite format 3";
    (void)is_all;
    return begins(p, n, sqlite, sizeof sqlite) ? YES : NO;
}

static answer is_pickle(const char *p, size_t n, bool is_all)
{
    (void)is_all;
    return n >= 2 && (unsigned char)p[0] == 0x80 && (unsigned char)p[1] <= 5 ? YES : NO;
}

static answer is_zip(const char *p, size_t n, bool is_all)
{
    (void)is_all;
    return begins(p, n, "PK\3\4", 4) ? YES : NO;
}

static answer is_zstd(const char *p, size_t n, bool is_all)
{
    (void)is_all;
    return begins(p, n, "\x28\xb5\x2f\xfd", 4) ? YES : NO;
}

/* Behind a tag of one byte and a number, as protobuf writes both; NULL: something else. */
static const char *behind_field(const char *p, const char *end, char tag)
{
    enum { LONGEST = 10 };
    if (p == end || *p != tag)
        return NULL;
    for (int k = 0; ++p < end && k < LONGEST; k++)
        if (!(*p & 0x80))
            return p + 1;
    return NULL;
}

/* Its first member is the first plane, whose first ones are a number, if it has one, and its name.
 */
static answer is_xplane(const char *p, size_t n, bool is_all)
{
    enum { HEAD = 64, PLANE = '\n', NUMBER = '\b', NAME = '\x12' };
    const char *end = p + TP_MIN(n, (size_t)HEAD);
    if (n == 0 || p[0] != PLANE)
        return NO;
    if (n < HEAD && !is_all)
        return NEEDS_MORE;
    const char *plane = behind_field(p, end, PLANE);
    const char *numbered = plane ? behind_field(plane, end, NUMBER) : NULL;
    const char *name = plane ? behind_field(numbered ? numbered : plane, end, NAME) : NULL;
    size_t left = name ? (size_t)(end - name) : 0;
    return begins(name, left, "/host:", 6) || begins(name, left, "/device:", 8) ? YES : NO;
}

static answer is_empty(const char *p, size_t n, bool is_all)
{
    if (text_of(p, n) < n)
        return NO;
    return is_all ? YES : NEEDS_MORE;
}

static answer is_timeline(const char *p, size_t n, bool is_all)
{
    size_t i = text_of(p, n);
    if (p[i] != '[')
        return NO;
    i = skip_blanks(p, n, i + 1);
    if (i == n)
        return is_all ? NO : NEEDS_MORE;
    return p[i] == '[' ? YES : NO;
}

static answer is_trace(const char *p, size_t n, bool is_all)
{
    char first = p[text_of(p, n)];
    (void)is_all;
    return first == '{' || first == '[' ? YES : NO;
}

static answer is_perfetto(const char *p, size_t n, bool is_all)
{
    (void)is_all;
    return n > 2 && p[0] == '\n' ? YES : NO;
}

static answer is_anything(const char *p, size_t n, bool is_all)
{
    (void)p, (void)n, (void)is_all;
    return YES;
}

/* --- reading --- */

typedef struct {
    tp_trace_file *file;
    const tp_ingest_options *options;
    const void *bytes; /* NULL: from the file */
    size_t n;
    tp_source source;
} opening;

static bool is_made_by_temper(const tp_events *e)
{
    return tp_str_starts(tp_events_str(e, e->info.producer), "temper");
}

static bool looks_like_kineto(const tp_events *e)
{
    const uint64_t *kind = e->counts.kind;
    return e->info.schema_version != TP_UNKNOWN || e->info.base_ns > 0 || e->info.n_devices ||
           kind[TP_EVENT_CPU_OP] || kind[TP_EVENT_KERNEL] || kind[TP_EVENT_RUNTIME] ||
           kind[TP_EVENT_DEVICE] || kind[TP_EVENT_PYTHON] || e->counts.memory_instants;
}

static tp_status new_events(opening *o, tp_error *err)
{
    o->file->events = calloc(1, sizeof *o->file->events);
    return o->file->events ? TP_OK : tp_fail(err, TP_ERR_NOMEM, "no memory for events");
}

static tp_status read_trace(opening *o, tp_error *err)
{
    tp_trace_file *f = o->file;
    TP_TRY(new_events(o, err));
    TP_TRY(tp_kineto_read(f->path, &o->source, o->options->keep, f->events, &f->notes, err));
    f->json_bytes = tp_source_text_bytes(&o->source);
    f->kind = is_made_by_temper(f->events)   ? TP_FILE_TEMPER
              : looks_like_kineto(f->events) ? TP_FILE_KINETO
                                             : TP_FILE_CHROME;
    if (f->kind == TP_FILE_KINETO && !f->events->info.producer)
        f->events->info.producer = tp_string_add(&f->events->strings, "PyTorch Kineto", 14);
    return TP_OK;
}

static tp_status read_database(opening *o, tp_error *err)
{
    tp_trace_file *f = o->file;
    f->kind = TP_FILE_NSIGHT;
    TP_TRY(new_events(o, err));
    bool is_plain = o->bytes || tp_source_is_file(&o->source);
    if (is_plain && !tp_source_is_gzip(&o->source))
        return tp_nsight_read(f->path, o->bytes, o->n, o->options, f->events, &f->notes, err);
    TP_OWN(tp_buf) all = {0};
    TP_TRY(tp_source_read_all(&o->source, &all, err));
    return tp_nsight_read(f->path, all.data, all.len, o->options, f->events, &f->notes, err);
}

static void note_gzip(opening *o)
{
    const char *damage = tp_source_damage(&o->source);
    if (tp_source_is_truncated(&o->source) || damage)
        tp_notes_add(&o->file->notes, TP_NOTE_WARNING, "the gzip stream of '%s': %s", o->file->path,
                     damage ? damage : "it ends in the middle");
}

/* Bytes that may be made of a text which is read as a whole. */
static uint64_t room(const opening *o)
{
    const uint64_t least = UINT64_C(512) << 20, factor = 8;
    uint64_t bytes = tp_source_bytes(&o->source);
    return TP_MAX(least, factor * bytes);
}

static tp_status read_snapshot(opening *o, tp_error *err)
{
    tp_trace_file *f = o->file;
    TP_OWN(tp_buf) all = {0};
    f->kind = TP_FILE_SNAPSHOT;
    tp_status status = tp_source_read_all(&o->source, &all, err);
    note_gzip(o);
    if (status == TP_OK)
        status = tp_snapshot_read(f->path, tp_buf_str(&all), all.len, room(o), &f->snapshot,
                                  &f->notes, err);
    return status;
}

static tp_status read_timeline(opening *o, tp_error *err)
{
    tp_trace_file *f = o->file;
    TP_OWN(tp_buf) all = {0};
    f->kind = TP_FILE_MEMORY_TIMELINE;
    tp_status status = tp_source_read_all(&o->source, &all, err);
    note_gzip(o);
    f->json_bytes = all.len;
    if (status == TP_OK)
        status = tp_memory_timeline_read(f->path, tp_buf_str(&all), all.len, room(o), &f->timeline,
                                         &f->notes, err);
    return status;
}

static tp_status read_nothing(opening *o, tp_error *err)
{
    return tp_source_fail_empty(&o->source, err);
}

static tp_status read_foreign(opening *o, tp_error *err)
{
    const char *path = o->file->path;
    if (tp_str_ends(path, ".nsys-rep") || tp_str_ends(path, ".qdrep"))
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' is a report of Nsight Systems; export it first: nsys export "
                       "--type sqlite %s",
                       path, path);
    return tp_fail(err, TP_ERR_FORMAT,
                   "'%s' is none of: Kineto or Chrome trace (JSON, gzip), Nsight Systems "
                   "export (SQLite), PyTorch memory snapshot (pickle), memory timeline",
                   path);
}

/* The first row whose bytes these are. */
static const struct {
    answer (*is)(const char *p, size_t n, bool is_all);
    tp_status (*read)(opening *o, tp_error *err);
    const char *refusal; /* where there is no reader */
} readers[] = {
    {is_database, .read = read_database},
    {is_pickle, .read = read_snapshot},
    {is_zip, .refusal = "is a zip archive; unpack it first"},
    {is_zstd, .refusal = "is compressed with zstd; unpack it first"},
    {is_xplane, .refusal = "is an XPlane profile of TensorFlow or JAX, which is not read; give the "
                           ".trace.json.gz beside it, or convert it to JSON with XProf"},
    {is_empty, .read = read_nothing},
    {is_timeline, .read = read_timeline},
    {is_trace, .read = read_trace},
    {is_perfetto, .refusal = "looks like Perfetto's native format, which is written but not read; "
                             "convert it to JSON with traceconv"},
    {is_anything, .read = read_foreign},
};

static tp_status read_content(opening *o, tp_error *err)
{
    const tp_source *s = &o->source;
    answer is = NEEDS_MORE;
    size_t k = 0;
    while (is != YES) {
        TP_TRY(tp_source_next(&o->source, s->begin, err));
        size_t n = (size_t)(s->end - s->begin);
        is = n < MAGIC_MOST && !s->is_final ? NEEDS_MORE : NO;
        for (k = 0; is == NO; k += is == NO)
            is = readers[k].is(s->begin, n, s->is_final);
    }
    if (readers[k].read)
        return readers[k].read(o, err);
    return tp_fail(err, TP_ERR_FORMAT, "'%s' %s", o->file->path, readers[k].refusal);
}

static void find_rank(tp_trace_file *f)
{
    f->rank = f->events ? f->events->info.rank : TP_UNKNOWN;
    if (f->rank == TP_UNKNOWN) {
        f->rank = tp_rank_from_name(f->path);
        f->rank_is_guess = f->rank != TP_UNKNOWN;
    }
}

static tp_status open_any(const char *path, const void *bytes, size_t n,
                          const tp_ingest_options *options, tp_trace_file **ret, tp_error *err)
{
    double begin = tp_clock_s();
    opening o = {.file = calloc(1, sizeof *o.file), .options = options, .bytes = bytes, .n = n};
    if (!o.file || !(o.file->path = strdup(tp_input_name(path, TP_INPUT_STREAM)))) {
        free(o.file);
        return tp_fail(err, TP_ERR_NOMEM, "no memory for opening '%s'", path);
    }
    tp_status status = tp_source_open(&o.source, path, bytes, n, options, err);
    if (status == TP_OK)
        status = read_content(&o, err);
    if (status == TP_OK) {
        int64_t size = bytes ? (int64_t)n : tp_file_size(path);
        o.file->bytes = size >= 0 ? (uint64_t)size : tp_source_bytes(&o.source);
        o.file->is_gzip = tp_source_is_gzip(&o.source);
        find_rank(o.file);
        o.file->seconds = tp_clock_s() - begin;
    }
    tp_source_close(&o.source);
    if (status != TP_OK) {
        tp_trace_close(o.file);
        return status;
    }
    *ret = o.file;
    return TP_OK;
}

tp_status tp_trace_open(const char *path, const tp_ingest_options *options, tp_trace_file **ret,
                        tp_error *err)
{
    const tp_ingest_options all = {0};
    return open_any(path, NULL, 0, options ? options : &all, ret, err);
}

tp_status tp_trace_open_memory(const char *path, const void *bytes, size_t n,
                               const tp_ingest_options *options, tp_trace_file **ret, tp_error *err)
{
    const tp_ingest_options all = {0};
    return open_any(path, bytes ? bytes : "", n, options ? options : &all, ret, err);
}

void tp_trace_close(tp_trace_file *file)
{
    if (!file)
        return;
    if (file->events)
        tp_events_release(file->events);
    free(file->events);
    tp_snapshot_free(file->snapshot);
    tp_memory_timeline_free(file->timeline);
    tp_notes_release(&file->notes);
    free(file->path);
    free(file);
}
