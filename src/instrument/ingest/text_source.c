/* Buffers go round between two queues: the producer fills free ones, the consumer gives
 * back the one before the last.  In front of each buffer's data is room for what the
 * consumer has left over from the one before; more than that moves into a block of its
 * own, which doubles, so that a huge element costs linear time. */
#include "instrument/ingest/text_source.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/limits.h"
#include "base/threads.h"
#include "instrument/ingest/event_scan.h"

enum {
    HEAD = 64 << 10, /* room for what is left over */
    WINDOW = 1 << 20,
    INPUT = 256 << 10,
    N_BUFFERS = 3,
    MAX_PIECE = 1 << 30
};

typedef struct {
    char *block; /* HEAD, the window, TP_SCAN_PAD */
    size_t len;
    bool is_last;
    tp_status status;
    tp_error error;
    uint64_t file_bytes; /* read so far */
} buffer;

struct tp_source_reader {
    /* the producer's */
    int fd; /* -1: from memory */
    const uint8_t *memory;
    size_t memory_left;
    bool is_file;    /* not a pipe */
    uint8_t head[2]; /* read to see what it is, and still to be handed out */
    size_t n_head, head_at;
    uint64_t file_bytes, max_bytes, produced;
    uint32_t window; /* bytes */
    bool is_gzip, input_ended;
    bool inside_member; /* of gzip: begun and not ended */
    struct inflate_state *inflate;
    struct isal_gzip_header header;
    uint8_t *input;
    const char *damage;
    bool truncated;
    const char *path;

    buffer buffers[N_BUFFERS];
    tp_queue *free_buffers, *full_buffers;
    pthread_t thread;
    bool has_thread;

    /* the consumer's */
    buffer *current;
    char *joined; /* a block of its own, or NULL */
    size_t joined_cap;
    uint64_t text_bytes, seen_bytes, total;
    bool (*progress)(void *, uint64_t, uint64_t);
    void *context;
    int next_buffer; /* without a thread */
};

/* --- producer --- */

static tp_status read_raw(tp_source_reader *r, void *to, size_t room, size_t *ret, tp_error *err)
{
    if (r->fd < 0) {
        *ret = r->memory_left < room ? r->memory_left : room;
        if (*ret)
            memcpy(to, r->memory, *ret);
        r->memory += *ret;
        r->memory_left -= *ret;
    } else {
        ssize_t n;
        do
            n = read(r->fd, to, room);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return tp_fail(err, TP_ERR_IO, "cannot read '%s': %s", r->path, strerror(errno));
        *ret = (size_t)n;
    }
    return TP_OK;
}

/* More compressed (or plain) bytes into `to`; 0 at the end. */
static tp_status read_some(tp_source_reader *r, void *to, size_t room, size_t *ret, tp_error *err)
{
    if (r->head_at < r->n_head && room) {
        size_t left = r->n_head - r->head_at;
        *ret = left < room ? left : room;
        memcpy(to, r->head + r->head_at, *ret);
        r->head_at += *ret;
    } else {
        TP_TRY(read_raw(r, to, room, ret, err));
    }
    r->file_bytes += *ret;
    return TP_OK;
}

static tp_status refill_input(tp_source_reader *r, tp_error *err)
{
    size_t n, kept = r->inflate->avail_in;
    memmove(r->input, r->inflate->next_in, kept);
    TP_TRY(read_some(r, r->input + kept, INPUT - kept, &n, err));
    r->inflate->next_in = r->input;
    r->inflate->avail_in = (uint32_t)(kept + n);
    r->input_ended = n == 0;
    return TP_OK;
}

/* Behind a member: another one, or the end.  Zero bytes may fill up a block. */
static bool next_member(tp_source_reader *r)
{
    struct inflate_state *s = r->inflate;
    uint8_t *at = s->next_in;
    uint32_t left = s->avail_in;
    while (left && *at == 0) {
        at++;
        left--;
    }
    if (left >= 2 && at[0] == 0x1f && at[1] == 0x8b) {
        isal_inflate_reset(s);
        isal_gzip_header_init(&r->header);
        s->crc_flag = ISAL_GZIP;
        s->next_in = at;
        s->avail_in = left;
        r->inside_member = true;
        return true;
    }
    if (left)
        r->damage = "bytes behind its end were ignored";
    return false;
}

/* Headers are read here: isal_inflate() forgets between two calls what a header has (its checksum,
 * a name), and few come in one piece. */
static int inflate_some(tp_source_reader *r)
{
    struct inflate_state *s = r->inflate;
    int result = s->wrapper_flag ? ISAL_DECOMP_OK : isal_read_gzip_header(s, &r->header);
    return result == ISAL_DECOMP_OK ? isal_inflate(s) : result;
}

