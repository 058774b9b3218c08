/* browser.c - messages of the DevTools protocol: JSON, each ended by a zero byte. */
#include "browser/browser.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/vec.h"
#include "text/json/json.h"

enum { PAGES = 8, MOST_BYTES = 256 << 20 };

struct browser {
    pid_t pid;
    int to, from;
    long long last; /* call */
    char sessions[PAGES][64];
    int n_pages, page; /* page: -1 before the first */
    tp_buf in;         /* what was read; messages begin at `at` */
    size_t at;
    tp_arena arena; /* of the last answer */
    tp_buf value, faults;
};

static bool is_installed(const char *name)
{
    char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin"), *rest = NULL;
    bool found = false;
    for (char *folder = strtok_r(path, ":", &rest); folder && !found;
         folder = strtok_r(NULL, ":", &rest)) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", folder, name);
        found = access(file, X_OK) == 0;
    }
    free(path);
    return found;
}

/* The next message without its zero; NULL: the browser is gone. */
static char *read_message(browser *b)
{
    for (size_t seen = b->at;;) {
        char *begin = b->in.data + b->at;
        char *end = b->in.len > seen ? memchr(b->in.data + seen, 0, b->in.len - seen) : NULL;
        if (end) {
            b->at = (size_t)(end - b->in.data) + 1;
            return begin;
        }
        seen = b->in.len;
        if (b->at == b->in.len) {
            tp_buf_clear(&b->in);
            b->at = seen = 0;
        }
        char piece[65536];
        ssize_t n = read(b->from, piece, sizeof piece);
        if (n <= 0)
            return NULL;
        tp_buf_add(&b->in, piece, (size_t)n);
    }
}

static bool send_all(browser *b, const char *text, size_t n)
{
    while (n) {
        ssize_t sent = write(b->to, text, n);
        if (sent <= 0)
            return false;
        text += sent;
        n -= (size_t)sent;
    }
    return true;
}

static void note_fault(browser *b, const tp_json *message)
{
    const char *method = tp_json_str(tp_json_get(message, "method"));
    const tp_json *params = tp_json_get(message, "params"), *entry = tp_json_get(params, "entry");
    const char *level = tp_json_str(tp_json_get(entry, "level"));
    if (method && strcmp(method, "Runtime.exceptionThrown") == 0) {
        const tp_json *details = tp_json_get(params, "exceptionDetails");
        const char *text =
            tp_json_str(tp_json_get(tp_json_get(details, "exception"), "description"));
        tp_buf_addf(&b->faults, "exception: %s\n", text ? text : "?");
    } else if (level && strcmp(level, "error") == 0) {
        const char *text = tp_json_str(tp_json_get(entry, "text")),
                   *url = tp_json_str(tp_json_get(entry, "url"));
        tp_buf_addf(&b->faults, "%s (%s)\n", text ? text : "?", url ? url : "");
    }
}

/* The result of a call, which belongs to the browser until the next; NULL: it is gone.  `params` is
 * JSON. */
static const tp_json *call(browser *b, const char *method, const char *params)
{
    tp_buf text = {0};
    const char *session = b->page >= 0 ? b->sessions[b->page] : "";
    tp_buf_addf(&text, "{\"id\":%lld,\"method\":\"%s\",\"params\":%s%s%s%s}", ++b->last, method,
                params ? params : "{}", *session ? ",\"sessionId\":\"" : "", session,
                *session ? "\"" : "");
    bool is_sent = send_all(b, text.data, text.len + 1);
    tp_buf_release(&text);
    while (is_sent) {
        const tp_json *root = NULL;
        int64_t id = 0;
        char *message = read_message(b);
        if (!message)
            return NULL;
        tp_arena_release(&b->arena);
        b->arena = (tp_arena){0};
        if (tp_arena_init(&b->arena, MOST_BYTES, NULL) != TP_OK ||
            tp_json_parse(&b->arena, "chromium", message, strlen(message), NULL, &root, NULL) !=
                TP_OK)
            return NULL;
        note_fault(b, root);
        if (tp_json_i64(tp_json_get(root, "id"), &id) && id == b->last)
            return tp_json_get(root, "result") ? tp_json_get(root, "result") : root;
    }
    return NULL;
}

