/* train.c - what a run will cost, then the run, with Ctrl-C to stop it safely.
 *
 *     train CONFIG [KEY=VALUE...]
 *
 * The same configurations as `temper train`; a stopped run goes on with it, or with
 * tp_training_options.resume. */
#include <signal.h>
#include <stdio.h>

#include <temper/plan.h>
#include <temper/train.h>

static volatile sig_atomic_t is_stopped;

static void on_signal(int number)
{
    (void)number;
    is_stopped = 1;
}

static bool should_stop(void *user)
{
    (void)user;
    return is_stopped;
}

static void observe(void *user, const tp_training_progress *p)
{
    (void)user;
    switch (p->event) {
    case TP_TRAINING_STEP:
        printf("step %lld/%lld  loss %.4f\n", (long long)p->step, (long long)p->max_steps,
               tp_training_value(p, "train/loss"));
        break;
    case TP_TRAINING_VALIDATION:
        printf("step %lld  validation loss %.4f\n", (long long)p->step,
               tp_training_value(p, "validation/val_loss"));
        break;
    case TP_TRAINING_NOTICE:
        printf("note: %s\n", p->text);
        break;
    case TP_TRAINING_FINISHED:
        printf("%s: %s\n", p->text, p->run_dir);
        break;
    default:
        break;
    }
}

static tp_status run(const char *config, const char *const *overrides, size_t n, tp_error *err)
{
    tp_training_plan plan = {.size = sizeof plan};
    tp_training_result result = {.size = sizeof result};
    tp_training_options options = {
        .size = sizeof options, .observe = observe, .should_stop = should_stop};
    tp_status status = tp_training_plan_compute(config, overrides, n, &plan, err);
    if (status != TP_OK)
        return status;
    printf("%lld parameters, %.1f MiB at most, %.3g FLOP per step\n", (long long)plan.parameters,
           (double)plan.peak_bytes / 1048576, plan.flops_per_step);
    signal(SIGINT, on_signal);
    status = tp_training_run(config, overrides, n, &options, &result, err);
    if (status == TP_OK)
        printf("%lld steps, final loss %.4f\n", (long long)result.steps, result.final_loss);
    return status;
}

int main(int argc, char **argv)
{
    tp_error err;
    if (argc < 2) {
        fprintf(stderr, "usage: train CONFIG [KEY=VALUE...]\n");
        return 2;
    }
    tp_status status = run(argv[1], (const char *const *)(argv + 2), (size_t)argc - 2, &err);
    if (status != TP_OK)
        fprintf(stderr, "train: %s\n", err.message);
    return status == TP_OK ? 0 : 1;
}
