/* profile.c - when a recording starts and stops, and what goes into its trace. */
#include "engine/train/profile.h"

#include <fnmatch.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "engine/train/trainer_internal.h"

enum { EVENTS = 1 << 20, FLUSH_MS = 1000 };

/* ---- what is asked for ---- */

static const char *worker_name(tp_worker worker)
{
    static const char *const names[TP_WORKERS] = {"temper_policy_worker",
                                                  "temper_generation_worker"};
    return names[worker];
}

/* Patterns that match none go into `lost`, in quotes, separated by commas. */
static void match_workers(const char *patterns, int n_workers, bool ret_matches[TP_WORKERS],
                          tp_buf *lost)
{
    tp_slice pattern;
    memset(ret_matches, 0, TP_WORKERS * sizeof *ret_matches);
    while (tp_profile_next_pattern(&patterns, &pattern)) {
        TP_OWN(tp_buf) text = {0};
        bool any = false;
        tp_buf_add(&text, pattern.data, pattern.len);
        for (int w = 0; w < n_workers; w++)
            if (fnmatch(tp_buf_str(&text), worker_name((tp_worker)w), 0) == 0)
                any = ret_matches[w] = true;
        if (!any)
            tp_buf_addf(lost, "%s\"%s\"", lost->len ? ", " : "", tp_buf_str(&text));
    }
}

/* ---- a run ---- */

static const char *worker_list(int n_workers, tp_buf *out)
{
    for (int w = 0; w < n_workers; w++)
        tp_buf_addf(out, "%s%s", w ? ", " : "", worker_name((tp_worker)w));
    return tp_buf_str(out);
}

void tp_profile_open(trainer *t, int n_workers)
{
    tp_profile *p = &t->profile;
    TP_OWN(tp_buf) workers = {0}, lost = {0};
    if (tp_trace_attach_nvtx())
        tp_trainer_notice(t, "an NVTX tool is attached: zones are its ranges");
    else if (tp_profile_environment("NVTX_INJECTION64_PATH"))
        tp_trainer_notice(t, "NVTX_INJECTION64_PATH names no NVTX tool that can be loaded (%s)",
                          tp_profile_environment("NVTX_INJECTION64_PATH"));
    p->start = t->o->profile_start;
    p->stop = t->o->profile_stop;
    if (p->stop == 0)
        return;
    if (t->o->profile_steps_text && tp_profile_environment(TP_PROFILE_RANGE_VARIABLE))
        tp_trainer_notice(t, "profile.steps is set: " TP_PROFILE_RANGE_VARIABLE " has no effect");
    const char *patterns = t->o->profile_workers ? t->o->profile_workers : "*";
    match_workers(patterns, n_workers, p->matches, &lost);
    bool any = false;
    for (int w = 0; w < n_workers; w++)
        any = any || p->matches[w];
    if (lost.len)
        tp_trainer_notice(t, "pattern %s names no worker of this run (%s)%s", tp_buf_str(&lost),
                          worker_list(n_workers, &workers), any ? "" : "; nothing is profiled");
    if (!any)
        p->start = p->stop = 0;
}

/* ---- of several ranks ---- */

static void name_file(const tp_profile *p, const tp_comm *comm, int rank, const char *dir,
                      char *out, size_t size)
{
    char which[32] = "";
    if (comm)
        snprintf(which, sizeof which, ".rank%d", rank);
    snprintf(out, size, "%s/steps-%lld-%lld%s.json", dir, (long long)p->first,
             (long long)p->stop - 1, which);
}

static int64_t trace_now(void *user) { return (void)user, tp_trace_unix_ns(); }

static void put_offset(tp_json_w *w, const char *key, const tp_clock_offset *o)
{
    tp_json_w_put_begin(w, key, '{');
    tp_json_w_put_i64(w, "offset_ns", o->offset_ns);
    tp_json_w_put_i64(w, "error_ns", o->error_ns);
    tp_json_w_end(w, '}');
}

/* Whose trace this is, and how its clock goes against that of rank 0: at the start, and at the end
 * as well once that is known. */
static tp_status compare_clocks(const trainer *t, tp_clock_offset *ret, tp_error *err)
{
    const tp_profile *p = &t->profile;
    TP_OWN(tp_buf) text = {0};
    if (!t->comm)
        return TP_OK;
    TP_TRY(tp_comm_compare_clocks(t->comm, trace_now, NULL, ret, err));
    tp_json_w w = tp_json_w_open(&text, 0, '{');
    tp_json_w_put_str(&w, "backend", tp_comm_transport(t->comm));
    tp_json_w_put_i64(&w, "rank", tp_comm_rank(t->comm));
    tp_json_w_put_i64(&w, "world_size", tp_comm_size(t->comm));
    tp_json_w_put_str(&w, "host", tp_comm_host(t->comm, tp_comm_rank(t->comm)));
    tp_json_w_put_begin(&w, "clock", '{');
    put_offset(&w, "start", &p->clock_start);
    if (ret != &p->clock_start)
        put_offset(&w, "end", ret);
    tp_json_w_end(&w, '}');
    tp_json_w_end(&w, '}');
    return tp_trace_metadata("distributedInfo", tp_buf_str(&text), err);
}

