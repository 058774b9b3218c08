/* safetensors_write.c - tensors written as one safetensors file, by one process or by several. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/platform.h"
#include "engine/device/states.h"
#include "engine/model/convert.h"
#include "engine/model/safetensors.h"
#include "text/json/json.h"

enum { CHUNK = 64 << 10 }; /* elements converted at a time */

TP_ORDER(by_size_and_name, tp_tensor_out *const,
         TP_COMPARE(tp_dtype_size((*y)->dtype), tp_dtype_size((*x)->dtype))
             ?: strcmp((*x)->name, (*y)->name))

TP_ORDER(by_name, tp_tensor_out *const, strcmp((*x)->name, (*y)->name))

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
static tp_status make_header(const tp_tensor_out **sorted, size_t n, tp_buf *out,
                             size_t *ret_data_bytes, tp_error *err)
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
    *ret_data_bytes = at;
    return TP_OK;
}

/* Where what is on its way to the file lies, CHUNK elements of each. */
typedef struct {
    double *raw;
    float *wide;
    void *narrow;
} scratch;

/* In pieces: what a device holds is read, what has another type is converted. */
static tp_status write_elements(tp_writer *w, const tp_tensor_out *t, scratch s, tp_error *err)
{
    size_t src_size = tp_dtype_size(t->src_dtype), dst_size = tp_dtype_size(t->dtype);
    for (size_t i = t->begin; i < t->end; i += CHUNK) {
        size_t count = TP_MIN(t->end - i, (size_t)CHUNK), at = (i - t->source_at) * src_size;
        const void *values = s.raw;
        if (t->read)
            TP_TRY(t->read(t->source, at, s.raw, count * src_size, err));
        else
            values = (const char *)t->source + at;
        if (t->dtype != t->src_dtype) {
            if (t->src_dtype != TP_DTYPE_F32) {
                (void)tp_convert_to_f32(values, t->src_dtype, s.wide, count);
                values = s.wide;
            }
            tp_convert_from_f32(values, t->dtype, s.narrow, count);
            values = s.narrow;
        }
        TP_TRY(tp_writer_write(w, values, count * dst_size, err));
    }
    return TP_OK;
}

static tp_status write_header(tp_writer *w, const tp_buf *header, size_t data_bytes, tp_error *err)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header->len >> (8 * i));
    TP_TRY(tp_writer_write(w, length, sizeof length, err));
    TP_TRY(tp_writer_write(w, header->data, header->len, err));
    return tp_writer_extend(w, sizeof length + header->len + data_bytes, err);
}

