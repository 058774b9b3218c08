/* tune.c - kernels measured for the shapes of a program, and remembered. */
#include "engine/exec/tune.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/build_key.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/platform.h"

enum { MOST_KERNELS = 8, SIGNATURE = 400, MOST_FOUND = 4096, ROUNDS = 5, MAX_FILE = 4 << 20 };
static const double worth_it =
    0.95; /* another kernel takes at most this share of the first's time */
static const double undisturbed = 0.7; /* least share of a processor that the caller must have */

typedef struct {
    char *signature, *kernel;
    bool is_new, is_seen; /* measured by this process; in the report */
} finding;

/* Of the process, whose runs may be several at a time; all that is below is under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static finding found[MOST_FOUND];
static size_t n_found;
static bool is_read;
static tp_tune_report report;

tp_tune_report tp_tune_get_report(void)
{
    pthread_mutex_lock(&lock);
    tp_tune_report now = report;
    pthread_mutex_unlock(&lock);
    return now;
}

void tp_tune_begin(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_found; i++)
        found[i].is_seen = false;
    report = (tp_tune_report){0};
    pthread_mutex_unlock(&lock);
}

void tp_tune_forget(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_found; i++) {
        free(found[i].signature);
        free(found[i].kernel);
    }
    n_found = 0;
    is_read = false;
    report = (tp_tune_report){0};
    pthread_mutex_unlock(&lock);
}

/* ---- what tells launches apart ---- */

static void add_operand(const tp_operand *o, tp_buf *out)
{
    if (o->rank == 0)
        tp_buf_adds(out, " -");
    else
        tp_buf_addf(out, " %s:%lldx%lld/%lld", tp_dtype_name(o->dtype), (long long)o->dim[0],
                    (long long)o->dim[1], (long long)o->stride);
}

static void sign(const tp_launch *l, tp_buf *out)
{
    tp_buf_addf(out, "%s isa=%s threads=%d", tp_ops[l->op]->name, tp_isa_name(tp_cpu_isa()),
                (int)l->threads);
    for (int k = 0; k < l->n_in; k++)
        add_operand(&l->in[k], out);
    tp_buf_adds(out, " >");
    for (int k = 0; k < l->n_out; k++)
        add_operand(&l->out[k], out);
}

static bool is_number(const tp_operand *o)
{
    return o->rank == 0 || o->dtype == TP_DTYPE_F32 || o->dtype == TP_DTYPE_BF16;
}

/* Updates write over what they read; the rest reads and writes apart. */
static bool can_be_measured(const tp_launch *l)
{
    bool can = !(tp_ops[l->op]->traits & TP_OP_UPDATE);
    for (int k = 0; k < l->n_in; k++)
        can &= is_number(&l->in[k]);
    for (int k = 0; k < l->n_out; k++)
        can &= is_number(&l->out[k]);
    return can;
}

/* ---- the file: processor and build, signature, kernel, divided by tabs ---- */

static const char heading[] = "temper kernels 1";

static finding *find(const char *signature)
{
    for (size_t i = 0; i < n_found; i++)
        if (strcmp(found[i].signature, signature) == 0)
            return &found[i];
    return NULL;
}

static finding *remember(const char *signature, size_t n, const char *kernel, size_t n_kernel)
{
    if (n_found == MOST_FOUND)
        return NULL;
    found[n_found] =
        (finding){.signature = strndup(signature, n), .kernel = strndup(kernel, n_kernel)};
    TP_ASSERT(found[n_found].signature && found[n_found].kernel);
    return &found[n_found++];
}

static void read_line(const char *key, const char *line, size_t n)
{
    const char *tab = memchr(line, '\t', n);
    const char *second = tab ? memchr(tab + 1, '\t', n - (size_t)(tab + 1 - line)) : NULL;
    if (second && (size_t)(tab - line) == strlen(key) && memcmp(line, key, strlen(key)) == 0)
        (void)remember(tab + 1, (size_t)(second - tab - 1), second + 1,
                       n - (size_t)(second + 1 - line));
}

