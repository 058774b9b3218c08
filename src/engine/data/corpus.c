/* corpus.c - tokenising a source on all threads, wave by wave, written in the order of its
 * rows. */
#include "engine/data/corpus.h"

#include <string.h>

#include "base/platform.h"
#include "base/vec.h"
#include "engine/data/lines.h"

enum { PIECE_BYTES = 64 << 10, WAVE_ROWS = 1 << 18, PIECE_ROWS = 1 << 12 };

/* A run of rows, and what became of them. */
typedef struct {
    const char *text; /* of a file */
    size_t n;
    uint64_t first_row; /* line number, or index of a made-up row */
    uint64_t n_rows;    /* made-up rows */

    tp_buf records;
    uint32_t *sizes;
    size_t n_records, sizes_cap;
    tp_cache_counts counts;
    tp_buf bad; /* messages, each with its NUL */
    tp_status bad_status;
    tp_status status; /* what no skipping helps against */
    tp_error error;
} piece;

typedef struct {
    tp_arena arena;
    tp_rendered rendered;
} worker;

typedef struct {
    const tp_corpus *corpus;
    tp_schema schema;
    bool wide;
    worker *workers; /* one per thread of the pool */
    int n_workers;
    size_t arena_bytes;

    piece *pieces; /* of this wave */
    size_t n_pieces, pieces_cap;

    tp_cache_writer writer;
    tp_corpus_result result;
} build;

static void reset_piece(piece *p)
{
    tp_buf_clear(&p->records);
    tp_buf_clear(&p->bad);
    p->n_records = 0;
    p->counts = (tp_cache_counts){.max_id = -1};
    p->bad_status = p->status = TP_OK;
}

/* Pieces of waves before keep their memory. */
static piece *add_piece(build *b)
{
    if (b->n_pieces == b->pieces_cap) {
        size_t cap = b->pieces_cap ? 2 * b->pieces_cap : 64;
        b->pieces = tp_grow(b->pieces, cap, sizeof *b->pieces);
        memset(b->pieces + b->pieces_cap, 0, (cap - b->pieces_cap) * sizeof *b->pieces);
        b->pieces_cap = cap;
    }
    piece *p = &b->pieces[b->n_pieces++];
    reset_piece(p);
    return p;
}

static void keep_record(build *b, piece *p, const tp_rendered *r, uint64_t line)
{
    const int32_t *ids = r->ids.data;
    size_t n = r->ids.len;
    *TP_VEC_PUSH(p->sizes, p->n_records, p->sizes_cap) = (uint32_t)tp_cache_encode(
        &p->records, ids, (const uint8_t *)r->mask.data, n, b->wide, line);
    p->counts.n_tokens += n;
    p->counts.n_targets += r->n_targets;
    p->counts.n_truncated += r->truncated;
    p->counts.n_straddling += r->straddles;
    p->counts.longest = TP_MAX(p->counts.longest, n);
    for (size_t k = 0; k < n; k++)
        p->counts.max_id = TP_MAX(p->counts.max_id, ids[k]);
}

static void note_bad(piece *p, tp_status status, const tp_error *err)
{
    p->counts.n_bad++;
    if (p->bad_status == TP_OK)
        p->bad_status = status;
    tp_buf_add(&p->bad, err->message, strlen(err->message) + 1);
}

/* Tokenise an example and keep it where it has something to teach. */
static tp_status keep_example(build *b, worker *w, piece *p, const tp_example *example,
                              const tp_row *row, tp_error *err)
{
    TP_TRY(tp_render(b->corpus->renderer, example, row, &w->arena, &w->rendered, err));
    if (w->rendered.n_targets == 0)
        p->counts.n_masked++;
    else
        keep_record(b, p, &w->rendered, row->line);
    return TP_OK;
}

static tp_status do_row(build *b, worker *w, piece *p, const tp_row *row, tp_error *err)
{
    tp_example example;
    TP_TRY(tp_schema_read(&b->schema, row, &w->arena, &example, err));
    p->counts.unread |= example.unread;
    return keep_example(b, w, p, &example, row, err);
}

/* Mistakes of configuration would repeat on every row: they are not skipped. */
static bool may_skip(const build *b, tp_status status)
{
    return status != TP_ERR_CONFIG && b->corpus->skip_bad != 0;
}

static void do_lines(build *b, worker *w, piece *p)
{
    const char *text = p->text, *end = p->text + p->n;
    for (uint64_t line = p->first_row; text < end; line++) {
        tp_slice s = tp_line_take(&text, end);
        if (tp_line_is_blank(s))
            continue;
        tp_row row = {b->corpus->path, line, s.data, s.len};
        tp_error err;
        p->counts.n_rows++;
        size_t mark = tp_arena_mark(&w->arena);
        tp_status status = do_row(b, w, p, &row, &err);
        tp_arena_rewind(&w->arena, mark);
        if (status == TP_OK)
            continue;
        if (!may_skip(b, status)) {
            p->status = status;
            p->error = err;
            return;
        }
        note_bad(p, status, &err);
    }
}

