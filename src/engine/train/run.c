/* run.c - a run's folder: opened, locked, resumed, its record and metrics written. */
#include "engine/train/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/output.h"
#include "engine/checkpoint/folder_lock.h"

enum { MAX_PENDING = 16 << 20 };

static const char OTHER_NAME[] = "choose another run.name";

struct tp_run {
    char dir[2048];
    char id[TP_RUN_ID];
    tp_run_record before;
    bool has_record; /* `before` is filled */
    int attempt;
    int lock_fd, metrics_fd;
    tp_buf pending; /* complete lines not yet on disk */
    tp_buf line;
    tp_json_w writer;
    bool warned;
    uint64_t n_lost;    /* records, for want of room in `pending` ... */
    uint64_t n_missing; /* ... and those before that metrics.jsonl lacks for good */
    char scratch[1024]; /* the folder to remove at the end, or "" */
    size_t was_there;   /* bytes of `dir`: what of the path existed before */
    bool has_begun;
};

char *tp_run_path(const tp_run *run, const char *file, char *out)
{
    snprintf(out, 4096, "%s/%s", run->dir, file);
    return out;
}

const char *tp_run_dir(const tp_run *run) { return run->dir; }

const char *tp_run_name(const tp_run *run) { return tp_str_after(run->dir, '/'); }

int tp_run_attempt(const tp_run *run) { return run->attempt; }

const char *tp_run_id(const tp_run *run) { return run->id; }

const tp_run_record *tp_run_before(const tp_run *run)
{
    return run->has_record ? &run->before : NULL;
}

void tp_run_adopt(tp_run *run, const char *id) { snprintf(run->id, sizeof run->id, "%s", id); }

static tp_status draw_id(tp_run *run, tp_error *err)
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return tp_fail(err, TP_ERR_IO, "cannot draw an identity for the run: %s", strerror(errno));
    snprintf(run->id, sizeof run->id, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    return TP_OK;
}

bool tp_run_has_begun(const tp_run *run) { return run->has_begun; }

/* A crash may have left half a line; the next one must start on a fresh line. */
tp_status tp_run_begin(tp_run *run, tp_error *err)
{
    char path[4096];
    run->has_begun = true;
    run->metrics_fd = open(tp_run_path(run, "metrics.jsonl", path),
                           O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (run->metrics_fd < 0)
        return tp_fail(err, TP_ERR_OUTPUT, "cannot open '%s': %s", path, strerror(errno));
    off_t end = lseek(run->metrics_fd, 0, SEEK_END);
    char last = '\n';
    if (end > 0 && pread(run->metrics_fd, &last, 1, end - 1) == 1 && last != '\n')
        tp_buf_addc(&run->pending, '\n');
    return TP_OK;
}

/* Nothing that a run has left is written over. */
static tp_status check_unused(const tp_run *run, tp_error *err)
{
    char path[4096];
    if (tp_file_exists(tp_run_path(run, "run.json", path)))
        return tp_fail(err, TP_ERR_CONFIG,
                       "run '%s' exists: continue it with --resume or choose another run.name",
                       run->dir);
    if (tp_file_size(tp_run_path(run, "metrics.jsonl", path)) > 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' holds the metrics of a run whose run.json is gone: continue it with "
                       "--resume or choose another run.name",
                       run->dir);
    return TP_OK;
}

static tp_status read_before(tp_run *run, tp_error *err)
{
    char path[4096];
    run->has_record = tp_file_exists(tp_run_path(run, "run.json", path));
    run->attempt = 1;
    if (!run->has_record)
        return draw_id(run, err);
    TP_TRY(tp_run_record_read(run->dir, &run->before, err));
    run->attempt = (int)run->before.attempt + 1;
    memcpy(run->id, run->before.id, sizeof run->id);
    return TP_OK;
}

static tp_status refuse_missing(const tp_run *run, tp_error *err)
{
    if (tp_dir_exists(run->dir))
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "there is no run '%s' to resume; check run.name, or leave --resume out to "
                   "start it",
                   run->dir);
}

