/* guard.c - `ref` behind a wall: a device that shows whether anybody goes around it.
 *
 *     host                      | device
 *     buffer->address ----------|--> reserved addresses without access: reading faults
 *                               |    buffer->own: the memory itself, known to the worker only
 *     copy, submit, mark ------>|--> queue, worked off by a thread of its own, in order,
 *     wait                      |    and not before somebody waits: copies are always late
 *
 * So a tensor that is read or written without the device faults, a host buffer that changes
 * before its early write is waited for is told, as are two threads that use the device at once,
 * a result that is read without waiting is the old one, and a kernel that hangs on the caller's
 * thread does not find it. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/platform.h"
#include "engine/backend/host.h"
#include "engine/backend/ref/kernels.h"

enum { QUEUE = 256 };

typedef enum { RUN, COPY, MARK } command_kind;

typedef struct {
    command_kind kind;
    tp_launch launch;
    tp_copy copy;
    char sum[33]; /* of what is copied from the host, when that was asked for */
    size_t mark;
} command;

typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    command *queue;
    size_t n; /* given and not yet taken by the worker */
    bool is_called, is_closing;
    atomic_flag is_used; /* a call of the host is under way */
    size_t n_changed;    /* bytes of a copy whose source was another by then; 0: none */
    uint64_t *marks;     /* ns */
    size_t n_marks;
} guard;

/* ---- the device's side ---- */

static void *base_of(const tp_buffer *buffer) { return buffer->own; }

static bool is_as_given(const command *c)
{
    char sum[sizeof c->sum];
    if (!c->copy.from_host)
        return true;
    tp_hash_bytes(c->copy.from_host, c->copy.bytes, sum);
    return strcmp(sum, c->sum) == 0;
}

static void work_off(guard *g, command *c)
{
    if (c->kind == MARK) {
        g->marks[c->mark] = tp_clock_ns();
    } else if (c->kind == COPY) {
        if (!is_as_given(c))
            g->n_changed = c->copy.bytes;
        tp_copy_perform(&c->copy, base_of);
    } else {
        tp_launch_resolve(&c->launch, base_of);
        c->launch.kernel->run(&c->launch);
    }
}

