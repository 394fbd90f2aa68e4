// Finding, joining and splitting text files.
#include "examples/decoder/data/corpus.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"

namespace decoder {
namespace {

namespace fs = std::filesystem;

void list_directory(const fs::path& directory, std::set<std::string>& found) {
  try {
    // Links are not followed, so there are no circles; a folder that cannot be opened throws.
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
      if (entry.symlink_status().type() == fs::file_type::regular) {
        found.insert(entry.path().string());
      }
    }
  } catch (const fs::filesystem_error& error) {
    const fs::path& where = error.path1().empty() ? directory : error.path1();
    fail("%s: cannot read the directory: %s", where.c_str(), error.code().message().c_str());
  }
}

}  // namespace

std::vector<std::string> list_files(const std::vector<std::string>& paths) {
  std::set<std::string> found;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      fail("%s: %s", path.c_str(), error ? error.message().c_str() : "no such file or directory");
    }
    if (fs::is_directory(status)) {
      list_directory(path, found);
    } else if (fs::is_regular_file(status)) {
      found.insert(path);
    } else {
      fail("%s: neither a regular file nor a directory", path.c_str());
    }
  }
  return {found.begin(), found.end()};
}

corpus split_text(std::string_view whole, std::size_t validation_bytes) {
  corpus result;
  std::vector<std::string_view> kept;
  for (std::size_t at = 0, block = 0; at < whole.size(); at += block_bytes, ++block) {
    const std::string_view text = whole.substr(at, block_bytes);
    if (block % validation_stride == validation_stride - 1) {
      kept.push_back(text);
    } else {
      result.training += text;
    }
  }
  const std::size_t most = std::max<std::size_t>(1, validation_bytes / block_bytes);
  const std::size_t count = std::min(most, kept.size());
  for (std::size_t i = 0; i < count; ++i) result.validation += kept[i * kept.size() / count];
  result.crc = crc32_of(0, result.training.data(), result.training.size());
  result.crc = crc32_of(result.crc, result.validation.data(), result.validation.size());
  return result;
}

corpus read_corpus(const std::vector<std::string>& paths, std::size_t window,
                   std::size_t validation_bytes) {
  std::vector<std::string> files;
  std::size_t binary = 0;
  std::string whole;
  struct stretch {
    std::size_t begin, bytes;
  };
  // The key is a CRC; files with equal CRCs are compared.
  std::unordered_multimap<std::uint32_t, stretch> seen;
  for (const std::string& path : list_files(paths)) {
    if (read_beginning(path, binary_within).find('\0') != std::string::npos) {
      ++binary;
      continue;
    }
    const std::string text = read_whole_file(path);
    const std::uint32_t crc = crc32_of(0, text.data(), text.size());
    const auto [first, last] = seen.equal_range(crc);
    const bool known = std::any_of(first, last, [&](const auto& each) {
      return whole.compare(each.second.begin, each.second.bytes, text) == 0;
    });
    if (known || text.empty()) continue;
    seen.insert({crc, {whole.size(), text.size()}});
    files.push_back(path);
    whole += text;
  }
  if (whole.empty() && binary > 0) {
    fail("%s: no text: %s a zero byte in the first 8 KiB, as binary files do", paths[0].c_str(),
         binary == 1 ? "the file has" : "all files have");
  }
  if (whole.empty())
    fail("%s: no text: there is no regular file that is not empty", paths[0].c_str());
  corpus result = split_text(whole, validation_bytes);
  result.files = std::move(files);
  result.binary_files = binary;
  if (result.validation.empty()) {
    fail(
        "%s: %zu bytes of text are too short: validation takes every tenth block of 4 KiB, so more "
        "than %zu are needed",
        paths[0].c_str(), whole.size(), (validation_stride - 1) * block_bytes);
  }
  if (result.training.size() < window) {
    fail("%s: %zu bytes of training text are too short for a window of %zu", paths[0].c_str(),
         result.training.size(), window);
  }
  return result;
}

}  // namespace decoder
