/* run_file.h - bytes as a file of a run, opened and looked at from all sides. */
#ifndef TP_TESTS_FUZZ_RUN_FILE_H
#define TP_TESTS_FUZZ_RUN_FILE_H

#include <stddef.h>

/* Written as `name` into a folder of this process's own; aborts where a failure says nothing. */
void tp_fuzz_run_file(const char *name, const void *data, size_t size);
/* The same, the folder opened as the run. */
void tp_fuzz_run_folder(const char *name, const void *data, size_t size);

#endif
