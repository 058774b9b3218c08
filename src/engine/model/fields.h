/* fields.h - fields of a config.json, each checked as it is read.
 *
 * Every message names the file, the line, the field, its value and what was
 * expected.  A null field counts as absent, except where absent is true. */
#ifndef TP_ENGINE_MODEL_FIELDS_H
#define TP_ENGINE_MODEL_FIELDS_H

#include "base/error.h"
#include "text/json/json.h"

typedef struct {
    const char *path;    /* of the file */
    const char *section; /* "" or "rope_scaling.": put before the field in messages */
    const tp_json *object;
} tp_fields;

/* The member, or NULL when absent or null. */
const tp_json *tp_fields_get(const tp_fields *c, const char *field);

/* An integer from low to high; absent: `fallback`, or an error when it is TP_REQUIRED. */
#define TP_REQUIRED INT64_MIN
TP_CHECKED tp_status tp_fields_int(const tp_fields *c, const char *field, int64_t low, int64_t high,
                                   int64_t fallback, int64_t *ret, tp_error *err);
/* A number above `low` and up to `high`; absent: `fallback`, or an error when it is NaN. */
TP_CHECKED tp_status tp_fields_number(const tp_fields *c, const char *field, double low,
                                      double high, double fallback, double *ret, tp_error *err);
TP_CHECKED tp_status tp_fields_bool(const tp_fields *c, const char *field, bool fallback, bool *ret,
                                    tp_error *err);
TP_CHECKED tp_status tp_fields_string(const tp_fields *c, const char *field, const char *fallback,
                                      const char **ret, tp_error *err);
/* Token ids: one or a list of up to `max`; absent: none. */
TP_CHECKED tp_status tp_fields_ids(const tp_fields *c, const char *field, int max, int64_t *ids,
                                   int *ret_n, tp_error *err);

/* Fill *err with "path:line: "field" is VALUE: " and the message. */
tp_status tp_fields_fail(const tp_fields *c, const char *field, tp_status status, tp_error *err,
                         const char *fmt, ...) TP_PRINTF(5, 6);

/* `text` (a valid config.json) with the weights' dtype changed in whichever spelling it
 * has ("dtype", "torch_dtype") and `architecture` inserted when it names none. */
TP_CHECKED tp_status tp_fields_rewrite(const char *path, const char *text, size_t n,
                                       const char *dtype, const char *architecture, tp_buf *out,
                                       tp_error *err);

#endif
