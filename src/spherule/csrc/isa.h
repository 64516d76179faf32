// The kernels are compiled once for each instruction set, and named after it.
#pragma once
#include "spherule.h"

#define SPHERULE_JOIN_(a, b) a##_##b
#define SPHERULE_JOIN(a, b)  SPHERULE_JOIN_(a, b)

#define SPHERULE_FORWARD(isa)                                                                      \
    int SPHERULE_JOIN(spherule_forward, isa)(                                                      \
        const spherule_neighborhood *nb, const spherule_problem *p, const spherule_tensor *q,      \
        const spherule_tensor *k, const spherule_tensor *v, const spherule_tensor *out, void *lse)

#define SPHERULE_BACKWARD(isa)                                                                     \
    int SPHERULE_JOIN(spherule_backward, isa)(                                                     \
        const spherule_neighborhood *nb, const spherule_neighborhood *transpose,                   \
        const spherule_problem *p, const spherule_tensor *q, const spherule_tensor *k,             \
        const spherule_tensor *v, const spherule_tensor *out, const void *lse,                     \
        const spherule_tensor *grad_out, const void *grad_lse, const spherule_tensor *dq,          \
        const spherule_tensor *dk, const spherule_tensor *dv)
