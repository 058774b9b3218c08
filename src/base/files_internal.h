/* files_internal.h - what the two halves of files.h share. */
#ifndef TP_BASE_FILES_INTERNAL_H
#define TP_BASE_FILES_INTERNAL_H

#include "base/files.h"

/* "cannot <verb> <path>: <strerror>" and, where one is known, what helps. */
tp_status tp_files_fail(tp_error *err, const char *verb, const char *path, int error);

/* To be asked before every state-changing call: true when the test wants it to
 * fail, with errno set to `error`. */
bool tp_files_fault(int error);

/* The digest of an XXH3 state (an XXH3_state_t) as 32 hex digits and a NUL. */
void tp_files_hash_text(const void *state, char ret_hash[33]);

#endif
