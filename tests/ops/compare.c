/* compare.c - every kernel of a backend against ref, in many variants of each case.
 *
 * An output may differ from ref's by one unit in the last place of its dtype
 * plus 1e-5 of a magnitude: of the sum of absolute terms for the linear family,
 * elsewhere of the largest element, or of a typical term where terms cancel.  Outputs marked ~ may,
 * when an input is bf16, have passed through it: 2^-8 of the magnitude. */
#include "ops/bench.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "engine/backend/ref/load.h"
#include "ops/memory.h"

typedef struct {
    types types;
    bool is_strided, in_place, no_accumulate;
    unsigned present;
    int unread; /* output without memory, or -1 */
    int nan_in; /* input that holds NaNs, or -1 */
} variant;

typedef struct {
    const tp_backend *backend;
    tp_device *device; /* runs the kernels; NULL: they are called here */
    const op_case *case_;
    const char *only;
    variant variant;
    problem problem;
    memory *memory;
    tp_arena *arena;
    double *expected[TP_MAX_OUT], *magnitude[TP_MAX_OUT];
    int n_failures, n_checked;
    int *variants_of, *checks_of, *failures_of; /* by kernel: offered, taken, failed */
    double *worst_of;                           /* largest error as a part of what is allowed */
    bool is_quiet;
} check;

enum { MAX_SHOWN = 8 }; /* failures printed of one kernel */

static char running[300]; /* for the message of a crash */

static void on_crash(int signal_)
{
    static const char what[] = "FAIL (crashed) ";
    ssize_t n = write(STDOUT_FILENO, what, sizeof what - 1);
    n += write(STDOUT_FILENO, running, strlen(running));
    n += write(STDOUT_FILENO, "\n", 1);
    _exit(n > 0 ? 1 : 128 + signal_);
}

static void describe(const check *c, const tp_kernel *kernel, char *text, size_t size)
{
    const variant *v = &c->variant;
    int n = snprintf(text, size, "%s [%s] %s%s%s%s", kernel->name, c->case_->text,
                     types_names[v->types], v->is_strided ? " strided" : "",
                     v->in_place ? " in place" : "",
                     v->no_accumulate ? " overwriting the accumulator" : "");
    if (v->present != ~0u)
        n += snprintf(text + n, size - (size_t)n, " optional inputs %#x", v->present);
    if (v->unread >= 0)
        n +=
            snprintf(text + n, size - (size_t)n, " %s unread", c->problem.sig->out[v->unread].name);
    if (v->nan_in >= 0)
        snprintf(text + n, size - (size_t)n, " NaN in %s", c->problem.sig->in[v->nan_in].name);
}

static void fail(check *c, size_t kernel, const char *message)
{
    char text[300];
    c->n_failures++;
    if (c->failures_of[kernel]++ >= MAX_SHOWN || c->is_quiet)
        return;
    describe(c, c->backend->kernels[kernel], text, sizeof text);
    printf("FAIL %s: %s\n", text, message);
}

/* Distance between neighbouring numbers of `dtype` at this value. */
static double unit_in_last_place(tp_dtype dtype, double value)
{
    if (dtype == TP_DTYPE_U8) /* of two values as near, either */
        return 1;
    int digits = dtype == TP_DTYPE_F32    ? 23
                 : dtype == TP_DTYPE_BF16 ? 7
                 : dtype == TP_DTYPE_F16  ? 10
                                          : 52;
    int least = dtype == TP_DTYPE_F16 ? -14 : -126;
    if (value == 0 || !isfinite(value))
        return 0;
    int exponent = ilogb(value);
    return ldexp(1, (exponent < least ? least : exponent) - digits);
}

static bool sums_products(tp_op op)
{
    return op == TP_OP_linear || op == TP_OP_linear_gelu || op == TP_OP_linear_panels ||
           op == TP_OP_linear_dx || op == TP_OP_linear_dw || op == TP_OP_linear_db;
}

/* Blocks of attention may carry a NaN to neighbouring rows of the same tensor; panels of an odd
 * K have places for weights that are none and hold 0 outside of this test. */
