// Reading a table of slices, and the search for a shape.
#include "core/slice_table.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/failure.hpp"

namespace velo::core {
namespace {

constexpr std::int64_t any = -1, most_slices = 1024;

[[noreturn]] void refuse(const char* argument, std::string_view entry, const char* given) {
  fail(VELO_ERR_ARGUMENT, argument,
       "for overlap.slices: ROWSxDEPTHxCOLUMNS:SLICES or *:SLICES, with commas between entries; a "
       "size is a number or *, SLICES in [0, 1024]",
       text("\"%.*s\" in \"%s\"", static_cast<int>(entry.size()), entry.data(), given));
}

// Takes what precedes `mark`, and the mark; all of `from` if it has none.
std::string_view take(std::string_view& from, char mark) {
  const std::string_view first = from.substr(0, from.find(mark));
  from.remove_prefix(first.size() < from.size() ? first.size() + 1 : first.size());
  return first;
}

// Whether `digits` is a number without a sign.
bool read_number(std::string_view digits, std::int64_t& number) {
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number);
  return !digits.empty() && digits[0] != '-' && end == last && error == std::errc();
}

bool read_size(std::string_view size, std::int64_t& number) {
  number = any;
  return size == "*" || read_number(size, number);
}

bool fits(std::int64_t wanted, std::int64_t size) {
  return wanted == any || wanted == size;
}

}  // namespace

slice_table::slice_table(const char* given, const char* argument) : text_(given) {
  std::string_view left = text_;
  while (!left.empty()) {
    const bool ends_in_comma = left.back() == ',';
    const std::string_view one = take(left, ',');
    std::string_view shape = one.substr(0, one.find(':'));
    const std::string_view slices = one.substr(std::min(shape.size() + 1, one.size()));
    entry read{any, any, any, 0};
    if (shape != "*") {
      const std::string_view rows = take(shape, 'x'), depth = take(shape, 'x');
      if (!read_size(rows, read.rows) || !read_size(depth, read.depth) ||
          !read_size(shape, read.columns))
        refuse(argument, one, given);
    }
    const bool has_slices = read_number(slices, read.slices) && read.slices <= most_slices;
    if (!has_slices || (left.empty() && ends_in_comma)) refuse(argument, one, given);
    entries_.push_back(read);
  }
}

std::int64_t slice_table::slices_of(std::int64_t rows, std::int64_t depth,
                                    std::int64_t columns) const {
  for (const entry& one : entries_)
    if (fits(one.rows, rows) && fits(one.depth, depth) && fits(one.columns, columns))
      return one.slices;
  return 0;
}

}  // namespace velo::core
