/* evaluate.c - how good a model is at sums, and how sure that is.
 *
 *     evaluate MODEL [KEY=VALUE...]
 *
 * MODEL is a Hugging Face folder, a checkpoint, or the folder of a run. */
#include <stdio.h>

#include <temper/evaluate.h>

enum { MOST = 32 };

static void print(void *user, const char *text) { fprintf((FILE *)user, "note: %s\n", text); }

static tp_status run(const char *const *settings, size_t n, tp_error *err)
{
    tp_evaluator *e = NULL;
    tp_evaluation_result r = {.size = sizeof r};
    tp_evaluator_options options = {.size = sizeof options, .notice = print, .user = stderr};
    tp_status status = tp_evaluator_open(NULL, settings, n, &options, &e, err);
    if (status == TP_OK)
        status = tp_evaluator_run(e, err);
    if (status == TP_OK)
        status = tp_evaluator_get_result(e, &r, err);
    if (status == TP_OK)
        printf("pass@1 %.3f (%.3f .. %.3f), %llu answers to %llu questions\n", r.pass_at_1,
               r.pass_lo, r.pass_hi, (unsigned long long)r.answers, (unsigned long long)r.prompts);
    tp_evaluator_free(e);
    return status;
}

int main(int argc, char **argv)
{
    char model[4096];
    const char *settings[MOST + 4] = {model, "data.dataset_name=arithmetic", "data.max_samples=20",
                                      "tokenizer.chat_template=null"};
    tp_error err;
    if (argc < 2 || argc > MOST) {
        fprintf(stderr, "usage: evaluate MODEL [KEY=VALUE...]\n");
        return 2;
    }
    snprintf(model, sizeof model, "generation.model_name=%s", argv[1]);
    for (int i = 2; i < argc; i++)
        settings[i + 2] = argv[i];
    if (run(settings, (size_t)argc + 2, &err) != TP_OK) {
        fprintf(stderr, "evaluate: %s\n", err.message);
        return 1;
    }
    return 0;
}
