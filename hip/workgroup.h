/* Work-items of a workgroup of the portable kernels, for kernels and launchers. */
#ifndef ETALON_HIP_WORKGROUP_H
#define ETALON_HIP_WORKGROUP_H

enum { WORKGROUP = 256 };

#endif
