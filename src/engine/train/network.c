/* network.c - a network that is described, not there: what a message takes, and how much longer
 * where messages of different ranks share a link.
 *
 * All ranks send at once, each to the one D places away (to it or from it: recursive halving and
 * doubling, or a ring's round).  Ranks lie in a torus as they are numbered, the first dimension
 * fastest, and messages go dimension by dimension, the shorter way round: so far as the digits of
 * D say.  On a ring of n nodes in which each sends h <= n/2 nodes far, h messages are on a link:
 * all of them pass the h links in front of their end, and so it is on the middle link of 2h nodes
 * that exchange halves.  The dimension with the most decides: throughput is the bandwidth over the
 * load of the busiest channel (Dally and Towles, "Principles and Practices of Interconnection
 * Networks", 2004, section 3.3).  Out of a rack of a fat tree goes what its oversubscription
 * leaves. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"
#include "engine/train/plan_ranks.h"

/* ---- what it is called ---- */

typedef struct {
    const char *name; /* NULL: the last is before */
    double factor;
} unit;

static bool take_unit(const char *text, const unit *units, double *ret)
{
    char *end;
    double value = strtod(text, &end);
    while (units->name && strcmp(end, units->name) != 0)
        units++;
    *ret = value * units->factor;
    return units->name && end > text && *ret > 0 && isfinite(*ret);
}

/* "12Gbit/3us"; *ret_rest: what is behind it. */
static bool take_pair(const char *text, const unit *first, const unit *second, double ret[2],
                      const char **ret_rest)
{
    char a[32] = "", b[32] = "";
    int used = 0;
    bool is_pair = sscanf(text, "%31[^/]/%31[^/]%n", a, b, &used) == 2 &&
                   take_unit(a, first, &ret[0]) && take_unit(b, second, &ret[1]);
    *ret_rest = text + used;
    return is_pair;
}

/* "16x8x8" */
static bool take_torus(const char *text, char separator, tp_network_shape *ret)
{
    *ret = (tp_network_shape){.kind = TP_NETWORK_TORUS};
    for (;;) {
        char *end;
        long n = strtol(text, &end, 10);
        if (end == text || n < 1 || n > 65536 || ret->n == TP_NETWORK_DIMENSIONS)
            return false;
        ret->sizes[ret->n++] = (int)n;
        if (!*end)
            return true;
        if (*end != separator)
            return false;
        text = end + 1;
    }
}

/* "32:2", hosts of a rack and how many of them share what goes out of it for one. */
static bool take_racks(const char *text, tp_network_shape *ret)
{
    int hosts, used = 0;
    double ratio;
    if (sscanf(text, "%d:%lf%n", &hosts, &ratio, &used) != 2 || text[used] || hosts < 1 ||
        !(ratio >= 1) || !isfinite(ratio))
        return false;
    *ret = (tp_network_shape){
        .kind = TP_NETWORK_FAT_TREE, .sizes = {hosts}, .n = 1, .oversubscription = ratio};
    return true;
}

static bool take_shape(const char *text, tp_network_shape *ret)
{
    static const char torus[] = "/torus-", tree[] = "/fat-tree-";
    *ret = (tp_network_shape){0};
    if (tp_str_starts(text, torus))
        return take_torus(text + strlen(torus), 'x', ret);
    if (tp_str_starts(text, tree))
        return take_racks(text + strlen(tree), ret);
    return !*text;
}

