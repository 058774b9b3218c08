/* test_serve.c - pages of runs over real sockets: what is shown, what is refused, what is told. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cli/json_schema.h"
#include "instrument/store/run_index.h"
#include "run_files.h"
#include "temper/runs.h"
#include "temper/serve.h"

/* The clock of this process is ahead. */
static atomic_int ahead_s;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int failure = (int)syscall(SYS_clock_gettime, clock, ret);
    if (!failure && clock == CLOCK_MONOTONIC)
        ret->tv_sec += atomic_load(&ahead_s);
    return failure;
}

static tp_server *server;
static int port;
static char reply[4 << 20];

static int open_server(const char *token)
{
    tp_error err = {0};
    const tp_serve_options o = {.size = sizeof o,
                                .port = -1,
                                .without_index = true,
                                .token = token,
                                .priority = TP_SERVE_NORMAL};
    tp_status status = tp_server_start(run_folder, &o, &server, &err);
    if (status == TP_ERR_UNSUPPORTED) {
        server = NULL;
        return 0;
    }
    if (status != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sscanf(tp_server_url(server), "http://127.0.0.1:%d/", &port), 1);
    return 0;
}

static int begin(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    mkdir(run_path("first"), 0777);
    mkdir(run_path("second <b>"), 0777);
    write_text("first/metrics.csv", "step,loss,reward\n1,4,0\n2,2,0.5\n");
    write_text("second <b>/metrics.csv", "step,loss\n1,8\n2,6\n");
    mkdir(run_path("turned \u202e c"), 0777);
    write_text("turned \u202e c/metrics.csv", "step,loss\n1,8\n");
    mkdir(run_path("kinds"), 0777);
    write_text("kinds/metrics.csv",
               "step,wall_time,memory/allocated_bytes,memory/kind/weights_bytes,"
               "memory/kind/optimizer_bytes,memory/resident_bytes,memory/kind/a_bytes,"
               "memory/kind/b_bytes,memory/kind/c_bytes,memory/kind/d_bytes,memory/kind/e_bytes,"
               "memory/kind/f_bytes\n"
               "1,1700000000,300,100,200,900,9,8,7,6,5,4\n"
               "2,1700000001,350,100,250,950,9,8,7,6,5,4\n");
    mkdir(run_path("first/trace"), 0777);
    write_text(
        "first/trace/steps-1.json",
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
        "\"ts\":1,\"dur\":100}]}");
    write_text("secret", "outside");
    return open_server(NULL);
}

static int end(void **state)
{
    tp_server_stop(server);
    server = NULL;
    atomic_store(&ahead_s, 0);
    return remove_folder(state);
}

static int connect_to_server(void)
{
    const struct sockaddr_in a = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s >= 0);
    assert_int_equal(connect(s, (const struct sockaddr *)&a, sizeof a), 0);
    return s;
}

static void send_all(int s, const char *text, size_t n)
{
    while (n) {
        ssize_t sent = send(s, text, n, MSG_NOSIGNAL);
        if (sent < 0) /* refused in the middle */
            return;
        text += sent;
        n -= (size_t)sent;
    }
}

/* Everything until the server closes; the status, 0 where there is none. */
static int receive(int s)
{
    size_t n = 0;
    ssize_t got;
    int status = 0;
    while (n < sizeof reply - 1 && (got = recv(s, reply + n, sizeof reply - 1 - n, 0)) > 0)
        n += (size_t)got;
    reply[n] = 0;
    close(s);
    sscanf(reply, "HTTP/1.1 %d", &status);
    return status;
}

/* `lines` of the request besides its first; "%s" of none is the right Host. */
static int ask_with(const char *method, const char *path, const char *lines)
{
    char text[8192], host[64];
    snprintf(host, sizeof host, "Host: 127.0.0.1:%d\r\n", port);
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\n%sConnection: close\r\n\r\n", method,
                     path, lines ? lines : host);
    int s = connect_to_server();
    send_all(s, text, (size_t)n);
    return receive(s);
}

/* "/", with a body behind the lines. */
static int ask_and_send(const char *method, const char *lines, const char *body)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "%s / HTTP/1.1\r\n%sConnection: close\r\n\r\n%s", method,
                     lines, body);
    int s = connect_to_server();
    send_all(s, text, (size_t)n);
    return receive(s);
}

static int ask(const char *path) { return ask_with("GET", path, NULL); }

static bool says(const char *text) { return strstr(reply, text) != NULL; }

/* The list is filled by the first scan. */
static void wait_for_runs(void)
{
    while (ask("/api/runs") != 200 || !says("\"first\"") || !says("second"))
        usleep(20000); /* no verdict: it asks again */
}