static tp_status inflate_into(tp_source_reader *r, buffer *b, tp_error *err)
{
    struct inflate_state *s = r->inflate;
    s->next_out = (uint8_t *)b->block + HEAD;
    s->avail_out = r->window;
    while (s->avail_out && !b->is_last) {
        if (s->avail_in < 64 && !r->input_ended)
            TP_TRY(refill_input(r, err));
        if (!r->inside_member) {
            b->is_last = !next_member(r);
            continue;
        }
        uint32_t in_before = s->avail_in, out_before = s->avail_out;
        int result = inflate_some(r);
        if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT && result != ISAL_OUT_OVERFLOW) {
            bool is_sum = result == ISAL_INCORRECT_CHECKSUM;
            r->damage = is_sum ? "its checksum does not match" : "its compressed data is damaged";
            r->truncated = !is_sum;
            b->is_last = true;
        } else if (s->block_state == ISAL_BLOCK_FINISH) {
            r->inside_member = false;
        } else if (s->avail_in == in_before && s->avail_out == out_before &&
                   (r->input_ended || in_before >= 64)) {
            r->truncated = true;
            b->is_last = true;
        }
    }
    b->len = r->window - s->avail_out;
    return TP_OK;
}

static tp_status copy_into(tp_source_reader *r, buffer *b, tp_error *err)
{
    while (b->len < r->window && !b->is_last) {
        size_t n;
        TP_TRY(read_some(r, b->block + HEAD + b->len, r->window - b->len, &n, err));
        b->len += n;
        b->is_last = n == 0;
    }
    return TP_OK;
}

static void fill(tp_source_reader *r, buffer *b)
{
    b->len = 0;
    b->is_last = false;
    b->status = r->is_gzip ? inflate_into(r, b, &b->error) : copy_into(r, b, &b->error);
    r->produced += b->len;
    if (b->status == TP_OK && r->max_bytes && r->produced > r->max_bytes)
        b->status = tp_fail(&b->error, TP_ERR_FORMAT, "'%s' holds more than %llu bytes of text",
                            r->path, (unsigned long long)r->max_bytes);
    b->is_last |= b->status != TP_OK;
    memset(b->block + HEAD + b->len, 0, TP_SCAN_PAD);
    b->file_bytes = r->file_bytes;
}

static void *produce(void *argument)
{
    tp_source_reader *r = argument;
    void *item;
    bool last = false;
    while (!last && tp_queue_pop(r->free_buffers, &item)) {
        buffer *b = item;
        fill(r, b);
        last = b->is_last;
        if (!tp_queue_push(r->full_buffers, b))
            break;
    }
    return NULL;
}

/* --- opening --- */

/* The first bytes, which tell gzip; they stay to be read. */
static tp_status peek(tp_source_reader *r, tp_error *err)
{
    while (r->n_head < sizeof r->head) {
        size_t n;
        TP_TRY(read_raw(r, r->head + r->n_head, sizeof r->head - r->n_head, &n, err));
        if (n == 0)
            break;
        r->n_head += n;
    }
    r->is_gzip = r->n_head == sizeof r->head && r->head[0] == 0x1f && r->head[1] == 0x8b;
    return TP_OK;
}

static tp_status open_file(tp_source_reader *r, const char *path, tp_error *err)
{
    int64_t size;
    TP_TRY(tp_input_open(path, TP_INPUT_STREAM, &r->fd, &size, err));
    r->is_file = size >= 0 && strcmp(path, "-") != 0;
    r->total = size > 0 ? (uint64_t)size : 0;
    return TP_OK;
}

static tp_status start(tp_source_reader *r, bool threaded, tp_error *err)
{
    for (int i = 0; i < N_BUFFERS; i++) {
        r->buffers[i].block = malloc(HEAD + (size_t)r->window + TP_SCAN_PAD);
        if (!r->buffers[i].block)
            return tp_fail(err, TP_ERR_NOMEM, "no memory for reading '%s'", r->path);
    }
    if (r->is_gzip) {
        r->inflate = malloc(sizeof *r->inflate);
        r->input = malloc(INPUT);
        if (!r->inflate || !r->input)
            return tp_fail(err, TP_ERR_NOMEM, "no memory for inflating '%s'", r->path);
        isal_inflate_init(r->inflate);
        isal_gzip_header_init(&r->header);
        r->inflate->crc_flag = ISAL_GZIP;
        r->inflate->next_in = r->input;
        r->inside_member = true;
    }
    if (!threaded)
        return TP_OK;
    TP_TRY(tp_queue_create(&r->free_buffers, N_BUFFERS, err));
    TP_TRY(tp_queue_create(&r->full_buffers, N_BUFFERS, err));
    for (int i = 0; i < N_BUFFERS; i++)
        if (!tp_queue_push(r->free_buffers, &r->buffers[i]))
            return tp_fail(err, TP_ERR_ARG, "a queue was closed");
    if (pthread_create(&r->thread, NULL, produce, r) != 0)
        return tp_fail(err, TP_ERR_IO, "cannot start a thread for reading '%s'", r->path);
    r->has_thread = true;
    return TP_OK;
}

