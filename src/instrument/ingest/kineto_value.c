/* kineto_value.c - values of the scanner's slots: strings of the table, numbers. */
#include "base/platform.h"
#include "instrument/ingest/fields.h"
#include "instrument/ingest/kineto.h"

uint32_t tp_kineto_intern(tp_kineto *k, const tp_slot *slot)
{
    unsigned flags = tp_slot_flags(slot);
    tp_string_table *strings = &k->events->strings;
    if (TP_UNLIKELY(flags & TP_VALUE_CONTROL))
        k->events->counts.control_bytes++;
    if (TP_LIKELY(!(flags & TP_VALUE_ESCAPED)))
        return tp_string_add(strings, slot->text, slot->len);
    tp_buf_clear(&k->scratch);
    tp_buf_reserve(&k->scratch, slot->len);
    size_t n = tp_field_unescape((tp_slice){slot->text, slot->len}, k->scratch.data,
                                 &k->events->counts.odd_escapes);
    return tp_string_add(strings, k->scratch.data, n);
}

uint32_t tp_kineto_string(tp_kineto *k, tp_event_key key)
{
    const tp_slot *slot = tp_kineto_slot(k, key);
    return slot && (slot->tag & TP_VALUE_STRING) ? tp_kineto_intern(k, slot) : 0;
}

uint32_t tp_kineto_text(tp_kineto *k, tp_event_key key)
{
    const tp_slot *slot = tp_kineto_slot(k, key);
    if (!slot || (tp_slot_flags(slot) & TP_VALUE_LITERAL))
        return 0;
    bool is_list = slot->len && slot->text[0] == '[';
    if ((slot->tag & TP_VALUE_STRING) && !is_list)
        return tp_kineto_intern(k, slot);
    tp_buf_clear(&k->scratch);
    tp_buf_reserve(&k->scratch, slot->len);
    size_t n = tp_field_compact((tp_slice){slot->text, slot->len}, k->scratch.data);
    return tp_string_add(&k->events->strings, k->scratch.data, n);
}

int64_t tp_kineto_i64(const tp_kineto *k, tp_event_key key)
{
    const tp_slot *slot = tp_kineto_slot(k, key);
    int64_t v;
    if (!slot || tp_field_i64(slot->text, slot->len, &v) == TP_FIELD_NONE)
        return TP_UNKNOWN;
    return v;
}