/* Whatever is wrong with the file, it is one that is not there. */
static void read_file(void)
{
    char key[TP_BUILD_KEY], path[4096];
    TP_OWN(tp_buf) text = {0};
    is_read = true;
    if (!tp_build_key(key) ||
        tp_cache_path("kernels.txt", false, path, sizeof path, NULL) != TP_OK ||
        tp_file_read(path, MAX_FILE, &text, NULL) != TP_OK)
        return;
    const char *line = tp_buf_str(&text);
    if (tp_str_starts(line, heading))
        for (size_t n; *line; line += n + (line[n] == '\n')) {
            n = strcspn(line, "\n");
            read_line(key, line, n);
        }
}

/* Those of other builds and processors stay. */
static void add_others(const char *path, const char *key, tp_buf *out)
{
    TP_OWN(tp_buf) text = {0};
    if (tp_file_read(path, MAX_FILE, &text, NULL) == TP_OK && tp_str_starts(text.data, heading))
        for (const char *line = text.data + strcspn(text.data, "\n"); *line;) {
            line += *line == '\n';
            size_t n = strcspn(line, "\n");
            if (n && strncmp(line, key, strlen(key)) != 0 && out->len + n < MAX_FILE / 2)
                tp_buf_addf(out, "%.*s\n", (int)n, line);
            line += n;
        }
}

static tp_status keep(void)
{
    char key[TP_BUILD_KEY], path[4096];
    tp_error err = {0};
    TP_MEMORY_GUARD(&err);
    TP_OWN(tp_buf) text = {0};
    bool is_new = false;
    for (size_t i = 0; i < n_found; i++)
        is_new |= found[i].is_new;
    if (!is_new || !tp_build_key(key))
        return TP_OK;
    tp_buf_addf(&text, "%s\n", heading);
    for (size_t i = 0; i < n_found; i++)
        tp_buf_addf(&text, "%s\t%s\t%s\n", key, found[i].signature, found[i].kernel);
    tp_status status = tp_cache_path("kernels.txt", true, path, sizeof path, &err);
    if (status == TP_OK)
        add_others(path, key, &text);
    if (status != TP_OK || tp_file_write_atomic(path, text.data, text.len, &err) != TP_OK)
        snprintf(report.why, sizeof report.why, "not kept: %.80s", err.message);
    return TP_OK;
}

void tp_tune_keep(void)
{
    pthread_mutex_lock(&lock);
    (void)keep();
    pthread_mutex_unlock(&lock);
}

/* ---- measuring ---- */

static size_t bytes_of(const tp_operand *o)
{
    int64_t elements = o->rank == 0   ? 0
                       : o->rank == 1 ? o->dim[0]
                                      : (o->dim[0] - 1) * o->stride + o->dim[1];
    return ((size_t)elements * tp_dtype_size(o->dtype) + 63) / 64 * 64;
}

static size_t lay_out(tp_launch *l, tp_buffer *buffer)
{
    size_t at = 0;
    for (int k = 0; k < l->n_in + l->n_out; k++) {
        tp_operand *o = k < l->n_in ? &l->in[k] : &l->out[k - l->n_in];
        o->data = NULL;
        o->span = o->rank ? (tp_span){buffer, at} : (tp_span){0};
        at += bytes_of(o);
    }
    l->workspace_span = (tp_span){buffer, at};
    return at + l->workspace_bytes;
}

/* 0.5 and a little more in either type: neither zero nor denormal. */
static tp_status fill(tp_buffer *buffer, size_t bytes, tp_error *err)
{
    uint32_t words[4096];
    for (size_t i = 0; i < TP_COUNTOF(words); i++)
        words[i] = 0x3f003f00u | (uint32_t)(i * 2654435761u >> 9 & 0x007f007fu);
    for (size_t at = 0; at < bytes; at += sizeof words)
        TP_TRY(tp_span_write((tp_span){buffer, at}, words, TP_MIN(sizeof words, bytes - at), err));
    return TP_OK;
}

/* The best of some rounds; the caller works in all of them, so its processor time tells whether
 * others were running. */
static tp_status time_launch(tp_device *device, tp_launch *l, double *ret, char why[96],
                             tp_error *err)
{
    double best = INFINITY, wall = 0, busy = tp_thread_cpu_s();
    for (int i = 0; i < ROUNDS; i++) {
        double start = tp_clock_s();
        TP_TRY(tp_device_submit(device, l, 1, err));
        TP_TRY(tp_device_wait(device, err));
        double s = tp_clock_s() - start;
        best = fmin(best, s);
        wall += s;
    }
    busy = (tp_thread_cpu_s() - busy) / wall;
    *ret = busy < undisturbed ? NAN : best;
    if (isnan(*ret))
        snprintf(why, 96, "busy: %.0f %% of a processor", 100 * busy);
    return TP_OK;
}