static const char *id_of(const char *path)
{
    static char id[2][16];
    static int turn;
    tp_run_index *x;
    const tp_run_index_options o = {.size = sizeof o, .without_cache = true};
    turn = !turn;
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

static int ask_run(const char *path, const char *rest)
{
    char address[256];
    snprintf(address, sizeof address, "/run/%s%s", id_of(path), rest);
    return ask(address);
}

#define NEED_SERVER()                                             \
    do {                                                          \
        if (!server) {                                            \
            print_message("SKIP: built without libmicrohttpd\n"); \
            skip();                                               \
        }                                                         \
    } while (0)

static void pages_show_runs(void **state)
{
    NEED_SERVER();
    wait_for_runs();
    assert_int_equal(ask("/"), 200);
    assert_true(says("first/metrics.csv") || says(">first<"));
    assert_true(says("second &lt;b&gt;")); /* a name is text, never markup */
    assert_false(says("second <b>"));
    assert_true(says("Content-Security-Policy: default-src 'none'"));
    assert_true(says("turned \\u202e c")); /* nothing turns the text round */
    assert_int_equal(ask_run("turned \u202e c", ""), 200);
    assert_true(says("<title>turned \\u202e c - Temper</title>"));
    assert_false(says("\u202e"));
    assert_int_equal(ask_run("first", ""), 200);
    assert_true(says("&amp;tag=loss\""));
    assert_int_equal(ask_run("first", "/plot.svg?tag=loss"), 200);
    assert_true(says("image/svg+xml") && says("<svg"));
    assert_int_equal(ask_run("first", "/metrics.json"), 200);
    assert_true(says("\"loss\":[[1,null,4],[2,null,2]]"));
    const char *const tabs[] = {"/operators", "/memory", "/timeline", "/samples",
                                "/alarms",    "/report", "/settings", "/summary"};
    for (size_t i = 0; i < sizeof tabs / sizeof *tabs; i++)
        assert_int_equal(ask_run("first", tabs[i]), 200);
    /* A stretch outside of the trace is one at its edge. */
    assert_int_equal(ask_run("first", "/timeline?to=-9223372036854775808"), 200);
    assert_true(says("data-from=1000 data-to=1100 "));
    assert_int_equal(ask_run("first", "/timeline?from=9223372036854775807"), 200);
    assert_true(says("data-from=100900 data-to=101000 "));
    char address[256];
    snprintf(address, sizeof address, "/compare?run=%s&run=%s", id_of("first"),
             id_of("second <b>"));
    assert_int_equal(ask(address), 200);
    assert_true(says("compare.svg"));
    assert_int_equal(ask("/rows?filter=second"), 200);
    assert_false(says(">first<"));
    assert_int_equal(ask("/metrics"), 200);
    assert_true(says("temper_run_loss{run=\"first\",format=\"csv\"} 2\n"));
    assert_int_equal(ask("/assets/app.js"), 200);
    assert_true(says("EventSource"));
}

/* The body of the last reply, held against docs/formats/schema/NAME.json. */
static void is_as_the_schema_says(const char *name)
{
    char path[4096];
    tp_buf text = {0};
    tp_arena arena = {0};
    const tp_json *schema, *value;
    tp_error err = {0};
    const char *body = strstr(reply, "\r\n\r\n");
    assert_non_null(body);
    snprintf(path, sizeof path, TP_SOURCE_DIR "/docs/formats/schema/%s.json", name);
    assert_int_equal(tp_file_read(path, 0, &text, &err), TP_OK);
    assert_int_equal(tp_arena_init(&arena, 64 << 20, &err), TP_OK);
    assert_int_equal(tp_json_parse(&arena, path, text.data, text.len, NULL, &schema, &err), TP_OK);
    if (tp_json_parse(&arena, name, body + 4, strlen(body + 4), NULL, &value, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(json_schema_faults(schema, value), 0);
    tp_arena_release(&arena);
    tp_buf_release(&text);
}

static void data_has_the_shape_of_its_schema(void **state)
{
    NEED_SERVER();
    write_text("second <b>/metrics.csv", "step,loss,ü/x\n1,NaN,1e300\n2,-inf,\n,6,7\n");
    write_text("first/metrics.jsonl", "{\"v\": 0, \"lo");
    wait_for_runs();
    assert_int_equal(ask("/api/runs"), 200);
    is_as_the_schema_says("runs");
    assert_int_equal(ask("/api/runs?filter=none"), 200);
    is_as_the_schema_says("runs");
    assert_int_equal(ask("/api/runs?filter=kind:run"), 200);
    assert_true(says("\"first\""));
    assert_int_equal(ask("/api/runs?filter=first%20kind:trace"), 400); /* it lists none */
    assert_true(says("the server lists runs alone"));
    assert_int_equal(ask("/rows?filter=kind:trace"), 200);
    assert_true(says("the server lists runs alone"));
    assert_int_equal(ask_run("second <b>", "/metrics.json"), 200);
    is_as_the_schema_says("metrics");
    assert_int_equal(ask_run("kinds", "/metrics.json?tag=memory%2Fallocated_bytes"), 200);
    is_as_the_schema_says("metrics");
}

/* Freed memory is overwritten: what still points there shows. */
static void a_copy_of_the_index_stands_by_itself(void **state)
{
    (void)state;
    enum { RUNS = 70 };
    tp_run_index *x;
    const tp_run_index_options o = {.size = sizeof o, .without_cache = true};
    for (int i = 0; i < RUNS; i++) {
        char name[64];
        snprintf(name, sizeof name, "many-%d", i);
        mkdir(run_path(name), 0777);
        snprintf(name, sizeof name, "many-%d/metrics.csv", i);
        write_text(name, "step,loss\n1,4\n");
    }
    assert_int_equal(tp_run_index_open(run_folder, &o, &x, NULL), TP_OK);
    assert_int_equal(tp_run_index_scan(x, NULL, NULL), TP_OK);
    mallopt(M_PERTURB, 0x5a);
    tp_run_index *copy = tp_run_index_copy(x);
    mallopt(M_PERTURB, 0);
    assert_true(tp_run_index_count(copy) >= RUNS);
    for (size_t i = 0; i < tp_run_index_count(copy); i++) {
        const tp_run_entry *e = tp_run_index_entry(copy, i);
        assert_string_equal(e->id, tp_run_index_entry(x, i)->id);
        assert_ptr_equal(tp_run_index_find(copy, e->id), e);
    }
    tp_run_index_close(x);
    for (size_t i = 0; i < tp_run_index_count(copy); i++)
        assert_int_equal(strlen(tp_run_index_entry(copy, i)->id), 12);
    tp_run_index_close(copy);
}

/* The last step that an event file can have. */
static void the_largest_step_is_one(void **state)
{
    (void)state;
    static const char event[] = "\x10\xff\xff\xff\xff\xff\xff\xff\xff\x7f" /* step 2^63 - 1 */
                                "\x2a\x0a\x0a\x08\x0a\x01l\x15\0\0\0\x40"; /* l: 2 */
    tp_buf events = {0};
    tp_run_index *x;
    const tp_run_index_options o = {.size = sizeof o, .without_cache = true};
    add_version(&events);
    add_scalar(&events, "l", 2, 4);
    add_record(&events, event, sizeof event - 1);
    write_bytes("events.out.tfevents.1", "w", events.data, events.len);
    assert_int_equal(tp_run_index_open(run_folder, &o, &x, NULL), TP_OK);
    assert_int_equal(tp_run_index_scan(x, NULL, NULL), TP_OK);
    assert_int_equal(tp_run_index_count(x), 1);
    assert_true(tp_run_index_entry(x, 0)->step == INT64_MAX);
    tp_run_index_close(x);
    tp_buf_release(&events);
}

/* Six runs, two groups of seeds: each by itself, then the mean of a group in its band. */
static void repetitions_are_drawn_as_bands(void **state)
{
    NEED_SERVER();
    char runs[256] = "", path[512];
    static const char *const names[] = {"seed-1", "seed-2", "seed-3", "other 7", "other 8"};
    for (int i = 0; i < 5; i++) {
        char name[64], text[256];
        mkdir(run_path(names[i]), 0777);
        snprintf(name, sizeof name, "%s/metrics.csv", names[i]);
        snprintf(text, sizeof text, "step,loss,num_tokens\n1,%d,100\n2,%d,200\n3,%d,300\n", 4 + i,
                 3 + i, 2 + i);
        write_text(name, text);
        snprintf(runs + strlen(runs), sizeof runs - strlen(runs), "&run=%s", id_of(names[i]));
    }
    while (ask("/api/runs") != 200 || !says("other 8"))
        usleep(20000); /* no verdict: it asks again */
    snprintf(path, sizeof path, "/compare?x=step%s", runs);
    assert_int_equal(ask(path), 200);
    assert_true(says("as one</a>") && !says("shaded:"));
    snprintf(path, sizeof path, "/compare?by=name%s", runs);
    assert_int_equal(ask(path), 200);
    assert_true(says("seed-*: 3 runs") && says("other *: 2 runs") && says("n: runs"));
    assert_true(says("shaded: 95 % interval of the mean over runs, t")); /* the first picture */
    snprintf(path, sizeof path, "/compare.svg?tag=loss&x=tokens&by=name%s", runs);
    assert_int_equal(ask(path), 200);
    assert_true(says("seed-*, mean of 3 runs") && says("class=\"band\"") && says(">tokens<"));
    /* A seed is what repeats a run, and not the learning rate behind it. */
    static const char *const tries[] = {"seed1-lr0.1", "seed2-lr0.1", "seed1-lr0.2", "lr0.1",
                                        "lr0.2"};
    char tried[256] = "";
    for (int i = 0; i < 5; i++) {
        char name[64];
        mkdir(run_path(tries[i]), 0777);
        snprintf(name, sizeof name, "%s/metrics.csv", tries[i]);
        write_text(name, "step,loss\n1,4\n2,3\n");
        snprintf(tried + strlen(tried), sizeof tried - strlen(tried), "&run=%s", id_of(tries[i]));
    }
    while (ask("/api/runs") != 200 || !says("\"lr0.2\""))
        usleep(20000); /* no verdict: it asks again */
    snprintf(path, sizeof path, "/compare?by=name%s", tried);
    assert_int_equal(ask(path), 200);
    assert_true(says("seed*-lr0.1: 2 runs") && says("seed1-lr0.2") && !says("lr0.*"));
    /* What one run of a group lacks is not drawn for it, which is said. */
    write_text("other 8/metrics.csv", "step,num_tokens\n1,100\n");
    snprintf(path, sizeof path, "/compare.svg?tag=loss&by=name%s", runs);
    do /* until the server has seen it; no verdict */
        assert_int_equal(ask(path), 200);
    while (!says("1 of 2 not drawn"));
}

static bool wait_for_event(int s, const char *word)
{
    char text[65536];
    size_t n = 0;
    for (;;) {
        struct pollfd p = {s, POLLIN, 0};
        if (poll(&p, 1, -1) <= 0)
            return false;
        ssize_t got = recv(s, text + n, sizeof text - 1 - n, 0);
        if (got <= 0)
            return false;
        n += (size_t)got;
        text[n] = 0;
        if (strstr(text, word))
            return true;
    }
}

/* What two runs of three have, whichever come first; where nothing can be drawn, why. */
static void compared_runs_show_what_any_two_have(void **state)
{
    NEED_SERVER();
    char runs[128], path[256];
    write_text("second <b>/metrics.csv", "step,loss,only/a\n1,NaN,1\n2,6,1\n");
    write_text("turned \u202e c/metrics.csv", "step,loss,reward\n1,8,1\n2,7,2\n");
    wait_for_runs();
    snprintf(runs, sizeof runs, "run=%s&run=%s", id_of("second <b>"), id_of("first"));
    snprintf(runs + strlen(runs), sizeof runs - strlen(runs), "&run=%s", id_of("turned \u202e c"));
    snprintf(path, sizeof path, "/compare?%s", runs);
    assert_int_equal(ask(path), 200);
    assert_true(says("<figure data-tag=\"reward\""));
    assert_false(says("<figure data-tag=\"only/a\""));
    assert_true(says("Not in all of their runs, so not compared: reward, only/a\n"));
    snprintf(path, sizeof path, "/compare.svg?tag=loss&x=tokens&%s", runs);
    assert_int_equal(ask(path), 200);
    assert_true(says("no run tells its tokens"));
    snprintf(path, sizeof path, "/compare.svg?tag=none&%s", runs);
    assert_int_equal(ask(path), 404);
    /* Both notes of one picture. */
    snprintf(path, sizeof path, "/compare.svg?tag=loss&%s&run=%s", runs, id_of("kinds"));
    assert_int_equal(ask(path), 200);
    assert_true(says("NaN and infinite values are left out") && says("1 of 4 not drawn"));
}

/* The text from `begin` to `end` of the last reply, both left out: 63 bytes at most. */
static void cut(const char *begin, const char *end, char *out)
{
    const char *at = strstr(reply, begin);
    assert_non_null(at);
    at += strlen(begin);
    snprintf(out, 64, "%.*s", (int)strcspn(at, end), at);
    assert_true(out[0]);
}

/* A picture is kept under the version of what was read alone: not by its number of points, which
 * other contents have as well, nor beyond the server, whose port another one may get. */
static void pictures_are_kept_by_version(void **state)
{
    NEED_SERVER();
    char first[64], second[64], third[64], path[128], text[256];
    wait_for_runs();
    assert_int_equal(ask_run("first", ""), 200);
    cut("app.js?v=", "\"", text);
    assert_int_equal(strlen(text), 32); /* a hash: another build has another script */
    cut("plot.svg?x=step&amp;v=", "&", first);
    assert_int_equal(ask_run("first", "/plot.svg?x=step&tag=loss&v=2"), 200);
    assert_true(says("Cache-Control: no-store"));
    snprintf(path, sizeof path, "/plot.svg?x=step&tag=loss&v=%s", first);
    assert_int_equal(ask_run("first", path), 200);
    assert_true(says("Cache-Control: private, max-age"));
    int s = connect_to_server();
    int n = snprintf(text, sizeof text, "GET /events HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", port);
    send_all(s, text, (size_t)n);
    assert_true(wait_for_event(s, "text/event-stream"));
    write_text("other.csv", "step,loss,reward\n1,4,0\n2,9,0.5\n"); /* as many points */
    snprintf(text, sizeof text, "%s", run_path("other.csv"));
    assert_int_equal(rename(text, run_path("first/metrics.csv")), 0);
    assert_true(wait_for_event(s, "\"version\":\""));
    close(s);
    assert_int_equal(ask_run("first", "?again"), 200);
    cut("plot.svg?x=step&amp;v=", "&", second);
    assert_string_not_equal(first, second);
    tp_server_stop(server);
    open_server(NULL);
    wait_for_runs();
    assert_int_equal(ask_run("first", ""), 200);
    cut("plot.svg?x=step&amp;v=", "&", third);
    assert_string_not_equal(first, third);
    assert_string_not_equal(second, third);
}

/* The first lines of large files, steps by number, what a cell holds whatever it is. */
static void samples_are_shown_as_they_are(void **state)
{
    NEED_SERVER();
    static const int steps[] = {1, 2, 10, 100};
    tp_buf text = {0};
    wait_for_runs();
    mkdir(run_path("first/samples"), 0777);
    for (size_t i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "first/samples/step-%d.jsonl", steps[i]);
        write_text(name, "{\"prompt\":\"a\",\"ids\":[1,{\"b\":null}],\"none\":null}\n");
    }
    assert_int_equal(ask_run("first", "/samples"), 200);
    assert_true(says("<option>1<option>2<option>10<option selected>100"));
    assert_true(says("[1,{&quot;b&quot;:null}]"));
    for (int i = 0; text.len < 9 << 20; i++)
        tp_buf_addf(&text, "{\"prompt\":\"%d\",\"answer\":\"%0100000d\"}\n", i, 0);
    write_bytes("first/samples/step-200.jsonl", "w", text.data, text.len);
    assert_int_equal(ask_run("first", "/samples?step=200"), 200);
    assert_true(says(">0<td") && says(">30<td"));
    memset(text.data, ' ', text.len);
    write_bytes("first/samples/step-300.jsonl", "w", text.data, text.len);
    assert_int_equal(ask_run("first", "/samples?step=300"), 200);
    assert_true(says("its first line has more than 8 MiB"));
    tp_buf_release(&text);
}

/* Kinds of memory over time in one picture, the whole and then the largest first. */
static void memory_is_shown_by_kind(void **state)
{
    NEED_SERVER();
    wait_for_runs();
    assert_int_equal(ask_run("kinds", "/memory"), 200);
    assert_true(says("/memory.svg?x=time&amp;tag=memory%2Fkind%2F"));
    assert_true(says("tag=memory%2Fresident_bytes"));
    assert_false(says("plot.svg?x=time&amp;tag=memory%2Fkind%2Fweights_bytes"));
    assert_int_equal(ask_run("kinds", "/memory.svg?x=time"), 200);
    assert_true(says("memory by kind") && says("time / s") && says("bytes"));
    const char *all = strstr(reply, ">all<"), *large = strstr(reply, ">optimizer<"),
               *small = strstr(reply, ">weights<");
    assert_true(all && large && small && all < large && large < small);
    assert_true(says(">e<") && says("not drawn, the smallest: f<"));
    assert_int_equal(ask_run("first", "/memory.svg?x=time"), 404);
}

static void nothing_else_is_there(void **state)
{
    NEED_SERVER();
    wait_for_runs();
    const char *const paths[] = {"/nothing",          "/run/000000000000",     "/run/../secret",
                                 "/assets/../secret", "/assets/%2e%2e/secret", "//etc/passwd",
                                 "/run/%00",          "/compare.svg",          "/run/"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(ask(paths[i]), 404);
        assert_false(says("outside"));
    }
    assert_int_equal(ask("/compare"), 400);
    /* A link out of the folder is not followed. */
    assert_int_equal(symlink("/etc", run_path("first/samples")), 0);
    assert_int_equal(ask_run("first", "/samples"), 200);
    assert_true(says("kept no samples"));
}

static void leads(const char *to, const char *from)
{
    assert_int_equal(symlink(to, run_path(from)), 0);
}

/* Whatever a run's files are called: those that links lead to elsewhere are not there. */
static void links_out_of_the_folder_lead_nowhere(void **state)
{
    NEED_SERVER();
    char outside[] = "/tmp/temper-test-outside-XXXXXX", path[128], served[64];
    assert_non_null(mkdtemp(outside));
    memcpy(served, run_folder, sizeof served);
    memcpy(run_folder, outside, sizeof outside);
    write_text("a.csv", "step,smuggled\n1,5\n");
    write_text("config.yaml", "smuggled: outside\n");
    write_text("run.json", "{\"algorithm\": \"smuggled\"}");
    write_text("trainer_state.json", "{\"log_history\": [{\"smuggled\": 5, \"step\": 1}]}");
    mkdir(run_path("events"), 0777);
    write_text("events/events.out.tfevents.1", "");
    memcpy(run_folder, served, sizeof served);

    mkdir(run_path("own"), 0777);
    write_text("own/metrics.jsonl", "{\"v\":1,\"t\":1,\"run\":\"r\",\"attempt\":1,\"step\":1,"
                                    "\"axis\":\"train\",\"m\":{\"loss\":8}}\n");
    snprintf(path, sizeof path, "%s/config.yaml", outside);
    leads(path, "own/config.yaml");
    snprintf(path, sizeof path, "%s/run.json", outside);
    leads(path, "own/run.json");
    mkdir(run_path("table"), 0777);
    snprintf(path, sizeof path, "%s/a.csv", outside);
    leads(path, "table/metrics.csv");
    mkdir(run_path("nemo"), 0777);
    snprintf(path, sizeof path, "%s/events", outside);
    leads(path, "nemo/tensorboard");
    mkdir(run_path("trainer"), 0777);
    leads(outside, "trainer/checkpoint-5");
    mkdir(run_path("within"), 0777);
    leads("../first/metrics.csv", "within/metrics.csv");
    while (ask("/api/runs") != 200 || !says("\"within\"") || !says("\"own\""))
        usleep(20000); /* no verdict: it asks again */
    assert_false(says("smuggled") || says("\"table\"") || says("\"nemo\"") || says("\"trainer\""));
    assert_int_equal(ask_run("own", "/settings"), 200);
    assert_false(says("smuggled") || says("outside"));
    assert_int_equal(ask_run("within", "/metrics.json"), 200);
    assert_true(says("\"loss\":[[1,null,4]"));
    /* A file that becomes a link while it is read. */
    assert_int_equal(unlink(run_path("within/metrics.csv")), 0);
    snprintf(path, sizeof path, "%s/a.csv", outside);
    leads(path, "within/metrics.csv");
    do {
        assert_true(ask("/api/runs") == 200 && !says("smuggled"));
        usleep(20000); /* no verdict: until the server has seen it */
    } while (says("\"within\""));
    assert_int_equal(tp_dir_remove(outside, NULL), TP_OK);
}

static void strangers_are_refused(void **state)
{
    NEED_SERVER();
    char lines[256];
    assert_int_equal(ask_with("POST", "/", NULL), 405);
    assert_int_equal(ask_with("DELETE", "/", NULL), 405);
    /* One that brings a body, or waits to be told that it may, too. */
    snprintf(lines, sizeof lines, "Host: localhost:%d\r\nContent-Length: 5\r\n", port);
    assert_int_equal(ask_and_send("POST", lines, "a=b&c"), 405);
    snprintf(lines, sizeof lines,
             "Host: localhost:%d\r\nContent-Length: 5\r\nExpect: 100-continue\r\n", port);
    assert_int_equal(ask_and_send("POST", lines, ""), 405);
    snprintf(lines, sizeof lines, "Host: localhost:%d\r\nContent-Length: 5\r\n", port);
    assert_int_equal(ask_and_send("GET", lines, "a=b&c"), 200);
    assert_int_equal(ask_with("GET", "/", "Host: evil.example\r\n"), 403);
    snprintf(lines, sizeof lines, "Host: evil.example:%d\r\n", port);
    assert_int_equal(ask_with("GET", "/", lines), 403);
    snprintf(lines, sizeof lines, "Host: 127.0.0.1.evil.example:%d\r\n", port);
    assert_int_equal(ask_with("GET", "/", lines), 403);
    assert_int_equal(ask_with("GET", "/", "Host: 127.0.0.1:1\r\n"), 403);
    snprintf(lines, sizeof lines, "Host: 127.0.0.1:%d\r\nHost: evil.example:%d\r\n", port, port);
    assert_int_equal(ask_with("GET", "/", lines), 403);
    snprintf(lines, sizeof lines, "Host: 127.0.0.1:%d\r\nOrigin: http://evil.example\r\n", port);
    assert_int_equal(ask_with("GET", "/", lines), 403);
    snprintf(lines, sizeof lines, "Host: 127.0.0.1:%d\r\nOrigin: null\r\n", port);
    assert_int_equal(ask_with("GET", "/", lines), 403);
    snprintf(lines, sizeof lines, "Host: localhost:%d\r\nOrigin: http://localhost:%d\r\n", port,
             port);
    assert_int_equal(ask_with("GET", "/", lines), 200);
    int status = ask_with("GET", "/", ""); /* no Host at all */
    assert_true(status == 400 || status == 403);
}

static void what_is_too_much_is_refused(void **state)
{
    NEED_SERVER();
    enum { MANY = 10 << 20, CLIENTS = 200 };
    char *big = malloc(MANY);
    assert_non_null(big);
    memset(big, 'a', MANY);
    memcpy(big, "GET / HTTP/1.1\r\nX: ", 19);
    int s = connect_to_server();
    send_all(s, big, MANY);
    shutdown(s, SHUT_WR);
    int status = receive(s);
    assert_true(status == 0 || status == 431 || status == 400 || status == 413);
    free(big);

    /* More names than the memory of a connection holds. */
    char address[6000] = "/?", *end = address + 2;
    for (int i = 0; i < 1000; i++)
        end += sprintf(end, "a=%d&", i % 10);
    status = ask(address);
    assert_int_equal(status, 414);

    /* Half requests and slow clients are in nobody's way. */
    int open[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        open[i] = connect_to_server();
        send_all(open[i], "GET / HT", 8);
    }
    assert_int_equal(ask("/metrics"), 200);
    for (int i = 0; i < CLIENTS; i++)
        close(open[i]);
    assert_int_equal(ask("/metrics"), 200);
}

static void a_run_that_grows_is_told(void **state)
{
    NEED_SERVER();
    char text[256], word[64];
    wait_for_runs();
    assert_int_equal(ask_run("first", ""), 200); /* somebody looks at it */
    int s = connect_to_server();
    int n = snprintf(text, sizeof text, "GET /events HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", port);
    send_all(s, text, (size_t)n);
    assert_true(wait_for_event(s, "text/event-stream"));
    append_text("first/metrics.csv", "3,1.25,0.75\n");
    snprintf(word, sizeof word, "\"run\":\"%s\"", id_of("first"));
    assert_true(wait_for_event(s, word));
    close(s);
    assert_int_equal(ask_run("first", "/summary"), 200); /* not that of the last scan */
    assert_true(says("step 3, loss 1.25"));
    assert_int_equal(ask_run("first", "/metrics.json"), 200);
    assert_true(says("[3,null,1.25]"));
}

/* Ten minutes without a page, and the watcher sleeps. */
static void who_asks_late_gets_what_is_new(void **state)
{
    NEED_SERVER();
    char address[64];
    wait_for_runs();
    snprintf(address, sizeof address, "/run/%s/metrics.json", id_of("first"));
    assert_int_equal(ask(address), 200);
    append_text("first/metrics.csv", "3,1.25,0.75\n");
    atomic_fetch_add(&ahead_s, 600);
    assert_int_equal(ask("/metrics"), 200);
    assert_true(says("temper_run_step{run=\"first\",format=\"csv\"} 3\n"));
    append_text("first/metrics.csv", "4,1,0.75\n");
    atomic_fetch_add(&ahead_s, 600);
    assert_int_equal(ask("/metrics"), 200);
    assert_true(says("temper_run_step{run=\"first\",format=\"csv\"} 4\n"));
    assert_int_equal(ask(address), 200);
    assert_true(says("[4,null,1]"));
}

static void a_token_is_asked_for(void **state)
{
    NEED_SERVER();
    const char *const token = "0123456789abcdefABCDEF";
    char lines[256], path[128];
    tp_server_stop(server);
    open_server(token);
    assert_true(strstr(tp_server_url(server), token) != NULL);
    assert_int_equal(ask("/"), 401);
    assert_int_equal(ask("/metrics"), 401);
    assert_int_equal(ask("/events"), 401);
    assert_int_equal(ask("/?token=0123456789abcdefABCDEG"), 401);
    snprintf(path, sizeof path, "/?token=%s", token);
    assert_int_equal(ask(path), 303);
    assert_true(says("HttpOnly; SameSite=Strict"));
    snprintf(path, sizeof path, "//evil.example?token=%s", token);
    assert_int_equal(ask(path), 303);
    assert_true(says("Location: /\r\n"));
    /* A cookie is its host's, on every port: that of another server is not in the way. */
    snprintf(lines, sizeof lines,
             "Host: localhost:%d\r\nCookie: temper_token_%d=%s; temper_token_1=other\r\n", port,
             port, token);
    assert_int_equal(ask_with("GET", "/", lines), 200);
    snprintf(lines, sizeof lines, "Host: localhost:%d\r\nCookie: temper_token_1=%s\r\n", port,
             token);
    assert_int_equal(ask_with("GET", "/", lines), 401);
    snprintf(lines, sizeof lines, "Host: localhost:%d\r\nAuthorization: Bearer %s\r\n", port,
             token);
    assert_int_equal(ask_with("GET", "/metrics", lines), 200);
    snprintf(lines, sizeof lines, "Host: localhost:%d\r\nAuthorization: bearer %s\r\n", port,
             token); /* the case of a scheme says nothing (RFC 9110) */
    assert_int_equal(ask_with("GET", "/metrics", lines), 200);
}

static void a_head_has_no_body(void **state)
{
    NEED_SERVER();
    static const char *const paths[] = {"/metrics", "/events", "/nothing"};
    wait_for_runs();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_true(ask_with("HEAD", paths[i], NULL) >= 200);
        const char *end = strstr(reply, "\r\n\r\n");
        assert_non_null(end);
        assert_string_equal(end, "\r\n\r\n");
        assert_int_equal(says("Content-Type: text/event-stream"), i == 1);
    }
}

/* Threads of this process that are scheduled so. */
static int count_threads(int policy, int niceness)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        int id = atoi(e->d_name);
        n += id && sched_getscheduler(id) == policy &&
             getpriority(PRIO_PROCESS, (id_t)id) == niceness;
    }
    closedir(dir);
    return n;
}

