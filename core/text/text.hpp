// Short texts in a fixed buffer, for the facts of a failure: making one allocates nothing.
//
// `concat` takes pieces of any type, so no caller casts an integer for a format:
// concat("rank ", rank, " of ", size). `text` itself is a small printf, for widths and reals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace velo::core {

// Longer texts are cut.
struct text {
  char buffer[192];
  text() noexcept { buffer[0] = 0; }
  __attribute__((format(printf, 2, 3))) explicit text(const char* format, ...);
  operator const char*() const { return buffer; }
};

namespace detail {

// The pieces of a text, one after the other.
class pieces {
 public:
  pieces(char* buffer, std::size_t capacity) noexcept : at_(buffer), end_(buffer + capacity - 1) {
    *at_ = 0;
  }
  void add(std::string_view piece) noexcept;
  void add(const char* piece) noexcept { add(std::string_view(piece)); }
  void add(const text& piece) noexcept { add(std::string_view(piece.buffer)); }
  void add(const std::string& piece) noexcept { add(std::string_view(piece)); }
  template <class Int, class = std::enable_if_t<std::is_integral_v<Int>>>
  void add(Int number) noexcept {
    static_assert(!std::is_same_v<Int, bool> && !std::is_same_v<Int, char>, "an integer");
    if constexpr (std::is_signed_v<Int>)
      add_signed(number);
    else
      add_unsigned(number);
  }

 private:
  void add_signed(std::int64_t number) noexcept;
  void add_unsigned(std::uint64_t number) noexcept;

  char* at_;
  char* const end_;
};

}  // namespace detail

// Joins texts and integers.
template <class... Pieces>
text concat(const Pieces&... of) {
  text made;
  detail::pieces all(made.buffer, sizeof made.buffer);
  (all.add(of), ...);
  return made;
}

// "-12"
template <class Int>
text number(Int value) {
  return concat(value);
}

}  // namespace velo::core
