// Wrapping, quoting, declarations (text.hpp).
#include "abi/gen/text.hpp"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace velo::gen {

std::string upper(const std::string& name) {
  std::string out = name;
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "" : between) + parts[i];
  return out;
}

std::string pad(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::vector<std::string> wrap(const std::string& text, int width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  std::string word, line;
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > static_cast<std::size_t>(width)) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  lines.push_back(line);
  return lines;
}

std::string comment(const std::vector<std::string>& paragraphs, const std::string& indent) {
  std::vector<std::string> lines;
  const int width = columns - 3 - static_cast<int>(indent.size());
  for (std::size_t i = 0; i < paragraphs.size(); ++i) {
    // The last line also holds the closing mark.
    const bool last = i + 1 == paragraphs.size();
    for (const std::string& line : wrap(paragraphs[i], last ? width - 3 : width))
      lines.push_back(line);
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += indent + (i == 0 ? "/*" : " *") + (lines[i].empty() ? "" : " " + lines[i]);
    out += i + 1 == lines.size() ? " */\n" : "\n";
  }
  return out;
}

std::string fill(const std::vector<std::string>& items, const std::string& indent,
                 const std::string& between) {
  std::string out, line = indent;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string piece = items[i] + (i + 1 == items.size() ? "" : between);
    if (line.size() > indent.size() && line.size() + 1 + piece.size() > columns) {
      out += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + piece;
  }
  return out + line;
}

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string real(double value) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  const std::string out = text;
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}

std::string release(unsigned abi) {
  return std::to_string(abi / 100) + "." + std::to_string(abi % 100);
}

std::string declare(const std::string& type, const std::string& name) {
  const std::size_t hole = type.find("(*)");
  if (hole == std::string::npos) return type + " " + name;
  return type.substr(0, hole + 2) + name + type.substr(hole + 2);
}

std::string parameters(const function& f) {
  std::vector<std::string> parts;
  for (const parameter& p : f.parameters) parts.push_back(declare(p.type, p.name));
  return parts.empty() ? "void" : join(parts, ", ");
}

std::string prototype(const function& f) {
  return f.result + " " + f.name + "(" + parameters(f) + ")";
}

std::string guard(unsigned& state, unsigned since) {
  if (since == state) return "";
  std::string out;
  if (state > 100) out += "#endif\n";
  if (since > 100) out += "#if VELO_TARGET_ABI >= " + std::to_string(since) + "\n";
  state = since;
  return out;
}

std::string field_type(const op&, const op_field& f) {
  switch (f.type) {
    case kind::tensor:
      return "const velo_tensor*";
    case kind::ints:
      return "const velo_ints*";
    case kind::pack:
      return "velo_pack";
    case kind::f64:
      return "double";
    default:
      return "int64_t";
  }
}

std::string kind_name(kind type) {
  switch (type) {
    case kind::tensor:
      return "tensor";
    case kind::pack:
      return "pack";
    case kind::i64:
      return "i64";
    case kind::f64:
      return "f64";
    case kind::boolean:
      return "bool";
    case kind::enumeration:
      return "enumeration";
    case kind::ints:
      return "ints";
  }
  return "";
}

std::string enumerator_name(const std::string& enumeration, const std::string& value) {
  return "VELO_" + upper(enumeration) + "_" + upper(value);
}

std::string banner(const std::string& open, const std::string& close, const std::string& what,
                   const std::string& source) {
  return open + " " + what + "\n" + open.substr(0, open == "/*" ? 0 : open.size()) +
         (open == "/*" ? " *" : "") + " Generated from " + source +
         "; change that and build the target `generate`." + close + "\n";
}

}  // namespace velo::gen