static void do_arithmetic(build *b, worker *w, piece *p)
{
    for (uint64_t i = 0; i < p->n_rows && p->status == TP_OK; i++) {
        tp_arithmetic made;
        tp_example example;
        tp_row row = {.file = "arithmetic", .line = p->first_row + i + 1, .text = ""};
        p->counts.n_rows++;
        size_t mark = tp_arena_mark(&w->arena);
        tp_arithmetic_make(b->corpus->arithmetic, b->corpus->split, p->first_row + i, &made);
        tp_schema_pair(&b->schema, made.prompt, made.answer, &w->arena, &example);
        p->status = keep_example(b, w, p, &example, &row, &p->error);
        tp_arena_rewind(&w->arena, mark);
    }
}

/* Failures stay in their piece: which of them counts is judged in order. */
static tp_status do_piece(void *context, size_t index, int w, tp_error *err)
{
    (void)err;
    build *b = context;
    if (b->corpus->path)
        do_lines(b, &b->workers[w], &b->pieces[index]);
    else
        do_arithmetic(b, &b->workers[w], &b->pieces[index]);
    return TP_OK;
}

/* The message of the first bad row that is one too many, if there is one. */
static tp_status judge_bad(build *b, const piece *p, tp_error *err)
{
    uint64_t before = b->result.counts.n_bad;
    int64_t allowed = b->corpus->skip_bad;
    const char *message = p->bad.data;
    for (uint64_t i = 0; i < p->counts.n_bad; i++, message += strlen(message) + 1) {
        if (before + i == 0)
            snprintf(b->result.first_bad_message, sizeof b->result.first_bad_message, "%s",
                     message);
        if (allowed >= 0 && before + i >= (uint64_t)allowed)
            return tp_fail(err, p->bad_status,
                           "%s (%llu bad rows are more than data.skip_bad_rows)", message,
                           (unsigned long long)(before + i + 1));
    }
    return TP_OK;
}

static tp_status collect(build *b, tp_error *err)
{
    tp_cache_counts *sum = &b->result.counts;
    for (size_t i = 0; i < b->n_pieces; i++) {
        piece *p = &b->pieces[i];
        TP_TRY(judge_bad(b, p, err));
        if (p->status != TP_OK) {
            if (err)
                *err = p->error;
            return p->status;
        }
        TP_TRY(tp_cache_writer_add(&b->writer, &p->records, p->sizes, p->n_records, err));
        tp_cache_counts_add(sum, &p->counts);
    }
    return TP_OK;
}

static tp_status report_progress(const build *b, uint64_t done, uint64_t total, tp_error *err)
{
    char what[256];
    const char *path = b->corpus->path ? b->corpus->path : "arithmetic";
    snprintf(what, sizeof what, "tokenising %s", path);
    if (b->corpus->progress && !b->corpus->progress(b->corpus->user, what, done, total))
        return tp_fail(err, TP_ERR_INTERRUPTED, "interrupted while tokenising %s", path);
    return TP_OK;
}

/* Arenas grow with the longest line met so far. */
static tp_status size_arenas(build *b, size_t longest, tp_error *err)
{
    size_t bytes = tp_schema_arena_bytes(b->corpus->schema, longest);
    if (bytes <= b->arena_bytes)
        return TP_OK;
    for (int i = 0; i < b->n_workers; i++) {
        tp_arena_release(&b->workers[i].arena);
        TP_TRY(tp_arena_init(&b->workers[i].arena, bytes, err));
    }
    b->arena_bytes = bytes;
    return TP_OK;
}

static tp_status build_arithmetic(build *b, tp_error *err)
{
    tp_row none = {.file = "arithmetic", .text = ""};
    tp_schema_options options = *b->corpus->schema;
    options.input_key = options.output_key = options.chat_key = options.text_key = NULL;
    options.prompt_key = "prompt";
    TP_TRY(size_arenas(b, 4096, err));
    TP_TRY(tp_schema_choose(&options, &none, &b->workers[0].arena, &b->schema, err));
    for (uint64_t done = 0; done < b->corpus->n_rows;) {
        uint64_t wave = TP_MIN(b->corpus->n_rows - done, (uint64_t)WAVE_ROWS);
        b->n_pieces = 0;
        for (uint64_t at = 0; at < wave; at += PIECE_ROWS) {
            piece *p = add_piece(b);
            p->first_row = done + at;
            p->n_rows = TP_MIN(wave - at, (uint64_t)PIECE_ROWS);
        }
        TP_TRY(tp_pool_for(b->corpus->pool, b->n_pieces, do_piece, b, err));
        TP_TRY(collect(b, err));
        done += wave;
        TP_TRY(report_progress(b, done, b->corpus->n_rows, err));
    }
    return TP_OK;
}