tp_status tp_source_open(tp_source *s, const char *path, const void *bytes, size_t n,
                         const tp_ingest_options *options, tp_error *err)
{
    *s = (tp_source){0};
    tp_source_reader *r = s->reader = calloc(1, sizeof *r);
    if (!r)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for reading '%s'", path);
    *r = (tp_source_reader){.fd = -1,
                            .memory = bytes,
                            .memory_left = n,
                            .total = n,
                            .path = tp_input_name(path, TP_INPUT_STREAM),
                            .max_bytes = options->max_bytes,
                            .window = options->window ? options->window : WINDOW,
                            .progress = options->progress,
                            .context = options->context};
    tp_status status = bytes ? TP_OK : open_file(r, path, err);
    if (status == TP_OK)
        status = peek(r, err);
    if (status != TP_OK) {
        tp_source_close(s);
        return status;
    }
    if (!r->is_gzip && r->total && r->total < r->window) /* no more than the file can fill */
        r->window = (uint32_t)r->total;
    bool worth_a_thread = r->total > (r->is_gzip ? WINDOW / 4 : 2 * WINDOW);
    status = start(r, worth_a_thread && !options->one_thread, err);
    if (status != TP_OK)
        tp_source_close(s);
    return status;
}

void tp_source_close(tp_source *s)
{
    TP_FREED tp_source_reader *r = s->reader;
    if (!r)
        return;
    if (r->free_buffers)
        tp_queue_close(r->free_buffers);
    if (r->full_buffers)
        tp_queue_close(r->full_buffers);
    if (r->has_thread)
        pthread_join(r->thread, NULL);
    tp_queue_free(r->free_buffers);
    tp_queue_free(r->full_buffers);
    for (int i = 0; i < N_BUFFERS; i++)
        free(r->buffers[i].block);
    free(r->joined);
    free(r->inflate);
    free(r->input);
    if (r->fd >= 0)
        close(r->fd);
    *s = (tp_source){0};
}

/* --- consumer --- */

static tp_status take_buffer(tp_source_reader *r, buffer **ret, tp_error *err)
{
    void *item;
    buffer *b;
    if (r->has_thread) {
        if (!tp_queue_pop(r->full_buffers, &item))
            return tp_fail(err, TP_ERR_IO, "reading '%s' was stopped", r->path);
        b = item;
    } else {
        b = &r->buffers[r->next_buffer];
        r->next_buffer = (r->next_buffer + 1) % N_BUFFERS;
        fill(r, b);
    }
    r->seen_bytes = b->file_bytes;
    r->text_bytes += b->len;
    if (b->status != TP_OK) {
        if (err)
            *err = b->error;
        return b->status;
    }
    if (r->progress && !r->progress(r->context, r->seen_bytes, r->total))
        return tp_fail(err, TP_ERR_IO, "reading '%s' was interrupted", r->path);
    *ret = b;
    return TP_OK;
}

static void give_back(tp_source_reader *r, buffer *b)
{
    if (b && r->has_thread && !tp_queue_push(r->free_buffers, b))
        return; /* closing down */
}

static tp_status too_large(const tp_source *s, tp_error *err)
{
    return tp_fail(err, TP_ERR_FORMAT,
                   "'%s': an element of more than 1 GB at byte %llu; is this a trace?",
                   s->reader->path, (unsigned long long)s->begin_offset);
}

/* Room for `len` bytes in the block of its own.  It grows by half and never beyond what the
 * largest element needs; large blocks grow in place, so no second copy is resident. */
static tp_status make_joined_room(tp_source_reader *r, size_t len, tp_error *err)
{
    size_t most = (size_t)MAX_PIECE + r->window;
    if (r->joined && len <= r->joined_cap)
        return TP_OK;
    size_t cap = len + len / 2 < most ? len + len / 2 : most;
    cap = cap < len ? len : cap;
    char *block = realloc(r->joined, cap + TP_SCAN_PAD);
    if (!block)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for an element of %zu bytes", len);
    r->joined = block;
    r->joined_cap = cap;
    return TP_OK;
}

