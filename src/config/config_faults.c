/* config_faults.c - what is wrong with a configuration, said all at once; and what in it has
 * no effect. */
#include <string.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "base/terminal.h"
#include "config/config_internal.h"

void tp_config_remark_add(tp_config *config, tp_config_remarks *list, const char *text,
                          const char *detail)
{
    if (++list->n > TP_CONFIG_MAX_FAULTS && list != &config->idle)
        return;
    tp_config_remark *remark = tp_arena_new(&config->arena, tp_config_remark);
    remark->text = tp_arena_strdup(&config->arena, text);
    remark->detail = detail ? tp_arena_strdup(&config->arena, detail) : NULL;
    if (list->last)
        list->last->next = remark;
    else
        list->first = remark;
    list->last = remark;
}

/* "a (recipe.yaml:3), b (recipe.yaml:9)" and how to set them. */
static void add_missing(const tp_config *config, tp_buf *out)
{
    const tp_config_remarks *list = &config->missing;
    if (list->n == 1) {
        tp_buf_addf(out,
                    "%s: %s: must be set (it is \?\?\?); write it in the recipe or add %s=... to "
                    "the command line",
                    list->first->detail, list->first->text, list->first->text);
        return;
    }
    tp_buf_adds(out, "must be set (they are \?\?\?): ");
    for (const tp_config_remark *r = list->first; r; r = r->next)
        tp_buf_addf(out, "%s%s (%s)", r == list->first ? "" : ", ", r->text, r->detail);
    tp_buf_addf(out, "; write them in the recipe or add %s=... and so on to the command line",
                list->first->text);
}

/* What a fault quotes may not begin an item itself. */
static void add_item(tp_buf *out, const char *between, const char *text)
{
    tp_buf_adds(out, between);
    tp_buf_add_shown(out, text, strlen(text), true);
}

static void add_faults(const tp_config *config, tp_buf *out)
{
    size_t n = config->faults.n + (config->missing.n > 0);
    if (n > 1)
        tp_buf_addf(out, "the configuration has %zu fault%s:", n, tp_plural((uint64_t)n));
    const char *between = n > 1 ? TP_ERROR_ITEM : "";
    for (const tp_config_remark *r = config->faults.first; r; r = r->next)
        add_item(out, between, r->text);
    if (config->faults.n > TP_CONFIG_MAX_FAULTS)
        tp_buf_addf(out, "%sand %zu more", between, config->faults.n - TP_CONFIG_MAX_FAULTS);
    if (config->missing.n) {
        TP_OWN(tp_buf) text = {0};
        add_missing(config, &text);
        add_item(out, between, tp_buf_str(&text));
    }
}

tp_status tp_config_end(tp_config *config, tp_error *err)
{
    if (config->faults.n + config->missing.n == 0)
        return TP_OK;
    TP_OWN(tp_buf) text = {0};
    add_faults(config, &text);
    tp_status status = tp_fail_list(err, TP_ERR_CONFIG, tp_buf_str(&text));
    if (config->faults.n == 0)
        config->missing_text = tp_arena_strdup(&config->arena, tp_buf_str(&text));
    config->faults = config->missing = (tp_config_remarks){0};
    return status;
}

const char *tp_config_missing(const tp_config *config) { return config->missing_text; }
bool tp_config_is_bound(const tp_config *config) { return config->is_bound; }

/* ---- without effect ---- */

static bool is_first_of_reason(const tp_config *config, const tp_config_remark *r)
{
    const tp_config_remark *p = config->idle.first;
    while (p != r && strcmp(p->detail, r->detail) != 0)
        p = p->next;
    return p == r;
}

void tp_config_make_notice(tp_config *config)
{
    TP_OWN(tp_buf) text = {0};
    if (!config->idle.n)
        return;
    tp_buf_adds(&text, "keys without effect here, or without all of it:");
    for (const tp_config_remark *r = config->idle.first; r; r = r->next) {
        if (!is_first_of_reason(config, r))
            continue;
        tp_buf_addf(&text, "\n  %.*s: %s", tp_sentence_len(r->detail), r->detail, r->text);
        for (const tp_config_remark *p = r->next; p; p = p->next)
            if (strcmp(p->detail, r->detail) == 0)
                tp_buf_addf(&text, ", %s", p->text);
    }
    config->notice = tp_arena_strdup(&config->arena, tp_buf_str(&text));
}

void tp_config_note(tp_config *config, const char *key, const char *reason)
{
    tp_config_remark_add(config, &config->idle, key, reason);
}

void tp_config_set_translator(tp_config *config, tp_config_translate translate)
{
    config->translate = translate;
}

const char *tp_config_notice(const tp_config *config) { return config->notice; }

/* ---- paths ---- */

void tp_config_check_path(const tp_config *config, const char *path, const char *remedy,
                          tp_buf *out)
{
    const tp_json *value = tp_config_find(config, path);
    const char *text = value ? tp_json_str(value) : NULL;
    struct stat st;
    if (!text || stat(text, &st) == 0)
        return;
    const char *origin = tp_config_origin(config, path), *slash = strrchr(origin, '/');
    bool looked_beside = text[0] != '/' && slash;
    TP_OWN(tp_buf) item = {0};
    if (strcmp(text, "-") == 0)
        remedy = "it is read more than once, so standard input will not do: name a file";
    tp_buf_addf(&item, "%s: %s: there is no '%.300s'%s%.*s%s%s", origin, path, text,
                looked_beside ? ", neither here nor in " : "",
                looked_beside ? (int)(slash - origin) : 0, origin, remedy ? "; " : "",
                remedy ? remedy : "");
    add_item(out, out->len ? TP_ERROR_ITEM : "", tp_buf_str(&item));
}
