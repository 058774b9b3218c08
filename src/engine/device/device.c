/* device.c - devices and buffers: what all backends have in common.
 *
 * Bounds of copies are checked here, so that no backend has to. */
#include "engine/device/device.h"

#include <math.h>

#include <stdlib.h>

#include "engine/device/device_backend.h"

tp_status tp_device_open(const tp_backend *backend, const tp_device_options *options,
                         tp_device **ret, tp_error *err)
{
    tp_backend_prepare(backend);
    tp_device *d = tp_new(1, sizeof *d);
    d->backend = backend;
    d->threads = options->threads > 0 ? options->threads : 1;
    TP_HAND_OVER(backend->open ? backend->open(d, err) : TP_OK, ret, d, free(d));
}

void tp_device_close(tp_device *device)
{
    if (!device)
        return;
    if (device->backend->close)
        device->backend->close(device);
    free(device);
}

const tp_backend *tp_device_backend(const tp_device *device) { return device->backend; }

const char *tp_backend_name(const tp_backend *backend) { return backend->name; }

const char *tp_backend_unit_name(const tp_backend *backend, tp_dtype dtype)
{
    return backend->unit_name ? backend->unit_name(dtype) : "unknown";
}

tp_status tp_backend_unit_peak(const tp_backend *backend, tp_dtype dtype, int threads,
                               double seconds, double *ret, tp_error *err)
{
    *ret = NAN;
    return backend->unit_peak ? backend->unit_peak(dtype, threads, seconds, ret, err) : TP_OK;
}

tp_status tp_backend_read_peak(const tp_backend *backend, size_t bytes, int threads, double seconds,
                               double *ret, tp_error *err)
{
    *ret = NAN;
    return backend->read_peak ? backend->read_peak(bytes, threads, seconds, ret, err) : TP_OK;
}

void tp_backend_prepare(const tp_backend *backend)
{
    if (backend->prepare)
        backend->prepare();
}

const char *tp_device_name(const tp_device *device) { return device->backend->name; }

int tp_device_threads(const tp_device *device) { return device->threads; }

tp_status tp_buffer_alloc(tp_device *device, tp_mem_kind kind, size_t bytes, tp_buffer **ret,
                          tp_error *err)
{
    tp_buffer *b = tp_new(1, sizeof *b);
    *b = (tp_buffer){.device = device, .kind = kind, .bytes = bytes};
    TP_HAND_OVER(device->backend->alloc(b, err), ret, b, free(b));
}

void tp_buffer_free(tp_buffer *buffer)
{
    if (!buffer)
        return;
    buffer->device->backend->free(buffer);
    free(buffer);
}

uint64_t tp_span_address(tp_span span)
{
    return span.buffer ? (uint64_t)(uintptr_t)span.buffer->address + span.offset : 0;
}

/* ---- copies ---- */

static bool is_within(tp_span span, size_t bytes)
{
    return !span.buffer ||
           (span.offset <= span.buffer->bytes && bytes <= span.buffer->bytes - span.offset);
}

static tp_status copy(tp_device *device, const tp_copy *c, tp_error *err)
{
    TP_ASSERT(is_within(c->to, c->bytes) && is_within(c->from, c->bytes));
    return c->bytes ? device->backend->copy(device, c, err) : TP_OK;
}

tp_status tp_span_write_early(tp_span to, const void *from, size_t bytes, tp_error *err)
{
    const tp_copy c = {.to = to, .from_host = from, .bytes = bytes};
    return copy(to.buffer->device, &c, err);
}

tp_status tp_span_write(tp_span to, const void *from, size_t bytes, tp_error *err)
{
    TP_TRY(tp_span_write_early(to, from, bytes, err));
    return tp_device_wait(to.buffer->device, err);
}

tp_status tp_span_read(void *to, tp_span from, size_t bytes, tp_error *err)
{
    const tp_copy c = {.to_host = to, .from = from, .bytes = bytes};
    TP_TRY(copy(from.buffer->device, &c, err));
    return tp_device_wait(from.buffer->device, err);
}

tp_status tp_span_copy(tp_span to, tp_span from, size_t bytes, tp_error *err)
{
    const tp_copy c = {.to = to, .from = from, .bytes = bytes};
    TP_ASSERT(to.buffer->device == from.buffer->device);
    return copy(to.buffer->device, &c, err);
}

/* ---- work ---- */

tp_status tp_device_submit(tp_device *device, tp_launch *launches, size_t n, tp_error *err)
{
    return device->backend->submit(device, launches, n, err);
}

tp_status tp_device_wait(tp_device *device, tp_error *err)
{
    return device->backend->wait ? device->backend->wait(device, err) : TP_OK;
}

bool tp_device_is_synchronous(const tp_device *device) { return !device->backend->wait; }

tp_status tp_device_mark(tp_device *device, size_t mark, tp_error *err)
{
    return device->backend->mark(device, mark, err);
}

uint64_t tp_device_elapsed(const tp_device *device, size_t from, size_t to)
{
    return device->backend->elapsed(device, from, to);
}
