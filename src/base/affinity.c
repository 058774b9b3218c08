/* affinity.c - hwloc for places and NUMA nodes, setpriority(2) for niceness. */
#include "base/affinity.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/library.h"
#include "base/platform.h"

#ifdef TEMPER_HAVE_HWLOC
#include <hwloc.h>

/* ---- hwloc ---- */

static struct {
    __typeof__(hwloc_topology_init) *init;
    __typeof__(hwloc_topology_set_flags) *set_flags;
    __typeof__(hwloc_topology_load) *load;
    __typeof__(hwloc_get_type_depth) *depth;
    __typeof__(hwloc_get_nbobjs_by_depth) *count;
    __typeof__(hwloc_get_obj_by_depth) *object;
    __typeof__(hwloc_topology_get_topology_nodeset) *nodes;
    __typeof__(hwloc_set_membind) *membind;
    hwloc_topology_t topology;
    int *places; /* processors in the order of their places */
    int n_places, n_nodes;
    const char *why; /* NULL: all there */
} hw;

static bool find_functions(void *library)
{
    const tp_library_function wanted[] = {
        {"hwloc_topology_init", &hw.init},
        {"hwloc_topology_set_flags", &hw.set_flags},
        {"hwloc_topology_load", &hw.load},
        {"hwloc_get_type_depth", &hw.depth},
        {"hwloc_get_nbobjs_by_depth", &hw.count},
        {"hwloc_get_obj_by_depth", &hw.object},
        {"hwloc_topology_get_topology_nodeset", &hw.nodes},
        {"hwloc_set_membind", &hw.membind},
    };
    return tp_library_find(library, wanted, TP_COUNTOF(wanted));
}

static hwloc_obj_t object_of(hwloc_obj_type_t type, int i)
{
    return hw.object(hw.topology, hw.depth(hw.topology, type), (unsigned)i);
}

static int count_of(hwloc_obj_type_t type)
{
    int depth = hw.depth(hw.topology, type);
    return depth == HWLOC_TYPE_DEPTH_UNKNOWN ? 0 : (int)hw.count(hw.topology, depth);
}

/* Of processor `i`: how many of its core come before it. */
static int place_in_core(int i)
{
    int before = 0;
    hwloc_obj_t core = object_of(HWLOC_OBJ_PU, i)->parent;
    while (i > 0 && object_of(HWLOC_OBJ_PU, i - 1)->parent == core)
        i--, before++;
    return before;
}

static void list_places(void)
{
    int n = count_of(HWLOC_OBJ_PU);
    hw.places = calloc((size_t)TP_MAX(n, 1), sizeof *hw.places);
    for (int nth = 0; hw.places && hw.n_places < n; nth++)
        for (int i = 0; i < n; i++)
            if (place_in_core(i) == nth)
                hw.places[hw.n_places++] = (int)object_of(HWLOC_OBJ_PU, i)->os_index;
}

static void look_at_machine(void)
{
    void *library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    hw.why = "libhwloc is not installed (Debian: libhwloc15)";
    if (!library)
        return;
    hw.why = "libhwloc lacks a function; 2.5 is needed";
    if (!find_functions(library))
        return;
    hw.why = "hwloc cannot tell what this machine is";
    if (hw.init(&hw.topology) != 0)
        return;
    /* Processors that the process may not use are none: taskset, cpusets, mpirun --bind-to. */
    bool is_made_up = getenv("HWLOC_SYNTHETIC") != NULL;
    unsigned long flags = HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
                          HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING |
                          HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
    if (hw.set_flags(hw.topology, is_made_up ? 0 : flags) != 0 || hw.load(hw.topology) != 0)
        return;
    list_places();
    hw.n_nodes = count_of(HWLOC_OBJ_NUMANODE);
    hw.why = hw.n_places ? NULL : hw.why;
}

static bool is_there(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_at_machine);
    return !hw.why;
}

#else /* built without hwloc's header */

static struct {
    int *places;
    int n_places, n_nodes;
    const char *why;
} hw = {.why = "this build knows nothing of hwloc (Debian: libhwloc-dev)"};

static bool is_there(void) { return false; }

#endif

/* ---- processors ---- */

static _Atomic(tp_affinity) in_use;
static atomic_int refusal; /* errno of the last thread that could not be bound */

void tp_affinity_use(tp_affinity kind)
{
    in_use = kind;
    refusal = 0;
}

