/* lines.h - a text file of any size, in waves that end where a line ends.
 *
 * Only the wave is in memory; it grows for a line that is longer, up to a limit.  The
 * bytes are hashed on the way, so that a file that changes between two readings is
 * noticed.  What is often taken for JSON lines (UTF-16, gzip, Parquet, one big array)
 * is refused by name; a byte order mark of UTF-8 is blanked. */
#ifndef TP_ENGINE_DATA_LINES_H
#define TP_ENGINE_DATA_LINES_H

#include "base/error.h"
#include "base/strings.h"

enum { TP_LONGEST_LINE = 64 << 20 }; /* bytes */

typedef struct {
    const char *path; /* must outlive the reader */
    int fd;
    uint64_t size, done; /* bytes of the file, and read so far */
    char *buffer;
    size_t cap, len;  /* bytes in the buffer */
    size_t wave;      /* of them, those in whole lines: what the caller may read */
    uint64_t line;    /* number of the wave's first line, from 1 */
    uint64_t n_lines; /* in the wave */
    size_t longest;   /* bytes of the wave's longest line */
    bool at_end;      /* this wave is the last */
    bool holds_rows;
    void *hash;
} tp_lines;

TP_CHECKED tp_status tp_lines_open(tp_lines *lines, const char *path, tp_error *err);
void tp_lines_close(tp_lines *lines); /* zeroed is a no-op */

/* A file of examples or questions: what beginners give instead is refused as well, a folder, plain
 * text, nothing at all. */
TP_CHECKED tp_status tp_rows_open(tp_lines *lines, const char *path, tp_error *err);
TP_CHECKED tp_status tp_rows_refuse_folder(const char *path, tp_error *err); /* OK: it is none */

/* The next wave replaces the one before; after the last one, do not call again. */
TP_CHECKED tp_status tp_lines_next(tp_lines *lines, tp_error *err);

/* XXH3-128 of what was read, as 32 hex digits. */
void tp_lines_hash(const tp_lines *lines, char ret_hash[33]);

/* The line at *text, without its newline; advances behind it.  *text < end. */
tp_slice tp_line_take(const char **text, const char *end);

/* Nothing but white space. */
bool tp_line_is_blank(tp_slice line);

#endif
