/* self_test.c - small cases of every op in a child process, against ref.
 *
 * A child, not handlers for signals: a kernel that is wrong may write anywhere, and handlers
 * would be those of the whole program, whose other threads may need theirs.  The program may
 * have threads, so that the child has one thread of it and every lock as it was: it takes
 * none.  All memory is there before; kernels allocate nothing; a launch without a team needs no
 * thread.  It is made by clone() itself, without the handlers of pthread_atfork(), which belong to
 * the program, and without a signal at its end, so that the program's wait() and its handler of
 * SIGCHLD never see it.  The verdict comes through shared memory, whoever waits for whom. */
#include "engine/backend/cpu/self_test.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/platform.h"
#include "engine/backend/backend.h"
#include "engine/device/device_backend.h"

enum {
    MEMORY = 24 << 20, /* operands, what ref makes of them, a workspace; touched as needed */
    WORKSPACE = 8 << 20,
    CPU_SECONDS = 10, /* it takes some hundredths; emulated tiles under a sanitizer, seconds */
    WALL_SECONDS = 120
};

#define COMMA ,
static const struct {
    tp_op op;
    tp_attrs attrs;
    const char *operands;
} rows[] = {
#define CASE(op_, attributes, operands_) {TP_OP_##op_, {attributes}, operands_},
#include "engine/backend/cpu/self_test.def"
#undef CASE
};

/* Output k of ref is in `expected`; in place, launch.in holds what the kernel overwrites. */
typedef struct {
    tp_launch launch;
    bool is_bf16;
    void *before[TP_MAX_OUT]; /* in place: the value that `out` starts from */
    void *expected[TP_MAX_OUT];
} self_case;

typedef struct {
    volatile int done, signal, wrong;
    volatile int current; /* case */
    volatile int output;
    volatile double got, expected;
    const tp_kernel *volatile unproved; /* no case is for it: at the child's level, not ours */
} verdict;

struct tp_self_test {
    char *memory;
    size_t used;
    void *workspace;
    verdict *verdict; /* shared with the child */
    size_t n;
    self_case cases[2 * sizeof rows / sizeof *rows];
};

/* ---- cases ---- */

static void *take(tp_self_test *t, size_t bytes)
{
    size_t need = (bytes + 127) / 64 * 64; /* a line between two operands */
    TP_ASSERT(t->used + need <= MEMORY - WORKSPACE);
    void *p = t->memory + t->used;
    t->used += need;
    return p;
}

static float uniform(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-24f;
}

static float special(size_t i)
{
    static const float values[] = {0.0f,      -0.0f,        1.00390625f, 1.01171875f, 0x1p-126f,
                                   0x1p-140f, -0x1.8p-127f, 3.4e38f,     INFINITY,    -INFINITY,
                                   NAN,       -1.00390619f, 0x1.fep127f, 1e-30f,      -2.5f};
    return values[i % TP_COUNTOF(values)];
}

static int32_t integer(char kind, size_t i, int64_t below, int64_t total)
{
    switch (kind) {
    case 'i':
        return (int32_t)((int64_t)(i * 7 + 3) % below);
    case 'c': /* 0, then two ends, then the end of all but two rows of padding */
        return (int32_t)(i == 0 ? 0 : i == 1 ? total / 3 : i == 2 ? total / 3 + 1 : total - 2);
    case 'o': /* two tokens in a second block, then a prompt of the other slot */
        return (int32_t)(i < 2 ? i + 33 : i - 2);
    case 'k':
        return i >= 2;
    default: /* tables */
        return (int32_t)(3 - i % 4);
    }
}

static double real(char kind, size_t i, uint32_t *state)
{
    static const double adamw[8] = {1e-2, 0.9, 0.999, 1e-8, 0.1, 0.271, 0.002997001, 0.7};
    static const double sampling[6][4] = {{0, 0, 0, 0},     {1, 0, 0, 0},   {0.7, 5, 0, 0},
                                          {1.3, 0, 0.9, 0}, {1, 0, 1, 0.1}, {0.8, 20, 0.8, 0.05}};
    double u = (double)uniform(state);
    switch (kind) {
    case 'l':
        return 1 + u;
    case 'p':
    case 'd':
        return u;
    case 'w':
        return i % 4 == 3 ? 0 : 0.25 + u;
    case 'z':
        return (double)special(i);
    case 's':
        return adamw[i % 8];
    case 'q':
        return sampling[i / 4 % 6][i % 4];
    default:
        return 2 * u - 1;
    }
}

