// Wrapping, quoting, declarations (text.hpp).
#include "abi/gen/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
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

std::string line_comment(const std::vector<std::string>& paragraphs, const std::string& indent) {
  std::string out;
  for (const std::string& paragraph : paragraphs) {
    for (const std::string& line : wrap(paragraph, columns - 3 - static_cast<int>(indent.size()))) {
      out += indent + "//" + (line.empty() ? "" : " " + line) + "\n";
    }
  }
  return out;
}

std::string fill(const std::vector<std::string>& items, const std::string& indent, int width) {
  std::string out, line = indent;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string piece = items[i] + (i + 1 == items.size() ? "" : ",");
    const std::size_t grown = line.size() + 1 + piece.size();
    if (line.size() > indent.size() && grown > static_cast<std::size_t>(width)) {
      out += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + piece;
  }
  return out + line;
}

std::string arrange(const std::string& head, const std::vector<std::string>& items,
                    const std::string& tail) {
  std::string flat = head + join(items, ", ") + tail;
  if (flat.size() <= columns) return flat;
  const int width = columns - static_cast<int>(tail.size());
  const std::string indent(head.size(), ' ');
  const std::string beside = fill(items, indent, width).substr(indent.size());
  std::size_t widest = 0, line = head.size();  // of the lines beside the head
  for (const char c : beside) {
    line = c == '\n' ? 0 : line + 1;
    widest = std::max(widest, line);
  }
  if (widest <= static_cast<std::size_t>(width)) return head + beside + tail;
  const std::string below(head.find_first_not_of(' ') + 4, ' ');
  return head + "\n" + fill(items, below, width) + tail;
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

std::vector<std::string> parameter_list(const function& f) {
  std::vector<std::string> parts;
  for (const parameter& p : f.parameters) parts.push_back(declare(p.type, p.name));
  return parts.empty() ? std::vector<std::string>{"void"} : parts;
}

std::string prototype(const function& f) {
  return arrange(f.result + " " + f.name + "(", parameter_list(f), ")");
}

std::string guard(unsigned& state, unsigned since, unsigned base) {
  if (since == state) return "";
  std::string out;
  if (state > base) out += "#endif\n";
  if (since > base) out += "#if VELO_TARGET_ABI >= " + std::to_string(since) + "\n";
  state = since;
  return out;
}

bool holds_tensors(const op_field& f) {
  return f.type == kind::tensor || f.type == kind::tensors;
}

bool is_pointer(const op_field& f) {
  return holds_tensors(f) || f.type == kind::handle || f.type == kind::ints || f.type == kind::text;
}

std::string dtype_name(const std::string& dtype) {
  static const std::map<std::string, std::string> names = {
      {"f32", "float32"}, {"bf16", "bfloat16"}, {"f64", "float64"}, {"f16", "float16"},
      {"i32", "int32"},   {"i64", "int64"},     {"i8", "int8"},     {"i4", "int4"},
      {"u8", "uint8"},    {"u64", "uint64"},    {"bool", "bool"}};
  return names.at(dtype);
}

std::string field_type(const op_field& f) {
  switch (f.type) {
    case kind::tensor:
      return "const velo_tensor*";
    case kind::ints:
      return "const velo_ints*";
    case kind::tensors:
      return "const velo_tensors*";
    case kind::handle:
      return f.handle;
    case kind::text:
      return "const char*";
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
    case kind::tensors:
      return "tensors";
    case kind::handle:
      return "handle";
    case kind::text:
      return "text";
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

std::string python_name(const std::string& name) {
  static const std::set<std::string> reserved = {"as", "in", "is", "from", "lambda", "def", "not"};
  return reserved.count(name) != 0 ? name + "_" : name;
}

std::string enumerator_name(const std::string& enumeration, const std::string& value) {
  return "VELO_" + upper(enumeration) + "_" + upper(value);
}

}  // namespace velo::gen
