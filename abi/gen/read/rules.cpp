// Names, releases, words (rules.hpp).
#include "abi/gen/read/rules.hpp"

#include <cctype>

namespace velo::gen {
namespace {

const std::set<std::string>& reserved_words() {
  static const std::set<std::string> words = {
      "alignas",   "and",      "asm",      "auto",     "bool",     "break",    "case",
      "catch",     "char",     "class",    "compl",    "concept",  "const",    "continue",
      "decltype",  "default",  "delete",   "do",       "double",   "else",     "enum",
      "explicit",  "export",   "extern",   "false",    "float",    "for",      "friend",
      "goto",      "if",       "inline",   "int",      "long",     "mutable",  "namespace",
      "new",       "noexcept", "not",      "nullptr",  "operator", "or",       "private",
      "protected", "public",   "register", "requires", "restrict", "return",   "short",
      "signed",    "sizeof",   "static",   "struct",   "switch",   "template", "this",
      "throw",     "true",     "try",      "typedef",  "typename", "union",    "unsigned",
      "using",     "virtual",  "void",     "volatile", "while",    "xor",      "struct_size",
      "reserved"};
  return words;
}

}  // namespace

void check_name(const node& at, const std::string& name) {
  bool good = !name.empty() && std::islower(static_cast<unsigned char>(name[0])) != 0;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    good = good && (std::islower(byte) != 0 || std::isdigit(byte) != 0 || c == '_');
  }
  if (!good) at.fail("\"" + name + "\" is not a lower_case name");
  if (reserved_words().count(name) != 0) at.fail("\"" + name + "\" is a reserved word");
}

unsigned parse_release(const node& at) {
  const std::string text = at.text();
  const std::size_t dot = text.find('.');
  const bool good = dot != std::string::npos && dot > 0 && dot + 1 < text.size() &&
                    text.size() <= 5 &&
                    text.find_first_not_of("0123456789.") == std::string::npos &&
                    text.find('.', dot + 1) == std::string::npos;
  if (!good) at.fail("expected a release such as \"1.0\", got \"" + text + "\"");
  return static_cast<unsigned>(std::stoul(text.substr(0, dot)) * 100 +
                               std::stoul(text.substr(dot + 1)));
}

void check_word(const node& at, const std::string& word, std::initializer_list<const char*> words) {
  std::string known;
  for (const char* w : words) {
    if (word == w) return;
    known += (known.empty() ? "" : ", ") + std::string(w);
  }
  at.fail("\"" + word + "\" is none of: " + known);
}

void check_new(const node& at, std::set<std::string>& seen, const std::string& name) {
  if (!seen.insert(name).second) at.fail("\"" + name + "\" is already taken");
}

void check_doc(const node& at, const std::string& doc) {
  if (doc.empty()) at.fail("the text is empty");
  for (const char c : doc) {
    if (static_cast<unsigned char>(c) >= 127 || static_cast<unsigned char>(c) < 32) {
      at.fail("the text must be one line of plain ASCII");
    }
  }
  if (doc.find("*/") != std::string::npos || doc.find("/*") != std::string::npos) {
    at.fail("the text must not contain a comment mark");
  }
}

enumerator read_enumerator(const node& at, unsigned since) {
  at.only({"name", "value", "since", "doc"});
  enumerator v;
  v.name = at.text("name");
  v.value = at["value"].integer();
  v.since = at.has("since") ? parse_release(at["since"]) : since;
  v.doc = at.text("doc");
  check_doc(at["doc"], v.doc);
  return v;
}

}  // namespace velo::gen