/* The kept bytes and as much again, in the block of its own. */
static tp_status join(tp_source *s, const char *keep, size_t kept, tp_error *err)
{
    tp_source_reader *r = s->reader;
    size_t len = kept, target = kept * 2 < MAX_PIECE ? kept * 2 : MAX_PIECE;
    if (kept >= MAX_PIECE)
        return too_large(s, err);
    if (r->joined && keep >= r->joined && keep <= r->joined + r->joined_cap) {
        memmove(r->joined, keep, kept);
    } else {
        TP_TRY(make_joined_room(r, kept + r->window, err));
        memcpy(r->joined, keep, kept);
    }
    give_back(r, r->current);
    r->current = NULL;
    while (len < target && !s->is_final) {
        buffer *b;
        TP_TRY(take_buffer(r, &b, err));
        TP_TRY(make_joined_room(r, len + b->len, err));
        memcpy(r->joined + len, b->block + HEAD, b->len);
        len += b->len;
        s->is_final = b->is_last;
        give_back(r, b);
    }
    memset(r->joined + len, 0, TP_SCAN_PAD);
    s->begin = r->joined;
    s->end = r->joined + len;
    return TP_OK;
}

tp_status tp_source_next(tp_source *s, const char *keep, tp_error *err)
{
    tp_source_reader *r = s->reader;
    size_t kept = (size_t)(s->end - keep);
    TP_ASSERT(!s->is_final);
    s->begin_offset += (uint64_t)(keep - s->begin);
    if (kept > HEAD)
        return join(s, keep, kept, err);
    buffer *b;
    TP_TRY(take_buffer(r, &b, err));
    char *begin = b->block + HEAD - kept;
    if (kept)
        memcpy(begin, keep, kept);
    give_back(r, r->current);
    free(r->joined);
    r->joined = NULL;
    r->joined_cap = 0;
    r->current = b;
    s->begin = begin;
    s->end = b->block + HEAD + b->len;
    s->is_final = b->is_last;
    return TP_OK;
}

/* The most that is read as a whole.  A large file may take memory; what unpacks to a thousand
 * times its size, or never ends, may not. */
static tp_status check_whole(const tp_source *s, size_t n, tp_error *err)
{
    const tp_source_reader *r = s->reader;
    bool is_plain = !r->is_gzip && (r->is_file || r->fd < 0);
    if (n <= MAX_PIECE)
        return TP_OK;
    if (!is_plain)
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' gives more than 1 GiB, and what it holds is read as a whole; %s first",
                       r->path, r->is_gzip ? "unpack it" : "save it as a file");
    tp_limits memory;
    tp_limits_memory(&memory);
    const tp_limit *least = tp_limits_least(&memory);
    uint64_t size = r->total > n ? r->total : n;
    if ((double)size <= least->value / 4)
        return TP_OK;
    return tp_fail(err, TP_ERR_FORMAT,
                   "'%s' holds %.1f GiB, and is read as a whole; at most a quarter of the memory "
                   "there is goes into it (%.1f GiB, %s)",
                   r->path, (double)size / 0x1p30, least->value / 0x1p30, least->source);
}

tp_status tp_source_read_all(tp_source *s, tp_buf *ret, tp_error *err)
{
    tp_buf_clear(ret);
    for (;;) {
        TP_TRY(check_whole(s, ret->len + (size_t)(s->end - s->begin), err));
        tp_buf_add(ret, s->begin, (size_t)(s->end - s->begin));
        if (s->is_final)
            return TP_OK;
        TP_TRY(tp_source_next(s, s->end, err));
    }
}

uint64_t tp_source_expected_bytes(const tp_source *s)
{
    enum { RATIO = 12 }; /* of compressed traces: 10 to 18 */
    const tp_source_reader *r = s->reader;
    return r->is_gzip ? r->total * RATIO : r->total;
}

tp_status tp_source_fail_empty(const tp_source *s, tp_error *err)
{
    const tp_source_reader *r = s->reader;
    if (r->damage)
        return tp_fail(err, TP_ERR_FORMAT,
                       "the gzip stream of '%s': %s, before anything could be read", r->path,
                       r->damage);
    if (r->truncated)
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' ends inside its gzip stream, before anything could be read", r->path);
    return tp_fail(err, TP_ERR_FORMAT, "'%s' is empty", r->path);
}

bool tp_source_is_file(const tp_source *s) { return s->reader->is_file; }
bool tp_source_is_gzip(const tp_source *s) { return s->reader->is_gzip; }
bool tp_source_is_truncated(const tp_source *s) { return s->reader->truncated; }
const char *tp_source_damage(const tp_source *s) { return s->reader->damage; }
uint64_t tp_source_bytes(const tp_source *s) { return s->reader->seen_bytes; }
uint64_t tp_source_text_bytes(const tp_source *s) { return s->reader->text_bytes; }
