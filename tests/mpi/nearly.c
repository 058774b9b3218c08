/* nearly.c - whether two runs came to the same within rounding.
 *
 *     nearly RUN OTHER RELATIVE ABSOLUTE
 *
 * Every loss and gradient norm of OTHER is within RELATIVE of RUN's (of 0.1 where it is smaller),
 * every f32 number of its newest checkpoint within ABSOLUTE; and they have the same steps, counts
 * and tensors.  With 0 0 the bits are the same.  Prints the first thing that is not. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "engine/model/safetensors.h"
#include "text/json/json.h"

static const char *const figures[] = {"train/loss",
                                      "train/grad_norm",
                                      "train/global_valid_toks",
                                      "train/global_valid_seqs",
                                      "train/accuracy",
                                      "train/reward",
                                      "validation/val_loss",
                                      "validation/accuracy",
                                      "validation/global_valid_toks"};

/* Losses of policies are differences of advantages of about 1, which cancel. */
#define SMALL 0.1

static tp_arena arena;

static int different(const char *what, double a, double b)
{
    fprintf(stderr, "nearly: %s is %.9g and %.9g\n", what, a, b);
    return 1;
}

static const tp_json *parse_line(const char *line, size_t n)
{
    const tp_json *root = NULL;
    tp_error err;
    if (tp_json_parse(&arena, "metrics", line, n, NULL, &root, &err) != TP_OK)
        fprintf(stderr, "nearly: %s\n", err.message);
    return root;
}

/* The next line that has one of the figures: other records may come once for every attempt. */
static const tp_json *next_record(const char **at)
{
    while (**at) {
        size_t n = strcspn(*at, "\n");
        const tp_json *record = parse_line(*at, n);
        *at += n + ((*at)[n] == '\n');
        for (size_t i = 0; record && i < sizeof figures / sizeof *figures; i++)
            if (tp_json_get(tp_json_get(record, "m"), figures[i]))
                return record;
    }
    return NULL;
}

static int compare_records(const tp_json *a, const tp_json *b, double relative)
{
    double x, y;
    char what[200];
    if (!a || !b)
        return 1;
    if (tp_json_f64(tp_json_get(a, "step"), &x) != tp_json_f64(tp_json_get(b, "step"), &y) ||
        x != y)
        return different("step", x, y);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        bool in_a = tp_json_f64(tp_json_get(tp_json_get(a, "m"), figures[i]), &x);
        bool in_b = tp_json_f64(tp_json_get(tp_json_get(b, "m"), figures[i]), &y);
        snprintf(what, sizeof what, "%s", figures[i]);
        if (in_a != in_b || (in_a && !(fabs(x - y) <= relative * fmax(fabs(x), SMALL))))
            return different(what, in_a ? x : NAN, in_b ? y : NAN);
    }
    return 0;
}

static int compare_metrics(const char *a, const char *b, double relative)
{
    char path[4096];
    tp_buf x = {0}, y = {0};
    tp_error err;
    snprintf(path, sizeof path, "%s/metrics.jsonl", a);
    if (tp_file_read(path, 1 << 26, &x, &err) != TP_OK)
        return fprintf(stderr, "nearly: %s\n", err.message), 1;
    snprintf(path, sizeof path, "%s/metrics.jsonl", b);
    if (tp_file_read(path, 1 << 26, &y, &err) != TP_OK)
        return fprintf(stderr, "nearly: %s\n", err.message), 1;
    const char *p = tp_buf_str(&x), *q = tp_buf_str(&y);
    int bad = 0, n = 0;
    for (const tp_json *r = next_record(&p), *t = next_record(&q); (r || t) && !bad; n++) {
        bad = compare_records(r, t, relative);
        r = next_record(&p);
        t = next_record(&q);
    }
    tp_buf_release(&x);
    tp_buf_release(&y);
    return bad || n == 0 ? (fprintf(stderr, "nearly: at record %d\n", n), 1) : 0;
}

static int compare_files(const char *a, const char *b, double absolute)
{
    tp_safetensors *x, *y;
    tp_error err;
    if (tp_safetensors_open(a, &x, &err) != TP_OK || tp_safetensors_open(b, &y, &err) != TP_OK)
        return fprintf(stderr, "nearly: %s\n", err.message), 1;
    int bad = tp_safetensors_count(x) != tp_safetensors_count(y);
    for (size_t i = 0; i < tp_safetensors_count(x) && !bad; i++) {
        const tp_tensor_entry *e = tp_safetensors_at(x, i);
        const tp_tensor_entry *f = tp_safetensors_find(y, e->name);
        bad = !f || f->bytes != e->bytes || f->rank != e->rank;
        bool is_moment = strncmp(e->name, "adam_", 5) == 0;
        const float *p = e->data, *q = f ? f->data : NULL;
        for (size_t k = 0; e->dtype == TP_DTYPE_F32 && k < e->bytes / 4 && !bad; k++) {
            double most = is_moment && absolute > 0 ? 1e-2 * fabs((double)p[k]) + 1e-3 : absolute;
            if (!(fabs((double)p[k] - (double)q[k]) <= most))
                bad = different(e->name, (double)p[k], (double)q[k]);
        }
        if (bad)
            fprintf(stderr, "nearly: %s: %s\n", b, e->name);
    }
    tp_safetensors_close(x);
    tp_safetensors_close(y);
    return bad;
}

/* "RUN/checkpoints/step-N/file" of the largest N. */
static void newest(const char *run, const char *file, char *out, size_t size)
{
    char path[2048];
    long best = -1;
    snprintf(path, sizeof path, "%s/checkpoints", run);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        long n;
        if (sscanf(e->d_name, "step-%ld", &n) == 1 && n > best)
            best = n;
    }
    if (dir)
        closedir(dir);
    snprintf(out, size, "%s/step-%ld/%s", path, best, file);
}

int main(int argc, char **argv)
{
    static const char *const files[] = {"model/model.safetensors", "optimizer.safetensors"};
    char a[4096], b[4096];
    tp_error err;
    if (argc != 5 || tp_arena_init(&arena, 1 << 28, &err) != TP_OK)
        return 2;
    int bad = compare_metrics(argv[1], argv[2], strtod(argv[3], NULL));
    for (size_t i = 0; i < sizeof files / sizeof *files && !bad; i++) {
        newest(argv[1], files[i], a, sizeof a);
        newest(argv[2], files[i], b, sizeof b);
        bad = compare_files(a, b, strtod(argv[4], NULL));
    }
    return bad;
}
