/* options.h - everything that a training run can be told, as one struct.
 *
 * The keys are NeMo RL's where NeMo RL has them, so its SFT recipes bind as they
 * are; what this version does not act on is accepted and announced.  options.def
 * has one row per key: type, default, range, meaning.  Text and lists point into
 * the configuration.
 *
 * Null: texts NULL, whole numbers TP_OPT_UNSET_INT, numbers NaN. */
#ifndef TP_ENGINE_TRAIN_OPTIONS_H
#define TP_ENGINE_TRAIN_OPTIONS_H

#include <stddef.h>

#include "config/config.h"
#include "engine/data/arithmetic.h"
#include "engine/data/schema.h"
#include "engine/exec/traffic.h"
#include "engine/passes/pass.h"
#include "engine/train/optimizers/optimizer.h"

/* In the order of the choices in options.def. */
typedef enum { TP_PRECISION_FLOAT32, TP_PRECISION_BFLOAT16, TP_PRECISION_FLOAT16 } tp_precision;
typedef enum { TP_COMPRESSION_NONE, TP_COMPRESSION_INT8 } tp_compression;
typedef enum { TP_INIT_PRETRAINED, TP_INIT_RANDOM } tp_init_mode;
typedef enum {
    TP_COMPILE_NONE,
    TP_COMPILE_DEFAULT,
    TP_COMPILE_REDUCE_OVERHEAD,
    TP_COMPILE_MAX_AUTOTUNE
} tp_compile_mode;

/* A training algorithm: a row, see algorithm.h. */
typedef struct tp_algorithm tp_algorithm;
/* All of them, closed by NULL, the default first; engine/algorithms/algorithms.c. */
extern const tp_algorithm *const tp_algorithms[];
enum { TP_OWN_OPTION_BYTES = 1024 };

/* What the best checkpoints are the best by: checkpointing.metric_name. */
typedef enum {
    TP_RANK_BY_AGE,
    TP_RANK_BY_VAL_LOSS,
    TP_RANK_BY_VAL_ACCURACY,
    TP_RANK_BY_TRAIN_LOSS
} tp_ranking;
/* How several processes divide a run; nothing changes where there is one. */
typedef enum {
    TP_STRATEGY_DDP,             /* every rank has all of it, gradients are summed */
    TP_STRATEGY_SHARD_OPTIMIZER, /* ... and each updates its part of every weight (ZeRO 1) */
    TP_STRATEGY_SHARD_GRADIENTS, /* ... and keeps no more of the gradients (ZeRO 2) */
    TP_STRATEGY_FULL_SHARD,      /* ... nor of the weights (ZeRO 3) */
    TP_STRATEGY_HYBRID,          /* ... each node by itself */
    TP_STRATEGIES
} tp_strategy;
/* What a bad step does; spikes of the loss have no default before these. */
typedef enum { TP_BAD_STOP, TP_BAD_SKIP, TP_BAD_RESTORE } tp_bad_policy;
typedef enum { TP_WATCHDOG_WARN, TP_WATCHDOG_STOP } tp_watchdog_action;
typedef enum {
    TP_PROGRESS_AUTO, /* a block on a terminal, lines otherwise */
    TP_PROGRESS_BLOCK,
    TP_PROGRESS_PLAIN,
    TP_PROGRESS_JSON,
    TP_PROGRESS_QUIET
} tp_progress_mode;

typedef struct {
    bool enabled;
    int64_t train_mb_tokens;
} tp_batching_options;

/* data.train, data.validation: what is not set comes from data.default. */
typedef struct {
    const char *dataset_name, *data_path;
    tp_schema_options rows;
    const char *chosen_key, *rejected_key, *env_name;
    int64_t max_samples;          /* TP_OPT_UNSET_INT: all */
    double split_validation_size; /* share of the rows; NaN or 0: none */
} tp_data_source_options;

typedef struct {
    int64_t max_num_epochs, max_num_steps;
    int64_t val_period, val_batches, val_global_batch_size;
    int64_t val_start_at; /* the first step that val_period counts for */
    bool val_at_start, val_at_end;
    int64_t seed;
} tp_loop_options;

