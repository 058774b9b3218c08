/* fuzz_trackio.c - trackio's data bases, and any other. */
#include <stddef.h>
#include <stdint.h>

#include "run_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 1 << 18)
        tp_fuzz_run_file("run.db", data, size);
    return 0;
}
