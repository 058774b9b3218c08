/* override_lines.h - fuzz targets whose input is words of the command line, a line each. */
#ifndef TP_OVERRIDE_LINES_H
#define TP_OVERRIDE_LINES_H

#include "config/config.h"

/* What a target does with the configuration that the words made; it must not keep it. */
void try_config(tp_config *config);

#endif
