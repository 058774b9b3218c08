/* team.c - fork and join on futexes.
 *
 * A job is published by raising `job`, which all workers watch.  The parts of a job are cut into
 * shares, one per thread; whose share has begun is decided by a compare-and-swap on the share's
 * own word, between the worker it is meant for and the caller, who after his own share takes
 * every one that nobody has begun.  So the caller only ever waits for a thread that is at work.
 *
 *     job    epoch << 16 | shares       one writer, the caller
 *     share  epoch << 1  | is_done      as it was: open; epoch << 1: begun
 *
 * A worker that comes late finds its share's epoch raised and goes back to waiting; epochs have
 * 48 bits and do not come again.  The job's description cannot change under a thread that has
 * begun a share of it, for the caller waits until that is done.
 *
 * Waiting is the same for both sides: watch a word for a while, then sleep on a gate.  Nobody
 * makes a system call to wake where nobody sleeps: a sleeper is counted before its last look at
 * the word, and whoever changes the word looks at the count afterwards (Dekker's order, hence
 * sequentially consistent operations).  A bell that is rung is an event count (Reed and Kanodia,
 * "Synchronization with eventcounts and sequencers", 1979). */
#include "base/team.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/threads.h"

enum {
    LINE = 128, /* two cache lines: the neighbour's is fetched along */
    MOST_THREADS = 4096,
    SHARES_BITS = 16
};

/* How long to look before sleeping.  To sleep and be woken costs 5 to 50 us; watching for as long
 * is at most twice as bad as the best choice (Karlin and others, "Empirical studies of competitive
 * spinning for a shared-memory multiprocessor", 1991).  Whoever is used to long waits, because
 * other programs have the processors or because there is little to do, watches for SHORT_NS. */
enum { LONG_NS = 30000, SHORT_NS = 1000, MOST_HOPE = 7 };

/* Where threads sleep until a word has changed. */
typedef struct {
    _Alignas(LINE) _Atomic uint32_t bell;
    _Atomic uint32_t sleepers;
} gate;

/* Of one thread: a saturating counter of short waits and long ones, as a branch predictor's. */
typedef struct {
    int hope;
} patience;

typedef struct {
    _Alignas(LINE) _Atomic uint64_t share;
    patience patience;
    tp_team *team;
    int number; /* from 1; 0 is the caller */
    pthread_t thread;
} member;

struct tp_team {
    _Alignas(LINE) _Atomic uint64_t job;
    tp_team_part *run;
    const void *context;
    int n_parts;
    uint64_t epoch; /* of the last job; the caller's */
    patience patience;
    gate start, finish;
    atomic_bool is_busy;
    int size;
    pid_t owner;
    member members[]; /* size - 1 */
};

/* ---- waiting ---- */

static inline void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline bool has_changed(_Atomic uint64_t *word, uint64_t old)
{
    return atomic_load_explicit(word, memory_order_acquire) != old;
}

/* Watch for `ns`; the clock is asked once per some tens of looks. */
static bool watch(_Atomic uint64_t *word, uint64_t old, uint64_t ns)
{
    enum { LOOKS = 32 };
    uint64_t start = 0;
    for (;;) {
        for (int i = 0; i < LOOKS; i++) {
            if (has_changed(word, old))
                return true;
            pause_a_little();
        }
        uint64_t now = tp_clock_ns();
        if (start == 0)
            start = now;
        else if (now - start > ns)
            return false;
    }
}

static void sleep_until_changed(gate *g, _Atomic uint64_t *word, uint64_t old)
{
    atomic_fetch_add(&g->sleepers, 1);
    for (;;) {
        uint32_t bell = atomic_load(&g->bell);
        if (atomic_load(word) != old)
            break;
        syscall(SYS_futex, &g->bell, FUTEX_WAIT_PRIVATE, bell, NULL, NULL, 0);
    }
    atomic_fetch_sub(&g->sleepers, 1);
}

