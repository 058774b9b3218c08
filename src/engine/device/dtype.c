/* dtype.c - sizes, names and parsing of element types. */
#include "engine/device/dtype.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[TP_DTYPE_COUNT] = {
    [TP_DTYPE_F32] = {"f32", 4}, [TP_DTYPE_BF16] = {"bf16", 2}, [TP_DTYPE_F16] = {"f16", 2},
    [TP_DTYPE_F64] = {"f64", 8}, [TP_DTYPE_I32] = {"i32", 4},   [TP_DTYPE_I64] = {"i64", 8},
    [TP_DTYPE_U8] = {"u8", 1},
};

size_t tp_dtype_size(tp_dtype dtype)
{
    return (unsigned)dtype < TP_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *tp_dtype_name(tp_dtype dtype)
{
    return (unsigned)dtype < TP_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

int tp_dtype_parse(const char *name, tp_dtype *ret_dtype)
{
    for (int i = 0; i < TP_DTYPE_COUNT; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *ret_dtype = (tp_dtype)i;
            return 1;
        }
    return 0;
}
