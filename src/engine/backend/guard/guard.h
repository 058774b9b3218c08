/* guard.h - faults on purpose, for tests of what stands above the devices. */
#ifndef TP_ENGINE_BACKEND_GUARD_GUARD_H
#define TP_ENGINE_BACKEND_GUARD_GUARD_H

#include "engine/device/device.h"

/* The n-th launch from now on (from 1) fails, and with it everything until the device is
 * closed; 0: none. */
void tp_guard_fail_at(tp_device *device, uint64_t n);

#endif
