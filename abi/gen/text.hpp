// Small pieces of text that emitters share: wrapping, quoting, C declarations. All output lines
// stay within 100 columns where the words allow it.
#pragma once

#include <string>
#include <vector>

#include "abi/gen/model.hpp"

namespace velo::gen {

constexpr int columns = 100;

std::string upper(const std::string& name);
std::string join(const std::vector<std::string>& parts, const std::string& between);
std::string pad(const std::string& text, std::size_t width);  // with spaces on the right

// Words of `text` in lines of at most `width`.
std::vector<std::string> wrap(const std::string& text, int width);
// A block comment of paragraphs, each wrapped; an empty paragraph is a blank line.
std::string comment(const std::vector<std::string>& paragraphs, const std::string& indent = "");
// The same with //.
std::string line_comment(const std::vector<std::string>& paragraphs,
                         const std::string& indent = "");
// Items in wrapped lines: "    A, B, C,\n    D".
std::string fill(const std::vector<std::string>& items, const std::string& indent,
                 int width = columns);
// head + items + tail on one line, or the items below each other beside the head, or below it.
std::string arrange(const std::string& head, const std::vector<std::string>& items,
                    const std::string& tail);

std::string quote(const std::string& text);  // a C string literal; also valid JSON for plain ASCII
std::string real(double value);              // shortest form that reads back to the same double
std::string release(unsigned abi);           // 100 -> "1.0"

std::string declare(const std::string& type,
                    const std::string& name);  // "void (*)(int)", "f" -> "void (*f)(int)"
std::vector<std::string> parameter_list(const function& f);  // "velo_stream stream", ..
std::string prototype(const function& f);                    // "velo_status velo_x(..)"

// Opens or closes the part of a header that needs a newer ABI than `base`. `state` is the ABI of
// the open part.
std::string guard(unsigned& state, unsigned since, unsigned base = 100);

bool holds_tensors(const op_field& f);             // one or a list
bool is_pointer(const op_field& f);                // its C type is one: NULL when it is left out
std::string field_type(const op_field& f);         // its C type in the args struct
std::string dtype_name(const std::string& dtype);  // "bf16" -> "bfloat16"
std::string kind_name(kind type);                  // as in the spec
std::string python_name(const std::string& name);  // "as" -> "as_", where Python reserves it
std::string enumerator_name(const std::string& enumeration,
                            const std::string& value);  // VELO_LAYOUT_BSND

}  // namespace velo::gen
