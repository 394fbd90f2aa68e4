// The terms of a call: everything that must be the same on all ranks that take part.
//
// Terms are plain data of 32 bytes: they fit in a mailbox's line beside its number, its signature
// and 16 bytes of payload. Ranks compare signatures and report the terms if they differ. Two
// different terms have the same signature with probability 2^-64.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "comm/pattern/pattern.hpp"
#include "velo/types.h"

namespace velo::comm {

// Calls of a group that are not collectives: messages, which need not concern all ranks; the
// creation of subgroups; and operators over two groups, whose steps are collectives.
enum class other_call : std::uint8_t {
  send,
  receive,
  exchange,
  create_part,
  shrink,
  dispatch,
  combine
};

// One byte that names a collective or another call. A byte received from a peer may be invalid.
class call_kind {
 public:
  constexpr call_kind() noexcept = default;
  constexpr call_kind(collective one) noexcept : number_(static_cast<std::uint8_t>(one)) {}
  constexpr call_kind(other_call one) noexcept
      : number_(static_cast<std::uint8_t>(collective_count + static_cast<std::size_t>(one))) {}
  static constexpr call_kind numbered(int number) noexcept {
    call_kind made;
    made.number_ = static_cast<std::uint8_t>(number);
    return made;
  }

  constexpr int number() const noexcept { return number_; }
  constexpr bool is_collective() const noexcept { return number_ < collective_count; }
  // Valid only for a collective.
  constexpr const collective_traits& traits() const noexcept { return collectives[number_]; }
  const char* name() const noexcept;

  friend constexpr bool operator==(call_kind a, call_kind b) noexcept {
    return a.number_ == b.number_;
  }
  friend constexpr bool operator!=(call_kind a, call_kind b) noexcept { return !(a == b); }

 private:
  std::uint8_t number_ = 0;
};

// Spreads every input bit over the whole result (the last steps of splitmix64).
inline std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// A kind leaves the fields that it does not use 0.
struct terms {
  call_kind kind;
  std::uint8_t reduction = 0;                                         // velo_reduce_op
  std::uint8_t in_code = 0, in_bits = 0, out_code = 0, out_bits = 0;  // of dtypes
  // The root of a collective, the peer of a message, or step_of() for an all_to_all that is a step
  // of another call.
  std::uint16_t root = 0;
  std::int64_t count = 0;  // elements
  double scale = 0;        // of a reduction
  // The hash of the block sizes if they differ and all ranks know them; 1 if only the two ranks of
  // a block know its size. A step of another call uses it as rows.cpp says.
  std::uint64_t counts = 0;
  static constexpr std::uint64_t of_measure = 2;       // in the barrier that begins a measurement
  static constexpr std::uint64_t of_own_messages = 1;  // in a call of messages to the rank itself

  // Makes a call of an operator one in whose sizes and attributes ranks must agree; `all` is their
  // hash. Other calls hardly ever have its mark.
  void require_same(std::uint64_t all) noexcept { counts = all | 2; }
  std::uint64_t signature() const noexcept;                 // never 0
  std::string text() const;                                 // "all_reduce of 1024 float32, sum"
  bool has_elements_of(const terms& sent) const noexcept {  // the two sides of a message
    return count == sent.count && in_code == sent.in_code && in_bits == sent.in_bits;
  }
  velo_dtype in_dtype() const noexcept { return {in_code, in_bits, 1}; }
  velo_dtype out_dtype() const noexcept { return {out_code, out_bits, 1}; }
};
static_assert(sizeof(terms) == 32);

inline std::uint64_t terms::signature() const noexcept {
  std::uint64_t words[4];
  std::memcpy(words, this, sizeof words);
  const std::uint64_t all =
      mixed(mixed(words[0] + 1) + words[1]) + mixed(mixed(words[2] + 2) + words[3]);
  return all != 0 ? all : 1;
}

// The root field of an all_to_all that is a step of a dispatch or combine. Never 0.
std::uint16_t step_of(other_call whole, bool weighted) noexcept;
std::uint64_t hash_of(const std::vector<block>& blocks) noexcept;  // of their counts

}  // namespace velo::comm
