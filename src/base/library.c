/* library.c - pointers to functions by dlsym(), which gives pointers to objects. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

bool tp_library_find(void *library, const tp_library_function *functions, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol)
            return false;
        memcpy(functions[i].to, &symbol, sizeof symbol);
    }
    return true;
}
