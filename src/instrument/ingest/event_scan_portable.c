/* The scanning loop in plain C, eight bytes at a time where that is simple. */
#include <string.h>

#include "base/platform.h"
#include "instrument/ingest/event_scan.h"

typedef struct {
    uint64_t open, close, quote, colon;
} bracket_bits;

static inline bool gap_is(const tp_scan_gap *gap, const char *p)
{
    return memcmp(gap->text, p, gap->len) == 0;
}

static inline size_t string_run(const char *p)
{
    size_t n = 0;
    while (p[n] != '"' && p[n] != '\\' && (unsigned char)p[n] >= 0x20)
        n++;
    return n;
}

static inline size_t number_run(const char *p)
{
    size_t n = 0;
    while ((unsigned char)(p[n] - '-') <= '9' - '-')
        n++;
    return n;
}

static inline bracket_bits find_brackets(const char *p)
{
    bracket_bits bits = {0};
    for (int i = 0; i < 64; i++) {
        uint64_t bit = UINT64_C(1) << i;
        char c = p[i];
        if (c == '[' || c == '{')
            bits.open |= bit;
        else if (c == ']' || c == '}')
            bits.close |= bit;
        else if (c == '"')
            bits.quote |= bit;
        else if (c == ':')
            bits.colon |= bit;
    }
    return bits;
}

#define SCAN_FUNCTION tp_event_scan_portable
#include "instrument/ingest/event_scan_template.h"
