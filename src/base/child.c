/* child.c - vfork and exec with what posix_spawn cannot do (prctl), and the guard.
 *
 * fork() would copy the page tables of a process that holds a model; between vfork() and
 * exec the child borrows our memory, so it only makes system calls there. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* What the child needs, ready before it exists. */
typedef struct {
    const tp_child *child;
    char *const *envp;
    pid_t parent;
    bool dies_with_us;
    volatile int failure; /* errno, set by the child in our memory */
} launch;

static int redirect(int from, int to, int flags)
{
    if (from == TP_CHILD_OURS)
        return 0;
    int fd = from == TP_CHILD_NULL ? open("/dev/null", flags | O_CLOEXEC) : from;
    if (fd == to)
        return fcntl(fd, F_SETFD, 0);
    return fd >= 0 && dup2(fd, to) >= 0 ? 0 : -1;
}

static void reset_signals(void)
{
    sigset_t none;
    struct sigaction normal = {.sa_handler = SIG_DFL};
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &normal, NULL); /* KILL and STOP refuse, which is fine */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void become(launch *l) __attribute__((noreturn, noinline));
static void become(launch *l)
{
    const tp_child *c = l->child;
    setpgid(0, 0);
    if (l->dies_with_us) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != l->parent) /* it died before the kernel was asked */
            _exit(127);
    }
    reset_signals();
    if (redirect(c->in, STDIN_FILENO, O_RDONLY) == 0 &&
        redirect(c->out, STDOUT_FILENO, O_WRONLY) == 0 &&
        redirect(c->err, STDERR_FILENO, O_WRONLY) == 0 && (!c->folder || chdir(c->folder) == 0))
        execvpe(c->argv[0], c->argv, l->envp);
    l->failure = errno;
    _exit(127);
}

static pid_t launch_child(launch *l)
{
    sigset_t all, before;
    sigfillset(&all);
    /* A handler of ours must not run in the child. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = vfork();
    if (pid == 0)
        become(l);
    if (pid < 0)
        l->failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

/* ---- the guard ---- */

static const char guard_script[] = "trap '' HUP INT QUIT TERM; g=' '\n"
                                   "while read -r s p; do case $s in\n"
                                   "+) g=\"$g$p \" ;;\n"
                                   "-) g=\"${g%% $p *} ${g#* $p }\" ;;\n"
                                   "esac; done\n"
                                   "for p in $g; do kill -s KILL -- \"-$p\"; done\n"
                                   "n=0; while [ $n -lt 20 ]; do n=$((n + 1)); k=\n"
                                   "for f in $(grep -Fls \"$0\" /proc/[0-9]*/environ); do\n"
                                   "f=${f#/proc/}; kill -s KILL ${f%/environ} && k=1; done\n"
                                   "[ $k ] || break; done\n";

/* In the environment of children whose daemons are to go, and of all that descends from them. */
static char mark[64];

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static int guard_fd = -1; /* its input */
static pid_t guard_owner; /* the process that started it */

static void make_mark(void)
{
    uint64_t random = 0;
    (void)!getrandom(&random, sizeof random, 0);
    snprintf(mark, sizeof mark, "TEMPER_CHILD_OF_%d_%016llx=1", (int)getpid(),
             (unsigned long long)random);
}

static void start_guard(void)
{
    int ends[2];
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)(uintptr_t)guard_script, mark, NULL};
    char *envp[] = {NULL};
    guard_owner = getpid();
    guard_fd = -1;
    make_mark();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    tp_child guard = {.argv = argv,
                      .folder = "/", /* it holds no file system busy */
                      .in = ends[0],
                      .out = TP_CHILD_NULL,
                      .err = TP_CHILD_NULL};
    launch l = {.child = &guard, .envp = envp};
    pid_t pid = launch_child(&l);
    close(ends[0]);
    if (pid > 0 && !l.failure)
        guard_fd = ends[1];
    else
        close(ends[1]);
}

static void need_guard(void)
{
    if (guard_owner != getpid())
        start_guard();
}

static void tell_guard(char sign, pid_t pid)
{
    char line[32];
    int n = snprintf(line, sizeof line, "%c %d\n", sign, (int)pid);
    pthread_mutex_lock(&guard_lock);
    need_guard();
    if (guard_fd >= 0 && send(guard_fd, line, (size_t)n, MSG_NOSIGNAL) != n) {
        close(guard_fd);
        guard_fd = -1;
    }
    pthread_mutex_unlock(&guard_lock);
}

/* The environment with the mark at its end, to be freed; NULL: out of memory. */
static char **marked(char *const *envp)
{
    size_t n = 0;
    while (envp[n])
        n++;
    char **all = malloc((n + 2) * sizeof *all);
    if (!all)
        return NULL;
    memcpy(all, envp, n * sizeof *all);
    pthread_mutex_lock(&guard_lock);
    need_guard();
    pthread_mutex_unlock(&guard_lock);
    all[n] = mark;
    all[n + 1] = NULL;
    return all;
}

/* ---- the interface ---- */

int tp_child_start(const tp_child *child, pid_t *ret)
{
    launch l = {.child = child,
                .envp = child->envp ? child->envp : environ,
                .parent = getpid(),
                .dies_with_us = true};
    char **own = child->owns_daemons ? marked(l.envp) : NULL;
    if (own)
        l.envp = own;
    pid_t pid = child->owns_daemons && !own ? -1 : launch_child(&l);
    free(own);
    if (pid < 0)
        return l.failure ? l.failure : ENOMEM;
    if (l.failure) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return l.failure;
    }
    tell_guard('+', pid);
    *ret = pid;
    return 0;
}

void tp_child_kill(pid_t pid)
{
    kill(-pid, SIGKILL);
    tell_guard('-', pid);
}
