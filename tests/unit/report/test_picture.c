/* test_picture.c - texts of a picture never overlap nor leave it, gaps stay gaps, PNG has its
 * resolution, equal descriptions give equal bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/rng.h"
#include "instrument/report/picture_internal.h"

enum { MOST = 600 };

typedef struct {
    double left, right, top, bottom;
    char text[96];
} text_box;

static double attribute(const char *tag, const char *name)
{
    const char *at = strstr(tag, name);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

/* The area of every horizontal text; those inside rotated groups are left out. */
static size_t read_texts(const char *svg, text_box *boxes)
{
    size_t n = 0;
    for (const char *tag = svg; (tag = strstr(tag, "<text ")); tag++) {
        const char *group = tag - 3;
        if (tag - svg > 3 && strncmp(group, ")\">", 3) == 0)
            continue; /* <g transform="rotate(...)"> */
        const char *begin = strchr(tag, '>') + 1, *end = strchr(begin, '<');
        char text[256] = "";
        size_t used = 0;
        for (const char *p = begin; p < end && used < sizeof text - 1; p++) {
            text[used++] = *p;
            if (*p == '&')
                p = strchr(p, ';');
        }
        double size = attribute(tag, "font-size=\""), width = tp_text_width(text, size);
        double x = attribute(tag, " x=\""), y = attribute(tag, " y=\"");
        if (memmem(tag, (size_t)(begin - tag), "title", 5))
            width *= 1.1; /* bold */
        if (memmem(tag, (size_t)(begin - tag), "\"end\"", 5))
            x -= width;
        else if (memmem(tag, (size_t)(begin - tag), "\"middle\"", 8))
            x -= width / 2;
        assert_true(n < MOST);
        text_box *b = &boxes[n++];
        *b = (text_box){
            .left = x, .right = x + width, .top = y - size * 0.75, .bottom = y + size * 0.2};
        snprintf(b->text, sizeof b->text, "%s", text);
    }
    return n;
}

static void check_texts(const tp_picture *picture)
{
    static text_box boxes[MOST];
    tp_buf svg = {0};
    tp_picture_svg(picture, &svg);
    const char *size = strstr(tp_buf_str(&svg), "viewBox=\"0 0 ") + 13;
    char *end;
    double width = strtod(size, &end), height = strtod(end, NULL);
    size_t n = read_texts(tp_buf_str(&svg), boxes);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        const text_box *a = &boxes[i];
        if (a->left < -0.5 || a->right > width + 0.5 || a->top < -0.5 || a->bottom > height + 0.5)
            fail_msg("'%s' leaves the picture: %.1f to %.1f of %.1f", a->text, a->left, a->right,
                     width);
        for (size_t k = 0; k < i; k++) {
            const text_box *b = &boxes[k];
            if (a->left < b->right - 0.5 && b->left < a->right - 0.5 && a->top < b->bottom - 0.5 &&
                b->top < a->bottom - 0.5)
                fail_msg("'%s' and '%s' overlap", a->text, b->text);
        }
    }
    tp_buf_release(&svg);
}

static const char *long_label(char *out, int i)
{
    snprintf(out, 80, "model.layers.%02d.self_attn.a_name_of_sixty_characters_%02d_abcdefg", i, i);
    return out;
}

static void forty_labels_of_sixty_characters_do_not_overlap(void **state)
{
    (void)state;
    char text[40][80];
    tp_category rows[40];
    for (int i = 0; i < 40; i++)
        rows[i] = (tp_category){long_label(text[i], i), 1e6 / (i + 1), NAN, NAN, NAN};
    tp_panel panel = {.kind = TP_PANEL_BARS,
                      .title = "Time by operator",
                      .x_label = "time / ns",
                      .categories = rows,
                      .n_categories = 40};
    for (int width = 240; width <= 960; width += 90)
        check_texts(
            &(tp_picture){.title = "a", .panels = &panel, .n_panels = 1, .panel_width = width});
}

static void eight_spokes_with_long_labels_do_not_overlap(void **state)
{
    (void)state;
    char text[8][80];
    tp_category rows[8];
    for (int i = 0; i < 8; i++)
        rows[i] = (tp_category){long_label(text[i], i), i == 3 ? NAN : i / 7.0, NAN, NAN, 0.5};
    tp_panel panel = {
        .kind = TP_PANEL_RADAR, .title = "Summary", .categories = rows, .n_categories = 8};
    check_texts(&(tp_picture){.panels = &panel, .n_panels = 1});
}

