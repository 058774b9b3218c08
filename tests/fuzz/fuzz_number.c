/* fuzz_number.c - any bytes as a completion: every number lies inside the text and behind
 * the one before, is equal to itself, and its spelling reads back as the same number.
 * The places of answers are inside the text too. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/reward/answer.h"
#include "engine/reward/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_number(const tp_number *v)
{
    char text[TP_RATIONAL_TEXT];
    tp_number again;
    if (!isnan(v->value) && !tp_number_equal(v, v, 0, 0))
        abort();
    tp_number_text(v, text);
    if (!v->is_exact)
        return;
    if (!tp_number_last(tp_slice_of(text), &again))
        abort();
    if (again.is_exact && !tp_number_equal(&again, v, 0, 0)) /* 12% is spelled 3/25 */
        abort();
}

static void check_inside(tp_slice whole, tp_slice part)
{
    if (part.data && (part.data < whole.data || part.data + part.len > whole.data + whole.len))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 12)
        return 0;
    tp_slice text = {(const char *)data, size};
    tp_number v;
    size_t at = 0;
    while (tp_number_next(text, at, &v)) {
        if (v.begin < at || v.end <= v.begin || v.end > size)
            abort();
        check_number(&v);
        at = v.end;
    }
    if (tp_number_in_words(text, &v))
        check_number(&v);
    if (tp_number_only(text, &v))
        check_number(&v);
    check_inside(text, tp_answer_boxed(text));
    check_inside(text, tp_answer_after(text, "####"));
    check_inside(text, tp_answer_in_tag(text, "answer"));
    check_inside(text, tp_answer_last_line(text));
    tp_buf a = {0}, b = {0};
    tp_answer_normalize(text, &a);
    tp_answer_spell(text, &(tp_answer_spelling){true, true, true}, &b);
    if (a.len > size || b.len > 3 * size + 3)
        abort();
    tp_buf_release(&a);
    tp_buf_release(&b);
    return 0;
}
