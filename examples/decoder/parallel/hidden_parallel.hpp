// Tensor parallelism in two dimensions: tp = X * Y ranks cut each matrix both ways, and with it the
// columns of the residual stream. Tensor rank r has place x = r mod X along x and y = r div X along
// y.
//
// All tensor ranks of a context rank share the same R rows:
//
//   residual stream: rows part x, columns part y
//   between the two matrices of a branch: rows part y, columns part x (heads, inner, symbols)
//
//   first matrix [O, H], part [O/X, H/Y]: rows are gathered along x; their products are summed
//   along y, and each rank gets part y of the rows of the sum
//   second matrix [H, I], part [H/Y, I/X]: the same with x and y exchanged
//
// The gradient of a product's input takes the way back, with x and y exchanged; that of its matrix
// is the product of both operands, gathered. Norms sum their squares along y; the gradients of
// their gains are sums along x. Between matrices rows are exchanged in attention alone, to which
// ranks along y are further context ranks.
//
// Invariant: part y of the R rows are those that the sequence plan gives to attention rank
// y + Y * (context rank), and the R rows are these parts, one behind the other. So parts along y,
// whose sizes the plan decides, and parts along x, which are even, are both contiguous.
//
// This class has the ranks along y; those along x are tensor_parallel's, with rows cut. In one
// dimension X is tp, and the only rank along y sends nothing. Cost of a first matrix: a gather of R
// rows over X ranks and a sum of R rows over Y ranks; of a second one the other way round.
// velo::all_gather_matmul_reduce_scatter is such a product and overlaps the sum with it, and in the
// gradient the gather of the input.
// Source: MindSpeed's --tp-2d.
#pragma once

#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/data/window_writer.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

class hidden_parallel {
 public:
  hidden_parallel() = default;  // one rank
  // `of` must outlive the object.
  explicit hidden_parallel(const member::part& of) : of_(of.ranks == 1 ? nullptr : &of) {}

  bool is_alone() const { return of_ == nullptr; }
  velo_group group() const { return of_ == nullptr ? nullptr : velo_group(of_->group); }

  // The norm of rows whose columns are cut, and its gradient: dx from dy, in place, and the gain's,
  // of this rank's rows.
  struct norm_tensors {
    velo::tensor_view x, gain, rstd;
  };
  void norm(const velo::stream_ref& stream, const norm_tensors& of, const velo::tensor_view& y,
            double epsilon) const;
  void norm_backward(const velo::stream_ref& stream, const norm_tensors& of,
                     const velo::tensor_view& through, const velo::tensor_view& gain_gradient,
                     bool accumulate) const;

  // The rows between two matrices: `all` has those of all ranks along y, of which rank i has
  // sequences * parts[i].count(). `gather` writes `all`; `sum` adds up the products in `all` and
  // writes this rank's rows of the sum to `own`.
  void gather(const velo::stream_ref& stream, const velo::tensor_view& own,
              const std::vector<held_rows>& parts, std::int64_t sequences,
              const velo::tensor_view& all) const;
  void sum(const velo::stream_ref& stream, const velo::tensor_view& all,
           const std::vector<held_rows>& parts, std::int64_t sequences,
           const velo::tensor_view& own) const;
  // The rows of each rank along y; the list lives until the next call of this object.
  velo_ints row_counts(const std::vector<held_rows>& parts, std::int64_t sequences) const;

 private:
  const std::int64_t* counts(const std::vector<held_rows>& parts, std::int64_t sequences,
                             std::int64_t width) const;

  const member::part* of_ = nullptr;
  mutable std::vector<std::int64_t> counts_;  // elements or rows of each rank, of the last call
};

}  // namespace decoder
