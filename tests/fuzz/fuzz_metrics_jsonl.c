/* fuzz_metrics_jsonl.c - JSON objects line by line: of anybody, of Temper, samples of NeMo RL. */
#include <stddef.h>
#include <stdint.h>

#include "run_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 16)
        return 0;
    tp_fuzz_run_file("metrics.jsonl", data, size);
    tp_fuzz_run_folder("train_data_step1.jsonl", data, size);
    return 0;
}
