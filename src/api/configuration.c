#include "api/configuration.h"

#include <string.h>

/* recipes/sft-gsm8k.yaml -> run.name=sft-gsm8k */
static tp_status name_after_file(tp_config *config, const char *path, tp_error *err)
{
    if (tp_config_find(config, "run.name"))
        return TP_OK;
    tp_buf text = {0};
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const char *dot = strrchr(file, '.');
    int n = (int)(dot && dot != file ? (size_t)(dot - file) : strlen(file));
    tp_buf_addf(&text, "run.name=%.*s", n, file);
    tp_status status = tp_config_override(config, text.data, err);
    tp_buf_release(&text);
    return status;
}

static tp_status bind(tp_configuration *c, const char *path, const char *const *overrides, size_t n,
                      tp_error *err)
{
    TP_TRY(tp_config_load(&c->config, path, err));
    if (path)
        TP_TRY(name_after_file(c->config, path, err));
    for (size_t i = 0; i < n; i++)
        TP_TRY(tp_config_override(c->config, overrides[i], err));
    return tp_train_options_bind(c->config, &c->options, err);
}

tp_status tp_configuration_open(tp_configuration *ret, const char *path,
                                const char *const *overrides, size_t n, tp_error *err)
{
    tp_configuration c = {0};
    for (size_t i = 0; i < n; i++)
        if (!overrides || !overrides[i])
            return tp_fail(err, TP_ERR_ARG, "override %zu of %zu is NULL", i, n);
    tp_status status = bind(&c, path, overrides, n, err);
    if (status != TP_OK) {
        tp_configuration_close(&c);
        return status;
    }
    *ret = c;
    return TP_OK;
}

void tp_configuration_close(tp_configuration *c)
{
    tp_config_release(c->config);
    c->config = NULL;
}
