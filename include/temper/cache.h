/* cache.h - tokenised data that is kept between runs: what there is, and cleaning up.
 *
 * Threads: any, at once, of several processes too. */
#ifndef TEMPER_CACHE_H
#define TEMPER_CACHE_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `folder` is a data.cache_dir; NULL: the user's, $XDG_CACHE_HOME/temper or ~/.cache/temper. */

/* What was used last first, as text or JSON ({"folder", "bytes", "files": [...]}).  *ret_text:
 * tp_free(). */
TP_API TP_CHECKED tp_status tp_token_cache_text(const char *folder, tp_form form, char **ret_text,
                                                tp_error *err);
/* Delete what was not used for longest until the others take `limit` bytes at most (0: all), and
 * what killed writers left.  Runs that have one open go on.  Counts may be NULL. */
TP_API TP_CHECKED tp_status tp_token_cache_trim(const char *folder, double limit, uint64_t *ret_n,
                                                uint64_t *ret_bytes, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
