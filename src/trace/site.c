/* site.c - sites made at run time: one object per content, kept until the process ends. */
#include <string.h>

#include "trace/internal.h"

enum { BUCKETS = 1024 };

typedef struct entry entry;
struct entry {
    tp_trace_site site;
    entry *next;
};

static entry *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t mix(uint32_t hash, const char *text) /* FNV-1a */
{
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash * 16777619u;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool copy(const char *text, const char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return *ret || !text;
}

/* Held: lock.  NULL without memory. */
static entry *make(const char *category, const char *name, const char *args)
{
    entry *e = calloc(1, sizeof *e);
    bool has = e && copy(category, &e->site.category) && copy(name, &e->site.name) &&
               copy(args, &e->site.args);
    return has ? e : NULL;
}

const tp_trace_site *tp_trace_site_make(const char *category, const char *name, const char *args)
{
    TP_OWN(tp_buf) quoted = {0};
    if (args && !tp_trace_is_json(args, true)) {
        tp_buf_adds(&quoted, "{\"text\":");
        tp_json_quote(&quoted, args, strlen(args));
        tp_buf_addc(&quoted, '}');
        args = quoted.data;
    }
    entry **bucket = &buckets[mix(mix(mix(2166136261u, category), name), args) % BUCKETS], *e;
    pthread_mutex_lock(&lock);
    for (e = *bucket; e; e = e->next)
        if (is_same(e->site.category, category) && is_same(e->site.name, name) &&
            is_same(e->site.args, args))
            break;
    if (!e) {
        e = make(category, name, args);
        if (!e)
            pthread_mutex_unlock(&lock);
        TP_HAVE(e);
        e->next = *bucket;
        *bucket = e;
    }
    pthread_mutex_unlock(&lock);
    return &e->site;
}
