/* fuzz_adapter_config.c - any bytes as an adapter_config.json over a small Llama.
 *
 * What is accepted must give a graph that verifies, and be accepted again as it is written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/adapter_internal.h"

static const char base[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 16, \"hidden_size\": 8, \"intermediate_size\": 12,"
    " \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"max_position_embeddings\": 8}";

static tp_model *open_base(void)
{
    tp_model *model;
    if (tp_model_parse("config.json", base, strlen(base), &model, NULL) != TP_OK)
        abort();
    return model;
}

static void check_graph(const tp_model *model)
{
    tp_graph g;
    tp_error err = {0};
    tp_ref hidden, head;
    int64_t rows = 3, starts = 2, halves = 2;
    if (tp_graph_init(&g, &err) != TP_OK)
        return;
    tp_forward f = {.tokens = tp_graph_input(&g, "tokens", TP_DTYPE_I32, 1, &rows),
                    .positions = tp_graph_input(&g, "positions", TP_DTYPE_I32, 1, &rows),
                    .cu = tp_graph_input(&g, "cu", TP_DTYPE_I32, 1, &starts),
                    .dropout_seed = tp_graph_input(&g, "seed", TP_DTYPE_I32, 1, &halves),
                    .max_positions = 1};
    if (tp_model_forward(model, &g, &f, &hidden, &head, &err) != TP_OK ||
        tp_graph_verify(&g, &err) != TP_OK)
        abort();
    tp_graph_release(&g);
}

static tp_model *attach(const char *text, size_t n, tp_error *err)
{
    tp_arena arena;
    tp_lora_settings settings;
    const char *named;
    tp_model *model = open_base();
    if (tp_arena_init(&arena, n * 65 + (1 << 20), err) != TP_OK)
        abort();
    tp_status status =
        tp_adapter_config_read("adapter_config.json", text, n, &arena, &settings, &named, err);
    if (status == TP_OK)
        status = tp_model_attach(model, &settings, err);
    tp_arena_release(&arena);
    if (status == TP_OK)
        return model;
    if (!err->message[0])
        abort();
    tp_model_free(model);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    tp_error err = {0};
    tp_buf text = {0};
    if (n > 1 << 16)
        return 0;
    tp_model *model = attach((const char *)data, n, &err);
    if (!model)
        return 0;
    check_graph(model);
    tp_adapter_config_write(model, &text);
    tp_model *again = attach(tp_buf_str(&text), text.len, &err);
    size_t count, count_again;
    if (!again)
        abort();
    (void)tp_model_trained(model, &count);
    (void)tp_model_trained(again, &count_again);
    if (count != count_again || tp_model_adapter(model)->r != tp_model_adapter(again)->r)
        abort();
    tp_buf_release(&text);
    tp_model_free(again);
    tp_model_free(model);
    return 0;
}
