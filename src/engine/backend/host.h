/* host.h - threads, memory and launches of backends whose kernels see the process's own memory. */
#ifndef TP_ENGINE_BACKEND_HOST_H
#define TP_ENGINE_BACKEND_HOST_H

#include "engine/backend/backend.h"
#include "engine/device/device_backend.h"

/* device->own is a team of its threads; without open, of the one that calls. */
tp_status tp_host_open(tp_device *device, tp_error *err);
void tp_host_close(tp_device *device);
tp_status tp_host_alloc(tp_buffer *buffer, tp_error *err);
void tp_host_free(tp_buffer *buffer);
tp_status tp_host_copy(tp_device *device, const tp_copy *copy, tp_error *err);

/* memcpy() between a copy's ends, and the pointers of a launch from its spans: where a buffer
 * begins is `base` of it. */
void tp_copy_perform(const tp_copy *copy, void *(*base)(const tp_buffer *buffer));
void tp_launch_resolve(tp_launch *launch, void *(*base)(const tp_buffer *buffer));
tp_status tp_host_submit(tp_device *device, tp_launch *launches, size_t n, tp_error *err);

#endif