typedef struct {
    bool enabled, use_rslora, use_dora;
    int64_t dim;
    double alpha, dropout;
    tp_str_list target_modules, exclude_modules;
    int init; /* tp_lora_init */
    int base; /* 0: as the precision, else 1 + tp_base_storage */
} tp_peft_options;

/* NeMo RL's section. */
typedef struct {
    bool enabled, match_all_linear;
    int64_t dim;
    double alpha, dropout;
    int dropout_position, init;
    tp_str_list target_modules, exclude_modules;
} tp_lora_cfg_options;

typedef struct {
    const tp_algorithm *algorithm; /* whose section the configuration has */
    union {
        max_align_t align;
        char bytes[TP_OWN_OPTION_BYTES];
    } own; /* the struct of that algorithm alone */
    tp_ranking ranking;
    tp_loop_options loop; /* of that section */

    int64_t seed;
    const char *run_name, *run_dir;
    int progress;     /* tp_progress_mode */
    int level;        /* tp_level, of temper/levers.h */
    const char *said; /* what was chosen for the recipe, a sentence; NULL: nothing; see fit.h */

    struct {
        int64_t max_new_tokens, top_k, val_top_k, max_running;
        double temperature, top_p, min_p, val_temperature, val_top_p;
        double cache_mib; /* NaN: the engine's choice */
        struct {
            int64_t tokens, lookup_max, lookup_min, rows; /* of tp_drafting; unset: null */
        } drafting;
        tp_str_list stop_strings;
        tp_f64_list stop_token_ids;
    } generation;

    struct {
        const char *model_name, *model_config;
        const char *tokenizer_name, *chat_template;
        const tp_json *template_variables; /* or NULL */
        int64_t tokenizer_train_vocab_size;
        int64_t train_global_batch_size, train_micro_batch_size, max_total_sequence_length;
        const char *train_mb_memory;  /* "512MiB" */
        double train_mb_memory_bytes; /* INFINITY: not asked for */
        int precision;                /* tp_precision */
        double max_grad_norm;         /* NaN: no clipping */
        double clip_grad_value, adaptive_clip_factor, percentile_clipping; /* likewise */
        struct {
            bool enabled;
            double init_scale, growth_factor, backoff_factor;
            int64_t growth_interval;
        } grad_scaler;
        int init;         /* tp_init_mode */
        double init_std;  /* NaN: what config.json says */
        int compile_mode; /* tp_compile_mode */
        bool activation_checkpointing;
        int activation_compression; /* tp_compression */
        const char *recompute_text;
        tp_recompute recompute; /* from recompute_text and activation_checkpointing */
        int recompute_every;
        tp_batching_options packing, dynamic_batching;
        tp_optimizer_settings optimizer;
        tp_peft_options peft;
        tp_lora_cfg_options lora_cfg; /* adopted by peft */
        const tp_json *scheduler;     /* for tp_schedule_parse(), or NULL */
    } policy;

    struct {
        int64_t max_input_seq_length, num_workers, prefetch_factor, skip_bad_rows;
        bool shuffle, add_bos, add_eos, add_generation_prompt, pin_memory;
        const char *cache_dir; /* NULL: the user's cache folder */
        const char *cache_limit;
        double cache_limit_bytes; /* INFINITY: none */
        tp_data_source_options train, validation, fallback;
        struct {
            int64_t n_examples, n_validation;
            tp_arithmetic_options of;
        } arithmetic;
    } data;

    struct {
        bool enabled, higher_is_better, save_optimizer;
        const char *checkpoint_dir, *metric_name;
        int64_t keep_top_k; /* TP_OPT_UNSET_INT: all */
        int64_t save_period;
        const char *must_save_by_text;
        double must_save_by_s; /* since the start of the attempt; NaN: never */
    } checkpointing;

    struct {
        int64_t threads; /* TP_OPT_UNSET_INT: all cores */
        const char *backend;
        int isa; /* 0: the best there is, else tp_isa + 1 */
        tp_str_list disable_passes, dump;
        double memory_fraction;
        const char *memory_limit;  /* "6GiB" */
        double memory_limit_bytes; /* INFINITY: none */
        double memory_watch;       /* NaN: none */
        int64_t loss_chunk;        /* 0: chosen by the kernel */
        bool in_place, huge_pages, padding_free;
        int affinity; /* tp_affinity */
        int numa;     /* 1: memory of all nodes in turn */
        int64_t niceness;
        tp_str_list plugins;
    } engine;

    struct {
        int strategy;      /* tp_strategy */
        double bucket_mib; /* of what ranks send together */
        int compress;      /* tp_wire_kind */
        bool error_feedback;
        double topk;
        bool reshard_after_forward;
        bool gathered_copy;
        int64_t tensor_parallel_size; /* TP_OPT_UNSET_INT: as NeMo RL's keys say */
        bool sequence_parallel;
        int64_t theirs; /* the same by NeMo RL's keys; 1: they say nothing */
        bool theirs_sequence;
        const char *theirs_key;
        int64_t ranks_per_node; /* TP_OPT_UNSET_INT: as hosts are */
    } distributed;
    /* Not of the configuration: who trains together, with how many threads here (0: as
     * engine.threads says), and what the least of all hosts allows a process (0: as this one). */
    tp_ranks ranks;
    int threads_here;
    double least_memory;

    struct {
        int nonfinite_policy; /* tp_bad_policy */
        int spike_policy;     /* 0: none, else tp_bad_policy + 1 */
        int watchdog_action;  /* tp_watchdog_action */
        int64_t max_skipped, max_restores, keep_bad_steps, max_unrewarded;
        double spike_threshold, watchdog_factor, watchdog_least;
        int64_t spike_window;
        tp_f64_list inject_nan, inject_pressure;
    } train;

    int64_t log_samples; /* -1: all */
    struct {
        bool tensorboard_enabled;
        const char *tensorboard_dir, *prometheus_path; /* prometheus_path NULL: none */
    } logger;
    struct {
        bool enabled;
        double training_s, inference_s, memory_s;
        const tp_json *alarms; /* for tp_alarm_plan_read(), or NULL */
    } monitor;
    struct { /* of the run, at its end */
        bool enabled, draws;
        tp_str_list tasks, formats; /* dimensions; none: all */
        const tp_json *thresholds;  /* by dimension, or NULL */
        double target;              /* NaN: none */
        const char *path;           /* NULL: report/ in the run's folder */
    } analysis;
    const char *profile_steps_text;
    const char *profile_workers;         /* patterns; NULL: all */
    const char *profile_origin;          /* what set the range, for messages */
    int64_t profile_start, profile_stop; /* from 1, stop excluded; both 0: none */
} tp_train_options;

