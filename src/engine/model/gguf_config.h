/* gguf_config.h - a model's keys in a GGUF file, and its config.json; private to engine/model. */
#ifndef TP_ENGINE_MODEL_GGUF_CONFIG_H
#define TP_ENGINE_MODEL_GGUF_CONFIG_H

#include "engine/model/family.h"
#include "text/gguf/gguf.h"

/* The config.json that the file's model would have in a Hugging Face folder, appended to `out`.
 * What it could not say is refused by name: other architectures, scalings of the rotation other
 * than Llama 3's, experts, windows, and any key of the architecture that is not known here. */
TP_CHECKED tp_status tp_gguf_config(const tp_gguf *g, tp_buf *out, tp_error *err);

/* The keys of a model; what llama.cpp's architecture of this name does not compute is refused. */
TP_CHECKED tp_status tp_gguf_put_model(const tp_model *model, const char *name, tp_gguf_keys *k,
                                       tp_error *err);

#endif
