// The rows of a mask along its principal components, and their clusters.
#pragma once

#include <vector>

#include "sched/parallel/context/adaptive/visibility.hpp"

namespace velo::sched {

// A vector of `width` numbers for each part.
struct row_features {
  std::int64_t width;
  std::vector<double> values;  // [parts][width]

  const double* of(std::int64_t part) const { return values.data() + part * width; }
};

// The mask's rows, not centered, projected on the strongest components of their covariance: at most
// ten numbers for each.
row_features principal_features(const visibility& of);

// The cluster of each part, by k-means from centers that lie far apart, at most 100 rounds.
std::vector<std::int64_t> clusters_of(const row_features& of, std::int64_t parts,
                                      std::int64_t count);

}  // namespace velo::sched