static bool spreads_nan(const problem *p)
{
    tp_op op = p->op;
    return op == TP_OP_attention || op == TP_OP_attention_grad || op == TP_OP_paged_attention ||
           (op == TP_OP_linear_panels && p->dim['K'] % 2 == 1);
}

static bool has_input_of(const problem *p, tp_dtype dtype)
{
    for (int i = 0; i < p->sig->n_in; i++) {
        if (!tensor_is_absent(&p->in[i]) && p->in[i].dtype == dtype)
            return true;
    }
    return false;
}

static double *output_values(check *c, int o)
{
    const tp_operand *out = &c->memory->launch.out[o];
    if (!out->data)
        return NULL;
    double *values = tp_arena_array(c->arena, double, out->dim[0] * out->dim[1] + 1);
    for (int64_t r = 0; r < out->dim[0]; r++) {
        for (int64_t i = 0; i < out->dim[1]; i++)
            values[r * out->dim[1] + i] = out->dtype == TP_DTYPE_I32
                                              ? ((const int32_t *)out->data)[r * out->stride + i]
                                              : ref_load(out, r, i);
    }
    return values;
}

static void run_ref(check *c, double **ret_values)
{
    const tp_kernel *ref = tp_kernel_find_prepared(&tp_backend_ref, &c->memory->launch);
    TP_ASSERT(ref);
    c->memory->device = NULL; /* what it means is computed here */
    const char *fault = memory_run(c->memory, ref, 1, 0xff);
    c->memory->device = c->device;
    if (fault) {
        printf("FAIL %s [%s]: %s\n", ref->name, c->case_->text, fault);
        c->n_failures++;
    }
    for (int o = 0; o < c->problem.sig->n_out; o++)
        ret_values[o] = output_values(c, o);
}

static void make_absolute(check *c)
{
    tp_launch *launch = &c->memory->launch;
    for (int i = 0; i < launch->n_in; i++) {
        const tp_operand *in = &launch->in[i];
        for (int64_t r = 0; c->problem.in[i].f && r < in->dim[0]; r++) {
            for (int64_t k = 0; k < in->dim[1]; k++)
                ref_store(in, r, k, fabs(ref_load(in, r, k)));
        }
    }
}

/* Outputs whose elements are differences of larger terms: those are products of such inputs. */
static const struct {
    tp_op op;
    const char *output, *factors[3];
} cancelling[] = {
    {TP_OP_rmsnorm_grad, "dx", {"rstd", "dy", "w"}},
    {TP_OP_layernorm_grad, "dx", {"rstd", "dy", "w"}},
    {TP_OP_attention_grad, "dq", {"do", "v", "k"}},
    {TP_OP_attention_grad, "dk", {"do", "v", "q"}},
    {TP_OP_cross_entropy_grad, "dlogits", {"weights", "dloss"}},
    {TP_OP_linear_ce_train, "dx", {"weights", "dloss", "w"}},
    {TP_OP_linear_ce_train, "dw", {"weights", "dloss", "x"}},
    {TP_OP_linear_ce_dx, "dx", {"weights", "dloss", "w"}},
};

static double root_mean_square(const problem *p, const char *name)
{
    const tensor *t = &p->in[tp_operand_find(p->sig->in, p->sig->n_in, name)];
    double sum = 0;
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++)
        sum += isnan(t->f[i]) ? 0 : t->f[i] * t->f[i];
    return sqrt(sum / (double)n);
}

static double typical_term(const problem *p, int o)
{
    if (p->op == TP_OP_sample) /* log-probabilities: a logit less a logarithm */
        return 1;
    for (size_t i = 0; i < sizeof cancelling / sizeof cancelling[0]; i++) {
        if (cancelling[i].op != p->op || strcmp(cancelling[i].output, p->sig->out[o].name))
            continue;
        double size = 1;
        for (int k = 0; k < 3 && cancelling[i].factors[k]; k++)
            size *= root_mean_square(p, cancelling[i].factors[k]);
        if (p->op == TP_OP_attention_grad) /* do . v has D terms */
            size *= (double)p->attrs.scale * sqrt((double)p->attrs.head_dim);
        return size;
    }
    return 0;
}

