// A reader of rows and fields, each with its line and column; the first invalid one ends the
// reading.
#include "memory/plan/csv.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/failure.hpp"
#include "core/text/utf8.hpp"

namespace velo::memory {
namespace {

using core::fail;
using core::text;
using std::string_view;

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

struct field {
  string_view text;
  std::size_t line, column;
};

// The first characters of a field, for an error message. Control characters are escaped as \x0d.
std::string shown(string_view field) {
  std::string all;
  for (const char c : field.substr(0, 80)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127)
      all += text("\\x%02x", byte);
    else
      all += c;
  }
  return all;
}

[[noreturn]] void refuse(const field& at, const char* expected) {
  fail(VELO_ERR_ARGUMENT, text("text, line %zu, column %zu", at.line, at.column), expected,
       at.text.empty() ? "nothing" : shown(at.text).c_str());
}

// The rows of a text as fields, one row at a time.
class rows {
 public:
  explicit rows(string_view text) : left_(text) {
    if (left_.substr(0, 3) == "\xEF\xBB\xBF") left_.remove_prefix(3);
  }

  // The next row that is not empty; false at the end.
  bool next(std::vector<field>& fields) {
    while (!left_.empty()) {
      ++line_;
      const std::size_t end = left_.find('\n');
      string_view row = left_.substr(0, end);
      left_.remove_prefix(end == string_view::npos ? left_.size() : end + 1);
      if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
      if (row.empty()) continue;
      split(row, fields);
      return true;
    }
    return false;
  }

 private:
  void split(string_view row, std::vector<field>& fields) const {
    fields.clear();
    for (std::size_t begin = 0;;) {
      const std::size_t comma = std::min(row.find(',', begin), row.size());
      fields.push_back({row.substr(begin, comma - begin), line_, begin + 1});
      if (comma == row.size()) return;
      begin = comma + 1;
    }
  }

  string_view left_;
  std::size_t line_ = 0;
};

// The columns of a table, by the names in its first row.
class header {
 public:
  // wanted: names that must be there; others: names that may be. Any other name is refused.
  header(rows& from, const std::vector<string_view>& wanted,
         std::initializer_list<string_view> others, const char* expected)
      : column_of_(wanted.size(), missing) {
    std::vector<field> names;
    if (!from.next(names)) refuse({"", 1, 1}, expected);
    for (const field& name : names) {
      const auto found = std::find(wanted.begin(), wanted.end(), name.text);
      const bool known = std::find(others.begin(), others.end(), name.text) != others.end();
      if (found == wanted.end() && !known) refuse(name, expected);
      if (found == wanted.end()) continue;
      std::size_t& column = column_of_[found - wanted.begin()];
      if (column != missing) refuse(name, "each column once");
      column = &name - names.data();
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (column_of_[i] == missing)
        refuse(names.front(), text("%s; %s is missing", expected, std::string(wanted[i]).c_str()));
    }
    columns_ = names.size();
  }

  // The row's field of column `which` of those wanted.
  const field& of(const std::vector<field>& row, std::size_t which) const {
    return row[column_of_[which]];
  }
  void check(const std::vector<field>& row) const {
    if (row.size() == columns_) return;
    const field& at = row.size() > columns_ ? row[columns_] : row.back();
    refuse(at, text("%zu columns", columns_));
  }

 private:
  static constexpr std::size_t missing = ~std::size_t{0};
  std::vector<std::size_t> column_of_;  // by number in `wanted`
  std::size_t columns_ = 0;
};

// most: below the highest only where it is the plan's capacity.
std::int64_t number(const field& at, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* end = at.text.data() + at.text.size();
  const auto [stop, error] = std::from_chars(at.text.data(), end, value);
  if (at.text.empty() || error != std::errc() || stop != end || value < least || value > most)
    refuse(at, core::concat("an integer from ", least, " to ", most,
                            most < highest ? ", the capacity" : ""));
  return value;
}

// Control characters would end a row, or be invisible to a reader.
void require_name(const field& at, const char* expected) {
  const bool odd = std::any_of(at.text.begin(), at.text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 32 || byte == 127;
  });
  if (odd || at.text.empty()) refuse(at, expected);
}

