// Unzips the document and finds the lines of its operators.
#include "ops/call/self_description.hpp"

#include "core/checksum.hpp"

namespace velo::ops {
namespace {

// The build writes a gzip file's bytes there (zipped.cmake).
constexpr unsigned char zipped[] = {
#include "self_description.inc"
};

}  // namespace

self_description::self_description() : text_(core::unzip(zipped, sizeof zipped)) {
  const std::string opens = "\"operators\":[\n", between = "\n,\n";
  starts_.push_back(text_.find(opens) + opens.size());
  for (int i = 1; i < op_count(); ++i)
    starts_.push_back(text_.find(between, starts_.back()) + between.size());
}

std::string self_description::operator_entry(op_id op) const {
  const std::size_t start = starts_[static_cast<std::size_t>(op)];
  return text_.substr(start, text_.find('\n', start) - start);
}

}  // namespace velo::ops
