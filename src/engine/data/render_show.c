/* render_show.c - an example on the terminal: which tokens are learned. */
#include "base/terminal.h"
#include "engine/data/render.h"

#include "base/platform.h"

/* A newline is written out and breaks the line, so that it can be seen. */
static void show_run(const char *text, size_t n, bool learned, tp_buf *out)
{
    const char *mark = learned ? "> " : "| ";
    tp_buf_adds(out, mark);
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        size_t len = tp_utf8_decode(text + i, n - i, &cp);
        if (len && cp == '\n') {
            tp_buf_adds(out, "\\n");
            if (i + 1 < n)
                tp_buf_addf(out, "\n%s", mark);
        } else {
            tp_buf_add_shown(out, text + i, len ? len : 1, true);
        }
        i += len ? len : 1;
    }
    tp_buf_addc(out, '\n');
}

void tp_render_show(const tp_tokenizer *tok, const int32_t *ids, const uint8_t *mask, size_t n,
                    size_t max_tokens, tp_buf *out)
{
    TP_OWN(tp_buf) text = {0};
    size_t shown = max_tokens ? TP_MIN(n, max_tokens) : n;
    for (size_t begin = 0; begin < shown;) {
        size_t end = begin + 1;
        while (end < shown && !mask[end] == !mask[begin])
            end++;
        tp_buf_clear(&text);
        tp_tokenizer_decode(tok, ids + begin, end - begin, false, &text);
        show_run(tp_buf_str(&text), text.len, mask[begin], out);
        begin = end;
    }
    if (shown < n)
        tp_buf_addf(out, "  ... and %zu more tokens\n", n - shown);
}
