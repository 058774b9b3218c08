/* nvtx.c - zones as ranges of an NVTX tool, without NVTX at build time.
 *
 * A tool such as Nsight Systems names its library in NVTX_INJECTION64_PATH.  Loaded, it is
 * given a function that hands out tables of our function pointers by number, and sets those
 * it wants to its own.  The numbers and layouts are NVTX version 3's binary interface.
 * Without that variable libnvToolsExt.so.1, the older way, is used when it is installed. */
#include <dlfcn.h>
#include <string.h>

#include "base/log.h"
#include "trace/internal.h"

enum { MODULE_CORE = 1, MODULE_CORE2 = 5, MODULES = 7, LARGEST_TABLE = 17 };
enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3, NVTX_VERSION = 3 };
enum { CORE_MARK_A = 2, CORE_RANGE_PUSH_A = 9, CORE_RANGE_POP = 11, CORE_SIZE = 16 };

typedef void (*generic)(void);
typedef void (*mark_function)(const char *);
typedef int (*push_function)(const char *);
typedef int (*pop_function)(void);

/* What the tool sets; those of modules that are not used here go to a spare. */
static generic core[CORE_SIZE], spare;
static generic *core_table[CORE_SIZE + 1], *other_tables[MODULES][LARGEST_TABLE + 1];
static const unsigned table_sizes[MODULES] = {0, CORE_SIZE, 9, 16, 7, 16, 7};

static mark_function mark;
static push_function push;
static pop_function pop;

static int get_table(int module, generic ***ret_table, unsigned *ret_size)
{
    if (module <= 0 || module >= MODULES)
        return 0;
    if (ret_table)
        *ret_table = module == MODULE_CORE ? core_table : other_tables[module];
    if (ret_size)
        *ret_size = table_sizes[module];
    return 1;
}

static void note_version(uint32_t version) { (void)version; }

static const void *export_table(uint32_t id)
{
    static const struct {
        size_t size;
        int (*get_table)(int module, generic ***ret_table, unsigned *ret_size);
    } callbacks = {sizeof callbacks, get_table};
    static const struct {
        size_t size;
        uint32_t version, reserved;
        void (*note_version)(uint32_t version);
    } version = {sizeof version, NVTX_VERSION, 0, note_version};
    return id == TABLE_CALLBACKS ? (const void *)&callbacks
           : id == TABLE_VERSION ? (const void *)&version
                                 : NULL;
}

static void fill_tables(void)
{
    for (int i = 1; i < CORE_SIZE; i++)
        core_table[i] = &core[i];
    for (int m = 1; m < MODULES; m++)
        for (unsigned i = 1; i < table_sizes[m]; i++)
            other_tables[m][i] = &spare;
}

static bool inject(const char *path)
{
    void *tool = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    int (*initialize)(const void *(*)(uint32_t)) = NULL;
    void *symbol = tool ? dlsym(tool, "InitializeInjectionNvtx2") : NULL;
    if (!symbol)
        return false;
    memcpy(&initialize, &symbol, sizeof symbol);
    fill_tables();
    if (!initialize(export_table))
        return false;
    mark = (mark_function)core[CORE_MARK_A];
    push = (push_function)core[CORE_RANGE_PUSH_A];
    pop = (pop_function)core[CORE_RANGE_POP];
    return push && pop;
}

static bool load_old_library(void)
{
    void *library = dlopen("libnvToolsExt.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return false;
    void *symbols[3] = {dlsym(library, "nvtxMarkA"), dlsym(library, "nvtxRangePushA"),
                        dlsym(library, "nvtxRangePop")};
    memcpy(&mark, &symbols[0], sizeof mark);
    memcpy(&push, &symbols[1], sizeof push);
    memcpy(&pop, &symbols[2], sizeof pop);
    return push && pop;
}

static bool is_attached;

static void attach(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    bool is_named = path && *path;
    is_attached = is_named ? inject(path) : load_old_library();
    if (is_named && !is_attached)
        tp_log(TP_LOG_WARNING, "trace",
               "NVTX_INJECTION64_PATH: '%s' is no NVTX tool that starts; zones are not handed on",
               path);
}

bool tp_nvtx_attach(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach);
    return is_attached;
}

void tp_nvtx_push(const char *name) { push(name); }

void tp_nvtx_pop(void) { pop(); }

void tp_nvtx_mark(const char *name)
{
    if (mark)
        mark(name);
}
