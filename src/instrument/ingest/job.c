/* Several files of one job: whose is which, and who is missing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/ingest/ingest.h"

static int by_rank(const void *a, const void *b)
{
    const tp_trace_file *x = *(tp_trace_file *const *)a, *y = *(tp_trace_file *const *)b;
    /* files of unknown rank come last, in order of their names */
    uint64_t rx = x->rank == TP_UNKNOWN ? UINT64_MAX : (uint64_t)x->rank;
    uint64_t ry = y->rank == TP_UNKNOWN ? UINT64_MAX : (uint64_t)y->rank;
    if (rx != ry)
        return rx < ry ? -1 : 1;
    return strcmp(x->path, y->path);
}

static void check_world(tp_trace_job *job)
{
    job->world_size = TP_UNKNOWN;
    for (size_t i = 0; i < job->n; i++) {
        const tp_trace_file *f = job->files[i];
        int64_t size = f->events ? f->events->info.world_size : TP_UNKNOWN;
        if (size == TP_UNKNOWN)
            continue;
        if (job->world_size != TP_UNKNOWN && size != job->world_size)
            tp_notes_add(&job->notes, TP_NOTE_WARNING,
                         "'%s' is of a job of %" PRId64 " ranks, another file of %" PRId64
                         ": are these files of one job?",
                         f->path, size, job->world_size);
        if (size > job->world_size)
            job->world_size = size;
    }
}

/* What a rank keeps of memory beside its events is no second recording of it. */
static void check_ranks(tp_trace_job *job)
{
    const tp_trace_file *before = NULL; /* with events */
    for (size_t i = 0; i < job->n; i++) {
        const tp_trace_file *f = job->files[i];
        if (f->rank == TP_UNKNOWN && job->n > 1)
            tp_notes_add(&job->notes, TP_NOTE_WARNING,
                         "'%s' does not say its rank, nor does its name", f->path);
        else if (f->events && before && before->rank == f->rank && f->rank != TP_UNKNOWN)
            tp_notes_add(&job->notes, TP_NOTE_WARNING, "'%s' and '%s' are both of rank %" PRId64,
                         before->path, f->path, f->rank);
        else if (f->rank_is_guess && job->n > 1)
            tp_notes_add(&job->notes, TP_NOTE_INFO,
                         "rank %" PRId64 " of '%s' is taken from its name", f->rank, f->path);
        before = f->events ? f : before;
    }
}

/* Files are sorted, so one walk finds the gaps. */
static void find_missing(tp_trace_job *job)
{
    enum { MOST = 1 << 20 };
    size_t at = 0, cap = 0;
    if (job->world_size == TP_UNKNOWN || job->world_size > MOST)
        return;
    for (int64_t rank = 0; rank < job->world_size; rank++) {
        while (at < job->n && job->files[at]->rank != TP_UNKNOWN && job->files[at]->rank < rank)
            at++;
        if (at < job->n && job->files[at]->rank == rank)
            continue;
        job->missing = tp_vec_room(job->missing, &cap, job->n_missing + 1, sizeof *job->missing);
        job->missing[job->n_missing++] = rank;
    }
    if (job->n_missing && job->n > 1)
        tp_notes_add(&job->notes, TP_NOTE_WARNING,
                     "%zu of %" PRId64 " ranks have no file, the first is rank %" PRId64
                     "; what all ranks did together is judged from those that are there",
                     job->n_missing, job->world_size, job->missing[0]);
}

tp_status tp_trace_job_open(const char *const *paths, size_t n, const tp_ingest_options *options,
                            tp_trace_job *ret, tp_error *err)
{
    tp_trace_job job = {.files = calloc(n ? n : 1, sizeof *job.files)};
    tp_status status = job.files ? TP_OK : tp_fail(err, TP_ERR_NOMEM, "no memory for %zu files", n);
    for (size_t i = 0; i < n && status == TP_OK; i++) {
        status = tp_trace_open(paths[i], options, &job.files[i], err);
        job.n += status == TP_OK;
    }
    if (status != TP_OK) {
        tp_trace_job_release(&job);
        return status;
    }
    if (job.n)
        qsort(job.files, job.n, sizeof *job.files, by_rank);
    check_world(&job);
    check_ranks(&job);
    find_missing(&job);
    *ret = job;
    return TP_OK;
}

tp_status tp_trace_job_check_ranks(const tp_trace_job *job, tp_error *err)
{
    const tp_trace_file *before = NULL;
    for (size_t i = 0; i < job->n; i++) {
        const tp_trace_file *f = job->files[i];
        if (!f->events || (f->rank == TP_UNKNOWN && f->kind != TP_FILE_TEMPER))
            continue;
        if (before && before->rank == f->rank)
            return tp_fail(err, TP_ERR_ARG,
                           "'%s' and '%s' are two recordings of one %s: what ranks did together "
                           "takes one file of each, of the same time",
                           before->path, f->path,
                           f->rank == TP_UNKNOWN ? "process without ranks" : "rank");
        before = f;
    }
    return TP_OK;
}

void tp_trace_job_release(tp_trace_job *job)
{
    for (size_t i = 0; i < job->n; i++)
        tp_trace_close(job->files[i]);
    free(job->files);
    free(job->missing);
    tp_notes_release(&job->notes);
    *job = (tp_trace_job){0};
}
