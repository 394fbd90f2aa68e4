// Gathers the families and makes the rows they have in common.
#include "bench/rows/families.hpp"

#include <utility>

namespace velo::bench {

std::vector<row> list_rows(const machine& m) {
  std::vector<row> rows;
  list_norm(rows);
  list_activation(rows);
  list_rope(rows);
  list_matmul(m, rows);
  list_attention(m, rows);
  list_cached_attention(m, rows);
  list_embedding(rows);
  list_loss(rows);
  list_optimizer(rows);
  list_elementwise(rows);
  list_experts(rows);
  list_softmax(rows);
  list_unpad(rows);
  list_quant(rows);
  return rows;
}

row streaming_row(const std::string& op, dtype type, const plane& shape, int streams,
                  std::function<void(experiment&)> fill) {
  const std::int64_t bytes = streams * shape.count() * bytes_of(type);
  const bool two = streams == 2;
  const limit bound = shape.dram() ? (two ? limit::copy_nt : limit::triad_nt)
                                   : (two ? limit::cache_copy : limit::cache_triad);
  row made{op,
           type,
           shape.text(),
           shape.residency,
           "GB/s",
           static_cast<double>(bytes),
           bound,
           op,
           type == dtype::f16 ? "" : op,
           {}};
  made.fill = std::move(fill);
  made.footprint = shape.dram() ? bytes : 0;
  return made;
}

}  // namespace velo::bench
