/* file_sums.c - XXH3-128 of what is written, where it goes out. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/files_internal.h"
#include "base/platform.h"

static void put_hash(XXH128_hash_t h, char ret[33])
{
    snprintf(ret, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

void tp_hash_bytes(const void *data, size_t n, char ret[33])
{
    put_hash(XXH3_128bits(data, n), ret);
}

void tp_hash_digest(const void *state, char ret[33]) { put_hash(XXH3_128bits_digest(state), ret); }

typedef struct written {
    struct written *next;
    char *path;
    char (*pieces)[33]; /* "": not known */
    size_t n;
    XXH3_state_t *state; /* of the piece that holds the byte before `at`, from its first one on */
    uint64_t at;
    bool is_open; /* the state is of use: what comes at `at` is its next */
} written;

struct tp_file_sums {
    written *files;
};

static _Thread_local tp_file_sums *watching;

tp_file_sums *tp_file_sums_begin(void)
{
    watching = tp_new(1, sizeof *watching);
    return watching;
}

void tp_file_sums_end(tp_file_sums *sums)
{
    for (written *f = sums->files, *next; f; f = next) {
        next = f->next;
        XXH3_freeState(f->state);
        free(f->pieces);
        free(f->path);
        free(f);
    }
    free(sums);
    watching = NULL;
}

static written *find(const tp_file_sums *sums, const char *path)
{
    written *f = sums->files;
    while (f && strcmp(f->path, path) != 0)
        f = f->next;
    return f;
}

static written *find_or_add(tp_file_sums *sums, const char *path)
{
    written *f = find(sums, path);
    if (f)
        return f;
    f = tp_new(1, sizeof *f);
    *f = (written){.next = sums->files, .path = tp_strdup(path), .state = XXH3_createState()};
    TP_HAVE(f->state);
    sums->files = f;
    return f;
}

/* Bytes of one piece. */
static void add(written *f, uint64_t at, const char *data, size_t n)
{
    size_t piece = (size_t)(at / TP_FILE_PIECE);
    if (piece >= f->n) {
        f->pieces = tp_grow(f->pieces, piece + 1, sizeof *f->pieces);
        memset(f->pieces + f->n, 0, (piece + 1 - f->n) * sizeof *f->pieces);
        f->n = piece + 1;
    }
    f->pieces[piece][0] = 0;
    if (at % TP_FILE_PIECE == 0)
        XXH3_128bits_reset(f->state);
    f->is_open = at % TP_FILE_PIECE == 0 || (f->is_open && f->at == at);
    if (!f->is_open)
        return;
    XXH3_128bits_update(f->state, data, n);
    f->at = at + n;
    if (f->at % TP_FILE_PIECE)
        return;
    tp_hash_digest(f->state, f->pieces[piece]);
    f->is_open = false;
}

void tp_files_written(const char *path, uint64_t at, const char *data, size_t n)
{
    if (!watching)
        return;
    written *f = find_or_add(watching, path);
    while (n) {
        size_t part = TP_MIN(n, (size_t)(TP_FILE_PIECE - at % TP_FILE_PIECE));
        add(f, at, data, part);
        at += part;
        data += part;
        n -= part;
    }
}

void tp_files_replaced(const char *path)
{
    written *f = watching ? find(watching, path) : NULL;
    if (f) {
        f->n = 0;
        f->is_open = false;
    }
}

bool tp_file_sums_find(const tp_file_sums *sums, const char *path, uint64_t bytes, size_t piece,
                       char ret_hash[33])
{
    const written *f = find(sums, path);
    if (!f || piece >= f->n)
        return false;
    if (f->pieces[piece][0])
        memcpy(ret_hash, f->pieces[piece], sizeof *f->pieces);
    else if (f->is_open && f->at == bytes && (bytes - 1) / TP_FILE_PIECE == piece)
        tp_hash_digest(f->state, ret_hash);
    else
        return false;
    return true;
}
