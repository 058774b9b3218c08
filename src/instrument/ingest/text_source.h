/* text_source.h - the text of a file, in windows.
 *
 * Plain or gzip (several members too), from a file or from memory.  A second thread reads
 * and inflates ahead.  A window is followed by TP_SCAN_PAD zero bytes; what the caller has
 * not used up is at the front of the next one:
 *
 *     tp_source_next(s, s->begin)             the first window
 *     ... uses text up to p ...
 *     tp_source_next(s, p)                    s->begin is p's byte, now with more behind it
 *
 * Windows are about a megabyte; a piece that does not fit makes them grow. */
#ifndef TP_INSTRUMENT_INGEST_TEXT_SOURCE_H
#define TP_INSTRUMENT_INGEST_TEXT_SOURCE_H

#include "base/error.h"
#include "instrument/ingest/ingest.h"

typedef struct tp_source_reader tp_source_reader;

typedef struct {
    const char *begin, *end; /* the window */
    bool is_final;           /* nothing follows it */
    uint64_t begin_offset;   /* of the window in the text */
    tp_source_reader *reader;
} tp_source;

/* Exactly one of `path` and `bytes`. */
TP_CHECKED tp_status tp_source_open(tp_source *s, const char *path, const void *bytes, size_t n,
                                    const tp_ingest_options *options, tp_error *err);
/* The next window, beginning with the bytes from `keep` on.  Fails when reading does, when
 * progress says stop, or when a piece is larger than 1 GB. */
TP_CHECKED tp_status tp_source_next(tp_source *s, const char *keep, tp_error *err);
/* Everything from the current window's beginning to the end of the text, into `ret`
 * (cleared first); no window is left.  Fails when it is more than 1 GiB that no plain file
 * holds, or a plain file larger than a quarter of the memory there is. */
TP_CHECKED tp_status tp_source_read_all(tp_source *s, tp_buf *ret, tp_error *err);
void tp_source_close(tp_source *s); /* zeroed is a no-op */

/* About how much text there is, before it was read; 0: unknown. */
uint64_t tp_source_expected_bytes(const tp_source *s);

/* After the last window. */
bool tp_source_is_file(const tp_source *s); /* it can be opened again: no pipe, no memory */
bool tp_source_is_gzip(const tp_source *s);
bool tp_source_is_truncated(const tp_source *s); /* the gzip stream has no end */
/* What was wrong with the gzip stream, or NULL. */
const char *tp_source_damage(const tp_source *s);
/* The failure of a text without anything in it. */
tp_status tp_source_fail_empty(const tp_source *s, tp_error *err);
uint64_t tp_source_bytes(const tp_source *s); /* of the file, as read so far */
uint64_t tp_source_text_bytes(const tp_source *s);

#endif