static double clock_launch(tp_device *device, const tp_launch *launch, const tp_kernel *kernel,
                           char why[96])
{
    tp_launch l = *launch;
    tp_error err = {0};
    tp_buffer *buffer = NULL;
    double s = NAN;
    l.kernel = kernel;
    l.accumulate = true;
    l.workspace_bytes = tp_kernel_workspace(kernel, &l);
    size_t bytes = lay_out(&l, NULL);
    tp_status status = tp_buffer_alloc(device, TP_MEM_WORKSPACE, bytes, &buffer, &err);
    if (status == TP_OK) {
        lay_out(&l, buffer);
        status = fill(buffer, bytes, &err);
    }
    if (status == TP_OK)
        status = time_launch(device, &l, &s, why, &err);
    if (status != TP_OK)
        snprintf(why, 96, "%.90s", err.message);
    tp_buffer_free(buffer);
    return s;
}

static tp_tune_clock *clock_in_use = clock_launch;
void tp_tune_set_clock(tp_tune_clock *clock) { clock_in_use = clock ? clock : clock_launch; }

/* The fastest; NULL when one of them could not be measured. */
static const tp_kernel *fastest(tp_device *device, const tp_launch *l,
                                const tp_kernel *const *kernels, size_t n)
{
    double best = clock_in_use(device, l, kernels[0], report.why) * worth_it;
    const tp_kernel *winner = kernels[0];
    for (size_t i = 1; i < n && !isnan(best); i++) {
        double s = clock_in_use(device, l, kernels[i], report.why);
        if (isnan(s))
            return NULL;
        if (s < best) {
            best = s;
            winner = kernels[i];
        }
    }
    return isnan(best) ? NULL : winner;
}

/* ---- choosing ---- */

static const tp_kernel *named(const char *name, const tp_kernel *const *kernels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(kernels[i]->name, name) == 0)
            return kernels[i];
    return NULL;
}

static const tp_kernel *look_up(finding *f, const tp_kernel *const *kernels, size_t n)
{
    const tp_kernel *kernel = named(f->kernel, kernels, n);
    if (kernel && !f->is_seen) {
        report.shapes++;
        report.changed += kernel != kernels[0];
        f->is_seen = true;
    }
    return kernel;
}

/* Once something could not be measured the rest is left alone: the run should begin. */
static finding *measure(tp_device *device, const tp_launch *l, const char *signature,
                        const tp_kernel *const *kernels, size_t n)
{
    const tp_kernel *winner = report.why[0] ? NULL : fastest(device, l, kernels, n);
    finding *f =
        winner ? remember(signature, strlen(signature), winner->name, strlen(winner->name)) : NULL;
    if (f) {
        f->is_new = true;
        report.measured++;
    }
    return f;
}

/* *ret stays as it is where nothing is known. */
static tp_status choose(tp_device *device, const tp_launch *l, bool measures, const char *signature,
                        const tp_kernel *const *kernels, size_t n, const tp_kernel **ret)
{
    tp_error err;
    TP_MEMORY_GUARD(&err);
    if (!is_read)
        read_file();
    finding *f = find(signature);
    if (!f && measures)
        f = measure(device, l, signature, kernels, n);
    const tp_kernel *kernel = f ? look_up(f, kernels, n) : NULL;
    *ret = kernel ? kernel : *ret;
    return TP_OK;
}

const tp_kernel *tp_tuned_kernel(tp_device *device, const tp_launch *launch,
                                 tp_kernel_tuning tuning, const tp_kernel *usual)
{
    const tp_kernel *kernels[MOST_KERNELS];
    if (tuning == TP_TUNE_OFF || !usual || !can_be_measured(launch))
        return usual;
    size_t n = tp_kernels_usable(device, launch, kernels, MOST_KERNELS);
    if (n < 2 || kernels[0] != usual)
        return usual;
    TP_OWN(tp_buf) signature = {0};
    sign(launch, &signature);
    pthread_mutex_lock(&lock);
    (void)choose(device, launch, tuning == TP_TUNE_MEASURE, signature.data, kernels, n, &usual);
    pthread_mutex_unlock(&lock);
    return usual;
}
