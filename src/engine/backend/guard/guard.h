/* guard.h - faults on purpose, for tests of what stands above the devices. */
#ifndef TP_ENGINE_BACKEND_GUARD_GUARD_H
#define TP_ENGINE_BACKEND_GUARD_GUARD_H

#include "engine/device/device.h"

#endif
