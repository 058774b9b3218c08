/* device.h - where tensors lie and launches run, without saying how.
 *
 * A device is an opened backend.  It owns buffers, a stream of work and, on a processor, a
 * team of threads.  A span is a place in a buffer: everything above the backends holds spans,
 * and only the device turns them into pointers, when a launch runs or when it copies.
 *
 *     tp_device_open(&tp_backend_cpu, &options, &device, &err);
 *     tp_buffer_alloc(device, TP_MEM_WEIGHTS, bytes, &buffer, &err);        zeroed
 *     tp_span_write((tp_span){buffer, 0}, weights, bytes, &err);
 *     tp_device_submit(device, launches, n, &err);                          in order
 *     tp_span_read(result, (tp_span){buffer, 0}, bytes, &err);              waits for them
 *     tp_buffer_free(buffer);
 *     tp_device_close(device);                                              buffers first
 *
 * Work of a device is done in the order in which it was given.  A fault on the device may be
 * told by a later call.  One thread at a time per device; two devices of one backend know
 * nothing of each other. */
#ifndef TP_ENGINE_DEVICE_DEVICE_H
#define TP_ENGINE_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/device/dtype.h"
#include "engine/device/memory.h"

typedef struct tp_backend tp_backend; /* engine/backend/backend.h */
typedef struct tp_device tp_device;
typedef struct tp_buffer tp_buffer;
typedef struct tp_launch tp_launch;

typedef struct {
    tp_buffer *buffer; /* NULL: absent */
    size_t offset;     /* bytes */
} tp_span;

typedef struct {
    int threads; /* work is divided by it, among no more threads than processors; 0: one */
} tp_device_options;

TP_CHECKED tp_status tp_device_open(const tp_backend *backend, const tp_device_options *options,
                                    tp_device **ret, tp_error *err);
void tp_device_close(tp_device *device); /* NULL is a no-op */
const tp_backend *tp_device_backend(const tp_device *device);
const char *tp_backend_name(const tp_backend *backend);
/* What opening a device does first: kernels are proven, once per process. */
void tp_backend_prepare(const tp_backend *backend);
const char *tp_device_name(const tp_device *device); /* of its backend: "cpu" */

/* The instruction that multiplies this type: "tdpbf16ps"; "unknown" where the backend does not
 * say.  After tp_backend_prepare(), as the two below. */
const char *tp_backend_unit_name(const tp_backend *backend, tp_dtype dtype);
/* FLOP/s of that instruction alone, on `threads` threads at once: no kernel is faster.  About
 * `seconds`.  NaN where the backend does not know. */
TP_CHECKED tp_status tp_backend_unit_peak(const tp_backend *backend, tp_dtype dtype, int threads,
                                          double seconds, double *ret, tp_error *err);
/* Bytes per second that `threads` threads read, each its own `bytes` again and again; NaN where
 * unknown. */
TP_CHECKED tp_status tp_backend_read_peak(const tp_backend *backend, size_t bytes, int threads,
                                          double seconds, double *ret, tp_error *err);
int tp_device_threads(const tp_device *device);

/* `bytes` of zeroed memory, charged to `kind`.  TP_ERR_NOMEM as tp_mem_alloc(). */
TP_CHECKED tp_status tp_buffer_alloc(tp_device *device, tp_mem_kind kind, size_t bytes,
                                     tp_buffer **ret, tp_error *err);
void tp_buffer_free(tp_buffer *buffer); /* after all work on it; NULL is a no-op */

/* A number that tells places apart, for traces.  It is no address that anybody may read. */
uint64_t tp_span_address(tp_span span);

/* Copy between the host's memory and the device, in the order of its work.  A read returns
 * when the bytes are there; a write when `from` may change; an early write returns at once, and
 * `from` must stay as it is until tp_device_wait() or a read. */
TP_CHECKED tp_status tp_span_write(tp_span to, const void *from, size_t bytes, tp_error *err);
TP_CHECKED tp_status tp_span_write_early(tp_span to, const void *from, size_t bytes, tp_error *err);
TP_CHECKED tp_status tp_span_read(void *to, tp_span from, size_t bytes, tp_error *err);
/* Within the device; the two do not overlap. */
TP_CHECKED tp_status tp_span_copy(tp_span to, tp_span from, size_t bytes, tp_error *err);

/* Run launches one after the other.  Their operands' spans must lie in buffers of the device. */
TP_CHECKED tp_status tp_device_submit(tp_device *device, tp_launch *launches, size_t n,
                                      tp_error *err);
/* Until everything is done. */
TP_CHECKED tp_status tp_device_wait(tp_device *device, tp_error *err);

/* Whether launches have run when tp_device_submit() returns; the host's clock is right then.
 * Else marks are put into the stream: time in ns from mark to mark, after tp_device_wait(). */
bool tp_device_is_synchronous(const tp_device *device);
TP_CHECKED tp_status tp_device_mark(tp_device *device, size_t mark, tp_error *err);
uint64_t tp_device_elapsed(const tp_device *device, size_t from, size_t to);

#endif
