/* tail.h - a file that is read to its end, and on from there when it has grown.
 *
 *     tp_tail_begin(&t, path, err);
 *     while (tp_tail_need(&t, 12, &has, err) == TP_OK && has)
 *         ... t.at has 12 bytes or more, up to t.end; t.at += what was used ...
 *     tp_tail_pause(&t);                closes the file; t.offset says where t.at lies in it
 *
 * What was not used up is read again later.  Memory: a window of 256 KiB, more for a single
 * piece that is larger, never more than the file has. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_TAIL_H
#define TP_INSTRUMENT_INGEST_RUNS_TAIL_H

#include "base/strings.h"

enum { TP_TAIL_KEPT = 256 };

/* Bytes of the file as they were when they were used up. */
typedef struct {
    char bytes[TP_TAIL_KEPT];
    size_t n;
} tp_tail_piece;

typedef struct {
    uint64_t inode, size;
    int64_t seconds, nanoseconds;
} tp_file_state;

typedef struct {
    char *path;
    int fd; /* -1: closed */
    char *window;
    size_t cap;
    const char *at, *end; /* of what was read and not used up */
    uint64_t end_offset;  /* of `end` in the file */
    uint64_t resume;      /* where to read on after a pause */
    uint64_t device;      /* what the path led to */
    tp_file_state file;   /* the same, as of the last look; its inode 0: not opened yet */
    tp_tail_piece first;  /* at the beginning of the file */
    tp_tail_piece last;   /* in front of `resume` */
} tp_tail;

/* Zeroed is closed.  `path` is copied.  Opened when it is needed. */
void tp_tail_init(tp_tail *t, const char *path);
void tp_tail_release(tp_tail *t);

/* At least `need` bytes from t->at on, or *ret_has false and as many as there are. */
TP_CHECKED tp_status tp_tail_need(tp_tail *t, size_t need, bool *ret_has, tp_error *err);
/* The next line without its newline, t->at behind it.  At the end of the file a line without one
 * is returned with *ret_ended false, and t->at stays at its beginning. */
TP_CHECKED tp_status tp_tail_line(tp_tail *t, tp_slice *ret, bool *ret_has, bool *ret_ended,
                                  tp_error *err);
/* Go `n` bytes on, in the window or beyond it. */
void tp_tail_skip(tp_tail *t, uint64_t n);
/* Where t->at lies in the file. */
uint64_t tp_tail_offset(const tp_tail *t);
/* Give back the file and the window. */
void tp_tail_pause(tp_tail *t);
/* The path leads to another file now, it is shorter than what was read of it, or it was written
 * anew in its place: its first bytes, or those before the end of what was read, are others.  After
 * a pause. */
bool tp_tail_was_replaced(tp_tail *t);

/* A file that is written anew as a whole: has it changed since the last call with this state?
 * *ret_again when it had been there before. */
bool tp_file_changed(const char *path, tp_file_state *state, bool *ret_again);

#endif