/* Rank 0 may not see the folders of the others: it is handed their traces, a piece of each at a
 * time. */
enum { PIECE = 1 << 20, PIECES = 64 << 20 }; /* bytes: of one rank, of all together */

typedef struct {
    FILE *own;       /* of this rank, to be read */
    size_t piece;    /* bytes of the chunks */
    tp_writer **all; /* [ranks]: on rank 0 */
    char *chunk, *chunks;
    int64_t *sizes; /* [ranks]: of the chunks */
} handing;

static tp_status hand_chunk(const trainer *t, handing *h, bool *ret_any, tp_error *err)
{
    int n = tp_comm_size(t->comm);
    int64_t size = h->own ? (int64_t)fread(h->chunk, 1, h->piece, h->own) : 0;
    bool is_lost = h->own && ferror(h->own);
    *ret_any = false;
    TP_TRY(tp_comm_agree(
        t->comm,
        is_lost ? tp_fail(err, TP_ERR_IO, "cannot read the trace %s", t->profile.path) : TP_OK,
        err));
    TP_TRY(tp_comm_gather(t->comm, &size, sizeof size, h->sizes, err));
    for (int r = 0; r < n; r++)
        *ret_any |= h->sizes[r] > 0;
    if (!*ret_any)
        return TP_OK;
    TP_TRY(tp_comm_gather(t->comm, h->chunk, h->piece, h->chunks, err));
    for (int r = 1; r < n && h->all; r++)
        if (h->sizes[r] > 0)
            TP_TRY(tp_writer_write(h->all[r], h->chunks + (size_t)r * h->piece, (size_t)h->sizes[r],
                                   err));
    return TP_OK;
}

static tp_status open_all(const trainer *t, handing *h, tp_error *err)
{
    char dir[4096], path[4300];
    int n = tp_comm_size(t->comm);
    tp_run_path(t->run, "trace", dir);
    if (!tp_trainer_is_first(t)) {
        h->own = fopen(t->profile.path, "re");
        return h->own ? TP_OK
                      : tp_fail(err, TP_ERR_IO, "cannot read the trace %s", t->profile.path);
    }
    h->all = tp_new((size_t)n, sizeof *h->all);
    for (int r = 1; r < n; r++) {
        name_file(&t->profile, t->comm, r, dir, path, sizeof path);
        TP_TRY(tp_writer_open(&h->all[r], path, err));
    }
    return TP_OK;
}

static tp_status close_all(const trainer *t, handing *h, tp_status status, tp_error *err)
{
    for (int r = 1; r < tp_comm_size(t->comm) && h->all; r++) {
        if (status != TP_OK)
            tp_writer_abandon(h->all[r]);
        else
            status = tp_writer_close(h->all[r], NULL, err);
    }
    if (h->own)
        fclose(h->own);
    free(h->all);
    free(h->chunk);
    free(h->chunks);
    free(h->sizes);
    return status;
}

static tp_status hand_over(const trainer *t, tp_error *err)
{
    size_t n = (size_t)tp_comm_size(t->comm), piece = TP_MIN(PIECE, PIECES / n);
    handing h = {.piece = piece,
                 .chunk = tp_new(1, piece),
                 .chunks = tp_new(n, piece),
                 .sizes = tp_new(n, sizeof *h.sizes)};
    bool any = true;
    tp_status status = tp_comm_agree(t->comm, open_all(t, &h, err), err);
    while (status == TP_OK && any)
        status = hand_chunk(t, &h, &any, err);
    return close_all(t, &h, status, err);
}

/* ---- recording ---- */

static tp_status start(trainer *t, tp_error *err)
{
    tp_profile *p = &t->profile;
    char dir[4096];
    TP_TRY(tp_dir_make(tp_run_path(t->run, "trace", dir), err));
    p->first = t->state.step + 1;
    name_file(p, t->comm, tp_comm_rank(t->comm), dir, p->path, sizeof p->path);
    tp_trace_options options = {.size = sizeof options,
                                .events_per_thread = EVENTS,
                                .overflow = TP_TRACE_FLUSH,
                                .flush_ms = FLUSH_MS,
                                .path = p->path,
                                .process_name = worker_name(TP_WORKER_POLICY)};
    TP_TRY(tp_trace_start(&options, err));
    tp_trace_thread_name(worker_name(TP_WORKER_POLICY));
    tp_mem_trace_totals();
    if (strcmp(tp_trace_get_cost().clock, "tsc") != 0)
        tp_trainer_notice(t,
                          "the trace's clock is %s, the time stamp counter of this machine is "
                          "not used: %s",
                          tp_trace_get_cost().clock, tp_clock_flaw_of_tsc());
    p->wall_s = (double)tp_phases_wall(&t->phases) * 1e-9;
    for (int i = 0; i < TP_TIME_COUNT; i++)
        p->phase_s[i] = (double)t->phases.ns[i] * 1e-9;
    p->is_on = true;
    return compare_clocks(t, &p->clock_start, err);
}

