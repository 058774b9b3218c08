/* fuzz_adapter_tensors.c - any bytes as the adapter_model.safetensors of an adapter of a small
 * Llama.
 *
 * What is accepted has filled every tensor of the adapter with finite numbers: the odd bytes that
 * were there before are gone. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/backend/backend.h"
#include "engine/model/adapter_internal.h"
#include "own_file.h"

static const char base[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 16, \"hidden_size\": 8, \"intermediate_size\": 12,"
    " \"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"max_position_embeddings\": 8}";

static tp_model *model;
static tp_device *device;
static tp_states states;

static void must(tp_status status)
{
    if (status != TP_OK)
        abort();
}

static void close_all(void)
{
    tp_states_release(&states);
    tp_device_close(device);
    tp_model_free(model);
}

static void open_all(void)
{
    static const char *const names[] = {"q_proj", "down_proj"};
    const tp_lora_settings settings = {
        .r = 3, .alpha = 4, .uses_dora = true, .targets = {names, 2, TP_MATCH_NAME}};
    must(tp_model_parse("config.json", base, strlen(base), &model, NULL));
    must(tp_model_attach(model, &settings, NULL));
    must(tp_states_init(&states, NULL));
    must(tp_model_declare(model, 1, &states, NULL));
    must(tp_device_open(&tp_backend_ref, &(tp_device_options){0}, &device, NULL));
    must(tp_states_alloc(&states, device, NULL));
    atexit(close_all);
}

/* Every trained number becomes `value`, or must be another, finite one. */
static void each_number(float value, bool is_set)
{
    size_t n;
    const tp_param *params = tp_model_trained(model, &n);
    for (size_t i = 0; i < n; i++) {
        const tp_tensor *t = tp_states_find(&states, params[i].name);
        float x[64];
        size_t count = (size_t)(params[i].dim[0] * params[i].dim[1]);
        if (!t || count > 64)
            abort();
        for (size_t k = 0; k < count; k++)
            x[k] = value;
        must(is_set ? tp_tensor_write(t, 0, x, count * sizeof *x, NULL)
                    : tp_tensor_read(t, 0, x, count * sizeof *x, NULL));
        for (size_t k = 0; k < count && !is_set; k++)
            if (!isfinite(x[k]))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_error err = {0};
    if (size > 1 << 16)
        return 0;
    if (!model)
        open_all();
    const char *path = tp_fuzz_file("adapter_model.safetensors", data, size);
    each_number(INFINITY, true);
    if (tp_adapter_load(model, tp_fuzz_folder(), TP_ADAPTER_LIVE, &states, &err) == TP_OK)
        each_number(0, false);
    else if (!err.message[0])
        abort();
    unlink(path);
    return 0;
}
