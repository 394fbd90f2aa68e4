// A block's `left` is the one before it in its bin, nullptr of the first, and `right` the one behind.
#include "memory/free_index.hpp"

#include <algorithm>

namespace velo::memory {

// The first 32 bins of single units, then those of each power of two by the five bits behind the
// first, which makes one row of numbers.
int free_index::bin_of(std::uint64_t size) noexcept {
  const std::uint64_t units = size / unit;
  const int power = 63 - __builtin_clzll(units | steps);
  const int shift = power - 5;
  return shift * steps + static_cast<int>(units >> shift);
}

int free_index::filled_from(int bin) const noexcept {
  int word = bin / 64;
  std::uint64_t bits = filled_[word] & ~std::uint64_t{0} << bin % 64;
  if (bits == 0) {
    const std::uint32_t more = filled_words_ & ~std::uint32_t{1} << word;
    if (more == 0) return -1;
    word = __builtin_ctz(more);
    bits = filled_[word];
  }
  return word * 64 + __builtin_ctzll(bits);
}

void free_index::link(block& added, int bin) noexcept {
  block* next = first_[bin];
  most_[bin] = next == nullptr ? added.size : std::max(most_[bin], added.size);
  added.left = nullptr;
  added.right = next;
  first_[bin] = &added;
  if (next != nullptr) {
    next->left = &added;
    return;
  }
  filled_[bin / 64] |= std::uint64_t{1} << bin % 64;
  filled_words_ |= std::uint32_t{1} << bin / 64;
}

void free_index::unlink(block& present, int bin) noexcept {
  block* next = present.right;
  if (next != nullptr) next->left = present.left;
  if (present.left != nullptr) {
    present.left->right = next;
    return;
  }
  first_[bin] = next;
  if (next != nullptr) return;
  std::uint64_t& word = filled_[bin / 64];
  word &= ~(std::uint64_t{1} << bin % 64);
  if (word == 0) filled_words_ &= ~(std::uint32_t{1} << bin / 64);
}

void free_index::insert(block& added) noexcept {
  link(added, bin_of(added.size));
  bytes_ += added.size;
}

void free_index::remove(block& present) noexcept {
  unlink(present, bin_of(present.size));
  bytes_ -= present.size;
}

void free_index::resize(block& present, std::uint64_t size) noexcept {
  const int was = bin_of(present.size), is = bin_of(size);
  bytes_ += size - present.size;
  present.size = size;
  if (was == is) {
    most_[is] = std::max(most_[is], size);
    return;
  }
  unlink(present, was);
  link(present, is);
}

block* free_index::find(std::uint64_t size) const noexcept {
  const int bin = bin_of(size), next = filled_from(bin + 1);
  block* b = size <= most_[bin] ? first_[bin] : nullptr;
  block* best = nullptr;
  for (int look = 0; b != nullptr && look < looks; b = b->right, ++look)
    if (b->size >= size && (best == nullptr || b->size < best->size)) best = b;
  if (best != nullptr) return best;
  if (b != nullptr && next != bin + 1)
    if (block* behind = look_through(bin, size)) return behind;
  return next >= 0 ? first_[next] : nullptr;
}

block* free_index::look_through(int bin, std::uint64_t size) const noexcept {
  std::uint64_t most = 0;
  for (block* b = first_[bin]; b != nullptr; b = b->right) {
    if (b->size >= size) return b;
    most = std::max(most, b->size);
  }
  most_[bin] = most;
  return nullptr;
}

block* free_index::large() const noexcept {
  if (filled_words_ == 0) return nullptr;
  const int word = 31 - __builtin_clz(filled_words_);
  return first_[word * 64 + 63 - __builtin_clzll(filled_[word])];
}

const block* free_index::largest() const noexcept {
  const block* most = large();
  for (const block* b = most; b != nullptr; b = b->right)
    if (b->size > most->size) most = b;
  return most;
}

}  // namespace velo::memory
