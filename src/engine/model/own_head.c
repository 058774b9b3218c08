/* own_head.c - does the file of a tied model hold a head that differs from the embedding? */
#include <string.h>

#include "base/platform.h"
#include "engine/model/convert.h"
#include "engine/model/family.h"
#include "engine/model/shards.h"

static const tp_tensor_entry *find_entry(const tp_shards *shards, const char *name)
{
    const tp_tensor_entry *e = NULL;
    for (size_t i = 0; i < shards->n && !e; i++)
        e = tp_safetensors_find(shards->files[i], name);
    return e;
}

/* As numbers, whatever type each is stored in. */
static bool are_equal(const tp_tensor_entry *a, const tp_tensor_entry *b, size_t n)
{
    enum { BLOCK = 4096 };
    float x[BLOCK], y[BLOCK];
    if (a->dtype == b->dtype)
        return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
    size_t wa = tp_dtype_size(a->dtype), wb = tp_dtype_size(b->dtype);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t count = TP_MIN(n - at, (size_t)BLOCK);
        tp_convert_to_f32((const char *)a->data + at * wa, a->dtype, x, count);
        tp_convert_to_f32((const char *)b->data + at * wb, b->dtype, y, count);
        if (memcmp(x, y, count * sizeof *x) != 0)
            return false;
    }
    return true;
}

static bool is_table(const tp_model *model, const tp_tensor_entry *e)
{
    return e && e->is_known && tp_convert_is_float(e->dtype) && e->rank == 2 &&
           e->dim[0] == model->info.vocab && e->dim[1] == model->info.hidden;
}

bool tp_model_file_has_own_head(const tp_model *model)
{
    TP_CLEANUP(tp_shards_close) tp_shards shards = {0};
    if (tp_shards_open(model->folder, &shards, NULL) != TP_OK)
        return false; /* loading will say what is wrong */
    const char *bare = model->embedding_name + strlen(model->family->prefix);
    const tp_tensor_entry *head = find_entry(&shards, "lm_head.weight");
    const tp_tensor_entry *table = find_entry(&shards, model->embedding_name);
    if (!table)
        table = find_entry(&shards, bare);
    return is_table(model, head) && is_table(model, table) &&
           !are_equal(head, table, (size_t)(head->dim[0] * head->dim[1]));
}
