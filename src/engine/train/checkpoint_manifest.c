/* checkpoint_manifest.c - what lies in a checkpoint, with its hashes, which its ranks share. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/working.h"
#include "engine/train/checkpoint_internal.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer.h"

typedef struct {
    char path[512]; /* below the folder */
    uint64_t bytes;
    size_t first_piece;
} listed_file;

typedef struct {
    listed_file *files;
    size_t n, n_pieces;
} listing;

/* A folder in the model's need not be there. */
static const char more_templates[] = "model/" TP_MORE_TEMPLATES;

static tp_status list(const char *folder, const char *sub, listing *l, tp_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, sub);
    DIR *dir = opendir(path);
    if (!dir)
        return tp_fail(err, TP_ERR_IO, "cannot list '%s': %s", path, strerror(errno));
    for (struct dirent *e; (e = readdir(dir));) {
        char name[512], file[8192];
        struct stat st;
        snprintf(name, sizeof name, "%s%s%s", sub, *sub ? "/" : "", e->d_name);
        snprintf(file, sizeof file, "%s/%s", folder, name);
        if (e->d_name[0] == '.' || stat(file, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        l->files = tp_grow(l->files, l->n + 1, sizeof *l->files);
        l->files[l->n] = (listed_file){.bytes = (uint64_t)st.st_size, .first_piece = l->n_pieces};
        memcpy(l->files[l->n].path, name, sizeof name);
        l->n_pieces += tp_file_pieces((uint64_t)st.st_size);
        l->n++;
    }
    closedir(dir);
    return TP_OK;
}

/* The first rank lists; on other hosts what was just made may not be seen in a list yet. */
static tp_status list_together(const char *folder, tp_comm *comm, listing *l, tp_error *err)
{
    tp_status status = TP_OK;
    if (tp_comm_rank(comm) == 0) {
        status = list(folder, "", l, err);
        if (status == TP_OK)
            status = list(folder, "model", l, err);
        if (status == TP_OK && tp_dir_exists(tp_path_of("%s/%s", folder, more_templates).text))
            status = list(folder, more_templates, l, err);
    }
    TP_TRY(tp_comm_agree(comm, status, err));
    size_t counts[2] = {l->n, l->n_pieces};
    TP_TRY(tp_comm_broadcast(comm, counts, sizeof counts, 0, err));
    l->n = counts[0];
    l->n_pieces = counts[1];
    l->files = l->files ? l->files : tp_new(l->n, sizeof *l->files);
    return tp_comm_broadcast(comm, l->files, l->n * sizeof *l->files, 0, err);
}

/* What is to be said of each piece that has no hash yet. */
typedef struct {
    const char *folder;
    const tp_file_sums *sums; /* what this rank wrote, or NULL: it reads its share */
    tp_shard among;
} teller;

static tp_status tell(const teller *t, const listing *l, char (*hashes)[33], tp_error *err)
{
    char path[8192];
    for (size_t f = 0; f < l->n && t->among.count; f++) {
        const listed_file *file = &l->files[f];
        snprintf(path, sizeof path, "%s/%s", t->folder, file->path);
        for (size_t k = 0; k < tp_file_pieces(file->bytes); k++) {
            size_t piece = file->first_piece + k;
            bool is_mine = piece % (size_t)t->among.count == (size_t)t->among.index;
            if (t->sums)
                (void)tp_file_sums_find(t->sums, path, file->bytes, k, hashes[piece]);
            else if (!hashes[piece][0] && is_mine)
                TP_TRY(tp_file_hash_piece(path, k, hashes[piece], err));
        }
    }
    return TP_OK;
}

/* Of every piece, what the rank says that has it: the others have nothing. */
static tp_status tell_together(const teller *t, const listing *l, tp_comm *comm, char (*ret)[33],
                               tp_error *err)
{
    size_t ranks = (size_t)tp_comm_size(comm), bytes = l->n_pieces * sizeof *ret;
    TP_TRY(tp_comm_agree(comm, tell(t, l, ret, err), err));
    if (ranks == 1)
        return TP_OK;
    char(*all)[33] = tp_new(ranks * l->n_pieces, sizeof *all);
    tp_status status = tp_comm_gather(comm, ret, bytes, all, err);
    for (size_t i = 0; i < ranks * l->n_pieces && status == TP_OK; i++)
        if (all[i][0])
            memcpy(ret[i % l->n_pieces], all[i], sizeof *ret);
    free(all);
    return status;
}

static bool has_all(const listing *l, const char (*hashes)[33])
{
    for (size_t i = 0; i < l->n_pieces; i++)
        if (!hashes[i][0])
            return false;
    return true;
}

static tp_status put_file(tp_json_w *w, const listed_file *file, const char (*hashes)[33],
                          tp_error *err)
{
    size_t n = tp_file_pieces(file->bytes);
    char joined[33];
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "path", file->path);
    tp_json_w_put_i64(w, "bytes", (int64_t)file->bytes);
    if (n == 1) {
        tp_json_w_put_str(w, "xxh3_128", hashes[file->first_piece]);
    } else {
        TP_TRY(tp_file_join_hashes(hashes + file->first_piece, n, joined, err));
        tp_json_w_put_str(w, "xxh3_128_of_pieces", joined);
    }
    tp_json_w_end(w, '}');
    return TP_OK;
}

static tp_status write_list(const char *folder, const listing *l, const char (*hashes)[33],
                            int64_t step, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_status status = TP_OK;
    tp_json_w w = tp_json_w_open(&text, 1, '{');
    tp_json_w_put_i64(&w, "format", 1);
    tp_json_w_put_str(&w, "temper", TEMPER_VERSION);
    tp_json_w_put_i64(&w, "step", step);
    tp_json_w_put_begin(&w, "files", '[');
    for (size_t f = 0; f < l->n && status == TP_OK; f++)
        status = put_file(&w, &l->files[f], hashes, err);
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
    if (status == TP_OK)
        status = tp_model_write_text(folder, "manifest.json", &text, err);
    if (status != TP_OK)
        return status;
    TP_TRY(tp_dir_sync(tp_path_of("%s/model", folder).text, err));
    return tp_dir_sync(folder, err);
}

/* Bytes of a rank, about. */
static uint64_t share_of(const listing *l, tp_shard among)
{
    uint64_t bytes = 0;
    for (size_t f = 0; f < l->n; f++)
        bytes += l->files[f].bytes;
    return bytes / (uint64_t)TP_MAX(among.count, 1);
}

tp_status tp_manifest_write(const char *folder, tp_comm *comm, tp_shard among, int64_t step,
                            const tp_file_sums *sums, uint64_t *ret_bytes, tp_error *err)
{
    listing l = {0};
    TP_OWN(tp_job) job = {0};
    TP_TRY(list_together(folder, comm, &l, err));
    tp_job_begin(&job, share_of(&l, among), "checksums of step %lld", (long long)step);
    char(*hashes)[33] = tp_new(l.n_pieces, sizeof *hashes);
    teller written = {folder, sums, among}, read = {folder, NULL, among};
    tp_status status = tell_together(&written, &l, comm, hashes, err);
    if (status == TP_OK && !has_all(&l, (const char(*)[33])hashes))
        status = tell_together(&read, &l, comm, hashes, err);
    if (status == TP_OK && tp_comm_rank(comm) == 0)
        status = write_list(folder, &l, (const char(*)[33])hashes, step, err);
    status = tp_comm_agree(comm, status, err);
    for (size_t f = 0; f < l.n; f++)
        *ret_bytes += l.files[f].bytes;
    free(hashes);
    free(l.files);
    return status;
}
