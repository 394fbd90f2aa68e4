// The text: files found, joined, and split into training and validation text.
//
// A path is a file, or a directory whose regular files are taken recursively. Symbolic links inside
// directories are skipped, copies of a file count once, and a file with a zero byte in its first 8
// KiB is binary and skipped. Files are joined in path order. Every tenth 4 KiB block of the whole
// is validation text, or of documents every tenth document; the rest, joined again, is training
// text. Everything is held in memory, once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decoder {

constexpr std::size_t block_bytes = 4096;
constexpr std::size_t validation_stride = 10;  // blocks or documents 9, 19, .. are validation
constexpr std::size_t binary_within = 8192;    // a zero byte within these marks a binary file

// The documents of a text: none, its files, or its lines, each with the newlines behind it.
enum class documents { none, files, lines };

// The one with the name of a setting: "true" are files, "lines"; else none.
documents documents_named(const std::string& setting);

struct corpus {
  std::vector<std::string> files;  // in path order, without copies
  std::size_t binary_files = 0;    // found and skipped
  std::string training;
  std::string validation;  // whole blocks, the last may be shorter; or documents
  // The ends of the documents in both texts; empty without documents.
  std::vector<std::size_t> training_ends, validation_ends;
  std::uint32_t crc = 0;  // of all this, to find data that changed since a checkpoint
};

// Refuses files that are missing, unreadable, empty or all binary, and text too short for one
// training window of `window` bytes and one validation block, or for ten documents. At most
// `validation_bytes` of validation text are kept, in blocks or documents spread evenly over it; a
// single longer document is cut.
corpus read_corpus(const std::vector<std::string>& paths, std::size_t window,
                   std::size_t validation_bytes, documents how = documents::none);

// The parts of read_corpus. The last argument of line_ends: the ends of the files; `ends`: of the
// documents in `whole`.
std::vector<std::string> list_files(const std::vector<std::string>& paths);
corpus split_text(std::string_view whole, std::size_t validation_bytes);
std::vector<std::size_t> line_ends(std::string_view whole, const std::vector<std::size_t>& files);
corpus split_documents(std::string_view whole, const std::vector<std::size_t>& ends,
                       std::size_t validation_bytes);

}  // namespace decoder
