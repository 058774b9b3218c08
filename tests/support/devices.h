/* devices.h - devices for tests, and what lies on them. */
#ifndef TP_TESTS_SUPPORT_DEVICES_H
#define TP_TESTS_SUPPORT_DEVICES_H

#include "engine/backend/backend.h"
#include "engine/device/device_backend.h"
#include "engine/device/states.h"

/* Opened when first asked for, closed with the program. */
tp_device *device_of(const char *backend, int threads);

/* A team of so many threads, more than there are processors if need be, for launches that are run
 * without a device; ended with the program. */
tp_team *team_of(int threads);

/* Where a state lies, on a device whose memory is the process's own. */
static inline void *data_of(const tp_tensor *s)
{
    return s->span.buffer ? (char *)s->span.buffer->address + s->span.offset : NULL;
}

static inline void *data_at(const tp_operand *o)
{
    return o->span.buffer ? (char *)o->span.buffer->address + o->span.offset : o->data;
}

/* What a test cannot go on without. */
#define MUST(call) TP_ASSERT((call) == TP_OK)

#endif
