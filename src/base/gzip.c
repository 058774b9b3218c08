/* gzip.c - a stream through ISA-L's deflate at level 1: traces shrink to a tenth at the speed of a
 * disk. */
#include "base/gzip.h"

#include <isa-l/igzip_lib.h>

enum { ZIP_OUT = 1 << 16, ZIP_IN = 1 << 30 };

struct tp_gzip {
    struct isal_zstream stream;
    uint8_t level[ISAL_DEF_LVL1_DEFAULT];
};

bool tp_gzip_is_named(const char *path) { return tp_str_ends(path, ".gz"); }

tp_gzip *tp_gzip_new(void)
{
    tp_gzip *zip = malloc(sizeof *zip);
    if (!zip)
        return NULL;
    isal_deflate_init(&zip->stream);
    zip->stream.level = 1;
    zip->stream.level_buf = zip->level;
    zip->stream.level_buf_size = sizeof zip->level;
    zip->stream.gzip_flag = IGZIP_GZIP;
    return zip;
}

void tp_gzip_free(tp_gzip *zip) { free(zip); }

static void deflate_part(struct isal_zstream *stream, tp_buf *out)
{
    uint8_t ready[ZIP_OUT];
    do {
        stream->next_out = ready;
        stream->avail_out = sizeof ready;
        isal_deflate(stream);
        tp_buf_add(out, ready, sizeof ready - stream->avail_out);
    } while (stream->avail_out == 0);
}

void tp_gzip_add(tp_gzip *zip, const void *data, size_t n, bool is_last, tp_buf *out)
{
    const uint8_t *at = data;
    do {
        size_t part = n < ZIP_IN ? n : ZIP_IN;
        zip->stream.next_in = (uint8_t *)(uintptr_t)at;
        zip->stream.avail_in = (uint32_t)part;
        zip->stream.end_of_stream = is_last && part == n;
        deflate_part(&zip->stream, out);
        at += part;
        n -= part;
    } while (n > 0);
}
