/* cpu.c - what the processor says (CPUID, /proc, /sys) and what the system withholds. */
#include "base/cpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/limits.h"

static const char *const isa_names[TP_ISA_COUNT] = {
    [TP_ISA_PORTABLE] = "portable",       [TP_ISA_AVX2] = "avx2", [TP_ISA_AVX512] = "avx512",
    [TP_ISA_AVX512_BF16] = "avx512_bf16", [TP_ISA_AMX] = "amx",
};

static struct {
    pthread_once_t once;
    tp_isa detected, wished; /* wished: by TEMPER_ISA, else detected */
    bool is_assumed, is_wished;
    char withheld[128];
    tp_cpu_caches caches;
    char model[64];
} machine = {.once = PTHREAD_ONCE_INIT, .model = "unknown"};

static _Atomic int forced_isa = -1;
static _Atomic unsigned excluded, passed_over;

static bool has_bit(unsigned word, int bit) { return word >> bit & 1; }

enum {
    STATE_AVX = 0x6,     /* of XCR0: xmm, ymm */
    STATE_AVX512 = 0xe6, /* and opmasks, zmm */
    STATE_AMX = 0x600e6  /* and tile configuration, tile data */
};

tp_isa tp_cpu_level(const tp_cpu_words *w, int (*ask_for_tiles)(void), char *withheld, size_t size)
{
    /* AVX2, FMA, F16C, and BMI1 and BMI2, which compilers mix in */
    bool avx2 = has_bit(w->leaf7_ebx, 5) && has_bit(w->leaf1_ecx, 12) &&
                has_bit(w->leaf1_ecx, 29) && has_bit(w->leaf7_ebx, 3) && has_bit(w->leaf7_ebx, 8);
    bool avx512 = has_bit(w->leaf7_ebx, 16) && has_bit(w->leaf7_ebx, 17) &&
                  has_bit(w->leaf7_ebx, 30) && has_bit(w->leaf7_ebx, 31);
    bool amx = has_bit(w->leaf7_edx, 22) && has_bit(w->leaf7_edx, 24);
    const char *lost = "the processor has %s, but the system does not save its registers";
    snprintf(withheld, size, "%s", "");
    if (!avx2)
        return TP_ISA_PORTABLE;
    if ((w->xcr0 & STATE_AVX) != STATE_AVX) {
        snprintf(withheld, size, lost, "AVX2");
        return TP_ISA_PORTABLE;
    }
    if (!avx512)
        return TP_ISA_AVX2;
    if ((w->xcr0 & STATE_AVX512) != STATE_AVX512) {
        snprintf(withheld, size, lost, "AVX-512");
        return TP_ISA_AVX2;
    }
    if (!has_bit(w->leaf7_1_eax, 5))
        return TP_ISA_AVX512;
    if (!amx)
        return TP_ISA_AVX512_BF16;
    if ((w->xcr0 & STATE_AMX) != STATE_AMX) {
        snprintf(withheld, size, lost, "AMX");
        return TP_ISA_AVX512_BF16;
    }
    int error = ask_for_tiles();
    if (error)
        snprintf(withheld, size, "the processor has AMX, but the system lends no tiles (%s)",
                 error == ENOSPC ? "a thread's signal stack, sigaltstack(), is too small"
                                 : strerror(error));
    return error ? TP_ISA_AVX512_BF16 : TP_ISA_AMX;
}

#if defined(__x86_64__)
#include <cpuid.h>

typedef struct {
    unsigned eax, ebx, ecx, edx;
} cpuid_leaf;

static cpuid_leaf cpuid(unsigned leaf, unsigned subleaf)
{
    cpuid_leaf r = {0};
    if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx))
        return (cpuid_leaf){0};
    return r;
}