/* Fills expected and magnitude; the memory is left as before a run. */
static void expect(check *c)
{
    memory *m = c->memory;
    const tp_signature *sig = c->problem.sig;
    bool has_sums = sums_products(c->problem.op) && c->variant.nan_in < 0;
    if (has_sums) {
        make_absolute(c);
        memory_commit(m);
        run_ref(c, c->magnitude);
        memory_bind(m, c->arena, &c->problem, c->variant.is_strided, c->variant.in_place);
        m->launch.accumulate = !c->variant.no_accumulate;
        if (c->variant.unread >= 0)
            m->launch.out[c->variant.unread].data = NULL;
    }
    run_ref(c, c->expected);
    for (int o = 0; o < sig->n_out && !has_sums; o++) {
        int64_t n = tensor_count(&c->problem.out[o]);
        double largest = typical_term(&c->problem, o);
        c->magnitude[o] = NULL;
        if (!c->expected[o])
            continue;
        for (int64_t i = 0; i < n; i++)
            largest = fmax(largest, fabs(c->expected[o][i]));
        c->magnitude[o] = tp_arena_array(c->arena, double, n + 1);
        for (int64_t i = 0; i < n; i++)
            c->magnitude[o][i] = largest;
    }
}

/* The error as a part of what is allowed: right up to 1. */
static double relative_error(const check *c, int o, double actual, double expected,
                             double magnitude)
{
    const tp_signature *sig = c->problem.sig;
    if (isnan(expected) || isnan(actual))
        return isnan(actual) && (isnan(expected) || spreads_nan(&c->problem)) ? 0 : INFINITY;
    if (actual == expected)
        return 0;
    bool rounds = sig->out[o].through_bf16; /* to the half type, on the way */
    double tolerance = rounds && has_input_of(&c->problem, TP_DTYPE_BF16)  ? 0x1p-8
                       : rounds && has_input_of(&c->problem, TP_DTYPE_F16) ? 0x1p-11
                                                                           : 1e-5;
    double largest = fmax(fabs(actual), fabs(expected));
    double unit = unit_in_last_place(c->problem.out[o].dtype, largest);
    double error = fabs(actual - expected) / (unit + tolerance * magnitude);
    return isnan(error) ? INFINITY : error; /* infinities that differ */
}

static void compare_output(check *c, size_t kernel, int o)
{
    double *actual = output_values(c, o);
    if (!actual)
        return;
    const tensor *out = &c->problem.out[o];
    int64_t n = tensor_count(out), first = -1, n_wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        double error = relative_error(c, o, actual[i], c->expected[o][i], c->magnitude[o][i]);
        c->worst_of[kernel] = fmax(c->worst_of[kernel], error);
        if (error <= 1)
            continue;
        first = n_wrong++ == 0 ? i : first;
    }
    if (n_wrong == 0)
        return;
    char message[200];
    snprintf(message, sizeof message,
             "%s: %lld of %lld wrong, first (%lld,%lld): %.8g, expected %.8g (magnitude %.3g)",
             c->problem.sig->out[o].name, (long long)n_wrong, (long long)n,
             (long long)(first / out->dim[1]), (long long)(first % out->dim[1]), actual[first],
             c->expected[o][first], c->magnitude[o][first]);
    fail(c, kernel, message);
}

static void compare_bits(check *c, size_t kernel, const char *what)
{
    for (int o = 0; o < c->problem.sig->n_out; o++) {
        if (!c->memory->launch.out[o].data || memory_is_same(c->memory, o))
            continue;
        char message[100];
        snprintf(message, sizeof message, "%s: %s", c->problem.sig->out[o].name, what);
        fail(c, kernel, message);
    }
}

/* Kernels are chosen before memory is known. */
static bool accepts(const tp_kernel *kernel, const tp_launch *bound)
{
    tp_launch launch = *bound;
    launch.threads = 2;
    for (int i = 0; i < TP_MAX_IN; i++)
        launch.in[i].data = NULL;
    for (int o = 0; o < TP_MAX_OUT; o++)
        launch.out[o].data = NULL;
    return !kernel->accepts || kernel->accepts(&launch);
}

