// Matrices for tests of products over ranks: drawn, compared by bits, with borders that must stay.
// And ranks with two groups.
#pragma once

#include <vector>

#include "comm/ranks.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {

// A compact tensor of any shape, filled with numbers that a seed draws from [-1, 1].
class matrix {
 public:
  matrix(velo_dtype dtype, std::vector<std::int64_t> shape, int seed = -1)
      : shape_(std::move(shape)), elements_(dtype, count(), 0) {
    cheap_random draw(static_cast<std::uint32_t>(seed) * 2654435761u + 1);
    for (std::int64_t i = 0; seed >= 0 && i < count(); ++i) {
      const std::uint32_t state = draw();
      elements_.set(i, static_cast<double>(state >> 8) / (1 << 23) - 1);
    }
  }
  std::int64_t count() const {
    std::int64_t all = 1;
    for (const std::int64_t size : shape_) all *= size;
    return all;
  }
  velo_tensor view() const {
    velo_tensor all = elements_.view();
    all.ndim = static_cast<std::int32_t>(shape_.size());
    all.shape = shape_.data();
    return all;
  }
  double operator[](std::int64_t i) const { return elements_.get(i); }
  void set(std::int64_t i, double x) { elements_.set(i, x); }
  bool same_bits(const matrix& other) const { return elements_.same_bits(other.elements_); }
  bool borders_kept() const { return elements_.borders_kept(); }

 private:
  std::vector<std::int64_t> shape_;
  elements elements_;
};

// Ranks with a second group of the same contexts beside the first.
class two_groups {
 public:
  explicit two_groups(int count, const velo_group_desc& desc = group_desc(), int threads = 1)
      : ranks(count, desc, threads), second_(at(count)) {
    std::vector<velo_context> contexts;
    for (int rank = 0; rank < count; ++rank) contexts.push_back(ranks.context(rank));
    REQUIRE(velo_group_create_local(contexts.data(), count, &desc, second_.data()) == VELO_OK);
  }
  ~two_groups() {
    for (const velo_group one : second_) velo_group_destroy(one);
  }
  velo_group second(int rank) const { return second_[at(rank)]; }

  const local_ranks ranks;

 private:
  std::vector<velo_group> second_;
};

inline void set_all(const local_ranks& ranks, const char* key, const char* value) {
  for (int rank = 0; rank < ranks.size(); ++rank)
    REQUIRE(velo_config_set(ranks.context(rank), key, value) == VELO_OK);
}

// A part of a group that has all of its three ranks.
inline velo_status all_of_three(velo_group parent, velo_group* made) {
  const std::int32_t members[] = {0, 1, 2};
  return velo_group_create_part(parent, members, 3, nullptr, made);
}

}  // namespace velo::testing
