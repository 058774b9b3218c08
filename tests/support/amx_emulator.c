/* amx_emulator.c - AMX on a processor without it, for tests: what was really compiled runs.
 *
 * A processor without AMX raises SIGILL at a tile instruction.  The handler here decodes it,
 * does what the Intel manual says on tiles of the calling thread, and goes on behind it, so
 * that the compiled code is tested together with all that the compiler assumed about memory.
 * Faults are the processor's: a malformed configuration is a SIGSEGV, tiles that do not fit
 * each other are a SIGILL.
 *
 * Linked into a test or loaded by LD_PRELOAD.  It tells the program by TEMPER_ASSUME_ISA that
 * there is AMX, unless that is set, and keeps SIGILL: handlers that the program installs get
 * what is no tile instruction.  Where the processor has AMX nothing is trapped: tiles are asked
 * for here, so that tests may call a kernel without having looked at the processor.  Without
 * AVX-512 BF16, which the code around the tiles needs, there is nothing to pretend. */
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, LINE = 64 };

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} configuration;

static _Thread_local struct {
    configuration config; /* palette 0: released */
    unsigned char tile[TILES][ROWS][LINE];
} state;

static struct sigaction behind; /* whom SIGILL goes to when it is not ours */

typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);

static int real_sigaction(int signum, const struct sigaction *act, struct sigaction *old)
{
    static sigaction_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "sigaction");
    return next(signum, act, old);
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int sigaction(int signum, const struct sigaction *act, struct sigaction *old)
{
    if (signum != SIGILL)
        return real_sigaction(signum, act, old);
    struct sigaction before = behind;
    if (act)
        behind = *act;
    if (old)
        *old = before;
    return 0;
}

