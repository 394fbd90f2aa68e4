// The settings of overlap operators: one mode for all calls, and a table of slices by the shape of
// the product, for calls whose field leaves the number open.
//
// A table is a text of entries ROWSxDEPTHxCOLUMNS:SLICES with commas between them. A size may be *
// for any, and * alone stands for any shape. The first entry that fits a shape decides. SLICES is
// what the operators' field parallel_num takes: 0 = the library chooses, 1 = no slices. Cost of a
// search: one comparison an entry. Invariant: two equal texts are equal tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace velo::core {

class slice_table {
 public:
  slice_table() = default;  // without entries
  // Throws ARGUMENT. argument: names `given` in the failure.
  slice_table(const char* given, const char* argument);

  // rows x depth times depth x columns. Returns 0 if no entry fits.
  std::int64_t slices_of(std::int64_t rows, std::int64_t depth, std::int64_t columns) const;
  const std::string& text() const { return text_; }
  bool operator==(const slice_table& other) const { return text_ == other.text_; }

 private:
  struct entry {
    std::int64_t rows, depth, columns;  // -1: any
    std::int64_t slices;
  };
  std::string text_;
  std::vector<entry> entries_;
};

// automatic: by the call's field, then by the table, then by the library. whole: product and
// collective one after the other, whatever field and table say. sliced: as automatic, but a call
// for which the library would choose no slices is sliced.
enum class overlap_mode { automatic, whole, sliced };

struct overlap_settings {
  overlap_mode mode = overlap_mode::automatic;
  slice_table table;

  bool operator==(const overlap_settings& other) const {
    return mode == other.mode && table == other.table;
  }
};

}  // namespace velo::core
