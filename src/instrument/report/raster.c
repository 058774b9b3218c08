/* raster.c - pictures as PNG and PDF by librsvg and cairo, which are loaded when they are asked
 * for.
 *
 * Nothing is linked: a command that draws nothing loads nothing, and a machine without them builds
 * and runs everything else.  cairo writes no resolution into a PNG; the pHYs chunk (PNG
 * specification 11.3.4.3) is put in behind the header. */
#include <dlfcn.h>
#include <isa-l/crc.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "instrument/report/picture.h"

/* librsvg 2.46 and cairo 1.10 or newer, as their documentation declares them. */
typedef struct {
    double x, y, width, height;
} rectangle;
typedef int (*write_function)(void *closure, const unsigned char *data, unsigned n);

static struct {
    void *(*handle_new)(const uint8_t *data, size_t n, void **error);
    int (*handle_render)(void *handle, void *cr, const rectangle *viewport, void **error);
    void (*unref)(void *object);
    void *(*image_surface)(int format, int width, int height);
    void *(*pdf_surface)(write_function write, void *closure, double width, double height);
    void (*pdf_metadata)(void *surface, int which, const char *text);
    int (*surface_status)(void *surface);
    int (*write_png)(void *surface, write_function write, void *closure);
    void (*surface_finish)(void *surface);
    void (*surface_destroy)(void *surface);
    void *(*create)(void *surface);
    int (*status)(void *cr);
    void (*destroy)(void *cr);
    const char *why; /* NULL: all there */
} rsvg;

static void attach(void)
{
    void *library = dlopen("librsvg-2.so.2", RTLD_LAZY | RTLD_LOCAL);
    void *cairo = library ? dlopen("libcairo.so.2", RTLD_LAZY | RTLD_LOCAL) : NULL;
    void *object = cairo ? dlopen("libgobject-2.0.so.0", RTLD_LAZY | RTLD_LOCAL) : NULL;
    const struct {
        void *from;
        const char *name;
        void *to;
    } wanted[] = {
        {library, "rsvg_handle_new_from_data", &rsvg.handle_new},
        {library, "rsvg_handle_render_document", &rsvg.handle_render},
        {object, "g_object_unref", &rsvg.unref},
        {cairo, "cairo_image_surface_create", &rsvg.image_surface},
        {cairo, "cairo_pdf_surface_create_for_stream", &rsvg.pdf_surface},
        {cairo, "cairo_pdf_surface_set_metadata", &rsvg.pdf_metadata},
        {cairo, "cairo_surface_status", &rsvg.surface_status},
        {cairo, "cairo_surface_write_to_png_stream", &rsvg.write_png},
        {cairo, "cairo_surface_finish", &rsvg.surface_finish},
        {cairo, "cairo_surface_destroy", &rsvg.surface_destroy},
        {cairo, "cairo_create", &rsvg.create},
        {cairo, "cairo_status", &rsvg.status},
        {cairo, "cairo_destroy", &rsvg.destroy},
    };
    rsvg.why = "librsvg is not installed (Debian: librsvg2-2)";
    if (!object)
        return;
    rsvg.why = "librsvg or cairo lacks a function; librsvg 2.46 is needed";
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *symbol = dlsym(wanted[i].from, wanted[i].name);
        if (!symbol)
            return;
        memcpy(wanted[i].to, &symbol, sizeof symbol);
    }
    rsvg.why = NULL;
}

bool tp_picture_can_raster(const char **ret_why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach);
    *ret_why = rsvg.why;
    return !rsvg.why;
}

static int collect(void *closure, const unsigned char *data, unsigned n)
{
    tp_buf_add(closure, data, n);
    return 0; /* CAIRO_STATUS_SUCCESS */
}

static void put_u32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* `png` with its dots per metre, behind the 33 bytes of signature and header. */
static void add_resolution(tp_buf *png, int dpi)
{
    enum { HEADER = 33, CHUNK = 21 };
    unsigned char chunk[CHUNK] = {0, 0, 0, 9, 'p', 'H', 'Y', 's'};
    uint32_t per_metre = (uint32_t)lround(dpi / 0.0254);
    put_u32(chunk + 8, per_metre);
    put_u32(chunk + 12, per_metre);
    chunk[16] = 1;
    put_u32(chunk + 17, crc32_gzip_refl(0, chunk + 4, 13));
    tp_buf_reserve(png, CHUNK);
    memmove(png->data + HEADER + CHUNK, png->data + HEADER, png->len - HEADER);
    memcpy(png->data + HEADER, chunk, CHUNK);
    png->len += CHUNK;
    png->data[png->len] = 0;
}

