/* eval_options.h - the configuration of `temper eval`, in the names of NeMo RL's
 * evaluations (eval, generation, tokenizer, data, env). */
#ifndef TP_ENGINE_EVALUATE_EVAL_OPTIONS_H
#define TP_ENGINE_EVALUATE_EVAL_OPTIONS_H

#include "config/config.h"
#include "engine/data/schema.h"
#include "stats/eval_summary.h"

enum { TP_EVAL_PASS_AT_K, TP_EVAL_CONS_AT_K };
enum { TP_EVAL_MOST_PERTURBATIONS = 4 };

typedef struct {
    struct {
        int metric;
        int64_t num_tests_per_prompt, seed;
        tp_f64_list k_value;
        const char *save_path;
        tp_str_list perturbations;
        double confidence_level, success_threshold;
    } eval;
    int64_t k[TP_EVAL_MAX_K]; /* eval.k_value, or powers of two and num_tests_per_prompt */
    size_t n_k;

    struct {
        const char *model_name;
        int64_t max_new_tokens, top_k, max_model_len, max_running;
        double temperature, top_p, min_p, cache_gib;
        tp_f64_list stop_token_ids;
        tp_str_list stop_strings;
        int precision; /* 0: float32, 1: bfloat16 */
        int base;      /* 0: as it is, 1: int8, 2: nf4 */
    } generation;

    const char *tokenizer_name, *chat_template;
    const tp_json *template_variables; /* or NULL */

    struct {
        const char *dataset_name, *data_path, *split, *env_name;
        const char *problem_key, *solution_key; /* other words for keys of: */
        tp_schema_options rows;
        double split_validation_size;
        int64_t max_samples, seed;
        bool add_bos;
    } data;

    int64_t threads;
    const char *isa;
} tp_eval_options;

TP_CHECKED tp_status tp_eval_options_bind(tp_config *config, tp_eval_options *ret, tp_error *err);

/* Every key, and those of every environment, as Markdown. */
void tp_eval_options_doc(tp_buf *out);

#endif