/* What attempts that were killed left, in the run's folder and in those directly below: samples,
 * trace, tokenizer, whatever a run writes whole files to. */
static void clean_folders(const tp_run *run)
{
    DIR *dir = opendir(run->dir);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, "..") != 0)
            tp_outputs_clean(tp_path_of("%s/%s", run->dir, e->d_name).text);
    if (dir)
        closedir(dir);
}

static size_t parent_of(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 0 && path[n - 1] == '/')
        n--;
    return n;
}

/* The bytes of the path that name a folder which is there. */
static size_t existing(const char *path)
{
    char part[4096];
    size_t n = (size_t)snprintf(part, sizeof part, "%s", path);
    while (n > 0 && !tp_dir_exists(part)) {
        n = parent_of(part, n);
        part[n] = 0;
    }
    return n;
}

/* Set-up was refused: of what it made nothing stays, of what others put there everything. */
static void forget(tp_run *run)
{
    static const char *const files[] = {"config.yaml", ".lock"};
    char path[4096];
    tp_error ignored;
    if (tp_dir_exists(tp_run_path(run, "tokenizer", path)))
        (void)!tp_dir_remove(path, &ignored);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(tp_run_path(run, files[i], path));
    for (size_t n = strlen(run->dir); n > run->was_there && rmdir(run->dir) == 0;) {
        n = parent_of(run->dir, n);
        run->dir[n] = 0;
    }
}

static tp_status open_run(tp_run *run, bool resume, tp_error *err)
{
    if (resume)
        TP_TRY(refuse_missing(run, err));
    run->was_there = existing(run->dir);
    TP_TRY(tp_dir_make(run->dir, err));
    TP_TRY(tp_folder_lock(run->dir, OTHER_NAME, &run->lock_fd, err));
    if (!resume)
        TP_TRY(check_unused(run, err));
    TP_TRY(read_before(run, err));
    clean_folders(run);
    return TP_OK;
}

