/* checkpoint.h - saving a run so that a crash leaves the old or the new.
 *
 *     checkpoints/step-40/
 *         model/                 a Hugging Face folder; of an adapter PEFT's, without the base
 *         optimizer.safetensors  what the optimizer keeps (adam_m.*, adam_v.*), and master.* (the
 *                                f32 weights) when
 *                                the model is stored in less than f32
 *         state.json             where the run was
 *         manifest.json          size and XXH3-128 of every file
 *
 * Everything is written into .tmp-step-N.<pid>, synced, then renamed; the folder is
 * synced after.  Ranks write at once: the files are those of one process.  Loading verifies the
 * manifest.  A folder belongs to one run at a time, whose identity every checkpoint carries:
 * nothing of another run is deleted or replaced, and what cannot say whose it is steps aside as
 * damaged-step-N. */
#ifndef TP_ENGINE_TRAIN_CHECKPOINT_H
#define TP_ENGINE_TRAIN_CHECKPOINT_H

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/train/session.h"

typedef struct {
    const char *root; /* the run's checkpoints/ folder; created if missing */
    bool save_optimizer;
    tp_dtype model_dtype;
    tp_companions companions; /* what goes along in model/ */
    bool first_writes_all;    /* as tp_checkpoint_meet() has found it */
} tp_checkpoint_options;

/* Where the step has been saved by the same run already, nothing is written and *ret_bytes is
 * 0.  Every rank calls it, and writes what it has. */
TP_CHECKED tp_status tp_checkpoint_save(const tp_checkpoint_options *options, tp_session *session,
                                        const tp_train_state *state, uint64_t *ret_bytes,
                                        tp_error *err);

/* Before the first step: whether all ranks see the folder `root` of the first one, which exists.
 * Where some do not, the first writes all, and it is refused where it does not have it. */
TP_CHECKED tp_status tp_checkpoint_meet(const char *root, const char *run_id, tp_session *session,
                                        bool *ret_first_writes_all, tp_error *err);

/* `session` is allocated, an adapter's base loaded; its weights, moments and shadows become the
 * saved ones. */
TP_CHECKED tp_status tp_checkpoint_load(const char *path, tp_session *session,
                                        tp_train_state *ret_state, tp_error *err);
/* Room for `need` bytes where `root` is or will be. */
TP_CHECKED tp_status tp_checkpoint_check_space(const char *root, size_t need, tp_error *err);

/* XXH3-128 over the names and shapes of a model's weights. */
void tp_model_fingerprint(const tp_model *model, char ret[33]);

#endif
