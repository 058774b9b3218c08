/* world.c - a simulated world in a process of its own: SimGrid has one state, and ends the process
 * where it does not like a platform. */
#include "engine/comm/world.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/comm/comm_internal.h"

/* What the child leaves behind. */
typedef struct {
    int done; /* 0: it never came to an end */
    double took_s;
    tp_error failure;
    tp_world_result result;
} outcome;

typedef struct {
    void (*rank)(tp_comm *comm, void *user);
    void *user;
} play;

struct tp_world {
    outcome *shared;
    char *platform;
    int ranks, said;
    pid_t child;
};

void *tp_world_share(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void tp_world_unshare(void *shared, size_t bytes)
{
    if (shared)
        munmap(shared, bytes);
}

static tp_status load(tp_world_fn **ret, tp_error *err)
{
    char path[TP_COMM_PATH];
    if (!tp_comm_find_plug_in("TEMPER_SMPI", "temper_smpi.so", path, sizeof path))
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "this build has no simulator: install libsimgrid-dev (scripts/install-deps "
                       "--with-simgrid) and build again; temper plan --ranks N --network "
                       "RATE/LATENCY is the closed formula");
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "SimGrid cannot be loaded: %s", dlerror());
    *(void **)ret = dlsym(library, TP_WORLD_SYMBOL);
    return *ret ? TP_OK : tp_fail(err, TP_ERR_UNSUPPORTED, "'%s' is no plug-in of temper", path);
}

static void live(tp_transport *transport, void *user)
{
    const play *p = user;
    tp_comm *comm;
    tp_error err;
    if (tp_comm_open_over(transport, &comm, &err) != TP_OK) {
        fprintf(stderr, "%s", err.message);
        abort();
    }
    p->rank(comm, p->user);
    tp_comm_close(comm, TP_OK);
}

/* In the child. */
static void simulate(const tp_world_spec *spec, play *p, outcome *ret)
{
    tp_world_fn *run;
    char why[512] = "";
    double began = tp_clock_s();
    tp_status status = load(&run, &ret->failure);
    if (status == TP_OK && run(TP_WORLD_VERSION, spec, live, p, &ret->result, why, sizeof why) != 0)
        status = tp_fail(&ret->failure, TP_ERR_CONFIG, "'%.200s': %s", spec->platform, why);
    ret->failure.status = status;
    ret->took_s = tp_clock_s() - began;
    ret->done = 1;
}

/* The first line of what it said, without where in SimGrid that is. */
static void last_words(int said, char *out, size_t size)
{
    static const char head[] = "/ERROR] ";
    char text[4096];
    ssize_t n = pread(said, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    const char *error = strstr(text, head);
    snprintf(out, size, "%s", error ? error + strlen(head) : text);
}

static tp_status judge(const tp_world *world, int how, tp_world_result *ret, tp_error *err)
{
    char words[512];
    const outcome *o = world->shared;
    *ret = o->result;
    if (o->done) {
        if (err && o->failure.status != TP_OK)
            *err = o->failure;
        return o->failure.status;
    }
    last_words(world->said, words, sizeof words);
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGINT)
        return tp_fail(err, TP_ERR_INTERRUPTED, "interrupted");
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL)
        return tp_fail(err, TP_ERR_NOMEM, "SimGrid was killed with %d ranks: for want of memory?",
                       world->ranks);
    return tp_fail(err, TP_ERR_CONFIG, "SimGrid gave up on '%.200s' with %d ranks%s%s",
                   world->platform, world->ranks, *words ? ": " : " and does not say why", words);
}

static void forget(tp_world *world)
{
    if (world->said >= 0)
        close(world->said);
    tp_world_unshare(world->shared, sizeof *world->shared);
    free(world->platform);
    free(world);
}

tp_status tp_world_start(const tp_world_spec *spec, void (*rank)(tp_comm *comm, void *user),
                         void *user, tp_world **ret, tp_error *err)
{
    tp_world *world = tp_new(1, sizeof *world);
    *world = (tp_world){.shared = tp_world_share(sizeof *world->shared),
                        .platform = strdup(spec->platform),
                        .ranks = spec->ranks,
                        .said = memfd_create("said", MFD_CLOEXEC)};
    TP_HAVE(world->shared && world->platform);
    pid_t parent = getpid();
    world->child = world->said < 0 ? -1 : fork();
    if (world->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        signal(SIGINT, SIG_DFL);
        dup2(world->said, STDERR_FILENO);
        dup2(world->said, STDOUT_FILENO);
        simulate(spec, &(play){rank, user}, world->shared);
        _exit(0);
    }
    if (world->child < 0) {
        forget(world);
        return tp_fail(err, TP_ERR_IO, "a process for the simulation cannot be started");
    }
    *ret = world;
    return TP_OK;
}

tp_status tp_world_finish(tp_world *world, tp_world_result *ret, double *ret_took_s, tp_error *err)
{
    int how = 0;
    while (waitpid(world->child, &how, 0) < 0 && errno == EINTR)
        ;
    tp_status status = judge(world, how, ret, err);
    *ret_took_s = world->shared->took_s;
    forget(world);
    return status;
}
