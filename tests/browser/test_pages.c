/* test_pages.c - the pages of `temper serve` and the dashboard in Chromium: they look as the
 * pictures in tests/data/pages do, keys work, a run that is written moves, and the console says
 * nothing.
 *
 * Two pictures are alike when of their blocks of 8 by 8 pixels at most 1 in 2500 differ by more
 * than 20 of 255 in the mean of a colour: hinting may differ, a line or a word may not.
 * KEEP_PAGES=1 keeps what is seen as the new pictures; look at them. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "browser/browser.h"
#include "temper/runs.h"
#include "temper/serve.h"
#include "unit/runs/run_files.h"

enum { WIDTH = 1000, HEIGHT = 720, STEPS = 200 };

static browser *chromium;
static const char *why;
static int page, judge; /* what is looked at; where pictures are compared */
static tp_server *server;
static char url[128];

/* ---- runs ---- */

/* A curve with noise of its own, the same at every call. */
static double noise(int run, int i) { return sin(i * 12.9898 + run * 78.233) * 0.04; }

static void write_run(const char *folder, int run, double shift)
{
    char name[128];
    tp_buf text = {0};
    mkdir(run_path(folder), 0777);
    snprintf(name, sizeof name, "%s/metrics.csv", folder);
    tp_buf_adds(&text, "step,wall_time,train/loss,train/grad_norm,validation/val_loss,"
                       "performance/tokens_per_sec,memory/allocated_bytes,"
                       "memory/kind/weights_bytes,memory/kind/activations_bytes\n");
    for (int i = 1; i <= STEPS; i++) {
        double loss = 1 + shift + 2 * exp(-i / 50.0) + noise(run, i);
        tp_buf_addf(&text, "%d,%d,%.5f,%.4f,", i, 1700000000 + 1000 * run + i, loss,
                    fabs(noise(run, 3 * i)) * 10 + 1);
        if (i % 20 == 0)
            tp_buf_addf(&text, "%.5f", loss + 0.1);
        tp_buf_addf(&text, ",%.1f,%d,60000000,%d\n", 5000 * (1 + noise(run, 7 * i)),
                    100000000 + 100000 * (i % 50), 40000000 + 100000 * (i % 50));
    }
    write_bytes(name, "w", text.data, text.len);
    tp_buf_release(&text);
}

static void copy_trace(void)
{
    tp_buf text = {0};
    mkdir(run_path("base-1/trace"), 0777);
    assert_int_equal(
        tp_file_read(TP_SOURCE_DIR "/tests/data/trace_reports/kineto-rank-0.json", 0, &text, NULL),
        TP_OK);
    write_bytes("base-1/trace/rank-0.json", "w", text.data, text.len);
    tp_buf_release(&text);
}

static void write_runs(void)
{
    static const struct {
        const char *folder;
        double shift;
    } runs[] = {{"base-1", 0},     {"base-2", .05},   {"base-3", -.04},
                {"warm-up-1", .3}, {"warm-up-2", .4}, {"warm-up-3", .3}};
    for (int i = 0; i < 6; i++)
        write_run(runs[i].folder, i, runs[i].shift);
    mkdir(run_path("base-1/samples"), 0777);
    write_text("base-1/samples/step-10.jsonl",
               "{\"prompt\":\"2 + 2 = \",\"answer\":\"4\",\"reward\":1}\n"
               "{\"prompt\":\"3 * 5 = \",\"answer\":\"16\",\"reward\":0}\n");
    write_text("base-1/alarms.jsonl", "{\"step\":120,\"alarm\":\"slowing down\","
                                      "\"text\":\"throughput fell by 31 %\"}\n");
    copy_trace();
}

static const char *id_of(const char *path)
{
    static char id[8][16];
    static int turn;
    tp_run_index *x;
    const tp_run_index_options o = {.size = sizeof o, .without_cache = true};
    turn = (turn + 1) % 8;
    id[turn][0] = 0;
    assert_int_equal(tp_run_index_open(run_folder, &o, &x, NULL), TP_OK);
    assert_int_equal(tp_run_index_scan(x, NULL, NULL), TP_OK);
    for (size_t i = 0; i < tp_run_index_count(x); i++)
        if (strcmp(tp_run_index_entry(x, i)->path, path) == 0)
            snprintf(id[turn], sizeof id[0], "%s", tp_run_index_entry(x, i)->id);
    tp_run_index_close(x);
    assert_true(id[turn][0]);
    return id[turn];
}

