// A reader of flat JSON objects by recursive descent, without the recursion.
#include "capi/adapters/attributes.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "capi/adapters/failure.hpp"

namespace velo::adapters {
namespace {

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

  // An integer where it is written as one, else a real.
  attribute number() {
    skip_blank();
    attribute out{};
    const std::size_t length = std::strspn(at_, "+-0123456789.eE");
    const bool whole = std::strcspn(at_, ".eE") >= length;
    char* end = nullptr;
    errno = 0;
    if (whole) {
      out.type = attribute::kind::integer;
      out.integer = std::strtoll(at_, &end, 10);
    } else {
      out.type = attribute::kind::real;
      out.real = std::strtod(at_, &end);
    }
    if (length == 0 || end != at_ + length || errno == ERANGE) wrong("a value");
    at_ = end;
    return out;
  }

  [[noreturn]] void wrong(const char* expected) const {
    refuse(VELO_ERR_PARSE, "attributes_json: expected %s at column %td, got \"%.20s\"", expected,
           at_ - begin_ + 1, at_);
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
  } else if (in.take_word("true") || in.take_word("false")) {
    out.type = attribute::kind::integer;
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
  in.expect('{');
  for (bool first = true; !in.take('}'); first = false) {
    if (!first) in.expect(',');
    const std::string name = in.string();
    in.expect(':');
    if (in.take_word("null")) continue;
    const bool yes = in.peek() == 't';
    attribute value = read_value(in);
    if (yes) value.integer = 1;
    if (name == "fields") {
      if (value.type != attribute::kind::string) in.wrong("\"fields\" to be a string");
      out.fields = value.text;
      continue;
    }
    value.field = find_field(op, name);
    if (value.field < 0)
      refuse(VELO_ERR_NOT_FOUND, "attributes_json: expected attributes of %s, got \"%.60s\"",
             op.name, name.c_str());
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
