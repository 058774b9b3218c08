/* test_cache.c - token caches: building, opening, damage. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "engine/data/cache.h"
#include "sample_file.h"

static char path[64];
static tp_error err;
static const int lengths[] = {1, 9, 300};

static int make_path(void **state)
{
    snprintf(path, sizeof path, "/tmp/temper-cache-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int remove_path(void **state) { return unlink(path); }

static void make_file(tp_cache *cache)
{
    assert_int_equal(sample_file_make(path, lengths, 3, 2, cache), 0);
}

static void expect_refused(const char *key, const char *message)
{
    char expected[200];
    tp_cache cache;
    snprintf(expected, sizeof expected, "%s%s", path, message);
    assert_int_equal(tp_cache_open(path, key, &cache, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, expected);
}

static void flip_byte(long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
    fputc(c ^ 0x40, f);
    assert_int_equal(fclose(f), 0);
}

static void what_is_written_is_read(void **state)
{
    tp_cache cache;
    tp_sample s;
    make_file(&cache);

    assert_int_equal(cache.counts.n_examples, 3);
    assert_int_equal(cache.counts.n_tokens, 310);
    assert_true(cache.wide);
    for (uint64_t i = 0; i < 3; i++) {
        int32_t ids[300];
        assert_int_equal(tp_cache_get(&cache, i, &s, NULL), TP_OK);
        assert_int_equal(s.n_tokens, lengths[i]);
        assert_int_equal(s.n_targets, lengths[i] > 2 ? lengths[i] - 2 : 0);
        assert_int_equal(s.line, i + 1);
        tp_sample_tokens(&cache, &s, ids, s.n_tokens);
        for (size_t k = 0; k < s.n_tokens; k++) {
            assert_int_equal(ids[k], 1000 * i + k);
            assert_int_equal(tp_sample_mask(&s, k), k >= 2);
        }
    }
    tp_cache_close(&cache);
}

static void small_vocabularies_take_two_bytes(void **state)
{
    const int32_t ids[] = {0, 65535, 7};
    const uint8_t mask[] = {0, 1, 0};
    tp_buf record = {0};
    tp_cache_writer writer;
    tp_cache cache;
    tp_sample s;
    int32_t back[3];
    uint32_t size = (uint32_t)tp_cache_encode(&record, ids, mask, 3, false, 12);
    assert_int_equal(size, 24 + 8); /* 3 tokens of 2 bytes, a byte of mask, 1 of padding */
    assert_int_equal(tp_cache_writer_open(path, SAMPLE_KEY, false, &writer, NULL), TP_OK);
    assert_int_equal(tp_cache_writer_add(&writer, &record, &size, 1, NULL), TP_OK);
    assert_int_equal(tp_cache_writer_close(&writer, &(tp_cache_counts){0}, NULL), TP_OK);

    assert_int_equal(tp_cache_open(path, SAMPLE_KEY, &cache, NULL), TP_OK);

    assert_int_equal(tp_cache_get(&cache, 0, &s, NULL), TP_OK);
    tp_sample_tokens(&cache, &s, back, 3);
    assert_memory_equal(back, ids, sizeof ids);
    assert_int_equal(s.n_targets, 1);
    assert_int_equal(s.line, 12);
    tp_cache_close(&cache);
    tp_buf_release(&record);
}

static void foreign_files_are_refused(void **state)
{
    tp_cache cache;
    make_file(&cache);
    tp_cache_close(&cache);
    expect_refused("ffffffffffffffffffffffffffffffff", " holds other data than its name says");
    flip_byte(0);
    expect_refused(SAMPLE_KEY, " is not a token cache");
    flip_byte(0);
    flip_byte(8);
    expect_refused(SAMPLE_KEY, " is a token cache of version 68, this is version 4");
    flip_byte(8);
    assert_int_equal(tp_cache_open(path, SAMPLE_KEY, &cache, NULL), TP_OK);
    tp_cache_close(&cache);
}

static void damage_is_found_when_opening(void **state)
{
    tp_cache cache;
    make_file(&cache);
    uint64_t index_at = cache.offsets[3];
    tp_cache_close(&cache);
    flip_byte(-1);
    expect_refused(SAMPLE_KEY, " is cut short: its last bytes are missing");
    flip_byte(-1);
    flip_byte(-100);
    expect_refused(SAMPLE_KEY, " is damaged: its foot fails its checksum");
    flip_byte(-100);
    flip_byte((long)index_at + 8);
    expect_refused(SAMPLE_KEY, " is damaged: its index fails its checksum");
}

static void truncation_anywhere_is_found(void **state)
{
    struct stat st;
    tp_cache cache;
    make_file(&cache);
    tp_cache_close(&cache);
    assert_int_equal(stat(path, &st), 0);
    for (off_t size = st.st_size - 1; size >= 0; size -= 7) {
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(tp_cache_open(path, NULL, &cache, &err), TP_ERR_FORMAT);
    }
}

