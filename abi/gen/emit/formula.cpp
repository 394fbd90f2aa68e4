// Formulas as MathML (formula.hpp): a recursive descent over the characters, each rule returning
// the markup of what it read.
#include "abi/gen/emit/formula.hpp"

#include <cctype>

namespace velo::gen {
namespace {

struct piece {
  std::string markup;
  std::string inside;  // of a parenthesized piece: what stands between
  std::string name;    // of a bare name
  bool single = true;  // that may stand next to others without parentheses
};

std::string element(const std::string& tag, const std::string& text) {
  return "<" + tag + ">" + text + "</" + tag + ">";
}

std::string row_of(const std::string& markup) {
  return element("mrow", markup);
}

std::string sign(const std::string& text) {
  return element("mo", text);
}

class reader {
 public:
  explicit reader(const std::string& text) : text_(text) {}

  // Left side, relation, right side; without a relation the left side alone.
  std::vector<std::string> statement() {
    std::vector<std::string> sides = {sum().markup};
    for (const char* relation : {"+=", "-=", "*=", "="}) {
      if (!accept(relation)) continue;
      sides.push_back(sign(relation));
      sides.push_back(sum().markup);
      break;
    }
    return sides;
  }

  void end() {
    skip();
    if (at_ != text_.size()) fail("\"" + text_.substr(at_) + "\" is left over");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw formula_error{"formula \"" + text_ + "\": " + what};
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool accept(const std::string& word) {
    skip();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  // An operator that is not the first half of a relation.
  bool accept_operator(const std::string& word) {
    skip();
    if (at_ + 1 < text_.size() && text_[at_ + 1] == '=') return false;
    return accept(word);
  }

  void expect(const std::string& word) {
    if (!accept(word)) fail("expected \"" + word + "\" at \"" + text_.substr(at_) + "\"");
  }

  piece sum() {
    piece out = product();
    for (;;) {
      const bool minus = accept_operator("-");
      if (!minus && !accept_operator("+")) return out;
      out.markup += sign(minus ? "&#x2212;" : "+") + product().markup;
      out.single = false;
    }
  }

  piece product() {
    piece out = factor();
    for (;;) {
      if (accept_operator("*")) {
        out = {beside(out) + sign("&#x22C5;") + beside(factor()), "", "", false};
      } else if (accept("@")) {
        out = {beside(out) + "<mspace width=\"0.3em\"/>" + beside(factor()), "", "", false};
      } else if (accept_operator("/")) {
        const piece below = factor();
        out = {element("mfrac", row_of(bare(out)) + row_of(bare(below))), "", "", true};
      } else {
        return out;
      }
    }
  }

  // In a product; parentheses that only the plain notation needs fall away.
  static std::string beside(const piece& p) { return p.single ? bare(p) : p.markup; }
  static const std::string& bare(const piece& p) { return p.inside.empty() ? p.markup : p.inside; }

  piece factor() {
    if (accept_operator("-")) return {sign("&#x2212;") + factor().markup, "", "", false};
    piece out = primary();
    for (;;) {
      if (accept("^")) {
        const piece power = primary();
        out = {element("msup", row_of(out.markup) + row_of(bare(power))), "", out.name, true};
      } else if (accept("[")) {
        const bool wide = out.name == "sum";
        const std::string index = row_of(arguments("]").markup);
        out = {wide ? element("munder", sign("&#x2211;") + index)
                    : element("msub", row_of(out.markup) + index),
               "", out.name, true};
      } else if (!out.name.empty() && accept("(")) {
        out = call(out);
      } else {
        return out;
      }
    }
  }

  piece call(const piece& function) {
    const piece of = arguments(")");
    if (function.name == "sqrt") return {element("msqrt", of.markup), "", "", true};
    const std::string closed =
        of.single && function.name == "sum" ? of.markup : row_of(sign("(") + of.markup + sign(")"));
    if (function.name != "sum") return {function.markup + closed, "", "", true};
    const bool indexed = function.markup.find("<munder>") != std::string::npos;
    return {row_of((indexed ? function.markup : sign("&#x2211;")) + closed), "", "", true};
  }

  piece arguments(const std::string& close) {
    piece out = sum();
    while (accept(",")) out = {out.markup + sign(",") + sum().markup, "", "", false};
    expect(close);
    return out;
  }

  piece primary() {
    skip();
    if (accept("(")) {
      const piece inner = sum();
      expect(")");
      return {row_of(sign("(") + inner.markup + sign(")")), inner.markup, "", inner.single};
    }
    if (accept("[")) {
      std::string inner;
      for (const std::string& side : statement()) inner += side;
      expect("]");
      return {row_of(sign("[") + inner + sign("]")), "", "", true};
    }
    const std::size_t start = at_;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text_[i]); };
    if (at_ < text_.size() && std::isdigit(byte(at_)) != 0) {
      while (at_ < text_.size() && (std::isalnum(byte(at_)) != 0 || text_[at_] == '.' ||
                                    (text_[at_] == '-' && text_[at_ - 1] == 'e')))
        ++at_;
      return {element("mn", text_.substr(start, at_ - start)), "", "", true};
    }
    while (at_ < text_.size() && (std::isalnum(byte(at_)) != 0 || text_[at_] == '_')) ++at_;
    if (at_ == start) fail("expected a name or a number at \"" + text_.substr(at_) + "\"");
    return named(text_.substr(start, at_ - start));
  }

  // x1 is x with an index.
  static piece named(const std::string& name) {
    const std::size_t letters = name.find_last_not_of("0123456789") + 1;
    if (letters == name.size()) return {element("mi", name), "", name, true};
    return {element("msub",
                    element("mi", name.substr(0, letters)) + element("mn", name.substr(letters))),
            "", name, true};
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> formulas_of(const std::string& line) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (;;) {
    const std::size_t close = at < line.size() ? line.find('`', at + 1) : std::string::npos;
    if (close == std::string::npos || line[at] != '`') return {};
    out.push_back(line.substr(at + 1, close - at - 1));
    if (line.compare(close + 1, std::string::npos, ".") == 0) return out;
    if (line.compare(close + 1, 2, "; ") != 0) return {};
    at = close + 3;
  }
}

std::string mathml(const std::vector<std::string>& formulas) {
  std::string rows;
  for (const std::string& formula : formulas) {
    reader read(formula);
    std::string cells;
    for (const std::string& side : read.statement()) cells += element("mtd", row_of(side));
    read.end();
    rows += element("mtr", cells);
  }
  return "<math display=\"block\"><mtable displaystyle=\"true\">" + rows + "</mtable></math>";
}

}  // namespace velo::gen
