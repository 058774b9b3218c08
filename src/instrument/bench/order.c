/* order.c - randomised ABBA order of the two sides. */
#include "instrument/bench/order.h"

#include "base/rng.h"

enum { ORDER_STREAM = 0x6f7264 };

char tp_order_first(uint64_t seed, size_t round)
{
    uint32_t toss[4];
    tp_philox(seed, ORDER_STREAM, round / 2, toss);
    char first = toss[0] & 1 ? 'A' : 'B';
    return round % 2 == 0 ? first : first == 'A' ? 'B' : 'A';
}
