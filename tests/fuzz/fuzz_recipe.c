/* fuzz_recipe.c - the whole table of a training, with what is checked across keys: each line of
 * the input is one word of the command line. */
#include <stdlib.h>

#include "engine/train/options.h"
#include "override_lines.h"

void try_config(tp_config *config)
{
    tp_train_options o;
    tp_buf shown = {0};
    tp_error err = {0};
    if (tp_train_options_bind(config, &o, &err) != TP_OK && !err.message[0])
        abort();
    if (tp_config_is_bound(config))
        tp_config_write(config, &shown);
    tp_buf_release(&shown);
}
