// A family: a set of disjoint groups of a job's ranks, as arithmetic on the ranks' numbers.
//
// A rank's number is a sum of digits, one for each axis of the layout. Some digits of a family
// count the ranks inside a group, the first digit fastest; the others count the groups in the same
// way. A family may split each such whole group into parts: positions with equal inner and outer
// index in first + inner * (i + length * outer). These parts are levels, slices and windows.
//
// Nothing is stored for a rank or a group. Each is computed from its number in time proportional to
// the number of digits, and a group's ranks in time proportional to their number.
// to the number of digits, and a group's ranks in time proportional to their number.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace velo::comm {

// One digit of a rank: (rank / stride) % extent. A digit with fewer values than its extent takes
// only the values 0, step, 2 step ..; ranks with other values are in no group of the family.
struct digit {
  std::int64_t stride = 1;
  std::int64_t extent = 1;
  std::int64_t size = 1;
  std::int64_t step = 1;
};

// Digits, with the fastest first. A layout has at most seven axes, and one of them may be split.
class digits {
 public:
  void add(const digit& one) { all_[count_++] = one; }
  const digit* begin() const { return all_.data(); }
  const digit* end() const { return all_.data() + count_; }

  std::int64_t size() const;                        // the product of their sizes
  std::int64_t rank_of(std::int64_t number) const;  // the contribution to a rank's number
  // The inverse; -1: a digit does not take that value.
  std::int64_t number_of(std::int64_t rank) const;

 private:
  std::array<digit, 8> all_;
  std::size_t count_ = 0;
};

// A rank's group in a family.
struct membership {
  std::int64_t group = -1;     // -1: in no group
  std::int64_t position = -1;  // within the group
};

struct family {
  std::string name;
  // The family with the same groups, of which this family is a second communicator.
  std::string twin_of = "";

  digits members;           // count the ranks of a whole group
  digits others;            // count the whole groups
  std::int64_t inner = 1;   // distance between the positions of a part
  std::int64_t length = 0;  // positions of a part; 0: the part is the whole group

  std::int64_t groups() const;
  std::int64_t size() const;  // of the largest group
  // 0 <= group < groups(). Sizes differ only if the slices do not divide the whole group evenly.
  std::int64_t size_of(std::int64_t group) const;
  std::int64_t rank_at(std::int64_t group, std::int64_t position) const;
  membership find(std::int64_t rank) const;

  // Calls body(rank) for each rank of a group, in order.
  template <class Body>
  void each(std::int64_t group, Body&& body) const {
    const std::int64_t count = size_of(group);
    for (std::int64_t i = 0; i < count; ++i) body(rank_at(group, i));
  }

 private:
  std::int64_t whole() const { return members.size(); }
  std::int64_t parts() const;  // in a whole group
};

}  // namespace velo::comm
