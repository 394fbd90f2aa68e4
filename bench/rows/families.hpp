// The rows of each operator family, in the order they are printed. Adding an operator means adding
// its rows here.
#pragma once

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
void list_unpad(std::vector<row>& rows);
void list_quant(std::vector<row>& rows);

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

}  // namespace velo::bench
