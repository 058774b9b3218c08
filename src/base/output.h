/* output.h - the one place where a file that may exist already is written.
 *
 * It asks what is there before it writes:
 *     nothing, or a file   written beside, synced, renamed over it; mode and owner stay
 *     a symbolic link      the same for what the link leads to; the link stays
 *     a pipe, a device     opened and written in place
 *     "-", /dev/stdout     the stream, in place
 *     a folder, a disk, a file without permission to write: an error
 * A crash leaves the old file or the new one.
 *
 * A file that a user names for a result is refused when this command has read it, or
 * written another result to it: by whatever name, link or hard link. */
#ifndef TP_BASE_OUTPUT_H
#define TP_BASE_OUTPUT_H

#include "base/error.h"
#include "temper/program.h"

typedef struct tp_output tp_output;

TP_CHECKED tp_status tp_output_open(tp_output **ret, const char *path, tp_error *err);
TP_CHECKED tp_status tp_output_write(tp_output *o, const void *data, size_t n, tp_error *err);
/* The file is there once this is TP_OK.  ret_bytes may be NULL.  Freed whatever happens. */
TP_CHECKED tp_status tp_output_close(tp_output *o, uint64_t *ret_bytes, tp_error *err);
void tp_output_abandon(tp_output *o); /* leave everything as it was; NULL is a no-op */

/* All of it at once. */
TP_CHECKED tp_status tp_output_put(const char *path, const void *data, size_t n, tp_error *err);

/* Whether tp_output_open() would refuse: for the time before long work.  Creates nothing;
 * NULL as path is fine. */
TP_CHECKED tp_status tp_output_check(const char *path, tp_error *err);

/* Remove what writers that were killed left in a folder: ".<name>.tmp-<process>" of processes
 * that are gone. */
void tp_outputs_clean(const char *folder);

/* `path` is read by other means than files.h. */
void tp_output_note_input(const char *path);

#endif
