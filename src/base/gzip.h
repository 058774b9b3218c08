/* gzip.h - bytes compressed as they come, in gzip's format. */
#ifndef TP_BASE_GZIP_H
#define TP_BASE_GZIP_H

#include "base/strings.h"

typedef struct tp_gzip tp_gzip;

/* Whether what is written under this name is to be compressed. */
bool tp_gzip_is_named(const char *path);

tp_gzip *tp_gzip_new(void); /* NULL: no memory */
void tp_gzip_free(tp_gzip *zip);
/* What is ready of all that was handed over is appended to `out`; with `is_last` that is all. */
void tp_gzip_add(tp_gzip *zip, const void *data, size_t n, bool is_last, tp_buf *out);

#endif
