// A call of any of the operators that overlap a product with a collective, with drawn operands; and
// what velo_op_explain tells of it.
#pragma once

#include <string>

#include "tests/sched/overlap/matrices.hpp"

namespace velo::testing {

enum class overlap_kind { all_reduce, norm, scatter, gather, both };
constexpr overlap_kind overlap_kinds[] = {overlap_kind::all_reduce, overlap_kind::norm,
                                          overlap_kind::scatter, overlap_kind::gather,
                                          overlap_kind::both};
constexpr const char* overlap_names[] = {"matmul_all_reduce", "matmul_all_reduce_add_rms_norm",
                                         "matmul_reduce_scatter", "all_gather_matmul",
                                         "all_gather_matmul_reduce_scatter"};
inline const char* name_of(overlap_kind how) {
  return overlap_names[static_cast<int>(how)];
}

// The groups of a rank. Only `both` uses the second, to sum over.
struct overlap_groups {
  velo_group first, second;
};
inline overlap_groups groups_of(const two_groups& all, int rank) {
  return {all.ranks.group(rank), all.second(rank)};
}

// A rank's call. rows: of the product. It cannot move, as its elements cannot.
struct overlap_call {
  struct sizes {
    std::int64_t rows, depth, columns;
  };

  overlap_kind how;
  matrix x, weight, residual, gamma, y, norm, gathered;
  bool transposed;
  std::int64_t slices = 0;
  velo_pack packed = nullptr;

  overlap_call(overlap_kind how, velo_dtype dtype, const sizes& of, int rank, int ranks,
               bool transposed = false)
      : how(how),
        x(dtype, {gathers() ? of.rows / ranks : of.rows, of.depth}, 2 * rank),
        weight(dtype,
               transposed ? std::vector<std::int64_t>{of.columns, of.depth}
                          : std::vector<std::int64_t>{of.depth, of.columns},
               2 * rank + 1),
        residual(dtype, {of.rows, of.columns}, 50),
        gamma(dtype, {of.columns}, 51),
        y(dtype, {scatters() ? of.rows / ranks : of.rows, of.columns}),
        norm(dtype, {of.rows, of.columns}),
        gathered(dtype, {of.rows, of.depth}),
        transposed(transposed) {}

  bool gathers() const { return how == overlap_kind::gather || how == overlap_kind::both; }
  bool scatters() const { return how == overlap_kind::scatter || how == overlap_kind::both; }

  velo_status run(velo_stream stream, const overlap_groups& in) const {
    const velo_tensor other = residual.view(), gain = gamma.view(), out = norm.view();
    const velo_tensor all = gathered.view();
    switch (how) {
      case overlap_kind::all_reduce: {
        velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
        args.group = in.first;
        return call(velo_matmul_all_reduce, stream, args);
      }
      case overlap_kind::scatter: {
        velo_matmul_reduce_scatter_args args = VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT;
        args.group = in.first;
        return call(velo_matmul_reduce_scatter, stream, args);
      }
      case overlap_kind::gather: {
        velo_all_gather_matmul_args args = VELO_ALL_GATHER_MATMUL_ARGS_INIT;
        args.group = in.first, args.gathered = &all;
        return call(velo_all_gather_matmul, stream, args);
      }
      case overlap_kind::both: {
        velo_all_gather_matmul_reduce_scatter_args args =
            VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
        args.gather_group = in.first, args.scatter_group = in.second, args.gathered = &all;
        return call(velo_all_gather_matmul_reduce_scatter, stream, args);
      }
      case overlap_kind::norm:
        break;
    }
    velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
    args.group = in.first, args.residual = &other, args.gamma = &gain, args.norm_out = &out;
    return call(velo_matmul_all_reduce_add_rms_norm, stream, args);
  }

  bool same_bits(const overlap_call& other) const {
    return y.same_bits(other.y) && (how != overlap_kind::norm || norm.same_bits(other.norm)) &&
           (!gathers() || gathered.same_bits(other.gathered));
  }
  bool borders_kept() const {
    return y.borders_kept() && norm.borders_kept() && gathered.borders_kept();
  }

  // The text of velo_op_explain about the call.
  std::string explained(velo_context context, const overlap_groups& in) const {
    const velo_tensor from = x.view(), by = weight.view(), other = residual.view(),
                      gain = gamma.view();
    std::vector<velo_named_value> values;
    const auto add = [&](const char* name, velo_value_kind kind) -> velo_named_value& {
      values.emplace_back();
      values.back().name = name, values.back().value.kind = kind;
      return values.back();
    };
    const auto add_tensor = [&](const char* name, const velo_tensor& t) {
      add(name, VELO_VALUE_TENSOR).value.as.tensor = &t;
    };
    const bool has_two = how == overlap_kind::both;
    add(has_two ? "gather_group" : "group", VELO_VALUE_HANDLE).value.as.p = in.first;
    if (has_two) add("scatter_group", VELO_VALUE_HANDLE).value.as.p = in.second;
    add("parallel_num", VELO_VALUE_INT).value.as.i = slices;
    add_tensor("x", from), add_tensor("weight", by);
    if (how == overlap_kind::norm) add_tensor("residual", other), add_tensor("gamma", gain);
    char text[4096] = "";
    REQUIRE(velo_op_explain(context, name_of(how), values.data(),
                            static_cast<std::int32_t>(values.size()), text, sizeof text,
                            nullptr) == VELO_OK);
    return text;
  }

 private:
  template <class Args>
  velo_status call(velo_status (*function)(velo_stream, const Args*), velo_stream stream,
                   Args args) const {
    const velo_tensor from = x.view(), by = weight.view(), to = y.view();
    args.x = &from, args.weight = &by, args.y = &to, args.packed = packed;
    args.transpose_weight = transposed, args.parallel_num = slices;
    return function(stream, &args);
  }
};

}  // namespace velo::testing
