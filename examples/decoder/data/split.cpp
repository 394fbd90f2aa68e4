// Training and validation text: every tenth block or document is held back.
#include <algorithm>

#include "examples/decoder/data/corpus.hpp"
#include "examples/decoder/files/file.hpp"

namespace decoder {
namespace {

void add_to_crc(std::uint32_t& crc, const void* from, std::size_t bytes) {
  crc = crc32_of(crc, from, bytes);
}

void add_to_crc(std::uint32_t& crc, const std::vector<std::size_t>& ends) {
  for (const std::size_t end : ends) {
    const auto stable = static_cast<std::uint64_t>(end);
    add_to_crc(crc, &stable, sizeof stable);
  }
}

void set_crc(corpus& of) {
  of.crc = 0;
  add_to_crc(of.crc, of.training.data(), of.training.size());
  add_to_crc(of.crc, of.validation.data(), of.validation.size());
  add_to_crc(of.crc, of.training_ends);
  add_to_crc(of.crc, of.validation_ends);
}

bool is_held_back(std::size_t number) {
  return number % validation_stride == validation_stride - 1;
}

}  // namespace

corpus split_text(std::string_view whole, std::size_t validation_bytes) {
  corpus result;
  std::vector<std::string_view> kept;
  for (std::size_t at = 0, block = 0; at < whole.size(); at += block_bytes, ++block) {
    const std::string_view text = whole.substr(at, block_bytes);
    if (is_held_back(block)) {
      kept.push_back(text);
    } else {
      result.training += text;
    }
  }
  const std::size_t most = std::max<std::size_t>(1, validation_bytes / block_bytes);
  const std::size_t count = std::min(most, kept.size());
  for (std::size_t i = 0; i < count; ++i) result.validation += kept[i * kept.size() / count];
  set_crc(result);
  return result;
}

std::vector<std::size_t> line_ends(std::string_view whole, const std::vector<std::size_t>& files) {
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  for (const std::size_t file : files)
    while (at < file) {
      const std::size_t newline = std::min(whole.find('\n', at), file);
      at = std::min(whole.find_first_not_of('\n', newline), file);
      ends.push_back(at);
    }
  return ends;
}

corpus split_documents(std::string_view whole, const std::vector<std::size_t>& ends,
                       std::size_t validation_bytes) {
  corpus result;
  std::vector<std::string_view> kept;
  std::size_t begin = 0, bytes = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::string_view text = whole.substr(begin, ends[i] - begin);
    begin = ends[i];
    if (is_held_back(i)) {
      kept.push_back(text);
      bytes += text.size();
      continue;
    }
    result.training += text;
    result.training_ends.push_back(result.training.size());
  }
  // As many as have the bytes if all are of one size.
  const double share = static_cast<double>(validation_bytes) / static_cast<double>(bytes);
  const auto count = static_cast<std::size_t>(static_cast<double>(kept.size()) * share);
  const std::size_t most = std::clamp<std::size_t>(count, 1, kept.size());
  for (std::size_t i = 0; i < most && result.validation.size() < validation_bytes; ++i) {
    const std::string_view text = kept[i * kept.size() / most];
    result.validation += text.substr(0, validation_bytes - result.validation.size());
    result.validation_ends.push_back(result.validation.size());
  }
  set_crc(result);
  return result;
}

}  // namespace decoder
