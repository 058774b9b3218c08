/* test_safetensors.c - safetensors: reading, writing, damage. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strings.h"
#include "engine/model/convert.h"
#include "engine/model/safetensors.h"
#include "engine/model/shards.h"

/* A file image: length, header, `data_bytes` bytes of 0, 1, 2, ... */
static tp_buf image(const char *header, size_t data_bytes)
{
    tp_buf buf = {0};
    uint64_t n = strlen(header);
    tp_buf_add(&buf, &n, 8);
    tp_buf_adds(&buf, header);
    for (size_t i = 0; i < data_bytes; i++)
        tp_buf_addc(&buf, (char)i);
    return buf;
}

static void refuse_bytes(const char *bytes, size_t n, const char *message)
{
    tp_safetensors *st = NULL;
    tp_error err = {0};

    tp_status status = tp_safetensors_parse("x.safetensors", bytes, n, &st, &err);

    assert_int_not_equal(status, TP_OK);
    assert_null(st);
    assert_string_equal(err.message, message);
}

static void refuse(const char *header, size_t data_bytes, const char *message)
{
    tp_buf buf = image(header, data_bytes);
    refuse_bytes(buf.data, buf.len, message);
    tp_buf_release(&buf);
}

static void reads_entries_in_the_order_of_the_data(void **state)
{
    tp_buf buf = image("{\"__metadata__\":{\"format\":\"pt\",\"k\":\"\\u00e9\"},"
                       "\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[4,12]},"
                       "\"e\":{\"dtype\":\"I8\",\"shape\":[0,7],\"data_offsets\":[4,4]},"
                       "\"a\":{\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"I32\"}}   ",
                       12);
    tp_safetensors *st;
    assert_int_equal(tp_safetensors_parse("x", buf.data, buf.len, &st, NULL), TP_OK);

    assert_int_equal(tp_safetensors_count(st), 3);
    assert_string_equal(tp_safetensors_at(st, 0)->name, "a");
    assert_string_equal(tp_safetensors_at(st, 1)->name, "e");
    const tp_tensor_entry *b = tp_safetensors_find(st, "b");
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->dim[1], 2);
    assert_true(b->is_known);
    assert_int_equal(b->dtype, TP_DTYPE_F32);
    assert_int_equal(b->bytes, 8);
    assert_int_equal(*(const char *)b->data, 4);
    assert_false(tp_safetensors_find(st, "e")->is_known);
    assert_int_equal(tp_safetensors_find(st, "a")->rank, 0);
    assert_null(tp_safetensors_find(st, "c"));
    assert_null(tp_safetensors_at(st, 3));
    tp_safetensors_close(st);
    tp_buf_release(&buf);
}

