/* lookup.c - keys and tensors of a file that was read. */
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "text/gguf/gguf_internal.h"

static int compare_slices(tp_slice a, tp_slice b)
{
    int c = memcmp(a.data, b.data, TP_MIN(a.len, b.len));
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

int tp_gguf_by_key(const void *a, const void *b)
{
    const tp_gguf_value *x = *(const tp_gguf_value *const *)a;
    const tp_gguf_value *y = *(const tp_gguf_value *const *)b;
    return compare_slices(x->key, y->key);
}

int tp_gguf_by_name(const void *a, const void *b)
{
    const tp_gguf_tensor *x = *(const tp_gguf_tensor *const *)a;
    const tp_gguf_tensor *y = *(const tp_gguf_tensor *const *)b;
    return strcmp(x->name, y->name);
}

const char *tp_gguf_name(const tp_gguf *g) { return g->name; }
size_t tp_gguf_key_count(const tp_gguf *g) { return g->n_keys; }
const tp_gguf_value *tp_gguf_key_at(const tp_gguf *g, size_t i) { return &g->keys[i]; }
size_t tp_gguf_tensor_count(const tp_gguf *g) { return g->n_tensors; }
const tp_gguf_tensor *tp_gguf_tensor_at(const tp_gguf *g, size_t i) { return &g->tensors[i]; }

const tp_gguf_value *tp_gguf_find(const tp_gguf *g, const char *key)
{
    tp_gguf_value wanted = {.key = tp_slice_of(key)}, *p = &wanted;
    const tp_gguf_value **found =
        bsearch(&p, g->keys_sorted, g->n_keys, sizeof *g->keys_sorted, tp_gguf_by_key);
    return found ? *found : NULL;
}

const tp_gguf_tensor *tp_gguf_find_tensor(const tp_gguf *g, const char *name)
{
    tp_gguf_tensor wanted = {.name = name}, *p = &wanted;
    const tp_gguf_tensor **found =
        bsearch(&p, g->tensors_sorted, g->n_tensors, sizeof *g->tensors_sorted, tp_gguf_by_name);
    return found ? *found : NULL;
}
