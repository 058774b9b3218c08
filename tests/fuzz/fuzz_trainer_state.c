/* fuzz_trainer_state.c - trainer_state.json of transformers and TRL. */
#include <stddef.h>
#include <stdint.h>

#include "run_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= 1 << 18)
        tp_fuzz_run_file("trainer_state.json", data, size);
    return 0;
}
