/* fuzz_expression.c - any bytes as a countdown expression; what is read has the numbers
 * that stand in the text, and brackets around it change nothing. */
#include <stdint.h>
#include <stdlib.h>

#include "engine/reward/countdown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_expression e, again;
    char why[80] = "";
    if (size > 1 << 12)
        return 0;
    tp_slice text = {(const char *)data, size};
    if (!tp_expression_read(text, &e, why)) {
        if (!why[0])
            abort();
        return 0;
    }
    if (e.n_numbers < 1 || e.n_numbers > TP_EXPRESSION_NUMBERS)
        abort();
    if (e.has_value && e.value.den <= 0)
        abort();
    tp_buf wrapped = {0};
    size_t n = 0;
    while (n < size && data[n] != '=')
        n++;
    tp_buf_addc(&wrapped, '(');
    tp_buf_add(&wrapped, data, n);
    tp_buf_addc(&wrapped, ')');
    /* One level or one operator more may be one too many. */
    if (tp_expression_read((tp_slice){wrapped.data, wrapped.len}, &again, why) &&
        (again.n_numbers != e.n_numbers || again.has_value != e.has_value ||
         !tp_rational_equal(again.value, e.value)))
        abort();
    tp_buf_release(&wrapped);
    return 0;
}
