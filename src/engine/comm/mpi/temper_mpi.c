/* temper_mpi.c - the transport over MPI, a plug-in: see engine/comm/transport.h.
 *
 * Only messages between two ranks are used; what they are for is in engine/comm. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/comm/transport.h"

/* MPI counts in int: a message is at most so long, longer ones go in pieces. */
enum { MOST_BYTES = 1 << 30, MOST_PIECES = 64, MORE = 64 };

typedef struct {
    MPI_Request pieces[MOST_PIECES];
    int n; /* 0: free */
} request;

static request *requests;
static int n_requests;
static char name[MPI_MAX_LIBRARY_VERSION_STRING];

static int open_mpi(void *context, int *ret_rank, int *ret_size, char *why, size_t why_size)
{
    int level, n = 0;
    (void)context;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS ||
        level < MPI_THREAD_FUNNELED) {
        snprintf(why, why_size, "MPI_Init_thread failed");
        return -1;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, ret_rank);
    MPI_Comm_size(MPI_COMM_WORLD, ret_size);
    MPI_Get_library_version(name, &n);
    name[strcspn(name, ",\n")] = 0;
    return 0;
}

/* One that is free; -1: there is no memory for it. */
static int find_free(void)
{
    int i = 0;
    while (i < n_requests && requests[i].n)
        i++;
    if (i < n_requests)
        return i;
    request *more = realloc(requests, (size_t)(n_requests + MORE) * sizeof *more);
    if (!more)
        return -1;
    memset(more + n_requests, 0, MORE * sizeof *more);
    requests = more;
    n_requests += MORE;
    return i;
}

static int start(int is_send, char *data, size_t bytes, int peer, int tag)
{
    int i = find_free();
    if (i < 0 || bytes > (size_t)MOST_BYTES * MOST_PIECES)
        return -1;
    request *r = &requests[i];
    do {
        int n = bytes > MOST_BYTES ? MOST_BYTES : (int)bytes, status;
        if (is_send)
            status = MPI_Isend(data, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &r->pieces[r->n]);
        else
            status = MPI_Irecv(data, n, MPI_BYTE, peer == TP_ANY_RANK ? MPI_ANY_SOURCE : peer, tag,
                               MPI_COMM_WORLD, &r->pieces[r->n]);
        if (status != MPI_SUCCESS)
            return -1;
        r->n++;
        data += n;
        bytes -= (size_t)n;
    } while (bytes > 0);
    return i;
}

static int send(void *context, const void *data, size_t bytes, int to, int tag)
{
    (void)context;
    return start(1, (char *)(size_t)data, bytes, to, tag);
}

static int receive(void *context, void *data, size_t bytes, int from, int tag)
{
    (void)context;
    return start(0, data, bytes, from, tag);
}

static int test(void *context, int i)
{
    int done = 0;
    (void)context;
    if (MPI_Testall(requests[i].n, requests[i].pieces, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
        return -1;
    if (done)
        requests[i].n = 0;
    return done;
}

static void cancel(void *context, int i)
{
    (void)context;
    for (int k = 0; k < requests[i].n; k++) {
        MPI_Cancel(&requests[i].pieces[k]);
        MPI_Request_free(&requests[i].pieces[k]);
    }
    requests[i].n = 0;
}

static void close_mpi(void *context)
{
    (void)context;
    MPI_Finalize();
}

__attribute__((visibility("default"))) tp_transport *temper_transport(void);
tp_transport *temper_transport(void)
{
    static tp_transport table = {.version = TP_TRANSPORT_VERSION,
                                 .name = name,
                                 .open = open_mpi,
                                 .send = send,
                                 .receive = receive,
                                 .test = test,
                                 .cancel = cancel,
                                 .close = close_mpi};
    return &table;
}