static void damage_in_a_record_is_found_when_reading_it(void **state)
{
    tp_cache cache;
    tp_sample s;
    make_file(&cache);
    uint64_t begin = cache.offsets[1], end = cache.offsets[2];
    tp_cache_close(&cache);
    /* 9 tokens of 4 bytes and 2 bytes of mask; what follows is padding. */
    for (uint64_t at = begin; at < begin + 24 + 36 + 2 && at < end; at++) {
        flip_byte((long)at);
        assert_int_equal(tp_cache_open(path, SAMPLE_KEY, &cache, NULL), TP_OK);
        assert_int_equal(tp_cache_get(&cache, 0, &s, NULL), TP_OK);
        assert_int_equal(tp_cache_get(&cache, 1, &s, &err), TP_ERR_FORMAT);
        assert_int_equal(tp_cache_get(&cache, 2, &s, NULL), TP_OK);
        tp_cache_close(&cache);
        flip_byte((long)at);
    }
}

static void an_abandoned_file_is_no_cache(void **state)
{
    tp_cache_writer writer;
    tp_cache cache;
    assert_int_equal(tp_cache_writer_open(path, SAMPLE_KEY, false, &writer, NULL), TP_OK);
    tp_cache_writer_abandon(&writer);
    assert_int_equal(tp_cache_open(path, NULL, &cache, &err), TP_ERR_FORMAT);
    tp_cache_writer_abandon(&writer);
}

static void a_failed_write_is_an_error(void **state)
{
    for (uint64_t n = 1; n <= 3; n++) { /* create, write, sync */
        tp_cache cache = {0};
        tp_fault_arm(n, false);
        assert_int_not_equal(sample_file_make(path, lengths, 3, 2, &cache), 0);
        tp_fault_arm(0, false);
    }
}

static void put_at(int fd, const void *bytes, size_t n, uint64_t at)
{
    assert_int_equal(pwrite(fd, bytes, n, (off_t)at), n);
}

/* Two examples of 1.2e9 tokens, all 0, and one of three behind them, in a sparse file.  The
 * writer makes head, index and foot for those sizes; they are moved to where they belong. */
static void more_tokens_than_31_bits_are_counted_and_read(void **state)
{
    enum { HEAD = 64, RECORD_HEAD = 24 };
    const uint32_t many = 1200000000, big = RECORD_HEAD + 2550000000;
    const int32_t ids[] = {5, 6, 65535};
    const uint8_t mask[] = {0, 1, 1};
    struct {
        uint32_t n_tokens, n_targets;
        uint64_t line, check;
    } head = {.n_tokens = many, .line = 1};
    tp_buf small = {0}, written = {0};
    tp_cache_writer writer;
    tp_cache cache;
    tp_sample s;
    int32_t back[3];
    uint32_t sizes[3] = {big, big, (uint32_t)tp_cache_encode(&small, ids, mask, 3, false, 9)};
    assert_int_equal(tp_cache_writer_open(path, SAMPLE_KEY, false, &writer, NULL), TP_OK);
    assert_int_equal(tp_cache_writer_add(&writer, &small, sizes, 3, NULL), TP_OK);
    const tp_cache_counts counts = {.n_tokens = 2 * (uint64_t)many + 3, .n_targets = 2};
    assert_int_equal(tp_cache_writer_close(&writer, &counts, NULL), TP_OK);
    assert_int_equal(tp_file_read(path, 1 << 20, &written, NULL), TP_OK);

    int fd = open(path, O_RDWR | O_TRUNC);
    size_t tail = HEAD + small.len;
    put_at(fd, written.data, HEAD, 0);
    put_at(fd, &head, sizeof head, HEAD);
    put_at(fd, &head, sizeof head, HEAD + (uint64_t)big);
    put_at(fd, small.data, small.len, HEAD + 2 * (uint64_t)big);
    put_at(fd, written.data + tail, written.len - tail, HEAD + 2 * (uint64_t)big + small.len);
    assert_int_equal(close(fd), 0);

    if (tp_cache_open(path, SAMPLE_KEY, &cache, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(cache.counts.n_tokens, 2400000003);
    assert_int_equal(tp_cache_peek(&cache, 1, &s, NULL), TP_OK);
    assert_int_equal(s.n_tokens, many);
    assert_int_equal(((const uint16_t *)s.tokens)[many - 1], 0);
    assert_false(tp_sample_mask(&s, many - 1));
    assert_int_equal(tp_cache_get(&cache, 2, &s, NULL), TP_OK);
    tp_sample_tokens(&cache, &s, back, 3);
    assert_memory_equal(back, ids, sizeof ids);
    assert_int_equal(s.line, 9);
    tp_cache_close(&cache);
    tp_buf_release(&small);
    tp_buf_release(&written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read, make_path, remove_path),
        cmocka_unit_test_setup_teardown(small_vocabularies_take_two_bytes, make_path, remove_path),
        cmocka_unit_test_setup_teardown(foreign_files_are_refused, make_path, remove_path),
        cmocka_unit_test_setup_teardown(damage_is_found_when_opening, make_path, remove_path),
        cmocka_unit_test_setup_teardown(truncation_anywhere_is_found, make_path, remove_path),
        cmocka_unit_test_setup_teardown(damage_in_a_record_is_found_when_reading_it, make_path,
                                        remove_path),
        cmocka_unit_test_setup_teardown(an_abandoned_file_is_no_cache, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_failed_write_is_an_error, make_path, remove_path),
        cmocka_unit_test_setup_teardown(more_tokens_than_31_bits_are_counted_and_read, make_path,
                                        remove_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
