/* order.h - which side runs first.
 *
 * Rounds come in blocks of two, ABBA or BAAB by the toss of a seeded generator: drift
 * that is linear over a block cancels, and no side is always first. */
#ifndef TP_INSTRUMENT_BENCH_ORDER_H
#define TP_INSTRUMENT_BENCH_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* 'A' or 'B': who runs first in round i. */
char tp_order_first(uint64_t seed, size_t round);

#endif
