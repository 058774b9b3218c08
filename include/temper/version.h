/* version.h - which Temper this is.
 *
 * The macros tell what a program was compiled against, tp_version() what it runs with.
 * Before 1.0 a change of the minor number may break programs; the patch number never does.
 *
 * Threads: any, at once. */
#ifndef TEMPER_VERSION_H
#define TEMPER_VERSION_H

#include "temper/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TP_VERSION_MAJOR 0
#define TP_VERSION_MINOR 1
#define TP_VERSION_PATCH 0
#define TP_VERSION_STRING "0.1.0"

/* "0.1.0" */
TP_API const char *tp_version(void);

#ifdef __cplusplus
}
#endif

#endif
