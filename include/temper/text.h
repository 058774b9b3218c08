/* text.h - what the library says: forms of a report, numbers for people, words that are near.
 *
 * Threads: any, at once; a tp_nearest by one. */
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

#ifdef __cplusplus
}
#endif

#endif
