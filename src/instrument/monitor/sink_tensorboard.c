/* sink_tensorboard.c - one event file an attempt, a record of the metrics one Event, one write(2).
 *
 * Readers of event files disagree about restarts.  So every attempt has a file of its own, whose
 * name comes after those before it, and it begins with file_version and SessionLog START, the
 * first one too: TensorBoard's Python reader ignores the first START of a run.  All tags of the
 * folder have the training's step. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/platform.h"
#include "instrument/ingest/runs/event_write.h"
#include "instrument/monitor/sinks.h"

typedef struct {
    int fd;
    off_t size; /* whole records */
    char path[4096];
    tp_buf out, summary;
    bool is_described[TP_METRIC_DEFS];
} sink;

static const char prefix[] = "events.out.tfevents.";

/* When the newest event file there was begun, as its name says; 0: there is none.  Those of this
 * run end in `mark`. */
static long long newest(const char *folder, const char *mark, bool *ret_has_foreign)
{
    long long latest = 0;
    DIR *dir = opendir(folder);
    *ret_has_foreign = false;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!strstr(e->d_name, "tfevents"))
            continue;
        *ret_has_foreign |= !tp_str_ends(e->d_name, mark);
        if (strncmp(e->d_name, prefix, sizeof prefix - 1) == 0)
            latest = TP_MAX(latest, strtoll(e->d_name + sizeof prefix - 1, NULL, 10));
    }
    if (dir)
        closedir(dir);
    return latest;
}

static tp_status append(sink *s, tp_error *err)
{
    ssize_t n = write(s->fd, s->out.data, s->out.len);
    if (n == (ssize_t)s->out.len) {
        s->size += n;
        return TP_OK;
    }
    const char *why = n < 0 ? strerror(errno) : "the disk is full, or the file may not grow";
    (void)!ftruncate(s->fd, s->size); /* half a record is none */
    return tp_fail(err, TP_ERR_OUTPUT, "cannot write '%s': %s", s->path, why);
}

static tp_status create(sink *s, const char *folder, const tp_sink_run *run, tp_error *err)
{
    char host[256] = "localhost", mark[16];
    bool has_foreign;
    snprintf(mark, sizeof mark, ".%.8s", run->id);
    long long before = newest(folder, mark, &has_foreign), now = (long long)tp_wall_s();
    if (has_foreign)
        return tp_fail(err, TP_ERR_OUTPUT,
                       "'%s' holds event files of another run, and TensorBoard would draw both as "
                       "one; name a folder of its own in logger.tensorboard.log_dir",
                       folder);
    (void)!gethostname(host, sizeof host - 1);
    int n = snprintf(s->path, sizeof s->path, "%s/%s%010lld.%s.%d.%d%s", folder, prefix,
                     TP_MAX(now, before + 1), host, (int)getpid(), run->attempt, mark);
    errno = ENAMETOOLONG;
    s->fd = n < (int)sizeof s->path
                ? open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644)
                : -1;
    return s->fd < 0 ? tp_fail(err, TP_ERR_OUTPUT, "cannot create an event file in '%s': %s",
                               folder, strerror(errno))
                     : TP_OK;
}

static tp_status close_file(void *user, tp_error *err)
{
    TP_FREED sink *s = user;
    bool is_lost = s->fd >= 0 && close(s->fd) != 0;
    tp_status status =
        !is_lost ? TP_OK
                 : tp_fail(err, TP_ERR_OUTPUT, "cannot write '%s': %s", s->path, strerror(errno));
    tp_buf_release(&s->out);
    tp_buf_release(&s->summary);
    return status;
}

static tp_status begin(sink *s, const char *folder, const tp_sink_run *run, tp_error *err)
{
    double now = tp_wall_s();
    TP_TRY(tp_dir_make(folder, err));
    TP_TRY(create(s, folder, run, err));
    tp_event_put_version(&s->out, now);
    /* One that starts at 0 again repeats the validation before the first step. */
    tp_event_put_start(&s->out, now, run->step ? run->step + 1 : 0);
    return append(s, err);
}

static tp_status open_file(const char *folder, const tp_sink_run *run, void **ret, tp_error *err)
{
    tp_error ignored;
    sink *s = tp_new(1, sizeof *s);
    s->fd = -1;
    TP_HAND_OVER(begin(s, folder, run, err), ret, s, (void)!close_file(s, &ignored));
}

/* What TensorBoard shows beside a tag.  Counts may need more than the 24 bits of a float32. */
static const char *describe(const tp_metric_def *def, char out[512])
{
    static const char *const counted[] = {"bytes", "tokens", "FLOP"};
    bool is_counted = false;
    for (size_t i = 0; i < TP_COUNTOF(counted); i++)
        is_counted |= strcmp(def->unit, counted[i]) == 0;
    snprintf(out, 512, "%s%s%s%s", def->meaning, def->unit[0] ? " Unit: " : "", def->unit,
             is_counted ? ". Event files keep 7 digits; metrics.jsonl has all." : "");
    return out;
}

static tp_status write_record(void *user, const tp_metric_record *record, tp_error *err)
{
    sink *s = user;
    char text[512];
    tp_buf_clear(&s->summary);
    tp_buf_clear(&s->out);
    for (size_t i = 0; i < record->n; i++) {
        const tp_metric_def *def = record->points[i].def;
        bool *is_described = &s->is_described[def - tp_metric_defs];
        tp_event_add_scalar(&s->summary, def->name, (float)record->points[i].value,
                            *is_described ? NULL : describe(def, text));
        *is_described = true;
    }
    if (!record->n)
        return TP_OK;
    tp_event_put_summary(&s->out, record->wall_s, record->step, &s->summary);
    return append(s, err);
}

const tp_sink_kind tp_sink_tensorboard = {
    .name = "tensorboard", .open = open_file, .see = write_record, .close = close_file};
