/* temper_smpi.c - ranks in SimGrid's SMPI, a plug-in: see engine/comm/world.h.
 *
 * SMPI moves the payload for real, so bytes and bandwidths are both divided by SCALE: times stay,
 * copies shrink.  Content that matters (sums of a step, names of hosts) goes from rank to rank
 * within this process, and a message of its size through the network.
 *
 * Its own collectives are not used, nor its time for computing: seconds pass as they are told. */
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/link.h>
#include <simgrid/version.h>
#include <smpi/smpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xbt/dynar.h>

#include "engine/comm/world.h"

enum { SCALE = 10000, EAGER_BYTES = 65536, STACK_KIB = 256, MOST_REQUESTS = 256 };

/* A link and what went through it. */
typedef struct {
    sg_link_t link;
    double bytes;
} line;

/* From one host to another. */
typedef struct {
    size_t n;
    line *lines[];
} route;

/* Content on its way. */
typedef struct letter {
    struct letter *next;
    int from, tag;
    size_t bytes;
    char data[];
} letter;

typedef struct {
    MPI_Request mpi;
    bool is_used, is_done;
    void *into; /* of a letter; NULL: there is none */
    size_t bytes;
    int from, tag;
} request;

typedef struct {
    int rank, last; /* requests before `last` may be used */
    request requests[MOST_REQUESTS];
    letter *letters;
    route **routes; /* [ranks]; NULL: not known yet */
    tp_transport table;
} citizen;

static struct {
    const tp_world_spec *spec;
    void (*rank)(tp_transport *transport, void *user);
    void *user;
    citizen **citizens;
    sg_host_t *hosts; /* of the ranks */
    line *lines;
    size_t n_lines;
    char *sent, *received; /* payload that means nothing: all ranks share it */
    int room;
} world;

/* ---- messages ---- */

static bool is_nothing(const void *data)
{
    const char *at = data;
    return at >= world.spec->nothing && at < world.spec->nothing + world.spec->nothing_bytes;
}

/* A message that is small has its latency. */
static int scaled(size_t bytes)
{
    size_t n = (bytes + SCALE / 2) / SCALE;
    if (n > (size_t)world.room) {
        fprintf(stderr, "a message of %zu bytes has no room", bytes);
        abort();
    }
    return n ? (int)n : 1;
}

static int take(citizen *c)
{
    for (int i = 0; i < MOST_REQUESTS; i++)
        if (!c->requests[i].is_used) {
            c->requests[i] = (request){.is_used = true, .mpi = MPI_REQUEST_NULL};
            c->last = i >= c->last ? i + 1 : c->last;
            return i;
        }
    return -1;
}

static void post(citizen *from, const void *data, size_t bytes, int to, int tag)
{
    letter *l = malloc(sizeof *l + bytes), **at = &world.citizens[to]->letters;
    if (!l)
        abort();
    *l = (letter){.from = from->rank, .tag = tag, .bytes = bytes};
    memcpy(l->data, data, bytes);
    while (*at)
        at = &(*at)->next;
    *at = l;
}

static void fetch(citizen *c, const request *r)
{
    for (letter **at = &c->letters; *at; at = &(*at)->next) {
        letter *l = *at;
        if (l->from != r->from || l->tag != r->tag)
            continue;
        memcpy(r->into, l->data, l->bytes < r->bytes ? l->bytes : r->bytes);
        *at = l->next;
        free(l);
        return;
    }
}

static route *find_route(int from, int to)
{
    unsigned i;
    sg_link_t link;
    xbt_dynar_t links = xbt_dynar_new(sizeof(sg_link_t), NULL);
    sg_host_get_route(world.hosts[from], world.hosts[to], links);
    route *r = calloc(1, sizeof *r + xbt_dynar_length(links) * sizeof r->lines[0]);
    if (!r)
        abort();
    xbt_dynar_foreach(links, i, link) r->lines[r->n++] = sg_link_get_data(link);
    xbt_dynar_free(&links);
    return r;
}

