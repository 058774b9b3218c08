/* fuzz_stats.c - the readers of `temper stats` on any bytes: columns, and JSON questions.
 *
 * The first byte chooses.  What is answered must be JSON that parses strictly; what is
 * refused must say why.  Questions that are long to answer by nature (many resamples, a
 * huge sample size) are left out by their size. */
#include <stdint.h>
#include <stdlib.h>

#include "stats/answer.h"
#include "stats/dataset.h"
#include "text/json/json.h"

static void check_columns(const char *text, size_t n)
{
    tp_stats_dataset data;
    tp_error err = {0};
    if (tp_dataset_read("fuzz", text, n, &data, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return;
    }
    for (size_t i = 0; i < data.n_columns; i++) {
        double *x, *y;
        size_t count, other;
        const tp_column *c = &data.columns[i];
        if (c->n > data.n_rows || !tp_dataset_find(&data, c->name))
            abort();
        if (tp_dataset_numbers(&data, c, &x, &count, &other, NULL) == TP_OK) {
            if (count + other != data.n_rows)
                abort();
            free(x);
        }
        if (tp_dataset_pairs(&data, c, &data.columns[0], &x, &y, &count, &other, NULL) == TP_OK) {
            free(x);
            free(y);
        }
    }
    tp_dataset_release(&data);
}

static void check_answer(const char *text, size_t n)
{
    tp_arena arena;
    tp_buf out = {0};
    tp_json_w w;
    tp_error err = {0};
    const tp_json *root;
    tp_answer_options options = TP_ANSWER_DEFAULTS;
    tp_json_w_init(&w, &out, 1);
    if (tp_answer_text("fuzz", text, n, &options, &w, &err) != TP_OK) {
        if (!err.message[0])
            abort();
    } else if (tp_arena_init(&arena, 96 * out.len + 65536, NULL) == TP_OK) {
        if (tp_json_parse(&arena, "answer", tp_buf_str(&out), out.len, NULL, &root, &err) != TP_OK)
            abort();
        tp_arena_release(&arena);
    }
    tp_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 3000)
        return 0;
    if (data[0] & 1)
        check_columns((const char *)data + 1, size - 1);
    else
        check_answer((const char *)data + 1, size - 1);
    return 0;
}
