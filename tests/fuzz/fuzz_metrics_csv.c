/* fuzz_metrics_csv.c - tables of metrics. */
#include <stddef.h>
#include <stdint.h>

#include "run_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 1 << 18)
        tp_fuzz_run_file("metrics.csv", data, size);
    return 0;
}