static void count(citizen *from, int to, size_t bytes)
{
    route **r = &from->routes[to];
    if (!*r)
        *r = find_route(from->rank, to);
    for (size_t i = 0; i < (*r)->n; i++)
        if ((*r)->lines[i])
            (*r)->lines[i]->bytes += (double)bytes;
}

static int send(void *context, const void *data, size_t bytes, int to, int tag)
{
    citizen *c = context;
    int i = take(c);
    if (i < 0)
        return -1;
    if (is_nothing(data))
        count(c, to, bytes);
    else
        post(c, data, bytes, to, tag);
    MPI_Isend(world.sent, scaled(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &c->requests[i].mpi);
    return i;
}

/* Nobody fails here, so that nobody need be listened to. */
static int receive(void *context, void *data, size_t bytes, int from, int tag)
{
    citizen *c = context;
    int i = take(c);
    if (i < 0 || from == TP_ANY_RANK)
        return i;
    request *r = &c->requests[i];
    r->into = is_nothing(data) ? NULL : data;
    r->bytes = bytes;
    r->from = from;
    r->tag = tag;
    MPI_Irecv(world.received, scaled(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD, &r->mpi);
    return i;
}

static int test(void *context, int i)
{
    citizen *c = context;
    request *r = &c->requests[i];
    int done = r->is_done;
    if (!done && r->mpi != MPI_REQUEST_NULL)
        MPI_Test(&r->mpi, &done, MPI_STATUS_IGNORE);
    if (!done)
        return 0;
    if (r->into)
        fetch(c, r);
    *r = (request){.mpi = MPI_REQUEST_NULL};
    return 1;
}

static void cancel(void *context, int i)
{
    citizen *c = context;
    c->requests[i] = (request){.mpi = MPI_REQUEST_NULL};
}

static void wait_for_any(void *context)
{
    citizen *c = context;
    MPI_Request waiting[MOST_REQUESTS];
    int which[MOST_REQUESTS], n = 0, k = 0;
    for (int i = 0; i < c->last; i++)
        if (c->requests[i].is_used && c->requests[i].mpi != MPI_REQUEST_NULL) {
            waiting[n] = c->requests[i].mpi;
            which[n++] = i;
        }
    if (n == 0) {
        fprintf(stderr, "rank %d waits for nothing", c->rank);
        abort();
    }
    MPI_Waitany(n, waiting, &k, MPI_STATUS_IGNORE);
    c->requests[which[k]].is_done = true;
    c->requests[which[k]].mpi = MPI_REQUEST_NULL;
}

/* ---- time ---- */

static uint64_t now_ns(void *context)
{
    (void)context;
    return (uint64_t)(simgrid_get_clock() * 1e9);
}

static void pass(void *context, double seconds)
{
    (void)context;
    sg_actor_sleep_for(seconds);
}

/* ---- a rank ---- */

static int join(void *context, int *ret_rank, int *ret_size, char *why, size_t why_size)
{
    citizen *c = context;
    (void)why, (void)why_size;
    *ret_rank = c->rank;
    *ret_size = world.spec->ranks;
    return 0;
}

static void leave(void *context) { (void)context; }

static void live(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    citizen *c = world.citizens[rank];
    c->table.host = sg_host_get_name(sg_actor_get_host(sg_actor_self()));
    world.rank(&c->table, world.user);
    MPI_Finalize();
}

static void make_citizens(int n)
{
    world.citizens = calloc((size_t)n, sizeof *world.citizens);
    for (int i = 0; i < n && world.citizens; i++) {
        citizen *c = calloc(1, sizeof *c);
        if (!c || !(c->routes = calloc((size_t)n, sizeof(route *))))
            abort();
        c->rank = i;
        c->table = (tp_transport){.version = TP_TRANSPORT_VERSION,
                                  .context = c,
                                  .name = "SMPI",
                                  .open = join,
                                  .send = send,
                                  .receive = receive,
                                  .test = test,
                                  .cancel = cancel,
                                  .close = leave,
                                  .now_ns = now_ns,
                                  .pass = pass,
                                  .pause = wait_for_any};
        world.citizens[i] = c;
    }
}

/* ---- the platform ---- */

/* node-2 before node-10 */
static int by_name(const void *a, const void *b)
{
    return strverscmp(sg_host_get_name(*(const sg_host_t *)a),
                      sg_host_get_name(*(const sg_host_t *)b));
}

/* SimGrid takes who runs where from a file alone. */
static void deploy(sg_host_t *hosts, int n)
{
    char path[64];
    FILE *out = tmpfile();
    if (!out)
        abort();
    fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM "
          "\"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n",
          out);
    for (int i = 0; i < n; i++)
        fprintf(out,
                "<actor host=\"%s\" function=\"temper\"><argument value=\"%d\"/>"
                "<prop id=\"instance_id\" value=\"temper\"/>"
                "<prop id=\"rank\" value=\"%d\"/></actor>\n",
                sg_host_get_name(hosts[i]), i, i);
    fputs("</platform>\n", out);
    fflush(out);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(out));
    simgrid_load_deployment(path);
    fclose(out);
}

