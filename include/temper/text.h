/* text.h - what the library says: forms of a report, numbers for people, words that are near, what
 * a long call is at.
 *
 * Threads: any, at once; a tp_nearest by one.  A listener of tp_working_listen() is its thread's.
 */
#ifndef TEMPER_TEXT_H
#define TEMPER_TEXT_H

#include "temper/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a report is written. */
typedef enum { TP_FORM_TEXT, TP_FORM_JSON, TP_FORM_CSV, TP_FORM_MARKDOWN } tp_form;

/* The whole of `s` as a number; false when it is not one (or does not fit). */
TP_API bool tp_str_to_i64(const char *s, int64_t *ret);
TP_API bool tp_str_to_f64(const char *s, double *ret);

/* "6GiB", "1.5 GB", "800000000": at least one byte. */
TP_API bool tp_str_to_bytes(const char *s, double *ret);

/* Number of single-character edits between a and b: for "did you mean". */
TP_API size_t tp_str_distance(const char *a, const char *b);

/* "did you mean": offer every candidate, then look at `best` (NULL: none is near). */
typedef struct {
    const char *word, *best;
    size_t distance;
} tp_nearest;
TP_API void tp_nearest_offer(tp_nearest *near, const char *candidate);

/* "1.50 GiB", "12.3 k", "1m 05s": for people; `out` holds at least 32 bytes and is returned. */
TP_API char *tp_human_bytes(double bytes, char *out);
TP_API char *tp_human_count(double count, char *out);
TP_API char *tp_human_seconds(double seconds, char *out);
/* A measured value: so many decimals, six digits where those would be a long row, and "NaN",
 * "Infinity", "-Infinity" as they are spelled in files. */
TP_API char *tp_human_value(double v, int decimals, char *out);

/* What a call that takes long is at, "writing out/model.safetensors", and how much of it is done;
 * total 0: unknown.  Told in the thread of the call, perhaps thousands of times a second, from the
 * beginning: who listens decides when to speak of it. */
typedef void tp_working(void *user, const char *what, uint64_t done, uint64_t total);
/* Listen to calls of this thread from here on; `hear` NULL: no more.  A training tells its own
 * listener instead (TP_TRAINING_WORKING of temper/train.h). */
TP_API void tp_working_listen(tp_working *hear, void *user);
/* "writing out/model.safetensors  34%  12.0 s, about 23.3 s to go": after so many seconds, with the
 * share that is done (NaN: unknown).  tp_free(). */
TP_API char *tp_working_text(const char *what, double share, double seconds);
/* Where lines stay: when to speak next of what was spoken of after `seconds` (0: not yet), which is
 * after 10, 20, 40, 80, 140 ... */
TP_API double tp_working_next(double seconds);

#ifdef __cplusplus
}
#endif

#endif
