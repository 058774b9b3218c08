/* library.h - functions of a library that is loaded when it is used. */
#ifndef TP_BASE_LIBRARY_H
#define TP_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name;
    void *to; /* the pointer to the function */
} tp_library_function;

/* All of them, of what dlopen() gave; false where one is missing. */
bool tp_library_find(void *library, const tp_library_function *functions, size_t n);

#endif
