// Finding and joining text files.
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

documents documents_named(const std::string& setting) {
  return setting == "true"    ? documents::files
         : setting == "lines" ? documents::lines
                              : documents::none;
}

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

namespace {

// Files one after another.
struct joined_files {
  std::vector<std::string> files;
  std::vector<std::size_t> ends;
  std::size_t binary = 0;
  std::string whole;
};

joined_files join_files(const std::vector<std::string>& paths) {
  joined_files all;
  std::string& whole = all.whole;
  struct stretch {
    std::size_t begin, bytes;
  };
  // The key is a CRC; files with equal CRCs are compared.
  std::unordered_multimap<std::uint32_t, stretch> seen;
  for (const std::string& path : list_files(paths)) {
    if (read_beginning(path, binary_within).find('\0') != std::string::npos) {
      ++all.binary;
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
    all.files.push_back(path);
    whole += text;
    all.ends.push_back(whole.size());
  }
  if (whole.empty() && all.binary > 0) {
    fail("%s: no text: %s a zero byte in the first 8 KiB, as binary files do", paths[0].c_str(),
         all.binary == 1 ? "the file has" : "all files have");
  }
  if (whole.empty())
    fail("%s: no text: there is no regular file that is not empty", paths[0].c_str());
  return all;
}

// Refuses text that is too short to be cut into blocks and windows.
void require_length(const corpus& result, const std::string& path, std::size_t bytes,
                    std::size_t window) {
  if (result.validation.empty()) {
    fail(
        "%s: %zu bytes of text are too short: validation takes every tenth block of 4 KiB, so more "
        "than %zu are needed",
        path.c_str(), bytes, (validation_stride - 1) * block_bytes);
  }
  if (result.training.size() < window) {
    fail("%s: %zu bytes of training text are too short for a window of %zu", path.c_str(),
         result.training.size(), window);
  }
}

corpus documents_of(const joined_files& all, const std::string& path, std::size_t validation_bytes,
                    documents how) {
  const bool lines = how == documents::lines;
  const std::vector<std::size_t> ends = lines ? line_ends(all.whole, all.ends) : all.ends;
  if (ends.size() < validation_stride)
    fail("%s: %zu %s%s too few: validation takes every tenth document, so %zu are needed",
         path.c_str(), ends.size(), lines ? "line" : "file", ends.size() == 1 ? " is" : "s are",
         validation_stride);
  return split_documents(all.whole, ends, validation_bytes);
}

}  // namespace

corpus read_corpus(const std::vector<std::string>& paths, std::size_t window,
                   std::size_t validation_bytes, documents how) {
  joined_files all = join_files(paths);
  corpus result = how == documents::none ? split_text(all.whole, validation_bytes)
                                         : documents_of(all, paths[0], validation_bytes, how);
  result.files = std::move(all.files);
  result.binary_files = all.binary;
  if (how == documents::none) require_length(result, paths[0], all.whole.size(), window);
  return result;
}

}  // namespace decoder
