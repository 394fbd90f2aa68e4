// A family: which ranks of a job form its groups, as arithmetic on the ranks' numbers.
//
// A rank's number is a sum of digits, one for each axis of the layout. A family keeps some of them
// (they count the ranks inside a group, the first of them fastest) and fixes the others (they count
// the groups, in the same way). A part of each such group can be taken again: places
// inner * (.. + length * outer) with inner and outer fixed, which gives levels, slices and windows.
//
// The groups of a family are disjoint. Nothing is stored for a rank or a group: each is worked out
// from its number, in time proportional to the digits, and a group's ranks in time proportional to
// them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace velo::comm {

// One digit of a rank: (rank / stride) % extent. A family with a digit of fewer values than its
// extent takes the values 0, step, 2 step .. alone; ranks with others belong to none of its groups.
struct digit {
  std::int64_t stride = 1;
  std::int64_t extent = 1;
  std::int64_t size = 1;
  std::int64_t step = 1;
};

// Digits, the fastest first. As many as a layout can have: seven axes, of which one is split.
class digits {
 public:
  void add(const digit& one) { all_[count_++] = one; }
  const digit* begin() const { return all_.data(); }
  const digit* end() const { return all_.data() + count_; }

  std::int64_t size() const;                        // numbers that they count
  std::int64_t rank_of(std::int64_t number) const;  // their share in the rank's number
  std::int64_t number_of(std::int64_t rank) const;  // the other way; -1: a value not taken

 private:
  std::array<digit, 8> all_;
  std::size_t count_ = 0;
};

// Where a rank is in a family.
struct membership {
  std::int64_t group = -1;     // -1: in no group
  std::int64_t position = -1;  // in the group
};

struct family {
  std::string name;
  std::string twin_of = "";  // the family with the same groups, whose second communicator this is

  digits members;           // inside a whole group
  digits others;            // of the whole groups
  std::int64_t inner = 1;   // the part: of every `inner` places one ..
  std::int64_t length = 0;  // .. and so many of them; 0: the whole group

  std::int64_t groups() const;
  std::int64_t size() const;  // of the largest group
  // Of one group, 0 <= group < groups(): only slices of a number that they do not divide differ.
  std::int64_t size_of(std::int64_t group) const;
  std::int64_t rank_at(std::int64_t group, std::int64_t position) const;
  membership place_of(std::int64_t rank) const;

  // body(rank) for the ranks of a group in their order.
  template <class Body>
  void each(std::int64_t group, Body&& body) const {
    const std::int64_t count = size_of(group);
    for (std::int64_t i = 0; i < count; ++i) body(rank_at(group, i));
  }

 private:
  std::int64_t whole() const { return members.size(); }
  std::int64_t parts() const;  // of a whole group
};

}  // namespace velo::comm
