/* files.h - reading, and writing so that a crash leaves the old or the new.
 *
 * The protocol for anything that must survive: write beside, sync the file,
 * rename over the old one, sync the folder.  tp_file_write_atomic() does it for
 * one small file; tp_writer and tp_rename_synced() are its parts, for large files
 * and for whole folders.  Messages name the path, the reason and what helps. */
#ifndef TP_BASE_FILES_H
#define TP_BASE_FILES_H

#include "base/error.h"
#include "base/strings.h"

/* The whole file into `ret` (cleared first).  Larger than max_bytes is an error
 * (0 = no limit); sizes are checked before allocation. */
TP_CHECKED tp_status tp_file_read(const char *path, size_t max_bytes, tp_buf *ret, tp_error *err);

/* Write to "<path>.tmp", sync, rename over `path`, sync the folder.  On failure
 * `path` is as it was and the .tmp is gone; a crash may leave the .tmp, which the
 * next write replaces. */
TP_CHECKED tp_status tp_file_write_atomic(const char *path, const void *data, size_t n,
                                          tp_error *err);

/* Create the folder and its parents; existing is fine. */
TP_CHECKED tp_status tp_dir_make(const char *path, tp_error *err);
/* fsync of a folder, so that a rename in it survives power loss. */
TP_CHECKED tp_status tp_dir_sync(const char *path, tp_error *err);
/* Could tp_dir_make() make it, and files be written there?  Changes nothing. */
TP_CHECKED tp_status tp_dir_check(const char *path, tp_error *err);
/* Delete a folder and all in it; missing is fine.  Links are removed, never
 * followed; a path that is itself a link or a file is refused. */
TP_CHECKED tp_status tp_dir_remove(const char *path, tp_error *err);
bool tp_file_exists(const char *path);
bool tp_dir_exists(const char *path);
int64_t tp_file_size(const char *path); /* -1 when it cannot be told */

/* Copy one file, synced.  Not atomic: `to` must be a name nobody reads yet. */
TP_CHECKED tp_status tp_file_copy(const char *from, const char *to, tp_error *err);

/* A read-only mapping of a whole file.  Another process truncating it under us
 * would raise SIGBUS: callers that read untrusted folders check sizes first. */
typedef struct {
    const char *data;
    size_t len;
} tp_map_file;
TP_CHECKED tp_status tp_map_open(tp_map_file *map, const char *path, tp_error *err);
void tp_map_close(tp_map_file *map); /* zeroed is a no-op */

/* A file being written in order: buffered, checksummed (XXH3-128), counted.
 * Everything that saves state goes through it, so tests can make the n-th
 * write, sync or rename fail (tp_fault_*). */
typedef struct tp_writer tp_writer;
TP_CHECKED tp_status tp_writer_open(tp_writer **ret, const char *path, tp_error *err);
TP_CHECKED tp_status tp_writer_write(tp_writer *w, const void *data, size_t n, tp_error *err);
/* Flush, fsync, close; ret_hash (33 bytes, hex) and ret_bytes may be NULL.  The
 * writer is freed whatever happens. */
TP_CHECKED tp_status tp_writer_close(tp_writer *w, char *ret_hash, uint64_t *ret_bytes,
                                     tp_error *err);
void tp_writer_abandon(tp_writer *w); /* close without promise; NULL is a no-op */

TP_CHECKED tp_status tp_rename_synced(const char *from, const char *to, tp_error *err);

/* XXH3-128 of a file's contents, as 32 hex digits. */
TP_CHECKED tp_status tp_file_hash(const char *path, char ret_hash[33], tp_error *err);

/* Fault injection for tests: the n-th state-changing call from now (open for
 * writing, write, sync, rename, mkdir, remove) fails with ENOSPC or EIO, a write
 * after half its bytes; n = 0 switches it off.  With `kill` the process exits on
 * the spot instead (status 99), as a crash would. */
void tp_fault_arm(uint64_t n, bool kill);
uint64_t tp_fault_count(void); /* calls seen since tp_fault_arm() */

#endif
