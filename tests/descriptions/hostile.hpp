// What the tests of descriptions share: hostile numbers, a struct as a caller with other headers
// has it, the rules of an answer, and the bounds of time and memory.
//
// A description is tried by a function that returns what is wrong with the answer, or nothing: a
// check for each of many thousand questions would cost more than the questions.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include "tests/json_tree.hpp"
#include "tests/random.hpp"
#include "tests/record.hpp"

namespace velo::testing {

// VELO_DESCRIPTIONS: as many in each test.
inline int descriptions() {
  const char* asked = std::getenv("VELO_DESCRIPTIONS");
  return asked != nullptr ? std::atoi(asked) : 2000;
}

// Cuts a text, puts one of `pieces` into it, or changes or takes out some of its bytes.
template <class Pieces>
void change_somewhere(std::string& text, const Pieces& pieces, random_source& random) {
  const std::size_t at = random.below(text.size() + 1);
  switch (random.below(4)) {
    case 0:
      text.resize(at);
      break;
    case 1:
      text.insert(at, random.pick(pieces));
      break;
    case 2:
      text.erase(at, 1 + random.below(8));
      break;
    default:
      if (at < text.size()) text[at] = static_cast<char>(random.below(256));
  }
}

// Numbers at the edges of what fields take, and of 64 bits.
inline std::int64_t hostile_number(random_source& random) {
  constexpr std::int64_t one = 1, most = std::numeric_limits<std::int64_t>::max();
  static const std::int64_t all[] = {0,
                                     1,
                                     2,
                                     3,
                                     5,
                                     7,
                                     64,
                                     255,
                                     256,
                                     257,
                                     4095,
                                     4096,
                                     4097,
                                     65535,
                                     65536,
                                     65537,
                                     one << 20,
                                     one << 24,
                                     one << 30,
                                     one << 31,
                                     one << 32,
                                     one << 40,
                                     one << 60,
                                     one << 62,
                                     most,
                                     most - 1,
                                     most / 2,
                                     (one << 31) - 1,
                                     (one << 60) - 1};
  const std::int64_t picked = random.pick(all);
  return random.one_in(4) ? -picked - (random.one_in(2) ? 1 : 0) : picked;
}
inline std::int32_t hostile_word(random_source& random) {
  static const std::int32_t all[] = {-1,
                                     2,
                                     3,
                                     6,
                                     7,
                                     8,
                                     9,
                                     255,
                                     std::numeric_limits<std::int32_t>::max(),
                                     std::numeric_limits<std::int32_t>::min()};
  return random.pick(all);
}

// A struct as callers with older, newer or broken headers hand it over: of another size, and with
// bytes behind it that this library does not know.
template <class Struct>
class handed_over {
 public:
  handed_over(const Struct& given, random_source& random) {
    constexpr auto size = static_cast<std::uint32_t>(sizeof(Struct));
    static const std::uint32_t sizes[] = {
        0,        1,         4,
        8,        16,        24,
        64,       80,        96,
        100,      104,       size - 8,
        size - 4, size - 1,  size + 1,
        size + 8, 4088,      4096,
        4097,     1u << 31u, std::numeric_limits<std::uint32_t>::max()};
    std::memcpy(bytes_, &given, sizeof given);
    if (random.one_in(20)) {
      const std::uint32_t other = random.pick(sizes);
      std::memcpy(bytes_, &other, sizeof other);
      if (random.one_in(2)) bytes_[size + random.below(16)] = 1;
    }
    std::memcpy(before_, bytes_, sizeof bytes_);
  }
  const Struct* get() const { return reinterpret_cast<const Struct*>(bytes_); }
  bool is_changed() const { return std::memcmp(bytes_, before_, sizeof bytes_) != 0; }
  // The fields that this library reads, if it accepts the size.
  Struct read(const Struct& defaults) const {
    std::uint32_t size = 0;
    std::memcpy(&size, bytes_, sizeof size);
    Struct all = defaults;
    std::memcpy(&all, bytes_, std::min<std::size_t>(size, sizeof all));
    return all;
  }

 private:
  alignas(8) unsigned char bytes_[4104] = {};
  unsigned char before_[4104] = {};
};

// What is wrong with the record of a refusal.
inline std::string wrong_in_refusal(velo_status status, const std::string& function,
                                    const std::string& argument) {
  const call_record record = last_record();
  const std::string found = record.function + ": " + record.argument + ": expected " +
                            record.expected + ", got " + record.got;
  if (status != VELO_ERR_ARGUMENT && status != VELO_ERR_NULL && status != VELO_ERR_STRUCT &&
      status != VELO_ERR_UNSUPPORTED)
    return "status " + std::to_string(status) + ", " + found;
  if (record.code != status || record.function != function || record.argument.empty() ||
      record.expected.empty() || record.got.empty() ||
      record.argument.compare(0, argument.size(), argument) != 0)
    return "the record " + found;
  return "";
}

// The whole of a text that write(buffer, capacity, &needed) writes; "" if it fails.
template <class Write>
std::string whole_text(const Write& write) {
  std::uint64_t needed = 0;
  if (write(nullptr, 0, &needed) != VELO_OK || needed == 0) return "";
  std::string all(needed, ' ');
  if (write(all.data(), needed, &needed) != VELO_OK || needed != all.size()) return "";
  all.pop_back();
  return all;
}
inline json_tree read_json(const std::string& text) {
  return json_tree(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, nullptr));
}
// Bytes that XML allows, from the first tag to the last.
inline bool is_picture(const std::string& text) {
  const std::string end = "</svg>\n";
  return text.compare(0, 5, "<svg ") == 0 && text.size() > end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0 &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; });
}

// The longest time that a description took of this thread, and how much memory all of them added to
// the most that the process had.
class bounds {
 public:
  bounds() : memory_(most_memory()) {}
  void begin() { begun_ = seconds(); }
  void end(int description) {
    const double took = seconds() - begun_;
    if (took > longest_) longest_ = took, slowest_ = description;
  }
  void check() const {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr double most = 20;
#else
    constexpr double most = 1;
#endif
    INFO("description " << slowest_ << " took " << longest_ << " s; "
                        << ((most_memory() - memory_) >> 20) << " MiB");
    CHECK(longest_ < most);
    CHECK(most_memory() - memory_ < std::int64_t{1} << 30);
  }

 private:
  static double seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  static std::int64_t most_memory() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return std::int64_t{used.ru_maxrss} << 10;
  }
  std::int64_t memory_;
  double begun_ = 0, longest_ = 0;
  int slowest_ = 0;
};

}  // namespace velo::testing
