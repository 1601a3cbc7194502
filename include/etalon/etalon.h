/* etalon: FP8 attention operations with a portable fp32 reference.
 *
 *   etalon_pa_mtp            a few query tokens per sequence over a paged KV cache    <etalon/pa_mtp.h>
 *   etalon_fmha_varlen       packed variable-length attention forward with LSE        <etalon/fmha_varlen.h>
 *   etalon_mqa_logits        logits of the sparse-attention indexer                   <etalon/mqa_logits.h>
 *   etalon_mqa_logits_paged  the same over a paged cache of keys                      <etalon/mqa_logits_paged.h>
 *   etalon_merge_states      joins two attention results by their LSE                 <etalon/merge_states.h>
 *
 * A call takes a context (what this process may use), the arguments (tensor views over the caller's memory) and a
 * workspace (scratch memory of the caller). Start with ETALON_<OP>_ARGS_INIT, fill in the tensors, ask
 * etalon_<op>_workspace_bytes(), call. The library prints nothing, never aborts, and allocates only in
 * etalon_context_create(). The headers are the specification; doc/BIBLIOGRAPHY resolves the keys in brackets.
 */
#ifndef ETALON_ETALON_H
#define ETALON_ETALON_H

#include <etalon/fmha_varlen.h>
#include <etalon/merge_states.h>
#include <etalon/mqa_logits.h>
#include <etalon/mqa_logits_paged.h>
#include <etalon/pa_mtp.h>
#include <etalon/types.h>
#include <etalon/version.h>

#endif