/* The register state that the operating system saves for us (XCR0). */
static unsigned saved_state(void)
{
    unsigned low, high;
    if (!has_bit(cpuid(1, 0).ecx, 27)) /* OSXSAVE */
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

enum { FEATURE_TILEDATA = 18 /* of arch_prctl */ };

/* Linux hands out the 8 KiB of tile state only to those who ask: for all threads of the process
 * and for its children.  0 or errno. */
static int ask_for_tiles(void)
{
    const long arch_req_xcomp_perm = 0x1023;
    return syscall(SYS_arch_prctl, arch_req_xcomp_perm, FEATURE_TILEDATA) == 0 ? 0 : errno;
}

static tp_isa detect(char *withheld, size_t size)
{
    cpuid_leaf extended = cpuid(7, 0);
    tp_cpu_words words = {
        .leaf1_ecx = cpuid(1, 0).ecx,
        .leaf7_ebx = extended.ebx,
        .leaf7_edx = extended.edx,
        .leaf7_1_eax = extended.eax >= 1 ? cpuid(7, 1).eax : 0,
        .xcr0 = saved_state(),
    };
    return tp_cpu_level(&words, ask_for_tiles, withheld, size);
}

static void read_model(char *model, size_t size)
{
    unsigned brand[12] = {0};
    if (cpuid(0x80000000u, 0).eax < 0x80000004u)
        return;
    for (unsigned i = 0; i < 3; i++) {
        cpuid_leaf part = cpuid(0x80000002u + i, 0);
        memcpy(brand + 4 * i, &part, sizeof part);
    }
    const char *text = (const char *)brand;
    while (*text == ' ')
        text++;
    snprintf(model, size, "%.*s", (int)(sizeof brand - (size_t)(text - (char *)brand)), text);
    for (size_t n = strlen(model); n > 0 && model[n - 1] == ' '; n--)
        model[n - 1] = 0;
}

static int print_features(char *out, size_t size)
{
    cpuid_leaf vendor = cpuid(0, 0), base = cpuid(1, 0), extended = cpuid(7, 0);
    cpuid_leaf extended1 = extended.eax >= 1 ? cpuid(7, 1) : (cpuid_leaf){0};
    /* ebx of leaf 1 has the number of the core in it */
    return snprintf(out, size, "%.4s%.4s%.4s %08x %08x%08x %08x%08x%08x %08x %08x",
                    (const char *)&vendor.ebx, (const char *)&vendor.edx, (const char *)&vendor.ecx,
                    base.eax, base.ecx, base.edx, extended.ebx, extended.ecx, extended.edx,
                    extended1.eax, saved_state());
}

#else

static int print_features(char *out, size_t size) { return snprintf(out, size, "-"); }

static tp_isa detect(char *withheld, size_t size)
{
    (void)withheld;
    (void)size;
    return TP_ISA_PORTABLE;
}

static void read_model(char *model, size_t size)
{
    (void)model;
    (void)size;
}

#endif

/* Read one line of /sys/devices/system/cpu/cpu0/cache/index<i>/<what>. */
static bool read_cache_line(int index, const char *what, char line[32])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, what);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(line, 32, f) != NULL;
    fclose(f);
    return ok;
}

static size_t parse_cache_size(const char *text)
{
    char *end;
    size_t n = (size_t)strtoull(text, &end, 10);
    if (*end == 'K')
        return n << 10;
    return *end == 'M' ? n << 20 : n;
}

static tp_cpu_caches read_caches(void)
{
    tp_cpu_caches caches = {0};
    char line[32];
    for (int i = 0; read_cache_line(i, "level", line); i++) {
        long level = strtol(line, NULL, 10);
        if (!read_cache_line(i, "type", line) || line[0] == 'I') /* Instruction */
            continue;
        if (!read_cache_line(i, "size", line))
            continue;
        if (level == 1)
            caches.l1d = parse_cache_size(line);
        else if (level == 2)
            caches.l2 = parse_cache_size(line);
        else if (level == 3)
            caches.l3 = parse_cache_size(line);
    }
    return caches;
}

/* The first processor's, as Linux tells it; "" when it does not. */
static void read_microcode(char *out, size_t size)
{
    char line[256];
    out[0] = 0;
    FILE *f = fopen("/proc/cpuinfo", "re");
    for (int i = 0; f && i < 16 && out[0] == 0 && fgets(line, sizeof line, f); i++)
        if (strncmp(line, "microcode", 9) == 0)
            snprintf(out, size, "%.32s", line + 9);
    if (f)
        fclose(f);
    out[strcspn(out, "\n")] = 0;
}

void tp_cpu_identity(char *out, size_t size)
{
    struct utsname os = {0};
    char microcode[40], features[200];
    print_features(features, sizeof features);
    read_microcode(microcode, sizeof microcode);
    uname(&os);
    snprintf(out, size, "%s|%s|%s|%s|%s", tp_cpu_model(), features, microcode, os.release,
             tp_isa_name(tp_cpu_detect()));
}

