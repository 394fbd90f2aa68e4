// Documents in windows: whole ones side by side, longer ones cut.
//
// A piece is a document, or the part of one, that lies in one window; it begins with `bos`, and a
// document's last piece ends with `eos`. A document longer than a window fills windows of its own;
// its rest is packed as a document. Pieces are placed from the longest to the shortest, each where
// it leaves the least room (best fit decreasing), so that few rows are padding.
// Source: Ding et al. 2024, arXiv:2404.10830. Cost: n log n for n pieces.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace decoder {

// Some bytes of a document.
struct piece {
  std::string_view bytes;
  std::size_t first_counted = 0;  // bytes before it are context alone: their losses do not count
  bool ends = false;              // `eos` is predicted after them

  std::int64_t rows() const { return static_cast<std::int64_t>(bytes.size()) + (ends ? 1 : 0); }
};

// Pieces side by side, in memory of others.
struct window {
  const piece* pieces;
  std::size_t count;
};

struct packing {
  std::vector<piece> pieces;      // of the first window, the second, ..
  std::vector<std::size_t> ends;  // of each window's pieces

  std::int64_t windows() const { return static_cast<std::int64_t>(ends.size()); }
  window at(std::int64_t number) const;
  std::int64_t rows(std::int64_t number) const;  // without padding
};

// The pieces of a document in windows of so many rows, 2 or more.
void cut_document(std::string_view text, std::int64_t rows, std::vector<piece>& into);

// Packs pieces of at most so many rows into windows of as many.
packing pack(const std::vector<piece>& pieces, std::int64_t rows);

}  // namespace decoder
