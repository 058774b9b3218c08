/* files_internal.h - what the files behind files.h and output.h share. */
#ifndef TP_BASE_FILES_INTERNAL_H
#define TP_BASE_FILES_INTERNAL_H

#include <sys/stat.h>

#include "base/files.h"

/* What helps against an errno: "; check the path", or "". */
const char *tp_files_remedy(int error);
/* "cannot <verb> <path>: <strerror>" and what helps: TP_ERR_OUTPUT. */
tp_status tp_files_fail_output(tp_error *err, const char *verb, const char *path, int error);

/* A writer on a descriptor that is open; it is closed with the writer, on failure too. */
TP_CHECKED tp_status tp_writer_take(tp_writer **ret, int fd, const char *path, tp_error *err);

/* Closing hands the bytes to the system and does not wait for the disk. */
void tp_writer_skip_sync(tp_writer *w);
TP_CHECKED tp_status tp_rename_unsynced(const char *from, const char *to, tp_error *err);

/* What this process has read and written, once tp_outputs_watch() was called. */
typedef enum { TP_FILE_UNKNOWN, TP_FILE_READ, TP_FILE_WRITTEN } tp_file_use;
void tp_files_note(const struct stat *st, tp_file_use use);
tp_file_use tp_files_noted(const struct stat *st);

/* To be asked before every state-changing call: true when the test wants it to
 * fail, with errno set to `error`. */
bool tp_files_fault(int error);

/* Hands `bytes` of the file from `at` on, or what there is, to `take` chunk by chunk. */
typedef tp_status (*tp_files_take_chunk)(void *context, const char *data, size_t n, tp_error *err);
TP_CHECKED tp_status tp_files_each_chunk(const char *path, uint64_t at, uint64_t bytes,
                                         tp_files_take_chunk take, void *context, tp_error *err);

/* For tp_file_sums: nothing is known of what a file holds; that is what lies in it from `at` on. */
void tp_files_replaced(const char *path);
void tp_files_written(const char *path, uint64_t at, const char *data, size_t n);

#endif