static void cut_wave(build *b, const tp_lines *lines)
{
    const char *text = lines->buffer, *end = text + lines->wave;
    uint64_t line = lines->line;
    b->n_pieces = 0;
    while (text < end) {
        piece *p = add_piece(b);
        p->text = text;
        p->first_row = line;
        for (; text < end && (size_t)(text - p->text) < PIECE_BYTES; line++)
            tp_line_take(&text, end);
        p->n = (size_t)(text - p->text);
    }
}

/* The first row that can be understood decides; rows before it will be counted as
 * bad when their turn comes. */
static tp_status choose_schema(build *b, const tp_lines *lines, tp_error *err)
{
    const char *text = lines->buffer, *end = text + lines->wave;
    tp_error first = {.status = TP_OK};
    int64_t left = b->corpus->skip_bad;
    for (uint64_t line = lines->line; text < end && first.status != TP_ERR_CONFIG; line++) {
        tp_slice s = tp_line_take(&text, end);
        if (tp_line_is_blank(s))
            continue;
        tp_row row = {b->corpus->path, line, s.data, s.len};
        tp_error inner;
        tp_status status =
            tp_schema_choose(b->corpus->schema, &row, &b->workers[0].arena, &b->schema, &inner);
        if (status == TP_OK)
            return TP_OK;
        if (first.status == TP_OK || status == TP_ERR_CONFIG)
            first = inner;
        if (left-- == 0)
            break;
    }
    if (first.status == TP_OK)
        return tp_fail(err, TP_ERR_FORMAT, "%s begins with nothing but blank lines",
                       b->corpus->path);
    if (err)
        *err = first;
    return first.status;
}

static tp_status build_waves(build *b, tp_lines *lines, tp_error *err)
{
    bool chosen = false;
    while (!lines->at_end) {
        TP_TRY(tp_lines_next(lines, err));
        TP_TRY(size_arenas(b, lines->longest, err));
        if (!chosen)
            TP_TRY(choose_schema(b, lines, err));
        chosen = true;
        cut_wave(b, lines);
        TP_TRY(tp_pool_for(b->corpus->pool, b->n_pieces, do_piece, b, err));
        TP_TRY(collect(b, err));
        TP_TRY(report_progress(b, lines->done, lines->size, err));
    }
    tp_lines_hash(lines, b->result.source_hash);
    b->result.counts.source_bytes = lines->done;
    return TP_OK;
}

static tp_status build_file(build *b, tp_error *err)
{
    TP_CLEANUP(tp_lines_close) tp_lines lines = {0};
    TP_TRY(tp_rows_open(&lines, b->corpus->path, err));
    return build_waves(b, &lines, err);
}

static tp_status check_any(const build *b, tp_error *err)
{
    const tp_cache_counts *c = &b->result.counts;
    if (b->writer.n > 0)
        return TP_OK;
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s has nothing to learn: of %llu rows %llu are bad and %llu have no token left "
                   "to learn; look at the roles, and at policy.max_total_sequence_length",
                   b->corpus->path ? b->corpus->path : "arithmetic", (unsigned long long)c->n_rows,
                   (unsigned long long)c->n_bad, (unsigned long long)c->n_masked);
}

static void release(build *b)
{
    for (int i = 0; i < b->n_workers; i++) {
        tp_arena_release(&b->workers[i].arena);
        tp_rendered_release(&b->workers[i].rendered);
    }
    for (size_t i = 0; i < b->pieces_cap; i++) {
        tp_buf_release(&b->pieces[i].records);
        tp_buf_release(&b->pieces[i].bad);
        free(b->pieces[i].sizes);
    }
    free(b->workers);
    free(b->pieces);
    tp_cache_writer_abandon(&b->writer);
}

static tp_status run(build *b, const char *path, const char *key, tp_error *err)
{
    TP_TRY(tp_cache_writer_open(path, key, b->wide, &b->writer, err));
    TP_TRY(b->corpus->path ? build_file(b, err) : build_arithmetic(b, err));
    TP_TRY(check_any(b, err));
    b->result.counts.n_examples = b->writer.n;
    b->result.counts.schema = b->schema.kind;
    b->result.counts.schema_detected = b->schema.detected;
    return tp_cache_writer_close(&b->writer, &b->result.counts, err);
}

tp_status tp_corpus_build(const tp_corpus *corpus, const char *path, const char *key,
                          tp_corpus_result *ret, tp_error *err)
{
    const tp_tokenizer *tok = tp_renderer_tokenizer(corpus->renderer);
    build b = {.corpus = corpus, .wide = tp_tokenizer_vocab_size(tok) > 1 << 16};
    b.result.counts.max_id = -1;
    b.n_workers = tp_pool_size(corpus->pool);
    b.workers = tp_new((size_t)b.n_workers, sizeof *b.workers);
    for (int i = 0; i < b.n_workers; i++)
        tp_rendered_init(&b.workers[i].rendered, corpus->renderer);
    tp_status status = run(&b, path, key, err);
    release(&b);
    TP_HAND_OVER(status, ret, b.result, (void)0);
}
