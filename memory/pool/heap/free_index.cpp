// The searches beyond the first blocks of a bin.
#include "memory/pool/heap/free_index.hpp"

namespace velo::memory {

// Searches a request's own bin. next: the first filled bin after it.
block* free_index::find_in(std::uint32_t number, std::uint64_t size, int next) const noexcept {
  block* b = bins_[number].first;
  block* best = nullptr;
  for (int look = 0; b != nullptr && look < looks; b = b->right, ++look)
    if (b->size >= size && (best == nullptr || b->size < best->size)) best = b;
  if (best != nullptr || b == nullptr || next == static_cast<int>(number) + 1) return best;
  return look_through(number, size);
}

block* free_index::look_through(std::uint32_t number, std::uint64_t size) const noexcept {
  std::uint64_t most = 0;
  for (block* b = bins_[number].first; b != nullptr; b = b->right) {
    if (b->size >= size) return b;
    most = std::max(most, b->size);
  }
  bins_[number].most = most;
  return nullptr;
}

block* free_index::large() const noexcept {
  int word = words - 1;
  while (word > 0 && filled_[word] == 0) --word;
  if (filled_[word] == 0) return nullptr;
  return bins_[word * 64 + 63 - __builtin_clzll(filled_[word])].first;
}

const block* free_index::largest() const noexcept {
  const block* most = large();
  for (const block* b = most; b != nullptr; b = b->right)
    if (b->size > most->size) most = b;
  return most;
}

}  // namespace velo::memory
