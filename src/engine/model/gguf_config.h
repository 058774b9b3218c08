/* gguf_config.h - a model's keys in a GGUF file, and its config.json; private to engine/model. */
#ifndef TP_ENGINE_MODEL_GGUF_CONFIG_H
#define TP_ENGINE_MODEL_GGUF_CONFIG_H

#include "engine/model/family.h"
#include "engine/model/generation_config.h"
#include "text/gguf/gguf.h"
#include "text/json/json.h"

/* The config.json that the file's model would have in a Hugging Face folder, appended to `out`.
 * What it could not say is refused by name: other architectures, scalings of the rotation other
 * than Llama 3's, experts, windows, and any key of the architecture that is not known here. */
TP_CHECKED tp_status tp_gguf_config(const tp_gguf *g, tp_buf *out, tp_error *err);

/* Ids that begin, end and fill a text, as keys of config.json; -1: none. */
typedef struct {
    int64_t bos, pad, eos[3];
    int n_eos;
} tp_gguf_ids;

TP_CHECKED tp_status tp_gguf_ids_read(const tp_gguf *g, int64_t vocab, tp_gguf_ids *ret,
                                      tp_error *err);
void tp_gguf_ids_write(const tp_gguf_ids *ids, tp_json_w *w);

/* What the file says of sampling into *ret, which holds the defaults; that, with the file's ids, as
 * the text of a generation_config.json, appended to `out`, nothing where it says nothing; and the
 * other way (`notes`: what is lost). */
TP_CHECKED tp_status tp_gguf_generation_read(const char *path, tp_generation_config *ret,
                                             tp_error *err);
TP_CHECKED tp_status tp_gguf_generation_text(const char *path, tp_generation_config *c, tp_buf *out,
                                             tp_error *err);
void tp_gguf_put_generation(tp_generation_config *c, tp_gguf_keys *k, tp_buf *notes);

/* 0, false: what the key would change is switched off. */
bool tp_gguf_is_zero(const tp_gguf_value *v);
/* The shortest decimal number that is this f32: 1e-05 and not 9.99999974737875e-06. */
double tp_gguf_as_written(double value);

/* The keys of a model; what llama.cpp's architecture of this name does not compute is refused. */
TP_CHECKED tp_status tp_gguf_put_model(const tp_model *model, const char *name, tp_gguf_keys *k,
                                       tp_error *err);

#endif
