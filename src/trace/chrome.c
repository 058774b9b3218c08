/* chrome.c - events as Chrome JSON, written the way Kineto writes it, so that what reads
 * PyTorch's traces reads ours: docs/formats/trace.md.
 *
 * A stream is flushed by writing the new events and the closing brackets in one call over
 * the brackets of the flush before: whenever the process dies, the file is whole. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gzip.h"
#include "base/platform.h"
#include "trace/internal.h"

enum { CHUNK = 1 << 20, STREAM_CHUNK = 1 << 16 };

struct tp_chrome {
    tp_recorder *r;
    int fd;
    char *path, *tmp; /* tmp: beside it, to be renamed; NULL for a stream */
    tp_buf out;
    off_t at;   /* where the next event goes; a stream's closing brackets begin here */
    off_t size; /* of the stream's file */
    uint64_t n; /* events so far: "Ev Idx", "External id" */
    int pid;
    uint32_t named_tracks; /* bits */
    int why;               /* errno of the first write that failed */
    tp_gzip *zip;          /* NULL: plain */
    tp_buf zipped;
};

/* ---- small pieces of text ---- */

static void add_text(tp_chrome *c, const char *text) { tp_buf_adds(&c->out, text); }

static void add_unsigned(tp_chrome *c, uint64_t v)
{
    char digits[24], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + v % 10);
    while (v /= 10);
    tp_buf_add(&c->out, at, (size_t)(digits + sizeof digits - at));
}

