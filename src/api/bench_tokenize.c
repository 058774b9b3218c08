/* bench_tokenize.c - text to token ids, with a tokenizer trained on the spot. */

#include "api/bench_subjects.h"
#include "base/files.h"
#include "engine/data/arithmetic.h"
#include "engine/device/memory.h"
#include "text/tokenizer/tokenizer.h"

enum { THROUGHPUT, TIME, BYTES, TOKENS, OWN, N_EXAMPLES = 2000 };

typedef struct {
    tp_bench_subject base;
    tp_tokenizer *tokenizer;
    tp_tokenizer_scratch *scratch;
    tp_buf text;
    tp_ids ids;
} tokenize_subject;

static tp_status train_in(tokenize_subject *s, const char *folder, tp_error *err)
{
    static const char *const special[] = {"<|endoftext|>"};
    const char *texts[] = {tp_buf_str(&s->text)};
    size_t lengths[] = {s->text.len};
    tp_bpe_train_options options = {.pre_tokenizer = s->base.c->model,
                                    .vocab_size = 1024,
                                    .special = special,
                                    .n_special = 1,
                                    .eos = special[0]};
    TP_TRY(tp_tokenizer_train(texts, lengths, 1, &options, folder, err));
    return tp_tokenizer_load(folder, &s->tokenizer, err);
}

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    tokenize_subject *s = (tokenize_subject *)subject;
    const char *base = getenv("TMPDIR");
    char folder[1024];
    tp_arithmetic_options sums = tp_arithmetic_defaults();
    sums.word_problems = 1;
    snprintf(folder, sizeof folder, "%s/temper-bench-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder))
        return tp_fail(err, TP_ERR_IO, "no temporary folder '%s' for a tokenizer", folder);
    tp_arithmetic_text(&sums, N_EXAMPLES, &s->text);
    tp_status status = train_in(s, folder, err);
    tp_error ignored;
    if (tp_dir_remove(folder, &ignored) != TP_OK && status == TP_OK)
        status = tp_fail(err, TP_ERR_IO, "%s", ignored.message);
    if (status == TP_OK)
        s->scratch = tp_tokenizer_scratch_new(s->tokenizer);
    return status;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    tokenize_subject *s = (tokenize_subject *)subject;
    size_t n = 0;
    (void)err;
    for (uint64_t i = 0; i < work; i++) {
        s->ids.len = 0;
        tp_tokenizer_encode(s->tokenizer, s->scratch, tp_buf_str(&s->text), s->text.len,
                            (tp_encode_options){0}, &s->ids, NULL);
        n += s->ids.len;
    }
    ret->amount[THROUGHPUT] = (double)n;
    ret->amount[BYTES] = (double)work * (double)s->text.len;
    ret->values[TOKENS] = (double)n;
    tp_bench_fill_memory(ret, OWN, (double)tp_mem_get_stats().total_current);
    return TP_OK;
}

static void tear_down(tp_subject *subject)
{
    tokenize_subject *s = (tokenize_subject *)subject;
    tp_tokenizer_scratch_free(s->scratch);
    tp_tokenizer_free(s->tokenizer);
    tp_ids_release(&s->ids);
    tp_buf_release(&s->text);
    free(s);
}

static const tp_metric own[OWN] = {[THROUGHPUT] = TP_THROUGHPUT_ROW("tokens/s"),
                                   [TIME] = TP_RUN_TIME_ROW,
                                   [BYTES] = TP_RATE_ROW("bytes_per_s", "bytes/s"),
                                   [TOKENS] = TP_EXACT_ROW("tokens", "tokens")};

const tp_bench_kind tp_bench_tokenize = {
    .name = "tokenize",
    .class = {.set_up = set_up, .run = run, .tear_down = tear_down},
    .size = sizeof(tokenize_subject),
    .metrics = own,
    .n_metrics = OWN,
    .work_unit = "passes over the text",
    .works_in_steps = true,
};