static void dtypes_without_use_are_kept_by_name(void **state)
{
    tp_buf buf = image("{\"a\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2);
    tp_safetensors *st;
    assert_int_equal(tp_safetensors_parse("x", buf.data, buf.len, &st, NULL), TP_OK);

    assert_false(tp_safetensors_at(st, 0)->is_known);
    assert_string_equal(tp_safetensors_at(st, 0)->dtype_name, "F4");
    tp_safetensors_close(st);
    tp_buf_release(&buf);
}

static void unknown_dtypes_are_refused(void **state)
{
    refuse(
        "{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
        "x.safetensors: tensor 'a': \"f32\" is no dtype of safetensors; save the file again with "
        "its library");
    refuse("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2,
           "x.safetensors: tensor 'a': shape and dtype F4 make no whole bytes");
    refuse("{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
           "x.safetensors: tensor 'a': shape and dtype F6_E2M3 make 3 bytes, data_offsets 4");
}

static void what_the_reference_passes_over_is_passed_over(void **state)
{
    tp_buf buf = image("{\"__metadata__\":null,\"a\":{\"scale\":{\"dtype\":[1]},\"dtype\":\"U8\","
                       "\"shape\":[1],\"data_offsets\":[0,1],\"note\":\"x\"}}",
                       1);
    tp_safetensors *st;
    assert_int_equal(tp_safetensors_parse("x", buf.data, buf.len, &st, NULL), TP_OK);
    assert_int_equal(tp_safetensors_find(st, "a")->bytes, 1);
    tp_safetensors_close(st);
    tp_buf_release(&buf);
}

static void wrong_lengths_are_refused(void **state)
{
    char bytes[16] = {0};

    refuse_bytes(bytes, 0,
                 "x.safetensors: 0 bytes are too few for a safetensors file; it is empty or cut "
                 "short");
    refuse_bytes(bytes, 7,
                 "x.safetensors: 7 bytes are too few for a safetensors file; it is empty or cut "
                 "short");
    refuse_bytes(bytes, 8, "x.safetensors: the header must begin with '{'");
    bytes[0] = 7;
    refuse_bytes(bytes, 16, "x.safetensors: the header must begin with '{'");
    bytes[0] = 9;
    refuse_bytes(bytes, 16,
                 "x.safetensors: the header of 9 bytes does not fit into the file of 16; it is cut "
                 "short");
    bytes[7] = (char)0x80;
    refuse_bytes(bytes, 16,
                 "x.safetensors: a header of 9223372036854775817 bytes is above the limit of "
                 "100000000; is this a safetensors file?");
}

static void holes_and_overlaps_are_refused(void **state)
{
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]}}", 5,
           "x.safetensors: bytes 0 to 1 of the data, before tensor 'a', belong to no tensor");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
           7, "x.safetensors: tensors 'a' and 'b' overlap at byte 3 of the data");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 5,
           "x.safetensors: the tensors end at byte 4 of the data, the file at byte 5");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 3,
           "x.safetensors: tensor 'a' ends at byte 4 of 3; the file is cut short or the header is "
           "wrong");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}}", 4,
           "x.safetensors: tensor 'a' ends at 0 before it begins at 4");
    refuse("{}", 1, "x.safetensors: the tensors end at byte 0 of the data, the file at byte 1");
}

static void wrong_sizes_are_refused(void **state)
{
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
           "x.safetensors: tensor 'a': shape and dtype F32 make 8 bytes, data_offsets 4");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[4398046511105,4398046511104],"
           "\"data_offsets\":[0,4]}}",
           4, "x.safetensors: tensor 'a': the product of its shape overflows 64 bits");
    refuse("{\"a\":{\"dtype\":\"F4\",\"shape\":[4398046511105,4398046511104],"
           "\"data_offsets\":[0,4]}}",
           4, "x.safetensors: tensor 'a': the product of its shape overflows 64 bits");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]}}", 4,
           "x.safetensors:1:29: tensor 'a': \"shape\" must hold integers from 0 to 2^63-1, not "
           "'-4'");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4.0],\"data_offsets\":[0,4]}}", 4,
           "x.safetensors:1:29: tensor 'a': \"shape\" must hold integers from 0 to 2^63-1, not "
           "'4.0'");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808],\"data_offsets\":[0,4]}}", 4,
           "x.safetensors:1:29: tensor 'a': \"shape\" must hold integers from 0 to 2^63-1, not "
           "'9223372036854775808'");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
           "x.safetensors:1:45: tensor 'a': \"shape\" has more than 8 numbers");
}

static void malformed_headers_are_refused(void **state)
{
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
           "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
           2, "x.safetensors: tensor 'a' appears twice");
    refuse("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
           "x.safetensors:1:20: tensor 'a': \"dtype\" appears twice");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 0,
           "x.safetensors:1:31: tensor 'a': \"data_offsets\" is missing");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
           "x.safetensors:1:49: tensor 'a': \"data_offsets\" needs two numbers");
    refuse("{\"a\":{\"scale\":1}}", 0, "x.safetensors:1:16: tensor 'a': \"dtype\" is missing");
    refuse("{\"a\":7}", 0, "x.safetensors:1:6: tensor 'a': must be an object");
    refuse("{\"a\\u0000b\":{}}", 0, "x.safetensors:1:2: a name contains a NUL byte");
    refuse("{\"__metadata__\":{\"k\":1}}", 0,
           "x.safetensors:1:22: \"__metadata__\": \"k\" must be a string");
    refuse("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0,
           "x.safetensors: \"__metadata__\": \"k\" appears twice");
    refuse("{\"__metadata__\":{},\"__metadata__\":{}}", 0,
           "x.safetensors:1:20: \"__metadata__\" appears twice");
}

