/* fuzz_preference.c - rows of preference data, whatever they hold. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/preference.h"

static const char tokenizer_text[] =
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3},\"merges\":[[\"a\",\"b\"]]},"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
    "\"decoder\":{\"type\":\"ByteLevel\"}}";



int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static tp_tokenizer *tokenizer;
    static tp_renderer *renderer;
    tp_error err;
    if (!tokenizer) {
        tp_render_options options = {.chat_template = "", .only_unmask_final = true,
                                     .max_seq_length = 64};
        if (tp_tokenizer_parse("fuzz", tokenizer_text, sizeof tokenizer_text - 1, &tokenizer,
                               &err) != TP_OK ||
            tp_renderer_new(tokenizer, &options, &renderer, &err) != TP_OK)
            abort();
    }
    tp_preference_options options = {.path = "fuzz", .renderer = renderer};
    tp_preference_reader *reader;
    tp_preferences p = {0};
    char *text = malloc(n + 1);
    memcpy(text, data, n);
    text[n] = 0;
    if (tp_preference_reader_new(&options, n, &reader, &err) == TP_OK) {
        tp_row row = {"fuzz", 1, text, n};
        if (tp_preference_read_row(reader, &row, &p, &err) == TP_OK)
            for (uint64_t i = 0; i < p.n; i++)
                if (p.pairs[i].chosen.n_targets < 1 || p.pairs[i].rejected.n_targets < 1 ||
                    p.pairs[i].chosen.n > 64 || p.pairs[i].rejected.n > 64)
                    abort();
        tp_preference_reader_free(reader);
    }
    tp_preferences_release(&p);
    free(text);
    return 0;
}
