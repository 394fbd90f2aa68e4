// The keys that the rows of a sequence see, as one range a row.
//
//   first(i) = i + low    last(i) = max(i + high, prefix)    both cut to [0, keys]
//
// Every mask that is a formula is such a range: full, causal, a band, a prefix. No end decreases
// from row to row. So the rows that see a key are a range, too, and the keys that some rows see lie
// between the first row's first and the last row's last. Cost: O(1), the count of all pairs too.
#pragma once

#include <algorithm>
#include <cstdint>

namespace velo::ops {

constexpr std::int64_t unlimited = std::int64_t{1} << 61;

// How far a row sees to the left and right of the diagonal, which begins in the top left corner or
// ends in the bottom right one.
struct attention_window {
  std::int64_t pre = unlimited, next = unlimited;
  bool bottom_right = false;
};

class visible_keys {
 public:
  visible_keys(const attention_window& window, std::int64_t rows, std::int64_t keys,
               std::int64_t prefix)
      : rows_(rows), keys_(keys), prefix_(std::clamp<std::int64_t>(prefix, 0, keys)) {
    const std::int64_t shift = window.bottom_right ? keys - rows : 0;
    if (window.pre < unlimited) low_ = shift - window.pre;
    if (window.next < unlimited) high_ = shift + window.next + 1;
  }

  // A row sees the keys from first to last, which it does not see; none where last <= first.
  std::int64_t first(std::int64_t row) const {
    return std::clamp<std::int64_t>(row + low_, 0, keys_);
  }
  std::int64_t last(std::int64_t row) const {
    return std::clamp<std::int64_t>(row + high_, prefix_, keys_);
  }
  // The rows from first_row to last_row see a key.
  std::int64_t first_row(std::int64_t key) const {
    return key < prefix_ ? 0 : std::clamp<std::int64_t>(key - high_ + 1, 0, rows_);
  }
  std::int64_t last_row(std::int64_t key) const {
    return std::clamp<std::int64_t>(key - low_ + 1, 0, rows_);
  }
  // Pairs of a row and a key that it sees.
  double pairs() const {
    if (low_ > high_) return 0;
    return sum_of_clamped(high_, prefix_) - sum_of_clamped(low_, 0);
  }

 private:
  // The sum over rows i of clamp(i + offset, least, keys).
  double sum_of_clamped(std::int64_t offset, std::int64_t least) const {
    const std::int64_t from = std::clamp<std::int64_t>(least - offset, 0, rows_);
    const std::int64_t to = std::clamp<std::int64_t>(keys_ - offset, from, rows_);
    const auto real = [](std::int64_t x) { return static_cast<double>(x); };
    return real(from) * real(least) + real(rows_ - to) * real(keys_) +
           real(to - from) * (real(offset) + (real(from) + real(to) - 1) / 2);
  }

  std::int64_t rows_, keys_, prefix_;
  std::int64_t low_ = -unlimited, high_ = unlimited;
};

}  // namespace velo::ops