static void check_kernel(check *c, size_t index)
{
    const tp_kernel *kernel = c->backend->kernels[index];
    memory *m = c->memory;
    describe(c, kernel, running, sizeof running);
    c->variants_of[index]++;
    if (!accepts(kernel, &m->launch))
        return;
    c->n_checked++;
    c->checks_of[index]++;

    size_t mark = tp_arena_mark(c->arena);
    const char *fault = memory_run(m, kernel, 2, 0xff);
    if (fault)
        fail(c, index, fault);
    for (int o = 0; o < c->problem.sig->n_out; o++)
        compare_output(c, index, o);
    memory_save(m);
    memory_run(m, kernel, 2, 0x00);
    compare_bits(c, index, "differs between two runs with other bytes in the workspace");
    memory_run(m, kernel, 1, 0xff);
    compare_bits(c, index, "differs between one and two threads");
    tp_arena_rewind(c->arena, mark);
}

static bool is_selected(const check *c, const tp_kernel *kernel)
{
    return kernel->op == c->case_->op && kernel->isa <= tp_cpu_isa();
}

/* Two elements: one anywhere, one in the second row, whose weight in a loss is 0. */
static void put_nans(problem *p, int input)
{
    tensor *t = &p->in[input];
    int64_t n = tensor_count(t);
    t->f[(int64_t)(random_uniform(99, (uint64_t)input) * (double)n)] = NAN;
    if (t->dim[0] > 1)
        t->f[t->dim[1] + t->dim[1] / 2] = NAN;
}

static void check_variant(check *c, variant v)
{
    size_t mark = tp_arena_mark(c->arena);
    c->variant = v;
    problem *p = &c->problem;
    problem_init(p, c->arena, c->case_->op, c->case_->text, v.types, v.present);
    if (v.nan_in >= 0)
        put_nans(p, v.nan_in);
    for (int o = 0; o < p->sig->n_out && v.no_accumulate; o++) {
        int input = tp_op_alias(p->op, o);
        for (int64_t i = 0; input >= 0 && p->in[input].f && i < tensor_count(&p->in[input]); i++)
            p->in[input].f[i] = NAN; /* what was there before a step must not matter */
    }
    memory_bind(c->memory, c->arena, p, v.is_strided, v.in_place);
    c->memory->launch.accumulate = !v.no_accumulate;
    if (v.unread >= 0)
        c->memory->launch.out[v.unread].data = NULL;
    expect(c);
    for (size_t k = 0; k < count_kernels(c->backend); k++) {
        if (is_selected(c, c->backend->kernels[k]))
            check_kernel(c, k);
    }
    tp_arena_rewind(c->arena, mark);
}

static const variant plain = {.present = ~0u, .unread = -1, .nan_in = -1};

static void check_absences(check *c, types t)
{
    const tp_signature *sig = tp_op_signature(c->case_->op);
    unsigned n_subsets = 1u << n_optional_inputs(sig);
    for (unsigned present = 0; present + 1 < n_subsets; present++) {
        variant v = plain;
        v.types = t;
        v.present = present;
        check_variant(c, v);
    }
    for (int o = 0; o < sig->n_out && sig->n_out > 1; o++) {
        int input = tp_op_alias(c->case_->op, o);
        if (input >= 0 && !sig->in[input].is_optional)
            continue; /* state: always there */
        variant v = plain;
        v.types = t;
        v.present = 0;
        v.unread = o;
        if (!sig->out[o].is_optional)
            check_variant(c, v);
    }
}

static void check_nans(check *c, types t)
{
    const tp_signature *sig = tp_op_signature(c->case_->op);
    for (int i = 0; i < sig->n_in; i++) {
        if (sig->in[i].kind >= TP_KIND_weights)
            continue;
        variant v = plain;
        v.types = t;
        v.nan_in = i;
        check_variant(c, v);
    }
}

