/* values.h - amounts as people write them; false when a text is none. */
#ifndef TP_CLI_VALUES_H
#define TP_CLI_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* "5%", "0.05": a fraction below 1. */
bool tp_cli_fraction(const char *text, double *ret);
/* "30s", "5m", "1h", "250ms"; seconds where there is no unit. */
bool tp_cli_time(const char *text, double *ret);
/* "8GiB", "512M": powers of 1024 with K, M or G; "iB" and "B" behind it are fine. */
bool tp_cli_bytes(const char *text, uint64_t *ret);

#endif
