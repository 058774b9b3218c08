/* process.c - programs started, timed, limited and reaped; pipes to those that serve. */
#include "instrument/bench/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

extern char **environ;

enum { MAX_PADDING = 8192, MAX_LINE = 64 << 20 };

static volatile sig_atomic_t interrupted;
static volatile pid_t running;

void tp_process_interrupt(void)
{
    interrupted = 1;
    pid_t pid = running;
    if (pid > 0)
        kill(-pid, SIGKILL);
}

/* ---- starting ---- */

/* The environment with TEMPER_BENCH_PADDING of the wanted length; freed by the caller. */
static char **padded_environment(size_t padding, char *text)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **envp = tp_new(n + 2, sizeof *envp);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environ[i], "TEMPER_BENCH_PADDING=", 21) != 0)
            envp[used++] = environ[i];
    }
    size_t length = padding < MAX_PADDING ? padding : MAX_PADDING;
    memcpy(text, "TEMPER_BENCH_PADDING=", 21);
    memset(text + 21, 'x', length);
    text[21 + length] = 0;
    envp[used++] = text;
    envp[used] = NULL;
    return envp;
}

/* `in` and `out` are descriptors for the child's standard input and output, -1: /dev/null
 * (or, for output, ours when the command keeps it). */
static tp_status spawn(const tp_process_command *c, int in, int out, pid_t *ret, tp_error *err)
{
    char padding[MAX_PADDING + 32];
    char **envp = padded_environment(c->padding, padding);
    tp_child child = {.argv = (char *const *)c->argv,
                      .envp = envp,
                      .folder = c->folder,
                      .in = in >= 0 ? in : TP_CHILD_NULL,
                      .out = out >= 0         ? out
                             : c->keep_output ? TP_CHILD_OURS
                                              : TP_CHILD_NULL,
                      .err = c->error_fd > 0  ? c->error_fd
                             : c->keep_output ? TP_CHILD_OURS
                                              : TP_CHILD_NULL};
    int failure = tp_child_start(&child, ret);
    free(envp);
    if (failure)
        return tp_fail(err, TP_ERR_IO, "'%s' cannot be started%s%s: %s", c->argv[0],
                       c->folder ? " in " : "", c->folder ? c->folder : "", strerror(failure));
    running = *ret;
    return TP_OK;
}

/* ---- waiting ---- */

/* True when the child has ended (it is not reaped yet). */
static bool wait_until(pid_t pid, double timeout_s)
{
    double end = tp_clock_s() + timeout_s;
    int fd = pidfd_open(pid, 0);
    for (;;) {
        double left = timeout_s > 0 ? end - tp_clock_s() : 3600;
        if (left <= 0 || interrupted)
            break;
        if (fd >= 0) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            if (poll(&p, 1, left < 3600 ? (int)(left * 1000) + 1 : 3600000) > 0)
                break;
            continue;
        }
        siginfo_t info = {0};
        int failed = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((failed && errno == ECHILD) || (!failed && info.si_pid == pid))
            break; /* there is none where a caller of the library ignores SIGCHLD */
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    if (fd >= 0)
        close(fd);
    siginfo_t info = {0};
    int failed = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
    return (failed && errno == ECHILD) || (!failed && info.si_pid == pid);
}

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static void reap(pid_t pid, tp_process_usage *ret)
{
    int status = 0;
    struct rusage usage = {0};
    while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    running = 0;
    ret->user_s = seconds(usage.ru_utime);
    ret->system_s = seconds(usage.ru_stime);
    ret->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    ret->involuntary_switches = usage.ru_nivcsw;
    ret->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static uint64_t own_peak(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

tp_status tp_process_run(const tp_process_command *command, tp_process_usage *ret, tp_error *err)
{
    pid_t pid;
    tp_process_usage usage = {.floor_bytes = own_peak()};
    if (interrupted)
        return tp_fail(err, TP_ERR_INTERRUPTED, "interrupted");
    uint64_t start = tp_clock_ns();
    TP_TRY(spawn(command, -1, -1, &pid, err));
    bool has_ended = wait_until(pid, command->timeout_s);
    usage.wall_ns = tp_clock_ns() - start;
    usage.has_timed_out = !has_ended && !interrupted;
    /* Nothing of the group outlives the run: a background child would disturb the next. */
    tp_child_kill(pid);
    reap(pid, &usage);
    if (interrupted)
        return tp_fail(err, TP_ERR_INTERRUPTED, "interrupted");
    *ret = usage;
    return TP_OK;
}

/* ---- a child that talks ---- */

tp_status tp_pipe_open(const tp_process_command *command, tp_pipe *ret, tp_error *err)
{
    int to[2], from[2];
    tp_pipe p = {.to = -1, .from = -1};
    if (pipe2(to, O_CLOEXEC) != 0)
        return tp_fail(err, TP_ERR_IO, "no pipe for '%s': %s", command->argv[0], strerror(errno));
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]);
        close(to[1]);
        return tp_fail(err, TP_ERR_IO, "no pipe for '%s': %s", command->argv[0], strerror(errno));
    }
    tp_status status = spawn(command, to[0], from[1], &p.pid, err);
    close(to[0]);
    close(from[1]);
    p.to = to[1];
    p.from = from[0];
    if (status != TP_OK) {
        close(p.to);
        close(p.from);
        return status;
    }
    *ret = p;
    return TP_OK;
}