static void add_signed(tp_chrome *c, int64_t v)
{
    if (v < 0)
        tp_buf_addc(&c->out, '-');
    add_unsigned(c, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* Microseconds with three digits behind the point: exact nanoseconds. */
static void add_time(tp_chrome *c, int64_t ns)
{
    char rest[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
                    (char)('0' + ns % 10)};
    add_unsigned(c, (uint64_t)ns / 1000);
    tp_buf_add(&c->out, rest, sizeof rest);
}

static void add_quoted(tp_chrome *c, const char *text)
{
    size_t n = strlen(text);
    bool is_plain = true;
    for (size_t i = 0; i < n && is_plain; i++)
        is_plain = (unsigned char)text[i] >= ' ' && text[i] != '"' && text[i] != '\\' &&
                   (unsigned char)text[i] < 0x7f;
    if (!is_plain) {
        tp_json_quote(&c->out, text, n);
        return;
    }
    tp_buf_addc(&c->out, '"');
    tp_buf_add(&c->out, text, n);
    tp_buf_addc(&c->out, '"');
}

bool tp_trace_is_json(const char *text, bool object)
{
    tp_json_reader r;
    tp_json_token token;
    tp_json_reader_init(&r, "", text, strlen(text), NULL);
    if (tp_json_reader_next(&r, &token, NULL) != TP_OK ||
        (object && token.type != TP_JSON_TOKEN_BEGIN_OBJECT))
        return false;
    while (token.type != TP_JSON_TOKEN_END)
        if (tp_json_reader_next(&r, &token, NULL) != TP_OK)
            return false;
    return true;
}

/* The members of a JSON object, behind others. */
static void add_members(tp_chrome *c, const char *object, bool *any)
{
    const char *from = strchr(object, '{') + 1, *to = strrchr(object, '}');
    from += strspn(from, " \t\r\n");
    if (from >= to)
        return;
    if (*any)
        tp_buf_addc(&c->out, ',');
    *any = true;
    tp_buf_add(&c->out, from, (size_t)(to - from));
}

/* The place in the code, without the folders of the machine that built it. */
static void add_source(tp_chrome *c, const tp_trace_site *site, bool *any)
{
    add_text(c, *any ? ",\"source\":" : "\"source\":");
    add_quoted(c, tp_str_after(site->file, '/'));
    c->out.len--; /* the closing quote */
    add_text(c, ":");
    add_unsigned(c, (uint64_t)site->line);
    add_text(c, "\"");
    *any = true;
}

static void add_metadata(tp_chrome *c, const tp_trace_event *e, bool *any)
{
    if (e->site->file)
        add_source(c, e->site, any);
    if (e->site->args)
        add_members(c, e->site->args, any);
    if (!e->text)
        return;
    if (tp_trace_is_json(e->text, true)) {
        add_members(c, e->text, any);
        return;
    }
    add_text(c, *any ? ",\"text\":" : "\"text\":");
    add_quoted(c, e->text);
    *any = true;
}

/* ---- writing out ---- */

static void write_at(tp_chrome *c, const void *data, size_t n, off_t at)
{
    const char *bytes = data;
    while (n > 0 && !c->why) {
        ssize_t done = pwrite(c->fd, bytes, n, at);
        if (done < 0 && errno != EINTR)
            c->why = errno;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
            at += done;
        }
    }
}

static void write_buffer(tp_chrome *c, tp_buf *bytes)
{
    write_at(c, bytes->data, bytes->len, c->at);
    c->at += (off_t)bytes->len;
    tp_buf_clear(bytes);
}

static void write_out(tp_chrome *c, bool is_last)
{
    if (c->zip) {
        tp_gzip_add(c->zip, c->out.data, c->out.len, is_last, &c->zipped);
        tp_buf_clear(&c->out);
    }
    write_buffer(c, c->zip ? &c->zipped : &c->out);
}

/* ---- events ---- */

static void begin_event(tp_chrome *c, const char *phase, const char *category, const char *name)
{
    add_text(c, ",\n{\"ph\":\"");
    add_text(c, phase);
    add_text(c, "\",\"cat\":");
    add_quoted(c, category);
    add_text(c, ",\"name\":");
    add_quoted(c, name);
    add_text(c, ",\"pid\":");
    add_unsigned(c, (uint64_t)c->pid);
}

/* No thread has such a number. */
static int64_t row_of(const tp_trace_event *e)
{
    return e->site->track ? ((int64_t)1 << 30) + e->site->track : e->tid;
}

static void add_where(tp_chrome *c, const tp_trace_event *e)
{
    add_text(c, ",\"tid\":");
    add_signed(c, row_of(e));
    add_text(c, ",\"ts\":");
    add_time(c, e->start_ns);
}

static const char *category_of(const tp_trace_site *site)
{
    return site->category ? site->category : "user_annotation";
}

static void add_name(tp_chrome *c, const char *what, long tid, const char *key, const char *name)
{
    add_text(c, "{\"ph\":\"M\",\"name\":\"");
    add_text(c, what);
    add_text(c, "\",\"pid\":");
    add_unsigned(c, (uint64_t)c->pid);
    add_text(c, ",\"tid\":");
    add_signed(c, tid);
    add_text(c, ",\"ts\":0.000,\"args\":{");
    add_quoted(c, key);
    add_text(c, ":");
    add_quoted(c, name);
    add_text(c, "}}");
}

static void name_track(tp_chrome *c, const tp_trace_event *e)
{
    char name[80];
    uint32_t bit = 1u << (e->site->track & 31);
    if (!e->site->track || (c->named_tracks & bit))
        return;
    c->named_tracks |= bit;
    snprintf(name, sizeof name, "%.60s %d", category_of(e->site), e->site->track);
    add_text(c, ",\n");
    add_name(c, "thread_name", (long)row_of(e), "name", name);
}

static void add_zone(tp_chrome *c, const tp_trace_event *e)
{
    const char *category = category_of(e->site);
    bool any = false;
    name_track(c, e);
    begin_event(c, "X", category, e->site->name);
    add_where(c, e);
    add_text(c, ",\"dur\":");
    add_time(c, e->end_ns - e->start_ns);
    add_text(c, ",\"args\":{");
    if (strcmp(category, "cpu_op") == 0) {
        add_text(c, "\"External id\":");
        add_unsigned(c, c->n);
        add_text(c, ",\"Ev Idx\":");
        add_unsigned(c, c->n);
        any = true;
    }
    add_metadata(c, e, &any);
    add_text(c, "}}");
}

static void add_mark(tp_chrome *c, const tp_trace_event *e)
{
    bool any = false;
    begin_event(c, "i", e->site->category ? e->site->category : "cpu_instant_event", e->site->name);
    add_where(c, e);
    add_text(c, ",\"s\":\"t\",\"args\":{");
    add_metadata(c, e, &any);
    add_text(c, "}}");
}

static void add_number(tp_chrome *c, double v)
{
    char text[32];
    if (isfinite(v))
        tp_buf_add(&c->out, text, tp_json_f64_text(v, text));
    else
        add_text(c, isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

static void add_value(tp_chrome *c, const tp_trace_event *e)
{
    begin_event(c, "C", e->site->category ? e->site->category : "counter", e->site->name);
    add_where(c, e);
    add_text(c, ",\"args\":{\"value\":");
    add_number(c, e->value);
    add_text(c, "}}");
}

static void add_memory(tp_chrome *c, const tp_trace_event *e)
{
    begin_event(c, "i", "cpu_instant_event", "[memory]");
    add_where(c, e);
    add_text(c, ",\"s\":\"t\",\"args\":{");
    if (e->reserved >= 0) {
        add_text(c, "\"Total Reserved\":");
        add_signed(c, e->reserved);
        add_text(c, ",");
    }
    add_text(c, "\"Total Allocated\":");
    add_signed(c, e->allocated);
    add_text(c, ",\"Bytes\":");
    add_signed(c, e->bytes);
    add_text(c, ",\"Addr\":");
    add_unsigned(c, e->id);
    add_text(c, ",\"Device Id\":-1,\"Device Type\":0,\"Ev Idx\":");
    add_unsigned(c, c->n);
    add_text(c, ",\"Kind\":");
    add_quoted(c, category_of(e->site));
    add_text(c, ",\"Owner\":");
    add_quoted(c, e->site->name);
    add_text(c, "}}");
}

static void add_flow(tp_chrome *c, const tp_trace_event *e)
{
    bool is_begin = e->kind == TP_TRACE_FLOW_BEGIN;
    begin_event(c, is_begin ? "s" : "f", e->site->category ? e->site->category : "flow",
                e->site->name);
    add_where(c, e);
    add_text(c, ",\"id\":");
    add_unsigned(c, e->id);
    add_text(c, is_begin ? "}" : ",\"bp\":\"e\"}");
}

bool tp_chrome_owns(const char *key)
{
    static const char *const keys[] = {"schemaVersion",
                                       "producer",
                                       "baseTimeNanoseconds",
                                       "displayTimeUnit",
                                       "deviceProperties",
                                       "record_shapes",
                                       "profile_memory",
                                       "with_flops",
                                       "traceEvents",
                                       "traceName",
                                       "temper"};
    for (size_t i = 0; i < TP_COUNTOF(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static void add_end(const tp_chrome *c, tp_buf *out);

/* A stream's new events and its end in one call: a process that is killed between two of them
 * leaves a whole file, and one inside leaves all but the last events. */
static void write_stream(tp_chrome *c)
{
    size_t events = c->out.len;
    add_end(c, &c->out);
    off_t size = c->at + (off_t)c->out.len;
    write_at(c, c->out.data, c->out.len, c->at);
    if (!c->why && size < c->size && ftruncate(c->fd, size) != 0)
        c->why = errno;
    tp_buf_clear(&c->out);
    if (c->why)
        return;
    c->size = size;
    c->at += (off_t)events;
}

static void see(void *user, const tp_trace_event *e)
{
    tp_chrome *c = user;
    switch (e->kind) {
    case TP_TRACE_ZONE:
        add_zone(c, e);
        break;
    case TP_TRACE_MARK:
        add_mark(c, e);
        break;
    case TP_TRACE_COUNTER:
        add_value(c, e);
        break;
    case TP_TRACE_MEMORY:
        add_memory(c, e);
        break;
    case TP_TRACE_FLOW_BEGIN:
    case TP_TRACE_FLOW_END:
        add_flow(c, e);
        break;
    }
    c->n++;
    if (c->tmp && c->out.len >= CHUNK)
        write_out(c, false);
    else if (!c->tmp && c->out.len >= STREAM_CHUNK)
        write_stream(c);
}

void tp_chrome_ring(tp_chrome *c, tp_ring *ring, uint64_t from, uint64_t to)
{
    char name[TP_THREAD_NAME];
    bool is_stream = !c->tmp;
    pthread_mutex_lock(&c->r->lock);
    bool write_name = ring->thread_name[0] && !(is_stream && ring->name_is_written);
    ring->name_is_written = ring->name_is_written || is_stream;
    memcpy(name, ring->thread_name, sizeof name);
    pthread_mutex_unlock(&c->r->lock);
    if (write_name) {
        add_text(c, ",\n");
        add_name(c, "thread_name", ring->tid, "name", name);
    }
    tp_ring_events(c->r, ring, from, to, see, c);
}

/* ---- the file ---- */

static void add_head(tp_chrome *c)
{
    tp_buf_addf(&c->out,
                "{\"schemaVersion\":1,\"producer\":\"temper %s\",\"baseTimeNanoseconds\":%lld,"
                "\"displayTimeUnit\":\"ns\",\"deviceProperties\":[],\"record_shapes\":1,"
                "\"profile_memory\":1,\"with_flops\":1,\n\"traceEvents\":[\n",
                TEMPER_VERSION, (long long)c->r->base_unix_ns);
    add_name(c, "process_name", 0, "name", c->r->process_name ? c->r->process_name : "");
    add_text(c, ",\n");
    add_name(c, "process_labels", 0, "labels", "CPU");
}

static void add_end(const tp_chrome *c, tp_buf *out)
{
    const tp_recorder *r = c->r;
    tp_buf_addf(out, "\n],\"traceName\":");
    tp_json_quote(out, c->path, strlen(c->path));
    for (size_t i = 0; i < r->n_members; i++) {
        tp_buf_addc(out, ',');
        tp_json_quote(out, r->members[i].key, strlen(r->members[i].key));
        tp_buf_addf(out, ":%s", r->members[i].json);
    }
    tp_buf_adds(out, ",\"temper\":");
    tp_json_w w = tp_json_w_open(out, 0, '{');
    tp_json_w_put_str(&w, "clock", r->cost.clock ? r->cost.clock : "none");
    tp_json_w_put_f64(&w, "zone_ns", r->cost.zone_ns);
    tp_json_w_put_f64(&w, "clock_read_ns", r->cost.clock_read_ns);
    tp_json_w_put_i64(&w, "events", (int64_t)c->n);
    tp_json_w_put_i64(&w, "dropped_events", (int64_t)tp_trace_dropped());
    tp_json_w_put_str(&w, "overflow",
                      r->overflow == TP_TRACE_FLUSH         ? "flush"
                      : r->overflow == TP_TRACE_KEEP_OLDEST ? "keep oldest"
                                                            : "keep newest");
    tp_json_w_key(&w, "counters");
    tp_counters_write(&w);
    tp_json_w_end(&w, '}');
    tp_buf_adds(out, "}\n");
}

static void free_chrome(tp_chrome *c)
{
    if (c->fd >= 0)
        close(c->fd);
    if (c->tmp)
        unlink(c->tmp);
    tp_gzip_free(c->zip);
    tp_buf_release(&c->zipped);
    tp_buf_release(&c->out);
    free(c->tmp);
    free(c->path);
    free(c);
}

static tp_status open_file(tp_chrome *c, tp_error *err)
{
    const char *path = c->tmp ? c->tmp : c->path;
    c->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (c->fd < 0)
        return tp_fail(err, TP_ERR_OUTPUT, "cannot write the trace %s: %s", path, strerror(errno));
    c->zip = tp_gzip_is_named(c->path) ? tp_gzip_new() : NULL;
    return c->zip || !tp_gzip_is_named(c->path)
               ? TP_OK
               : tp_fail(err, TP_ERR_NOMEM, "%s: no memory to compress with", c->path);
}

/* A rename would put a file in the place of a device, a pipe or a link: those are refused, and a
 * link is written through.  Returns what is to be written, or NULL. */
static char *real_path(const char *path, tp_error *err)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode)) {
        tp_fail(err, TP_ERR_OUTPUT, "cannot write the trace %s: it is no plain file", path);
        return NULL;
    }
    return exists ? realpath(path, NULL) : strdup(path);
}

tp_status tp_chrome_open(tp_recorder *r, const char *path, bool is_atomic, tp_chrome **ret,
                         tp_error *err)
{
    tp_chrome *c = tp_new(1, sizeof *c);
    c->r = r;
    c->fd = -1;
    c->pid = getpid();
    c->path = is_atomic ? real_path(path, err) : strdup(path);
    if (is_atomic && c->path) {
        tp_buf tmp = {0};
        tp_buf_addf(&tmp, "%s.tmp", c->path);
        c->tmp = tmp.data;
    }
    tp_status status = c->path ? open_file(c, err) : TP_ERR_OUTPUT;
    if (status != TP_OK) {
        free_chrome(c);
        return status;
    }
    add_head(c);
    *ret = c;
    return TP_OK;
}

tp_status tp_chrome_flush(tp_chrome *c, tp_error *err)
{
    if (!c->why)
        write_stream(c);
    tp_buf_clear(&c->out);
    if (c->why)
        return tp_fail(err, TP_ERR_OUTPUT, "cannot write the trace %s: %s", c->path,
                       strerror(c->why));
    return TP_OK;
}

static tp_status put_in_place(tp_chrome *c, tp_error *err)
{
    add_end(c, &c->out);
    write_out(c, true);
    if (!c->why && fsync(c->fd) != 0)
        c->why = errno;
    if (!c->why && rename(c->tmp, c->path) != 0)
        c->why = errno;
    if (c->why)
        return tp_fail(err, TP_ERR_OUTPUT, "cannot write the trace %s: %s", c->path,
                       strerror(c->why));
    free(c->tmp);
    c->tmp = NULL;
    return TP_OK;
}

tp_status tp_chrome_close(tp_chrome *c, tp_error *err)
{
    tp_status status = c->tmp ? put_in_place(c, err) : TP_OK;
    free_chrome(c);
    return status;
}

void tp_chrome_abandon(tp_chrome *c)
{
    close(c->fd);
    c->fd = -1;
    free_chrome(c);
}
