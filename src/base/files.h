/* files.h - reading, and writing so that a crash leaves the old or the new.
 *
 * The protocol for anything that must survive: write beside, sync the file,
 * rename over the old one, sync the folder.  output.h does it for one file;
 * tp_writer and tp_rename_synced() are its parts, for whole folders.  Messages name
 * the path, the reason and what helps. */
#ifndef TP_BASE_FILES_H
#define TP_BASE_FILES_H

#include "base/error.h"
#include "base/strings.h"
#include "temper/program.h"

/* How inputs are opened, all of them here.  Folders, devices and sockets are refused, and so is
 * what would be waited for without an end: */
typedef enum {
    TP_INPUT_FILE,  /* only a file: it is mapped, or read twice */
    TP_INPUT_TEXT,  /* or an unnamed pipe, as the shell's <(...) is one, or "-", standard input; a
                       FIFO is refused */
    TP_INPUT_STREAM /* or a FIFO, whose writer is waited for, or "-" */
} tp_input_kind;
/* ret_size: bytes of the file; -1 for a pipe. */
TP_CHECKED tp_status tp_input_open(const char *path, tp_input_kind kind, int *ret_fd,
                                   int64_t *ret_size, tp_error *err);

/* From now on this thread reads below one folder (as realpath() names it, and kept by the caller):
 * what a path or a link leads to outside of it is refused, and not there for tp_file_exists() and
 * tp_dir_exists().  NULL: everywhere.  Returns what held before. */
const char *tp_input_bound(const char *real_folder);
/* False: the path leads out of that folder. */
bool tp_input_is_inside(const char *path);

/* What messages call it: the path, or "standard input". */
const char *tp_input_name(const char *path, tp_input_kind kind);

/* The whole of it into `ret` (cleared first).  Larger than max_bytes is an error (0 = no limit);
 * sizes are checked before allocation. */
TP_CHECKED tp_status tp_input_read(const char *path, tp_input_kind kind, size_t max_bytes,
                                   tp_buf *ret, tp_error *err);
/* The same for TP_INPUT_TEXT. */
TP_CHECKED tp_status tp_file_read(const char *path, size_t max_bytes, tp_buf *ret, tp_error *err);

/* Replace a file of the program's own, as output.h says; one that was read before, too.  On
 * failure `path` is as it was; a crash may leave a hidden ".<name>.tmp-<process>" beside it. */
TP_CHECKED tp_status tp_file_write_atomic(const char *path, const void *data, size_t n,
                                          tp_error *err);

/* The same for what is written again every few seconds and read meanwhile: readers see the old or
 * the new, and nobody waits for the disk, so that a power failure may lose both. */
TP_CHECKED tp_status tp_file_refresh(const char *path, const void *data, size_t n, tp_error *err);

/* For whoever replaces a file by what was in it and more: from here to the close of the result
 * nobody else reads and replaces a file of this folder so.  Waits for its turn; -1, which needs no
 * close, where locks do not work. */
int tp_file_turn(const char *path);

/* A folder of this name may be made: no stream ("-") is meant. */
TP_CHECKED tp_status tp_dir_check_name(const char *path, tp_error *err);
/* Create the folder and its parents; existing is fine. */
TP_CHECKED tp_status tp_dir_make(const char *path, tp_error *err);

/* Where `name` lies in the user's cache folder: $XDG_CACHE_HOME/temper, else ~/.cache/temper, which
 * is made when `make` says so.  Fails without either: what a cache says is not taken from a folder
 * that others may write to. */
TP_CHECKED tp_status tp_cache_path(const char *name, bool make, char *out, size_t size,
                                   tp_error *err);
/* fsync of a folder, so that a rename in it survives power loss. */
TP_CHECKED tp_status tp_dir_sync(const char *path, tp_error *err);
/* Why no file can be made in a folder that is there: an errno, or 0. */
int tp_dir_refusal(const char *path);
/* Could tp_dir_make() make it, and files be written there?  Changes nothing. */
TP_CHECKED tp_status tp_dir_check(const char *path, tp_error *err);
/* Delete a folder and all in it; missing is fine.  Links are removed, never
 * followed; a path that is itself a link or a file is refused. */
TP_CHECKED tp_status tp_dir_remove(const char *path, tp_error *err);
/* A path as an argument, "%s/model" of a folder: tp_path_of(...).text lives as long as the call.
 * One that is longer than a path may be is "", which names no file. */
typedef struct {
    char text[4096];
} tp_file_path;
tp_file_path tp_path_of(const char *fmt, ...) TP_PRINTF(1, 2);

bool tp_file_exists(const char *path);
bool tp_files_are_same(const char *a, const char *b); /* there are both, by whatever names */
bool tp_dir_exists(const char *path);
int64_t tp_file_size(const char *path); /* -1 when it cannot be told */
/* How many names in a folder end so; the path of the first one, by the alphabet, is appended. */
int tp_dir_count(const char *path, const char *ending, tp_buf *ret_first);

