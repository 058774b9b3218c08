/* build_key.h - the processor and this build as one number, for what is kept in files. */
#ifndef TP_BASE_BUILD_KEY_H
#define TP_BASE_BUILD_KEY_H

#include <stdbool.h>

enum { TP_BUILD_KEY = 33 }; /* digits, and 0 */

/* False when the linker gave the program no number, or the processor is another than it seems:
 * nothing is to be read or kept then. */
bool tp_build_key(char key[TP_BUILD_KEY]);

#endif
