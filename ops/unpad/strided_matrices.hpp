// The lists of unpad_strided_batch_matmul: sizes and places of the matrices of each sequence,
// stated one by one or by a preset of attention.
//
// A sequence begins where compact matrices of all sequences before it would end; the matrices of
// its heads lie a stride apart. Invariant: after `require` every matrix lies in its flat
// tensor, and matrices that are written neither overlap nor leave out an element. Not hot.
#pragma once

#include <cstdint>

#include "velo/introspect.h"

namespace velo::ops {

// The matrices of one sequence in one flat tensor, as they are stored.
struct strided_matrices {
  std::int64_t rows, columns;
  std::int64_t ld, stride;  // elements between rows, and between the matrices of two heads
  bool transposed;          // the product reads them transposed
};

// c[m][n] = op(a)[m][k] op(b)[k][n] for each head.
struct strided_product {
  std::int64_t m, n, k;
  strided_matrices a, b, c;
};

struct strided_totals {
  std::int64_t a, b, c;  // elements of the flat tensors
};

class strided_lists {
 public:
  template <class Args>
  explicit strided_lists(const Args& args)
      : heads_(args.head_num),
        head_dim_(args.head_dim),
        preset_(args.preset),
        seq_len_(args.seq_len),
        sizes_{args.m, args.n, args.k},
        leading_{args.lda, args.ldb, args.ldc},
        strides_{args.stride_a, args.stride_b, args.stride_c},
        transposes_{args.transpose_a, args.transpose_b} {}

  std::int64_t heads() const { return heads_; }
  std::int64_t sequences() const;
  strided_product product(std::int64_t sequence) const;

  // Checks all lists and returns the totals; `written`: whether the matrices of a, b and c are.
  // Throws ARGUMENT with the list and its element.
  strided_totals require(const bool (&written)[3]) const;

 private:
  strided_totals require_sizes() const;
  void require_counts() const;
  strided_matrices matrices(int tensor, std::int64_t sequence, std::int64_t rows,
                            std::int64_t columns) const;

  std::int64_t heads_, head_dim_, preset_;
  const velo_ints* seq_len_;
  const velo_ints* sizes_[3];  // m, n, k; then those of a, b, c
  const velo_ints *leading_[3], *strides_[3];
  const velo_ints* transposes_[2];
};

}  // namespace velo::ops