/* Copy one file, synced.  Not atomic: `to` must be a name nobody reads yet. */
TP_CHECKED tp_status tp_file_copy(const char *from, const char *to, tp_error *err);

/* A read-only mapping of a whole file.  When another process makes it shorter, reading beyond the
 * new end raises SIGBUS; a program's handler can say which file it was. */
typedef struct {
    const char *data;
    size_t len;
} tp_map_file;
TP_CHECKED tp_status tp_map_open(tp_map_file *map, const char *path, tp_error *err);
void tp_map_close(tp_map_file *map); /* zeroed is a no-op */

/* A file being written in order: buffered, counted.
 * Everything that saves state goes through it, so tests can make the n-th
 * write, sync or rename fail (tp_fault_*). */
typedef struct tp_writer tp_writer;
TP_CHECKED tp_status tp_writer_open(tp_writer **ret, const char *path, tp_error *err);
TP_CHECKED tp_status tp_writer_write(tp_writer *w, const void *data, size_t n, tp_error *err);
/* A file that several write at once: one makes it as large as it will be, each opens it to write
 * in its places. */
TP_CHECKED tp_status tp_writer_extend(tp_writer *w, uint64_t bytes, tp_error *err);
TP_CHECKED tp_status tp_writer_open_inside(tp_writer **ret, const char *path, tp_error *err);
TP_CHECKED tp_status tp_writer_go_to(tp_writer *w, uint64_t at, tp_error *err);
/* Flush, fsync, close; ret_bytes may be NULL.  The writer is freed whatever happens. */
TP_CHECKED tp_status tp_writer_close(tp_writer *w, uint64_t *ret_bytes, tp_error *err);
/* The one or the other, by how writing went. */
TP_CHECKED tp_status tp_writer_end(tp_writer *w, tp_status status, tp_error *err);
void tp_writer_abandon(tp_writer *w); /* close without promise; NULL is a no-op */

TP_CHECKED tp_status tp_rename_synced(const char *from, const char *to, tp_error *err);
/* Each has the other's name afterwards, and there is always something of either; *ret_done false:
 * the file system cannot, and nothing was done. */
TP_CHECKED tp_status tp_exchange_synced(const char *a, const char *b, bool *ret_done,
                                        tp_error *err);

/* What helps where a model is not there. */
#define TP_MODEL_REMEDY \
    "models are not downloaded: 'hf download NAME --local-dir FOLDER' fetches one"

/* XXH3-128 as 32 hex digits and a NUL: of bytes, of what a state (an XXH3_state_t) has seen. */
void tp_hash_bytes(const void *data, size_t n, char ret[33]);
void tp_hash_digest(const void *state, char ret[33]);

/* The same of a file's contents. */
TP_CHECKED tp_status tp_file_hash(const char *path, char ret_hash[33], tp_error *err);
/* The same of a file that may take long: `progress` hears of the bytes so far, and false ends it
 * with TP_ERR_INTERRUPTED. */
TP_CHECKED tp_status tp_file_hash_slowly(const char *path,
                                         bool (*progress)(void *user, uint64_t done,
                                                          uint64_t total),
                                         void *user, char ret_hash[33], tp_error *err);

/* The same of a large file in pieces, by several at once: each piece has its own, and the file's is
 * that over the digits of all. */
enum { TP_FILE_PIECE = 64 << 20 };
size_t tp_file_pieces(uint64_t bytes); /* at least 1 */
TP_CHECKED tp_status tp_file_hash_piece(const char *path, size_t piece, char ret_hash[33],
                                        tp_error *err);
TP_CHECKED tp_status tp_file_join_hashes(const char (*pieces)[33], size_t n, char ret_hash[33],
                                         tp_error *err);

/* The same of what this thread writes, taken where it goes out: by all its writers, until the end.
 * Known is every piece that was written from its first byte to its last, in this order, by one
 * writer or by several behind each other. */
typedef struct tp_file_sums tp_file_sums;
tp_file_sums *tp_file_sums_begin(void);
void tp_file_sums_end(tp_file_sums *sums);
bool tp_file_sums_find(const tp_file_sums *sums, const char *path, uint64_t bytes, size_t piece,
                       char ret_hash[33]);

/* Fault injection for tests: the n-th state-changing call from now (open for
 * writing, write, sync, rename, mkdir, remove) fails with ENOSPC or EIO, a write
 * after half its bytes; n = 0 switches it off.  With `kill` the process exits on
 * the spot instead (status 99), as a crash would. */
void tp_fault_arm(uint64_t n, bool kill);
uint64_t tp_fault_count(void); /* calls seen since tp_fault_arm() */

#endif
