/* string_table.h - each different text once, under a number.
 *
 * Numbers count up from 0 in order of appearance; 0 is the empty string.  Texts lie one
 * after another in one block, each with a NUL behind it; pointers are valid until the next
 * insertion, numbers forever. */
#ifndef TP_INSTRUMENT_INGEST_STRING_TABLE_H
#define TP_INSTRUMENT_INGEST_STRING_TABLE_H

#include "base/strings.h"

typedef struct {
    char *bytes;
    size_t used, bytes_cap;
    uint64_t *offset; /* n + 1 of them */
    size_t n, offset_cap;
    uint64_t *slots; /* hash in the high half, number + 1 in the low half; 0 is free */
    size_t n_slots;
} tp_string_table;

void tp_string_table_init(tp_string_table *table);
void tp_string_table_release(tp_string_table *table); /* zeroed is a no-op */

/* The number of the text, new or known. */
uint32_t tp_string_add(tp_string_table *table, const char *text, size_t len);
/* The same, without adding: false when it is not there. */
bool tp_string_find(const tp_string_table *table, const char *text, size_t len, uint32_t *ret);

static inline const char *tp_string_get(const tp_string_table *table, uint32_t id)
{
    return table->n ? table->bytes + table->offset[id] : "";
}

static inline size_t tp_string_len(const tp_string_table *table, uint32_t id)
{
    return table->n ? (size_t)(table->offset[id + 1] - table->offset[id]) - 1 : 0;
}

#endif
