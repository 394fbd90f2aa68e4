// The text: files found, joined, and split into what is trained on and what is measured on.
//
// Every path is a file, or a directory whose regular files are taken recursively; symbolic links
// inside directories are skipped, and of files with equal contents the first counts. Files are
// joined in path order. Of the whole, every tenth 4 KiB block is validation; the rest, joined
// again, is training text. Everything is held in memory, once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pretrain {

constexpr std::size_t block_bytes = 4096;
constexpr std::size_t validation_stride = 10;  // blocks 9, 19, 29, .. are validation

struct corpus {
  std::vector<std::string> files;  // those that count, in path order
  std::string training;
  std::string validation;  // whole blocks; the last may be shorter
  std::uint32_t crc = 0;   // of both texts: has the data changed since a checkpoint?
};

// Refuses what is missing, unreadable or empty, and text that cannot give one training window of
// `window` bytes and one validation block. At most `validation_bytes` of validation text are kept,
// in blocks spread evenly over it.
corpus read_corpus(const std::vector<std::string>& paths, std::size_t window,
                   std::size_t validation_bytes);

// The two halves of the above, for themselves.
std::vector<std::string> list_files(const std::vector<std::string>& paths);
corpus split_text(std::string_view whole, std::size_t validation_bytes);

}  // namespace pretrain
