// Treaps whose priorities are hashes of addresses: balanced whatever the order of insertion.
#include "memory/free_index.hpp"

namespace velo::memory {
namespace {

bool less(const block& a, const block& b) noexcept {
  return a.size != b.size ? a.size < b.size : a.start < b.start;
}

std::uint64_t priority(const block& b) noexcept {
  return (b.start / unit + 1) * 0x9e3779b97f4a7c15u;
}

void insert_into(block*& root, block& added) noexcept {
  block** at = &root;
  while (*at != nullptr && priority(**at) >= priority(added))
    at = less(added, **at) ? &(*at)->left : &(*at)->right;
  block* rest = *at;  // what is below is divided around the new node
  block** smaller = &added.left;
  block** larger = &added.right;
  while (rest != nullptr) {
    if (less(*rest, added)) {
      *smaller = rest;
      smaller = &rest->right;
      rest = rest->right;
    } else {
      *larger = rest;
      larger = &rest->left;
      rest = rest->left;
    }
  }
  *smaller = *larger = nullptr;
  *at = &added;
}

void remove_from(block*& root, const block& present) noexcept {
  block** at = &root;
  while (*at != &present) at = less(present, **at) ? &(*at)->left : &(*at)->right;
  block* smaller = present.left;
  block* larger = present.right;
  while (smaller != nullptr && larger != nullptr) {
    if (priority(*smaller) >= priority(*larger)) {
      *at = smaller;
      at = &smaller->right;
      smaller = smaller->right;
    } else {
      *at = larger;
      at = &larger->left;
      larger = larger->left;
    }
  }
  *at = smaller != nullptr ? smaller : larger;
}

}  // namespace

// The power of two in units, and the five bits below the first.
free_index::place free_index::place_of(std::uint64_t size) noexcept {
  const std::uint64_t units = size / unit;
  const int power = 63 - __builtin_clzll(units | 1);
  const int step =
      static_cast<int>((power >= 5 ? units >> (power - 5) : units << (5 - power)) & 31);
  return {power, step};
}

void free_index::insert(block& added) noexcept {
  const place at = place_of(added.size);
  insert_into(roots_[at.power][at.step], added);
  filled_steps_[at.power] |= 1u << at.step;
  filled_powers_ |= std::uint64_t{1} << at.power;
  bytes_ += added.size;
}

void free_index::remove(block& present) noexcept {
  const place at = place_of(present.size);
  block*& root = roots_[at.power][at.step];
  remove_from(root, present);
  bytes_ -= present.size;
  if (root != nullptr) return;
  filled_steps_[at.power] &= ~(1u << at.step);
  if (filled_steps_[at.power] == 0) filled_powers_ &= ~(std::uint64_t{1} << at.power);
}

block* free_index::best_fit(std::uint64_t size) const noexcept {
  const place at = place_of(size);
  block* best = nullptr;
  for (block* b = roots_[at.power][at.step]; b != nullptr;) {
    const bool fits = b->size >= size;
    if (fits) best = b;
    b = fits ? b->left : b->right;
  }
  if (best != nullptr) return best;
  // Everything in a later bin is large enough, and the smallest of the next is the best.
  place next = at;
  std::uint32_t more = filled_steps_[at.power] & ~((2u << at.step) - 1);
  if (more == 0) {
    const std::uint64_t above = filled_powers_ & ~((std::uint64_t{2} << at.power) - 1);
    if (above == 0) return nullptr;
    next.power = __builtin_ctzll(above);
    more = filled_steps_[next.power];
  }
  next.step = __builtin_ctz(more);
  best = roots_[next.power][next.step];
  while (best->left != nullptr) best = best->left;
  return best;
}

block* free_index::largest() const noexcept {
  if (filled_powers_ == 0) return nullptr;
  const int power = 63 - __builtin_clzll(filled_powers_);
  block* b = roots_[power][31 - __builtin_clz(filled_steps_[power])];
  while (b->right != nullptr) b = b->right;
  return b;
}

}  // namespace velo::memory