// The sum of the sizes so far, which must not overflow 63 bits.
class sum {
 public:
  explicit sum(const plan_table& table) {
    for (const lifetime& b : table.buffers) sum_ += b.size;
  }
  void add(const field& at, std::int64_t size) {
    if (size > highest - sum_) refuse(at, "sizes whose sum is less than 2^63");
    sum_ += size;
  }

 private:
  std::int64_t sum_ = 0;
};

}  // namespace

void read_placement(string_view text, std::int64_t most, plan_table& table) {
  core::require_lines(text, "text");
  rows from(text);
  enum { id, lower, upper, size };
  const header columns(from, {"id", "lower", "upper", "size"}, {"offset"},
                       "the columns id, lower, upper and size");
  std::unordered_set<std::string> seen(table.names.begin(), table.names.end());
  sum total(table);
  for (std::vector<field> row; from.next(row);) {
    columns.check(row);
    const field& name = columns.of(row, id);
    require_name(name, "an id of characters that are seen");
    if (!seen.emplace(name.text).second) refuse(name, "an id that is not there before");
    lifetime b{};
    b.lower = number(columns.of(row, lower), lowest, highest);
    b.upper = number(columns.of(row, upper), lowest, highest);
    if (b.upper <= b.lower) refuse(columns.of(row, upper), "upper above lower");
    b.size = number(columns.of(row, size), 1, most);
    total.add(columns.of(row, size), b.size);
    table.names.emplace_back(name.text);
    table.buffers.push_back(b);
  }
}

void read_rmm_log(string_view text, std::int64_t most, plan_table& table) {
  core::require_lines(text, "text");
  rows from(text);
  enum { action, pointer, size };
  const header columns(from, {"Action", "Pointer", "Size"}, {"Thread", "Time", "Stream"},
                       "the columns Thread, Time, Action, Pointer, Size and Stream");
  sum total(table);
  const std::size_t first = table.buffers.size();
  std::unordered_map<string_view, std::size_t> live;
  std::int64_t event = 0;
  for (std::vector<field> row; from.next(row); ++event) {
    columns.check(row);
    const field& act = columns.of(row, action);
    const field& name = columns.of(row, pointer);
    require_name(name, "a pointer");
    const std::int64_t bytes = number(columns.of(row, size), 0, most);
    if (act.text == "allocate failure") continue;
    if (act.text != "allocate" && act.text != "free")
      refuse(act, "allocate, free or allocate failure");
    if (bytes == 0) continue;
    const auto found = live.find(name.text);
    if (act.text == "allocate") {
      if (found != live.end()) refuse(name, "a pointer that is not allocated");
      total.add(columns.of(row, size), bytes);
      live[name.text] = table.buffers.size();
      table.names.emplace_back(name.text);
      table.buffers.push_back({event, highest, bytes});
      continue;
    }
    if (found == live.end()) refuse(name, "a pointer that is allocated");
    lifetime& b = table.buffers[found->second];
    if (b.size != bytes)
      refuse(columns.of(row, size), core::concat("the size allocated, ", b.size));
    b.upper = event;
    live.erase(found);
  }
  for (std::size_t i = first; i < table.buffers.size(); ++i)
    table.buffers[i].upper = std::min(table.buffers[i].upper, event);
}

// A number is appended to a pointer that a log allocates twice, and to an index that was read as an
// id before, so that the text can be read again.
std::string write_placement(const plan_table& table, const std::vector<std::int64_t>& offsets) {
  std::string out = "id,lower,upper,size,offset\n";
  const std::unordered_set<string_view> taken(table.names.begin(), table.names.end());
  std::unordered_map<string_view, std::size_t> written;  // how often
  for (std::size_t i = 0; i < table.buffers.size(); ++i) {
    const lifetime& b = table.buffers[i];
    out += table.names[i];
    if (std::size_t& times = written[table.names[i]]; times++ > 0) {
      while (taken.count(table.names[i] + "#" + std::to_string(times)) != 0) ++times;
      out += "#" + std::to_string(times);
    }
    for (const std::int64_t value : {b.lower, b.upper, b.size, offsets[i]}) {
      char digits[24];
      const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
      out += ',';
      out.append(digits, end);
    }
    out += '\n';
  }
  return out;
}

}  // namespace velo::memory
