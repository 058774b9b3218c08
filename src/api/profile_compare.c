/* profile_compare.c - two profiles that were kept, against each other. */
#include "base/files.h"
#include "base/sized.h"
#include "instrument/profile/report.h"
#include "temper/profile.h"

enum { ARENA_BYTES = 512 << 20 };

static void put(const tp_profile_comparison *c, const char *after, const char *made,
                const tp_profile_compare_options *o, tp_buf *out)
{
    if (o->form != TP_FORM_JSON) {
        tp_buf_addf(out, "\"%s\" of %s\n", after, made ? made : "unknown");
        tp_profile_comparison_text(c, o->width, out);
        return;
    }
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_str(&w, "profile", after);
    tp_json_w_put_str(&w, "made", made);
    tp_json_w_key(&w, "comparison");
    tp_profile_comparison_write(c, &w);
    tp_json_w_close(&w, '}');
}

static tp_status read(const char *path, tp_arena *arena, const tp_json **ret, tp_error *err)
{
    TP_OWN(tp_buf) file = {0};
    tp_buf_addf(&file, "%s%s", path, tp_dir_exists(path) ? "/profile.json" : "");
    return tp_profile_read(file.data, arena, ret, err);
}

static tp_status compare(const char *before, const char *after, tp_arena *arena,
                         const tp_profile_compare_options *o, char **ret, tp_error *err)
{
    const tp_json *a, *b;
    TP_CLEANUP(tp_profile_data_release) tp_profile_data data = {0};
    tp_profile_comparison c;
    tp_buf out = {0};
    TP_TRY(read(before, arena, &a, err));
    TP_TRY(read(after, arena, &b, err));
    TP_TRY(tp_profile_data_of(b, after, &data, err));
    TP_TRY(tp_profile_compare(a, before, &data, &c, err));
    put(&c, after, tp_json_str(tp_json_get(b, "made")), o, &out);
    *ret = out.data;
    if (o->worse)
        *o->worse = c.step.verdict == TP_CHANGE_WORSE;
    return TP_OK;
}

tp_status tp_profile_files_compare(const char *before, const char *after,
                                   const tp_profile_compare_options *options, char **ret,
                                   tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_profile_compare_options o;
    TP_OWN(tp_arena) arena = {0};
    TP_NEED(before && after && ret, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_profile_compare_options", err));
    o.width = o.width ? o.width : 110;
    TP_TRY(tp_arena_init(&arena, ARENA_BYTES, err));
    return compare(before, after, &arena, &o, ret, err);
}
