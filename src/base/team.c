/* team.c - fork and join on futexes.
 *
 * A job's parts are cut into as many shares as threads work on it, and each share into pieces.
 * Everybody takes pieces from the front of its own share.  The caller, when he has done his,
 * takes from the back of the others', and a worker that has done its from the back of the
 * caller's: so a thread that comes late, or loses its processor, holds up one piece and no more,
 * and shares stay where they were in the last job, near their caches.
 *
 *     job    epoch << 21 | shares << 8 | pieces    of each share; written by the caller
 *     share  epoch << 16 | front << 8 | back       pieces front .. back-1 are to be had; of an
 *                                                  earlier epoch: all are
 *     left   pieces that are not done; the job ends with the last one
 *
 * A piece is taken by a compare-and-swap, which fails for whoever comes after the job's end: all
 * shares are empty then, or of a later epoch, and epochs do not come again.  The job's
 * description cannot change under a thread that has taken a piece.
 *
 * Waiting is the same for both sides: watch a word for a while, then sleep on a gate.  Nobody
 * makes a system call to wake where nobody sleeps: a sleeper is counted before its last look at
 * the word, and whoever changes the word looks at the count afterwards (Dekker's order, hence
 * sequentially consistent operations).  A bell that is rung is an event count (Reed and Kanodia,
 * "Synchronization with eventcounts and sequencers", 1979). */
#include "base/team.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/platform.h"
#include "base/threads.h"

enum {
    LINE = 128, /* two cache lines: the neighbour's is fetched along */
    MOST_THREADS = 4096,
    MOST_PIECES = 255,
    PIECE_BITS = 8,
    SHARE_BITS = 2 * PIECE_BITS,
    JOB_BITS = 13 + PIECE_BITS
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
    int number;
    pthread_t thread;
} member;

struct tp_team {
    _Alignas(LINE) _Atomic uint64_t job;
    tp_team_part *run;
    const void *context;
    int n_parts;
    uint64_t epoch; /* of the last job; the caller's */
    _Alignas(LINE) _Atomic uint64_t left;
    gate start, finish;
    atomic_bool is_busy;
    int size;
    int planned; /* threads there will be, for their places */
    pid_t owner;
    member members[]; /* the first is whoever calls */
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

/* ---- pieces ---- */

typedef struct {
    uint64_t epoch;
    int shares, pieces;
} job;

static job job_of(uint64_t word)
{
    return (job){.epoch = word >> JOB_BITS,
                 .shares = (int)(word >> PIECE_BITS & ((1 << 13) - 1)),
                 .pieces = (int)(word & MOST_PIECES)};
}

/* A piece of a share, from the front or the back; -1: there is none. */
static int take_piece(member *m, const job *j, bool from_front)
{
    uint64_t old = atomic_load_explicit(&m->share, memory_order_acquire), rest;
    int piece;
    do {
        uint64_t front = 0, back = (uint64_t)j->pieces;
        if (old >> SHARE_BITS == j->epoch) {
            front = old >> PIECE_BITS & MOST_PIECES;
            back = old & MOST_PIECES;
        }
        if (old >> SHARE_BITS > j->epoch || front == back)
            return -1;
        piece = (int)(from_front ? front++ : --back);
        rest = j->epoch << SHARE_BITS | front << PIECE_BITS | back;
    } while (!atomic_compare_exchange_weak(&m->share, &old, rest));
    return piece;
}

/* All that can be had of a share; how many pieces that was. */
static uint64_t run_share(tp_team *t, const job *j, int share, int thread)
{
    uint64_t done = 0;
    for (int piece; (piece = take_piece(&t->members[share], j, share == thread)) >= 0; done++) {
        int64_t nth = (int64_t)share * j->pieces + piece, all = (int64_t)j->shares * j->pieces;
        int end = (int)(t->n_parts * (nth + 1) / all);
        for (int part = (int)(t->n_parts * nth / all); part < end; part++)
            t->run(t->context, part, thread);
    }
    return done;
}

static void *work(void *argument)
{
    member *m = argument;
    tp_team *t = m->team;
    char name[16];
    snprintf(name, sizeof name, "temper-cpu %d", m->number);
    pthread_setname_np(pthread_self(), name);
    tp_affinity_bind(m->number, t->planned);
    for (uint64_t word = 0;;) {
        word = wait_while(&t->start, &t->job, word, &m->patience);
        const job j = job_of(word);
        if (j.shares == 0)
            return NULL;
        if (m->number >= j.shares)
            continue;
        uint64_t done = run_share(t, &j, m->number, m->number);
        done += run_share(t, &j, 0, m->number);
        if (done > 0 && atomic_fetch_sub(&t->left, done) == done)
            ring(&t->finish);
    }
}

/* 0 shares: no more jobs. */
static job publish(tp_team *t, int shares, int pieces)
{
    const job j = {.epoch = ++t->epoch, .shares = shares, .pieces = pieces};
    atomic_store_explicit(&t->left, (uint64_t)shares * (uint64_t)pieces, memory_order_relaxed);
    atomic_store(&t->job, j.epoch << JOB_BITS | (uint64_t)shares << PIECE_BITS | (uint64_t)pieces);
    ring(&t->start);
    return j;
}

static void share_out(tp_team *t, int shares)
{
    int pieces = TP_MIN((t->n_parts + shares - 1) / shares, MOST_PIECES);
    const job j = publish(t, shares, pieces);
    uint64_t done = 0;
    for (int share = 0; share < shares; share++)
        done += run_share(t, &j, share, 0);
    uint64_t left = atomic_fetch_sub(&t->left, done) - done;
    for (; left > 0; left = atomic_load_explicit(&t->left, memory_order_acquire))
        wait_while(&t->finish, &t->left, left, &t->members[0].patience);
}

static void run_alone(int n, tp_team_part *run, const void *context)
{
    for (int part = 0; part < n; part++)
        run(context, part, 0);
}

void tp_team_run(tp_team *t, int threads, int n, tp_team_part *run, const void *context)
{
    int shares = TP_MIN(TP_MIN(threads, n), tp_team_size(t));
    if (shares <= 1 || atomic_exchange_explicit(&t->is_busy, true, memory_order_acquire)) {
        run_alone(n, run, context);
        return;
    }
    t->run = run;
    t->context = context;
    t->n_parts = n;
    share_out(t, shares);
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
        member *m = &t->members[t->size];
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
    size_t bytes = sizeof(tp_team) + (size_t)threads * sizeof(member);
    tp_team *t = aligned_alloc(LINE, bytes);
    if (!t)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for a team of %d threads", threads);
    memset(t, 0, bytes);
    t->size = 1;
    t->planned = threads;
    t->owner = getpid();
    for (int i = 0; i < threads; i++) {
        t->members[i].team = t;
        t->members[i].number = i;
        t->members[i].patience.hope = MOST_HOPE;
    }
    TP_HAND_OVER(start_workers(t, threads, err), ret, t, tp_team_free(t));
}

void tp_team_free(tp_team *t)
{
    if (!t)
        return;
    TP_ASSERT(!atomic_load(&t->is_busy) || t->owner != getpid());
    publish(t, 0, 0);
    for (int i = 1; i < t->size && t->owner == getpid(); i++)
        pthread_join(t->members[i].thread, NULL);
    free(t);
}
