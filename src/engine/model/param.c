/* param.c - what kind of weight a parameter is. */
#include <string.h>

#include "base/platform.h"
#include "engine/model/model.h"

bool tp_param_is_hidden(const tp_param *param)
{
    static const char *const outside[] = {"model.embed_tokens.weight", "transformer.wte.weight",
                                          "transformer.wpe.weight", "lm_head.weight"};
    for (size_t i = 0; i < TP_COUNTOF(outside); i++)
        if (strcmp(param->name, outside[i]) == 0)
            return false;
    return param->rank == 2 && param->is_matrix;
}

bool tp_param_is_embedding(const tp_param *param)
{
    return param->rank == 2 && param->is_matrix && !tp_param_is_hidden(param) &&
           strcmp(param->name, "lm_head.weight") != 0;
}

tp_tensor tp_param_tensor(const tp_param *p)
{
    return (tp_tensor){.name = p->name,
                       .of = p->of,
                       .role = p->of ? TP_ROLE_ADAPTER : TP_ROLE_WEIGHT,
                       .dtype = p->dtype,
                       .rank = p->rank,
                       .dim = {p->dim[0], p->dim[1]}};
}
