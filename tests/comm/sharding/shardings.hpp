// A sharding with an owner, and parameters that are easy to write down, for the tests of shardings.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "comm/topology/topologies.hpp"
#include "velo/sharding.h"

namespace velo::testing {

// A parameter that owns what its description points at.
class described_parameter {
 public:
  described_parameter(std::string name, std::vector<std::int64_t> shape)
      : name_(std::move(name)), shape_(std::move(shape)) {}

  described_parameter& cut(std::int64_t dimension, std::string axis,
                           std::vector<velo_sharding_block> blocks = {}) {
    cuts_.push_back({std::move(axis), dimension, std::move(blocks), {}});
    return *this;
  }
  described_parameter& bounds(std::int64_t dimension, std::string axis,
                              std::vector<std::int64_t> all) {
    cuts_.push_back({std::move(axis), dimension, {}, std::move(all)});
    return *this;
  }
  described_parameter& stages(std::vector<std::int64_t> all) {
    stages_ = std::move(all);
    return *this;
  }
  described_parameter& partial(std::string axis) {
    partial_ = std::move(axis);
    return *this;
  }
  described_parameter& bucket(std::int64_t number) {
    bucket_ = number;
    return *this;
  }
  described_parameter& experts() {
    experts_ = true;
    return *this;
  }
  described_parameter& no_gradient() {
    gradient_ = false;
    return *this;
  }

  // Valid until the parameter changes.
  velo_sharding_parameter desc() {
    given_.clear();
    for (const cut_text& c : cuts_)
      given_.push_back({c.axis.c_str(), c.dimension, c.blocks.empty() ? nullptr : c.blocks.data(),
                        static_cast<std::int64_t>(c.blocks.size()),
                        c.bounds.empty() ? nullptr : c.bounds.data(),
                        static_cast<std::int64_t>(c.bounds.size())});
    velo_sharding_parameter p = VELO_SHARDING_PARAMETER_INIT;
    p.name = name_.c_str();
    p.ndim = static_cast<std::int32_t>(shape_.size());
    p.shape = shape_.data();
    p.cuts = given_.data(), p.cut_count = static_cast<std::int64_t>(given_.size());
    p.stages = stages_.data(), p.stage_count = static_cast<std::int64_t>(stages_.size());
    p.partial = partial_.empty() ? nullptr : partial_.c_str();
    p.bucket = bucket_, p.experts = experts_ ? 1 : 0, p.no_gradient = gradient_ ? 0 : 1;
    return p;
  }

  struct cut_text {
    std::string axis;
    std::int64_t dimension;
    std::vector<velo_sharding_block> blocks;
    std::vector<std::int64_t> bounds;
  };
  const std::string& name() const { return name_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<cut_text>& cuts() const { return cuts_; }
  const std::vector<std::int64_t>& held_by_stages() const { return stages_; }
  std::int64_t bucket() const { return bucket_; }
  bool of_experts() const { return experts_; }
  bool has_gradient() const { return gradient_; }

 private:
  std::string name_, partial_;
  std::vector<std::int64_t> shape_, stages_;
  std::vector<cut_text> cuts_;
  std::vector<velo_sharding_cut> given_;
  std::int64_t bucket_ = -1;
  bool experts_ = false, gradient_ = true;
};

class sharding {
 public:
  explicit sharding(velo_topology job) { REQUIRE(velo_sharding_create(job, &handle_) == VELO_OK); }
  explicit sharding(const velo_topology_desc& desc) : sharding(topology(desc)) {}
  ~sharding() { velo_sharding_destroy(handle_); }
  sharding(const sharding&) = delete;
  sharding& operator=(const sharding&) = delete;
  operator velo_sharding() const { return handle_; }

  std::int64_t add(described_parameter of) {
    const velo_sharding_parameter desc = of.desc();
    std::int64_t index = -1;
    REQUIRE(velo_sharding_add(handle_, &desc, &index) == VELO_OK);
    return index;
  }
  velo_sharding_part part(std::int64_t parameter, std::int64_t rank) const {
    velo_sharding_part part = VELO_SHARDING_PART_INIT;
    REQUIRE(velo_sharding_get_part(handle_, parameter, rank, &part) == VELO_OK);
    return part;
  }
  velo_sharding_piece piece(std::int64_t parameter, std::int64_t rank, std::int64_t index) const {
    velo_sharding_piece piece = VELO_SHARDING_PIECE_INIT;
    REQUIRE(velo_sharding_get_piece(handle_, parameter, rank, index, &piece) == VELO_OK);
    return piece;
  }
  std::vector<std::string> sums(std::int64_t parameter, std::int64_t rank) const {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < part(parameter, rank).sums; ++i) {
      const char* name = nullptr;
      REQUIRE(velo_sharding_get_sum(handle_, parameter, rank, i, &name) == VELO_OK);
      names.emplace_back(name);
    }
    return names;
  }
  std::vector<std::int32_t> holders(std::int64_t parameter, std::int64_t rank,
                                    std::int64_t piece) const {
    std::int64_t count = 0;
    REQUIRE(velo_sharding_get_holders(handle_, parameter, rank, piece, nullptr, 0, &count) ==
            VELO_OK);
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(count));
    REQUIRE(velo_sharding_get_holders(handle_, parameter, rank, piece, ranks.data(), count,
                                      nullptr) == VELO_OK);
    return ranks;
  }
  std::string text(std::int64_t rank, velo_sharding_format format) const {
    std::uint64_t needed = 0;
    REQUIRE(velo_sharding_write(handle_, rank, format, nullptr, 0, &needed) == VELO_OK);
    std::string all(needed, ' ');
    REQUIRE(velo_sharding_write(handle_, rank, format, all.data(), needed, nullptr) == VELO_OK);
    all.pop_back();
    return all;
  }

 private:
  velo_sharding handle_ = nullptr;
};

}  // namespace velo::testing
