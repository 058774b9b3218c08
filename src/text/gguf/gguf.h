/* gguf.h - the container of llama.cpp: keys with values, and tensors.
 *
 *     "GGUF"  version  number of tensors  number of keys
 *     key, type, value ...
 *     name, dimensions, type, offset ...          of each tensor
 *     padding, then the data, each tensor at a multiple of general.alignment
 *
 * Everything is little-endian.  Versions 2 and 3 are read, which differ in nothing that
 * matters here, and 3 is written.  A file is checked before anything is allocated by what it
 * says: every size against what is left of it, no key and no tensor twice, every tensor inside.
 * Errors name the file and the byte. */
#ifndef TP_TEXT_GGUF_GGUF_H
#define TP_TEXT_GGUF_GGUF_H

#include "base/error.h"
#include "base/strings.h"

/* ---- types of tensors ---- */

typedef enum {
    TP_GGML_F32 = 0,
    TP_GGML_F16 = 1,
    TP_GGML_Q4_0 = 2,
    TP_GGML_Q5_0 = 6,
    TP_GGML_Q5_1 = 7,
    TP_GGML_Q8_0 = 8,
    TP_GGML_Q4_K = 12,
    TP_GGML_Q5_K = 13,
    TP_GGML_Q6_K = 14,
    TP_GGML_BF16 = 30
} tp_ggml_type;

typedef struct {
    const char *name;
    uint32_t type;
    uint32_t block, bytes; /* elements of a block, and what they take */
    bool is_read;          /* Temper turns it into numbers */
} tp_ggml_info;
/* NULL: llama.cpp had no such type when this was written. */
const tp_ggml_info *tp_ggml_info_of(uint32_t type);
/* "F32, F16, ..."; `out` holds at least 128 bytes and is returned. */
char *tp_ggml_readable(char *out);

/* ---- a file read ---- */

typedef enum {
    TP_GGUF_U8,
    TP_GGUF_I8,
    TP_GGUF_U16,
    TP_GGUF_I16,
    TP_GGUF_U32,
    TP_GGUF_I32,
    TP_GGUF_F32,
    TP_GGUF_BOOL,
    TP_GGUF_STRING,
    TP_GGUF_ARRAY,
    TP_GGUF_U64,
    TP_GGUF_I64,
    TP_GGUF_F64
} tp_gguf_type;

typedef struct {
    tp_slice key;
    uint32_t type, item; /* item: of an array */
    uint64_t n;          /* items; 1 for what is no array */
    const char *data;    /* of the first */
    size_t at;           /* where the key stands in the file */
} tp_gguf_value;

typedef struct {
    const char *name; /* NUL-terminated */
    uint32_t type;
    int rank;
    int64_t dim[4]; /* as the file has them: dim[0] is the length of a row */
    size_t at;      /* where it is described */
    const char *data;
    size_t bytes; /* 0: of a type whose size is unknown */
} tp_gguf_tensor;

typedef struct tp_gguf tp_gguf;

/* Does a file begin like one, or is it at least called one?  No for whatever is no file. */
bool tp_gguf_is_file(const char *path);
TP_CHECKED tp_status tp_gguf_open(const char *path, tp_gguf **ret, tp_error *err);
/* The same over memory; the bytes must outlive it. */
TP_CHECKED tp_status tp_gguf_parse(const char *name, const void *data, size_t n, tp_gguf **ret,
                                   tp_error *err);
void tp_gguf_close(tp_gguf *g); /* NULL is a no-op */
const char *tp_gguf_name(const tp_gguf *g);

size_t tp_gguf_key_count(const tp_gguf *g);
const tp_gguf_value *tp_gguf_key_at(const tp_gguf *g, size_t i);      /* in the order of the file */
const tp_gguf_value *tp_gguf_find(const tp_gguf *g, const char *key); /* or NULL */

size_t tp_gguf_tensor_count(const tp_gguf *g);
const tp_gguf_tensor *tp_gguf_tensor_at(const tp_gguf *g, size_t i);
const tp_gguf_tensor *tp_gguf_find_tensor(const tp_gguf *g, const char *name); /* or NULL */

/* Fill *err with "file: byte N: 'key' " and the message. */
tp_status tp_gguf_fail(const tp_gguf *g, const tp_gguf_value *v, tp_status status, tp_error *err,
                       const char *fmt, ...) TP_PRINTF(5, 6);

/* One value, of any type of integer, of float, of string; absent: *ret stays as it is. */
TP_CHECKED tp_status tp_gguf_get_int(const tp_gguf *g, const char *key, int64_t low, int64_t high,
                                     int64_t *ret, tp_error *err);
TP_CHECKED tp_status tp_gguf_get_number(const tp_gguf *g, const char *key, double *ret,
                                        tp_error *err);
TP_CHECKED tp_status tp_gguf_get_bool(const tp_gguf *g, const char *key, bool *ret, tp_error *err);
/* UTF-8 without a NUL byte. */
TP_CHECKED tp_status tp_gguf_get_string(const tp_gguf *g, const char *key, tp_slice *ret,
                                        tp_error *err);
/* An array of this type of item, or NULL when it is absent. */
TP_CHECKED tp_status tp_gguf_get_array(const tp_gguf *g, const char *key, tp_gguf_type item,
                                       const tp_gguf_value **ret, tp_error *err);
/* Item by item: *at is 0 at first. */
tp_slice tp_gguf_next_string(const tp_gguf_value *array, size_t *at);
int64_t tp_gguf_int_at(const tp_gguf_value *array, uint64_t i); /* of integers and bools */

/* ---- a file written ---- */

enum { TP_GGUF_ALIGNMENT = 32 };

typedef struct {
    tp_buf bytes; /* keys and values */
    uint64_t n;
} tp_gguf_keys;

void tp_gguf_put_u32(tp_gguf_keys *k, const char *key, uint32_t value);
void tp_gguf_put_i32(tp_gguf_keys *k, const char *key, int32_t value);
void tp_gguf_put_f32(tp_gguf_keys *k, const char *key, float value);
void tp_gguf_put_bool(tp_gguf_keys *k, const char *key, bool value);
void tp_gguf_put_string(tp_gguf_keys *k, const char *key, tp_slice value);
/* Then exactly `n` items: */
void tp_gguf_put_array(tp_gguf_keys *k, const char *key, tp_gguf_type item, uint64_t n);
void tp_gguf_item_string(tp_gguf_keys *k, tp_slice value);
void tp_gguf_item_i32(tp_gguf_keys *k, int32_t value);

/* All before the data: tensors in this order, each at the next multiple of the alignment.  Of
 * `tensors` name, type, rank and dim are read and bytes is set.  ret_bytes: of the whole file. */
TP_CHECKED tp_status tp_gguf_header(const tp_gguf_keys *k, tp_gguf_tensor *tensors, size_t n,
                                    tp_buf *out, uint64_t *ret_bytes, tp_error *err);

#endif