static void *worker(void *argument)
{
    guard *g = argument;
    pthread_mutex_lock(&g->lock);
    while (!g->is_closing) {
        if (!g->is_called) {
            pthread_cond_wait(&g->work, &g->lock);
            continue;
        }
        for (size_t i = 0; i < g->n; i++)
            work_off(g, &g->queue[i]);
        g->n = 0;
        g->is_called = false;
        pthread_cond_signal(&g->idle);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* ---- the host's side ---- */

static tp_status enter(guard *g, tp_error *err)
{
    if (!atomic_flag_test_and_set(&g->is_used))
        return TP_OK;
    return tp_fail(err, TP_ERR_ARG,
                   "two threads use a device at once: a device is for one thread at a time");
}

static tp_status leave(guard *g, tp_status status)
{
    atomic_flag_clear(&g->is_used);
    return status;
}

static tp_status empty(guard *g, tp_error *err)
{
    pthread_mutex_lock(&g->lock);
    g->is_called = true;
    pthread_cond_signal(&g->work);
    while (g->is_called)
        pthread_cond_wait(&g->idle, &g->lock);
    pthread_mutex_unlock(&g->lock);
    if (g->n_changed == 0)
        return TP_OK;
    size_t n = g->n_changed;
    g->n_changed = 0;
    return tp_fail(err, TP_ERR_ARG,
                   "the host's memory behind an early write of %zu bytes changed, or was "
                   "given back, before the device was waited for",
                   n);
}

static tp_status wait(tp_device *device, tp_error *err)
{
    guard *g = device->own;
    TP_TRY(enter(g, err));
    return leave(g, empty(g, err));
}

/* The worker sleeps while nobody waits, so the queue is the host's. */
static tp_status push(guard *g, const command *c, tp_error *err)
{
    if (g->n == QUEUE)
        TP_TRY(empty(g, err));
    g->queue[g->n++] = *c;
    return TP_OK;
}

static tp_status copy(tp_device *device, const tp_copy *asked, tp_error *err)
{
    guard *g = device->own;
    command c = {.kind = COPY, .copy = *asked};
    if (asked->from_host)
        tp_hash_bytes(asked->from_host, asked->bytes, c.sum);
    TP_TRY(enter(g, err));
    return leave(g, push(g, &c, err));
}

static tp_status push_launches(guard *g, const tp_launch *launches, size_t n, tp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const command c = {.kind = RUN, .launch = launches[i]};
        TP_TRY(push(g, &c, err));
    }
    return TP_OK;
}

static tp_status submit(tp_device *device, tp_launch *launches, size_t n, tp_error *err)
{
    guard *g = device->own;
    TP_TRY(enter(g, err));
    return leave(g, push_launches(g, launches, n, err));
}

static tp_status push_mark(guard *g, size_t which, tp_error *err)
{
    if (which >= g->n_marks) {
        size_t n = TP_MAX(which + 1, 2 * g->n_marks);
        uint64_t *marks = realloc(g->marks, n * sizeof *marks);
        if (!marks)
            return tp_fail(err, TP_ERR_NOMEM, "cannot keep %zu marks: out of memory", n);
        memset(marks + g->n_marks, 0, (n - g->n_marks) * sizeof *marks);
        g->marks = marks;
        g->n_marks = n;
    }
    const command c = {.kind = MARK, .mark = which};
    return push(g, &c, err);
}

static tp_status mark(tp_device *device, size_t which, tp_error *err)
{
    guard *g = device->own;
    TP_TRY(enter(g, err));
    return leave(g, push_mark(g, which, err));
}

static uint64_t elapsed(const tp_device *device, size_t from, size_t to)
{
    const guard *g = device->own;
    return g->marks[to] - g->marks[from];
}

static tp_status alloc(tp_buffer *buffer, tp_error *err)
{
    TP_TRY(tp_mem_alloc(buffer->kind, buffer->bytes, &buffer->own, err));
    buffer->address = mmap(NULL, TP_MAX(buffer->bytes, (size_t)1), PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (buffer->address != MAP_FAILED)
        return TP_OK;
    tp_status status = tp_fail(err, TP_ERR_NOMEM, "cannot reserve %zu bytes of addresses: %s",
                               buffer->bytes, strerror(errno));
    tp_mem_free(buffer->own);
    return status;
}

static void release(tp_buffer *buffer)
{
    munmap(buffer->address, TP_MAX(buffer->bytes, (size_t)1));
    tp_mem_free(buffer->own);
}

static void close_guard(tp_device *device)
{
    guard *g = device->own;
    pthread_mutex_lock(&g->lock);
    g->is_closing = true;
    pthread_cond_signal(&g->work);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    pthread_cond_destroy(&g->work);
    pthread_cond_destroy(&g->idle);
    pthread_mutex_destroy(&g->lock);
    free(g->marks);
    free(g->queue);
    free(g);
}

static tp_status open_guard(tp_device *device, tp_error *err)
{
    guard *g = calloc(1, sizeof *g);
    command *queue = calloc(QUEUE, sizeof *queue);
    if (!g || !queue) {
        free(g);
        free(queue);
        return tp_fail(err, TP_ERR_NOMEM, "cannot open a guard device: out of memory");
    }
    g->queue = queue;
    atomic_flag_clear(&g->is_used);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->work, NULL);
    pthread_cond_init(&g->idle, NULL);
    int why = pthread_create(&g->thread, NULL, worker, g);
    if (why == 0) {
        device->own = g;
        return TP_OK;
    }
    free(queue);
    free(g);
    return tp_fail(err, TP_ERR_IO, "cannot start the thread of a guard device: %s", strerror(why));
}

const tp_backend tp_backend_guard = {
    .name = "guard",
    .kernels = tp_ref_kernels,
    .open = open_guard,
    .close = close_guard,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .submit = submit,
    .wait = wait,
    .mark = mark,
    .elapsed = elapsed,
};
