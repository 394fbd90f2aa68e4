// embedding: rows gathered from a table far larger than the caches; its gradient adds rows into an
// f32 table.
#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t vocabulary = 32768, width = 4096, tokens = 8192;

void fill_forward(experiment& e, dtype type) {
  tensor& ids = e.indices({tokens}, vocabulary);
  tensor& table = e.random(type, {vocabulary, width});
  tensor& y = e.zeros(type, {tokens, width});
  e.velo("embedding", {{"ids", ids.view()}, {"table", table.view()}, {"y", y.view()}});
  e.check([&ids, &table, &y] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          return table.at(static_cast<std::int64_t>(ids.at(i / width)) * width + i % width);
        });
  });
}

void fill_backward(experiment& e, dtype type) {
  tensor& ids = e.indices({tokens}, vocabulary);
  tensor& dy = e.random(type, {tokens, width});
  tensor& dtable = e.zeros(dtype::f32, {vocabulary, width});
  e.velo("embedding_backward", {{"ids", ids.view()},
                                {"dy", dy.view()},
                                {"dtable", dtable.view()},
                                {"rows", vocabulary},
                                {"accumulate", 1}});
  e.check([&e, &ids, &dy, &dtable] {
    const auto row_of = [&](std::int64_t t) { return static_cast<std::int64_t>(ids.at(t)); };
    const std::int64_t wanted = row_of(tokens / 2);
    for (std::int64_t j = 0; j < width; ++j) dtable.set(wanted * width + j, 0);
    e.velo_call()();
    return sampled_error(
        width, [&](std::int64_t j) { return dtable.at(wanted * width + j); },
        [&](std::int64_t j) {
          double sum = 0;
          for (std::int64_t t = 0; t < tokens; ++t)
            if (row_of(t) == wanted) sum += dy.at(t * width + j);
          return sum;
        });
  });
}

}  // namespace

void list_embedding(std::vector<row>& rows) {
  const std::string shape =
      std::to_string(vocabulary) + "x" + std::to_string(width) + " " + std::to_string(tokens);
  for (dtype type : operator_types) {
    row forward = streaming_row("embedding", type, dram_plane, 2,
                                [type](experiment& e) { fill_forward(e, type); });
    forward.shape = shape;
    rows.push_back(std::move(forward));
    row backward = streaming_row("embedding_backward", type, dram_plane, 3,
                                 [type](experiment& e) { fill_backward(e, type); });
    backward.shape = shape;
    // Reads dy once, reads and writes the f32 rows.
    backward.work = static_cast<double>(tokens * width * (bytes_of(type) + 8));
    rows.push_back(std::move(backward));
  }
}

}  // namespace velo::bench
