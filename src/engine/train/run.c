#include "engine/train/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"

enum { MAX_PENDING = 16 << 20, MAX_RUN_JSON = 16 << 20 };

struct tp_run {
    char dir[2048];
    int attempt;
    int lock_fd, metrics_fd;
    tp_buf pending; /* complete lines not yet on disk */
    tp_buf line;
    tp_json_w writer;
    bool warned;
    char scratch[1024]; /* the folder to remove at the end, or "" */
};

char *tp_run_path(const tp_run *run, const char *file, char *out)
{
    snprintf(out, 4096, "%s/%s", run->dir, file);
    return out;
}

const char *tp_run_dir(const tp_run *run) { return run->dir; }

const char *tp_run_name(const tp_run *run)
{
    const char *slash = strrchr(run->dir, '/');
    return slash ? slash + 1 : run->dir;
}

int tp_run_attempt(const tp_run *run) { return run->attempt; }

static tp_status take_lock(tp_run *run, tp_error *err)
{
    char path[4096];
    run->lock_fd = open(tp_run_path(run, ".lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (run->lock_fd < 0)
        return tp_fail(err, TP_ERR_IO, "cannot create '%s': %s", path, strerror(errno));
    if (flock(run->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        char who[64] = "";
        ssize_t n = pread(run->lock_fd, who, sizeof who - 1, 0);
        return tp_fail(err, TP_ERR_CONFIG,
                       "run '%s' is being written by process %s; choose "
                       "another run.name",
                       run->dir, n > 0 ? who : "unknown");
    }
    char who[64];
    int n = snprintf(who, sizeof who, "%d", getpid());
    if (ftruncate(run->lock_fd, 0) != 0 || pwrite(run->lock_fd, who, (size_t)n, 0) != n)
        return tp_fail(err, TP_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    return TP_OK;
}

static tp_status read_attempt(tp_run *run, tp_error *err)
{
    char path[4096];
    tp_buf text = {0};
    tp_arena arena;
    const tp_json *root = NULL;
    int64_t attempt = 0;
    TP_TRY(tp_file_read(tp_run_path(run, "run.json", path), MAX_RUN_JSON, &text, err));
    tp_status status = tp_arena_init(&arena, 256 << 20, err);
    if (status == TP_OK) {
        status = tp_json_parse(&arena, path, tp_buf_str(&text), text.len, NULL, &root, err);
        if (status == TP_OK && !tp_json_i64(tp_json_get(root, "attempt"), &attempt))
            status = tp_fail(err, TP_ERR_FORMAT, "'%s' has no attempt number", path);
        tp_arena_release(&arena);
    }
    tp_buf_release(&text);
    run->attempt = (int)attempt + 1;
    return status;
}

/* A crash may have left half a line; the next one must start on a fresh line. */
static tp_status open_metrics(tp_run *run, tp_error *err)
{
    char path[4096];
    run->metrics_fd = open(tp_run_path(run, "metrics.jsonl", path),
                           O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (run->metrics_fd < 0)
        return tp_fail(err, TP_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    off_t end = lseek(run->metrics_fd, 0, SEEK_END);
    char last = '\n';
    if (end > 0 && pread(run->metrics_fd, &last, 1, end - 1) == 1 && last != '\n')
        tp_buf_addc(&run->pending, '\n');
    return TP_OK;
}

static tp_status refuse_existing(const tp_run *run, bool resume, bool *ret_exists, tp_error *err)
{
    char path[4096];
    *ret_exists = tp_file_exists(tp_run_path(run, "run.json", path));
    if (*ret_exists && !resume)
        return tp_fail(err, TP_ERR_CONFIG,
                       "run '%s' exists: continue it with --resume or choose another run.name",
                       run->dir);
    return TP_OK;
}

static tp_status open_run(tp_run *run, bool resume, tp_error *err)
{
    bool exists;
    TP_TRY(refuse_existing(run, resume, &exists, err));
    TP_TRY(tp_dir_make(run->dir, err));
    TP_TRY(take_lock(run, err));
    run->attempt = 1;
    if (exists)
        TP_TRY(read_attempt(run, err));
    return open_metrics(run, err);
}

static tp_status new_run(const char *dir, tp_run **ret, tp_error *err)
{
    tp_run *run = calloc(1, sizeof *run);
    TP_ASSERT(run);
    run->lock_fd = run->metrics_fd = -1;
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (n >= sizeof run->dir) {
        free(run);
        return tp_fail(err, TP_ERR_CONFIG, "the run's path is longer than %zu bytes",
                       sizeof run->dir);
    }
    memcpy(run->dir, dir, n);
    *ret = run;
    return TP_OK;
}

/* ---- without changing anything ---- */

/* Somebody else's lock shows without a lock of our own being left. */
static tp_status refuse_locked(const tp_run *run, tp_error *err)
{
    char path[4096], who[64] = "";
    int fd = open(tp_run_path(run, ".lock", path), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return TP_OK;
    bool is_free = flock(fd, LOCK_SH | LOCK_NB) == 0;
    ssize_t n = pread(fd, who, sizeof who - 1, 0);
    close(fd);
    if (is_free)
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "run '%s' is being written by process %s; choose another run.name", run->dir,
                   n > 0 ? who : "unknown");
}

tp_status tp_run_check(const char *dir, bool resume, tp_error *err)
{
    tp_run *run;
    bool exists;
    TP_TRY(new_run(dir, &run, err));
    tp_status status = refuse_existing(run, resume, &exists, err);
    if (status == TP_OK)
        status = tp_dir_check(run->dir, err);
    if (status == TP_OK)
        status = refuse_locked(run, err);
    if (status == TP_OK && exists)
        status = read_attempt(run, err);
    tp_run_close(run);
    return status;
}

tp_status tp_run_open_scratch(const char *dir, tp_run **ret, tp_error *err)
{
    const char *tmp = getenv("TMPDIR"), *slash = strrchr(dir, '/');
    char scratch[1024], path[2048];
    snprintf(scratch, sizeof scratch, "%.1000s/temper-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(scratch))
        return tp_fail(err, TP_ERR_IO, "cannot make '%s': %s; set TMPDIR", scratch,
                       strerror(errno));
    snprintf(path, sizeof path, "%s/%.200s", scratch, slash && slash[1] ? slash + 1 : "run");
    tp_status status = tp_run_open(path, false, ret, err);
    if (status == TP_OK)
        snprintf((*ret)->scratch, sizeof(*ret)->scratch, "%s", scratch);
    return status;
}

tp_status tp_run_open(const char *dir, bool resume, tp_run **ret, tp_error *err)
{
    tp_run *run;
    TP_TRY(new_run(dir, &run, err));
    tp_status status = open_run(run, resume, err);
    if (status != TP_OK) {
        tp_run_close(run);
        return status;
    }
    *ret = run;
    return TP_OK;
}

void tp_run_close(tp_run *run)
{
    if (!run)
        return;
    if (run->metrics_fd >= 0)
        close(run->metrics_fd);
    if (run->lock_fd >= 0)
        close(run->lock_fd); /* the lock goes with it */
    tp_error ignored;
    if (run->scratch[0] && tp_dir_remove(run->scratch, &ignored) != TP_OK)
        tp_log(TP_LOG_WARNING, "run", "%s", ignored.message);
    tp_buf_release(&run->pending);
    tp_buf_release(&run->line);
    free(run);
}

void tp_run_record_begin(tp_run *run, const char *axis, int64_t step)
{
    char stamp[64];
    snprintf(stamp, sizeof stamp, "%.3f", tp_wall_s());
    tp_buf_clear(&run->line);
    tp_json_w_init(&run->writer, &run->line, 0);
    tp_json_w *w = &run->writer;
    tp_json_w_begin(w, '{');
    tp_json_w_put_i64(w, "v", 1);
    tp_json_w_key(w, "t");
    tp_json_w_raw(w, stamp);
    tp_json_w_put_str(w, "run", tp_run_name(run));
    tp_json_w_put_i64(w, "attempt", run->attempt);
    tp_json_w_put_i64(w, "step", step);
    tp_json_w_put_str(w, "axis", axis);
    tp_json_w_put_begin(w, "m", '{');
}

void tp_run_metric(tp_run *run, const char *tag, double value)
{
    tp_json_w_put_f64(&run->writer, tag, value);
}

void tp_run_record_end(tp_run *run)
{
    tp_json_w_end(&run->writer, '}');
    tp_json_w_end(&run->writer, '}');
    tp_buf_addc(&run->line, '\n');
    if (run->pending.len + run->line.len <= MAX_PENDING)
        tp_buf_add(&run->pending, run->line.data, run->line.len);
    ssize_t n = write(run->metrics_fd, run->pending.data, run->pending.len);
    if (n == (ssize_t)run->pending.len) {
        tp_buf_clear(&run->pending);
        run->warned = false;
        return;
    }
    if (n > 0) {
        memmove(run->pending.data, run->pending.data + n, run->pending.len - (size_t)n + 1);
        run->pending.len -= (size_t)n;
    }
    if (!run->warned)
        tp_log(TP_LOG_WARNING, "run", "cannot write metrics (%s); they are kept for later",
               n < 0 ? strerror(errno) : "disk full");
    run->warned = true;
}

tp_status tp_run_write(tp_run *run, const char *file, const tp_buf *text, tp_error *err)
{
    char path[4096];
    return tp_file_write_atomic(tp_run_path(run, file, path), text->data, text->len, err);
}
