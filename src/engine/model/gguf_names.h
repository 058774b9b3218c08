/* gguf_names.h - where a parameter of ours lies in a GGUF file; private to engine/model. */
#ifndef TP_ENGINE_MODEL_GGUF_NAMES_H
#define TP_ENGINE_MODEL_GGUF_NAMES_H

#include "engine/model/family.h"

/* How its rows lie there.  llama.cpp rotates neighbours (2i, 2i+1) in models of the architecture
 * "llama", where transformers rotates halves (i, i + d/2): rows of q and k change places within
 * each head.  GPT-2's [in, out] becomes [out, in]. */
typedef enum { TP_GGUF_AS_IS, TP_GGUF_NEIGHBOURS, TP_GGUF_TRANSPOSED } tp_gguf_layout;

typedef struct {
    char name[64];
    tp_gguf_layout layout;
    bool is_f32; /* whatever the others are */
} tp_gguf_place;

/* False for a parameter that GGUF has no name for. */
bool tp_gguf_place_of(const tp_model *model, const tp_param *param, tp_gguf_place *ret);

/* With TP_GGUF_NEIGHBOURS: the row there of our row. */
int64_t tp_gguf_row(const tp_model *model, int64_t row);

/* A matrix there: length and number of rows.  A vector is one row. */
void tp_gguf_shape(const tp_param *param, const tp_gguf_place *place, int64_t *ret_length,
                   int64_t *ret_rows);

#endif