static void obey_environment(void)
{
    const char *assumed = getenv("TEMPER_ASSUME_ISA"), *wished = getenv("TEMPER_ISA");
    tp_isa isa;
    if (assumed && tp_isa_parse(assumed, &isa) && isa > machine.detected) {
        machine.detected = isa;
        machine.is_assumed = true;
        machine.withheld[0] = 0;
    }
    machine.wished = machine.detected;
    if (wished && tp_isa_parse(wished, &isa) && isa <= machine.detected) {
        machine.wished = isa;
        machine.is_wished = true;
    }
}

static void look_once(void)
{
    machine.detected = detect(machine.withheld, sizeof machine.withheld);
    obey_environment();
    machine.caches = read_caches();
    read_model(machine.model, sizeof machine.model);
}

tp_isa tp_cpu_detect(void)
{
    pthread_once(&machine.once, look_once);
    return machine.detected;
}

bool tp_cpu_is_assumed(void)
{
    tp_cpu_detect();
    return machine.is_assumed;
}

const char *tp_cpu_withheld(void)
{
    tp_cpu_detect();
    return machine.withheld;
}

static tp_isa highest_wanted(void)
{
    int forced = atomic_load_explicit(&forced_isa, memory_order_relaxed);
    tp_cpu_detect();
    return forced >= 0 ? (tp_isa)forced : machine.wished;
}

/* By tp_cpu_force_isa(), else by TEMPER_ISA. */
static bool is_named(tp_isa isa)
{
    int forced = atomic_load_explicit(&forced_isa, memory_order_relaxed);
    return forced >= 0 ? (int)isa == forced : machine.is_wished && isa == machine.wished;
}

bool tp_cpu_may_use(tp_isa isa)
{
    unsigned out = atomic_load_explicit(&excluded, memory_order_relaxed);
    return isa <= highest_wanted() && !has_bit(out, (int)isa) &&
           (!tp_cpu_is_passed_over(isa) || is_named(isa));
}

tp_isa tp_cpu_isa(void)
{
    tp_isa isa = highest_wanted();
    while (isa > TP_ISA_PORTABLE && !tp_cpu_may_use(isa))
        isa--;
    return isa;
}

void tp_cpu_exclude(unsigned levels) { atomic_store(&excluded, levels); }

void tp_cpu_pass_over(unsigned levels) { atomic_store(&passed_over, levels); }

bool tp_cpu_is_passed_over(tp_isa isa)
{
    return has_bit(atomic_load_explicit(&passed_over, memory_order_relaxed), (int)isa);
}

tp_status tp_cpu_force_isa(tp_isa isa, tp_error *err)
{
    if (isa > tp_cpu_detect())
        return tp_fail(err, TP_ERR_UNSUPPORTED, "this machine lacks '%s': it has '%s'",
                       tp_isa_name(isa), tp_isa_name(tp_cpu_detect()));
    atomic_store(&forced_isa, (int)isa);
    return TP_OK;
}

const char *tp_isa_name(tp_isa isa)
{
    TP_ASSERT(isa < TP_ISA_COUNT);
    return isa_names[isa];
}

bool tp_isa_parse(const char *name, tp_isa *ret_isa)
{
    for (int i = 0; i < TP_ISA_COUNT; i++) {
        if (strcmp(name, isa_names[i]) == 0) {
            *ret_isa = (tp_isa)i;
            return true;
        }
    }
    return false;
}

tp_cpu_caches tp_cpu_cache_sizes(void)
{
    tp_cpu_detect();
    return machine.caches;
}

size_t tp_cpu_l2_bytes(void)
{
    size_t l2 = tp_cpu_cache_sizes().l2;
    return l2 ? l2 : 1 << 20;
}

int tp_cpu_count(void)
{
    tp_limits limits;
    tp_limits_processors(&limits);
    double least = tp_limits_least(&limits)->value;
    return least >= 1 ? (int)least : 1;
}

const char *tp_cpu_model(void)
{
    tp_cpu_detect();
    return machine.model;
}

const char *tp_cpu_best_isa(void) { return tp_isa_name(tp_cpu_detect()); }

tp_status tp_cpu_use_isa(const char *name, tp_error *err)
{
    tp_isa isa;
    if (!name || !tp_isa_parse(name, &isa))
        return tp_fail(err, TP_ERR_ARG,
                       "--isa is portable, avx2, avx512, avx512_bf16 or amx, not '%.40s'",
                       name ? name : "");
    return tp_cpu_force_isa(isa, err);
}
