/* launcher.c - which launcher started this process, and the plug-in that speaks with the others. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>

#include "base/files.h"
#include "engine/comm/comm_internal.h"

int tp_comm_launched_size(char *what, size_t size)
{
    static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    int64_t n;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const char *v = getenv(counts[i]);
        if (!v || !tp_str_to_i64(v, &n) || n < 1 || n > INT_MAX)
            continue;
        snprintf(what, size, "%s is %lld", counts[i], (long long)n);
        return (int)n;
    }
    /* Slurm counts for whatever runs in an allocation; only srun's steps are tasks. */
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS"), *rank = getenv("SLURM_PROCID");
    if (tasks && rank && tp_str_to_i64(tasks, &n) && n > 1 && n <= INT_MAX) {
        snprintf(what, size, "SLURM_STEP_NUM_TASKS is %lld", (long long)n);
        return (int)n;
    }
    if (getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE")) {
        snprintf(what, size, "PMIX_RANK is %.32s", getenv("PMIX_RANK"));
        return -1;
    }
    return 0;
}

/* Beside the program or library that this code is in: in the tree of the build, or installed. */
static bool find_beside(const char *file, const char *name, char *out, size_t size)
{
    static const char *const places[] = {"../engine/comm", "../lib/temper", "temper",
                                         "../src/engine/comm"};
    char real[PATH_MAX];
    if (!realpath(file, real))
        return false;
    const char *folder = dirname(real);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(out, size, "%s/%s/%s", folder, places[i], name);
        if (tp_file_exists(out))
            return true;
    }
    return false;
}

bool tp_comm_find_plug_in(const char *variable, const char *name, char *out, size_t size)
{
    static const char here_is[] = "this code";
    Dl_info here;
    const char *asked = getenv(variable);
    if (asked && *asked) {
        snprintf(out, size, "%s", asked);
        return true;
    }
    if (dladdr(here_is, &here) && here.dli_fname && find_beside(here.dli_fname, name, out, size))
        return true;
    return find_beside("/proc/self/exe", name, out, size);
}

tp_status tp_comm_load(tp_comm *c, tp_error *err)
{
    char path[TP_COMM_PATH], what[128];
    (void)tp_comm_launched_size(what, sizeof what);
    if (!tp_comm_find_plug_in("TEMPER_MPI", "temper_mpi.so", path, sizeof path))
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "started as one of several processes (%s), but this build has no MPI: "
                       "install libopenmpi-dev (scripts/install-deps --with-mpi) and build again, "
                       "or start a single process",
                       what);
    /* MPI loads parts of its own, which look for its symbols. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "started as one of several processes (%s), but MPI cannot be loaded: %s",
                       what, dlerror());
    tp_transport_fn *table;
    *(void **)&table = dlsym(library, TP_TRANSPORT_SYMBOL);
    if (!table)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "'%s' is no plug-in of temper", path);
    c->transport = table();
    return TP_OK;
}
