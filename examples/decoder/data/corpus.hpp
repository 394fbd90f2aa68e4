// The text: files found, joined, and split into what is trained on and what is measured on.
//
// Every path is a file, or a directory whose regular files are taken recursively; symbolic links
// inside directories are skipped, of files with equal contents the first counts, and one with a
// zero byte in its first 8 KiB is binary (an archive, a program) and not text. Files are joined in
// path order. Of the whole, every tenth 4 KiB block is validation; the rest, joined
// again, is training text. Everything is held in memory, once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decoder {

constexpr std::size_t block_bytes = 4096;
constexpr std::size_t validation_stride = 10;  // blocks 9, 19, 29, .. are validation
constexpr std::size_t binary_within = 8192;    // a zero byte here tells a binary file

struct corpus {
  std::vector<std::string> files;  // those that count, in path order
  std::size_t binary_files = 0;    // found and skipped
  std::string training;
  std::string validation;  // whole blocks; the last may be shorter
  std::uint32_t crc = 0;   // of both texts: has the data changed since a checkpoint?
};

// Refuses what is missing, unreadable, empty or all binary, and text that cannot give one training
// window of `window` bytes and one validation block. At most `validation_bytes` of validation text
// are kept, in blocks spread evenly over it.
corpus read_corpus(const std::vector<std::string>& paths, std::size_t window,
                   std::size_t validation_bytes);

// The two halves of the above, for themselves.
std::vector<std::string> list_files(const std::vector<std::string>& paths);
corpus split_text(std::string_view whole, std::size_t validation_bytes);

}  // namespace decoder