browser *browser_open(const char *folder, int width, int height, const char **ret_why)
{
    static const char run[] =
        "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
        "--hide-scrollbars --no-first-run --disable-extensions --disable-background-networking "
        "--disable-component-update --font-render-hinting=none --disable-lcd-text "
        "--force-device-scale-factor=1 --force-color-profile=srgb --remote-debugging-pipe "
        "--user-data-dir=\"$0\" --window-size=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null";
    int to[2], from[2];
    char size[32], profile[4096];
    *ret_why = "there is no chromium (Debian: chromium)";
    if (!is_installed("chromium"))
        return NULL;
    snprintf(size, sizeof size, "%d,%d", width, height);
    snprintf(profile, sizeof profile, "%s/chromium", folder);
    char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)run, profile, size, NULL};
    browser *b = tp_vec_new(1, sizeof *b);
    b->page = -1;
    *ret_why = "no pipes";
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
        free(b);
        return NULL;
    }
    const tp_child child = {
        .argv = argv, .in = to[0], .out = from[1], .err = TP_CHILD_NULL, .owns_daemons = true};
    int code = tp_child_start(&child, &b->pid);
    close(to[0]);
    close(from[1]);
    b->to = to[1];
    b->from = from[0];
    *ret_why = "chromium does not start here";
    if (code == 0 && call(b, "Browser.getVersion", NULL))
        return b;
    browser_close(b);
    return NULL;
}

void browser_close(browser *b)
{
    int status;
    if (!b)
        return;
    close(b->to);
    close(b->from);
    if (b->pid > 0) {
        tp_child_kill(b->pid);
        (void)!waitpid(b->pid, &status, 0);
    }
    tp_arena_release(&b->arena);
    tp_buf_release(&b->in);
    tp_buf_release(&b->value);
    tp_buf_release(&b->faults);
    free(b);
}

int browser_new_page(browser *b)
{
    char params[256], target[64];
    b->page = -1;
    const tp_json *r = call(b, "Target.createTarget", "{\"url\":\"about:blank\"}");
    const char *id = tp_json_str(tp_json_get(r, "targetId"));
    snprintf(target, sizeof target, "%s", id ? id : "");
    snprintf(params, sizeof params, "{\"targetId\":\"%s\",\"flatten\":true}", target);
    r = call(b, "Target.attachToTarget", params);
    const char *session = tp_json_str(tp_json_get(r, "sessionId"));
    snprintf(b->sessions[b->n_pages], sizeof b->sessions[0], "%s", session ? session : "");
    b->page = b->n_pages++;
    (void)call(b, "Page.enable", NULL);
    (void)call(b, "Runtime.enable", NULL);
    (void)call(b, "Log.enable", NULL);
    return b->page;
}

void browser_turn_to(browser *b, int page)
{
    b->page = page;
    (void)call(b, "Page.bringToFront", NULL);
}

static const tp_json *call_with(browser *b, const char *method, const char *key, const char *value,
                                const char *more)
{
    tp_buf params = {0};
    tp_json_w w;
    tp_json_w_init(&w, &params, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_str(&w, key, value);
    tp_json_w_end(&w, '}');
    params.len -= 1; /* the bracket */
    tp_buf_addf(&params, "%s}", more);
    const tp_json *r = call(b, method, params.data);
    tp_buf_release(&params);
    return r;
}

void browser_go(browser *b, const char *url)
{
    (void)call_with(b, "Page.navigate", "url", url, "");
}

const char *browser_value(browser *b, const char *expression)
{
    const tp_json *r = call_with(b, "Runtime.evaluate", "expression", expression,
                                 ",\"awaitPromise\":true,\"returnByValue\":true");
    const tp_json *value = tp_json_get(tp_json_get(r, "result"), "value");
    tp_json_w w;
    tp_buf_clear(&b->value);
    tp_json_w_init(&w, &b->value, 0);
    if (!r)
        tp_buf_adds(&b->value, "gone");
    else if (!value || tp_json_get(r, "exceptionDetails"))
        tp_buf_adds(&b->value, "error");
    else
        tp_json_w_value(&w, value);
    return tp_buf_str(&b->value);
}

void browser_wait(browser *b, const char *expression)
{
    const char *value;
    while (strcmp(value = browser_value(b, expression), "true") != 0 && strcmp(value, "gone") != 0)
        usleep(20000); /* no verdict: it asks again */
}

void browser_key(browser *b, const char *key, const char *text)
{
    char more[64] = "";
    if (text)
        snprintf(more, sizeof more, ",\"text\":\"%s\"", text);
    char down[96];
    snprintf(down, sizeof down, ",\"type\":\"keyDown\"%s", more);
    (void)call_with(b, "Input.dispatchKeyEvent", "key", key, down);
    (void)call_with(b, "Input.dispatchKeyEvent", "key", key, ",\"type\":\"keyUp\"");
}

void browser_see(browser *b, tp_buf *out)
{
    const char *data = tp_json_str(tp_json_get(
        call(b, "Page.captureScreenshot", "{\"format\":\"webp\",\"quality\":60}"), "data"));
    tp_buf_adds(out, data ? data : "");
}

const char *browser_faults(const browser *b) { return b->faults.len ? b->faults.data : ""; }
