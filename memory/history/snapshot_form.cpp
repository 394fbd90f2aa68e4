// Texts of both forms, and numbers of the pickle.
#include "memory/history/snapshot_form.hpp"

namespace velo::memory {

void json_form::value(const char* text) {
  put('"');
  for (const char* c = text; *c != 0; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    if (byte == '"' || byte == '\\') {
      put('\\');
      put(*c);
    } else if (byte < 0x20) {
      constexpr char digits[] = "0123456789abcdef";
      put("\\u00", 4);
      put(digits[byte >> 4]);
      put(digits[byte & 15]);
    } else {
      put(*c);
    }
  }
  put('"');
}

// BINUNICODE and BINPUT the first time, BINGET from then on.
void pickle_form::introduce(word w) {
  known_[static_cast<int>(w)] = true;
  ++introduced_;
  put_text(spelled(w).quoted + 1, spelled(w).length);
  put('q');
  put(static_cast<char>(w));
}

// BININT1, BININT2, BININT, or LONG1 with as many bytes as a positive number needs.
void pickle_form::value(std::uint64_t number) {
  if (number < 256) {
    put('K');
    put_number(number, 1);
  } else if (number < 65536) {
    put('M');
    put_number(number, 2);
  } else if (number < std::uint64_t{1} << 31) {
    put('J');
    put_number(number, 4);
  } else {
    const int bytes = (64 - __builtin_clzll(number)) / 8 + 1;
    put('\x8a');
    put(static_cast<char>(bytes));
    put_number(number, bytes < 8 ? bytes : 8);
    if (bytes > 8) put('\0');
  }
}

void pickle_form::value(const char* text) {
  put_text(text, std::strlen(text));
}

}  // namespace velo::memory
