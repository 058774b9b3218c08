/* waiting.c - waiting for others without burning a processor, and noticing those that are gone.
 *
 * MPI waits by spinning, and yields at best; a rank that waits for a slow one would take a whole
 * processor from it when ranks share processors.  Here a wait looks a few times, yields a few
 * times, and then naps, longer and longer up to half a millisecond. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "engine/comm/comm_internal.h"

enum { SPINS = 200, YIELDS = 400 };
enum { NAP_NS = 20000, LONGEST_NAP_NS = 500000 };
static const uint64_t second = 1000000000u;

uint64_t tp_comm_now_ns(const tp_comm *c)
{
    const tp_transport *t = c->transport;
    return t && t->now_ns ? t->now_ns(t->context) : tp_clock_ns();
}

void tp_comm_pass(tp_comm *c, double seconds)
{
    if (c && c->transport && c->transport->pass && seconds > 0)
        c->transport->pass(c->transport->context, seconds);
}

double tp_comm_now_s(const tp_comm *c) { return (double)tp_comm_now_ns(c) * 1e-9; }

static void nap(uint64_t polls)
{
    if (polls < SPINS)
        return;
    if (polls < YIELDS) {
        sched_yield();
        return;
    }
    uint64_t ns = NAP_NS * (1 + (polls - YIELDS) / 16);
    struct timespec t = {0, (long)(ns < LONGEST_NAP_NS ? ns : LONGEST_NAP_NS)};
    nanosleep(&t, NULL);
}

/* Processes on this host can be looked for; those elsewhere are their launcher's. */
static tp_status look_after(tp_comm *c, tp_error *err)
{
    const tp_rank_place *mine = &c->places[c->rank];
    for (int i = 0; i < c->size; i++) {
        const tp_rank_place *p = &c->places[i];
        if (p == mine || p->pid_space != mine->pid_space || strcmp(p->host, mine->host) != 0)
            continue;
        if (kill((pid_t)p->pid, 0) != 0 && errno == ESRCH)
            return tp_fail(err, TP_ERR_IO,
                           "rank %d (%s, process %lld) is gone; the last step that all ranks did "
                           "is %lld: go on with --resume",
                           i, p->host, (long long)p->pid, (long long)c->step);
    }
    return TP_OK;
}

static void name_straggler(tp_comm *c, tp_waiting *w, int rank, uint64_t now)
{
    char text[512];
    uint64_t waited = (now - w->since) / second;
    if (!c->say || rank < 0 || waited < 5 || (w->said && (now - w->said) / second < 30))
        return;
    w->said = now;
    snprintf(text, sizeof text,
             "step %lld: rank %d waits for rank %d (%s, process %lld) for %llu s",
             (long long)c->step + 1, c->rank, rank, c->places[rank].host,
             (long long)c->places[rank].pid, (unsigned long long)waited);
    c->say(c->say_user, text);
}

tp_status tp_comm_listen(tp_comm *c, tp_error *err)
{
    if (c->has_failed) {
        if (err)
            *err = c->failure;
        return c->failure.status;
    }
    if (c->listening < 0 || !c->transport->test(c->transport->context, c->listening))
        return TP_OK;
    c->listening = -1;
    const tp_failure *f = &c->heard;
    c->has_failed = true;
    (void)!tp_fail(&c->failure, (tp_status)f->status, "rank %d (%s): %.*s", f->rank,
                   tp_comm_host(c, f->rank), (int)sizeof f->text, f->text);
    return tp_comm_listen(c, err);
}

tp_status tp_comm_pause(tp_comm *c, tp_waiting *w, int for_rank, tp_error *err)
{
    if (c->transport->pause) {
        c->transport->pause(c->transport->context);
        return TP_OK;
    }
    nap(w->polls++);
    if (w->polls % 64 != 0)
        return TP_OK;
    uint64_t now = tp_comm_now_ns(c);
    w->since = w->since ? w->since : now;
    TP_TRY(tp_comm_listen(c, err));
    name_straggler(c, w, for_rank, now);
    if (w->checked && now - w->checked < second / 5)
        return TP_OK;
    w->checked = now;
    tp_error gone;
    if (!c->places || look_after(c, &gone) == TP_OK)
        return TP_OK;
    c->has_failed = c->is_torn = true;
    c->failure = gone;
    return tp_comm_listen(c, err);
}
