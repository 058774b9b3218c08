/* event_scan_template.h - the scanning loop, included once per instruction set.
 *
 * The including file defines, as static inline functions that may read up to TP_SCAN_PAD
 * bytes behind the window:
 *     bool gap_is(const tp_scan_gap *gap, const char *p)
 *     size_t string_run(const char *p)     bytes before the next quote, backslash or control
 *     size_t number_run(const char *p)     bytes that are digits, points, slashes or minus
 *     bracket_bits find_brackets(const char *p)  of the next 64 bytes
 * and SCAN_FUNCTION, the name of the result. */

/* Index of the string's closing quote, or NULL: the window ends. */
static inline const char *string_end(const char *p, const char *end, unsigned *flags)
{
    for (;;) {
        p += string_run(p);
        if (TP_LIKELY(*p == '"'))
            return p;
        if (p >= end)
            return NULL;
        if (*p == '\\') {
            if (p + 1 >= end)
                return NULL;
            *flags |= TP_VALUE_ESCAPED;
            p += 2;
        } else {
            *flags |= TP_VALUE_CONTROL;
            p++;
        }
    }
}

static const char *fail(tp_event_scan *scan, const char *at, const char *error)
{
    scan->error_at = at;
    scan->error = error;
    return NULL;
}

/* Behind the bracket that closes the one at p.  Brackets have to match and colons belong
 * into objects; commas and what lies between are not judged. */
static const char *nested_end(tp_event_scan *scan, const char *p, bool *ret_more)
{
    const char *end = scan->end;
    uint64_t objects = 0; /* bit 0: the innermost open bracket is a brace */
    int depth = 0;
    while (p < end) {
        bracket_bits bits = find_brackets(p);
        uint64_t all = bits.open | bits.close | bits.quote | bits.colon;
        const char *block = p;
        p += 64;
        for (; all; all &= all - 1) {
            const char *at = block + __builtin_ctzll(all);
            uint64_t bit = all & -all;
            if (bit & bits.quote) {
                unsigned ignored = 0;
                const char *quote = string_end(at + 1, end, &ignored);
                if (!quote) {
                    *ret_more = true;
                    return NULL;
                }
                p = quote + 1;
                break;
            }
            if (bit & bits.open) {
                if (++depth > 64)
                    return fail(scan, at, "nested deeper than 64 levels");
                objects = objects << 1 | (*at == '{');
            } else if (bit & bits.close) {
                if ((objects & 1) != (*at == '}'))
                    return fail(scan, at, "brackets do not match");
                objects >>= 1;
                if (--depth == 0)
                    return at + 1;
            } else if (!(objects & 1)) {
                return fail(scan, at, "a colon inside an array");
            }
        }
    }
    *ret_more = true;
    return NULL;
}

/* Behind the value at p. */
static inline const char *value_end(tp_event_scan *scan, const char *p, unsigned *flags,
                                    bool *ret_more)
{
    size_t n = number_run(p);
    if (TP_LIKELY(n && (unsigned char)((p[n] | 0x20) - 'a') >= 26 && p[n] != '+'))
        return p + n;
    if (*p == '[' || *p == '{') {
        *flags = TP_VALUE_NESTED;
        bracket_bits bits = find_brackets(p + 1);
        uint64_t first = bits.close & -bits.close;
        if (first && !((bits.open | bits.quote | bits.colon) & (first - 1))) {
            const char *at = p + 1 + __builtin_ctzll(first);
            if (*at == *p + 2) /* ASCII has each closing bracket two behind its partner */
                return at + 1;
        }
        return nested_end(scan, p, ret_more);
    }
    return tp_scan_word(scan, p, flags, ret_more);
}

static inline uint32_t known_gap(tp_event_scan *scan, uint32_t context, const char *p)
{
    uint32_t first = scan->gaps[context].child;
    if (TP_LIKELY(first && gap_is(&scan->gaps[first], p)))
        return first;
    return first ? tp_gap_sibling(scan, context, first, p) : 0;
}

/* What brackets inside a known gap mean.  False: commit wants to stop. */
static inline bool take_brackets(tp_event_scan *scan, const tp_scan_gap *gap, const char *p)
{
    if (gap->flags & TP_GAP_OPENS_ARGS)
        scan->args = p + gap->args_open;
    if (gap->flags & TP_GAP_CLOSES_ARGS)
        scan->args_end = p + gap->args_close + 1;
    if (gap->flags & TP_GAP_CLOSES_EVENT) {
        scan->event_end = p + gap->event_close + 1;
        if (!scan->commit(scan)) {
            scan->at = scan->event_end;
            scan->state = TP_SCAN_BETWEEN;
            return false;
        }
    }
    if (gap->flags & TP_GAP_OPENS_EVENT)
        tp_scan_open(scan, p + gap->event_open);
    if (gap->flags & TP_GAP_OPENS_NEW_ARGS)
        scan->args = p + gap->args_open;
    return true;
}

tp_scan_result SCAN_FUNCTION(tp_event_scan *scan)
{
    const char *const end = scan->end;
    tp_scan_cursor c = {.p = scan->at,
                        .place = scan->state == TP_SCAN_FIRST ? TP_IN_ARRAY_FIRST : TP_IN_ARRAY,
                        .context = scan->array_context[scan->state]};
    scan->event = NULL;
    for (;;) {
        uint32_t known = c.context ? known_gap(scan, c.context, c.p) : 0;
        if (TP_LIKELY(known)) {
            const tp_scan_gap *gap = &scan->gaps[known];
            if ((gap->flags & TP_GAP_BRACKETS) && !take_brackets(scan, gap, c.p))
                return TP_SCAN_STOP;
            c.p += gap->len;
            c.context = gap->context;
            c.key = gap->key;
            c.flags = gap->flags;
        } else {
            tp_scan_result result = tp_scan_new_gap(scan, &c);
            if (result != TP_SCAN_GO)
                return result;
        }

        const char *value = c.p, *behind;
        unsigned flags = 0;
        tp_slot *slot = &scan->slots[c.key];
        /* A gap remembered before a number is also the beginning of one with more space, or
         * before a string. */
        if ((unsigned char)*value <= '"' && !(c.flags & TP_GAP_STRING)) {
            while (*value == ' ' || *value == '\n' || *value == '\r' || *value == '\t')
                value++;
            if (*value == '"') {
                c.flags |= TP_GAP_STRING;
                value++;
            }
        }
        if (c.flags & TP_GAP_STRING) {
            behind = string_end(value, end, &flags);
            if (TP_UNLIKELY(!behind))
                return tp_scan_leave(scan, TP_SCAN_MORE);
            slot->len = (uint32_t)(behind - value);
            behind++;
            flags |= TP_VALUE_STRING;
        } else {
            bool more = false;
            behind = value_end(scan, value, &flags, &more);
            if (TP_UNLIKELY(!behind))
                return tp_scan_leave(scan, more ? TP_SCAN_MORE : TP_SCAN_ERROR);
            slot->len = (uint32_t)(behind - value);
        }
        slot->text = value;
        slot->tag = scan->number << TP_VALUE_FLAGS | flags;
        if (c.key == TP_KEY_CAT)
            c.context = tp_gap_category_context(scan, value, slot->len);
        else if (c.key == TP_KEY_PH)
            c.context = tp_gap_phase_context(scan, value);
        c.after_string = c.flags & TP_GAP_STRING;
        c.place = c.flags & TP_GAP_IN_ARGS ? TP_IN_ARGS : TP_IN_EVENT;
        c.p = behind;
    }
}