tp_status tp_network_parse(const char *text, tp_network *ret, tp_error *err)
{
    static const unit rates[] = {
        {"Kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8}, {NULL, 0}};
    static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {NULL, 0}};
    double v[2];
    const char *rest;
    tp_network_shape shape;
    if (!take_pair(text, rates, times, v, &rest) || !take_shape(rest, &shape))
        return tp_fail(err, TP_ERR_ARG,
                       "a network is bandwidth/latency, as in 100Gbit/2us, and its shape where "
                       "links are shared, as in 100Gbit/2us/torus-16x8x8 or "
                       "100Gbit/2us/fat-tree-32:2, not '%.60s'",
                       text);
    *ret = (tp_network){.bytes_per_s = v[0], .latency_s = v[1], .shape = shape};
    snprintf(ret->text, sizeof ret->text, "%s", text);
    return TP_OK;
}

int64_t tp_network_nodes(const tp_network *network)
{
    const tp_network_shape *s = &network->shape;
    int64_t n = 1;
    if (s->kind != TP_NETWORK_TORUS)
        return INT64_MAX;
    for (int i = 0; i < s->n; i++) /* a size is below 2^17, and so is what it is multiplied with */
        n = TP_MIN(n * s->sizes[i], INT64_C(65536));
    return n;
}

tp_status tp_processor_parse(const char *text, tp_machine *ret, tp_error *err)
{
    static const unit rates[] = {{"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}, {NULL, 0}};
    static const unit sizes[] = {{"GB", 1e9}, {"TB", 1e12}, {NULL, 0}};
    double v[2];
    const char *rest;
    if (!take_pair(text, rates, sizes, v, &rest) || *rest)
        return tp_fail(err, TP_ERR_ARG,
                       "a processor is arithmetic/memory in a second, as in 20TFLOP/400GB, not "
                       "'%.60s'",
                       text);
    *ret = (tp_machine){.unit_f32_flops = v[0],
                        .unit_bf16_flops = v[0],
                        .gemm_f32_flops = v[0],
                        .gemm_bf16_flops = v[0],
                        .read_bytes = v[1],
                        .copy_bytes = v[1],
                        .update_bytes = v[1]};
    return TP_OK;
}

/* ---- what a platform of SimGrid's says ---- */

/* The value of an attribute, where there is one such attribute alone. */
static bool find_attribute(const char *text, const char *name, char *out, size_t size)
{
    const char *at = strstr(text, name);
    if (!at || strstr(at + 1, name))
        return false;
    at += strlen(name);
    size_t n = strcspn(at, "\"");
    snprintf(out, size, "%.*s", (int)n, at);
    return n < size;
}

tp_network_shape tp_network_shape_of_platform(const char *xml)
{
    char kind[32], parameters[128];
    tp_network_shape shape = {0};
    int hosts, racks, up, doubled, one, cables;
    if (!find_attribute(xml, "topology=\"", kind, sizeof kind) ||
        !find_attribute(xml, "topo_parameters=\"", parameters, sizeof parameters))
        return shape;
    if (strcmp(kind, "TORUS") == 0 && take_torus(parameters, ',', &shape))
        return shape;
    /* two levels: hosts of a rack, racks; links up; how many cables each is */
    if (strcmp(kind, "FAT_TREE") == 0 &&
        sscanf(parameters, "2;%d,%d;%d,%d;%d,%d", &hosts, &racks, &one, &up, &cables, &doubled) ==
            6 &&
        hosts > 0 && up > 0 && doubled > 0)
        return (tp_network_shape){.kind = TP_NETWORK_FAT_TREE,
                                  .sizes = {hosts},
                                  .n = 1,
                                  .oversubscription =
                                      fmax((double)hosts * cables / ((double)up * doubled), 1)};
    return (tp_network_shape){0};
}

/* ---- what it takes ---- */

/* Messages on the busiest link, or what is as bad, when all send to the rank so far away. */
static double crowd(const tp_network_shape *s, int64_t distance, bool in_halves)
{
    double most = 1;
    for (int i = 0; i < s->n && s->kind == TP_NETWORK_TORUS; i++) {
        int64_t digit = distance % s->sizes[i];
        most = fmax(most, (double)TP_MIN(digit, s->sizes[i] - digit));
        distance /= s->sizes[i];
    }
    if (s->kind != TP_NETWORK_FAT_TREE)
        return most;
    int64_t rack = s->sizes[0];
    bool stays = in_halves && rack % (2 * distance) == 0;
    return stays ? 1 : fmax(s->oversubscription * (double)TP_MIN(distance, rack) / (double)rack, 1);
}

/* Of summing or gathering among n ranks, `stride` places from one to the next: the mean over the
 * bytes of its rounds. */
static double mean_crowd(const tp_network_shape *s, int n, int stride, bool in_halves, bool is_ring)
{
    double sum = 0;
    if (in_halves) /* half of the bytes go half-way, a quarter a quarter of it ... */
        for (int64_t half = 1; half < n; half *= 2)
            sum += (double)half * crowd(s, half * stride, true);
    else if (is_ring)
        return crowd(s, stride, false);
    else /* each part goes from its rank to whose it is */
        for (int64_t far = 1; far < n; far++)
            sum += crowd(s, far * stride, false);
    return sum / (n - 1);
}

double tp_network_seconds(const tp_network *w, tp_collective_kind kind, const tp_begun *b)
{
    const tp_network_shape *s = &w->shape;
    int n = b->ranks;
    if (b->rounds == 0)
        return 0;
    bool is_even = (n & (n - 1)) == 0;
    double summing = mean_crowd(s, n, b->stride, is_even && !b->is_encoded, false);
    double gathering = mean_crowd(s, n, b->stride, is_even, true);
    double factor = kind == TP_ALL_GATHER       ? gathering
                    : kind == TP_REDUCE_SCATTER ? summing
                                                : (summing + gathering) / 2;
    return factor * b->bytes / w->bytes_per_s + b->rounds * w->latency_s;
}