/* After a word was changed. */
static void ring(gate *g)
{
    if (atomic_load(&g->sleepers) == 0)
        return;
    atomic_fetch_add(&g->bell, 1);
    syscall(SYS_futex, &g->bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Until the word is no longer `old`; its new value. */
static uint64_t wait_while(gate *g, _Atomic uint64_t *word, uint64_t old, patience *p)
{
    bool hopes = p->hope > MOST_HOPE / 2;
    if (has_changed(word, old))
        return atomic_load_explicit(word, memory_order_acquire);
    uint64_t start = hopes ? 0 : tp_clock_ns();
    bool was_short = watch(word, old, hopes ? LONG_NS : SHORT_NS);
    if (!was_short) {
        sleep_until_changed(g, word, old);
        was_short = !hopes && tp_clock_ns() - start < 2 * LONG_NS; /* with the time to wake up */
    }
    if (was_short)
        p->hope += p->hope < MOST_HOPE;
    else
        p->hope -= p->hope > 0;
    return atomic_load_explicit(word, memory_order_acquire);
}

/* ---- shares ---- */

static bool begin_share(member *m, uint64_t epoch, uint64_t begun)
{
    uint64_t last = atomic_load_explicit(&m->share, memory_order_acquire);
    return last >> 1 < epoch && atomic_compare_exchange_strong(&m->share, &last, begun);
}

static void run_share(const tp_team *t, int share, int shares)
{
    int begin = (int)((int64_t)t->n_parts * share / shares);
    int end = (int)((int64_t)t->n_parts * (share + 1) / shares);
    for (int part = begin; part < end; part++)
        t->run(t->context, part);
}

static void *work(void *argument)
{
    member *m = argument;
    tp_team *t = m->team;
    char name[16];
    snprintf(name, sizeof name, "temper-cpu %d", m->number);
    pthread_setname_np(pthread_self(), name);
    for (uint64_t job = 0;;) {
        job = wait_while(&t->start, &t->job, job, &m->patience);
        uint64_t epoch = job >> SHARES_BITS;
        int shares = (int)(job & ((1 << SHARES_BITS) - 1));
        if (shares == 0)
            return NULL;
        if (m->number >= shares || !begin_share(m, epoch, epoch << 1))
            continue;
        run_share(t, m->number, shares);
        atomic_store(&m->share, epoch << 1 | 1);
        ring(&t->finish);
    }
}

/* 0 shares: no more jobs. */
static uint64_t publish(tp_team *t, int shares)
{
    t->epoch++;
    atomic_store(&t->job, t->epoch << SHARES_BITS | (uint64_t)shares);
    ring(&t->start);
    return t->epoch;
}

static void share_out(tp_team *t, int shares)
{
    uint64_t epoch = publish(t, shares);
    run_share(t, 0, shares);
    for (int i = 1; i < shares; i++)
        if (begin_share(&t->members[i - 1], epoch, epoch << 1 | 1))
            run_share(t, i, shares);
    for (int i = 1; i < shares; i++)
        wait_while(&t->finish, &t->members[i - 1].share, epoch << 1, &t->patience);
}

static void run_alone(int n, tp_team_part *run, const void *context)
{
    for (int part = 0; part < n; part++)
        run(context, part);
}

void tp_team_run(tp_team *t, int n, tp_team_part *run, const void *context)
{
    if (!t || n <= 1 || t->size == 1 ||
        atomic_exchange_explicit(&t->is_busy, true, memory_order_acquire)) {
        run_alone(n, run, context);
        return;
    }
    t->run = run;
    t->context = context;
    t->n_parts = n;
    share_out(t, TP_MIN(n, t->size));
    atomic_store_explicit(&t->is_busy, false, memory_order_release);
}

/* ---- making and ending a team ---- */

int tp_team_size(const tp_team *t) { return t ? t->size : 1; }

static tp_status start_workers(tp_team *t, int threads, tp_error *err)
{
    sigset_t before;
    int why = 0;
    tp_signals_hold(&before);
    for (; t->size < threads && why == 0; t->size += why == 0) {
        member *m = &t->members[t->size - 1];
        m->team = t;
        m->number = t->size;
        m->patience.hope = MOST_HOPE;
        why = pthread_create(&m->thread, NULL, work, m);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why == 0)
        return TP_OK;
    return tp_fail(err, TP_ERR_NOMEM,
                   "cannot start %d threads for computing: %s; lower the number or raise the limit "
                   "(ulimit -u)",
                   threads, strerror(why));
}

tp_status tp_team_create(tp_team **ret, int threads, int processors, tp_error *err)
{
    if (threads < 1 || threads > MOST_THREADS)
        return tp_fail(err, TP_ERR_ARG, "a team of %d threads; expected 1 to %d", threads,
                       MOST_THREADS);
    threads = TP_MAX(TP_MIN(threads, processors), 1);
    size_t bytes = sizeof(tp_team) + (size_t)(threads - 1) * sizeof(member);
    tp_team *t = aligned_alloc(LINE, bytes);
    if (!t)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for a team of %d threads", threads);
    memset(t, 0, bytes);
    t->size = 1;
    t->owner = getpid();
    t->patience.hope = MOST_HOPE;
    tp_status status = start_workers(t, threads, err);
    if (status != TP_OK) {
        tp_team_free(t);
        return status;
    }
    *ret = t;
    return TP_OK;
}

void tp_team_free(tp_team *t)
{
    if (!t)
        return;
    TP_ASSERT(!atomic_load(&t->is_busy) || t->owner != getpid());
    publish(t, 0);
    for (int i = 1; i < t->size && t->owner == getpid(); i++)
        pthread_join(t->members[i - 1].thread, NULL);
    free(t);
}
