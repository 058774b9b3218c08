/* child.h - other programs, started so that none of them outlives this one.
 *
 * A child leads a process group of its own, so that killing the group kills what it started.
 * Whoever ends this process, kill -9 included, ends the children too:
 *
 *     the child itself     by PR_SET_PDEATHSIG, which the kernel sends
 *     what it started      by the guard, one /bin/sh for all children that sees the end of
 *                          its input and kills their groups
 *     what left the group  (setsid, daemons) by the guard too, where `owns_daemons` asks for
 *                          it: a mark in the environment tells whom it descends from
 *
 * The kernel sends the first when the *thread* that started the child ends: start from one
 * that lives as long as the child is needed.  Who leaves the group and empties its environment
 * is on its own.  Without /bin/sh there is no guard. */
#ifndef TP_BASE_CHILD_H
#define TP_BASE_CHILD_H

#include <sys/types.h>

#include "base/error.h"

enum { TP_CHILD_NULL = -1, TP_CHILD_OURS = -2 };

typedef struct {
    char *const *argv;  /* ends with NULL; argv[0] is looked for in PATH */
    char *const *envp;  /* NULL: ours */
    const char *folder; /* to run in; NULL: here */
    int in, out, err;   /* descriptors, TP_CHILD_NULL for /dev/null or TP_CHILD_OURS */
    bool owns_daemons;  /* what it started elsewhere ends with us as well */
} tp_child;

/* Signals are as a program expects them.  Returns 0 or the errno that says why the program
 * cannot be run; `*ret` is its process and group. */
TP_CHECKED int tp_child_start(const tp_child *child, pid_t *ret);
/* Kill the whole group; the child stays to be waited for. */
void tp_child_kill(pid_t pid);

#endif
