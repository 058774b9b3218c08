/* checkpoint.h - saving a run so that a crash leaves the old or the new.
 *
 *     checkpoints/step-40/
 *         model/                 a Hugging Face folder
 *         optimizer.safetensors  adam_m.*, adam_v.*, and master.* (the f32 weights) when
 *                                the model is stored in less than f32
 *         state.json             where the run was
 *         manifest.json          size and XXH3-128 of every file, fingerprints
 *
 * Everything is written into .tmp-step-N.<pid>, synced, then renamed; the folder is
 * synced after.  Loading verifies the manifest.  Nothing that this code did not make is
 * ever deleted. */
#ifndef TP_ENGINE_TRAIN_CHECKPOINT_H
#define TP_ENGINE_TRAIN_CHECKPOINT_H

#include "engine/train/session.h"

typedef struct {
    int64_t step;          /* steps done */
    int64_t updates;       /* of the optimizer: steps less the skipped ones */
    int64_t skipped;       /* non-finite steps so far */
    int64_t tokens;        /* trained tokens so far */
    int64_t prompts;       /* rollouts: prompts drawn so far, which is where to go on */
    uint64_t seed;
    double metric;         /* what keep_top_k compares; NaN = none */
    double best_metric;
    int64_t best_step;
    tp_dtype model_dtype;  /* of model/ in the checkpoint; filled by tp_checkpoint_load() */
    char model_fingerprint[33]; /* shapes and names of the weights */
    char data_fingerprint[33];  /* what the order of the data depends on */
} tp_train_state;

typedef struct {
    const char *root;      /* the run's checkpoints/ folder; created if missing */
    bool save_optimizer;
    tp_dtype model_dtype;
    const char *copy_from; /* (optional) folder whose tokenizer files go along */
} tp_checkpoint_options;

TP_CHECKED tp_status tp_checkpoint_save(const tp_checkpoint_options *options, tp_session *session,
                                        const tp_train_state *state, uint64_t *ret_bytes,
                                        tp_error *err);

/* The newest checkpoint that verifies; ret_path is empty when there is none.  Those
 * that do not are reported through the log and passed over. */
TP_CHECKED tp_status tp_checkpoint_find(const char *root, tp_buf *ret_path, tp_error *err);

/* What a user means by a model: a Hugging Face folder, a checkpoint, or the folder of a run
 * (then its newest checkpoint that verifies); the folder with config.json is appended to
 * *ret_folder. */
TP_CHECKED tp_status tp_checkpoint_find_model(const char *path, tp_buf *ret_folder, tp_error *err);

/* `session` is allocated; its weights, moments and shadows become the saved ones. */
TP_CHECKED tp_status tp_checkpoint_load(const char *path, tp_session *session,
                                        tp_train_state *ret_state, tp_error *err);
TP_CHECKED tp_status tp_checkpoint_read_state(const char *path, tp_train_state *ret_state,
                                              tp_error *err);
/* Every file of the manifest is there with the right size and contents. */
TP_CHECKED tp_status tp_checkpoint_verify(const char *path, tp_error *err);

/* The steps that have a folder, newest first, valid or not; free() them. */
TP_CHECKED tp_status tp_checkpoint_list(const char *root, int64_t **ret_steps, size_t *ret_n,
                                        tp_error *err);

/* Delete all but the newest and the `keep` best by metric (without metrics: the
 * newest `keep`), and leftovers of interrupted saves.  keep <= 0 keeps all. */
TP_CHECKED tp_status tp_checkpoint_prune(const char *root, int64_t keep, bool higher_is_better,
                                         tp_error *err);

/* Before the first save of a process: delete what interrupted saves left behind.  A
 * missing folder is fine. */
TP_CHECKED tp_status tp_checkpoint_clean(const char *root, tp_error *err);

/* Room for `need` bytes where `root` is or will be. */
TP_CHECKED tp_status tp_checkpoint_check_space(const char *root, size_t need, tp_error *err);

/* XXH3-128 over the names and shapes of a model's weights. */
void tp_model_fingerprint(const tp_model *model, char ret[33]);

#endif