int tp_affinity_place(tp_affinity kind, int thread, int threads)
{
    if (kind == TP_AFFINITY_NONE || !is_there() || thread < 0 || thread >= threads ||
        threads > hw.n_places)
        return -1;
    int64_t all = hw.n_places;
    return hw.places[kind == TP_AFFINITY_CLOSE ? thread : thread * all / threads];
}

void tp_affinity_bind(int thread, int threads)
{
    int place = tp_affinity_place(in_use, thread, threads);
    cpu_set_t *set = place >= 0 ? CPU_ALLOC((size_t)place + 1) : NULL;
    if (!set)
        return;
    size_t bytes = CPU_ALLOC_SIZE((size_t)place + 1);
    CPU_ZERO_S(bytes, set);
    CPU_SET_S((size_t)place, bytes, set);
    if (sched_setaffinity(0, bytes, set) != 0) /* processors may go while a run is under way */
        refusal = errno;
    CPU_FREE(set);
}

int tp_affinity_mask(cpu_set_t **ret, size_t *ret_bytes)
{
    int why = EINVAL; /* the mask is too small */
    *ret = NULL;
    for (size_t n = 1024; n <= 1 << 20 && why == EINVAL; n *= 4) {
        CPU_FREE(*ret);
        *ret = CPU_ALLOC(n);
        *ret_bytes = CPU_ALLOC_SIZE(n);
        why = !*ret ? ENOMEM : sched_getaffinity(0, *ret_bytes, *ret) == 0 ? 0 : errno;
    }
    if (why) {
        CPU_FREE(*ret);
        *ret = NULL;
    }
    return why;
}

/* Whether this thread may be put on any processor of its own mask. */
static bool is_allowed(void)
{
    cpu_set_t *set;
    size_t bytes;
    bool yes = tp_affinity_mask(&set, &bytes) == 0 && sched_setaffinity(0, bytes, set) == 0;
    CPU_FREE(set);
    return yes;
}

bool tp_affinity_refused(tp_affinity kind, int threads, char *why, size_t size)
{
    if (kind == TP_AFFINITY_NONE)
        return false;
    if (!is_there())
        snprintf(why, size, "%s", hw.why);
    else if (threads > hw.n_places)
        snprintf(why, size, "%d threads, %d processor%s", threads, hw.n_places,
                 hw.n_places == 1 ? "" : "s");
    else if (refusal || !is_allowed())
        snprintf(why, size, "sched_setaffinity: %s", strerror(refusal ? refusal : errno));
    else
        return false;
    return true;
}

/* ---- memory ---- */

static atomic_bool interleaves;

#ifdef TEMPER_HAVE_HWLOC
static bool set_policy(bool yes)
{
    return hw.membind(hw.topology, hw.nodes(hw.topology),
                      yes ? HWLOC_MEMBIND_INTERLEAVE : HWLOC_MEMBIND_DEFAULT,
                      HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) == 0;
}
#else
static bool set_policy(bool yes) { return !yes; }
#endif

void tp_numa_interleave(bool yes)
{
    if (yes != interleaves && is_there() && hw.n_nodes > 1 && set_policy(yes))
        interleaves = yes;
}

/* By trying: containers often forbid set_mempolicy(2). */
bool tp_numa_interleave_refused(char *why, size_t size)
{
    if (!is_there())
        snprintf(why, size, "%s", hw.why);
    else if (hw.n_nodes < 2)
        snprintf(why, size, "one NUMA node");
    else if (!set_policy(true))
        snprintf(why, size, "set_mempolicy: %s", strerror(errno));
    else
        return !interleaves && !set_policy(false);
    return true;
}

/* ---- niceness ---- */

static void raise_to(id_t thread, int least)
{
    errno = 0;
    int now = getpriority(PRIO_PROCESS, thread);
    if (errno == 0 && now < least)
        (void)setpriority(PRIO_PROCESS, thread, least); /* giving way is never forbidden */
}

/* Linux keeps a niceness per thread; new ones have that of who starts them. */
void tp_niceness_raise(int least)
{
    DIR *threads = least > 0 ? opendir("/proc/self/task") : NULL;
    for (struct dirent *e; threads && (e = readdir(threads));)
        if (e->d_name[0] != '.')
            raise_to((id_t)strtoul(e->d_name, NULL, 10), least);
    if (threads)
        closedir(threads);
    else if (least > 0)
        raise_to(0, least);
}
