/* phases.c - wall time charged to one phase at a time. */
#include "engine/train/phases.h"

#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"

const char *tp_time_name(tp_time_phase phase)
{
    static const char *const names[TP_TIME_COUNT] = {
        "setup",     "data",       "generation",    "reward",   "logprobs",
        "reference", "advantage",  "forward",       "backward", "grad_norm",
        "optimizer", "validation", "checkpointing", "logging",  "unaccounted"};
    return names[phase];
}

static void note_peak(tp_phases *p)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0 || (uint64_t)u.ru_maxrss * 1024 <= p->peak_bytes)
        return;
    p->peak_bytes = (uint64_t)u.ru_maxrss * 1024;
    p->peak_phase = p->current;
    p->peak_step = p->step;
}

static void charge(tp_phases *p)
{
    uint64_t now = tp_clock_ns();
    p->ns[p->current] += now - p->last_ns;
    p->last_ns = now;
    note_peak(p);
}

void tp_phases_start(tp_phases *p, tp_time_phase first)
{
    memset(p, 0, sizeof *p);
    p->start_ns = p->last_ns = tp_clock_ns();
    p->current = first;
}

tp_time_phase tp_phases_enter(tp_phases *p, tp_time_phase phase)
{
    tp_time_phase before = p->current;
    charge(p);
    p->current = phase;
    return before;
}

void tp_phases_move(tp_phases *p, tp_time_phase from, tp_time_phase to, uint64_t ns)
{
    if (ns > p->ns[from])
        ns = p->ns[from];
    p->ns[from] -= ns;
    p->ns[to] += ns;
}

uint64_t tp_phases_wall(tp_phases *p)
{
    charge(p);
    return p->last_ns - p->start_ns;
}
