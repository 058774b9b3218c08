/* safetensors_write.c - tensors written as one safetensors file. */
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "engine/model/convert.h"
#include "engine/model/safetensors.h"
#include "text/json/json.h"

enum { CHUNK = 64 << 10 }; /* elements converted at a time */

static int by_size_and_name(const void *a, const void *b)
{
    const tp_tensor_out *x = *(const tp_tensor_out *const *)a;
    const tp_tensor_out *y = *(const tp_tensor_out *const *)b;
    size_t p = tp_dtype_size(x->dtype), q = tp_dtype_size(y->dtype);
    return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const tp_tensor_out *const *)a)->name,
                  (*(const tp_tensor_out *const *)b)->name);
}

static tp_status count_elements(const tp_tensor_out *t, size_t *ret, tp_error *err)
{
    size_t n = 1, bytes;
    bool bad = t->rank < 0 || t->rank > 2;
    for (int i = 0; i < t->rank && !bad; i++)
        bad = t->dim[i] < 0 || __builtin_mul_overflow(n, (size_t)t->dim[i], &n);
    if (bad || __builtin_mul_overflow(n, (size_t)8, &bytes))
        return tp_fail(err, TP_ERR_ARG, "tensor '%.200s' has an impossible shape", t->name);
    *ret = n;
    return TP_OK;
}

static tp_status check(const tp_tensor_out **sorted, size_t n, tp_error *err)
{
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 0; i < n; i++) {
        const tp_tensor_out *t = sorted[i];
        bool converts = tp_convert_is_float(t->dtype) && tp_convert_is_float(t->src_dtype);
        if (t->dtype != t->src_dtype && !converts)
            return tp_fail(err, TP_ERR_ARG, "tensor '%.200s' cannot be converted from %s to %s",
                           t->name, tp_dtype_name(t->src_dtype), tp_dtype_name(t->dtype));
        if (strcmp(t->name, "__metadata__") == 0 ||
            (i && strcmp(sorted[i - 1]->name, t->name) == 0))
            return tp_fail(err, TP_ERR_ARG, "tensor name '%.200s' is taken", t->name);
    }
    return TP_OK;
}

/* The JSON header, padded with spaces so that the data begins 8-aligned. */
static tp_status make_header(const tp_tensor_out **sorted, size_t n, tp_buf *out, tp_error *err)
{
    size_t at = 0;
    tp_buf_adds(out, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < n; i++) {
        const tp_tensor_out *t = sorted[i];
        size_t count, end;
        TP_TRY(count_elements(t, &count, err));
        if (__builtin_add_overflow(at, count * tp_dtype_size(t->dtype), &end))
            return tp_fail(err, TP_ERR_ARG, "the tensors are larger than any file");
        tp_buf_addc(out, ',');
        tp_json_quote(out, t->name, strlen(t->name));
        tp_buf_addf(out, ":{\"dtype\":\"%s\",\"shape\":[", tp_safetensors_dtype_name(t->dtype));
        for (int k = 0; k < t->rank; k++)
            tp_buf_addf(out, "%s%lld", k ? "," : "", (long long)t->dim[k]);
        tp_buf_addf(out, "],\"data_offsets\":[%zu,%zu]}", at, end);
        at = end;
    }
    tp_buf_addc(out, '}');
    while (out->len % 8)
        tp_buf_addc(out, ' ');
    return TP_OK;
}

/* In pieces: what a device holds is read, what has another type is converted. */
static tp_status write_tensor(tp_writer *w, const tp_tensor_out *t, void *raw, float *wide,
                              void *narrow, tp_error *err)
{
    size_t n;
    TP_TRY(count_elements(t, &n, err));
    size_t src_size = tp_dtype_size(t->src_dtype), dst_size = tp_dtype_size(t->dtype);
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t count = TP_MIN(n - i, (size_t)CHUNK);
        const void *values = raw;
        if (t->read)
            TP_TRY(t->read(t->source, i * src_size, raw, count * src_size, err));
        else
            values = (const char *)t->source + i * src_size;
        if (t->dtype != t->src_dtype) {
            if (t->src_dtype != TP_DTYPE_F32) {
                (void)tp_convert_to_f32(values, t->src_dtype, wide, count);
                values = wide;
            }
            tp_convert_from_f32(values, t->dtype, narrow, count);
            values = narrow;
        }
        TP_TRY(tp_writer_write(w, values, count * dst_size, err));
    }
    return TP_OK;
}

static tp_status write_all(tp_writer *w, const tp_buf *header, const tp_tensor_out **sorted,
                           size_t n, void *scratch, tp_error *err)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header->len >> (8 * i));
    TP_TRY(tp_writer_write(w, length, sizeof length, err));
    TP_TRY(tp_writer_write(w, header->data, header->len, err));
    double *raw = scratch;
    float *wide = (float *)(void *)(raw + CHUNK);
    for (size_t i = 0; i < n; i++)
        TP_TRY(write_tensor(w, sorted[i], raw, wide, wide + CHUNK, err));
    return TP_OK;
}

static tp_status write_file(const char *path, const tp_buf *header, const tp_tensor_out **sorted,
                            size_t n, char *ret_hash, uint64_t *ret_bytes, tp_error *err)
{
    void *scratch = malloc((size_t)CHUNK * (sizeof(double) + sizeof(float) + sizeof(double)));
    if (!scratch)
        return tp_fail(err, TP_ERR_NOMEM, "cannot write %s: out of memory", path);
    tp_writer *w = NULL;
    tp_status status = tp_writer_open(&w, path, err);
    if (status == TP_OK)
        status = write_all(w, header, sorted, n, scratch, err);
    free(scratch);
    if (status != TP_OK) {
        tp_writer_abandon(w);
        return status;
    }
    return tp_writer_close(w, ret_hash, ret_bytes, err);
}

tp_status tp_safetensors_write(const char *path, const tp_tensor_out *tensors, size_t n,
                               char ret_hash[33], uint64_t *ret_bytes, tp_error *err)
{
    const tp_tensor_out **sorted = calloc(n + 1, sizeof *sorted);
    if (!sorted)
        return tp_fail(err, TP_ERR_NOMEM, "cannot write %s: out of memory", path);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &tensors[i];
    tp_buf header = {0};
    tp_status status = check(sorted, n, err);
    if (status == TP_OK) {
        qsort(sorted, n, sizeof *sorted, by_size_and_name);
        status = make_header(sorted, n, &header, err);
    }
    if (status == TP_OK)
        status = write_file(path, &header, sorted, n, ret_hash, ret_bytes, err);
    tp_buf_release(&header);
    free(sorted);
    return status;
}
