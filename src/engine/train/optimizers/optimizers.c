/* optimizers.c - every optimizer, by the names that configurations give it. */
#include "engine/train/optimizers/optimizer.h"

const tp_optimizer_name tp_optimizer_names[] = {{"torch.optim.AdamW", &tp_optimizer_adamw},
                                                {"adamw", &tp_optimizer_adamw},
                                                {"torch.optim.SGD", &tp_optimizer_sgd},
                                                {"sgd", &tp_optimizer_sgd},
                                                {NULL, NULL}};

const tp_optimizer *tp_optimizer_at(size_t i)
{
    const tp_optimizer *before = NULL;
    for (const tp_optimizer_name *n = tp_optimizer_names; n->name; n++) {
        if (n->kind != before && i-- == 0)
            return n->kind;
        before = n->kind;
    }
    return NULL;
}