static tp_status new_run(const char *dir, tp_run **ret, tp_error *err)
{
    tp_run *run = tp_new(1, sizeof *run);
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

tp_status tp_run_check(const char *dir, bool resume, tp_error *err)
{
    tp_run *run;
    TP_TRY(new_run(dir, &run, err));
    tp_status status = resume ? refuse_missing(run, err) : TP_OK;
    if (status == TP_OK)
        status = tp_dir_check(run->dir, err);
    if (status == TP_OK)
        status = tp_folder_lock_check(run->dir, OTHER_NAME, err);
    if (status == TP_OK)
        status = resume ? read_before(run, err) : check_unused(run, err);
    tp_run_close(run);
    return status;
}

tp_status tp_run_open_scratch(const char *dir, bool resume, tp_run **ret, tp_error *err)
{
    const char *tmp = getenv("TMPDIR"), *slash = strrchr(dir, '/');
    char scratch[1024], path[2048];
    snprintf(scratch, sizeof scratch, "%.1000s/temper-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(scratch))
        return tp_fail(err, TP_ERR_IO, "cannot make '%s': %s; set TMPDIR", scratch,
                       strerror(errno));
    snprintf(path, sizeof path, "%s/%.200s", scratch, slash && slash[1] ? slash + 1 : "run");
    tp_status status = tp_run_open(path, false, ret, err);
    if (status != TP_OK) {
        rmdir(scratch);
        return status;
    }
    snprintf((*ret)->scratch, sizeof(*ret)->scratch, "%s", scratch);
    TP_OWN(tp_run_record) record = {0};
    if (resume && tp_run_record_read(dir, &record, NULL) == TP_OK)
        tp_run_adopt(*ret, record.id);
    return TP_OK;
}

tp_status tp_run_open(const char *dir, bool resume, tp_run **ret, tp_error *err)
{
    tp_run *run;
    TP_TRY(new_run(dir, &run, err));
    TP_HAND_OVER(open_run(run, resume, err), ret, run, tp_run_close(run));
}

void tp_run_close(tp_run *run)
{
    if (!run)
        return;
    if (run->metrics_fd >= 0)
        close(run->metrics_fd);
    if (!run->has_begun && run->lock_fd >= 0 && run->was_there < strlen(run->dir))
        forget(run);
    if (run->lock_fd >= 0)
        close(run->lock_fd); /* the lock goes with it */
    tp_run_record_release(&run->before);
    tp_error ignored;
    if (run->scratch[0] && tp_dir_remove(run->scratch, &ignored) != TP_OK)
        tp_log(TP_LOG_WARNING, "run", "%s", ignored.message);
    tp_buf_release(&run->pending);
    tp_buf_release(&run->line);
    free(run);
}

static void begin_record(tp_run *run, const char *axis, int64_t step, double wall_s)
{
    char stamp[64];
    snprintf(stamp, sizeof stamp, "%.3f", wall_s);
    tp_buf_clear(&run->line);
    tp_json_w_init(&run->writer, &run->line, 0);
    tp_json_w *w = &run->writer;
    tp_json_w_begin(w, '{');
    tp_json_w_put_i64(w, "v", 1);
    tp_json_w_put_raw(w, "t", stamp);
    tp_json_w_put_str(w, "run", tp_run_name(run));
    tp_json_w_put_i64(w, "attempt", run->attempt);
    tp_json_w_put_i64(w, "step", step);
    tp_json_w_put_str(w, "axis", axis);
    tp_json_w_put_begin(w, "m", '{');
}

/* Whole lines as far as the disk takes them. */
static void flush(tp_run *run)
{
    ssize_t n = write(run->metrics_fd, run->pending.data, run->pending.len);
    if (n == (ssize_t)run->pending.len) {
        tp_buf_clear(&run->pending);
        if (run->n_lost)
            tp_log(TP_LOG_WARNING, "run", "metrics are written again; %llu records were lost",
                   (unsigned long long)run->n_lost);
        run->n_missing += run->n_lost;
        run->n_lost = 0;
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

static void end_record(tp_run *run)
{
    tp_json_w_end(&run->writer, '}');
    tp_json_w_end(&run->writer, '}');
    tp_buf_addc(&run->line, '\n');
    if (run->pending.len + run->line.len <= MAX_PENDING)
        tp_buf_add(&run->pending, run->line.data, run->line.len);
    else if (run->n_lost++ == 0)
        tp_log(TP_LOG_WARNING, "run", "%d MiB of metrics wait: those that follow are lost",
               MAX_PENDING >> 20);
    flush(run);
}

void tp_run_write_metrics(void *user, const tp_metric_record *record)
{
    tp_run *run = user;
    begin_record(run, record->axis, record->step, record->wall_s);
    for (size_t i = 0; i < record->n; i++)
        tp_json_w_put_f64(&run->writer, record->points[i].def->name, record->points[i].value);
    end_record(run);
}

tp_status tp_run_end(tp_run *run, tp_error *err)
{
    char path[4096];
    if (run->pending.len)
        flush(run);
    uint64_t n = run->n_missing + run->n_lost;
    for (size_t i = 0; i < run->pending.len; i++)
        n += run->pending.data[i] == '\n';
    if (!n)
        return TP_OK;
    return tp_fail(err, TP_ERR_OUTPUT,
                   "'%s' lacks %llu record%s of this run, which could not be written: the disk was "
                   "full, or a limit of a file's size was reached (ulimit -f)",
                   tp_run_path(run, "metrics.jsonl", path), (unsigned long long)n, tp_plural(n));
}

tp_status tp_run_write(tp_run *run, const char *file, const tp_buf *text, tp_error *err)
{
    char path[4096];
    return tp_file_write_atomic(tp_run_path(run, file, path), text->data, text->len, err);
}
