/* cmd_watch.c - `temper watch`: runs as they go, drawn again and again, or line by line. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/commands.h"
#include "temper/monitor.h"

typedef struct {
    bool once;
    double interval;
    const char *rules;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("once", 0, once, "draw where the runs are now, and end"),
    TP_NUMBER("interval", 0, "SECONDS", FLOAT, interval, 0.05, 3600, "between looks (default 1)"),
    TP_TEXT("rules", 0, "FILE", rules, "alarms: a recipe with monitor.alarms, or a list in YAML"),
    {0}};

static volatile sig_atomic_t was_resized;

static void on_resize(int number)
{
    (void)number;
    was_resized = 1;
}

static int screen_height(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 3 ? size.ws_row : 24;
}

/* Keys come one by one, unseen; *before is what the terminal was. */
static bool listen_to_keys(struct termios *before)
{
    struct termios raw;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, before) != 0)
        return false;
    raw = *before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

/* Wait for so long, a key, a signal or another size; true when it is time to end. */
static bool wait_for(double seconds, bool has_keys)
{
    double end = tp_cli_clock_s() + seconds, left;
    while (!tp_cli_should_stop(NULL) && !was_resized && (left = end - tp_cli_clock_s()) > 0) {
        struct pollfd keys = {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN};
        char key = 0;
        if (poll(&keys, 1, (int)(left * 1000) + 1) > 0 &&
            (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
            return true;
    }
    return tp_cli_should_stop(NULL);
}

/* Up to where the frame began, however the terminal has wrapped it since. */
static void erase(const char *drawn, int width)
{
    int columns = 0, lines = 0;
    for (const char *c = drawn; c && *c; c++) {
        columns += ((unsigned char)*c & 0xc0) != 0x80;
        if (*c != '\n')
            continue;
        lines += columns > 1 ? (columns - 2) / width + 1 : 1;
        columns = 0;
    }
    for (int i = 0; i < lines; i++)
        fputs(tp_style(TP_LINE_UP), stdout);
    if (lines)
        printf("%s%s", tp_style(TP_LINE_BEGIN), tp_style(TP_BELOW_ERASE));
}

static void draw(tp_watch *w, char **drawn)
{
    int width = tp_cli_width(), height = screen_height();
    char *frame = tp_watch_frame(w, width, height - 2, tp_cli_colour(stdout));
    erase(*drawn, width);
    tp_free(*drawn);
    fputs(frame, stdout);
    /* The same without colours tells where the next one begins. */
    *drawn = tp_watch_frame(w, width, height - 2, false);
    tp_free(frame);
    (void)tp_cli_flush();
}

static void watch_screen(tp_watch *w, double interval)
{
    struct termios before;
    char *drawn = NULL;
    bool has_keys = listen_to_keys(&before), is_over = false;
    tp_cli_catch(SIGWINCH, on_resize);
    while (!tp_cli_should_stop(NULL)) {
        was_resized = 0;
        draw(w, &drawn);
        if (is_over || wait_for(interval, has_keys))
            break;
        is_over = tp_watch_is_over(w);
        tp_watch_refresh(w);
    }
    tp_free(drawn);
    if (has_keys)
        (void)!tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void watch_lines(tp_watch *w, double interval)
{
    for (bool is_over = false; !tp_cli_should_stop(NULL);
         is_over = tp_watch_is_over(w), tp_watch_refresh(w)) {
        char *lines = tp_watch_lines(w);
        fputs(lines, stdout);
        (void)tp_cli_flush();
        tp_free(lines);
        if (is_over || wait_for(interval, false))
            break;
    }
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    tp_error err = {0};
    tp_watch *w;
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], "-") == 0)
            return tp_cli_refuse("watch",
                                 "standard input (-) does not go on: temper metrics, alarms "
                                 "and analyze read it, this takes a file or a folder");
    tp_waiting_begin("temper watch: reading");
    if (tp_watch_open((const char *const *)words, (size_t)n, f->rules, &w, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_waiting_end();
    tp_cli_catch_stop();
    if (tp_cli_terminal(stdout) && !f->once) {
        watch_screen(w, f->interval);
    } else if (f->once) {
        char *frame = tp_watch_frame(w, tp_cli_width(), 0, tp_cli_colour(stdout));
        fputs(frame, stdout);
        tp_free(frame);
    } else {
        watch_lines(w, f->interval);
    }
    tp_watch_close(w);
    return 0;
}

const tp_usage tp_usage_watch = {
    .command = "watch",
    .arguments = "RUN...",
    .summary = "Runs as they go, whoever writes them: curves, values, speed, memory, alarms, "
               "time to go.",
    .flags = flag_table,
    .details = "On a terminal a screen that is drawn again, q ends it; elsewhere a line "
               "whenever a run has gone on.  Nothing is written into a run.  It ends by itself "
               "when every run is over; only runs of Temper say that.\n\n"
               "  temper watch runs/first runs/second\n"
               "  temper watch output/runs ~/.cache/huggingface/trackio/project.db#run-1",
    .min_words = 1,
    .max_words = -1,
    .size = sizeof(flags),
    .defaults = &(const flags){.interval = 1},
    .run = execute};
