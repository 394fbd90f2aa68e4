// The window of the training text for each sequence of each step: a function of seed and number.
//
// An epoch cuts the text into a grid of windows, shifted by its own phase, and visits them in its
// own order: every byte is seen about once an epoch, and no two epochs cut the text alike. Any
// window is computed without the ones before it, so a run resumes anywhere and stores no order.
// Constant time and no memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace decoder {

class windows {
 public:
  // The text must be at least one window long.
  windows(std::int64_t text_bytes, std::int64_t window_bytes, std::int64_t seed);

  std::int64_t per_epoch() const { return per_epoch_; }
  std::int64_t begin(std::int64_t number) const;  // where the run's number-th window begins

 private:
  std::int64_t window_, slack_, per_epoch_, seed_;
};

// The rows of a window that a rank holds, in their order: all of them, or where ranks share windows
// some runs.
class held_rows {
 public:
  explicit held_rows(std::int64_t window) : held_rows(window, {0, window}) {}
  // runs: begin and end of each.
  held_rows(std::int64_t window, std::vector<std::int64_t> runs);

  std::int64_t window() const { return window_; }
  std::int64_t count() const { return count_; }
  // The position in the window of each row.
  std::vector<std::int64_t> positions() const;
  // Copies the rows of a window.
  void copy(const std::int32_t* window, std::int32_t* rows) const;

 private:
  std::int64_t window_, count_ = 0;
  std::vector<std::int64_t> runs_;
};

// Some bytes of a text; those before `first_counted` are context alone, whose losses do not count.
struct window {
  std::string_view bytes;
  std::size_t first_counted;
};

// Writes one sequence: inputs are `bos` and all bytes but the last, targets are the bytes.
void write_sequence(std::string_view bytes, std::int32_t* inputs, std::int32_t* targets);

// Writes the rows of windows that a rank holds. Behind the end of a shorter window follows padding,
// whose targets do not count.
class window_writer {
 public:
  explicit window_writer(const held_rows& rows);

  // Writes a window as sequence `number` of two tensors [sequences, rows].
  void write(const window& from, std::int64_t number, std::int32_t* inputs, std::int32_t* targets);

 private:
  const held_rows& rows_;
  std::vector<std::int32_t> inputs_, targets_;  // of a window
};

}  // namespace decoder
