// The collectives, and what each does with the tensors of the ranks: one row each.
//
// A collective is described by three facts: whether one rank, the root, alone gives or takes;
// whether a rank's input and output are one tensor for all ranks or a block for each; and whether
// elements are moved or combined. Who gives what to whom (pattern.hpp), how a transport carries a
// collective out (round.hpp) and what texts say of it follow from the row. To add a collective that
// only moves data, add its number and its row; its entry, header, spec and checks are listed in
// CONTRIBUTING.
#pragma once

#include <cstddef>
#include <cstdint>

namespace velo::comm {

enum class collective : std::uint8_t {
  barrier,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter
};

// The role of the root: there is none, and every rank has a block for every rank; or the root alone
// gives, or takes.
enum class root_role : std::uint8_t { none, gives, takes };

// Whether `from` has a block for `to`, possibly an empty one.
constexpr bool moves(root_role role, int root, int from, int to) noexcept {
  switch (role) {
    case root_role::gives:
      return from == root;
    case root_role::takes:
      return to == root;
    case root_role::none:
      break;
  }
  return true;
}

// How a rank's tensor is laid out: there is none; all of it goes to, or comes from, every peer; or
// it has a block for each rank.
enum class layout : std::uint8_t { nothing, whole, blocks };

struct collective_traits {
  const char* name;
  root_role root;
  layout in, out;
  bool reduces;  // elements of all ranks are combined; otherwise they are only moved
};

inline constexpr collective_traits collectives[] = {
    {"barrier", root_role::none, layout::nothing, layout::nothing, false},
    {"all_reduce", root_role::none, layout::whole, layout::whole, true},
    {"reduce", root_role::takes, layout::whole, layout::whole, true},
    {"broadcast", root_role::gives, layout::whole, layout::whole, false},
    {"all_gather", root_role::none, layout::whole, layout::blocks, false},
    {"reduce_scatter", root_role::none, layout::blocks, layout::whole, true},
    {"all_to_all", root_role::none, layout::blocks, layout::blocks, false},
    {"gather", root_role::takes, layout::whole, layout::blocks, false},
    {"scatter", root_role::gives, layout::blocks, layout::whole, false},
};
inline constexpr std::size_t collective_count = sizeof collectives / sizeof *collectives;

constexpr const collective_traits& traits_of(collective kind) noexcept {
  return collectives[static_cast<std::size_t>(kind)];
}

// Whether every rank takes as many elements of the same ranks: a block of each, or all of the
// root's.
constexpr bool all_take_alike(const collective_traits& traits) noexcept {
  return traits.root == root_role::none ||
         (traits.root == root_role::gives && traits.in == layout::whole);
}

// Whether the root alone has a block for each rank, as in gather and scatter.
constexpr bool has_root_blocks(const collective_traits& traits) noexcept {
  return (traits.root == root_role::takes && traits.out == layout::blocks) ||
         (traits.root == root_role::gives && traits.in == layout::blocks);
}

}  // namespace velo::comm