/* false: there is no link of that name to be slowed down. */
static bool set_bandwidths(const tp_world_spec *spec)
{
    sg_link_t *links = sg_link_list();
    bool found = !spec->slow_link;
    world.n_lines = sg_link_count();
    world.lines = calloc(world.n_lines + 1, sizeof *world.lines);
    for (size_t i = 0; i < world.n_lines && world.lines; i++) {
        double bandwidth = sg_link_get_bandwidth(links[i]);
        if (spec->slow_link && strcmp(sg_link_get_name(links[i]), spec->slow_link) == 0) {
            bandwidth *= spec->slow_factor;
            found = true;
        }
        world.lines[i].link = links[i];
        sg_link_set_data(links[i], &world.lines[i]);
        sg_link_set_bandwidth(links[i], bandwidth / SCALE);
    }
    return found;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that occurs most often; `v` is sorted. */
static double most_frequent(const double *v, size_t n)
{
    double best = n ? v[0] : 0;
    for (size_t i = 0, most = 0; i < n;) {
        size_t k = i;
        while (k < n && v[k] <= v[i] * 1.0001)
            k++;
        if (k - i > most) {
            most = k - i;
            best = v[i];
        }
        i = k;
    }
    return best;
}

static void insert(tp_world_result *ret, const tp_world_link *link)
{
    int at = ret->n_links < TP_WORLD_LINKS ? ret->n_links++ : TP_WORLD_LINKS;
    while (at > 0 && ret->links[at - 1].busy_s < link->busy_s) {
        if (at < TP_WORLD_LINKS)
            ret->links[at] = ret->links[at - 1];
        at--;
    }
    if (at < TP_WORLD_LINKS)
        ret->links[at] = *link;
}

/* Links that every message has to itself are never busy. */
static void look_at_links(tp_world_result *ret)
{
    size_t n = world.n_lines, used = 0;
    double *busy = calloc(n + 1, sizeof *busy), *rates = calloc(n + 1, sizeof *rates);
    for (size_t i = 0; i < n && busy && rates; i++) {
        const line *l = &world.lines[i];
        if (l->bytes == 0 || !sg_link_is_shared(l->link))
            continue;
        tp_world_link link = {.bytes_per_s = sg_link_get_bandwidth(l->link) * SCALE};
        link.busy_s = l->bytes / link.bytes_per_s;
        snprintf(link.name, sizeof link.name, "%s", sg_link_get_name(l->link));
        busy[used] = link.busy_s;
        rates[used++] = link.bytes_per_s;
        insert(ret, &link);
    }
    if (used) {
        qsort(busy, used, sizeof *busy, compare_doubles);
        qsort(rates, used, sizeof *rates, compare_doubles);
        ret->median_busy_s = busy[used / 2];
        for (int i = 0; i < ret->n_links; i++)
            ret->links[i].usual_bytes_per_s = most_frequent(rates, used);
    }
    free(busy);
    free(rates);
}

/* ---- the world ---- */

static void configure(void)
{
    static char stack[48], eager[48], detached[48];
    /* Bandwidths and latencies are the platform's, without factors for sizes; a look at a request
     * takes no time of its own. */
    char *words[] = {"temper",
                     "--log=root.thres:error",
                     "--cfg=network/model:SMPI",
                     "--cfg=surf/precision:1e-9",
                     "--cfg=smpi/simulate-computation:no",
                     "--cfg=smpi/bw-factor:0:1",
                     "--cfg=smpi/lat-factor:0:1",
                     "--cfg=smpi/test:0",
                     stack,
                     eager,
                     detached,
                     NULL};
    int n = (int)(sizeof words / sizeof *words) - 1;
    snprintf(stack, sizeof stack, "--cfg=contexts/stack-size:%d", STACK_KIB);
    snprintf(eager, sizeof eager, "--cfg=smpi/async-small-thresh:%d", EAGER_BYTES / SCALE);
    /* Whoever sends goes on at once: SimGrid keeps a list of what was only tested, and goes over it
     * at every message. */
    snprintf(detached, sizeof detached, "--cfg=smpi/send-is-detached-thresh:%d", 1 << 30);
    simgrid_init(&n, words);
}

static int refuse(char *why, size_t size, const char *text, int a, int b)
{
    snprintf(why, size, text, a, b);
    return -1;
}

static int run(const tp_world_spec *spec, tp_world_result *ret, char *why, size_t why_size)
{
    configure();
    SMPI_init();
    simgrid_load_platform(spec->platform);
    ret->hosts = (int)sg_host_count();
    if (ret->hosts < spec->ranks)
        return refuse(why, why_size, "it has %d hosts, one for each of %d ranks is needed",
                      ret->hosts, spec->ranks);
    sg_host_t *hosts = sg_host_list();
    qsort(hosts, (size_t)ret->hosts, sizeof *hosts, by_name);
    sg_host_t far = hosts[spec->ranks / 2];
    ret->bytes_per_s = sg_host_get_route_bandwidth(hosts[0], far);
    ret->latency_s = sg_host_get_route_latency(hosts[0], far);
    world.hosts = hosts;
    if (!set_bandwidths(spec)) {
        snprintf(why, why_size, "it has no link '%.80s'; the first is '%.80s'", spec->slow_link,
                 world.n_lines ? sg_link_get_name(world.lines[0].link) : "");
        return -1;
    }
    SMPI_app_instance_register("temper", NULL, spec->ranks);
    simgrid_register_function("temper", live);
    deploy(hosts, spec->ranks);
    simgrid_run();
    ret->seconds = simgrid_get_clock();
    look_at_links(ret);
    return 0;
}

__attribute__((visibility("default"))) tp_world_fn temper_world;
int temper_world(int version, const tp_world_spec *spec,
                 void (*rank)(tp_transport *transport, void *user), void *user,
                 tp_world_result *ret, char *why, size_t why_size)
{
    if (version != TP_WORLD_VERSION)
        return refuse(why, why_size, "the plug-in is of version %d, temper of %d", TP_WORLD_VERSION,
                      version);
    world.spec = spec;
    world.rank = rank;
    world.user = user;
    world.room = (int)(spec->nothing_bytes / SCALE) + (1 << 16);
    world.sent = calloc(1, (size_t)world.room);
    world.received = calloc(1, (size_t)world.room);
    make_citizens(spec->ranks);
    if (!world.sent || !world.received || !world.citizens)
        return refuse(why, why_size, "there is no memory", 0, 0);
    *ret = (tp_world_result){0};
    snprintf(ret->name, sizeof ret->name, "SimGrid %d.%d", SIMGRID_VERSION_MAJOR,
             SIMGRID_VERSION_MINOR);
    return run(spec, ret, why, why_size);
}