EXPORTED __sighandler_t signal(int signum, __sighandler_t handler)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    return sigaction(signum, &act, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* The program dies of it, or its handler sees it. */
static void fault(int signum, const char *why)
{
    static const char head[] = "emulated AMX: ";
    if (write(STDERR_FILENO, head, sizeof head - 1) > 0 &&
        write(STDERR_FILENO, why, strlen(why)) > 0 && write(STDERR_FILENO, "\n", 1) > 0)
        raise(signum);
    _exit(128 + signum);
}

static void pass_on(int signum, siginfo_t *info, void *context)
{
    if (behind.sa_flags & SA_SIGINFO) {
        behind.sa_sigaction(signum, info, context);
        return;
    }
    if (behind.sa_handler != SIG_DFL && behind.sa_handler != SIG_IGN) {
        behind.sa_handler(signum);
        return;
    }
    real_sigaction(SIGILL, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* ---- the instructions ---- */

static const char *flaw_of(const configuration *c)
{
    unsigned reserved = c->start_row;
    if (c->palette > 1)
        return "LDTILECFG: no such palette";
    for (size_t i = 0; i < sizeof c->reserved; i++)
        reserved |= c->reserved[i];
    for (int t = TILES; t < 16; t++)
        reserved |= (unsigned)c->rows[t] | c->bytes_per_row[t];
    if (reserved)
        return "LDTILECFG: reserved bytes are not 0";
    for (int t = 0; t < TILES; t++) {
        if (c->rows[t] > ROWS || c->bytes_per_row[t] > LINE)
            return "LDTILECFG: a tile is too large";
        if ((c->rows[t] == 0) != (c->bytes_per_row[t] == 0))
            return "LDTILECFG: a tile has rows without bytes or bytes without rows";
    }
    return NULL;
}

static void configure(const void *from)
{
    configuration c;
    memcpy(&c, from, sizeof c);
    const char *flaw = flaw_of(&c);
    if (flaw)
        fault(SIGSEGV, flaw);
    memset(&state, 0, sizeof state);
    if (c.palette)
        state.config = c;
}

static void need_tile(int t)
{
    if (t >= TILES || state.config.palette == 0 || state.config.rows[t] == 0)
        fault(SIGILL, "a tile that is not configured");
}

static void load(int t, const char *from, int64_t stride)
{
    need_tile(t);
    memset(state.tile[t], 0, sizeof state.tile[t]);
    for (int row = 0; row < state.config.rows[t]; row++)
        memcpy(state.tile[t][row], from + row * stride, state.config.bytes_per_row[t]);
}

static void store(int t, char *to, int64_t stride)
{
    need_tile(t);
    for (int row = 0; row < state.config.rows[t]; row++)
        memcpy(to + row * stride, state.tile[t][row], state.config.bytes_per_row[t]);
}

/* Denormal inputs are zeros to TDPBF16PS. */
static float widen(uint16_t half)
{
    uint32_t bits = half & 0x7f80 ? (uint32_t)half << 16 : (uint32_t)(half & 0x8000) << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

/* One row: even and odd k are two chains, which meet at the end. */
static void multiply_row(float sum[16], const uint16_t a[32], const uint16_t b[16][32], int pairs)
{
    float even[16] = {0}, odd[16] = {0};
    for (int k = 0; k < pairs; k++) {
        float a0 = widen(a[2 * k]), a1 = widen(a[2 * k + 1]);
        for (int n = 0; n < 16; n++) {
            even[n] = fmaf(a0, widen(b[k][2 * n]), even[n]);
            odd[n] = fmaf(a1, widen(b[k][2 * n + 1]), odd[n]);
        }
    }
    for (int n = 0; n < 16; n++)
        sum[n] = flush(flush(sum[n]) + flush(even[n] + odd[n]));
}

static void multiply(int sum, int a, int b)
{
    need_tile(sum);
    need_tile(a);
    need_tile(b);
    const configuration *c = &state.config;
    if (sum == a || sum == b || a == b)
        fault(SIGILL, "TDPBF16PS: a tile twice");
    if (c->rows[sum] != c->rows[a] || c->bytes_per_row[sum] != c->bytes_per_row[b] ||
        c->bytes_per_row[a] != 4 * c->rows[b] || c->bytes_per_row[b] % 4)
        fault(SIGILL, "TDPBF16PS: shapes that do not fit");
    for (int row = 0; row < c->rows[sum]; row++)
        multiply_row((float *)(void *)state.tile[sum][row],
                     (const uint16_t *)(const void *)state.tile[a][row],
                     (const uint16_t(*)[32])(const void *)state.tile[b], c->rows[b]);
}

/* ---- decoding ---- */

typedef struct {
    const uint8_t *at; /* behind what was read */
    int mod, reg, rm;
    uint64_t base, index; /* of a memory operand; index is scaled: a tile's stride */
} operands;

static uint64_t register_of(const ucontext_t *context, int number)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint64_t)context->uc_mcontext.gregs[order[number]];
}

static uint64_t displacement(const uint8_t **at, int bytes)
{
    int32_t wide;
    int8_t narrow;
    if (bytes == 1)
        memcpy(&narrow, *at, 1);
    else
        memcpy(&wide, *at, 4);
    *at += bytes;
    return (uint64_t)(bytes == 1 ? (int64_t)narrow : (int64_t)wide);
}

/* ModRM, SIB and displacement; `extend` holds R, X and B of the prefix, not inverted. */
static operands read_operands(const ucontext_t *context, const uint8_t *at, unsigned extend)
{
    operands o = {.mod = *at >> 6, .reg = *at >> 3 & 7, .rm = *at & 7};
    at++;
    if (o.mod != 3) {
        int base = o.rm | (int)(extend & 1) << 3;
        bool has_base = true;
        if (o.rm == 4) {
            int index = (*at >> 3 & 7) | (int)(extend & 2) << 2;
            base = (*at & 7) | (int)(extend & 1) << 3;
            has_base = !(o.mod == 0 && (*at & 7) == 5);
            if (index != 4)
                o.index = register_of(context, index) << (*at >> 6);
            at++;
            if (!has_base)
                o.base = displacement(&at, 4);
        } else if (o.mod == 0 && o.rm == 5) { /* from the next instruction */
            o.base = displacement(&at, 4);
            o.base += (uint64_t)(uintptr_t)at;
            has_base = false;
        }
        if (has_base)
            o.base += register_of(context, base);
        if (o.mod == 1)
            o.base += displacement(&at, 1);
        else if (o.mod == 2)
            o.base += displacement(&at, 4);
    }
    o.at = at;
    return o;
}

/* The tile instruction at `at`; NULL when there is none, else where the next one begins. */
static const uint8_t *emulate(const ucontext_t *context, const uint8_t *at)
{
    enum { NONE, P66, PF3, PF2 };
    if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || (at[2] & 0x84) != 0) /* 0F38, W0, 128 */
        return NULL;
    int prefix = at[2] & 3, third = ~(at[2] >> 3) & 15;
    unsigned opcode = at[3];
    operands o = read_operands(context, at + 4, (unsigned)(~at[1] >> 5) & 7);
    /* the address of LDTILECFG is base + index, rows of tiles are `index` apart */
    char *address = (char *)(uintptr_t)o.base;
    if (opcode == 0x49 && prefix == NONE && o.mod != 3 && o.reg == 0)
        configure(address + o.index);
    else if (opcode == 0x49 && prefix == NONE && at[4] == 0xc0)
        memset(&state, 0, sizeof state);
    else if (opcode == 0x49 && prefix == PF2 && o.mod == 3 && o.rm == 0) {
        need_tile(o.reg);
        memset(state.tile[o.reg], 0, sizeof state.tile[o.reg]);
    } else if (opcode == 0x4b && (prefix == PF2 || prefix == P66) && o.rm == 4 && o.mod != 3)
        load(o.reg, address, (int64_t)o.index);
    else if (opcode == 0x4b && prefix == PF3 && o.rm == 4 && o.mod != 3)
        store(o.reg, address, (int64_t)o.index);
    else if (opcode == 0x5c && prefix == PF3 && o.mod == 3)
        multiply(o.reg, o.rm, third);
    else
        return NULL;
    return o.at;
}

static void on_illegal(int signum, siginfo_t *info, void *context)
{
    ucontext_t *c = context;
    const uint8_t *next =
        emulate(c, (const uint8_t *)(uintptr_t)(uint64_t)c->uc_mcontext.gregs[REG_RIP]);
    if (next)
        c->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)next;
    else
        pass_on(signum, info, context);
}

/* Before main(), and before constructors of the program that ask what the processor has. */
__attribute__((constructor(101))) static void install(void)
{
    struct sigaction act = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512bf16"))
        return;
    syscall(SYS_arch_prctl, 0x1023L /* ARCH_REQ_XCOMP_PERM */, 18L /* tile data */);
    real_sigaction(SIGILL, &act, NULL);
    setenv("TEMPER_ASSUME_ISA", "amx", 0);
}
