// Chooses the kernels for this machine, once, when the library is loaded.
#include "isa.h"

SPHERULE_FORWARD(baseline);
SPHERULE_BACKWARD(baseline);
#ifdef SPHERULE_X86
SPHERULE_FORWARD(v3);
SPHERULE_BACKWARD(v3);
SPHERULE_FORWARD(v4);
SPHERULE_BACKWARD(v4);
#endif

namespace {

struct Kernels {
    const char *isa;
    decltype(&spherule_forward_baseline) forward;
    decltype(&spherule_backward_baseline) backward;
};

Kernels choose() {
#ifdef SPHERULE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4"))
        return {"x86-64-v4", spherule_forward_v4, spherule_backward_v4};
    if (__builtin_cpu_supports("x86-64-v3"))
        return {"x86-64-v3", spherule_forward_v3, spherule_backward_v3};
#endif
    return {"baseline", spherule_forward_baseline, spherule_backward_baseline};
}

const Kernels kernels = choose();

}  // namespace

const char *spherule_isa(void) { return kernels.isa; }

int spherule_attention_forward(const spherule_neighborhood *nb, const spherule_problem *p,
                               const spherule_tensor *q, const spherule_tensor *k,
                               const spherule_tensor *v, const spherule_tensor *out, void *lse) {
    return kernels.forward(nb, p, q, k, v, out, lse);
}

int spherule_attention_backward(const spherule_neighborhood *nb,
                                const spherule_neighborhood *transpose, const spherule_problem *p,
                                const spherule_tensor *q, const spherule_tensor *k,
                                const spherule_tensor *v, const spherule_tensor *out,
                                const void *lse, const spherule_tensor *grad_out,
                                const void *grad_lse, const spherule_tensor *dq,
                                const spherule_tensor *dk, const spherule_tensor *dv) {
    return kernels.backward(nb, transpose, p, q, k, v, out, lse, grad_out, grad_lse, dq, dk, dv);
}
