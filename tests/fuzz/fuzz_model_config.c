/* fuzz_model_config.c - any bytes as a config.json.
 *
 * What is accepted must give a graph that verifies, with and without caches, and
 * must be accepted again, with the same parameters, once its dtype is rewritten. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/fields.h"
#include "engine/model/model.h"

enum { MAX_LAYERS = 8 };

static void check_graph(const tp_model *model, int64_t cache_blocks)
{
    tp_graph g;
    tp_error err = {0};
    tp_ref hidden, head;
    int64_t rows = 3, starts = 2, tables[] = {2, 4};
    if (tp_graph_init(&g, &err) != TP_OK)
        return;
    tp_forward f = {.tokens = tp_graph_input(&g, "tokens", TP_DTYPE_I32, 1, &rows),
                    .positions = tp_graph_input(&g, "positions", TP_DTYPE_I32, 1, &rows),
                    .max_positions = 1,
                    .cache_blocks = cache_blocks,
                    .block_tokens = 16};
    if (cache_blocks) {
        f.slots = tp_graph_input(&g, "slots", TP_DTYPE_I32, 1, &rows);
        f.tables = tp_graph_input(&g, "tables", TP_DTYPE_I32, 2, tables);
    } else
        f.cu = tp_graph_input(&g, "cu", TP_DTYPE_I32, 1, &starts);
    if (tp_model_forward(model, &g, &f, &hidden, &head, &err) != TP_OK)
        abort();
    tp_graph_op(&g, TP_OP_linear, NULL, 2, (tp_ref[]){hidden, head}, "head");
    if (tp_graph_verify(&g, &err) != TP_OK)
        abort();
    tp_graph_release(&g);
}

static void check_rewrite(const tp_model *model, const char *text, size_t n)
{
    tp_buf out = {0};
    tp_model *again = NULL;
    tp_error err = {0};
    if (tp_fields_rewrite("fuzz", text, n, "bfloat16", "LlamaForCausalLM", &out, &err) != TP_OK)
        abort();
    /* The inserted architecture is right for one family only. */
    if (strcmp(tp_model_get_info(model)->family, "llama") == 0) {
        if (tp_model_parse("again", tp_buf_str(&out), out.len, &again, &err) != TP_OK ||
            tp_model_param_count(again) != tp_model_param_count(model))
            abort();
        tp_model_free(again);
    }
    tp_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_model *model = NULL;
    tp_error err = {0};
    const char *text = (const char *)data;
    if (size > 1 << 16)
        return 0;
    if (tp_model_parse("fuzz", text, size, &model, &err) != TP_OK) {
        if (model || !err.message[0])
            abort();
        return 0;
    }
    if (tp_model_get_info(model)->layers <= MAX_LAYERS) {
        check_graph(model, 0);
        check_graph(model, 5);
    }
    check_rewrite(model, text, size);
    tp_model_free(model);
    return 0;
}