/* Panels of everything that may meet: ranges over 300 decades, gaps, long names, no data. */
static void random_pictures_have_no_overlapping_text(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        tp_rng r = tp_rng_make(seed, 7);
        static double x[60], y[60], low[60], high[60];
        double scale = pow(10, (double)tp_rng_below(&r, 601) - 300), at = 0;
        for (int i = 0; i < 60; i++) {
            x[i] = at += tp_rng_uniform(&r) * scale;
            y[i] = tp_rng_below(&r, 8) ? (tp_rng_uniform(&r) - 0.2) * scale : NAN;
            low[i] = y[i] - 0.1 * scale;
            high[i] = tp_rng_below(&r, 8) ? y[i] + 0.1 * scale : INFINITY;
        }
        tp_series s[3];
        char name[3][80];
        size_t n_series = tp_rng_below(&r, 4), n = tp_rng_below(&r, 61);
        for (int i = 0; i < 3; i++)
            s[i] = (tp_series){.name = i ? long_label(name[i], i) : "loss",
                               .x = x,
                               .y = y,
                               .lower = low,
                               .upper = high,
                               .n = n};
        tp_panel panels[2] = {{.kind = TP_PANEL_PLOT,
                               .title = long_label(name[0], 0),
                               .x_label = "step",
                               .y_label = "loss / nats",
                               .series = s,
                               .n_series = n_series,
                               .log_y = tp_rng_below(&r, 2),
                               .from_zero = tp_rng_below(&r, 2),
                               .interval = n_series ? "95 % interval of the mean" : NULL,
                               .note =
                                   "A note that is long enough to be broken into several lines, "
                                   "whatever the width of the panel happens to be in this case."}};
        panels[1] = panels[0];
        check_texts(&(tp_picture){.title = "t",
                                  .subtitle = long_label(name[1], 5),
                                  .panels = panels,
                                  .n_panels = 2,
                                  .columns = 2,
                                  .panel_width = 260 + 40 * (int)tp_rng_below(&r, 10)});
    }
}

static void a_value_that_is_not_finite_breaks_the_line(void **state)
{
    (void)state;
    const double y[] = {1, 2, NAN, 2, 1};
    tp_series s = {.name = "a", .y = y, .n = 5};
    tp_panel panel = {.kind = TP_PANEL_PLOT, .series = &s, .n_series = 1};
    tp_buf svg = {0};

    tp_picture_svg(&(tp_picture){.panels = &panel, .n_panels = 1}, &svg);

    const char *line = strstr(tp_buf_str(&svg), "class=\"line\"");
    assert_non_null(line);
    line = strstr(line, " d=\"");
    size_t moves = 0;
    for (const char *p = line + 4; *p != '"'; p++)
        moves += *p == 'M';
    assert_int_equal(moves, 2);
    tp_buf_release(&svg);
}

