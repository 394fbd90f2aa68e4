// A tensor whose elements dropout decides on, as a part of a whole.
//
// A decision follows from an element's index (core/simd/philox.hpp). A tensor that ranks have cut,
// or that is computed in pieces, takes the indices of the whole: the field dropout_origin says
// where the tensor begins there in each dimension, dropout_extents how large the whole is. Without
// them the tensor is the whole. Indices count modulo 2^64. Elements whose indices follow each other
// are a run, which kernels compute as they compute a whole tensor: rows of a cut along the first
// dimension are one run, the rows of a cut of columns are a run each. Cost: a division a dimension
// and run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/operator/tensor.hpp"
#include "velo/introspect.h"

namespace velo::ops {

// Throws unless both lists are NULL, or a block of sizes `own` lies in the whole where they say.
// `dimensions` names them in the message: "B, N".
void check_dropout_part(const velo_ints* origin, const velo_ints* extents, int count,
                        const std::int64_t* own, const char* dimensions);

// The same for a tensor, each of whose dimensions has an entry.
void check_dropout_part(const velo_ints* origin, const velo_ints* extents, const velo_tensor& x);

class dropout_indices {
 public:
  // The lists are checked, or NULL. They may have more entries than there are dimensions.
  dropout_indices(int dimensions, const std::int64_t* shape, const velo_ints* origin,
                  const velo_ints* extents);

  // Elements of a run.
  std::int64_t run() const { return levels_[0].size; }

  // The index in the whole of an element of the tensor.
  std::uint64_t of(std::int64_t element) const {
    std::uint64_t index = first_;
    for (int i = 0; i < count_; ++i) {
      index += static_cast<std::uint64_t>(element % levels_[i].size) * levels_[i].stride;
      element /= levels_[i].size;
    }
    return index;
  }

  // body(first, count, index of the first in the whole) for each run, or part of one, among `count`
  // elements from `first`, in order.
  template <class Body>
  void each_run(std::int64_t first, std::int64_t count, const Body& body) const {
    while (count > 0) {
      const std::int64_t now = std::min(count, run() - first % run());
      body(first, now, of(first));
      first += now, count -= now;
    }
  }

 private:
  // Dimensions from the last to the first; those that follow each other in the whole are one.
  struct level {
    std::int64_t size;
    std::uint64_t stride;
  };
  level levels_[max_rank + 1] = {};
  int count_ = 1;
  std::uint64_t first_ = 0;  // index of the tensor's first element
};

}  // namespace velo::ops
