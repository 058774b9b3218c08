/* write.c - keys and the description of tensors as bytes. */

#include "text/gguf/gguf.h"

static void add_u32(tp_buf *out, uint32_t value) { tp_buf_add(out, &value, sizeof value); }
static void add_u64(tp_buf *out, uint64_t value) { tp_buf_add(out, &value, sizeof value); }

static void add_string(tp_buf *out, tp_slice s)
{
    add_u64(out, s.len);
    tp_buf_add(out, s.data, s.len);
}

static void add_key(tp_gguf_keys *k, const char *key, tp_gguf_type type)
{
    add_string(&k->bytes, tp_slice_of(key));
    add_u32(&k->bytes, type);
    k->n++;
}

void tp_gguf_put_u32(tp_gguf_keys *k, const char *key, uint32_t value)
{
    add_key(k, key, TP_GGUF_U32);
    add_u32(&k->bytes, value);
}

void tp_gguf_put_i32(tp_gguf_keys *k, const char *key, int32_t value)
{
    add_key(k, key, TP_GGUF_I32);
    tp_gguf_item_i32(k, value);
}

void tp_gguf_put_f32(tp_gguf_keys *k, const char *key, float value)
{
    add_key(k, key, TP_GGUF_F32);
    tp_buf_add(&k->bytes, &value, sizeof value);
}

void tp_gguf_put_bool(tp_gguf_keys *k, const char *key, bool value)
{
    add_key(k, key, TP_GGUF_BOOL);
    tp_buf_addc(&k->bytes, (char)value);
}

void tp_gguf_put_string(tp_gguf_keys *k, const char *key, tp_slice value)
{
    add_key(k, key, TP_GGUF_STRING);
    add_string(&k->bytes, value);
}

void tp_gguf_put_array(tp_gguf_keys *k, const char *key, tp_gguf_type item, uint64_t n)
{
    add_key(k, key, TP_GGUF_ARRAY);
    add_u32(&k->bytes, item);
    add_u64(&k->bytes, n);
}

void tp_gguf_item_string(tp_gguf_keys *k, tp_slice value) { add_string(&k->bytes, value); }

void tp_gguf_item_i32(tp_gguf_keys *k, int32_t value)
{
    tp_buf_add(&k->bytes, &value, sizeof value);
}

static tp_status measure(tp_gguf_tensor *t, tp_error *err)
{
    const tp_ggml_info *info = tp_ggml_info_of(t->type);
    size_t n = 1, bytes;
    bool bad = !info || t->rank < 1 || t->rank > 4 || t->dim[0] % info->block != 0;
    for (int i = 0; i < t->rank && !bad; i++)
        bad = t->dim[i] < 1 || __builtin_mul_overflow(n, (size_t)t->dim[i], &n);
    if (bad || __builtin_mul_overflow(n / info->block, (size_t)info->bytes, &bytes))
        return tp_fail(err, TP_ERR_ARG, "tensor '%.100s' cannot be written as GGUF's type %u",
                       t->name, t->type);
    t->bytes = bytes;
    return TP_OK;
}

static bool align(uint64_t *at)
{
    uint64_t up;
    if (__builtin_add_overflow(*at, (uint64_t)TP_GGUF_ALIGNMENT - 1, &up))
        return false;
    *at = up / TP_GGUF_ALIGNMENT * TP_GGUF_ALIGNMENT;
    return true;
}

tp_status tp_gguf_header(const tp_gguf_keys *k, tp_gguf_tensor *tensors, size_t n, tp_buf *out,
                         uint64_t *ret_bytes, tp_error *err)
{
    uint64_t at = 0;
    tp_buf_adds(out, "GGUF");
    add_u32(out, 3);
    add_u64(out, n);
    add_u64(out, k->n);
    tp_buf_add(out, tp_buf_str(&k->bytes), k->bytes.len);
    for (size_t i = 0; i < n; i++) {
        tp_gguf_tensor *t = &tensors[i];
        TP_TRY(measure(t, err));
        add_string(out, tp_slice_of(t->name));
        add_u32(out, (uint32_t)t->rank);
        for (int d = 0; d < t->rank; d++)
            add_u64(out, (uint64_t)t->dim[d]);
        add_u32(out, t->type);
        add_u64(out, at);
        if (__builtin_add_overflow(at, t->bytes, &at) || !align(&at))
            return tp_fail(err, TP_ERR_ARG, "the tensors are larger than any file");
    }
    while (out->len % TP_GGUF_ALIGNMENT)
        tp_buf_addc(out, '\0');
    if (__builtin_add_overflow(at, out->len, ret_bytes))
        return tp_fail(err, TP_ERR_ARG, "the tensors are larger than any file");
    return TP_OK;
}
