// The text: files found, joined, and split into training and validation text.
//
// A path is a file, or a directory whose regular files are taken recursively. Symbolic links inside
// directories are skipped, copies of a file count once, and a file with a zero byte in its first 8
// KiB is binary and skipped. Files are joined in path order. Every tenth 4 KiB block of the whole
// is validation text; the rest, joined again, is training text. Everything is held in memory, once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decoder {

constexpr std::size_t block_bytes = 4096;
constexpr std::size_t validation_stride = 10;  // blocks 9, 19, 29, .. are validation
constexpr std::size_t binary_within = 8192;    // a zero byte within these marks a binary file

struct corpus {
  std::vector<std::string> files;  // in path order, without copies
  std::size_t binary_files = 0;    // found and skipped
  std::string training;
  std::string validation;  // whole blocks; the last may be shorter
  std::uint32_t crc = 0;   // of both texts, to find data that changed since a checkpoint
};

// Refuses files that are missing, unreadable, empty or all binary, and text too short for one
// training window of `window` bytes and one validation block. At most `validation_bytes` of
// validation text are kept, in blocks spread evenly over it.
corpus read_corpus(const std::vector<std::string>& paths, std::size_t window,
                   std::size_t validation_bytes);

// The two halves of read_corpus.
std::vector<std::string> list_files(const std::vector<std::string>& paths);
corpus split_text(std::string_view whole, std::size_t validation_bytes);

}  // namespace decoder
