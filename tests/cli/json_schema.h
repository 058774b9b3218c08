/* json_schema.h - does a JSON value have the shape that a schema says?  The part of JSON Schema
 * that docs/formats/schema uses: type, properties, patternProperties, required,
 * additionalProperties, items, enum, $ref within the file ("#": the whole).  Nothing fits a schema
 * that leaves something open. */
#ifndef TESTS_CLI_JSON_SCHEMA_H
#define TESTS_CLI_JSON_SCHEMA_H

#include "text/json/json.h"

/* Prints what does not fit, one line each; the number of lines. */
int json_schema_faults(const tp_json *schema, const tp_json *value);

#endif
