// A reader of flat JSON objects by recursive descent, without the recursion.
#include "capi/adapters/attributes.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "capi/adapters/failure.hpp"

namespace velo::adapters {
namespace {

// Bytes of the UTF-8 characters that a text begins with, as many as fit.
std::size_t whole_characters(const char* text, std::size_t most) {
  std::size_t length = 0;
  while (text[length] != 0) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[length + i]); };
    const unsigned char first = byte(0);
    const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const unsigned char lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    bool valid = first < 0x80 || (first >= 0xc2 && first < 0xf5);
    if (size > 1) valid = valid && byte(1) >= lowest && byte(1) <= highest;
    for (std::size_t i = 2; i < size && valid; ++i) valid = (byte(i) & 0xc0u) == 0x80u;
    if (!valid || length + size > most) return length;
    length += size;
  }
  return length;
}

class reader {
 public:
  explicit reader(const char* text) : begin_(text), at_(text) {}

  void skip_blank() { at_ += std::strspn(at_, " \t\r\n"); }
  bool take(char c) {
    skip_blank();
    if (*at_ != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) {
      const char want[] = {'\'', c, '\'', 0};
      wrong(want);
    }
  }
  bool take_word(const char* word) {
    skip_blank();
    const std::size_t length = std::strlen(word);
    if (std::strncmp(at_, word, length) != 0) return false;
    at_ += length;
    return true;
  }
  char peek() {
    skip_blank();
    return *at_;
  }
  void expect_end() {
    skip_blank();
    if (*at_ != 0) wrong("the end");
  }

  std::string string() {
    expect('"');
    std::string out;
    for (; *at_ != '"'; ++at_) {
      if (*at_ == 0) wrong("'\"'");
      if (*at_ == '\\') {
        ++at_;
        if (*at_ != '"' && *at_ != '\\' && *at_ != '/') wrong("a plain character");
      }
      out += *at_;
    }
    ++at_;
    return out;
  }

  // An integer where it is written as one, else a real; in whatever locale the host is.
  attribute number() {
    skip_blank();
    const auto digits = [](const char* at) { return std::strspn(at, "0123456789"); };
    const char* first = *at_ == '-' ? at_ + 1 : at_;
    const char* end = first + digits(first);
    bool valid = end > first && (*first != '0' || end == first + 1), whole = true;
    if (*end == '.') {
      const std::size_t length = digits(end + 1);
      end += 1 + length;
      valid = valid && length > 0;
      whole = false;
    }
    if (*end == 'e' || *end == 'E') {
      end += end[1] == '+' || end[1] == '-' ? 2 : 1;
      const std::size_t length = digits(end);
      end += length;
      valid = valid && length > 0;
      whole = false;
    }
    attribute out{};
    out.type = whole ? attribute::kind::integer : attribute::kind::real;
    if (!valid || (whole ? std::from_chars(at_, end, out.integer).ec
                         : std::from_chars(at_, end, out.real).ec) != std::errc())
      wrong("a value");
    at_ = end;
    return out;
  }

  void require_text() {
    const std::size_t whole = whole_characters(at_, std::strlen(at_));
    at_ += whole;
    if (*at_ != 0)
      refuse(VELO_ERR_PARSE, "attributes_json: expected UTF-8 at column %zu, got byte 0x%02x",
             whole + 1, static_cast<unsigned>(static_cast<unsigned char>(*at_)));
    at_ = begin_;
  }

  [[noreturn]] void wrong(const char* expected) const {
    refuse(VELO_ERR_PARSE, "attributes_json: expected %s at column %td, got \"%.*s\"", expected,
           at_ - begin_ + 1, static_cast<int>(whole_characters(at_, 20)), at_);
  }

 private:
  const char* begin_;
  const char* at_;
};

attribute read_value(reader& in) {
  attribute out{};
  if (in.peek() == '"') {
    out.type = attribute::kind::string;
    out.text = in.string();
  } else if (in.take('[')) {
    out.type = attribute::kind::list;
    while (!in.take(']')) {
      if (!out.list.empty()) in.expect(',');
      const attribute item = in.number();
      if (item.type != attribute::kind::integer) in.wrong("an integer");
      out.list.push_back(item.integer);
    }
  } else if (in.peek() == 't' || in.peek() == 'f') {
    out.type = attribute::kind::boolean;
    out.integer = in.take_word("true") ? 1 : 0;
    if (out.integer == 0 && !in.take_word("false")) in.wrong("a value");
  } else {
    out = in.number();
  }
  return out;
}

}  // namespace

attribute_set read_attributes(const op_info& op, const char* json) {
  attribute_set out;
  if (json == nullptr || *json == 0) return out;
  reader in(json);
  in.require_text();
  in.expect('{');
  std::vector<std::string> seen;
  for (bool first = true; !in.take('}'); first = false) {
    if (!first) in.expect(',');
    const std::string name = in.string();
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) in.wrong("another name");
    seen.push_back(name);
    in.expect(':');
    if (in.take_word("null")) continue;
    attribute value = read_value(in);
    if (name == "fields") {
      if (value.type != attribute::kind::string) in.wrong("\"fields\" to be a string");
      out.fields = value.text;
      continue;
    }
    value.field = find_field(op, name);
    if (value.field < 0)
      refuse(VELO_ERR_NOT_FOUND, "attributes_json: expected attributes of %s, got \"%.*s\"",
             op.name, static_cast<int>(whole_characters(name.c_str(), 60)), name.c_str());
    out.values.push_back(std::move(value));
  }
  in.expect_end();
  call trial(op);
  out.put(trial);
  return out;
}

void attribute_set::put(call& made) const {
  for (const attribute& a : values) {
    switch (a.type) {
      case attribute::kind::integer:
        made.integer(a.field, a.integer);
        break;
      case attribute::kind::boolean:
        made.boolean(a.field, a.integer != 0);
        break;
      case attribute::kind::real:
        made.real(a.field, a.real);
        break;
      case attribute::kind::string:
        made.string(a.field, a.text);
        break;
      case attribute::kind::list:
        made.list(a.field, a.list.data(), static_cast<std::int64_t>(a.list.size()));
        break;
    }
  }
}

}  // namespace velo::adapters
