// A parameter of a sharding: its shape, its cuts by axes of a topology, and the stages with it.
//
// A parameter knows the families of its axes, so that a rank's place is arithmetic on the rank's
// number. A rank's part is the product of its segments in all dimensions; a piece is one of them of
// each dimension, the last dimension's fastest. Invariant: of the ranks that hold a piece each
// index combination of the other axes exists once, so the copies of an element are the product of
// the holders in each dimension and the sizes of all axes that cut nothing. Cost: a query makes
// the segments of its rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/sharding/axis_cut.hpp"
#include "comm/topology/family.hpp"
#include "comm/topology/topology.hpp"
#include "velo/sharding.h"

namespace velo::comm {

// A box of elements of a rank's part.
struct piece {
  std::vector<span> whole;       // by dimension
  std::vector<std::int64_t> at;  // where it begins in the rank's own tensor
  std::int64_t copies;           // of each element in the job
};

// A rank's part of a parameter: segments by dimension; none in any where it holds nothing.
struct part {
  std::vector<std::vector<segment>> segments;
  std::int64_t copies;  // of an element that one index of each cutting axis holds

  std::vector<std::int64_t> shape() const;
  std::int64_t elements() const;
  std::int64_t pieces() const;
  std::int64_t common_copies() const;  // of every element; 0: they differ, or there is none
  piece at(std::int64_t index) const;
};

class parameter {
 public:
  // Throws ARGUMENT or NULL with the field's name. The caller has checked that the name is free.
  parameter(const velo_sharding_parameter& desc, const topology& job);

  const std::string& name() const { return name_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  bool of_experts() const { return experts_; }
  bool has_gradient() const { return gradient_; }
  std::int64_t elements() const;                   // of the whole
  std::int64_t bucket() const { return bucket_; }  // -1: its own

  bool is_held_by(std::int64_t rank) const;
  part part_of(std::int64_t rank) const;
  // Whether a rank holds all elements of a box.
  bool holds(std::int64_t rank, const std::vector<span>& box) const;

  // The names of the groups that the gradient of a rank's part is summed over.
  std::vector<const char*> sums(const part& own) const;

  // Throws ARGUMENT where the parts do not make up the whole.
  void prove(std::int64_t ranks) const;
  // A text of all that parts depend on: one proof serves all parameters with the same.
  std::string likeness() const;

 private:
  struct cut {
    std::string axis;
    family places;  // a rank's position in it is its index on the axis
    axis_cut elements;
  };
  void read_shape(const velo_sharding_parameter& desc);
  void read_cuts(const velo_sharding_parameter& desc, const topology& job);
  cut read_cut(const velo_sharding_cut& given, std::int64_t i, const topology& job) const;
  void read_stages(const velo_sharding_parameter& desc);
  void read_sums(const velo_sharding_parameter& desc, const topology& job);
  bool is_cut_by(const std::string& axis) const;
  void count_copies(const topology& job);
  void prove_copies(std::int64_t ranks) const;

  std::string name_;
  std::vector<std::int64_t> shape_;
  std::vector<int> cut_of_;  // by dimension the cut, or -1
  std::vector<cut> cuts_;
  std::vector<std::int64_t> stages_;  // empty: all
  family stage_;                      // pp
  std::int64_t copies_ = 1;
  std::vector<std::string> families_;        // of sums before `copies`
  std::vector<std::string> stage_families_;  // of sums behind it
  std::int64_t bucket_ = -1;
  bool experts_ = false, gradient_ = true;
};

}  // namespace velo::comm
