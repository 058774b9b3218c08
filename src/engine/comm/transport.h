/* transport.h - what moves bytes between processes: the interface of plug-ins.
 *
 * MPI has no stable binary interface (in Open MPI handles are addresses of symbols, in MPICH they
 * are numbers), so nothing of Temper links it: temper_mpi.so is built against the mpi.h that was
 * found, has this table alone to the outside, and is loaded when a run has several ranks.
 *
 * Messages between two ranks with one tag arrive in the order in which they were sent.  One thread
 * at a time.  Nothing moves unless test() is called: MPI has no thread of its own. */
#ifndef TP_ENGINE_COMM_TRANSPORT_H
#define TP_ENGINE_COMM_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

enum { TP_TRANSPORT_VERSION = 3 };
enum { TP_ANY_RANK = -1 };
enum { TP_TRANSPORT_TAGS = 32000 }; /* tags are below; MPI promises 32767 */

typedef struct {
    int version; /* TP_TRANSPORT_VERSION */
    void *context;
    const char *name; /* "Open MPI 4.1.4"; after open() */
    /* Join the others.  0, or why it cannot be. */
    int (*open)(void *context, int *ret_rank, int *ret_size, char *why, size_t why_size);
    /* Begin.  The data must stay as it is until the request is done.  A number from 0 on; -1: it
     * failed. */
    int (*send)(void *context, const void *data, size_t bytes, int to, int tag);
    int (*receive)(void *context, void *data, size_t bytes, int from, int tag);
    /* 1: done, and the request is free again; 0: not yet; -1: it failed. */
    int (*test)(void *context, int request);
    void (*cancel)(void *context, int request);
    /* Leave together: waits for all others to do the same. */
    void (*close)(void *context);

    /* Of a network that is simulated; NULL elsewhere: this host, its clock, and naps. */
    const char *host; /* after open() */
    uint64_t (*now_ns)(void *context);
    void (*pass)(void *context, double seconds); /* they pass, as if something were computed */
    void (*pause)(void *context);                /* until something that has begun is done */
} tp_transport;

/* What a plug-in exports. */
#define TP_TRANSPORT_SYMBOL "temper_transport"
typedef tp_transport *tp_transport_fn(void);

#endif