/* ---- around every test ---- */

static int begin_all(void **state)
{
    setenv("TZ", "UTC", 1);
    if (make_folder(state) != 0)
        return -1;
    chromium = browser_open(run_folder, WIDTH, HEIGHT, &why);
    if (!chromium)
        return 0;
    mkdir(run_path("runs"), 0777);
    snprintf(run_folder + strlen(run_folder), sizeof run_folder - strlen(run_folder), "/runs");
    write_runs();
    const tp_serve_options o = {
        .size = sizeof o, .port = -1, .without_index = true, .priority = TP_SERVE_NORMAL};
    tp_error err = {0};
    tp_status status = tp_server_start(run_folder, &o, &server, &err);
    if (status == TP_ERR_UNSUPPORTED) {
        browser_close(chromium);
        chromium = NULL;
        why = "built without libmicrohttpd";
        return 0;
    }
    if (status != TP_OK)
        return -1;
    snprintf(url, sizeof url, "%.*s", (int)strlen(tp_server_url(server)) - 1,
             tp_server_url(server));
    judge = browser_new_page(chromium);
    page = browser_new_page(chromium);
    return 0;
}

static int end_all(void **state)
{
    tp_server_stop(server);
    browser_close(chromium);
    if (server)
        *strrchr(run_folder, '/') = 0;
    return remove_folder(state);
}

#define NEED_BROWSER()                        \
    do {                                      \
        if (!chromium) {                      \
            print_message("SKIP: %s\n", why); \
            skip();                           \
        }                                     \
    } while (0)

/* ---- looking ---- */

static void go(const char *path)
{
    char address[512];
    snprintf(address, sizeof address, "%s%s", url, path);
    browser_turn_to(chromium, page);
    browser_go(chromium, address);
    browser_wait(chromium, "document.readyState === 'complete' && !!document.querySelector('#live')"
                           " && document.querySelector('#live').textContent === 'live'"
                           " && document.fonts.status === 'loaded'"
                           " && [...document.images].every((i) => i.complete || "
                           "i.getBoundingClientRect().top > innerHeight + 2000)");
}

static void go_run(const char *run, const char *rest)
{
    char path[256];
    snprintf(path, sizeof path, "/run/%s%s", id_of(run), rest);
    go(path);
}

static void value_is(const char *expression, const char *value)
{
    assert_string_equal(browser_value(chromium, expression), value);
}

/* ---- pictures ---- */

/* How two pictures differ: "[blocks that differ, blocks]", [-1, 0] for other sizes. */
static const char comparing[] =
    "(async () => {\n"
    "  const read = async (source) => {\n"
    "    const image = new Image(); image.src = source; await image.decode();\n"
    "    const c = document.createElement('canvas');\n"
    "    c.width = wide || image.naturalWidth; c.height = high || image.naturalHeight;\n"
    "    const x = c.getContext('2d'); x.fillStyle = '#fff'; x.fillRect(0, 0, c.width, c.height);\n"
    "    x.drawImage(image, 0, 0, c.width, c.height);\n"
    "    return x.getImageData(0, 0, c.width, c.height);\n"
    "  };\n"
    "  const a = await read(one), b = await read(two);\n"
    "  if (a.width !== b.width || a.height !== b.height) return [-1, 0];\n"
    "  const w = Math.ceil(a.width / 8), h = Math.ceil(a.height / 8);\n"
    "  const mean = (p, left, top, c) => {\n"
    "    let sum = 0, n = 0;\n"
    "    for (let y = Math.max(0, top); y < Math.min(p.height, top + 8); y++)\n"
    "      for (let x = Math.max(0, left); x < Math.min(p.width, left + 8); x++, n++)\n"
    "        sum += p.data[4 * (y * p.width + x) + c];\n"
    "    return sum / n;\n"
    "  };\n"
    "  const near = (x, y, dx, dy) => [0, 1, 2].every((c) =>\n"
    "    Math.abs(mean(a, 8 * x, 8 * y, c) - mean(b, 8 * x + dx, 8 * y + dy, c)) <= 20);\n"
    "  const shifts = [0, 1, -1, 2, -2];\n"
    "  let differ = 0;\n"
    "  for (let k = 0; k < w * h; k++)\n"
    "    differ += !shifts.some((dy) => shifts.some((dx) => near(k % w, Math.floor(k / w), dx, "
    "dy)));\n"
    "  return [differ, w * h];\n"
    "})()";