static void check_variants(check *c)
{
    uint32_t traits = tp_ops[c->case_->op]->traits;
    for (types t = TYPES_F32; t <= TYPES_F16; t++) {
        for (int is_strided = 0; is_strided < 2; is_strided++) {
            variant v = plain;
            v.types = t;
            v.is_strided = is_strided;
            check_variant(c, v);
        }
    }
    for (types t = TYPES_F32; t <= TYPES_BF16; t++) {
        variant v = plain;
        v.types = t;
        v.in_place = true;
        if (traits & TP_OP_INPLACE)
            check_variant(c, v);
        v.in_place = false;
        v.no_accumulate = true;
        if (traits & TP_OP_ACCUMULATES)
            check_variant(c, v);
        check_absences(c, t);
        check_nans(c, t);
    }
}

static bool is_reachable(const check *c, size_t kernel)
{
    const tp_kernel *k = c->backend->kernels[kernel];
    return k->isa <= tp_cpu_isa() && (!c->only || strcmp(tp_ops[k->op]->name, c->only) == 0);
}

static bool has_work(const check *c, tp_op op)
{
    for (size_t k = 0; k < count_kernels(c->backend); k++) {
        if (c->backend->kernels[k]->op == op && is_reachable(c, k))
            return true;
    }
    return false;
}

static void check_case(check *c, tp_op op, const char *text)
{
    const op_case case_ = {op, text};
    c->case_ = &case_;
    if (has_work(c, op))
        check_variants(c);
    c->case_ = NULL;
}

static void check_cases(check *c)
{
    static memory m;
    if (!m.workspace.begin)
        memory_init(&m);
    c->memory = &m;
    m.device = c->device;
    c->variants_of = tp_arena_array(c->arena, int, count_kernels(c->backend) + 1);
    c->worst_of = tp_arena_array(c->arena, double, count_kernels(c->backend) + 1);
    c->checks_of = tp_arena_array(c->arena, int, count_kernels(c->backend) + 1);
    c->failures_of = tp_arena_array(c->arena, int, count_kernels(c->backend) + 1);
    for (size_t i = 0; i < n_test_cases; i++)
        check_case(c, test_cases[i].op, test_cases[i].text);
    for (size_t i = 0; i < n_gradient_cases; i++) {
        const gradient_case *g = &gradient_cases[i];
        check_case(c, g->op, g->text);
        if (g->gradient)
            check_case(c, g->gradient, g->text);
        for (int k = 0; k < 3 && tp_ops[g->op]->gradients[k]; k++)
            check_case(c, tp_ops[g->op]->gradients[k], g->text);
    }
}

int check_backend(tp_arena *arena, const tp_backend *backend, const char *only, int *ret_n_checked)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        signal(crashes[i], on_crash);
    check c = {.backend = backend, .arena = arena, .only = only};
    c.device = backend->is_host ? NULL : device_of(backend->name, 1);
    check_cases(&c);
    for (size_t k = 0; k < count_kernels(backend); k++) {
        if (!is_reachable(&c, k))
            continue;
        printf("%-36s takes %4d of %4d variants, error up to %.2f of allowed",
               backend->kernels[k]->name, c.checks_of[k], c.variants_of[k], c.worst_of[k]);
        if (c.failures_of[k] > 0)
            printf(", %d failures", c.failures_of[k]);
        printf("\n");
        if (c.checks_of[k] == 0) {
            printf("FAIL %s: no case reaches it\n", backend->kernels[k]->name);
            c.n_failures++;
        }
    }
    *ret_n_checked = c.n_checked;
    return c.n_failures;
}

int check_detection(tp_arena *arena, const tp_backend *faulty)
{
    check c = {.backend = faulty, .arena = arena, .is_quiet = true};
    int n_missed = 0;
    check_cases(&c);
    for (size_t k = 0; k < count_kernels(faulty); k++) {
        bool is_sound = strncmp(faulty->kernels[k]->name, "sound", 5) == 0;
        if (is_sound == (c.failures_of[k] == 0))
            continue;
        printf("FAIL the bench finds %d failures in '%s'\n", c.failures_of[k],
               faulty->kernels[k]->name);
        n_missed++;
    }
    printf("detection: %zu kernels, %d judged wrongly\n", count_kernels(faulty), n_missed);
    return n_missed;
}
