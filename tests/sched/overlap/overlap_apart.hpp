// The operators that overlap a product with a collective, by a call for each of their parts.
#pragma once

#include "tests/sched/overlap/overlap_call.hpp"

namespace velo::testing {

// Writes the same results.
inline velo_status run_apart(const overlap_call& one, velo_stream stream,
                             const overlap_groups& in) {
  const velo_tensor x = one.x.view(), weight = one.weight.view(), all = one.gathered.view(),
                    y = one.y.view();
  const matrix whole(y.dtype, {one.gathers() ? all.shape[0] : x.shape[0], y.shape[1]});
  const velo_tensor product = whole.view();
  velo_status done = VELO_OK;
  if (one.gathers()) done = velo_group_all_gather(stream, in.first, &x, &all);
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = one.gathers() ? &all : &x, args.b = &weight, args.transpose_b = one.transposed;
  args.c = one.how == overlap_kind::gather ? &y : &product;
  if (done == VELO_OK) done = velo_matmul(stream, &args);
  if (done != VELO_OK || one.how == overlap_kind::gather) return done;
  const velo_group sums = one.how == overlap_kind::both ? in.second : in.first;
  if (one.scatters()) return velo_group_reduce_scatter(stream, sums, nullptr, &product, &y);
  const bool norms = one.how == overlap_kind::norm;
  done = velo_group_all_reduce(stream, in.first, nullptr, &product, norms ? &product : &y);
  if (done != VELO_OK || !norms) return done;
  const velo_tensor residual = one.residual.view(), gamma = one.gamma.view(),
                    norm = one.norm.view();
  velo_dropout_add_rms_norm_args last = VELO_DROPOUT_ADD_RMS_NORM_ARGS_INIT;
  last.x = &product, last.residual = &residual, last.gamma = &gamma, last.y = &norm;
  last.pre_norm = &y;
  const velo_matmul_all_reduce_add_rms_norm_args usual =
      VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
  last.epsilon = usual.epsilon;
  return velo_dropout_add_rms_norm(stream, &last);
}

}  // namespace velo::testing
