/* sized.h - structs of callers that were compiled against another version of a header.
 *
 * Public structs that a caller fills begin with `size_t size`.  New members go to the end
 * (behind its padding, which may hold anything) and mean nothing when zero, so an older caller's
 * struct is completed with zeros, and a newer caller's is taken as long as what this version does
 * not know is zero. */
#ifndef TP_BASE_SIZED_H
#define TP_BASE_SIZED_H

#include "base/error.h"

/* *own (own_size bytes) becomes the caller's struct; NULL is all zeros.  `what` is the
 * struct's name, for errors. */
TP_CHECKED tp_status tp_sized_read(void *own, size_t own_size, const void *theirs, const char *what,
                                   tp_error *err);
/* A struct for results: NULL, or its size says what it has room for. */
TP_CHECKED tp_status tp_sized_check(const void *theirs, const char *what, tp_error *err);
/* Fill what it has room for; `size` stays the caller's.  NULL is a no-op. */
void tp_sized_write(void *theirs, const void *own, size_t own_size);

#endif
