/* faulty.c - kernels that are wrong on purpose, each in one way that the bench
 * must notice.  They compute with ref and then do their harm. */
#include "ops/bench.h"

#include <math.h>

#include "engine/backend/ref/load.h"

static void run_ref(const tp_launch *launch)
{
    tp_launch copy = *launch;
    copy.kernel = tp_kernel_find_prepared(&tp_backend_ref, launch);
    copy.kernel->run(&copy);
}

static void sound(const tp_launch *launch) { run_ref(launch); }

static void scale_last_element(const tp_launch *launch, double factor)
{
    const tp_operand *y = &launch->out[0];
    int64_t r = y->dim[0] - 1, c = y->dim[1] - 1;
    ref_store(y, r, c, ref_load(y, r, c) * factor);
}

static void slightly_wrong(const tp_launch *launch)
{
    run_ref(launch);
    scale_last_element(launch, 1.02);
}

static void writes_between_rows(const tp_launch *launch)
{
    run_ref(launch);
    tp_operand y = launch->out[0];
    if (y.dim[0] > 1 && y.stride > y.dim[1]) /* past the last row there is no memory */
        ref_store(&y, 0, y.dim[1], 0);
}

static void writes_before(const tp_launch *launch)
{
    run_ref(launch);
    ref_store(&launch->out[0], 0, -1, 0);
}

static void changes_an_input(const tp_launch *launch)
{
    run_ref(launch);
    ref_store(&launch->in[1], 0, 0, 5);
}

static void ignores_stride(const tp_launch *launch)
{
    tp_launch copy = *launch;
    copy.in[0].stride = copy.in[0].rank == 2 ? copy.in[0].dim[1] : 1;
    run_ref(&copy);
}

static void drops_nans(const tp_launch *launch)
{
    run_ref(launch);
    const tp_operand *y = &launch->out[0];
    for (int64_t r = 0; is_bound(y) && r < y->dim[0]; r++) {
        for (int64_t c = 0; c < y->dim[1]; c++) {
            if (isnan(ref_load(y, r, c)))
                ref_store(y, r, c, 0);
        }
    }
}

static void depends_on_threads(const tp_launch *launch)
{
    run_ref(launch);
    if (launch->threads == 1)
        scale_last_element(launch, 1.01);
}

static size_t some_workspace(const tp_launch *launch)
{
    (void)launch;
    return 60;
}

static void reads_its_workspace(const tp_launch *launch)
{
    run_ref(launch);
    if (((const unsigned char *)launch->workspace)[59] == 0)
        scale_last_element(launch, 1.01);
}

static void writes_past_its_workspace(const tp_launch *launch)
{
    run_ref(launch);
    ((unsigned char *)launch->workspace)[60] = 1;
}

static void trusts_the_accumulator(const tp_launch *launch)
{
    tp_launch copy = *launch;
    copy.accumulate = true;
    run_ref(&copy);
}

static void forgets_the_accumulator(const tp_launch *launch)
{
    tp_launch copy = *launch;
    copy.accumulate = false;
    run_ref(&copy);
}

static void needs_the_bias(const tp_launch *launch)
{
    run_ref(launch);
    if (!is_bound(&launch->in[2]))
        scale_last_element(launch, 2);
}

static bool looks_at_data(const tp_launch *launch) { return launch->in[0].data != NULL; }

/* A kernel that could never be chosen is judged by its checks: there are none. */
static void never_chosen(const tp_launch *launch) { slightly_wrong(launch); }

#define FAULTY(op_, run_) \
    &(const tp_kernel) { .name = #run_ "/" #op_, .op = TP_OP_##op_, .run = run_ }

static const tp_kernel *const kernels[] = {
    FAULTY(add, sound),
    FAULTY(linear_dw, sound),
    FAULTY(add, slightly_wrong),
    FAULTY(linear, slightly_wrong),
    FAULTY(add, writes_between_rows),
    FAULTY(add, writes_before),
    FAULTY(add, changes_an_input),
    FAULTY(add, ignores_stride),
    FAULTY(rmsnorm, drops_nans),
    FAULTY(add, depends_on_threads),
    &(const tp_kernel){.name = "reads_its_workspace",
                       .op = TP_OP_add,
                       .workspace = some_workspace,
                       .run = reads_its_workspace},
    &(const tp_kernel){.name = "writes_past_its_workspace",
                       .op = TP_OP_add,
                       .workspace = some_workspace,
                       .run = writes_past_its_workspace},
    FAULTY(linear_dw, trusts_the_accumulator),
    FAULTY(linear_dw, forgets_the_accumulator),
    FAULTY(linear, needs_the_bias),
    &(const tp_kernel){.name = "sound, as it is never chosen",
                       .op = TP_OP_add,
                       .accepts = looks_at_data,
                       .run = never_chosen},
    NULL};

const tp_backend faulty_backend = {
    .name = "faulty",
    .kernels = kernels,
    .is_host = true,
};
