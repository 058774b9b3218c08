/* cache_store.h - finding a token cache by what it holds, or making it.
 *
 * A cache is <folder>/<key>.tokens.  It is written as .tokens.tmp and renamed when it
 * is complete.  The writer holds a lock on the .tmp, so of several processes that want
 * the same data one tokenises and the others wait for its result; a killed writer's
 * lock is gone with it. */
#ifndef TP_ENGINE_DATA_CACHE_STORE_H
#define TP_ENGINE_DATA_CACHE_STORE_H

#include "engine/data/cache.h"
#include "engine/data/corpus.h"

/* The folder for caches, made if need be: `wanted`, or the user's cache folder when it is
 * NULL; `fallback` (may be NULL) when that cannot be written.  Appended to *ret. */
TP_CHECKED tp_status tp_cache_folder(const char *wanted, const char *fallback, tp_buf *ret,
                                     tp_error *err);

/* The same folder without making it, for looking. */
TP_CHECKED tp_status tp_cache_where(const char *wanted, tp_buf *ret, tp_error *err);

typedef struct {
    bool hit;
    char rebuilt_because[1024]; /* "" unless an unusable file was replaced */
    double build_s;             /* 0 on a hit */
    tp_corpus_result built;     /* zeroed on a hit */
} tp_cache_outcome;

/* Open the cache of `key` (32 hex digits) in `folder`; where there is none that can be
 * used, build it from `corpus`.  `source_hash` is the hash of the corpus' file that went
 * into the key, or "": a file that changed since is an error. */
TP_CHECKED tp_status tp_cache_obtain(const char *folder, const char *key, const tp_corpus *corpus,
                                     const char *source_hash, tp_cache *ret,
                                     tp_cache_outcome *ret_outcome, tp_error *err);

#endif
