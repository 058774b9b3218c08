/* cache.c - the folder of tokenised data, shown and trimmed. */
#include "temper/cache.h"

#include "base/clock.h"
#include "base/no_memory.h"
#include "engine/data/cache_shelf.h"
#include "engine/data/cache_store.h"
#include "text/json/json.h"

static void add_json(const char *folder, const tp_cache_shelf *shelf, tp_buf *out)
{
    char iso[32];
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_str(&w, "folder", folder);
    tp_json_w_put_i64(&w, "bytes", (int64_t)shelf->bytes);
    tp_json_w_put_begin(&w, "files", '[');
    for (size_t i = 0; i < shelf->n; i++) {
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "name", shelf->v[i].name);
        tp_json_w_put_i64(&w, "bytes", (int64_t)shelf->v[i].bytes);
        tp_wall_iso(shelf->v[i].used, iso);
        tp_json_w_put_str(&w, "used", iso);
        tp_json_w_put_bool(&w, "unfinished", shelf->v[i].is_rest);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
}

static void add_text(const char *folder, const tp_cache_shelf *shelf, tp_buf *out)
{
    char a[32], iso[32];
    for (size_t i = 0; i < shelf->n; i++) {
        tp_wall_iso(shelf->v[i].used, iso);
        tp_buf_addf(out, "%s%-43s %11s  %s%s\n",
                    i ? "" : "file                                               size  last used\n",
                    shelf->v[i].name, tp_human_bytes((double)shelf->v[i].bytes, a), iso,
                    shelf->v[i].is_rest ? "  unfinished" : "");
    }
    tp_buf_addf(out, "%zu cache%s, %s, in %s\n", shelf->n, tp_plural(shelf->n),
                tp_human_bytes((double)shelf->bytes, a), folder);
}

tp_status tp_token_cache_text(const char *wanted, tp_form form, char **ret_text, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_buf folder = {0}, out = {0};
    TP_OWN(tp_cache_shelf) shelf = {0};
    if (!ret_text)
        return tp_fail(err, TP_ERR_ARG, "tp_token_cache_text: ret_text is NULL");
    tp_status status = tp_cache_where(wanted, &folder, err);
    if (status == TP_OK)
        status = tp_cache_shelf_read(folder.data, &shelf, err);
    if (status == TP_OK && form == TP_FORM_JSON)
        add_json(folder.data, &shelf, &out);
    else if (status == TP_OK)
        add_text(folder.data, &shelf, &out);
    tp_buf_release(&folder);
    if (status == TP_OK)
        *ret_text = out.data;
    return status;
}

tp_status tp_token_cache_trim(const char *wanted, double limit, uint64_t *ret_n,
                              uint64_t *ret_bytes, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_OWN(tp_buf) folder = {0};
    tp_cache_freed freed = {0};
    if (!(limit >= 0))
        return tp_fail(err, TP_ERR_ARG, "tp_token_cache_trim: the limit is %g bytes", limit);
    tp_status status = tp_cache_where(wanted, &folder, err);
    if (status == TP_OK)
        status = tp_cache_shelf_trim(folder.data, limit, NULL, 0, &freed, err);
    if (ret_n)
        *ret_n = freed.n;
    if (ret_bytes)
        *ret_bytes = freed.bytes;
    return status;
}
