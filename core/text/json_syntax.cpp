// The grammar of RFC 8259, with a function for each rule that nests or repeats.
#include "core/text/json_syntax.hpp"

#include <cstdlib>
#include <cstring>

namespace velo::core {
namespace {

class checker {
 public:
  explicit checker(const char* text) : at_(text) {}

  bool document() { return value() && *at_ == 0; }

 private:
  static constexpr int most_nested = 2048;  // jansson's limit

  void skip_space() { at_ += std::strspn(at_, " \t\n\r"); }
  bool take(char wanted) {
    if (*at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool word(const char* wanted) {
    const std::size_t length = std::strlen(wanted);
    if (std::strncmp(at_, wanted, length) != 0) return false;
    at_ += length;
    return true;
  }
  bool digits() {
    const std::size_t count = std::strspn(at_, "0123456789");
    at_ += count;
    return count > 0;
  }

  bool value() {
    skip_space();
    const bool good = *at_ == '{'   ? list('}', true)
                      : *at_ == '[' ? list(']', false)
                      : *at_ == '"' ? string()
                      : *at_ == 't' ? word("true")
                      : *at_ == 'f' ? word("false")
                      : *at_ == 'n' ? word("null")
                                    : number();
    skip_space();
    return good;
  }

  bool list(char end, bool has_keys) {
    if (++nested_ > most_nested) return false;
    ++at_;
    skip_space();
    bool good = true;
    if (*at_ != end) do {
        good = (!has_keys || key()) && value();
      } while (good && take(','));
    --nested_;
    return good && take(end);
  }
  bool key() {
    skip_space();
    if (*at_ != '"' || !string()) return false;
    skip_space();
    return take(':');
  }

  bool string() {
    for (++at_; *at_ != '"'; ++at_) {
      if (static_cast<unsigned char>(*at_) < 0x20) return false;
      if (*at_ != '\\') continue;
      ++at_;
      if (*at_ == 0 || std::strchr("\"\\/bfnrtu", *at_) == nullptr) return false;
      if (*at_ == 'u' && !character()) return false;
    }
    ++at_;
    return true;
  }
  // Reads an escape from its u to its last digit; for a surrogate pair, both escapes.
  bool character() {
    const int first = hexadecimal();
    if (first < 0 || is_low(first)) return false;
    if (first < 0xd800 || first > 0xdfff) return true;
    if (at_[1] != '\\' || at_[2] != 'u') return false;
    at_ += 2;
    return is_low(hexadecimal());
  }
  static bool is_low(int code) { return code >= 0xdc00 && code <= 0xdfff; }
  int hexadecimal() {
    if (std::strspn(at_ + 1, "0123456789abcdefABCDEF") < 4) return -1;
    char digits[5] = {};
    std::memcpy(digits, at_ + 1, 4);
    at_ += 4;
    return static_cast<int>(std::strtol(digits, nullptr, 16));
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (*at_ != 'e' && *at_ != 'E') return true;
    ++at_;
    if (!take('+')) take('-');
    return digits();
  }

  const char* at_;
  int nested_ = 0;
};

}  // namespace

bool is_json(const char* text) noexcept {
  return checker(text).document();
}

}  // namespace velo::core
