/* bench_grpo.c - steps of GRPO as `temper train` runs them: rollouts, rewards, update, on
 * made-up sums, from random weights.  Each round is a run of its own in a temporary folder;
 * its time is that of the steps alone. */
#include <math.h>
#include <string.h>

#include "api/bench_subjects.h"
#include "base/files.h"
#include "engine/device/memory.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer.h"

enum { THROUGHPUT, TIME, GENERATED, TOKENS, OWN, SAMPLES = 4, MAX_WORDS = 32 };

typedef struct {
    tp_bench_subject base;
    char folder[256];
    double seconds, tokens, generated_per_s, loss; /* of the run in progress */
    int64_t n_steps;
} grpo_subject;

static void observe(void *user, const tp_train_event *event)
{
    grpo_subject *s = user;
    if (event->kind != TP_EVENT_STEP)
        return;
    s->seconds += tp_metric_latest(event->metrics, "timing/train/total_step_time");
    s->tokens += (double)event->used_tokens;
    s->generated_per_s += tp_metric_latest(event->metrics, "performance/generation_tokens_per_sec");
    s->loss = tp_metric_latest(event->metrics, "train/loss");
    s->n_steps++;
}

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    grpo_subject *s = (grpo_subject *)subject;
    const char *base = getenv("TMPDIR");
    char text[1024], file[300];
    if (!tp_bench_config_text(s->base.c->model, text, sizeof text))
        return tp_fail(err, TP_ERR_CONFIG, "grpo runs on built-in models, not on '%s'",
                       s->base.c->model);
    snprintf(s->folder, sizeof s->folder, "%.200s/temper-bench-XXXXXX",
             base && *base ? base : "/tmp");
    if (!mkdtemp(s->folder)) {
        s->folder[0] = 0;
        return tp_fail(err, TP_ERR_IO, "no temporary folder for the runs");
    }
    snprintf(file, sizeof file, "%s/config.json", s->folder);
    return tp_file_write_atomic(file, text, strlen(text), err);
}

/* The words of a recipe; `texts` holds them. */
static int make_words(const grpo_subject *s, uint64_t work, char texts[][340], char **words)
{
    const tp_bench_case *c = s->base.c;
    long long length = c->sequence_length, answer = length / 2;
    int n = 0;
#define WORD(...) snprintf(texts[n], 340, __VA_ARGS__), words[n] = texts[n], n++
    WORD("run.dir=%s/run", s->folder);
    WORD("grpo.num_prompts_per_step=%lld", (long long)c->batch_size);
    WORD("grpo.num_generations_per_prompt=%d", SAMPLES);
    WORD("grpo.max_num_steps=%llu", (unsigned long long)work);
    WORD("grpo.max_num_epochs=100000");
    WORD("grpo.val_period=0");
    WORD("policy.init=random");
    WORD("policy.precision=%s", c->precision);
    WORD("policy.model_config=%s/config.json", s->folder);
    WORD("policy.tokenizer.chat_template=null");
    WORD("policy.tokenizer.train_vocab_size=260");
    WORD("policy.train_global_batch_size=%lld", (long long)c->batch_size * SAMPLES);
    WORD("policy.train_micro_batch_size=%lld", (long long)c->batch_size);
    WORD("policy.max_total_sequence_length=%lld", length);
    WORD("policy.generation.max_new_tokens=%lld", answer);
    WORD("data.train.dataset_name=arithmetic");
    WORD("data.arithmetic.n_examples=200");
    WORD("data.num_workers=0");
    WORD("checkpointing.enabled=false");
    WORD("engine.threads=%d", tp_bench_threads(c));
#undef WORD
    return n;
}

static tp_status run_steps(grpo_subject *s, uint64_t work, tp_error *err)
{
    char texts[MAX_WORDS][340], *words[MAX_WORDS], folder[300];
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    tp_train_hooks hooks = {.observe = observe, .user = s};
    s->seconds = s->tokens = s->generated_per_s = 0;
    s->n_steps = 0;
    size_t n = (size_t)make_words(s, work, texts, words);
    TP_TRY(tp_recipe_open(NULL, (const char *const *)words, n, &recipe, err));
    tp_status status = tp_train_run(recipe.config, &recipe.options, &hooks, err);
    snprintf(folder, sizeof folder, "%s/run", s->folder);
    if (status == TP_OK)
        status = tp_dir_remove(folder, err);
    if (status == TP_OK && s->n_steps != (int64_t)work)
        status = tp_fail(err, TP_ERR_CONFIG, "the run made %lld steps of %llu",
                         (long long)s->n_steps, (unsigned long long)work);
    return status;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    grpo_subject *s = (grpo_subject *)subject;
    tp_mem_reset_peak();
    uint64_t before = tp_mem_get_stats().n_allocs;
    TP_TRY(run_steps(s, work, err));
    ret->elapsed_ns = (uint64_t)(s->seconds * 1e9);
    ret->amount[THROUGHPUT] = s->tokens;
    ret->values[GENERATED] = s->generated_per_s / (double)work;
    ret->values[TOKENS] = s->tokens;
    ret->has_checksum = true;
    memcpy(&ret->checksum, &s->loss, sizeof s->loss);
    tp_bench_fill_memory(ret, OWN, NAN);
    ret->values[OWN + TP_BENCH_ALLOCATIONS] = (double)(tp_mem_get_stats().n_allocs - before);
    return TP_OK;
}

static void tear_down(tp_subject *subject)
{
    grpo_subject *s = (grpo_subject *)subject;
    tp_error ignored;
    if (s->folder[0] && tp_dir_remove(s->folder, &ignored) != TP_OK)
        fprintf(stderr, "temper bench: %s\n", ignored.message);
    free(s);
}

static const tp_metric own[OWN] = {[THROUGHPUT] = TP_THROUGHPUT_ROW("tokens/s"),
                                   [TIME] = TP_RUN_TIME_ROW,
                                   [GENERATED] = TP_SPEED_ROW("generated", "tokens/s"),
                                   [TOKENS] = TP_TOKENS_ROW};

const tp_bench_kind tp_bench_grpo = {
    .name = "grpo",
    .class = {.set_up = set_up, .run = run, .tear_down = tear_down},
    .size = sizeof(grpo_subject),
    .metrics = own,
    .n_metrics = OWN,
    .work_unit = "steps",
    .works_in_steps = true,
};
