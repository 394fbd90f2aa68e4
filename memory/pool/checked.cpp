// The patterns, written and compared.
#include "memory/pool/checked.hpp"

#include <cstring>

namespace velo::memory::checked {
namespace {

constexpr unsigned char guard_byte = 0xfd, fresh_byte = 0xa5, freed_byte = 0xdd;

// The first byte in [from, to) that is not `wanted`; `to` when there is none.
const char* other_than(unsigned char wanted, const char* from, const char* to) noexcept {
  while (from < to && static_cast<unsigned char>(*from) == wanted) ++from;
  return from;
}

}  // namespace

void arm(char* memory, const block& b, bool zero) noexcept {
  const std::uint64_t front = b.first() - b.start;
  char* first = memory + front;
  std::memset(memory, guard_byte, front);
  if (!zero) std::memset(first, fresh_byte, b.asked());
  std::memset(first + b.asked(), guard_byte, b.size - front - b.asked());
}

bool is_damaged(const char* memory, const block& b, core::text& how) noexcept {
  const char *first = memory + (b.first() - b.start), *last = first + b.asked(),
             *end = memory + b.size;
  const char* before = other_than(guard_byte, memory, first);
  if (before != first) how = core::concat("a write ", first - before, " bytes before the block");
  const char* behind = other_than(guard_byte, last, end);
  if (behind != end)
    how = core::concat("a write ", behind - last + 1, " bytes behind the block's last byte");
  return before != first || behind != end;
}

void poison(char* memory, const block& b) noexcept {
  std::memset(memory, freed_byte, b.size);
}

bool is_poison_damaged(const char* memory, const block& b, core::text& how) noexcept {
  const char* end = memory + b.size;
  const char* at = other_than(freed_byte, memory, end);
  if (at == end) return false;
  const char* const first = memory + (b.first() - b.start);
  how = core::concat("a write to byte ", at - first, " of a block of ", b.asked(),
                     " bytes after its free");
  return true;
}

void quarantine::add(block& freed) noexcept {
  freed.become(block_state::quarantined);
  freed.left = nullptr;
  (last_ == nullptr ? first_ : last_->left) = &freed;
  last_ = &freed;
  bytes_ += freed.size;
}

block* quarantine::take() noexcept {
  block* oldest = first_;
  if (oldest == nullptr) return nullptr;
  first_ = oldest->left;
  if (first_ == nullptr) last_ = nullptr;
  bytes_ -= oldest->size;
  return oldest;
}

}  // namespace velo::memory::checked
