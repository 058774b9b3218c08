/* cache_shelf.h - the folder of caches as a whole: what lies there, what goes first.
 *
 * The time of last access is when a run used it last: set when a cache is opened, whatever the
 * file system does by itself. */
#ifndef TP_ENGINE_DATA_CACHE_SHELF_H
#define TP_ENGINE_DATA_CACHE_SHELF_H

#include <stdint.h>

#include "base/error.h"

typedef struct {
    char name[80]; /* "<32 hex digits>.tokens", ".reference"; of a writer that was killed
                      ".tokens.tmp" */
    uint64_t bytes;
    double used;  /* seconds since 1970 */
    bool is_rest; /* of a writer that is gone */
} tp_cache_file;

typedef struct {
    tp_cache_file *v; /* what was used last first */
    size_t n;
    uint64_t bytes;
} tp_cache_shelf;

void tp_cache_touch(const char *path); /* it is used now; what fails is of no consequence */

TP_CHECKED tp_status tp_cache_shelf_read(const char *folder, tp_cache_shelf *ret, tp_error *err);
void tp_cache_shelf_release(tp_cache_shelf *shelf);

/* Delete rests, and what was not used for longest until the others take `limit` bytes at most;
 * never a cache whose name is in `keep`.  A run that has one open goes on with it. */
typedef struct {
    size_t n;
    uint64_t bytes;
} tp_cache_freed;
TP_CHECKED tp_status tp_cache_shelf_trim(const char *folder, double limit, const char *const *keep,
                                         size_t n_keep, tp_cache_freed *ret, tp_error *err);

#endif