static void text_that_is_not_utf8_or_not_json_is_refused(void **state)
{
    tp_safetensors *st = NULL;
    tp_error err = {0};
    tp_buf bad = image("{\"\xff\":{}}", 0), trailing = image("{}{}", 0), open = image("{\"a\":", 0);

    assert_int_equal(tp_safetensors_parse("x", bad.data, bad.len, &st, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "UTF-8"));
    assert_int_equal(tp_safetensors_parse("x", trailing.data, trailing.len, &st, &err),
                     TP_ERR_FORMAT);
    assert_int_equal(tp_safetensors_parse("x", open.data, open.len, &st, &err), TP_ERR_FORMAT);
    assert_null(st);
    tp_buf_release(&bad);
    tp_buf_release(&trailing);
    tp_buf_release(&open);
}

static void many_tensors_are_read_and_found(void **state)
{
    enum { N = 100000 };
    tp_buf header = {0};
    tp_buf_addc(&header, '{');
    for (int i = 0; i < N; i++)
        tp_buf_addf(&header, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                    i ? "," : "", i);
    tp_buf_addc(&header, '}');
    tp_buf buf = image(header.data, 0);
    tp_safetensors *st;

    assert_int_equal(tp_safetensors_parse("x", buf.data, buf.len, &st, NULL), TP_OK);

    assert_int_equal(tp_safetensors_count(st), N);
    assert_non_null(tp_safetensors_find(st, "t99999"));
    assert_null(tp_safetensors_find(st, "t100000"));
    tp_safetensors_close(st);
    tp_buf_release(&buf);
    tp_buf_release(&header);
}

static char folder[] = "/tmp/temper-safetensors-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/out", folder);
    return 0;
}

static int remove_folder(void **state) { return tp_dir_remove(folder, NULL) != TP_OK; }

static void written_bytes_are_those_of_the_format(void **state)
{
    static const float one[] = {1, -2};
    static const int64_t index[] = {3};
    static const tp_tensor_out tensors[] = {
        {.name = "z",
         .dtype = TP_DTYPE_F32,
         .rank = 1,
         .dim = {2},
         .source = one,
         .src_dtype = TP_DTYPE_F32},
        {.name = "halves",
         .dtype = TP_DTYPE_BF16,
         .rank = 2,
         .dim = {1, 2},
         .source = one,
         .src_dtype = TP_DTYPE_F32},
        {.name = "a\"",
         .dtype = TP_DTYPE_F32,
         .rank = 0,
         .dim = {0},
         .source = one,
         .src_dtype = TP_DTYPE_F32},
        {.name = "n",
         .dtype = TP_DTYPE_I64,
         .rank = 1,
         .dim = {1},
         .source = index,
         .src_dtype = TP_DTYPE_I64},
    };
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"n\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
        "\"a\\\"\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]},"
        "\"z\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]},"
        "\"halves\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[20,24]}}      ";
    static const unsigned char data[] = {3, 0, 0,    0,    0, 0, 0, 0,    0,    0,    0x80, 0x3f,
                                         0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0x80, 0x3f, 0,    0xc0};

    assert_int_equal(tp_safetensors_write(path, tensors, 4, NULL), TP_OK);

    tp_buf file = {0};
    assert_int_equal(tp_file_read(path, 0, &file, NULL), TP_OK);
    assert_int_equal((sizeof header - 1) % 8, 0);
    assert_int_equal(file.len, 8 + sizeof header - 1 + sizeof data);
    assert_int_equal((unsigned char)file.data[0] | (unsigned char)file.data[1] << 8,
                     sizeof header - 1);
    assert_memory_equal(file.data + 8, header, sizeof header - 1);
    assert_memory_equal(file.data + 8 + sizeof header - 1, data, sizeof data);
    tp_buf_release(&file);
}

