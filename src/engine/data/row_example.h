/* row_example.h - rows that are no examples to imitate: pairs of answers, and judged ones. */
#ifndef TP_ENGINE_DATA_ROW_EXAMPLE_H
#define TP_ENGINE_DATA_ROW_EXAMPLE_H

#include "engine/data/schema.h"

bool tp_row_has_pair(const tp_json *object);
tp_status tp_row_refuse_pair(const tp_row *row, tp_error *err);

/* What a row of a kind that was found by its keys must not be; `first` has its conversation, if it
 * has one. */
TP_CHECKED tp_status tp_row_check_example(const tp_row *row, const tp_json *object,
                                          tp_schema_kind kind, const char *first, tp_error *err);

#endif
