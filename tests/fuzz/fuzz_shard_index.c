/* fuzz_shard_index.c - any bytes as a model.safetensors.index.json: no file name that
 * leaves the folder is ever handed out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/shards.h"

static tp_status visit(void *context, const char *tensor, const char *file, tp_error *err)
{
    (void)context, (void)err;
    if (!tensor || !file[0] || strchr(file, '/') || strcmp(file, "..") == 0)
        abort();
    return TP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_error err = {0};
    if (size > 1 << 16)
        return 0;
    if (tp_shards_parse_index("fuzz", (const char *)data, size, visit, NULL, &err) != TP_OK &&
        !err.message[0])
        abort();
    return 0;
}
