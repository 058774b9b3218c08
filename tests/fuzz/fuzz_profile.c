/* fuzz_profile.c - a kept profile, whatever it holds, is compared with, or refused, on either side.
 */
#include <stdlib.h>

#include "instrument/profile/baseline.h"

enum { STEPS = 8 };

static void fill(tp_profile_data *d)
{
    tp_profile_data_init(d, 1, STEPS, 1);
    d->n_done = STEPS;
    d->threads = 2;
    d->n_ops = 1;
    d->ops[0] = (tp_profile_op){.name = "linear", .s = calloc(STEPS + 1, sizeof(double))};
    for (int i = 0; i < STEPS; i++) {
        d->step_s[i] = 0.1 + 0.001 * i;
        d->ops[0].s[i] = 0.05 + 0.001 * i;
        d->used_tokens[i] = 100;
    }
}

static void compare_with_itself(const tp_json *root)
{
    tp_profile_data d;
    tp_profile_comparison c;
    tp_error err = {0};
    if (tp_profile_data_of(root, "after", &d, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return;
    }
    if (tp_profile_compare(root, "before", &d, &c, &err) == TP_OK &&
        (c.n_ops < 0 || c.n_ops > TP_PROFILE_COMPARED || c.step.verdict == TP_CHANGE_WORSE))
        abort();
    tp_profile_data_release(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_arena arena;
    tp_profile_data d;
    tp_profile_comparison c;
    const tp_json *root;
    tp_error err;
    if (size > 1 << 16 || tp_arena_init(&arena, 16 << 20, &err) != TP_OK)
        return 0;
    fill(&d);
    bool is_read =
        tp_json_parse(&arena, "baseline", (const char *)data, size, NULL, &root, &err) == TP_OK;
    if (is_read && tp_profile_compare(root, "b", &d, &c, &err) == TP_OK)
        if (c.n_ops < 0 || c.n_ops > TP_PROFILE_COMPARED || c.step.after_s <= 0)
            abort();
    if (is_read)
        compare_with_itself(root);
    tp_profile_data_release(&d);
    tp_arena_release(&arena);
    return 0;
}
