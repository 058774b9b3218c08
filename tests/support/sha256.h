/* sha256.h - FIPS 180-4, for comparing long id sequences with recorded digests. */
#ifndef TP_TESTS_SUPPORT_SHA256_H
#define TP_TESTS_SUPPORT_SHA256_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    uint32_t h[8], k[64];
    uint8_t block[64];
    size_t fill;
    uint64_t bytes;
} sha256;

static inline uint32_t sha_fraction(long double x)
{
    return (uint32_t)((x - floorl(x)) * 4294967296.0L);
}

/* The constants are fractions of roots of the first primes. */
static inline void sha256_init(sha256 *s)
{
    memset(s, 0, sizeof *s);
    for (int n = 0, p = 2; n < 64; p++) {
        int prime = 1;
        for (int d = 2; d * d <= p; d++)
            prime &= p % d != 0;
        if (!prime)
            continue;
        if (n < 8)
            s->h[n] = sha_fraction(sqrtl(p));
        s->k[n++] = sha_fraction(cbrtl(p));
    }
}

static inline uint32_t sha_rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static inline void sha256_block(sha256 *s)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
               (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (sha_rotate(a, 7) ^ sha_rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (sha_rotate(b, 17) ^ sha_rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (sha_rotate(e, 6) ^ sha_rotate(e, 11) ^ sha_rotate(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + s->k[i] + w[i];
        uint32_t t2 = (sha_rotate(a, 2) ^ sha_rotate(a, 13) ^ sha_rotate(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
    s->fill = 0;
}

static inline void sha256_add(sha256 *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    s->bytes += n;
    for (size_t i = 0; i < n; i++) {
        s->block[s->fill++] = p[i];
        if (s->fill == 64)
            sha256_block(s);
    }
}

static inline void sha256_hex(sha256 *s, char out[65])
{
    uint64_t bits = s->bytes * 8;
    uint8_t one = 0x80, zero = 0, length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(s, &one, 1);
    while (s->fill != 56)
        sha256_add(s, &zero, 1);
    sha256_add(s, length, 8);
    for (int i = 0; i < 8; i++)
        snprintf(out + 8 * i, 9, "%08x", s->h[i]);
}

#endif