/* Of few values all, of many those that no line shows. */
static void markers_are_of_values_that_are_drawn(void **state)
{
    (void)state;
    static const struct {
        int n, every, markers;
    } cases[] = {{60, 60, 0}, {60, 2, 30}, {60, 3, 40}, {200, 2, 100}, {198, 3, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double y[200];
        for (int i = 0; i < cases[k].n; i++)
            y[i] = i % cases[k].every ? (double)i : (double)NAN;
        tp_series s = {.name = "a", .y = y, .n = (size_t)cases[k].n};
        tp_panel panel = {.kind = TP_PANEL_PLOT, .series = &s, .n_series = 1};
        tp_buf svg = {0};
        tp_picture_svg(&(tp_picture){.panels = &panel, .n_panels = 1}, &svg);
        int markers = 0;
        for (const char *at = tp_buf_str(&svg); (at = strstr(at, "<circle")); at++)
            markers++;
        assert_int_equal(markers, cases[k].markers);
        tp_buf_release(&svg);
    }
}

static void a_million_points_stay_a_small_picture(void **state)
{
    (void)state;
    enum { N = 1000000 };
    double *y = malloc(N * sizeof *y);
    assert_non_null(y);
    for (int i = 0; i < N; i++)
        y[i] = i == 123456 ? 10 : i % 7;
    tp_series s = {.name = "a", .y = y, .n = N};
    tp_panel panel = {.kind = TP_PANEL_PLOT, .series = &s, .n_series = 1};
    tp_buf svg = {0};

    tp_picture_svg(&(tp_picture){.panels = &panel, .n_panels = 1}, &svg);

    assert_true(svg.len < 30000);
    /* the one high value reaches the top of the axis */
    assert_non_null(strstr(tp_buf_str(&svg), " 42.0L"));
    free(y);
    tp_buf_release(&svg);
}

static void a_threshold_between_unknown_ones_is_seen(void **state)
{
    (void)state;
    tp_category rows[4];
    for (int i = 0; i < 4; i++)
        rows[i] = (tp_category){"a", 0.5, NAN, NAN, i == 3 ? 0.4 : NAN};
    tp_panel panel = {.kind = TP_PANEL_RADAR, .categories = rows, .n_categories = 4};
    tp_buf svg = {0};
    tp_picture_svg(&(tp_picture){.panels = &panel, .n_panels = 1}, &svg);
    assert_non_null(strstr(tp_buf_str(&svg), "<circle class=\"reference\""));
    tp_buf_clear(&svg);
    rows[0].reference = 0.4; /* the last one's neighbour: a side */
    tp_picture_svg(&(tp_picture){.panels = &panel, .n_panels = 1}, &svg);
    assert_null(strstr(tp_buf_str(&svg), "<circle class=\"reference\""));
    tp_buf_release(&svg);
}

static void foreign_text_cannot_leave_its_element(void **state)
{
    (void)state;
    tp_category row = {"<script>\"&\x1b[31m\xff\u202e", 1, NAN, NAN, NAN};
    tp_panel panel = {.kind = TP_PANEL_BARS, .categories = &row, .n_categories = 1};
    tp_buf svg = {0};

    tp_picture_svg(&(tp_picture){.panels = &panel, .n_panels = 1}, &svg);

    assert_null(strstr(tp_buf_str(&svg), "<script"));
    assert_null(strchr(tp_buf_str(&svg), 0x1b));
    assert_null(strstr(tp_buf_str(&svg), "\u202e"));
    assert_true(tp_utf8_valid(svg.data, svg.len));
    assert_non_null(strstr(tp_buf_str(&svg), "&lt;script&gt;&quot;&amp;[31m\xef\xbf\xbd"));
    tp_buf_release(&svg);
}

static void axes_have_round_ticks(void **state)
{
    (void)state;
    static const struct {
        double low, high;
        bool is_log;
        const char *first, *last;
    } cases[] = {
        {0, 0.97, false, "0.0", "1.0"},
        {0, 19999, false, "0", "20k"},
        {3, 3, false, "2.8", "3.2"},
        {-2e-9, 2e-9, false, "-2e-09", "2e-09"},
        {0.2, 40, true, "0.1", "100"},
        {0.21, 2.9, true, "0.2", "5"},
        {1e-12, 1e12, true, "1e-12", "100M"},
        {0, 1.7e308, false, "0", "1.5e+308"},
        {2, 2.0000004, false, "2.0000000", "2.0000004"},
        {1e-5, 1.00004e-5, false, "1e-05", "1.00004e-05"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_axis a;
        char first[32], last[32];
        tp_axis_make(&a, cases[i].low, cases[i].high, cases[i].is_log, 5);
        tp_axis_text(&a, 0, first);
        tp_axis_text(&a, a.n_ticks - 1, last);
        assert_string_equal(first, cases[i].first);
        assert_string_equal(last, cases[i].last);
    }
}

static void a_png_has_the_asked_resolution(void **state)
{
    (void)state;
    const char *why;
    if (!tp_picture_can_raster(&why)) {
        print_message("%s\n", why);
        skip();
    }
    const double y[] = {1, 2, 3};
    tp_series s = {.name = "a", .y = y, .n = 3};
    tp_panel panel = {.kind = TP_PANEL_PLOT, .series = &s, .n_series = 1};
    tp_picture picture = {.panels = &panel, .n_panels = 1, .panel_width = 288, .panel_height = 192};
    char path[] = "/tmp/test_picture_XXXXXX.png";
    int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    close(fd);
    tp_error err;
    unsigned char head[64];

    assert_int_equal(tp_picture_write(&picture, path, 0, &err), TP_OK);

    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
    fclose(f);
    static const unsigned char expected[21] = {0,    0,    0, 9,    'p',  'H',  'Y',
                                               's',  0,    0, 0x2e, 0x23, 0,    0,
                                               0x2e, 0x23, 1, 0x78, 0xa5, 0x3f, 0x76};
    assert_memory_equal(head + 1, "PNG", 3);
    assert_int_equal(head[18] << 8 | head[19], 1000); /* (288 + 32) pixels of 1/96 inch, 300 dpi */
    assert_memory_equal(head + 33, expected, sizeof expected); /* 11811 dots a metre */
    remove(path);
}

static void an_unknown_ending_is_refused(void **state)
{
    (void)state;
    tp_error err;
    assert_int_equal(tp_picture_write(&(tp_picture){0}, "picture.jpeg", 0, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "'picture.jpeg': a picture's name ends in .svg, .png or .pdf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forty_labels_of_sixty_characters_do_not_overlap),
        cmocka_unit_test(eight_spokes_with_long_labels_do_not_overlap),
        cmocka_unit_test(random_pictures_have_no_overlapping_text),
        cmocka_unit_test(a_value_that_is_not_finite_breaks_the_line),
        cmocka_unit_test(markers_are_of_values_that_are_drawn),
        cmocka_unit_test(a_million_points_stay_a_small_picture),
        cmocka_unit_test(a_threshold_between_unknown_ones_is_seen),
        cmocka_unit_test(foreign_text_cannot_leave_its_element),
        cmocka_unit_test(axes_have_round_ticks),
        cmocka_unit_test(a_png_has_the_asked_resolution),
        cmocka_unit_test(an_unknown_ending_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
