// Whole files, read and written at once.
#include "tools/velo/text_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "tools/velo/commands.hpp"
#include "tools/velo/messages.hpp"
#include "tools/velo/new_file.hpp"

namespace command {
namespace {

constexpr std::size_t most_bytes = std::size_t{4} << 30;

using open_file = std::unique_ptr<FILE, int (*)(FILE*)>;

[[noreturn]] void refuse(const std::string& file) {
  throw input_error(file + ": cannot be read: " + std::strerror(errno));
}

[[noreturn]] void refuse_output(const std::string& file, const std::runtime_error& reason) {
  throw input_error(file + ": cannot be written: " + reason.what());
}

}  // namespace

std::string read_file(const std::string& file) {
  const open_file in(std::fopen(file.c_str(), "rb"), &std::fclose);
  if (in == nullptr) refuse(file);
  std::string all;
  char part[1 << 16];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, in.get())) > 0;) {
    all.append(part, n);
    if (all.size() > most_bytes) throw input_error(file + ": expected at most 4 GiB");
  }
  if (std::ferror(in.get()) != 0) refuse(file);
  return all;
}

std::size_t line_of_row(const std::string& file, std::int64_t row) {
  const std::string all = read_file(file);
  std::size_t line = 0;
  for (std::size_t begin = 0; row >= -1 && begin < all.size(); ++line) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    const std::string text = all.substr(begin, end - begin);
    if (!text.empty() && text != "\r") --row;
    begin = end + 1;
  }
  return line;
}

void refuse_text(const std::string& file, const velo::error& failure) {
  std::string sentence = sentence_of(failure);  // "text, line 3, column 5: .."
  const std::string subject = "text, ";
  if (sentence.compare(0, subject.size(), subject) == 0) sentence.erase(0, subject.size());
  throw input_error(file + ": " + sentence);
}

void write_file(const std::string& file, const std::string& text) {
  try {
    write_new_file(file, text);
  } catch (const std::runtime_error& reason) {
    refuse_output(file, reason);
  }
}

void require_writable(const std::string& file) {
  try {
    const new_file unused(file);  // never put in place
  } catch (const std::runtime_error& reason) {
    refuse_output(file, reason);
  }
}

}  // namespace command
