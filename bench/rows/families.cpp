// Gathers the families and makes the rows they have in common.
#include "bench/rows/families.hpp"

#include <algorithm>
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
  list_unpad(m, rows);
  list_quant(m, rows);
  list_feed_forward(m, rows);
  list_masks(rows);
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

row_groups::row_groups(experiment& e, std::int64_t m, std::int64_t groups)
    : ends(std::make_shared<std::vector<std::int64_t>>()) {
  for (std::int64_t i = 1; i <= groups; ++i)
    ends->push_back(m * i * (i + groups) / (2 * groups * groups));
  list = std::make_shared<velo_ints>(velo_ints{ends->data(), groups});
  e.keep(ends);
  e.keep(list);
}

std::int64_t row_groups::group_of(std::int64_t row) const {
  return std::upper_bound(ends->begin(), ends->end(), row) - ends->begin();
}

const pack& packed(experiment& e, const velo_tensor& weight) {
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.dtype = weight.dtype;
  desc.k = weight.shape[weight.ndim - 2], desc.n = weight.shape[weight.ndim - 1];
  if (weight.ndim == 3) desc.count = weight.shape[0];
  auto made = std::make_shared<pack>(pack::create(e.owner().owner, desc));
  made->update(e.owner().stream, weight);
  e.keep(made);
  return *made;
}

void* bytes_of_noise(experiment& e, std::int64_t count) {
  tensor& memory = e.zeros(dtype::f32, {(count + 3) / 4});
  auto* bytes = static_cast<std::uint8_t*>(memory.data());
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

double integer_at(const void* data, bool int4, std::int64_t i) {
  if (!int4) return static_cast<const std::int8_t*>(data)[i];
  const int four = static_cast<const std::uint8_t*>(data)[i / 2] >> (i % 2 * 4) & 0xf;
  return four < 8 ? four : four - 16;
}

}  // namespace velo::bench
