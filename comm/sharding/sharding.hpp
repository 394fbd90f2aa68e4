// The object behind velo_sharding: the parameters of a job and where their elements lie.
//
// It keeps a copy of the topology and the parameters in the order of their addition; they are never
// moved or changed, so that callers may keep their names. All else is computed on demand from the
// rank's number (parameter.hpp). Invariant: a refused parameter leaves the object as it was. One
// thread uses an object at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/sharding/box.hpp"
#include "comm/sharding/parameter.hpp"
#include "core/handle/handle_kinds.hpp"

namespace velo::comm {

// A box of elements that a rank takes from another.
struct sharding_move {
  std::int64_t source;
  box whole;
  std::vector<std::int64_t> source_at, at;
};

class sharding {
 public:
  explicit sharding(const topology& job) : job_(job) {}

  // Throws ARGUMENT or NULL with the field's name, and leaves the object as it was.
  std::int64_t add(const velo_sharding_parameter& desc);

  const topology& job() const { return job_; }
  std::int64_t size() const { return static_cast<std::int64_t>(parameters_.size()); }
  const parameter& at(std::int64_t index) const;     // throws ARGUMENT
  std::int64_t find(const std::string& name) const;  // -1: none

  // The elements of a rank's own tensor that it updates with a sharded optimizer. Visits the
  // parameters of the bucket.
  span range(std::int64_t index, std::int64_t rank) const;
  std::vector<span> ranges(std::int64_t rank) const;  // of all parameters
  void fill(std::int64_t index, std::int64_t rank, velo_sharding_part& info) const;

  // Throws ARGUMENT for the first parameter whose parts, copies or ranges are wrong.
  void check() const;

  // The boxes that a rank takes from the ranks of this sharding for its part of a parameter of
  // `to`.
  std::vector<sharding_move> transfer(const sharding& to, std::int64_t index, std::int64_t rank,
                                      velo_sharding_content content) const;

  // The parts of a rank, or of all (-1).
  std::string json(std::int64_t rank) const;
  std::string picture(std::int64_t rank) const;

 private:
  const family& updaters(const parameter& of) const;
  // The ranges of parameters of one bucket, or of a parameter alone.
  std::vector<span> ranges(const std::vector<std::int64_t>& bucket, std::int64_t rank) const;
  void check_ranges(const std::vector<std::int64_t>& bucket) const;
  // The parameters of a parameter's bucket, or it alone.
  std::vector<std::int64_t> bucket_of(std::int64_t index) const;
  // The boxes of a rank's part or range, as pieces.
  std::vector<piece> content_of(std::int64_t index, std::int64_t rank,
                                velo_sharding_content content) const;

  topology job_;
  std::deque<parameter> parameters_;
  std::unordered_map<std::string, std::int64_t> index_;  // by name
  struct bucket {
    std::vector<std::int64_t> parameters;
    std::int64_t elements = 0;  // of the whole parameters
  };
  std::map<std::pair<bool, std::int64_t>, bucket> buckets_;  // by `experts` and number
};

}  // namespace velo::comm

template <>
struct velo::core::handle_traits<velo::comm::sharding> {
  using handle = velo_sharding;
  static constexpr handle_kind& kind = kinds::sharding;
};
