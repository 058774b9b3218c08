/* param.c - what kind of weight a parameter is. */
#include "engine/model/model.h"

bool tp_param_is_hidden(const tp_param *param)
{
    return param->rank == 2 && param->is_matrix && param->place == TP_PARAM_IN_BLOCK;
}

bool tp_param_is_embedding(const tp_param *param)
{
    return param->rank == 2 && param->is_matrix && param->place == TP_PARAM_TABLE;
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
