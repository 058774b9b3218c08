/* fuzz_eval_file.c - any bytes as an evaluation: refused with a reason, or prompts in
 * order, none twice, with counts that make sense; summing them up never fails. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/evaluations/eval_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_buf text = {0};
    tp_eval_file f;
    tp_eval_summary s;
    tp_error err = {0};
    if (size > 1 << 14)
        return 0;
    tp_buf_add(&text, data, size);
    if (tp_eval_file_parse("fuzz", &text, 1, &f, &err) != TP_OK) {
        if (!strstr(err.message, "fuzz"))
            abort();
        return 0;
    }
    for (size_t i = 0; i < f.n; i++) {
        const tp_eval_prompt *p = &f.prompts[i];
        if (!p->id || p->correct < 0 || p->correct > p->n || p->excluded < 0)
            abort();
        if (i > 0 && strcmp(f.prompts[i - 1].id, p->id) >= 0)
            abort();
    }
    if (tp_eval_summarize(f.prompts, f.n, f.k, f.n_k, 0.95, &s, &err) != TP_OK)
        abort();
    tp_eval_file_release(&f);
    return 0;
}
