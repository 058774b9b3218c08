/* local_ranks.c - a transport between threads.
 *
 * Messages are copied when they are sent, but the request of the sender is done only when the
 * other has taken the message, as with the large messages of MPI. */
#include "support/local_ranks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { MOST_RANKS = 16 };

typedef struct message {
    struct message *next;
    uint64_t number; /* no other of this world has it */
    int from, tag;
    size_t bytes;
    char data[];
} message;

typedef struct {
    pthread_mutex_t lock;
    pthread_barrier_t all_have_joined;
    int n;
    uint64_t sent;
    message *boxes[MOST_RANKS];
} world;

typedef struct {
    bool is_used, is_receive;
    void *data;
    size_t bytes;
    int from, tag;
    int to; /* of a message that was sent, with its number */
    uint64_t number;
} pending;

typedef struct {
    world *w;
    int rank;
    pending *requests;
    int n_requests;
    tp_transport table;
    void (*fn)(tp_comm *comm, void *user);
    void *user;
} local_rank;

static int join_world(void *context, int *ret_rank, int *ret_size, char *why, size_t why_size)
{
    (void)why, (void)why_size;
    const local_rank *r = context;
    *ret_rank = r->rank;
    *ret_size = r->w->n;
    return 0;
}

static int take_request(local_rank *r, pending p)
{
    int i = 0;
    while (i < r->n_requests && r->requests[i].is_used)
        i++;
    if (i == r->n_requests)
        r->requests = realloc(r->requests, (size_t)++r->n_requests * sizeof *r->requests);
    p.is_used = true;
    r->requests[i] = p;
    return i;
}

static int send(void *context, const void *data, size_t bytes, int to, int tag)
{
    local_rank *r = context;
    message *m = malloc(sizeof *m + bytes);
    memcpy(m->data, data, bytes);
    pthread_mutex_lock(&r->w->lock);
    *m = (message){.number = ++r->w->sent, .from = r->rank, .tag = tag, .bytes = bytes};
    pending p = {.to = to, .number = m->number};
    message **at = &r->w->boxes[to];
    while (*at)
        at = &(*at)->next;
    *at = m;
    pthread_mutex_unlock(&r->w->lock);
    return take_request(r, p);
}

static int receive(void *context, void *data, size_t bytes, int from, int tag)
{
    return take_request(
        context,
        (pending){.is_receive = true, .data = data, .bytes = bytes, .from = from, .tag = tag});
}

static bool is_taken(const world *w, const pending *p)
{
    const message *m = w->boxes[p->to];
    while (m && m->number != p->number)
        m = m->next;
    return !m;
}

static bool take(world *w, int rank, const pending *p)
{
    for (message **at = &w->boxes[rank]; *at; at = &(*at)->next) {
        message *m = *at;
        if (m->tag != p->tag || (p->from != TP_ANY_RANK && p->from != m->from))
            continue;
        if (m->bytes != p->bytes)
            abort();
        memcpy(p->data, m->data, m->bytes);
        *at = m->next;
        free(m);
        return true;
    }
    return false;
}

static int test(void *context, int i)
{
    local_rank *r = context;
    pending *p = &r->requests[i];
    pthread_mutex_lock(&r->w->lock);
    bool is_done = p->is_receive ? take(r->w, r->rank, p) : is_taken(r->w, p);
    pthread_mutex_unlock(&r->w->lock);
    p->is_used = !is_done;
    return is_done;
}

static uint64_t fast_ns(void *context)
{
    (void)context;
    return tp_clock_ns() * LOCAL_RANKS_SPEED;
}

static void cancel(void *context, int i) { ((local_rank *)context)->requests[i].is_used = false; }

static void leave(void *context) { (void)context; }

static void *run(void *user)
{
    local_rank *r = user;
    tp_comm *comm;
    tp_error err = {0};
    if (tp_comm_open_over(&r->table, &comm, &err) != TP_OK)
        abort();
    /* Who is quick must not fail on purpose where another still joins. */
    pthread_barrier_wait(&r->w->all_have_joined);
    r->fn(comm, r->user);
    tp_comm_close(comm, TP_OK);
    return NULL;
}

void local_ranks_run(int n, void (*fn)(tp_comm *comm, void *user), void *user)
{
    world w = {.lock = PTHREAD_MUTEX_INITIALIZER, .n = n};
    local_rank *ranks = calloc((size_t)n, sizeof *ranks);
    pthread_t threads[MOST_RANKS];
    pthread_barrier_init(&w.all_have_joined, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        ranks[i] = (local_rank){.w = &w, .rank = i, .fn = fn, .user = user};
        ranks[i].table = (tp_transport){.version = TP_TRANSPORT_VERSION,
                                        .context = &ranks[i],
                                        .name = "threads",
                                        .open = join_world,
                                        .send = send,
                                        .receive = receive,
                                        .test = test,
                                        .cancel = cancel,
                                        .now_ns = fast_ns,
                                        .close = leave};
        pthread_create(&threads[i], NULL, run, &ranks[i]);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        while (w.boxes[i]) {
            message *m = w.boxes[i];
            w.boxes[i] = m->next;
            free(m);
        }
    pthread_barrier_destroy(&w.all_have_joined);
    for (int i = 0; i < n; i++)
        free(ranks[i].requests);
    free(ranks);
}