static void add_base64(tp_buf *out, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        unsigned v = (unsigned)p[i] << 16 | (have > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                     (have > 2 ? p[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            tp_buf_addc(out, k <= have ? digits[v >> (18 - 6 * k) & 63] : '=');
    }
}

static void write_base64(const char *path, const tp_buf *text)
{
    unsigned v = 0, bits = 0;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < text->len && text->data[i] != '='; i++) {
        unsigned char c = (unsigned char)text->data[i];
        v = v << 6 | (unsigned)(c >= 'a'   ? c - 'a' + 26
                                : c >= 'A' ? c - 'A'
                                : c >= '0' ? c - '0' + 52
                                : c == '+' ? 62
                                           : 63);
        if ((bits += 6) >= 8) {
            bits -= 8;
            fputc((int)(v >> bits & 255), f);
        }
    }
    assert_int_equal(fclose(f), 0);
}

/* "data:TYPE;base64,..." of the file. */
static void add_data_url(tp_buf *out, const char *type, const char *path)
{
    tp_buf bytes = {0};
    tp_error err = {0};
    if (tp_file_read(path, 0, &bytes, &err) != TP_OK)
        fail_msg("%s; KEEP_PAGES=1 makes it", err.message);
    tp_buf_addf(out, "data:%s;base64,", type);
    add_base64(out, (const unsigned char *)bytes.data, bytes.len);
    tp_buf_release(&bytes);
}

/* At `width` by `height`, 0: at their own sizes. */
static void differ(const char *one, const char *two, int width, int height, int *ret_differ,
                   int *ret_blocks)
{
    tp_buf text = {0};
    tp_buf_addf(&text, "{ const wide = %d, high = %d, one = \"%s\", two = \"%s\"; %s }", width,
                height, one, two, comparing);
    browser_turn_to(chromium, judge);
    const char *value = browser_value(chromium, text.data);
    if (sscanf(value, "[%d,%d]", ret_differ, ret_blocks) != 2)
        fail_msg("pictures cannot be compared: %s", value);
    tp_buf_release(&text);
}

static void kept_path(const char *name, char path[4096])
{
    snprintf(path, 4096, TP_SOURCE_DIR "/tests/data/pages/%s.webp", name);
}

/* What is seen now, held against tests/data/pages/NAME.webp. */
static void looks_like(const char *name)
{
    char path[4096], seen_at[4096];
    tp_buf png = {0}, seen = {0}, kept = {0};
    int n, blocks;
    browser_see(chromium, &png);
    kept_path(name, path);
    if (getenv("KEEP_PAGES")) {
        write_base64(path, &png);
    } else {
        tp_buf_addf(&seen, "data:image/webp;base64,%s", tp_buf_str(&png));
        add_data_url(&kept, "image/webp", path);
        differ(tp_buf_str(&seen), tp_buf_str(&kept), 0, 0, &n, &blocks);
        if (n < 0 || n * 2500 > blocks) {
            snprintf(seen_at, sizeof seen_at, "/tmp/temper-page-%s.webp", name);
            write_base64(seen_at, &png);
            print_error("%s: %d of %d blocks differ from %s; what is seen: %s\n", name, n, blocks,
                        path, seen_at);
            fail();
        }
    }
    tp_buf_release(&png);
    tp_buf_release(&seen);
    tp_buf_release(&kept);
}

static void all_runs_are_listed(void)
{
    go("/");
    browser_wait(chromium, "document.querySelectorAll('#rows tr[id]').length === 6");
}

static void pages_look_as_kept(void **state)
{
    NEED_BROWSER();
    char path[512], runs[256] = "";
    static const char *const compared[] = {"base-1",    "base-2",    "base-3",
                                           "warm-up-1", "warm-up-2", "warm-up-3"};
    static const char *const tabs[] = {"operators", "memory", "timeline", "samples",
                                       "alarms",    "report", "settings"};
    all_runs_are_listed();
    looks_like("list");
    go_run("base-1", "");
    looks_like("curves");
    for (int i = 0; i < 6; i++)
        snprintf(runs + strlen(runs), sizeof runs - strlen(runs), "&run=%s", id_of(compared[i]));
    snprintf(path, sizeof path, "/compare?x=step%s", runs);
    go(path);
    looks_like("compare");
    snprintf(path, sizeof path, "/compare?by=name%s", runs);
    go(path);
    looks_like("compare-bands");
    for (size_t i = 0; i < sizeof tabs / sizeof *tabs; i++) {
        snprintf(path, sizeof path, "/%s", tabs[i]);
        go_run("base-1", path);
        looks_like(tabs[i]);
    }
    browser_turn_to(chromium, page);
    assert_string_equal(browser_faults(chromium), "");
}

/* The dashboard, and the same as librsvg draws it. */
static void the_dashboard_looks_as_kept(void **state)
{
    NEED_BROWSER();
    tp_metrics *m;
    tp_analysis *a;
    tp_error err = {0};
    char kept[4096];
    tp_buf svg = {0}, png = {0}, golden = {0};
    int n, blocks;
    const char *const formats[] = {"svg", "png"};
    assert_int_equal(chdir(run_folder), 0); /* the title is the path */
    assert_int_equal(tp_metrics_open("base-1", NULL, &m, &err), TP_OK);
    assert_int_equal(tp_runs_analyze(&m, 1, NULL, &a, &err), TP_OK);
    const tp_report_options o = {
        .size = sizeof o, .folder = run_path("report"), .formats = formats, .n_formats = 2};
    char *folder, *note;
    if (tp_analysis_write_report(a, m, &o, &folder, &note, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_free(folder);
    tp_free(note);
    tp_analysis_free(a);
    tp_metrics_close(m);
    add_data_url(&svg, "image/svg+xml", run_path("report/dashboard.svg"));
    kept_path("dashboard", kept);
    if (getenv("KEEP_PAGES")) {
        tp_buf text = {0};
        tp_buf_addf(&text,
                    "(async () => { const i = new Image(); i.src = \"%s\"; await i.decode();"
                    "const c = document.createElement('canvas'); c.width = i.naturalWidth;"
                    "c.height = i.naturalHeight; c.getContext('2d').drawImage(i, 0, 0);"
                    "return c.toDataURL('image/webp', 0.6).split(',')[1]; })()",
                    svg.data);
        browser_turn_to(chromium, judge);
        const char *value = browser_value(chromium, text.data);
        tp_buf picture = {0};
        tp_buf_add(&picture, value + 1, strlen(value) - 2);
        write_base64(kept, &picture);
        tp_buf_release(&picture);
        tp_buf_release(&text);
        return;
    }
    add_data_url(&golden, "image/webp", kept);
    differ(svg.data, golden.data, 0, 0, &n, &blocks);
    if (n < 0 || n * 2500 > blocks)
        fail_msg("dashboard: %d of %d blocks differ from %s", n, blocks, kept);
    if (access(run_path("report/dashboard.png"), R_OK) == 0) { /* where there is librsvg */
        add_data_url(&png, "image/png", run_path("report/dashboard.png"));
        differ(png.data, golden.data, 1000, 500, &n, &blocks);
        if (n < 0 || n * 50 > blocks) /* another program draws letters in other places */
            fail_msg("dashboard.png: %d of %d blocks differ from %s", n, blocks, kept);
    }
    tp_buf_release(&svg);
    tp_buf_release(&png);
    tp_buf_release(&golden);
}

static void keys_work(void **state)
{
    NEED_BROWSER();
    all_runs_are_listed();
    browser_key(chromium, "/", "/");
    value_is("document.activeElement.id", "\"filter\"");
    for (const char *p = "warm"; *p; p++)
        browser_key(chromium, (char[]){*p, 0}, (char[]){*p, 0});
    browser_wait(chromium, "document.querySelectorAll('#rows tr[id]').length === 3");
    browser_key(chromium, "Escape", NULL);
    browser_key(chromium, "j", "j");
    browser_key(chromium, "x", "x");
    browser_key(chromium, "j", "j");
    browser_key(chromium, "x", "x");
    value_is("document.querySelectorAll('#rows input:checked').length", "2");
    browser_key(chromium, "c", "c");
    browser_wait(chromium, "location.pathname === '/compare' && document.readyState === 'complete'"
                           " && !!document.querySelector('figure svg')");
    value_is("new URLSearchParams(location.search).getAll('run').length", "2");
    browser_key(chromium, "u", "u");
    browser_wait(chromium, "location.pathname === '/' && document.readyState === 'complete'");
    browser_wait(chromium, "document.querySelectorAll('#rows tr[id]').length === 6");
    browser_key(chromium, "j", "j");
    browser_key(chromium, "Enter", NULL);
    browser_wait(chromium, "location.pathname.startsWith('/run/') && "
                           "document.readyState === 'complete'");
    assert_string_equal(browser_faults(chromium), "");
}

/* Two renewals at once, as when the list and the run change together: the later one stays. */
static void the_later_picture_stays(void **state)
{
    NEED_BROWSER();
    go_run("base-2", "");
    (void)browser_value(chromium, "{ const p = document.querySelector('figure [data-live]');"
                                  " renewPicture(p, 'earlier'); renewPicture(p, 'later'); }");
    browser_wait(chromium, "(document.querySelector('figure img')?.src ?? '').includes('v=later')");
    assert_string_equal(browser_faults(chromium), "");
}

static void a_run_that_is_written_moves(void **state)
{
    NEED_BROWSER();
    go_run("base-3", "");
    browser_wait(chromium, "document.querySelector('#summary').textContent.includes('step 200')");
    value_is("!!document.querySelector('figure svg')", "true");
    append_text("base-3/metrics.csv", "201,1700002201,7.5,1,,5000,1,1,1\n");
    browser_wait(chromium, "document.querySelector('#summary').textContent.includes('step 201')");
    /* The picture that came with the page is another one now. */
    browser_wait(chromium, "!document.querySelector('figure svg') && "
                           "document.querySelector('figure img').naturalWidth > 0");
    write_run("base-3", 2, -.04);
    assert_string_equal(browser_faults(chromium), "");
}

/* Two runs that get as long as each other, one after the other: both ends are drawn. */
static void compared_runs_that_are_written_move(void **state)
{
    NEED_BROWSER();
    char path[128];
    snprintf(path, sizeof path, "/compare?run=%s&run=%s", id_of("base-2"), id_of("base-3"));
    go(path);
    append_text("base-2/metrics.csv", "201,1700001201,7.5,1,,5000,1,1,1\n");
    browser_wait(chromium, "!!document.querySelector('figure img')?.src");
    (void)browser_value(chromium, "window.before = document.querySelector('figure img').src; 1");
    append_text("base-3/metrics.csv", "201,1700002201,7.5,1,,5000,1,1,1\n");
    browser_wait(chromium, "document.querySelector('figure img').src !== window.before");
    write_run("base-2", 1, .05);
    write_run("base-3", 2, -.04);
    assert_string_equal(browser_faults(chromium), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_look_as_kept),
        cmocka_unit_test(the_dashboard_looks_as_kept),
        cmocka_unit_test(keys_work),
        cmocka_unit_test(the_later_picture_stays),
        cmocka_unit_test(a_run_that_is_written_moves),
        cmocka_unit_test(compared_runs_that_are_written_move),
    };
    return cmocka_run_group_tests_name("pages", tests, begin_all, end_all);
}