static void say_trace(const trainer *t, const tp_trace_cost *cost)
{
    const tp_profile *p = &t->profile;
    char dir[4096];
    int ranks = tp_trainer_ranks(t);
    tp_trainer_notice(t,
                      "trace of %lld step%s from step %lld on: %s (%.0f ns per zone, %llu "
                      "events dropped)",
                      (long long)p->steps, p->steps == 1 ? "" : "s", (long long)p->first, p->path,
                      cost->zone_ns, (unsigned long long)tp_trace_dropped());
    if (ranks > 1 && p->is_whole)
        tp_trainer_notice(t, "traces of all %d rank%s: temper trace %s", ranks,
                          tp_plural((uint64_t)ranks), tp_run_path(t->run, "trace", dir));
}

/* `together`: all ranks do, so that rank 0 gets the traces of all. */
static tp_status stop(trainer *t, bool together, tp_error *err)
{
    tp_profile *p = &t->profile;
    tp_trace_cost cost = tp_trace_get_cost();
    p->wall_s = (double)tp_phases_wall(&t->phases) * 1e-9 - p->wall_s;
    for (int i = 0; i < TP_TIME_COUNT; i++)
        p->phase_s[i] = (double)t->phases.ns[i] * 1e-9 - p->phase_s[i];
    p->is_on = false;
    if (together && t->comm) {
        tp_clock_offset end;
        TP_TRY(compare_clocks(t, &end, err));
    }
    TP_TRY(tp_trace_write(NULL, err));
    p->is_done = p->steps > 0;
    if (together && t->comm) {
        TP_TRY(hand_over(t, err));
        p->is_whole = true;
    }
    say_trace(t, &cost);
    return TP_OK;
}

tp_status tp_profile_begin_step(trainer *t, tp_error *err)
{
    tp_profile *p = &t->profile;
    int64_t step = t->state.step + 1;
    char name[40];
    if (!p->is_on && !p->is_done && step >= p->start && step < p->stop)
        TP_TRY(start(t, err));
    if (!p->is_on)
        return TP_OK;
    snprintf(name, sizeof name, "ProfilerStep#%lld", (long long)step);
    tp_trace_pause(false); /* the step is everybody's */
    p->step = tp_zone_begin(tp_trace_site_make("user_annotation", name, NULL));
    tp_profile_worker(t, TP_WORKER_POLICY);
    return TP_OK;
}

static void add_counter(const char *name, double value)
{
    tp_trace_value(tp_trace_site_make("counter", name, NULL), value);
}

void tp_profile_see_metrics(void *user, const tp_metric_record *record)
{
    trainer *t = user;
    if (!t->profile.is_on)
        return;
    tp_trace_pause(false); /* they are everybody's */
    for (size_t i = 0; i < record->n; i++)
        add_counter(record->points[i].def->name, record->points[i].value);
    tp_profile_worker(t, TP_WORKER_POLICY);
}

tp_status tp_profile_end_step(trainer *t, tp_error *err)
{
    tp_profile *p = &t->profile;
    if (!p->is_on)
        return TP_OK;
    tp_trace_pause(false);
    tp_zone_end(&p->step);
    tp_profile_worker(t, TP_WORKER_POLICY);
    p->steps++;
    return t->state.step + 1 >= p->stop ? stop(t, true, err) : TP_OK;
}

void tp_profile_worker(trainer *t, tp_worker worker)
{
    if (t->profile.is_on)
        tp_trace_pause(!t->profile.matches[worker]);
}

/* A run that ends inside the range, or before it. */
void tp_profile_close(trainer *t, bool together)
{
    tp_profile *p = &t->profile;
    tp_error err;
    if (p->is_on && stop(t, together, &err) != TP_OK)
        tp_trainer_notice(t, "%s", err.message);
    else if (p->stop && !p->is_done && t->state.step + 1 < p->stop)
        tp_trainer_notice(t, "%s asks for steps %lld to %lld, which this run did not reach",
                          t->o->profile_origin, (long long)p->start, (long long)p->stop - 1);
}
