/* row_place.h - the line and column of a value inside a row of JSON.
 *
 * Parsed values do not remember where they stood.  When one is wrong, the row is
 * read a second time up to the value that a path names: slow, exact, and only
 * done for a message. */
#ifndef TP_ENGINE_DATA_ROW_PLACE_H
#define TP_ENGINE_DATA_ROW_PLACE_H

#include "engine/data/schema.h"

typedef struct {
    const char *key; /* member of an object; NULL: element of an array */
    size_t index;
} tp_row_step;

/* TP_ERR_FORMAT with "file:line:column: " of the value at the end of the path, or
 * of the innermost value that exists. */
tp_status tp_row_fail_at(const tp_row *row, const tp_row_step *path, size_t n_path, tp_error *err,
                         const char *fmt, ...) TP_PRINTF(5, 6);

/* "a string", "null", ...; "missing" for NULL. */
const char *tp_row_type_name(const tp_json *v);

tp_json_options tp_row_json_options(const tp_row *row);

#endif
