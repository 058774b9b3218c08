/* tail.c - windows over a file that may grow. */
#include "instrument/ingest/runs/tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/vec.h"

enum { WINDOW = 256 << 10 };

void tp_tail_init(tp_tail *t, const char *path)
{
    *t = (tp_tail){.path = tp_strdup(path), .fd = -1};
}

static tp_file_state state_of(const struct stat *st)
{
    return (tp_file_state){st->st_ino, (uint64_t)st->st_size, st->st_mtim.tv_sec,
                           st->st_mtim.tv_nsec};
}

/* The last bytes that were used up, as far as the window still has them. */
static void keep_last(tp_tail *t)
{
    size_t used = t->at ? (size_t)(t->at - t->window) : 0, n = TP_MIN(used, TP_TAIL_KEPT);
    if (!n)
        return;
    memcpy(t->last.bytes, t->at - n, n);
    t->last.n = n;
}

void tp_tail_pause(tp_tail *t)
{
    keep_last(t);
    t->resume = tp_tail_offset(t);
    if (t->fd >= 0)
        close(t->fd);
    free(t->window);
    t->fd = -1;
    t->window = NULL;
    t->at = t->end = NULL;
    t->cap = 0;
}

void tp_tail_release(tp_tail *t)
{
    if (t->path)
        tp_tail_pause(t);
    free(t->path);
    *t = (tp_tail){.fd = -1};
}

uint64_t tp_tail_offset(const tp_tail *t)
{
    return t->at ? t->end_offset - (uint64_t)(t->end - t->at) : t->resume;
}

void tp_tail_skip(tp_tail *t, uint64_t n)
{
    uint64_t here = t->at ? (uint64_t)(t->end - t->at) : 0;
    if (n <= here) {
        t->at += n;
        return;
    }
    t->last.n = 0; /* what lies in front was not read */
    t->at = t->end = t->window;
    if (t->at)
        t->end_offset += n - here;
    else
        t->resume += n;
}

static tp_status open_file(tp_tail *t, tp_error *err)
{
    struct stat st;
    int64_t size;
    TP_TRY(tp_input_open(t->path, TP_INPUT_FILE, &t->fd, &size, err));
    if (fstat(t->fd, &st) == 0) {
        t->device = st.st_dev;
        t->file = state_of(&st);
    }
    t->window = tp_vec_room(NULL, &t->cap, WINDOW, 1);
    t->at = t->end = t->window;
    t->end_offset = t->resume;
    return TP_OK;
}

/* The unused bytes to the front, behind the last that were used, and room for `need` of them. */
static void make_room(tp_tail *t, size_t need)
{
    size_t kept = TP_MIN((size_t)(t->at - t->window), TP_TAIL_KEPT),
           unused = (size_t)(t->end - t->at);
    memmove(t->window, t->at - kept, kept + unused);
    if (need + kept > t->cap)
        t->window = tp_vec_room(t->window, &t->cap, need + kept, 1);
    t->at = t->window + kept;
    t->end = t->at + unused;
}

/* Of what was just read: the first bytes of the file. */
static void keep_first(tp_tail *t, const char *read, size_t n)
{
    if (t->end_offset != t->first.n || t->first.n == TP_TAIL_KEPT)
        return;
    n = TP_MIN(n, TP_TAIL_KEPT - t->first.n);
    memcpy(t->first.bytes + t->first.n, read, n);
    t->first.n += n;
}

/* A piece that is larger than the window has to be in the file before memory is asked for. */
static bool file_has(const tp_tail *t, size_t need)
{
    struct stat st;
    uint64_t offset = tp_tail_offset(t);
    return fstat(t->fd, &st) == 0 && (uint64_t)st.st_size >= offset &&
           (uint64_t)st.st_size - offset >= need;
}

tp_status tp_tail_need(tp_tail *t, size_t need, bool *ret_has, tp_error *err)
{
    if (t->at && (size_t)(t->end - t->at) >= need) {
        *ret_has = true;
        return TP_OK;
    }
    *ret_has = false;
    if (t->fd < 0)
        TP_TRY(open_file(t, err));
    if (need > t->cap && !file_has(t, need))
        return TP_OK;
    make_room(t, need);
    while ((size_t)(t->end - t->at) < need) {
        size_t used = (size_t)(t->end - t->window);
        ssize_t n = pread(t->fd, t->window + used, t->cap - used, (off_t)t->end_offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tp_fail(err, TP_ERR_IO, "cannot read '%s': %s", t->path, strerror(errno));
        if (n == 0)
            return TP_OK;
        keep_first(t, t->end, (size_t)n);
        t->end += n;
        t->end_offset += (uint64_t)n;
    }
    *ret_has = true;
    return TP_OK;
}

tp_status tp_tail_line(tp_tail *t, tp_slice *ret, bool *ret_has, bool *ret_ended, tp_error *err)
{
    size_t looked = 0;
    for (;;) {
        size_t here = t->at ? (size_t)(t->end - t->at) : 0;
        const char *newline = here > looked ? memchr(t->at + looked, '\n', here - looked) : NULL;
        bool more;
        if (newline) {
            *ret = (tp_slice){t->at, (size_t)(newline - t->at)};
            t->at = newline + 1;
            *ret_has = *ret_ended = true;
            return TP_OK;
        }
        looked = here;
        TP_TRY(tp_tail_need(t, here + 1, &more, err));
        if (!more) {
            *ret = (tp_slice){t->at, here};
            *ret_has = here > 0;
            *ret_ended = false;
            return TP_OK;
        }
    }
}

static bool is_at(int fd, uint64_t offset, const tp_tail_piece *piece, size_t n)
{
    char now[TP_TAIL_KEPT];
    return pread(fd, now, n, (off_t)offset) == (ssize_t)n && memcmp(now, piece->bytes, n) == 0;
}

/* Bytes that were read and not used up may have been half written. */
static bool is_written_anew(const tp_tail *t)
{
    int fd;
    int64_t size;
    if (tp_input_open(t->path, TP_INPUT_FILE, &fd, &size, NULL) != TP_OK)
        return true; /* reading it says what is wrong */
    bool is_same = is_at(fd, 0, &t->first, (size_t)TP_MIN(t->first.n, t->resume)) &&
                   is_at(fd, t->resume - t->last.n, &t->last, t->last.n);
    close(fd);
    return !is_same;
}

bool tp_tail_was_replaced(tp_tail *t)
{
    struct stat st;
    if (!t->file.inode)
        return false;
    if (stat(t->path, &st) != 0 || st.st_dev != t->device || st.st_ino != t->file.inode ||
        (uint64_t)st.st_size < t->resume)
        return true;
    const tp_file_state now = state_of(&st);
    if (memcmp(&now, &t->file, sizeof now) == 0)
        return false;
    t->file = now;
    return is_written_anew(t);
}

bool tp_file_changed(const char *path, tp_file_state *state, bool *ret_again)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return true; /* reading it says what is wrong */
    const tp_file_state now = state_of(&st);
    if (memcmp(&now, state, sizeof now) == 0)
        return false;
    *ret_again = state->inode != 0;
    *state = now;
    return true;
}
