/* file_hash.c - XXH3-128 of files that are read, whole or in pieces. */
#include <xxhash.h>

#include "base/files_internal.h"
#include "base/platform.h"
#include "base/working.h"

typedef struct {
    const char *path;
    uint64_t at, bytes;
    bool (*progress)(void *user, uint64_t done, uint64_t total); /* or NULL */
    void *user;
    XXH3_state_t *state;
    uint64_t done, total;
} hashing;

static tp_status hash_chunk(void *context, const char *data, size_t n, tp_error *err)
{
    hashing *h = context;
    XXH3_128bits_update(h->state, data, n);
    tp_job_add(n);
    h->done += n;
    if (h->progress && !h->progress(h->user, h->done, TP_MAX(h->done, h->total)))
        return tp_fail(err, TP_ERR_INTERRUPTED, "interrupted while reading %s", h->path);
    return TP_OK;
}

static tp_status hash_range(hashing h, char ret_hash[33], tp_error *err)
{
    h.state = XXH3_createState();
    if (!h.state)
        return tp_fail(err, TP_ERR_NOMEM, "cannot hash %s: out of memory", h.path);
    XXH3_128bits_reset(h.state);
    tp_status status = tp_files_each_chunk(h.path, h.at, h.bytes, hash_chunk, &h, err);
    if (status == TP_OK)
        tp_hash_digest(h.state, ret_hash);
    XXH3_freeState(h.state);
    return status;
}

tp_status tp_file_hash(const char *path, char ret_hash[33], tp_error *err)
{
    return hash_range((hashing){.path = path, .bytes = UINT64_MAX}, ret_hash, err);
}

tp_status tp_file_hash_slowly(const char *path,
                              bool (*progress)(void *user, uint64_t done, uint64_t total),
                              void *user, char ret_hash[33], tp_error *err)
{
    int64_t size = tp_file_size(path); /* below 0: reading it says why */
    return hash_range((hashing){.path = path,
                                .bytes = UINT64_MAX,
                                .progress = progress,
                                .user = user,
                                .total = size > 0 ? (uint64_t)size : 0},
                      ret_hash, err);
}

size_t tp_file_pieces(uint64_t bytes)
{
    return bytes ? (size_t)((bytes + TP_FILE_PIECE - 1) / TP_FILE_PIECE) : 1;
}

tp_status tp_file_hash_piece(const char *path, size_t piece, char ret_hash[33], tp_error *err)
{
    return hash_range(
        (hashing){.path = path, .at = (uint64_t)piece * TP_FILE_PIECE, .bytes = TP_FILE_PIECE},
        ret_hash, err);
}

tp_status tp_file_join_hashes(const char (*pieces)[33], size_t n, char ret_hash[33], tp_error *err)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return tp_fail(err, TP_ERR_NOMEM, "cannot hash %zu pieces: out of memory", n);
    XXH3_128bits_reset(state);
    for (size_t i = 0; i < n; i++)
        XXH3_128bits_update(state, pieces[i], 32);
    tp_hash_digest(state, ret_hash);
    XXH3_freeState(state);
    return TP_OK;
}
