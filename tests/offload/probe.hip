/* The least kernel that can be wrong: y[i] += a * x[i], so many times, over a grid that it knows from hidden arguments. */
#if defined(__NVPTX__)
#define GROUP_ID __nvvm_read_ptx_sreg_ctaid_x()
#define GROUP_SIZE __nvvm_read_ptx_sreg_ntid_x()
#define ITEM_ID __nvvm_read_ptx_sreg_tid_x()
#else
#define GROUP_ID __builtin_amdgcn_workgroup_id_x()
#define GROUP_SIZE __builtin_amdgcn_workgroup_size_x()
#define ITEM_ID __builtin_amdgcn_workitem_id_x()
#endif

#include "probe.h"

extern "C" __attribute__((global)) void etalon_probe(probe_args p)
{
    const long long i = (long long)GROUP_ID * GROUP_SIZE + ITEM_ID;
    if (i >= p.count)
        return;
    float y = p.y[i];
    for (int round = 0; round < p.rounds; round++)
        y += p.a * p.x[i];
    p.y[i] = y;
}
