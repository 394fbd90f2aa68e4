// Pieces of the API reference in Markdown. It has two forms made of them: one page under version
// control (emit_reference.cpp) and the pages of a site, which a build makes (emit_pages.cpp).
#pragma once

#include <string>
#include <vector>

#include "abi/gen/model.hpp"

namespace velo::gen {

// Paragraphs that hold for the whole reference.
extern const char *const about_threads,
    *const about_ownership, *const about_errors, *const about_handles, *const about_args,
                                                                           *const about_bounds;

std::string cell(const std::string& text);  // text inside a table cell
std::string code(const std::string& text);
std::string row(const std::vector<std::string>& cells);
std::string head(const std::vector<std::string>& cells);  // of a table
std::string code_list(const std::vector<std::string>& items, const std::string& prefix);

std::string error_table(const spec& s);
std::string parameter_table(const function& f);  // empty where there is none
std::string size_text(const spec& s, const structure& t);

std::string direction(const op_field& f);
std::string default_text(const op_field& f);
std::string range_text(const op_field& f);  // which values or dtypes it takes
std::string field_note(const op_field& f);
std::string bound_text(const error_bound& b);

}  // namespace velo::gen
