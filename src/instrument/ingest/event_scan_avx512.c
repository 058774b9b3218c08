/* The scanning loop with AVX-512 BW: 64 bytes at a time, a gap in one comparison. */
#include <immintrin.h>

#include "base/platform.h"
#include "instrument/ingest/event_scan.h"

typedef struct {
    uint64_t open, close, quote, colon;
} bracket_bits;

static inline __m512i load(const char *p) { return _mm512_loadu_si512(p); }

static inline uint64_t equal(__m512i bytes, char c)
{
    return _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(c));
}

static inline bool gap_is(const tp_scan_gap *gap, const char *p)
{
    return _mm512_mask_cmpneq_epi8_mask(gap->mask, load(p), _mm512_load_si512(gap->text)) == 0;
}

static inline size_t string_run(const char *p)
{
    for (size_t n = 0;; n += 64) {
        __m512i bytes = load(p + n);
        uint64_t stop = equal(bytes, '"') | equal(bytes, '\\') |
                        _mm512_cmplt_epu8_mask(bytes, _mm512_set1_epi8(0x20));
        if (stop)
            return n + (size_t)__builtin_ctzll(stop);
    }
}

static inline size_t number_run(const char *p)
{
    for (size_t n = 0;; n += 64) {
        __m512i from = _mm512_sub_epi8(load(p + n), _mm512_set1_epi8('-'));
        uint64_t stop = _mm512_cmpgt_epu8_mask(from, _mm512_set1_epi8('9' - '-'));
        if (stop)
            return n + (size_t)__builtin_ctzll(stop);
    }
}

static inline bracket_bits find_brackets(const char *p)
{
    __m512i bytes = load(p);
    return (bracket_bits){.open = equal(bytes, '[') | equal(bytes, '{'),
                          .close = equal(bytes, ']') | equal(bytes, '}'),
                          .quote = equal(bytes, '"'),
                          .colon = equal(bytes, ':')};
}

#define SCAN_FUNCTION tp_event_scan_avx512
#include "instrument/ingest/event_scan_template.h"
