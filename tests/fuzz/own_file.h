/* own_file.h - bytes as a file, for targets of readers that want a path. */
#ifndef TP_TESTS_FUZZ_OWN_FILE_H
#define TP_TESTS_FUZZ_OWN_FILE_H

#include <stddef.h>

/* A folder of this process's own, in memory where there is such; it goes with the process. */
const char *tp_fuzz_folder(void);
/* Written as `name` into it: its path, until the next call.  unlink() it. */
const char *tp_fuzz_file(const char *name, const void *data, size_t size);

#endif
