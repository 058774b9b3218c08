/* The scanning loop with AVX2: 32 bytes at a time. */
#include <immintrin.h>

#include "base/platform.h"
#include "instrument/ingest/event_scan.h"

typedef struct {
    uint64_t open, close, quote, colon;
} bracket_bits;

static inline __m256i load(const char *p) { return _mm256_loadu_si256((const __m256i *)p); }

static inline uint32_t bits_of(__m256i bytes) { return (uint32_t)_mm256_movemask_epi8(bytes); }

static inline uint32_t equal(__m256i bytes, char c)
{
    return bits_of(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(c)));
}

static inline bool gap_is(const tp_scan_gap *gap, const char *p)
{
    uint32_t low = bits_of(_mm256_cmpeq_epi8(load(p), load(gap->text)));
    if (TP_LIKELY(gap->len <= 32))
        return ((~low) & (uint32_t)gap->mask) == 0;
    uint32_t high = bits_of(_mm256_cmpeq_epi8(load(p + 32), load(gap->text + 32)));
    return low == UINT32_MAX && ((~high) & (uint32_t)(gap->mask >> 32)) == 0;
}

static inline size_t string_run(const char *p)
{
    for (size_t n = 0;; n += 32) {
        __m256i bytes = load(p + n);
        /* unsigned bytes up to 0x1f are those that a minimum with 0x1f leaves alone */
        __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
        uint32_t stop = equal(bytes, '"') | equal(bytes, '\\') | bits_of(control);
        if (stop)
            return n + (size_t)__builtin_ctz(stop);
    }
}

static inline size_t number_run(const char *p)
{
    for (size_t n = 0;; n += 32) {
        __m256i from = _mm256_sub_epi8(load(p + n), _mm256_set1_epi8('-'));
        __m256i inside =
            _mm256_cmpeq_epi8(_mm256_min_epu8(from, _mm256_set1_epi8('9' - '-')), from);
        uint32_t stop = ~bits_of(inside);
        if (stop)
            return n + (size_t)__builtin_ctz(stop);
    }
}

static inline bracket_bits find_brackets(const char *p)
{
    bracket_bits bits = {0};
    for (int half = 0; half < 64; half += 32) {
        __m256i bytes = load(p + half);
        bits.open |= (uint64_t)(equal(bytes, '[') | equal(bytes, '{')) << half;
        bits.close |= (uint64_t)(equal(bytes, ']') | equal(bytes, '}')) << half;
        bits.quote |= (uint64_t)equal(bytes, '"') << half;
        bits.colon |= (uint64_t)equal(bytes, ':') << half;
    }
    return bits;
}

#define SCAN_FUNCTION tp_event_scan_avx2
#include "instrument/ingest/event_scan_template.h"
