/* fuzz_program_line.c - any bytes as the answer of a judging program: always a verdict,
 * never a reward that is not finite, never a silent 0. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/reward/program_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 14)
        return 0;
    tp_reward *r = tp_rewards_new(1);
    int64_t id = tp_program_line_read((tp_slice){(const char *)data, size}, r);
    if (id < 0 && id != TP_PROGRAM_NO_ID)
        abort();
    if (id == TP_PROGRAM_NO_ID && r->status != TP_REWARD_NONSENSE)
        abort();
    bool is_ok = r->status == TP_REWARD_OK;
    if (is_ok != isfinite(r->reward) || is_ok == (r->why != NULL))
        abort();
    if (!is_ok && r->correct != TP_CORRECT_UNKNOWN)
        abort();
    tp_reward_release(r);
    free(r);
    return 0;
}
