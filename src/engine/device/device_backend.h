/* device_backend.h - what a backend must be able to do, and what a device is made of.
 *
 * For backends alone: whoever else includes this could hold a pointer to a tensor. */
#ifndef TP_ENGINE_DEVICE_DEVICE_BACKEND_H
#define TP_ENGINE_DEVICE_DEVICE_BACKEND_H

#include "engine/device/device.h"

struct tp_device {
    const tp_backend *backend;
    int threads;
    void *own; /* the backend's */
};

struct tp_buffer {
    tp_device *device;
    tp_mem_kind kind;
    size_t bytes;
    void *address; /* as the device's kernels see it, or what stands for it outside */
    void *own;     /* the backend's */
};

/* An end that lies on the host has no buffer. */
typedef struct {
    tp_span to, from;
    void *to_host;
    const void *from_host;
    size_t bytes; /* > 0, and within the buffers */
} tp_copy;

/* One const table per backend.  Members marked (optional) may be NULL. */
struct tp_backend {
    const char *name;
    const struct tp_kernel *const *kernels; /* fastest first; ends with NULL */
    bool is_host; /* kernels see the process's own memory: those of `ref` can stand in */

    /* (optional) decides once per process which kernels may be used, before the first device is
     * open and before anybody asks for tp_cpu_isa() */
    void (*prepare)(void);
    /* (optional) sets device->own; device->threads is set already */
    tp_status (*open)(tp_device *device, tp_error *err);
    void (*close)(tp_device *device); /* (optional) */
    /* buffer->kind and ->bytes are set; sets ->address */
    tp_status (*alloc)(tp_buffer *buffer, tp_error *err);
    void (*free)(tp_buffer *buffer);
    /* may return before it is done */
    tp_status (*copy)(tp_device *device, const tp_copy *copy, tp_error *err);
    tp_status (*submit)(tp_device *device, tp_launch *launches, size_t n, tp_error *err);
    /* (optional) absent: submit and copy return when all is done */
    tp_status (*wait)(tp_device *device, tp_error *err);
    tp_status (*mark)(tp_device *device, size_t mark, tp_error *err);
    uint64_t (*elapsed)(const tp_device *device, size_t from, size_t to);
    /* (optional) what the hardware does at best: tp_backend_unit_name() and its siblings */
    const char *(*unit_name)(tp_dtype dtype);
    tp_status (*unit_peak)(tp_dtype dtype, int threads, double seconds, double *ret, tp_error *err);
    tp_status (*read_peak)(size_t bytes, int threads, double seconds, double *ret, tp_error *err);
};

#endif
