/* metrics_bench.c - how fast the figures of a run are read, and in how much memory.
 *
 *     metrics_bench write FILE [TAGS [STEPS]]    an event file as torch writes one: a scalar per
 *                                                event, 50 tags and 20,000 steps by default
 *     metrics_bench read RUN [ROUNDS]            opening it, one thread: seconds of processor time,
 *                                                median (least, most), and peak memory */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "instrument/ingest/runs/event_record.h"
#include "temper/analysis.h"

enum { MOST = 101 };

static size_t put_varint(char *out, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (char)(v | 0x80);
    out[n++] = (char)v;
    return n;
}

static size_t put_bytes(char *out, int field, const char *bytes, size_t n)
{
    size_t at = 0;
    out[at++] = (char)(field << 3 | 2);
    at += put_varint(out + at, n);
    memcpy(out + at, bytes, n);
    return at + n;
}

static void put_record(FILE *f, const char *data, size_t n)
{
    uint64_t length = n;
    uint32_t crc = tp_event_checksum(&length, 8);
    fwrite(&length, 8, 1, f);
    fwrite(&crc, 4, 1, f);
    fwrite(data, n, 1, f);
    crc = tp_event_checksum(data, n);
    fwrite(&crc, 4, 1, f);
}

static size_t put_head(char *out, double wall, uint64_t step)
{
    size_t n = 0;
    out[n++] = 1 << 3 | 1;
    memcpy(out + n, &wall, 8);
    n += 8;
    out[n++] = 2 << 3;
    return n + put_varint(out + n, step);
}

static void put_scalar(FILE *f, double wall, uint64_t step, const char *tag, float value)
{
    char v[200], summary[240], event[300];
    size_t n = put_bytes(v, 1, tag, strlen(tag));
    v[n++] = 2 << 3 | 5;
    memcpy(v + n, &value, 4);
    n = put_bytes(summary, 1, v, n + 4);
    size_t at = put_head(event, wall, step);
    put_record(f, event, at + put_bytes(event + at, 5, summary, n));
}

static int write_file(const char *path, long tags, long steps)
{
    FILE *f = fopen(path, "wb");
    char event[64];
    if (!f)
        return 2;
    size_t n = put_head(event, 1.7e9, 0);
    put_record(f, event, n + put_bytes(event + n, 3, "brain.Event:2", 13));
    for (long step = 0; step < steps; step++)
        for (long i = 0; i < tags; i++) {
            char tag[64];
            snprintf(tag, sizeof tag, "train/metric_%02ld", i);
            put_scalar(f, 1.7e9 + (double)step * 0.37, (uint64_t)step, tag,
                       3.0f / (1.0f + 0.001f * (float)step) + 0.01f * (float)((step * 7 + i) % 13));
        }
    return fclose(f) == 0 ? 0 : 4;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int read_run(const char *path, int rounds)
{
    double seconds[MOST];
    size_t n_points = 0;
    struct rusage usage;
    for (int r = 0; r < rounds; r++) {
        tp_metrics *m;
        tp_error err;
        double begin = cpu_s();
        if (tp_metrics_open(path, NULL, &m, &err) != TP_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 2;
        }
        seconds[r] = cpu_s() - begin;
        n_points = 0;
        for (size_t i = 0; i < tp_metrics_count(m); i++) {
            const tp_metric_point *p;
            n_points += tp_metrics_points(m, i, TP_POINTS_NATIVE, &p);
        }
        tp_metrics_close(m);
    }
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_value);
    getrusage(RUSAGE_SELF, &usage);
    printf("%zu points: %.3f s of processor time (%.3f, %.3f), peak %.1f MiB\n", n_points,
           seconds[rounds / 2], seconds[0], seconds[rounds - 1], (double)usage.ru_maxrss / 1024);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "write") == 0)
        return write_file(argv[2], argc > 3 ? atol(argv[3]) : 50, argc > 4 ? atol(argv[4]) : 20000);
    if (argc > 2 && strcmp(argv[1], "read") == 0) {
        int rounds = argc > 3 ? atoi(argv[3]) : 5;
        return read_run(argv[2], rounds < 1 ? 1 : rounds > MOST ? MOST : rounds);
    }
    fprintf(stderr, "usage: metrics_bench write FILE [TAGS [STEPS]] | read RUN [ROUNDS]\n");
    return 2;
}