static void put(tp_dtype dtype, void *data, size_t i, double value)
{
    if (dtype == TP_DTYPE_BF16)
        ((tp_bf16 *)data)[i] = tp_f32_to_bf16((float)value);
    else if (dtype == TP_DTYPE_F32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

static double get(tp_dtype dtype, const void *data, size_t i)
{
    if (dtype == TP_DTYPE_I32)
        return ((const int32_t *)data)[i];
    if (dtype == TP_DTYPE_U8)
        return ((const uint8_t *)data)[i];
    if (dtype == TP_DTYPE_BF16)
        return (double)tp_bf16_to_f32(((const tp_bf16 *)data)[i]);
    return dtype == TP_DTYPE_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static size_t count(const tp_operand *x) { return (size_t)(x->dim[0] * x->dim[1]); }

static tp_dtype dtype_of(char kind, bool is_bf16)
{
    if (strchr("icokm", kind))
        return TP_DTYPE_I32;
    if (strchr("ds", kind))
        return TP_DTYPE_F64;
    if (kind == 'u')
        return TP_DTYPE_U8;
    return kind == 'b' || (kind == 'v' && is_bf16) ? TP_DTYPE_BF16 : TP_DTYPE_F32;
}

/* One operand of self_test.def; `text` moves behind it. */
static tp_operand read_operand(tp_self_test *t, self_case *c, const char **text, uint32_t *seed)
{
    char *at;
    char kind = *(*text)++;
    tp_operand x = {.dtype = dtype_of(kind, c->is_bf16), .rank = 1, .dim = {1, 1}, .stride = 1};
    if (kind == '-')
        return (tp_operand){0};
    x.dim[0] = strtol(*text, &at, 10);
    if (*at == 'x') {
        x.rank = 2;
        x.dim[1] = x.stride = strtol(at + 1, &at, 10);
    }
    int64_t below = *at == '/' ? strtol(at + 1, &at, 10) : 1;
    *text = at;
    x.data = take(t, count(&x) * tp_dtype_size(x.dtype));
    for (size_t i = 0; i < count(&x); i++) {
        if (x.dtype == TP_DTYPE_U8)
            ((uint8_t *)x.data)[i] = (uint8_t)(37 * i + 11);
        else if (x.dtype == TP_DTYPE_I32)
            ((int32_t *)x.data)[i] = integer(kind, i, below, c->launch.in[0].dim[0]);
        else
            put(x.dtype, x.data, i, real(kind, i, seed));
    }
    return x;
}

static void read_operands(tp_self_test *t, self_case *c, const char *text, uint32_t seed)
{
    bool is_output = false;
    tp_launch *l = &c->launch;
    while (*text) {
        if (*text == ' ')
            text++;
        else if (*text == '>') {
            is_output = true;
            text++;
        } else if (is_output)
            l->out[l->n_out++] = read_operand(t, c, &text, &seed);
        else
            l->in[l->n_in++] = read_operand(t, c, &text, &seed);
    }
}

/* Outputs that share memory with an input do so here, and keep what it holds at first. */
static void share_memory(tp_self_test *t, self_case *c)
{
    for (int o = 0; o < c->launch.n_out; o++) {
        tp_operand *out = &c->launch.out[o];
        int input = tp_op_alias(c->launch.op, o);
        size_t bytes = count(out) * tp_dtype_size(out->dtype);
        c->expected[o] = take(t, bytes);
        if (input < 0 || !c->launch.in[input].data)
            continue;
        c->before[o] = take(t, bytes);
        memcpy(c->before[o], c->launch.in[input].data, bytes);
        out->data = c->launch.in[input].data;
    }
}

static void reset(const self_case *c)
{
    for (int o = 0; o < c->launch.n_out; o++) {
        const tp_operand *out = &c->launch.out[o];
        size_t bytes = count(out) * tp_dtype_size(out->dtype);
        if (c->before[o])
            memcpy(out->data, c->before[o], bytes);
        else
            memset(out->data, 0xff, bytes);
    }
}

static bool run(const tp_self_test *t, self_case *c, const tp_kernel *kernel)
{
    tp_launch l = c->launch;
    l.kernel = kernel;
    l.workspace_bytes = tp_kernel_workspace(kernel, &l);
    if (l.workspace_bytes > WORKSPACE)
        return false;
    l.workspace = t->workspace;
    memset(l.workspace, 0xff, l.workspace_bytes);
    reset(c);
    kernel->run(&l);
    return true;
}

static bool has_bf16_variant(const char *operands) { return strchr(operands, 'v') != NULL; }

static void make_case(tp_self_test *t, size_t row, bool is_bf16)
{
    self_case *c = &t->cases[t->n++];
    *c = (self_case){
        .launch = {.op = rows[row].op, .attrs = rows[row].attrs, .threads = 1, .accumulate = true},
        .is_bf16 = is_bf16};
    read_operands(t, c, rows[row].operands, (uint32_t)row + 1);
    share_memory(t, c);
    run(t, c, tp_kernel_find_prepared(&tp_backend_ref, &c->launch));
    for (int o = 0; o < c->launch.n_out; o++) {
        const tp_operand *out = &c->launch.out[o];
        memcpy(c->expected[o], out->data, count(out) * tp_dtype_size(out->dtype));
    }
}

tp_self_test *tp_self_test_open(void)
{
    tp_self_test *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    void *shared =
        mmap(NULL, sizeof *t->verdict, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    t->verdict = shared == MAP_FAILED ? NULL : shared;
    t->memory = memory == MAP_FAILED ? NULL : memory;
    if (!t->verdict || !t->memory) {
        tp_self_test_close(t);
        return NULL;
    }
    t->workspace = t->memory + MEMORY - WORKSPACE;
    for (size_t i = 0; i < TP_COUNTOF(rows); i++) {
        make_case(t, i, false);
        if (has_bf16_variant(rows[i].operands))
            make_case(t, i, true);
    }
    return t;
}

void tp_self_test_close(tp_self_test *t)
{
    if (!t)
        return;
    if (t->verdict)
        munmap(t->verdict, sizeof *t->verdict);
    if (t->memory)
        munmap(t->memory, MEMORY);
    free(t);
}

/* With halves of binary16, whose kernels are the same source as those of bf16. */
static tp_launch with_f16(tp_launch launch)
{
    for (int i = 0; i < launch.n_in; i++)
        if (launch.in[i].dtype == TP_DTYPE_BF16)
            launch.in[i].dtype = TP_DTYPE_F16;
    for (int i = 0; i < launch.n_out; i++)
        if (launch.out[i].dtype == TP_DTYPE_BF16)
            launch.out[i].dtype = TP_DTYPE_F16;
    return launch;
}

static bool has_case(const tp_self_test *t, const tp_kernel *kernel)
{
    for (size_t i = 0; i < t->n; i++) {
        const tp_launch *launch = &t->cases[i].launch;
        if (launch->op != kernel->op)
            continue;
        tp_launch f16 = with_f16(*launch);
        if (!kernel->accepts || kernel->accepts(launch) || kernel->accepts(&f16))
            return true;
    }
    return false;
}

/* A kernel of the level that no case is for, or NULL. */
static const tp_kernel *find_unproved(const tp_self_test *t, tp_isa isa)
{
    for (const tp_kernel *const *k = tp_backend_cpu.kernels; *k; k++)
        if ((*k)->isa == isa && !(*k)->is_always_usable && !has_case(t, *k))
            return *k;
    return NULL;
}

/* ---- the child ---- */

static verdict *my_verdict;

static void on_signal(int number)
{
    my_verdict->signal = number;
    _exit(1);
}

/* What a kernel that is wrong may raise, and the clocks. */
static const int ends[] = {SIGILL,  SIGSEGV, SIGBUS,  SIGFPE, SIGABRT,
                           SIGTRAP, SIGSYS,  SIGPROF, SIGALRM};

/* The program's handlers know nothing of this process, which begins with all signals blocked:
 * those that are meant for the program (an interrupt from the terminal) stay so.  It does not
 * outlive the program. */
static void own_signals(bool is_hang_expected)
{
    struct sigaction act = {.sa_handler = on_signal};
    sigset_t ours;
    sigemptyset(&ours);
    for (size_t i = 0; i < TP_COUNTOF(ends); i++) {
        sigaction(ends[i], &act, NULL);
        sigaddset(&ours, ends[i]);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_UNBLOCK, &ours, NULL);
    struct itimerval cpu = {.it_value.tv_sec = CPU_SECONDS};
    if (is_hang_expected)
        cpu.it_value = (struct timeval){.tv_usec = 50000};
    setitimer(ITIMER_PROF, &cpu, NULL); /* not wall time: the machine may be busy */
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = WALL_SECONDS}, NULL);
}

static void break_on_purpose(tp_self_test_break breaks, void *data)
{
    static const int signals[TP_BREAK_COUNT] = {
        [TP_BREAK_BUS] = SIGBUS, [TP_BREAK_FPE] = SIGFPE, [TP_BREAK_KILL] = SIGKILL};
    volatile int *nowhere = NULL;
    if (breaks == TP_BREAK_SIGILL)
        __builtin_trap();
    else if (breaks == TP_BREAK_SEGV)
        *nowhere = 1;
    else if (breaks == TP_BREAK_WRONG)
        ((char *)data)[3] ^= 0x7f;
    else if (signals[breaks])
        kill(getpid(), signals[breaks]);
    while (breaks == TP_BREAK_HANG)
        *(volatile char *)data = 0;
}

/* How far a result may be off.  bf16 is right to a few units of its last place, and so are f32
 * sums of bf16 factors; relative to the largest element, since sums cancel.  A cast rounds
 * once: nothing is off, but that a denormal may be 0. */
static double allowed_error(const self_case *c, int o)
{
    const tp_operand *out = &c->launch.out[o];
    bool is_coarse = c->is_bf16 || out->dtype == TP_DTYPE_BF16;
    double largest = 0;
    if (c->launch.op == TP_OP_cast || out->dtype == TP_DTYPE_I32)
        return 0x1p-126;
    if (out->dtype == TP_DTYPE_U8) /* a code between two values that are as near */
        return 1;
    for (size_t i = 0; i < count(out); i++) {
        double want = fabs(get(out->dtype, c->expected[o], i));
        largest = isfinite(want) ? fmax(largest, want) : largest;
    }
    return fmax(largest * (is_coarse ? 0x1p-6 : 0x1p-13), 0x1p-126);
}

static bool is_output_right(verdict *v, const self_case *c, int o)
{
    const tp_operand *out = &c->launch.out[o];
    double allowed = allowed_error(c, o);
    for (size_t i = 0; i < count(out); i++) {
        double got = get(out->dtype, out->data, i), want = get(out->dtype, c->expected[o], i);
        if (got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= allowed)
            continue;
        v->output = o;
        v->got = got;
        v->expected = want;
        return false;
    }
    return true;
}

static void child(tp_self_test *t, tp_isa isa, tp_self_test_break breaks)
{
    verdict *v = my_verdict = t->verdict;
    own_signals(breaks == TP_BREAK_HANG);
    if (tp_cpu_force_isa(isa, NULL) != TP_OK)
        _exit(1);
    v->unproved = find_unproved(t, isa);
    for (size_t i = 0; i < t->n && !v->unproved && !v->wrong; i++) {
        self_case *c = &t->cases[i];
        v->current = (int)i;
        if (!run(t, c, tp_kernel_find_prepared(&tp_backend_cpu, &c->launch)))
            v->wrong = 1;
        if (i == 0)
            break_on_purpose(breaks, c->launch.out[0].data);
        for (int o = 0; o < c->launch.n_out; o++)
            if (!v->wrong && !is_output_right(v, c, o))
                v->wrong = 2;
    }
    v->done = 1;
    _exit(0);
}

/* ---- the parent ---- */

static void describe(const tp_self_test *t, int signal, char *why, size_t size)
{
    const verdict *v = t->verdict;
    const self_case *c = &t->cases[v->current];
    const char *op = tp_ops[c->launch.op]->name, *dtype = c->is_bf16 ? "bf16" : "f32";
    if (signal == SIGPROF)
        snprintf(why, size, "%s of %s does not end", op, dtype);
    else if (signal)
        snprintf(why, size, "SIG%s in %s of %s", sigabbrev_np(signal), op, dtype);
    else if (v->unproved)
        snprintf(why, size, "no case for %s", v->unproved->name);
    else if (v->wrong == 1)
        snprintf(why, size, "%s of %s needs more workspace than there is", op, dtype);
    else if (v->wrong)
        snprintf(why, size, "%s of %s gives %.6g, not %.6g", op, dtype, v->got, v->expected);
    else
        snprintf(why, size, "%s of %s ends the process", op, dtype);
}

/* Killed from outside, stopped or starved for minutes: that says nothing about its kernels. */
static bool is_foreign_end(int signal, char *why, size_t size)
{
    if (signal == SIGALRM)
        snprintf(why, size, "no answer within %d s", WALL_SECONDS);
    for (size_t i = 0; i < TP_COUNTOF(ends); i++)
        if (signal == ends[i])
            return signal == SIGALRM;
    if (signal)
        snprintf(why, size, "its process was ended by SIG%s", sigabbrev_np(signal));
    return signal != 0;
}

/* A copy of this process with one thread, all signals blocked, none sent at its end. */
static pid_t make_child(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t pid = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
    int why = errno;
    if (pid != 0)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return pid;
}

tp_self_test_result tp_self_test_run(tp_self_test *t, tp_isa isa, tp_self_test_break breaks,
                                     char *why, size_t size)
{
    int status = 0;
    snprintf(why, size, "%s", "");
    memset(t->verdict, 0, sizeof *t->verdict);
    pid_t pid = make_child();
    if (pid < 0) {
        snprintf(why, size, "no process (%s)", strerror(errno));
        return TP_SELF_TEST_NOT_RUN;
    }
    if (pid == 0)
        child(t, isa, breaks);
    while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
        ;
    bool is_wrong = t->verdict->wrong || t->verdict->unproved;
    if (t->verdict->done && !is_wrong)
        return TP_SELF_TEST_PASSED;
    int signal = t->verdict->signal;
    if (!signal && !is_wrong && WIFSIGNALED(status)) /* past its handlers */
        signal = WTERMSIG(status);
    if (is_foreign_end(signal, why, size))
        return TP_SELF_TEST_NOT_RUN;
    describe(t, signal, why, size);
    return TP_SELF_TEST_FAILED;
}
