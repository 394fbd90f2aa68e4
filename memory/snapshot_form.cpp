// How words, numbers and texts look in each form.
#include "memory/snapshot_form.hpp"

#include <charconv>
#include <cstring>

namespace velo::memory {

namespace {

struct spelling {
  const char* quoted;
  std::size_t length;  // without the quotes
};
constexpr spelling spellings[] = {
#define VELO_WORD(w) {"\"" #w "\":", sizeof #w - 1},
    VELO_SNAPSHOT_WORDS(VELO_WORD)
#undef VELO_WORD
};

// A number of `bytes` bytes, the lowest first.
char* append_number(char* at, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) *at++ = static_cast<char>(number >> (8 * i));
  return at;
}

}  // namespace

void json_form::key(word w) {
  const spelling& s = spellings[static_cast<int>(w)];
  if (!first_) character(',');
  first_ = false;
  to_.put(s.quoted, s.length + 3);
}

void json_form::value(word w) {
  const spelling& s = spellings[static_cast<int>(w)];
  to_.put(s.quoted, s.length + 2);
}

void json_form::value(std::uint64_t number) {
  char* at = to_.room();
  to_.took(std::to_chars(at, at + sink::most_room, number).ptr);
}

void json_form::value(bool yes) {
  yes ? to_.put("true", 4) : to_.put("false", 5);
}

void json_form::value(const char* text) {
  character('"');
  for (const char* c = text; *c != 0; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    if (byte == '"' || byte == '\\') {
      character('\\');
      character(*c);
    } else if (byte < 0x20) {
      constexpr char digits[] = "0123456789abcdef";
      const char escape[] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
      to_.put(escape, sizeof escape);
    } else {
      character(*c);
    }
  }
  character('"');
}

void json_form::pair(std::uint64_t a, std::uint64_t b) {
  character('[');
  value(a);
  character(',');
  value(b);
  character(']');
}

// BINUNICODE and BINPUT the first time, BINGET from then on.
void pickle_form::value(word w) {
  const int number = static_cast<int>(w);
  if (known_[number]) {
    const char get[] = {'h', static_cast<char>(number)};
    return to_.put(get, sizeof get);
  }
  known_[number] = true;
  const spelling& s = spellings[number];
  char head[5] = {'X'};
  append_number(head + 1, s.length, 4);
  to_.put(head, sizeof head);
  to_.put(s.quoted + 1, s.length);
  const char put[] = {'q', static_cast<char>(number)};
  to_.put(put, sizeof put);
}

// BININT1, BININT2, BININT, or LONG1 with as many bytes as a positive number needs.
void pickle_form::value(std::uint64_t number) {
  char* at = to_.room();
  if (number < 256) {
    *at++ = 'K';
    at = append_number(at, number, 1);
  } else if (number < 65536) {
    *at++ = 'M';
    at = append_number(at, number, 2);
  } else if (number < std::uint64_t{1} << 31) {
    *at++ = 'J';
    at = append_number(at, number, 4);
  } else {
    const int bytes = (64 - __builtin_clzll(number)) / 8 + 1;
    *at++ = '\x8a';
    *at++ = static_cast<char>(bytes);
    at = append_number(at, number, bytes < 8 ? bytes : 8);
    if (bytes > 8) *at++ = 0;
  }
  to_.took(at);
}

void pickle_form::value(const char* text) {
  const std::size_t length = std::strlen(text);
  char head[5] = {'X'};
  append_number(head + 1, length, 4);
  to_.put(head, sizeof head);
  to_.put(text, length);
}

}  // namespace velo::memory
