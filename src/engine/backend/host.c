/* host.c - threads, memory and launches of backends whose kernels see the process's own memory: a
 * span is a pointer and an offset, a copy is memcpy(), and a launch has run when submit returns. */
#include "engine/backend/host.h"

#include <string.h>

#include "base/platform.h"

tp_status tp_host_open(tp_device *device, tp_error *err)
{
    tp_team *team = NULL;
    TP_TRY(tp_team_create(&team, device->threads, tp_cpu_count(), err));
    device->own = team;
    return TP_OK;
}

void tp_host_close(tp_device *device) { tp_team_free(device->own); }

tp_status tp_host_alloc(tp_buffer *buffer, tp_error *err)
{
    return tp_mem_alloc(buffer->kind, buffer->bytes, &buffer->address, err);
}

void tp_host_free(tp_buffer *buffer) { tp_mem_free(buffer->address); }

void tp_copy_perform(const tp_copy *c, void *(*base)(const tp_buffer *))
{
    void *to = c->to.buffer ? (char *)base(c->to.buffer) + c->to.offset : c->to_host;
    const void *from =
        c->from.buffer ? (const char *)base(c->from.buffer) + c->from.offset : c->from_host;
    memcpy(to, from, c->bytes);
}

static void *base_of(const tp_buffer *buffer) { return buffer->address; }

tp_status tp_host_copy(tp_device *device, const tp_copy *copy, tp_error *err)
{
    (void)device, (void)err;
    tp_copy_perform(copy, base_of);
    return TP_OK;
}

static inline void resolve(tp_operand *o, void *(*base)(const tp_buffer *))
{
    o->data = o->span.buffer ? (char *)base(o->span.buffer) + o->span.offset : NULL;
}

void tp_launch_resolve(tp_launch *l, void *(*base)(const tp_buffer *buffer))
{
    for (int k = 0; k < l->n_in; k++)
        resolve(&l->in[k], base);
    for (int k = 0; k < l->n_out; k++)
        resolve(&l->out[k], base);
    l->workspace = l->workspace_span.buffer
                       ? (char *)base(l->workspace_span.buffer) + l->workspace_span.offset
                       : NULL;
}

/* All launches share one workspace: what is behind a launch's own part is none of its business.
 * Only an address sanitizer sees it. */
static void run_within(const tp_launch *l)
{
    const tp_span *s = &l->workspace_span;
    size_t own = s->offset + l->workspace_bytes;
    size_t rest = s->buffer && s->buffer->bytes > own ? s->buffer->bytes - own : 0;
    if (rest)
        TP_POISON((char *)s->buffer->address + own, rest);
    l->kernel->run(l);
    if (rest)
        TP_UNPOISON((char *)s->buffer->address + own, rest);
}

tp_status tp_host_submit(tp_device *device, tp_launch *launches, size_t n, tp_error *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++) {
        tp_launch_resolve(&launches[i], base_of);
        launches[i].team = device->own;
        run_within(&launches[i]);
    }
    return TP_OK;
}
