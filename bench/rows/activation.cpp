// The activations: gated ones forward (two reads, one write) and backward (three reads, two
// writes), whose shape is that of the output, and plain ones (one or two reads, one write).
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

double sigmoid(double t) {
  return 1 / (1 + std::exp(-t));
}

struct function {
  const char* op;
  const char* gated;  // nullptr: none
  double (*value)(double);
  double (*slope)(double);
};

const function functions[] = {
    {"silu", "swiglu", [](double x) { return x * sigmoid(x); },
     [](double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }},
    {"gelu", "geglu", [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; },
     [](double x) {
       return std::erfc(-x / std::sqrt(2.0)) / 2 + x * std::exp(-x * x / 2) * 0.3989422804014327;
     }},
    {"fast_gelu", nullptr, [](double x) { return x * sigmoid(1.702 * x); },
     [](double x) { return sigmoid(1.702 * x) * (1 + 1.702 * x * sigmoid(-1.702 * x)); }},
    {"relu", "reglu", [](double x) { return x > 0 ? x : 0; },
     [](double x) { return x > 0 ? 1.0 : 0.0; }}};

void fill_gated(experiment& e, const function& f, dtype type, const plane& p) {
  tensor& x = e.random(type, {p.rows, 2 * p.columns}, 4.0);
  tensor& y = e.zeros(type, {p.rows, p.columns});
  e.velo(f.gated, {{"x", x.view()}, {"y", y.view()}});
  e.check([&x, &y, &f, n = p.columns] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          const std::int64_t at = i / n * 2 * n + i % n;
          return f.value(x.at(at)) * x.at(at + n);
        });
  });
}

void fill_gated_backward(experiment& e, const function& f, dtype type, const plane& p) {
  tensor& dy = e.random(type, {p.rows, p.columns});
  tensor& x = e.random(type, {p.rows, 2 * p.columns}, 4.0);
  tensor& dx = e.zeros(type, {p.rows, 2 * p.columns});
  e.velo(std::string(f.gated) + "_backward",
         {{"dy", dy.view()}, {"x", x.view()}, {"dx", dx.view()}});
  e.check([&dy, &x, &dx, &f, n = p.columns] {
    return sampled_error(
        dy.count(), [&](std::int64_t i) { return dx.at(i / n * 2 * n + i % n); },
        [&](std::int64_t i) {
          const std::int64_t at = i / n * 2 * n + i % n;
          return dy.at(i) * x.at(at + n) * f.slope(x.at(at));
        });
  });
}

void fill_plain(experiment& e, const function& f, dtype type, const plane& p) {
  tensor& x = e.random(type, {p.rows, p.columns}, 4.0);
  tensor& y = e.zeros(type, {p.rows, p.columns});
  e.velo(f.op, {{"x", x.view()}, {"y", y.view()}});
  e.check([&x, &y, &f] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) { return f.value(x.at(i)); });
  });
}

void fill_plain_backward(experiment& e, const function& f, dtype type, const plane& p) {
  tensor& dy = e.random(type, {p.rows, p.columns});
  tensor& x = e.random(type, {p.rows, p.columns}, 4.0);
  tensor& dx = e.zeros(type, {p.rows, p.columns});
  e.velo(std::string(f.op) + "_backward", {{"dy", dy.view()}, {"x", x.view()}, {"dx", dx.view()}});
  e.check([&dy, &x, &dx, &f] {
    return sampled_error(
        dy.count(), [&](std::int64_t i) { return dx.at(i); },
        [&](std::int64_t i) { return dy.at(i) * f.slope(x.at(i)); });
  });
}

}  // namespace

void list_activation(std::vector<row>& rows) {
  using fill = void (*)(experiment&, const function&, dtype, const plane&);
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types)
      for (const function& f : functions) {
        const auto add = [&](const std::string& op, int streams, fill make) {
          rows.push_back(streaming_row(
              op, type, p, streams, [&f, type, p, make](experiment& e) { make(e, f, type, p); }));
        };
        if (f.gated != nullptr) {
          add(f.gated, 3, fill_gated);
          add(std::string(f.gated) + "_backward", 5, fill_gated_backward);
        }
        add(f.op, 2, fill_plain);
        add(std::string(f.op) + "_backward", 3, fill_plain_backward);
      }
}

}  // namespace velo::bench
