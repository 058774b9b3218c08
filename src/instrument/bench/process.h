/* process.h - running another program, timed, limited, and with nothing left behind.
 *
 * A child gets a process group of its own, /dev/null as standard input, and environment
 * padding of a length that the caller chooses: where the stack starts moves results by
 * per cents, so each round draws another length, the same for both sides.  Time is the
 * monotonic clock from just before the spawn to the moment the child is reaped; memory is
 * ru_maxrss of wait4(), of the child and of what it waited for.  The kernel carries the
 * spawner's own size into that number: a peak not above it is not resolved. */
#ifndef TP_INSTRUMENT_BENCH_PROCESS_H
#define TP_INSTRUMENT_BENCH_PROCESS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

typedef struct {
    const char *const *argv; /* ends with NULL */
    const char *folder;      /* to run in; NULL: here */
    double timeout_s;        /* 0: none */
    size_t padding;          /* bytes of TEMPER_BENCH_PADDING; 0: none */
    bool keep_output;        /* show what it prints (of a pipe: its standard error); otherwise
                                it goes to /dev/null */
    int error_fd;            /* where its standard error goes instead; 0: as above */
} tp_process_command;

typedef struct {
    uint64_t wall_ns;
    double user_s, system_s;
    uint64_t peak_bytes;  /* resident */
    uint64_t floor_bytes; /* a peak at or below this is not resolved */
    int64_t involuntary_switches;
    int exit_status; /* -1 when a signal ended it */
    int signal;
    bool has_timed_out;
} tp_process_usage;

/* Run to the end.  A status other than 0 is no failure of this function; a program that
 * cannot be started is.  TP_ERR_INTERRUPTED after tp_process_interrupt(). */
TP_CHECKED tp_status tp_process_run(const tp_process_command *command, tp_process_usage *ret,
                                    tp_error *err);

/* Run to the end and keep what it prints (standard output; at most max_bytes). */
TP_CHECKED tp_status tp_process_read(const tp_process_command *command, size_t max_bytes,
                                     tp_buf *ret_out, tp_process_usage *ret, tp_error *err);

/* A child to talk with, line by line. */
typedef struct {
    pid_t pid;
    int to, from; /* -1: closed */
    tp_buf pending;
} tp_pipe;
TP_CHECKED tp_status tp_pipe_open(const tp_process_command *command, tp_pipe *ret, tp_error *err);
TP_CHECKED tp_status tp_pipe_send(tp_pipe *p, const char *line, tp_error *err);
/* The next line without its end; an end of file or a timeout is an error. */
TP_CHECKED tp_status tp_pipe_receive(tp_pipe *p, double timeout_s, tp_buf *ret_line, tp_error *err);
void tp_pipe_close(tp_pipe *p); /* ends the child; zeroed with -1 in both ends is a no-op */

/* From a signal handler: the running child is ended, and calls return. */
void tp_process_interrupt(void);

#endif
