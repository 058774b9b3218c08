/* weights.h - the weights of a model where they lie: in the safetensors of its folder, or in a
 * GGUF file.  Private to engine/model.
 *
 * Opening finds and checks every parameter; reading gives rows of it in f32 and in our layout,
 * whatever the file has.  What only one of the two kinds of files needs is in weights.c and
 * gguf_weights.c. */
#ifndef TP_ENGINE_MODEL_WEIGHTS_H
#define TP_ENGINE_MODEL_WEIGHTS_H

#include "engine/model/family.h"
#include "engine/model/gguf_names.h"
#include "engine/model/shards.h"
#include "text/gguf/gguf.h"

typedef struct {
    const tp_model *model;
    tp_load_report report; /* complete but for what only the numbers show */

    /* by parameter */
    const char **from; /* the file that has it */
    tp_dtype *dtypes;  /* the float type that holds what the file has */
    const tp_tensor_entry **entries;
    const tp_gguf_tensor **tensors;

    tp_shards shards;
    tp_gguf *gguf; /* NULL: safetensors */
} tp_weights;

/* All that is missing is listed in one error. */
TP_CHECKED tp_status tp_weights_open(const tp_model *model, tp_weights *ret, tp_error *err);
void tp_weights_close(tp_weights *w); /* zeroed is a no-op */

/* Rows of a matrix as we have it; a vector is one row. */
int64_t tp_weights_rows(const tp_param *param);
int64_t tp_weights_row_length(const tp_param *param);
/* Rows that are best read at a time, and how many at most. */
int64_t tp_weights_piece(const tp_weights *w, size_t param);

/* *ret_is_finite: no value is infinite or not a number. */
TP_CHECKED tp_status tp_weights_read(const tp_weights *w, size_t param, int64_t first, int64_t n,
                                     float *out, bool *ret_is_finite, tp_error *err);

/* ---- between the two files ---- */

void tp_weights_note_unused(tp_weights *w, const char *name);
void tp_weights_take(tp_weights *w, size_t param, const char *file, tp_dtype dtype, size_t bytes);
TP_CHECKED tp_status tp_weights_find_in_gguf(tp_weights *w, tp_error *err);
TP_CHECKED tp_status tp_weights_read_gguf(const tp_weights *w, size_t param, int64_t first,
                                          int64_t n, float *out, tp_error *err);

#endif
