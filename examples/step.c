/* step.c - a training with the loop in this program: it stops by itself when the loss no longer
 * falls, which no recipe says.
 *
 *     step CONFIG [KEY=VALUE...]
 *
 * One tp_training_step() is everything of a step: forward and backward passes, loss scale, what is
 * done about numbers that are not finite, clipping, update, record. */
#include <stdio.h>

#include <temper/train.h>

enum { PATIENCE = 20 }; /* steps */

/* Closing before the last step saves it: the run goes on with options.resume. */
static tp_status run(tp_training *training, tp_error *err)
{
    double best = 0;
    int since = 0;
    while (!tp_training_is_over(training) && since < PATIENCE) {
        tp_training_step_result step = {.size = sizeof step};
        tp_status status = tp_training_step(training, &step, err);
        if (status != TP_OK)
            return status;
        printf("step %lld/%lld  loss %.4f  gradients %.3f%s%s\n", (long long)step.step,
               (long long)step.max_steps, step.loss, step.grad_norm,
               step.skipped ? "  no update" : "", step.restored ? "  went back" : "");
        bool is_better = step.step == 1 || step.loss < best;
        best = is_better ? step.loss : best;
        since = is_better ? 0 : since + 1;
    }
    return TP_OK;
}

int main(int argc, char **argv)
{
    tp_error err;
    tp_training *training;
    tp_training_result result = {.size = sizeof result};
    if (argc < 2) {
        fprintf(stderr, "usage: step CONFIG [KEY=VALUE...]\n");
        return 2;
    }
    tp_status status = tp_training_open(argv[1], (const char *const *)(argv + 2), (size_t)argc - 2,
                                        NULL, &training, &err);
    if (status == TP_OK) {
        status = run(training, &err);
        tp_status closed = tp_training_close(training, &result, status == TP_OK ? &err : NULL);
        status = status == TP_OK ? closed : status;
    }
    if (status != TP_OK) {
        fprintf(stderr, "step: %s\n", err.message);
        return 1;
    }
    printf("%lld steps, loss %.4f\n", (long long)result.steps, result.final_loss);
    return 0;
}
