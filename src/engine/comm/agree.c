/* agree.c - small things that all ranks know together: sums, facts, failures. */
#include <string.h>

#include "engine/comm/comm_internal.h"

static tp_status gather_parts(tp_comm *c, void *all, const size_t *starts, tp_error *err)
{
    const tp_exchange_spec gather = {
        .kind = TP_ALL_GATHER, .element = 1, .data = all, .starts = starts};
    return tp_comm_exchange(c, &gather, err);
}

static size_t *new_starts(const tp_comm *c)
{
    size_t *starts = tp_new((size_t)tp_comm_size(c) + 1, sizeof *starts);
    return starts;
}

tp_status tp_comm_gather(tp_comm *c, const void *mine, size_t bytes, void *ret, tp_error *err)
{
    TP_FREED size_t *starts = new_starts(c);
    int n = tp_comm_size(c);
    for (int i = 0; i <= n; i++)
        starts[i] = (size_t)i * bytes;
    memcpy((char *)ret + starts[tp_comm_rank(c)], mine, bytes);
    return gather_parts(c, ret, starts, err);
}

tp_status tp_comm_broadcast(tp_comm *c, void *data, size_t bytes, int from, tp_error *err)
{
    TP_FREED size_t *starts = new_starts(c);
    for (int i = from + 1; i <= tp_comm_size(c); i++)
        starts[i] = bytes;
    return gather_parts(c, data, starts, err);
}

static tp_status combine(tp_comm *c, double *values, size_t n, bool is_max, tp_error *err)
{
    if (tp_comm_size(c) == 1)
        return TP_OK;
    TP_FREED double *all = tp_new((size_t)c->size * n, sizeof *all);
    TP_TRY(tp_comm_gather(c, values, n * sizeof *values, all, err));
    for (size_t k = 0; k < n; k++) {
        values[k] = all[k];
        for (int i = 1; i < c->size; i++) {
            double x = all[(size_t)i * n + k];
            values[k] = !is_max ? values[k] + x : x > values[k] ? x : values[k];
        }
    }
    return TP_OK;
}

tp_status tp_comm_sum(tp_comm *c, double *values, size_t n, tp_error *err)
{
    return combine(c, values, n, false, err);
}

tp_status tp_comm_max(tp_comm *c, double *values, size_t n, tp_error *err)
{
    return combine(c, values, n, true, err);
}

static tp_status agree_on(tp_comm *c, const tp_failure *all, tp_error *err)
{
    int first = 0;
    bool all_the_same = true;
    while (first < c->size && all[first].status == TP_OK)
        first++;
    if (first == c->size)
        return TP_OK;
    for (int i = 0; i < c->size; i++)
        all_the_same &= strcmp(all[i].text, all[first].text) == 0;
    tp_status status = (tp_status)all[first].status;
    if (!all_the_same)
        (void)!tp_fail(err, status, "rank %d (%s): %s", first, c->places[first].host,
                       all[first].text);
    else if (err && err->status != status) /* the rest of a long message is this rank's own */
        (void)!tp_fail(err, status, "%s", all[first].text);
    c->has_failed = true; /* and everybody knows */
    if (err)
        c->failure = *err;
    c->failure.status = status;
    return status;
}

tp_status tp_comm_agree(tp_comm *c, tp_status status, tp_error *err)
{
    if (tp_comm_size(c) == 1)
        return status;
    if (c->has_failed) /* there is nobody to ask */
        return status != TP_OK ? status : tp_comm_listen(c, err);
    tp_failure mine = {.rank = c->rank, .status = (int32_t)status};
    if (status != TP_OK && err)
        snprintf(mine.text, sizeof mine.text, "%s", err->message);
    TP_FREED tp_failure *all = tp_new((size_t)c->size, sizeof *all);
    tp_error told;
    tp_status told_status = tp_comm_gather(c, &mine, sizeof mine, all, &told);
    if (told_status == TP_OK)
        told_status = agree_on(c, all, err);
    else if (status != TP_OK)
        told_status = status;
    else if (err)
        *err = told;
    return told_status;
}

enum { HASH = sizeof((tp_comm_fact *)0)->hash };

/* "rank 2 (host), rank 4 (host)": of those that should have what rank `from` has. */
static void list_others(const tp_comm *c, const char (*all)[HASH], size_t stride, int from,
                        int every, char *out, size_t size)
{
    size_t used = 0;
    for (int i = from + every; i < c->size && used < size; i += every)
        if (strcmp(all[(size_t)from * stride], all[(size_t)i * stride]) != 0)
            used += (size_t)snprintf(out + used, size - used, "%srank %d (%s)", used ? ", " : "", i,
                                     c->places[i].host);
}

/* `all` begins with rank 0's. */
static tp_status compare_one(const tp_comm *c, const tp_comm_fact *fact, const char (*all)[HASH],
                             size_t stride, tp_error *err)
{
    char who[1024] = "";
    int every = fact->every > 0 ? fact->every : 1;
    for (int from = 0; from < every && from < c->size; from++) {
        list_others(c, all, stride, from, every, who, sizeof who);
        if (*who)
            return tp_fail(
                err, TP_ERR_CONFIG, "ranks do not have the same %s: %s differ%s from rank %d (%s)",
                fact->what, who, strchr(who, ',') ? "" : "s", from, c->places[from].host);
    }
    return TP_OK;
}

tp_status tp_comm_compare(tp_comm *c, const tp_comm_fact *facts, size_t n, tp_error *err)
{
    if (tp_comm_size(c) == 1)
        return TP_OK;
    char(*mine)[HASH] = calloc((size_t)(c->size + 1) * n, sizeof *mine), (*all)[HASH] = mine + n;
    TP_HAVE(mine);
    for (size_t k = 0; k < n; k++)
        memcpy(mine[k], facts[k].hash, HASH);
    tp_status status = tp_comm_gather(c, mine, n * sizeof *mine, all, err);
    for (size_t k = 0; k < n && status == TP_OK; k++)
        status = compare_one(c, &facts[k], (const char(*)[HASH])all + k, n, err);
    free(mine);
    return tp_comm_agree(c, status, err);
}
