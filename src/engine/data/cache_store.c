/* cache_store.c - where token caches lie, and who builds one while others wait. */
#include "engine/data/cache_store.h"
#include "engine/data/cache_shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static bool usable(const char *folder, tp_error *err)
{
    if (tp_dir_make(folder, err) != TP_OK)
        return false;
    if (access(folder, W_OK | X_OK) == 0)
        return true;
    tp_fail(err, TP_ERR_OUTPUT, "cannot write in %s: %s", folder, strerror(errno));
    return false;
}

/* The XDG base directory specification; a relative path there is to be ignored. */
static bool user_folder(tp_buf *out)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (xdg && xdg[0] == '/')
        tp_buf_addf(out, "%s/temper", xdg);
    else if (home && home[0] == '/')
        tp_buf_addf(out, "%s/.cache/temper", home);
    else
        return false;
    return true;
}

tp_status tp_cache_folder(const char *wanted, const char *fallback, tp_buf *ret, tp_error *err)
{
    tp_buf folder = {0};
    tp_error why;
    if (wanted)
        tp_buf_adds(&folder, wanted);
    else if (!user_folder(&folder))
        tp_fail(&why, TP_ERR_CONFIG, "neither XDG_CACHE_HOME nor HOME names a folder");
    bool fine = folder.len && usable(folder.data, &why);
    if (!fine && fallback) {
        tp_log(TP_LOG_NOTICE, "data", "%s; the token cache goes to %s", why.message, fallback);
        tp_buf_clear(&folder);
        tp_buf_adds(&folder, fallback);
        fine = usable(folder.data, &why);
    }
    if (fine)
        tp_buf_add(ret, folder.data, folder.len);
    tp_buf_release(&folder);
    if (!fine)
        return tp_fail(err, TP_ERR_IO, "no folder for the token cache: %s; set data.cache_dir",
                       why.message);
    return TP_OK;
}

tp_status tp_cache_where(const char *wanted, tp_buf *ret, tp_error *err)
{
    if (wanted)
        tp_buf_adds(ret, wanted);
    else if (!user_folder(ret))
        return tp_fail(err, TP_ERR_CONFIG, "neither XDG_CACHE_HOME nor HOME names a folder");
    return TP_OK;
}

typedef struct {
    const char *key;
    const tp_corpus *corpus;
    const char *source_hash;
    char *path, *beside;
} wish;

static bool same_file(int fd, const char *path)
{
    struct stat ours, theirs;
    return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

/* The lock of the file beside; waits for another writer, and starts over when that one
 * renamed or removed the file.  Where locks do not work, goes on without. */
static tp_status lock_beside(const char *path, int *ret_fd, tp_error *err)
{
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return tp_fail(err, TP_ERR_OUTPUT, "cannot create %s: %s; set data.cache_dir", path,
                           strerror(errno));
        int failed;
        do
            failed = flock(fd, LOCK_EX);
        while (failed != 0 && errno == EINTR);
        if (failed != 0 || same_file(fd, path)) {
            *ret_fd = fd;
            return TP_OK;
        }
        close(fd);
    }
}

/* Every record once, where that takes no time; larger ones are checked as they are read. */
static tp_status check_records(const tp_cache *cache, tp_error *err)
{
    const size_t most = (size_t)1 << 30; /* bytes: a fraction of a second */
    tp_sample sample;
    uint64_t n = cache->size <= most ? cache->counts.n_examples : 0;
    for (uint64_t i = 0; i < n; i++)
        TP_TRY(tp_cache_get(cache, i, &sample, err));
    return TP_OK;
}

/* Open what is there; more bad rows than are allowed now make it useless, too. */
static tp_status try_open(const wish *w, tp_cache *ret, tp_error *err)
{
    tp_cache cache;
    TP_TRY(tp_cache_open(w->path, w->key, &cache, err));
    int64_t allowed = w->corpus->skip_bad;
    uint64_t bad = cache.counts.n_bad;
    int32_t vocabulary = tp_tokenizer_vocab_size(tp_renderer_tokenizer(w->corpus->renderer));
    tp_status status = TP_OK;
    if (allowed >= 0 && bad > (uint64_t)allowed)
        status = tp_fail(err, TP_ERR_FORMAT, "%s left out %llu bad rows", w->path,
                         (unsigned long long)bad);
    else if (cache.counts.max_id >= vocabulary)
        status = tp_fail(err, TP_ERR_FORMAT, "%s has token id %d, the vocabulary has %d", w->path,
                         cache.counts.max_id, vocabulary);
    else
        status = check_records(&cache, err);
    TP_HAND_OVER(status, ret, cache, tp_cache_close(&cache));
}

static tp_status build_beside(const wish *w, tp_cache_outcome *outcome, tp_error *err)
{
    double begin = tp_clock_s();
    TP_TRY(tp_corpus_build(w->corpus, w->beside, w->key, &outcome->built, err));
    outcome->build_s = tp_clock_s() - begin;
    if (w->source_hash[0] && strcmp(w->source_hash, outcome->built.source_hash) != 0)
        return tp_fail(err, TP_ERR_IO, "%s changed while it was read; start again",
                       w->corpus->path);
    return tp_rename_synced(w->beside, w->path, err);
}

/* Held: the lock of the file beside. */
static tp_status open_or_build(const wish *w, tp_cache *ret, tp_cache_outcome *outcome,
                               tp_error *err)
{
    tp_error why = {0};
    if (tp_file_exists(w->path)) {
        if (try_open(w, ret, &why) == TP_OK) { /* another process was faster */
            outcome->hit = true;
            unlink(w->beside);
            return TP_OK;
        }
        snprintf(outcome->rebuilt_because, sizeof outcome->rebuilt_because, "%s", why.message);
        tp_log(TP_LOG_NOTICE, "data", "%s: tokenising again", why.message);
    }
    tp_status status = build_beside(w, outcome, err);
    if (status != TP_OK) {
        unlink(w->beside);
        return status;
    }
    return tp_cache_open(w->path, w->key, ret, err);
}

tp_status tp_cache_obtain(const char *folder, const char *key, const tp_corpus *corpus,
                          const char *source_hash, tp_cache *ret, tp_cache_outcome *ret_outcome,
                          tp_error *err)
{
    TP_OWN(tp_buf) path = {0}, beside = {0};
    tp_buf_addf(&path, "%s/%s.tokens", folder, key);
    tp_buf_addf(&beside, "%s.tmp", path.data);
    wish w = {key, corpus, source_hash, path.data, beside.data};
    tp_cache_outcome outcome = {0};
    tp_status status = TP_OK;
    int fd = -1;
    if (tp_file_exists(w.path) && try_open(&w, ret, NULL) == TP_OK) {
        outcome.hit = true;
    } else {
        status = lock_beside(w.beside, &fd, err);
        if (status == TP_OK)
            status = open_or_build(&w, ret, &outcome, err);
        if (fd >= 0)
            close(fd);
    }
    if (status == TP_OK) {
        *ret_outcome = outcome;
        tp_cache_touch(w.path);
    }
    return status;
}