static void writing_refuses_what_cannot_be_written(void **state)
{
    static const float x[] = {1};
    tp_tensor_out twice[] = {{.name = "a",
                              .dtype = TP_DTYPE_F32,
                              .rank = 1,
                              .dim = {1},
                              .source = x,
                              .src_dtype = TP_DTYPE_F32},
                             {.name = "a",
                              .dtype = TP_DTYPE_F32,
                              .rank = 1,
                              .dim = {1},
                              .source = x,
                              .src_dtype = TP_DTYPE_F32}};
    tp_tensor_out mixed = {.name = "a",
                           .dtype = TP_DTYPE_I32,
                           .rank = 1,
                           .dim = {1},
                           .source = x,
                           .src_dtype = TP_DTYPE_F32};
    tp_error err;

    assert_int_equal(tp_safetensors_write(path, twice, 2, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "tensor name 'a' is taken");
    assert_int_equal(tp_safetensors_write(path, &mixed, 1, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "tensor 'a' cannot be converted from f32 to i32");
}

static void halves_are_converted_exactly(void **state)
{
    /* smallest subnormal, largest subnormal, smallest normal, 1, largest, -0, inf */
    static const uint16_t half[] = {0x0001, 0x03ff, 0x0400, 0x3c00, 0x7bff, 0x8000, 0x7c00};
    static const float value[] = {0x1p-24f, 0x3ffp-24f, 0x1p-14f, 1, 65504, -0.0f, HUGE_VALF};
    float wide[7];
    uint16_t back[7];

    assert_false(tp_convert_to_f32(half, TP_DTYPE_F16, wide, 7)); /* the infinity */
    tp_convert_from_f32(wide, TP_DTYPE_F16, back, 7);

    assert_memory_equal(wide, value, sizeof value);
    assert_memory_equal(back, half, sizeof half);
    assert_true(tp_convert_to_f32(half, TP_DTYPE_F16, wide, 6));
}

static void every_half_survives_a_round_trip(void **state)
{
    for (uint32_t i = 0; i < 0x10000; i++) {
        uint16_t half = (uint16_t)i, back;
        float wide;
        bool finite = tp_convert_to_f32(&half, TP_DTYPE_F16, &wide, 1);
        tp_convert_from_f32(&wide, TP_DTYPE_F16, &back, 1);

        assert_int_equal(finite, (i & 0x7c00) != 0x7c00);
        bool is_signalling = (i & 0x7e00) == 0x7c00 && (i & 0x1ff);
        assert_int_equal(back, is_signalling ? i | 0x200 : i);
    }
}

static void halves_round_to_nearest_even(void **state)
{
    static const float value[] = {1 + 0x1p-11f, 1 + 0x3p-11f, 65519.996f, 65520,
                                  0x1p-25f,     0x3p-25f,     0x1.8p-25f, -1e30f};
    static const uint16_t half[] = {0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0000, 0x0002, 0x0001, 0xfc00};
    uint16_t out[8];

    tp_convert_from_f32(value, TP_DTYPE_F16, out, 8);

    assert_memory_equal(out, half, sizeof half);
}

static void nonfinite_values_are_found_anywhere(void **state)
{
    enum { N = 5000 };
    static float source[N], out[N];
    static const float bad[] = {HUGE_VALF, -HUGE_VALF, NAN};

    assert_true(tp_convert_to_f32(source, TP_DTYPE_F32, out, N));
    for (int i = 0; i < N; i += 617) {
        source[i] = bad[i % 3];
        assert_false(tp_convert_to_f32(source, TP_DTYPE_F32, out, N));
        source[i] = 3.4e38f;
        assert_true(tp_convert_to_f32(source, TP_DTYPE_F32, out, N));
    }
    double huge = 1e300;
    assert_false(tp_convert_to_f32(&huge, TP_DTYPE_F64, out, 1));
}

static tp_status count(void *context, const char *tensor, const char *file, tp_error *err)
{
    ++*(int *)context;
    return TP_OK;
}

static void refuse_index(const char *text, const char *message)
{
    int n = 0;
    tp_error err = {0};
    tp_status status = tp_shards_parse_index("i.json", text, strlen(text), count, &n, &err);
    assert_int_not_equal(status, TP_OK);
    assert_string_equal(err.message, message);
}

static void an_index_names_plain_files(void **state)
{
    const char *good = "{\"metadata\":{},\"weight_map\":{\"a\":\"m-1.safetensors\"}}";
    int n = 0;

    assert_int_equal(tp_shards_parse_index("i", good, strlen(good), count, &n, NULL), TP_OK);
    assert_int_equal(n, 1);
    refuse_index("{\"weight_map\":{\"a\":\"../m\"}}",
                 "i.json:1: tensor 'a' must be in a plain file name, not \"../m\"");
    refuse_index("{\"weight_map\":{\"a\":\"x/m\"}}",
                 "i.json:1: tensor 'a' must be in a plain file name, not \"x/m\"");
    refuse_index("{\"weight_map\":{\"a\":1}}",
                 "i.json:1: tensor 'a' must be in a plain file name, not \"(not a string)\"");
    refuse_index("{}", "i.json: expected \"weight_map\", an object from tensor to file");
}

static void put(const char *name, const char *text, size_t n)
{
    tp_buf file = {0};
    tp_buf_addf(&file, "%s/%s", folder, name);
    assert_int_equal(tp_file_write_atomic(file.data, text, n, NULL), TP_OK);
    tp_buf_release(&file);
}

static void all_that_an_index_lacks_is_listed_at_once(void **state)
{
    tp_buf one = image("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    static const char lacks_files[] = "{\"weight_map\":{\"a\":\"s1\",\"b\":\"s2\",\"c\":\"s3\"}}";
    static const char lacks_tensors[] = "{\"weight_map\":{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s1\"}}";
    char want[200];
    tp_shards shards;
    tp_error err = {0};
    put("s1", one.data, one.len);

    put("model.safetensors.index.json", lacks_files, sizeof lacks_files - 1);
    assert_int_equal(tp_shards_open(folder, &shards, &err), TP_ERR_IO);
    snprintf(want, sizeof want,
             "%s: 2 of 3 weight files are missing: s2, s3; download the folder again", folder);
    assert_string_equal(err.message, want);

    put("model.safetensors.index.json", lacks_tensors, sizeof lacks_tensors - 1);
    assert_int_equal(tp_shards_open(folder, &shards, &err), TP_ERR_FORMAT);
    snprintf(want, sizeof want, "%s: 2 tensors of the index are not in the files it names: b, c",
             folder);
    assert_string_equal(err.message, want);
    tp_buf_release(&one);
}

/* The file is sparse: 4.8 GB long, one page of it on the disk. */
static void tensors_beyond_4_gib_are_read_at_their_offset(void **state)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1200000000,1],\"data_offsets\":[0,4800000000]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4800000000,4800000008]}}";
    const uint64_t n = sizeof header - 1;
    const float last = 7, values[] = {1.5F, -3};
    const off_t body = (off_t)(8 + n), b_at = body + 4800000000;
    tp_safetensors *st;
    tp_error err = {0};
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_int_equal(pwrite(fd, &n, 8, 0), 8);
    assert_int_equal(pwrite(fd, header, n, 8), n);
    assert_int_equal(pwrite(fd, &last, 4, b_at - 4), 4);
    assert_int_equal(pwrite(fd, values, 8, b_at), 8);
    assert_int_equal(close(fd), 0);
    if (tp_safetensors_open(path, &st, &err) != TP_OK)
        fail_msg("%s", err.message);

    const tp_tensor_entry *a = tp_safetensors_find(st, "a"), *b = tp_safetensors_find(st, "b");
    float got[2];
    assert_int_equal(a->bytes, 4800000000);
    memcpy(got, (const char *)a->data + a->bytes - 4, 4);
    assert_float_equal(got[0], 7, 0);
    memcpy(got, b->data, sizeof got);
    assert_float_equal(got[0], 1.5, 0);
    assert_float_equal(got[1], -3, 0);
    tp_safetensors_close(st);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_entries_in_the_order_of_the_data),
        cmocka_unit_test(dtypes_without_use_are_kept_by_name),
        cmocka_unit_test(unknown_dtypes_are_refused),
        cmocka_unit_test(what_the_reference_passes_over_is_passed_over),
        cmocka_unit_test(wrong_lengths_are_refused),
        cmocka_unit_test(holes_and_overlaps_are_refused),
        cmocka_unit_test(wrong_sizes_are_refused),
        cmocka_unit_test(malformed_headers_are_refused),
        cmocka_unit_test(text_that_is_not_utf8_or_not_json_is_refused),
        cmocka_unit_test(many_tensors_are_read_and_found),
        cmocka_unit_test(written_bytes_are_those_of_the_format),
        cmocka_unit_test(writing_refuses_what_cannot_be_written),
        cmocka_unit_test(halves_are_converted_exactly),
        cmocka_unit_test(every_half_survives_a_round_trip),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(nonfinite_values_are_found_anywhere),
        cmocka_unit_test(an_index_names_plain_files),
        cmocka_unit_test(tensors_beyond_4_gib_are_read_at_their_offset),
        cmocka_unit_test(all_that_an_index_lacks_is_listed_at_once),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
