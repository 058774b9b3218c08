/* process.c - starting a judge, its pipes without blocking, and its end. */
#include "engine/reward/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"

enum { READ_AT_ONCE = 256 * 1024 };

/* ---- starting ---- */

typedef struct {
    int in[2], out[2], err[2]; /* read end, write end */
} pipes;

static void close_pipes(pipes *p)
{
    int *all[] = {p->in, p->out, p->err};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++)
            if (all[i][k] >= 0)
                close(all[i][k]);
}

static bool open_pipes(pipes *p)
{
    *p = (pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    return pipe2(p->in, O_CLOEXEC) == 0 && pipe2(p->out, O_CLOEXEC) == 0 &&
           pipe2(p->err, O_CLOEXEC) == 0 && fcntl(p->in[1], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(p->out[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(p->err[0], F_SETFL, O_NONBLOCK) == 0;
}

tp_status tp_process_start(tp_process *p, char *const argv[], tp_error *err)
{
    pipes ends;
    pid_t pid = 0;
    int rc;
    if (open_pipes(&ends)) {
        tp_child child = {.argv = argv,
                          .in = ends.in[0],
                          .out = ends.out[1],
                          .err = ends.err[1],
                          .owns_daemons = true};
        rc = tp_child_start(&child, &pid);
    } else {
        rc = errno;
    }
    if (rc != 0) {
        close_pipes(&ends);
        return tp_fail(err, TP_ERR_IO, "cannot run '%.200s': %s", argv[0], strerror(rc));
    }
    close(ends.in[0]);
    close(ends.out[1]);
    close(ends.err[1]);
    *p = (tp_process){.pid = pid, .in = ends.in[1], .out = ends.out[0], .err = ends.err[0]};
    return TP_OK;
}

/* ---- moving bytes ---- */

void tp_process_poll(const tp_process *p, struct pollfd fds[TP_PROCESS_FDS])
{
    bool runs = p->pid > 0, sends = runs && p->in >= 0 && p->sent < p->to_send.len;
    fds[0] = (struct pollfd){.fd = sends ? p->in : -1, .events = POLLOUT};
    fds[1] = (struct pollfd){.fd = runs && !p->at_end ? p->out : -1, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = runs ? p->err : -1, .events = POLLIN};
}

/* SIGPIPE is blocked by whoever calls: a reader that is gone shows as the end of its
 * output. */
static void send_some(tp_process *p)
{
    ssize_t n = write(p->in, p->to_send.data + p->sent, p->to_send.len - p->sent);
    if (n > 0)
        p->sent += (size_t)n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        close(p->in);
        p->in = -1;
    }
    if (p->sent == p->to_send.len) {
        tp_buf_clear(&p->to_send);
        p->sent = 0;
    }
}

static size_t receive_some(tp_process *p)
{
    /* Lines that were handed out make room. */
    if (p->taken) {
        memmove(p->received.data, p->received.data + p->taken, p->received.len - p->taken);
        p->received.len -= p->taken;
        p->taken = 0;
    }
    tp_buf_reserve(&p->received, READ_AT_ONCE);
    ssize_t n = read(p->out, p->received.data + p->received.len, READ_AT_ONCE);
    if (n > 0) {
        p->received.len += (size_t)n;
        p->received.data[p->received.len] = 0;
        return (size_t)n;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        p->at_end = true;
    return 0;
}

static void keep_tail(tp_process *p, const char *text, size_t n)
{
    if (n > TP_PROCESS_TAIL) {
        text += n - TP_PROCESS_TAIL;
        n = TP_PROCESS_TAIL;
    }
    size_t kept = p->n_tail + n > TP_PROCESS_TAIL ? TP_PROCESS_TAIL - n : p->n_tail;
    memmove(p->tail, p->tail + p->n_tail - kept, kept);
    memcpy(p->tail + kept, text, n);
    p->n_tail = kept + n;
    p->tail[p->n_tail] = 0;
}

static void receive_errors(tp_process *p)
{
    char block[4096];
    ssize_t n = read(p->err, block, sizeof block);
    if (n > 0) {
        keep_tail(p, block, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(p->err);
        p->err = -1;
    }
}

size_t tp_process_pump(tp_process *p, const struct pollfd fds[TP_PROCESS_FDS])
{
    size_t n = 0;
    if (fds[2].fd >= 0 && fds[2].revents)
        receive_errors(p);
    if (fds[1].fd >= 0 && fds[1].revents)
        n = receive_some(p);
    if (fds[0].fd >= 0 && fds[0].revents)
        send_some(p);
    return n;
}

bool tp_process_line(tp_process *p, tp_slice *ret)
{
    size_t left = p->received.len - p->taken;
    if (left == 0)
        return false;
    const char *begin = p->received.data + p->taken, *newline = memchr(begin, '\n', left);
    if (!newline && !p->at_end)
        return false;
    size_t n = newline ? (size_t)(newline - begin) : left;
    p->taken += n + (newline != NULL);
    if (n && begin[n - 1] == '\r')
        n--;
    *ret = (tp_slice){begin, n};
    return true;
}

size_t tp_process_pending(const tp_process *p) { return p->received.len - p->taken; }

/* ---- the end ---- */

static void describe(int status, char out[64])
{
    if (WIFSIGNALED(status))
        snprintf(out, 64, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, 64, "exit status %d", WEXITSTATUS(status));
}

/* Wait for the end, without taking it away. */
static void await(pid_t pid, int patience_ms)
{
    for (int waited = 0; waited < patience_ms; waited++) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void tp_process_stop(tp_process *p, int patience_ms, char ret_how[64])
{
    int status = 0;
    if (p->pid <= 0)
        return;
    if (p->in >= 0)
        close(p->in);
    await(p->pid, patience_ms);
    tp_child_kill(p->pid); /* and what it may have left behind, while its number is its own */
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (p->err >= 0) {
        receive_errors(p);
        if (p->err >= 0)
            close(p->err);
    }
    close(p->out);
    tp_buf_release(&p->to_send);
    tp_buf_release(&p->received);
    p->sent = p->taken = 0;
    p->pid = 0;
    describe(status, ret_how);
}

const char *tp_process_last_words(const tp_process *p, char out[200])
{
    size_t end = p->n_tail;
    while (end && (p->tail[end - 1] == '\n' || p->tail[end - 1] == '\r' || p->tail[end - 1] == ' '))
        end--;
    size_t begin = end;
    while (begin && p->tail[begin - 1] != '\n')
        begin--;
    snprintf(out, 200, "%.*s", (int)(end - begin), p->tail + begin);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return out;
}