static const tp_tensor_out **sort(const tp_tensor_out *tensors, size_t n)
{
    const tp_tensor_out **sorted = tp_new(n + 1, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &tensors[i];
    qsort(sorted, n, sizeof *sorted, by_size_and_name);
    return sorted;
}

tp_status tp_safetensors_frame(const char *path, const tp_tensor_out *tensors, size_t n,
                               tp_error *err)
{
    TP_FREED const tp_tensor_out **sorted = sort(tensors, n);
    TP_OWN(tp_buf) header = {0};
    size_t data_bytes = 0;
    tp_writer *w;
    TP_TRY(check(sorted, n, err));
    qsort(sorted, n, sizeof *sorted, by_size_and_name);
    TP_TRY(make_header(sorted, n, &header, &data_bytes, err));
    TP_TRY(tp_writer_open(&w, path, err));
    return tp_writer_end(w, write_header(w, &header, data_bytes, err), err);
}

tp_tensor_out tp_tensor_out_of(const tp_tensor *state, const char *name, tp_dtype dtype,
                               tp_shard among)
{
    bool is_sliced = tp_is_sliced(state);
    bool is_everywhere = !is_sliced && !state->keeps_part && state->shard.count <= 1;
    tp_tensor_out out = {.name = name,
                         .dtype = dtype,
                         .rank = state->rank,
                         .dim = {tp_tensor_dim(state, 0), tp_tensor_dim(state, 1)},
                         .source = state,
                         .src_dtype = state->dtype,
                         .read = tp_tensor_read_held,
                         .end = tp_tensor_count(state),
                         .slice = is_sliced ? state : NULL};
    if (is_everywhere)
        out.among = among;
    else
        tp_tensor_share(state, out.end, among, &out.begin, &out.end);
    return out;
}

static tp_status fill_range(tp_writer *w, const tp_tensor_out *t, uint64_t offset, scratch s,
                            tp_error *err)
{
    size_t size = tp_dtype_size(t->dtype);
    uint64_t at = offset + t->begin * size, end = offset + t->end * size;
    tp_tensor_out part = *t;
    while (at < end) {
        uint64_t piece = at / TP_FILE_PIECE, behind = TP_MIN(end, (piece + 1) * TP_FILE_PIECE);
        part.begin = (at - offset) / size;
        part.end = (behind - offset) / size;
        at = behind;
        if (t->among.count > 1 && piece % (uint64_t)t->among.count != (uint64_t)t->among.index)
            continue;
        TP_TRY(tp_writer_go_to(w, offset + part.begin * size, err));
        TP_TRY(write_elements(w, &part, s, err));
    }
    return TP_OK;
}

static tp_status fill_slice(tp_writer *w, const tp_tensor_out *t, uint64_t offset, scratch s,
                            tp_error *err)
{
    tp_slice_run run;
    size_t at = t->begin;
    tp_tensor_out part = *t;
    while (tp_slice_next_held(t->slice, &at, t->end, &run)) {
        part.begin = run.at;
        part.end = run.at + run.n;
        part.source_at = run.at - run.own;
        TP_TRY(fill_range(w, &part, offset, s, err));
    }
    return TP_OK;
}

static tp_status fill_tensor(const tp_safetensors *st, tp_writer *w, const tp_tensor_out *t,
                             scratch s, tp_error *err)
{
    const tp_tensor_entry *e = tp_safetensors_find(st, t->name);
    size_t size = tp_dtype_size(t->dtype);
    if (!e || !e->is_known || e->dtype != t->dtype || t->end > e->bytes / size)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' has no place for tensor '%.200s'",
                       tp_safetensors_name(st), t->name);
    return t->slice ? fill_slice(w, t, tp_safetensors_offset(st, e), s, err)
                    : fill_range(w, t, tp_safetensors_offset(st, e), s, err);
}

static tp_status fill(const tp_safetensors *st, const tp_tensor_out **sorted, size_t n, scratch s,
                      tp_error *err)
{
    tp_writer *w;
    tp_status status = TP_OK;
    TP_TRY(tp_writer_open_inside(&w, tp_safetensors_name(st), err));
    for (size_t i = 0; i < n && status == TP_OK; i++)
        if (sorted[i]->end > sorted[i]->begin)
            status = fill_tensor(st, w, sorted[i], s, err);
    return tp_writer_end(w, status, err);
}

tp_status tp_safetensors_fill(const char *path, const tp_tensor_out *tensors, size_t n,
                              tp_error *err)
{
    tp_safetensors *st;
    TP_TRY(tp_safetensors_open(path, &st, err));
    TP_FREED double *raw =
        malloc((size_t)CHUNK * (sizeof(double) + sizeof(float) + sizeof(double)));
    float *wide = (float *)(void *)(raw + CHUNK);
    TP_HAVE(raw);
    TP_FREED const tp_tensor_out **sorted = sort(tensors, n);
    tp_status status = fill(st, sorted, n, (scratch){raw, wide, wide + CHUNK}, err);
    tp_safetensors_close(st);
    return status;
}

tp_status tp_safetensors_write(const char *path, const tp_tensor_out *tensors, size_t n,
                               tp_error *err)
{
    TP_TRY(tp_safetensors_frame(path, tensors, n, err));
    TP_FREED tp_tensor_out *whole = tp_new(n + 1, sizeof *whole);
    for (size_t i = 0; i < n; i++) {
        whole[i] = tensors[i];
        TP_TRY(count_elements(&tensors[i], &whole[i].end, err));
    }
    return tp_safetensors_fill(path, whole, n, err);
}
