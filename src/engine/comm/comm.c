/* comm.c - the communicator: opening it, telling failures, leaving. */
#include "engine/comm/comm.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/platform.h"
#include "engine/comm/comm_internal.h"

/* ---- who is there ---- */

static void find_place(const tp_transport *transport, tp_rank_place *place)
{
    cpu_set_t *set;
    size_t bytes;
    struct stat space;
    *place = (tp_rank_place){.pid = getpid()};
    if (stat("/proc/self/ns/pid", &space) == 0)
        place->pid_space = space.st_ino;
    if (transport->host)
        snprintf(place->host, sizeof place->host, "%s", transport->host);
    else if (gethostname(place->host, sizeof place->host - 1) != 0)
        snprintf(place->host, sizeof place->host, "unknown");
    if (tp_affinity_mask(&set, &bytes) == 0)
        for (size_t i = 0; i < sizeof place->processors * 8; i++)
            if (CPU_ISSET_S(i, bytes, set))
                place->processors[i / 8] |= (uint8_t)(1u << i % 8);
    CPU_FREE(set);
}

static tp_status meet(tp_comm *c, tp_error *err)
{
    tp_rank_place mine;
    find_place(c->transport, &mine);
    tp_rank_place *places = tp_new((size_t)c->size, sizeof *places);
    tp_status status = tp_comm_gather(c, &mine, sizeof mine, places, err);
    c->places = places;
    c->local_size = 0;
    for (int i = 0; i < c->size && status == TP_OK; i++) {
        if (strcmp(places[i].host, mine.host) != 0)
            continue;
        c->local_rank += i < c->rank;
        c->local_size++;
    }
    return status;
}

/* ---- opening ---- */

static void listen_for_failures(tp_comm *c)
{
    c->listening = c->transport->receive(c->transport->context, &c->heard, sizeof c->heard,
                                         TP_ANY_RANK, FAILURE_TAG);
}

static tp_status join(tp_comm *c, tp_error *err)
{
    char why[512] = "";
    if (c->transport->version != TP_TRANSPORT_VERSION)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "the plug-in for MPI is of another version than temper: install both anew");
    if (c->transport->open(c->transport->context, &c->rank, &c->size, why, sizeof why) != 0)
        return tp_fail(err, TP_ERR_IO, "cannot join the other processes: %s", why);
    c->has_joined = true;
    listen_for_failures(c);
    return meet(c, err);
}

static tp_comm *new_comm(void)
{
    tp_comm *c = tp_new(1, sizeof *c);
    c->size = c->local_size = 1;
    c->listening = -1;
    return c;
}

tp_status tp_comm_open_over(tp_transport *transport, tp_comm **ret, tp_error *err)
{
    tp_comm *c = new_comm();
    c->transport = transport;
    tp_status status = join(c, err);
    TP_HAND_OVER(status, ret, c, tp_comm_close(c, status));
}

static tp_status check_size(const tp_comm *c, int launched, const char *what, tp_error *err)
{
    if (launched <= 0 || launched == c->size)
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "%s, but MPI (%s) sees %d process%s: with Slurm start with srun --mpi=pmix",
                   what, c->transport->name, c->size, c->size == 1 ? "" : "es");
}

tp_status tp_comm_open(tp_comm **ret, tp_error *err)
{
    char what[128];
    tp_comm *c = new_comm();
    int launched = tp_comm_launched_size(what, sizeof what);
    tp_status status = tp_comm_load(c, err);
    if (status == TP_OK)
        status = join(c, err);
    if (status == TP_OK)
        status = check_size(c, launched, what, err);
    TP_HAND_OVER(status, ret, c, tp_comm_close(c, status));
}

bool tp_comm_is_launched(void)
{
    int n = tp_comm_launched_size(NULL, 0);
    return n > 1 || n < 0;
}

/* ---- leaving ---- */

static bool is_done_by(tp_transport *t, int request, uint64_t deadline)
{
    int done = 0;
    while (request >= 0 && !(done = t->test(t->context, request)) && tp_clock_ns() < deadline)
        usleep(200);
    return done > 0;
}

/* Whether all others leave as well, within the time that a failure gives them.  In round k a rank
 * hears of the one 2^k behind it, which has heard of as many: behind the last it has of all. */
static bool others_leave(tp_comm *c)
{
    enum { LONGEST_S = 5 };
    tp_transport *t = c->transport;
    char token = 0, heard;
    uint64_t deadline = tp_clock_ns() + (uint64_t)LONGEST_S * 1000000000u;
    bool all = true;
    for (int far = 1; all && far < c->size; far *= 2) {
        int from = (c->rank + c->size - far) % c->size, to = (c->rank + far) % c->size;
        int hears = t->receive(t->context, &heard, 1, from, LEAVING_TAG);
        int tells = t->send(t->context, &token, 1, to, LEAVING_TAG);
        all = is_done_by(t, hears, deadline) && is_done_by(t, tells, deadline);
    }
    return all;
}

static void leave(tp_comm *c, tp_status status)
{
    tp_transport *t = c->transport;
    bool is_clean = status == TP_OK || status == TP_ERR_INTERRUPTED;
    /* Else this process ends without taking leave, after it has said why, and its launcher ends
     * the others. */
    if ((is_clean && !c->has_failed) || (!c->is_torn && others_leave(c))) {
        if (c->listening >= 0)
            t->cancel(t->context, c->listening);
        t->close(t->context);
    }
}

void tp_comm_close(tp_comm *c, tp_status status)
{
    if (!c)
        return;
    if (c->has_joined && c->size > 1)
        leave(c, status);
    else if (c->has_joined)
        c->transport->close(c->transport->context);
    free(c->places);
    free(c);
}

void tp_comm_fail(tp_comm *c, const tp_error *err)
{
    if (!c || c->size == 1 || c->has_failed)
        return;
    tp_failure *f = &c->heard; /* nothing is heard any more */
    if (c->listening >= 0)
        c->transport->cancel(c->transport->context, c->listening);
    c->listening = -1;
    *f = (tp_failure){.rank = c->rank, .status = (int32_t)err->status};
    snprintf(f->text, sizeof f->text, "%s", err->message);
    for (int i = 0; i < c->size; i++)
        if (i != c->rank)
            (void)c->transport->send(c->transport->context, f, sizeof *f, i, FAILURE_TAG);
    c->has_failed = true;
    c->failure = *err;
}

bool tp_comm_is_torn(const tp_comm *c) { return c && c->is_torn; }

void tp_comm_set_step(tp_comm *c, int64_t step)
{
    if (c)
        c->step = step;
}

void tp_comm_on_notice(tp_comm *c, void (*say)(void *user, const char *text), void *user)
{
    if (!c)
        return;
    c->say = say;
    c->say_user = user;
}
