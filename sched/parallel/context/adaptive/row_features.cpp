// Orthogonal iteration and k-means in double, with sums in a fixed order.
#include "sched/parallel/context/adaptive/row_features.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/operation/terms.hpp"

namespace velo::sched {
namespace {

constexpr std::int64_t components = 10, iterations = 24, most_rounds = 100;

using matrix = std::vector<double>;  // [parts][width]

// Rows of the mask, centered where `centered`, times a matrix.
matrix rows_times(const visibility& of, const matrix& x, std::int64_t width,
                  const std::vector<double>* means) {
  const std::int64_t parts = of.parts();
  std::vector<double> shift(core::at(width));
  for (std::int64_t j = 0; means != nullptr && j < parts; ++j)
    for (std::int64_t c = 0; c < width; ++c)
      shift[core::at(c)] += (*means)[core::at(j)] * x[core::at(j * width + c)];
  matrix product(core::at(parts * width));
  for (std::int64_t i = 0; i < parts; ++i) {
    double* to = product.data() + i * width;
    for (std::int64_t c = 0; c < width; ++c) to[c] = -shift[core::at(c)];
    for (std::int64_t j = 0; j < parts; ++j)
      for (std::int64_t c = 0; of.at(i, j) && c < width; ++c) to[c] += x[core::at(j * width + c)];
  }
  return product;
}

// Columns of the centered mask times a matrix, whose columns sum to 0.
matrix columns_times(const visibility& of, const matrix& x, std::int64_t width) {
  matrix product(core::at(of.parts() * width));
  for (std::int64_t i = 0; i < of.parts(); ++i)
    for (std::int64_t j = 0; j < of.parts(); ++j)
      for (std::int64_t c = 0; of.at(i, j) && c < width; ++c)
        product[core::at(j * width + c)] += x[core::at(i * width + c)];
  return product;
}

// Makes columns orthonormal; a column that depends on those before it becomes 0.
void orthonormalize(matrix& x, std::int64_t parts, std::int64_t width) {
  const auto product = [&](std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t i = 0; i < parts; ++i)
      sum += x[core::at(i * width + a)] * x[core::at(i * width + b)];
    return sum;
  };
  for (std::int64_t c = 0; c < width; ++c) {
    const double before = product(c, c);
    for (std::int64_t other = 0; other < c; ++other) {
      const double along = product(other, c);
      for (std::int64_t i = 0; i < parts; ++i)
        x[core::at(i * width + c)] -= along * x[core::at(i * width + other)];
    }
    const double left = product(c, c);
    const double factor = left > 1e-20 * before ? 1 / std::sqrt(left) : 0;
    for (std::int64_t i = 0; i < parts; ++i) x[core::at(i * width + c)] *= factor;
  }
}

double distance(const double* a, const double* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t c = 0; c < width; ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return sum;
}

// The first part, then always the part that is farthest from all centers.
matrix far_centers(const row_features& of, std::int64_t parts, std::int64_t count) {
  matrix centers(of.of(0), of.of(0) + of.width);
  std::vector<double> nearest(core::at(parts), std::numeric_limits<double>::infinity());
  for (std::int64_t k = 1; k < count; ++k) {
    std::int64_t farthest = 0;
    for (std::int64_t i = 0; i < parts; ++i) {
      double& least = nearest[core::at(i)];
      least = std::min(least, distance(of.of(i), centers.data() + (k - 1) * of.width, of.width));
      if (least > nearest[core::at(farthest)]) farthest = i;
    }
    centers.insert(centers.end(), of.of(farthest), of.of(farthest) + of.width);
  }
  return centers;
}

std::int64_t nearest_center(const row_features& of, std::int64_t part, const matrix& centers) {
  const auto count = static_cast<std::int64_t>(centers.size()) / of.width;
  std::int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t k = 0; k < count; ++k) {
    const double d = distance(of.of(part), centers.data() + k * of.width, of.width);
    if (d < least) least = d, best = k;
  }
  return best;
}

// A center without parts stays.
void move_centers(const row_features& of, const std::vector<std::int64_t>& cluster,
                  matrix& centers) {
  std::vector<std::int64_t> members(centers.size() / core::at(of.width));
  matrix sums(centers.size());
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    ++members[core::at(cluster[i])];
    for (std::int64_t c = 0; c < of.width; ++c)
      sums[core::at(cluster[i] * of.width + c)] += of.of(static_cast<std::int64_t>(i))[c];
  }
  for (std::size_t at = 0; at < centers.size(); ++at) {
    const std::int64_t all = members[at / core::at(of.width)];
    if (all > 0) centers[at] = sums[at] / static_cast<double>(all);
  }
}

}  // namespace

row_features principal_features(const visibility& of) {
  const std::int64_t parts = of.parts(), width = std::min(components, parts);
  std::vector<double> means(core::at(parts));
  for (std::int64_t i = 0; i < parts; ++i)
    for (std::int64_t j = 0; j < parts; ++j)
      means[core::at(j)] += of.at(i, j) ? 1 / static_cast<double>(parts) : 0;
  matrix x(core::at(parts * width));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>(comm::mixed(i + 1) >> 11) * 0x1p-53 - 0.5;
  for (std::int64_t i = 0; i < iterations; ++i) {
    orthonormalize(x, parts, width);
    x = columns_times(of, rows_times(of, x, width, &means), width);
  }
  orthonormalize(x, parts, width);
  return {width, rows_times(of, x, width, nullptr)};
}

std::vector<std::int64_t> clusters_of(const row_features& of, std::int64_t parts,
                                      std::int64_t count) {
  matrix centers = far_centers(of, parts, count);
  std::vector<std::int64_t> cluster(core::at(parts), -1);
  for (std::int64_t round = 0; round < most_rounds; ++round) {
    bool moved = false;
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t now = nearest_center(of, i, centers);
      moved |= now != cluster[core::at(i)];
      cluster[core::at(i)] = now;
    }
    if (!moved) break;
    move_centers(of, cluster, centers);
  }
  return cluster;
}

}  // namespace velo::sched
