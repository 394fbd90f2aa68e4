// Either kind of windows.
#include "examples/decoder/data/training_windows.hpp"

namespace decoder {
namespace {

packing pack_documents(const corpus& text, std::int64_t rows) {
  std::vector<piece> pieces;
  std::size_t begin = 0;
  for (const std::size_t end : text.training_ends) {
    cut_document(std::string_view(text.training).substr(begin, end - begin), rows, pieces);
    begin = end;
  }
  return pack(pieces, rows);
}

}  // namespace

training_windows::training_windows(const corpus& text, std::int64_t rows, std::int64_t seed)
    : text_(text),
      rows_(rows),
      stream_(static_cast<std::int64_t>(text.training.size()), rows, seed),
      packed_(pack_documents(text, rows)),
      order_(packed_.windows(), seed) {}

window training_windows::at(std::int64_t number) {
  if (has_documents()) return packed_.at(order_.at(number));
  whole_.bytes =
      std::string_view(text_.training)
          .substr(static_cast<std::size_t>(stream_.begin(number)), static_cast<std::size_t>(rows_));
  return {&whole_, 1};
}

std::int64_t training_windows::targets(std::int64_t first, std::int64_t count) const {
  if (!has_documents()) return count * rows_;
  std::int64_t sum = 0;
  for (std::int64_t i = first; i < first + count; ++i) sum += packed_.rows(order_.at(i));
  return sum;
}

}  // namespace decoder