/* Those that answer, read and beat; nobody else's. */
static void its_threads_give_way(void **state)
{
    NEED_SERVER();
    static const struct {
        tp_serve_priority priority;
        int low, idle;
    } cases[] = {{TP_SERVE_LOW, 3, 0}, {TP_SERVE_IDLE, 0, 3}, {TP_SERVE_NORMAL, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_server *other = NULL;
        const tp_serve_options o = {
            .size = sizeof o, .port = -1, .without_index = true, .priority = cases[i].priority};
        assert_int_equal(tp_server_start(run_folder, &o, &other, NULL), TP_OK);
        assert_int_equal(count_threads(SCHED_OTHER, 19), cases[i].low);
        assert_int_equal(count_threads(SCHED_IDLE, 19), cases[i].idle);
        tp_server_stop(other);
        assert_int_equal(count_threads(SCHED_OTHER, 19) + count_threads(SCHED_IDLE, 19), 0);
    }
}

/* The same answer for all who ask within a moment, a new one once something new was told. */
static void many_who_ask_get_one_answer(void **state)
{
    NEED_SERVER();
    char text[256], word[64];
    wait_for_runs();
    assert_int_equal(ask_run("first", "/metrics.json?tag=loss"), 200);
    int s = connect_to_server();
    int n = snprintf(text, sizeof text, "GET /events HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", port);
    send_all(s, text, (size_t)n);
    assert_true(wait_for_event(s, "text/event-stream"));
    snprintf(word, sizeof word, "\"run\":\"%s\"", id_of("first"));
    for (int step = 3; step < 6; step++) {
        char row[32], point[32];
        snprintf(row, sizeof row, "%d,%d,0\n", step, step + 10);
        snprintf(point, sizeof point, "[%d,null,%d]", step, step + 10);
        append_text("first/metrics.csv", row);
        assert_true(wait_for_event(s, word));
        for (int again = 0; again < 3; again++) {
            assert_int_equal(ask_run("first", "/metrics.json?tag=loss"), 200);
            assert_true(says(point));
        }
        assert_int_equal(ask_run("first", "/metrics.json?tag=reward"), 200); /* another address */
        assert_false(says(point));
        assert_int_equal(ask_run("second <b>", "/metrics.json?tag=loss"), 200);
        assert_false(says(point));
    }
    close(s);
}

static void options_are_checked(void **state)
{
    NEED_SERVER();
    tp_error err = {0};
    tp_server *other = NULL;
    tp_serve_options o = {.size = sizeof o, .port = port, .without_index = true};
    assert_int_equal(tp_server_start(run_folder, &o, &other, &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "another program has it"));
    o.port = 65536;
    assert_int_equal(tp_server_start(run_folder, &o, &other, &err), TP_ERR_ARG);
    o = (tp_serve_options){.size = sizeof o, .port = -1, .token = "short"};
    assert_int_equal(tp_server_start(run_folder, &o, &other, &err), TP_ERR_ARG);
    o = (tp_serve_options){.size = sizeof o, .port = -1, .address = "nowhere"};
    assert_int_equal(tp_server_start(run_folder, &o, &other, &err), TP_ERR_ARG);
    assert_int_equal(tp_server_start("/nowhere", NULL, &other, &err), TP_ERR_IO);
    assert_null(other);
    o = (tp_serve_options){
        .size = sizeof o, .port = -1, .address = "0.0.0.0", .without_index = true};
    assert_int_equal(tp_server_start(run_folder, &o, &other, &err), TP_OK);
    assert_non_null(strstr(tp_server_url(other), "?token=")); /* drawn */
    tp_server_stop(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pages_show_runs, begin, end),
        cmocka_unit_test_setup_teardown(data_has_the_shape_of_its_schema, begin, end),
        cmocka_unit_test_setup_teardown(repetitions_are_drawn_as_bands, begin, end),
        cmocka_unit_test_setup_teardown(a_copy_of_the_index_stands_by_itself, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(the_largest_step_is_one, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(compared_runs_show_what_any_two_have, begin, end),
        cmocka_unit_test_setup_teardown(pictures_are_kept_by_version, begin, end),
        cmocka_unit_test_setup_teardown(samples_are_shown_as_they_are, begin, end),
        cmocka_unit_test_setup_teardown(memory_is_shown_by_kind, begin, end),
        cmocka_unit_test_setup_teardown(nothing_else_is_there, begin, end),
        cmocka_unit_test_setup_teardown(links_out_of_the_folder_lead_nowhere, begin, end),
        cmocka_unit_test_setup_teardown(strangers_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(what_is_too_much_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_run_that_grows_is_told, begin, end),
        cmocka_unit_test_setup_teardown(who_asks_late_gets_what_is_new, begin, end),
        cmocka_unit_test_setup_teardown(a_token_is_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(a_head_has_no_body, begin, end),
        cmocka_unit_test_setup_teardown(its_threads_give_way, begin, end),
        cmocka_unit_test_setup_teardown(many_who_ask_get_one_answer, begin, end),
        cmocka_unit_test_setup_teardown(options_are_checked, begin, end),
    };
    return cmocka_run_group_tests_name("serve", tests, NULL, NULL);
}
