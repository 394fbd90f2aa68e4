// Schemas as torch's parser takes them: what it would refuse is refused here.
#include <set>
#include <sstream>
#include <stdexcept>

#include "torch_host.hpp"

namespace hosts::torch {
namespace {

[[noreturn]] void wrong_schema(const std::string& text) {
  throw std::runtime_error("no schema: " + text);
}

value parse_default(const argument& a, const std::string& text) {
  if (text == "None" && a.optional) return {};
  if (a.type == "int") return value(std::int64_t{std::stoll(text)});
  if (a.type == "float") return value(std::stod(text));
  if (a.type == "bool" && (text == "True" || text == "False")) return value(text == "True");
  wrong_schema(a.name + "=" + text);
}

argument parse_argument(const std::string& text, char& letter) {
  argument out;
  const std::size_t space = text.find(' '), equals = text.find('=');
  if (space == text.npos) wrong_schema(text);
  out.name = text.substr(space + 1, equals == text.npos ? text.npos : equals - space - 1);
  out.type = text.substr(0, space);
  out.optional = out.type.back() == '?';
  if (out.optional) out.type.pop_back();
  if (const std::size_t open = out.type.find('('); open != std::string::npos) {
    if (out.type.substr(open, 4) != std::string("(") + letter++ + "!)") wrong_schema(text);
    out.written = true;
    out.type.erase(open, 4);
  }
  const std::set<std::string> types = {"Tensor", "Tensor[]", "int", "float",
                                       "bool",   "int[]",    "str"};
  if (types.count(out.type) == 0) wrong_schema(text);
  out.has_default = equals != text.npos;
  if (out.has_default) out.initial = parse_default(out, text.substr(equals + 1));
  return out;
}

}  // namespace

schema parse(const std::string& text) {
  schema out;
  out.text = text;
  const std::size_t open = text.find('('), arrow = text.find(") -> ");
  if (arrow == text.npos) wrong_schema(text);
  out.name = text.substr(0, open);
  std::istringstream arguments(text.substr(open + 1, arrow - open - 1));
  char letter = 'a';
  for (std::string one; std::getline(arguments, one, ',');) {
    out.arguments.push_back(parse_argument(one.substr(one.front() == ' ' ? 1 : 0), letter));
    const std::size_t count = out.arguments.size();
    if (count > 1 && out.arguments[count - 2].has_default && !out.arguments[count - 1].has_default)
      wrong_schema("a default before " + one);
  }
  const std::string results = text.substr(arrow + 5);
  for (std::size_t at = 0; (at = results.find("Tensor", at)) != results.npos; at += 6)
    ++out.results;
  if (out.results == 0 && results != "()") wrong_schema(text);
  return out;
}

}  // namespace hosts::torch
