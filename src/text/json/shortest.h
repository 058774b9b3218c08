/* shortest.h - the fewest decimal digits that read back as a double, by exact integers. */
#ifndef TP_TEXT_JSON_SHORTEST_H
#define TP_TEXT_JSON_SHORTEST_H

#include <stdbool.h>
#include <stdint.h>

/* v = *ret_digits * 10^*ret_exponent, without zeros at its end; of equally short ones the nearest
 * to v.  False for what does not fit the integers used: v must lie in 1e-10 .. 1e16. */
bool tp_shortest_digits(double v, uint64_t *ret_digits, int *ret_exponent);

#endif
