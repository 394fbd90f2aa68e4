// The rows of each operator family, in the order they are printed. Adding an operator means adding
// its rows here.
#pragma once

#include <memory>
#include <vector>

#include "bench/harness/experiment.hpp"

namespace velo::bench {

void list_norm(std::vector<row>& rows);
void list_activation(std::vector<row>& rows);
void list_rope(std::vector<row>& rows);
void list_matmul(const machine& m, std::vector<row>& rows);
void list_attention(const machine& m, std::vector<row>& rows);
void list_cached_attention(const machine& m, std::vector<row>& rows);
void list_embedding(std::vector<row>& rows);
void list_loss(std::vector<row>& rows);
void list_optimizer(std::vector<row>& rows);
void list_elementwise(std::vector<row>& rows);
void list_experts(std::vector<row>& rows);
void list_softmax(std::vector<row>& rows);
void list_unpad(const machine& m, std::vector<row>& rows);
void list_quant(const machine& m, std::vector<row>& rows);
void list_feed_forward(const machine& m, std::vector<row>& rows);
void list_masks(std::vector<row>& rows);

std::vector<row> list_rows(const machine& m);

// The element types of operators. Rows of f16 have no peer but the machine's limit.
inline constexpr dtype operator_types[] = {dtype::f32, dtype::bf16, dtype::f16};

// The two shapes of every row-wise operator: from DRAM and from cache.
struct plane {
  std::int64_t rows, columns;
  const char* residency;
  std::string text() const { return std::to_string(rows) + "x" + std::to_string(columns); }
  std::int64_t count() const { return rows * columns; }
  bool dram() const { return residency[0] == 'd'; }
};
constexpr plane dram_plane{8192, 4096, "dram"};
constexpr plane cache_plane{256, 4096, "cache"};

// A streaming row over a plane that moves `streams` times its elements.
row streaming_row(const std::string& op, dtype type, const plane& shape, int streams,
                  std::function<void(experiment&)> fill);

// m rows in groups, the later ones longer, up to twice, as an operator's group_list.
struct row_groups {
  row_groups(experiment& e, std::int64_t m, std::int64_t groups);

  std::int64_t group_of(std::int64_t row) const;

  std::shared_ptr<std::vector<std::int64_t>> ends;
  std::shared_ptr<velo_ints> list;
};

// A pack of a weight, of experts if it has three dimensions; the experiment keeps it.
const pack& packed(experiment& e, const velo_tensor& weight);

// Bytes that look random, in the memory of a tensor of floats, and the int8 or int4 at a place.
void* bytes_of_noise(experiment& e, std::int64_t count);
double integer_at(const void* data, bool int4, std::int64_t i);

inline sizes sizes_of(const std::vector<std::int64_t>& shape) {
  return {shape.data(), static_cast<std::int32_t>(shape.size())};
}

inline constexpr velo_dtype i8{VELO_DTYPE_INT, 8, 1}, u8{VELO_DTYPE_UINT, 8, 1};

}  // namespace velo::bench
