// Windows of text as symbols in the tensors of a batch, as far as a rank holds their rows.
//
// A whole window is written aside first, since a row's input is the byte before it, which another
// rank may hold. Cost: a copy of the window.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace decoder {

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
