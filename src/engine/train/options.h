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

#include "config/config.h"
#include "engine/algorithms/advantage.h"
#include "engine/passes/pass.h"

/* In the order of the choices in options.def. */
typedef enum { TP_PRECISION_FLOAT32, TP_PRECISION_BFLOAT16 } tp_precision;
typedef enum { TP_INIT_PRETRAINED, TP_INIT_RANDOM } tp_init_mode;
typedef enum { TP_COMPILE_NONE, TP_COMPILE_DEFAULT } tp_compile_mode;
typedef enum { TP_ALGORITHM_SFT, TP_ALGORITHM_DPO, TP_ALGORITHM_GRPO } tp_algorithm;

/* What the best checkpoints are the best by: checkpointing.metric_name. */
typedef enum {
    TP_RANK_BY_AGE,
    TP_RANK_BY_VAL_LOSS,
    TP_RANK_BY_VAL_ACCURACY,
    TP_RANK_BY_TRAIN_LOSS
} tp_ranking;
typedef enum { TP_STOP_ACCURACY, TP_STOP_PASS_K } tp_stop_metric;
typedef enum { TP_NONFINITE_STOP, TP_NONFINITE_SKIP } tp_nonfinite_policy;
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
    const char *input_key, *output_key, *prompt_key, *chat_key, *text_key, *tool_key, *system_key;
    const char *system_prompt_file, *prompt_file, *separator;
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
    tp_algorithm algorithm; /* which of sft, dpo, grpo the configuration has; sft without any */
    tp_ranking ranking;
    tp_loop_options loop; /* of that section */

    int64_t seed;
    const char *run_name, *run_dir;
    int progress; /* tp_progress_mode */

    struct {
        int64_t max_num_epochs, max_num_steps;
        int64_t val_period, val_batches, val_global_batch_size;
        bool val_at_start, val_at_end, only_unmask_final;
        int64_t seed;
    } sft;

    struct {
        int64_t max_num_epochs, max_num_steps;
        int64_t val_period, val_batches, val_global_batch_size;
        bool val_at_start, val_at_end;
        int64_t seed;
        double beta, preference_weight, sft_weight, label_smoothing;
        bool preference_average, sft_average;
        int preference_loss; /* tp_preference_kind */
    } dpo;

    struct {
        int64_t num_prompts, num_generations;
        int64_t max_num_epochs, max_num_steps;
        bool normalize_rewards, leave_one_out;
        int estimator; /* row of tp_advantage_kinds */
        bool estimator_normalize, estimator_leave_one_out, minus_baseline;
        double advantage_clip_low, advantage_clip_high; /* NaN: none */
        bool dynamic_sampling, overlong_filtering, skip_reference;
        double batch_multiplier;
        int64_t dynamic_max_batches;
        tp_reward_scaling scaling;
        tp_reward_shaping shaping;
        double logprob_error_threshold; /* NaN: none */
        int64_t val_period, val_batch_size, max_val_samples, val_generations;
        bool val_at_start, val_at_end;
        int64_t val_start_at;
        int stop_metric;       /* tp_stop_metric; TP_OPT_UNSET_ENUM: none */
        double stop_threshold; /* not NaN where there is a stop_metric */
        int64_t seed;
    } grpo;

    struct {
        double kl_penalty, kl_input_clamp, kl_output_clamp;
        int kl_type; /* tp_kl_type */
        double clip_min, clip_max, dual_clip;
        bool cispo, kl_from_generator, correction, token_level;
        bool at_temperature, kl_bias_correction;
        bool sequence_ratio, no_ratio, on_policy_ratio, kl_in_reward;
        int truncation; /* TP_OPT_UNSET_ENUM: none */
        double truncate_min, truncate_max;
        double positive_nll, length_divisor;
    } loss;

    struct {
        int64_t max_new_tokens, top_k, val_top_k, max_running;
        double temperature, top_p, min_p, val_temperature, val_top_p;
        double cache_mib; /* NaN: the engine's choice */
        tp_str_list stop_strings;
        tp_f64_list stop_token_ids;
    } generation;

    const tp_json *env; /* or NULL */

    struct {
        const char *model_name, *model_config;
        const char *tokenizer_name, *chat_template;
        const tp_json *template_variables; /* or NULL */
        int64_t tokenizer_train_vocab_size;
        int64_t train_global_batch_size, train_micro_batch_size, max_total_sequence_length;
        int precision;        /* tp_precision */
        double max_grad_norm; /* NaN: no clipping */
        int init;             /* tp_init_mode */
        double init_std;      /* NaN: what config.json says */
        int compile_mode;     /* tp_compile_mode */
        bool activation_checkpointing;
        const char *recompute_text;
        tp_recompute recompute; /* from recompute_text and activation_checkpointing */
        int recompute_every;
        tp_batching_options packing, dynamic_batching;
        struct {
            double lr, weight_decay, eps;
            tp_f64_list betas; /* two, below 1 */
        } adamw;
        const tp_json *megatron;  /* NeMo RL's other backend, or NULL */
        const tp_json *scheduler; /* for tp_schedule_parse(), or NULL */
    } policy;

    struct {
        int64_t max_input_seq_length, num_workers, prefetch_factor, skip_bad_rows;
        bool shuffle, add_bos, add_eos;
        const char *cache_dir; /* NULL: the user's cache folder */
        tp_data_source_options train, validation, fallback;
        struct {
            int64_t n_examples, n_validation, digits, seed;
            const char *operators;
            int form; /* tp_arithmetic_form */
            bool negative;
            double word_problems, validation_share, mistakes;
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
        int64_t loss_chunk; /* 0: chosen by the kernel */
    } engine;

    struct {
        int nonfinite_policy; /* tp_nonfinite_policy */
        int64_t max_skipped, max_unrewarded;
    } train;

    int64_t log_samples; /* -1: all */
    const char *profile_steps_text;
    const char *profile_workers;         /* patterns; NULL: all */
    const char *profile_origin;          /* what set the range, for messages */
    int64_t profile_start, profile_stop; /* from 1, stop excluded; both 0: none */
} tp_train_options;

/* Every key there is, for documentation. */
extern const tp_option tp_train_option_table[];
extern const size_t tp_train_option_count;

/* The keys of one algorithm's configurations, with its defaults. */
const tp_option *tp_train_options_of(tp_algorithm algorithm, size_t *ret_n);
/* Which algorithm a configuration asks for by its sections. */
TP_CHECKED tp_status tp_train_algorithm(const tp_config *config, tp_algorithm *ret, tp_error *err);
const char *tp_algorithm_name(tp_algorithm algorithm); /* "sft", "dpo", "grpo" */

/* After binding: are all the files there that the configuration names? */
TP_CHECKED tp_status tp_train_options_check_files(const tp_config *config,
                                                  const tp_train_options *o, tp_error *err);

/* Bind the configuration and check what concerns several keys at once. */
TP_CHECKED tp_status tp_train_options_bind(tp_config *config, tp_train_options *ret, tp_error *err);
/* The same, but no data need be named: for a plan, which reads none. */
TP_CHECKED tp_status tp_train_options_bind_sizes(tp_config *config, tp_train_options *ret,
                                                 tp_error *err);

#endif
