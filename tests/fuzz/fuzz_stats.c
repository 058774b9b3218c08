/* fuzz_stats.c - the reader of `temper stats` on any bytes: columns, or a reason why not. */
#include <stdint.h>
#include <stdlib.h>

#include "stats/dataset.h"

static void check_columns(const char *text, size_t n)
{
    tp_stats_dataset data;
    tp_error err = {0};
    if (tp_dataset_read("fuzz", text, n, &data, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return;
    }
    for (size_t i = 0; i < data.n_columns; i++) {
        double *x, *y;
        size_t count, other;
        const tp_column *c = &data.columns[i];
        if (c->n > data.n_rows || !tp_dataset_find(&data, c->name, NULL))
            abort();
        if (tp_dataset_numbers(&data, c, &x, &count, &other, NULL) == TP_OK) {
            if (count + other != data.n_rows)
                abort();
            free(x);
        }
        if (tp_dataset_pairs(&data, c, &data.columns[0], &x, &y, &count, &other, NULL) == TP_OK) {
            free(x);
            free(y);
        }
    }
    tp_dataset_release(&data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 3000)
        check_columns((const char *)data, size);
    return 0;
}
