/* process.h - a child program spoken to in lines.
 *
 * Nothing here waits: bytes go out and come in as far as the pipes allow, and poll() tells
 * when they do.  The child has a process group of its own, so that killing it kills what
 * it started.  The end of what it said on standard error is kept for messages. */
#ifndef TP_ENGINE_REWARD_PROCESS_H
#define TP_ENGINE_REWARD_PROCESS_H

#include <poll.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

enum { TP_PROCESS_TAIL = 1024, TP_PROCESS_FDS = 3 };

typedef struct {
    pid_t pid; /* 0: not running */
    int in, out, err;
    tp_buf to_send, received;
    size_t sent, taken; /* of to_send; of received, in lines handed out */
    bool at_end;        /* standard output was closed */
    char tail[TP_PROCESS_TAIL + 1];
    size_t n_tail;
} tp_process;

/* `argv` ends with NULL; argv[0] is looked for in PATH.  A program that cannot be run is
 * an error here. */
TP_CHECKED tp_status tp_process_start(tp_process *p, char *const argv[], tp_error *err);

/* What poll() should look at; unused slots have fd -1. */
void tp_process_poll(const tp_process *p, struct pollfd fds[TP_PROCESS_FDS]);
/* Move bytes after poll(); returns how many came in on standard output. */
size_t tp_process_pump(tp_process *p, const struct pollfd fds[TP_PROCESS_FDS]);
/* The next complete line, without its newline; valid until the next pump.  The last one
 * counts without a newline when the output has ended. */
bool tp_process_line(tp_process *p, tp_slice *ret);
/* Bytes of a line that is not complete yet. */
size_t tp_process_pending(const tp_process *p);

/* Standard input is closed, and there is time for a good end; then it is killed.  In any
 * case it is gone afterwards; ret_how: "exit status 1", "signal 9 (Killed)". */
void tp_process_stop(tp_process *p, int patience_ms, char ret_how[64]);
/* The last line on standard error, or "". */
const char *tp_process_last_words(const tp_process *p, char out[200]);

#endif
