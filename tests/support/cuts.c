#include "support/cuts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <isa-l/igzip_lib.h>

#include "base/files.h"
#include "base/rng.h"
#include "support/ingest.h"

/* ---- rows of any kind of file ---- */

static uint64_t rows_of(const tp_trace_file *f)
{
    if (f->events)
        return f->events->n;
    return f->snapshot ? f->snapshot->n_entries + f->snapshot->n_segments : f->timeline->n_rows;
}

static bool has_note_of_a_cut(const tp_trace_file *f)
{
    static const char *const words[] = {"ends in the middle", "ends inside its gzip stream",
                                        "could not be read to their end", "is damaged"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ingest_has_note(&f->notes, words[i]))
            return true;
    return false;
}

/* Nsight keeps rows in pages that may be anywhere in the file: what is left is not the
 * beginning, but every row is one of the whole. */
static void check_events(const tp_events *part, const tp_events *whole, bool is_database)
{
    if (part->counts.skipped_events)
        fail_msg("%llu events were skipped", (unsigned long long)part->counts.skipped_events);
    assert_true(part->counts.truncated);
    assert_true(part->n <= whole->n);
    if (is_database)
        return;
    assert_memory_equal(part->start, whole->start, part->n * sizeof *part->start);
    assert_memory_equal(part->dur, whole->dur, part->n * sizeof *part->dur);
    assert_memory_equal(part->name, whole->name, part->n * sizeof *part->name);
    assert_memory_equal(part->correlation, whole->correlation, part->n * sizeof *part->correlation);
    assert_true(part->n_memory <= whole->n_memory);
    for (size_t i = 0; i < part->n_memory; i++)
        assert_int_equal(part->memory[i].bytes, whole->memory[i].bytes);
}

static void check_snapshot(const tp_snapshot *part, const tp_snapshot *whole)
{
    assert_true(part->n_segments <= whole->n_segments);
    assert_true(part->n_entries <= whole->n_entries);
    for (size_t i = 0; i + 1 < part->n_segments; i++) /* the last may be cut itself */
        assert_int_equal(part->segments[i].total, whole->segments[i].total);
    for (size_t i = 0; i + 1 < part->n_entries; i++)
        assert_int_equal(part->entries[i].size, whole->entries[i].size);
}

static void check_part(const tp_trace_file *part, const tp_trace_file *whole, size_t at)
{
    if (part->kind != whole->kind && part->kind != TP_FILE_CHROME)
        fail_msg("cut at %zu: another kind of file", at);
    if (!has_note_of_a_cut(part))
        fail_msg("cut at %zu: nothing is said", at);
    if (part->events && whole->events)
        check_events(part->events, whole->events, whole->kind == TP_FILE_NSIGHT);
    else if (part->snapshot && whole->snapshot)
        check_snapshot(part->snapshot, whole->snapshot);
    else if (part->timeline && whole->timeline && part->timeline->n_rows)
        assert_memory_equal(part->timeline->rows, whole->timeline->rows,
                            (part->timeline->n_rows - 1) * sizeof *part->timeline->rows);
}

/* ---- cutting and flipping ---- */

static const tp_ingest_options one_thread = {.one_thread = true};

static tp_trace_file *open_whole(const char *name, const tp_buf *all)
{
    tp_trace_file *whole = NULL;
    tp_error err = {0};
    if (tp_trace_open_memory(name, all->data, all->len, &one_thread, &whole, &err) != TP_OK)
        fail_msg("%s", err.message);
    return whole;
}

static void count(tp_cut_result *r, const tp_trace_file *f)
{
    uint64_t rows = f ? rows_of(f) : 0;
    r->n++;
    r->refused += !f;
    if (!f)
        return;
    r->least = r->n - r->refused == 1 || rows < r->least ? rows : r->least;
    r->most = rows > r->most ? rows : r->most;
}

static tp_cut_result cut(const char *path, const tp_buf *all, int n_cuts, uint64_t seed)
{
    tp_trace_file *whole = open_whole(path, all);
    tp_rng rng = tp_rng_make(seed, 0);
    tp_cut_result result = {0};
    for (int i = 0; i < n_cuts; i++) {
        size_t n = (size_t)tp_rng_below(&rng, all->len);
        tp_trace_file *f = NULL;
        tp_error err = {0};
        tp_status status = tp_trace_open_memory(path, all->data, n, &one_thread, &f, &err);
        if (status != TP_OK && (!err.message[0] || n > 65536 + all->len / 50))
            fail_msg("cut at %zu of %zu: refused: %s", n, all->len, err.message);
        if (status == TP_OK)
            check_part(f, whole, n);
        count(&result, f);
        tp_trace_close(f);
    }
    tp_trace_close(whole);
    return result;
}

tp_cut_result ingest_check_cuts(const char *path, int n_cuts, uint64_t seed)
{
    tp_buf all = {0};
    assert_int_equal(tp_file_read(path, 0, &all, NULL), TP_OK);
    tp_cut_result result = cut(path, &all, n_cuts, seed);
    tp_buf_release(&all);
    return result;
}

static void inflate_all(const tp_buf *zipped, tp_buf *ret)
{
    static char window[1 << 20];
    struct inflate_state s;
    isal_inflate_init(&s);
    s.crc_flag = ISAL_GZIP;
    s.next_in = (uint8_t *)zipped->data;
    s.avail_in = (uint32_t)zipped->len;
    do {
        s.next_out = (uint8_t *)window;
        s.avail_out = sizeof window;
        assert_int_equal(isal_inflate(&s), ISAL_DECOMP_OK);
        tp_buf_add(ret, window, sizeof window - s.avail_out);
    } while (s.block_state != ISAL_BLOCK_FINISH);
}

tp_cut_result ingest_check_cuts_inside(const char *path, int n_cuts, uint64_t seed)
{
    tp_buf zipped = {0}, all = {0};
    assert_int_equal(tp_file_read(path, 0, &zipped, NULL), TP_OK);
    inflate_all(&zipped, &all);
    tp_cut_result result = cut(path, &all, n_cuts, seed);
    tp_buf_release(&zipped);
    tp_buf_release(&all);
    return result;
}

tp_cut_result ingest_check_flips(const char *path, int n_flips, uint64_t seed)
{
    tp_buf all = {0};
    tp_cut_result result = {0};
    tp_rng rng = tp_rng_make(seed, 1);
    assert_int_equal(tp_file_read(path, 0, &all, NULL), TP_OK);
    for (int i = 0; i < n_flips; i++) {
        size_t places[8], n = 1 + (size_t)tp_rng_below(&rng, 8);
        tp_trace_file *f = NULL;
        tp_error err = {0};
        for (size_t k = 0; k < n; k++) {
            places[k] = (size_t)tp_rng_below(&rng, all.len * 8);
            all.data[places[k] / 8] ^= (char)(1 << places[k] % 8);
        }
        tp_status status = tp_trace_open_memory(path, all.data, all.len, &one_thread, &f, &err);
        if (status != TP_OK && !err.message[0])
            fail_msg("refused without a word");
        count(&result, f);
        tp_trace_close(f);
        for (size_t k = 0; k < n; k++)
            all.data[places[k] / 8] ^= (char)(1 << places[k] % 8);
    }
    tp_buf_release(&all);
    return result;
}
