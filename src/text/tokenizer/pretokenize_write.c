/* pretokenize_write.c - the pre-tokenizers that have a scanner, as tokenizer.json has them. */
#include "text/tokenizer/pretokenize.h"

void tp_pretokenizer_write(tp_json_w *w, tp_word_scanner scan)
{
    const char *split = scan == tp_scan_llama3  ? tp_regex_llama3
                        : scan == tp_scan_qwen2 ? tp_regex_qwen2
                                                : NULL;
    if (scan == tp_scan_gpt2) {
        tp_json_w_raw(w, TP_BYTE_LEVEL("false", "true"));
        return;
    }
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "type", "Sequence");
    tp_json_w_put_begin(w, "pretokenizers", '[');
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "type", split ? "Split" : "Digits");
    if (split) {
        tp_json_w_put_begin(w, "pattern", '{');
        tp_json_w_put_str(w, "Regex", split);
        tp_json_w_end(w, '}');
        tp_json_w_put_str(w, "behavior", "Isolated");
    }
    tp_json_w_put_bool(w, split ? "invert" : "individual_digits", !split);
    tp_json_w_end(w, '}');
    tp_json_w_raw(w, split ? TP_BYTE_LEVEL("false", "false") : TP_BYTE_LEVEL("false", "true"));
    tp_json_w_end(w, ']');
    tp_json_w_end(w, '}');
}
