/* common.c - what belongs to the library as a whole. */
#include <stdlib.h>

#include "temper/version.h"

void tp_free(void *memory) { free(memory); }

const char *tp_version(void) { return TEMPER_VERSION; }