tp_status tp_pipe_send(tp_pipe *p, const char *line, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text, "%s\n", line);
    running = p->pid;
    for (size_t sent = 0; sent < text.len;) {
        ssize_t n = write(p->to, text.data + sent, text.len - sent);
        if (n < 0 && errno == EINTR && !interrupted)
            continue;
        if (n < 0)
            return tp_fail(err, interrupted ? TP_ERR_INTERRUPTED : TP_ERR_IO,
                           "the measured program does not listen: %s", strerror(errno));
        sent += (size_t)n;
    }
    return TP_OK;
}

static tp_status ended(tp_error *err, double timeout_s, bool timed_out)
{
    if (interrupted)
        return tp_fail(err, TP_ERR_INTERRUPTED, "interrupted");
    if (timed_out)
        return tp_fail(err, TP_ERR_IO, "no answer in %.3g s; --timeout allows more", timeout_s);
    return tp_fail(err, TP_ERR_IO, "the measured program ended without an answer");
}

tp_status tp_pipe_receive(tp_pipe *p, double timeout_s, tp_buf *ret_line, tp_error *err)
{
    double end = tp_clock_s() + (timeout_s > 0 ? timeout_s : 1e9);
    running = p->pid;
    for (;;) {
        char *newline = p->pending.len ? memchr(p->pending.data, '\n', p->pending.len) : NULL;
        if (newline) {
            size_t n = (size_t)(newline - p->pending.data);
            tp_buf_clear(ret_line);
            tp_buf_add(ret_line, p->pending.data, n);
            memmove(p->pending.data, newline + 1, p->pending.len - n - 1);
            p->pending.len -= n + 1;
            return TP_OK;
        }
        double left = end - tp_clock_s();
        struct pollfd wait = {.fd = p->from, .events = POLLIN};
        int ready = left > 0 ? poll(&wait, 1, left < 3600 ? (int)(left * 1000) + 1 : 3600000) : 0;
        if (interrupted || (ready == 0 && end <= tp_clock_s()))
            return ended(err, timeout_s, true);
        if (ready <= 0)
            continue;
        char chunk[65536];
        ssize_t n = read(p->from, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || p->pending.len + (size_t)n > MAX_LINE)
            return ended(err, timeout_s, false);
        tp_buf_add(&p->pending, chunk, (size_t)n);
    }
}

void tp_pipe_close(tp_pipe *p)
{
    tp_process_usage usage;
    if (p->to >= 0)
        close(p->to);
    if (p->from >= 0)
        close(p->from);
    if (p->pid > 0) {
        /* It has been told by the end of its input; who does not listen is ended. */
        wait_until(p->pid, 2);
        tp_child_kill(p->pid);
        reap(p->pid, &usage);
    }
    tp_buf_release(&p->pending);
    *p = (tp_pipe){.to = -1, .from = -1};
}

tp_status tp_process_read(const tp_process_command *command, size_t max_bytes, tp_buf *ret_out,
                          tp_process_usage *ret, tp_error *err)
{
    tp_pipe p;
    tp_process_usage usage = {.floor_bytes = own_peak()};
    char chunk[65536];
    uint64_t start = tp_clock_ns();
    TP_TRY(tp_pipe_open(command, &p, err));
    close(p.to);
    p.to = -1;
    tp_buf_clear(ret_out);
    double end = tp_clock_s() + (command->timeout_s > 0 ? command->timeout_s : 1e9);
    while (!interrupted && ret_out->len <= max_bytes) {
        double left = end - tp_clock_s();
        struct pollfd wait = {.fd = p.from, .events = POLLIN};
        int ready = left > 0 ? poll(&wait, 1, left < 3600 ? (int)(left * 1000) + 1 : 3600000) : 0;
        if (ready == 0 && end <= tp_clock_s()) {
            usage.has_timed_out = true;
            break;
        }
        ssize_t n = ready > 0 ? read(p.from, chunk, sizeof chunk) : -1;
        if (n == 0)
            break;
        if (n > 0)
            tp_buf_add(ret_out, chunk, (size_t)n);
    }
    close(p.from);
    p.from = -1;
    if (usage.has_timed_out || interrupted)
        kill(-p.pid, SIGKILL);
    wait_until(p.pid, 2);
    usage.wall_ns = tp_clock_ns() - start;
    tp_child_kill(p.pid);
    reap(p.pid, &usage);
    tp_buf_release(&p.pending);
    if (interrupted)
        return tp_fail(err, TP_ERR_INTERRUPTED, "interrupted");
    *ret = usage;
    return TP_OK;
}