/* Width and height of the picture, from its own first line. */
static void size_of(const tp_buf *svg, double *width, double *height)
{
    const char *box = strstr(tp_buf_str(svg), "viewBox=\"0 0 ");
    char *end = NULL;
    *width = box ? strtod(box + 13, &end) : 0;
    *height = end ? strtod(end, NULL) : 0;
}

static bool draw(const tp_buf *svg, void *surface, double width, double height)
{
    void *handle = rsvg.handle_new((const uint8_t *)svg->data, svg->len, NULL);
    void *cr = rsvg.create(surface);
    rectangle viewport = {0, 0, width, height};
    bool ok = handle && rsvg.handle_render(handle, cr, &viewport, NULL) && rsvg.status(cr) == 0;
    rsvg.destroy(cr);
    if (handle)
        rsvg.unref(handle);
    return ok;
}

static tp_status make_png(const tp_buf *svg, int dpi, tp_buf *ret, tp_error *err)
{
    double width, height, scale = dpi / 96.0;
    size_of(svg, &width, &height);
    width = round(width * scale);
    height = round(height * scale);
    if (width > 32000 || height > 32000)
        return tp_fail(err, TP_ERR_ARG,
                       "a PNG of %.0f by %.0f pixels is too large: 32000 is the most", width,
                       height);
    void *surface = rsvg.image_surface(0 /* CAIRO_FORMAT_ARGB32 */, (int)width, (int)height);
    bool ok = rsvg.surface_status(surface) == 0 && draw(svg, surface, width, height) &&
              rsvg.write_png(surface, collect, ret) == 0 && ret->len > 33;
    rsvg.surface_destroy(surface);
    if (!ok)
        return tp_fail(err, TP_ERR_NOMEM, "cairo cannot draw a PNG of %.0f by %.0f pixels", width,
                       height);
    add_resolution(ret, dpi);
    return TP_OK;
}

static tp_status make_pdf(const tp_buf *svg, tp_buf *ret, tp_error *err)
{
    double width, height;
    size_of(svg, &width, &height);
    width *= 0.75; /* points of 1/72 inch */
    height *= 0.75;
    void *surface = rsvg.pdf_surface(collect, ret, width, height);
    rsvg.pdf_metadata(surface, 5 /* CAIRO_PDF_METADATA_CREATE_DATE */, "2000-01-01T00:00:00Z");
    bool ok = rsvg.surface_status(surface) == 0 && draw(svg, surface, width, height);
    rsvg.surface_finish(surface);
    ok = ok && rsvg.surface_status(surface) == 0;
    rsvg.surface_destroy(surface);
    return ok ? TP_OK : tp_fail(err, TP_ERR_NOMEM, "cairo cannot draw the PDF");
}

tp_status tp_picture_check(const char *path, tp_error *err)
{
    const char *why;
    bool is_svg = tp_str_ends(path, ".svg");
    if (!is_svg && !tp_str_ends(path, ".png") && !tp_str_ends(path, ".pdf"))
        return tp_fail(err, TP_ERR_ARG, "'%s': a picture's name ends in .svg, .png or .pdf", path);
    if (!is_svg && !tp_picture_can_raster(&why))
        return tp_fail(err, TP_ERR_UNSUPPORTED, "'%s' cannot be drawn: %s; .svg needs nothing",
                       path, why);
    return tp_output_check(path, err);
}

tp_status tp_picture_write(const tp_picture *picture, const char *path, int dpi, tp_error *err)
{
    bool is_png = tp_str_ends(path, ".png"), is_pdf = tp_str_ends(path, ".pdf");
    TP_OWN(tp_buf) svg = {0}, data = {0};
    tp_status status = TP_OK;
    TP_TRY(tp_picture_check(path, err));
    tp_picture_svg(picture, &svg);
    if (is_png)
        status = make_png(&svg, dpi > 0 ? dpi : 300, &data, err);
    else if (is_pdf)
        status = make_pdf(&svg, &data, err);
    const tp_buf *out = is_png || is_pdf ? &data : &svg;
    if (status == TP_OK)
        status = tp_output_put(path, out->data, out->len, err);
    else
        status = tp_error_prefix(err, status, "'%s': ", path);
    return status;
}
