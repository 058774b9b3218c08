/* fields.h - values of an event, from their text.
 *
 * Exact: microseconds become nanoseconds digit by digit, as decimals, and no double is
 * involved; digits beyond the third are cut off.  The text must be followed by at least 8
 * readable bytes. */
#ifndef TP_INSTRUMENT_INGEST_FIELDS_H
#define TP_INSTRUMENT_INGEST_FIELDS_H

#include "instrument/ingest/event_scan.h"
#include "instrument/ingest/string_table.h"

typedef enum {
    TP_FIELD_OK,
    TP_FIELD_NONE,   /* no number */
    TP_FIELD_CLAMPED /* beyond 64 bits: the nearest limit was returned */
} tp_field_result;

/* Microseconds as nanoseconds; *ret_decimals when the text had a point. */
tp_field_result tp_field_ns(const char *text, size_t len, int64_t *ret, bool *ret_decimals);

/* A whole number: decimal, "0x" hexadecimal; a fraction is cut off.  Unsigned values from
 * 2^63 on keep their bits. */
tp_field_result tp_field_i64(const char *text, size_t len, int64_t *ret);

/* Any number, also "inf" and "nan"; NaN when it is none. */
double tp_field_f64(const char *text, size_t len);

/* Resolve escapes of `raw` into `out` (raw.len bytes); an escape that JSON does not know
 * stays as it is and is counted.  Returns the length. */
size_t tp_field_unescape(tp_slice raw, char *out, uint64_t *odd);

/* JSON without the white space between its tokens; `out` holds raw.len bytes. */
size_t tp_field_compact(tp_slice raw, char *out);

#endif