#define TP_OWN_OPTIONS offsetof(tp_train_options, own)

/* The keys of configurations with this algorithm and optimizer, with their defaults; both NULL:
 * every key there is, for documentation.  free() it. */
tp_option *tp_train_options_of(const tp_algorithm *algorithm, const tp_optimizer *optimizer,
                               size_t *ret_n);

/* After binding: are all the files there that the configuration names? */
TP_CHECKED tp_status tp_train_options_check_files(const tp_config *config,
                                                  const tp_train_options *o, tp_error *err);

/* Bind the configuration and check what concerns several keys at once. */
TP_CHECKED tp_status tp_train_options_bind(tp_config *config, tp_train_options *ret, tp_error *err);
/* The same, but no data need be named: for a plan, which reads none. */
TP_CHECKED tp_status tp_train_options_bind_sizes(tp_config *config, tp_train_options *ret,
                                                 tp_error *err);

/* ---- NeMo RL's other sections ----
 *
 * Its other training backend keeps optimizer and schedule in a section of its own,
 * policy.megatron_cfg: while that is enabled they are what counts. */

/* Before binding: write them as policy.optimizer, policy.scheduler and policy.max_grad_norm. */
TP_CHECKED tp_status tp_megatron_adopt(tp_config *config, tp_error *err);
/* Behind it: what the backend that is enabled says of tensor_parallel_size, sequence_parallel and
 * activation_checkpointing; rates and weight decays are such as Megatron takes. */
TP_CHECKED tp_status tp_megatron_read(const tp_config *config, tp_train_options *o, tp_error *err);

#endif
