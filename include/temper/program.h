/* program.h - what belongs to a process as a whole, for the program around the library.
 *
 * Threads: tp_outputs_watch() and tp_cpu_use_isa() concern the process: call them before other
 * threads use the library. The others any, at once; tp_map_name_at() in a handler of signals too.
 */
#ifndef TEMPER_PROGRAM_H
#define TEMPER_PROGRAM_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From here on remember which files are read: the library then refuses to write a result over
 * one.  A program calls it once, first thing. */
TP_API void tp_outputs_watch(void);

/* The mapped file that holds the address, or NULL.  Safe in a handler of SIGBUS: a file that
 * somebody made shorter is lost where it was. */
TP_API const char *tp_map_name_at(const void *address);

TP_API const char *tp_cpu_model(void); /* "AMD EPYC", "unknown" */
/* The highest instruction set that the processor has: "portable", "avx2", "avx512",
 * "avx512_bf16" or "amx". */
TP_API const char *tp_cpu_best_isa(void);
/* Lower (or raise again) the one in force, for all sessions; not while one computes.
 * TP_ERR_ARG: no such set; TP_ERR_UNSUPPORTED: the processor lacks it. */
TP_API TP_CHECKED tp_status tp_cpu_use_isa(const char *name, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
