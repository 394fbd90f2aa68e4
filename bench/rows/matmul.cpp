// Products: square, with few rows, the shapes of language models, transposed, with packed weights,
// and matmul_add_fp32.
//
// The shape reads MxNxK, followed by nt (b stored [n, k]) or tn (a stored [k, m]). velo's result is
// checked against sums in double. Rows of f16 have no peer: they are held to the limit of f32,
// whose speed they should have.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

std::string text(const product& p) {
  std::string shape = std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  if (p.transpose_a || p.transpose_b)
    shape += p.transpose_a ? (p.transpose_b ? " tt" : " tn") : " nt";
  return shape;
}

double exact(const product& p, const tensor& a, const tensor& b, std::int64_t index) {
  const std::int64_t i = index / p.n, j = index % p.n;
  double sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum += a.at(p.transpose_a ? l * p.m + i : i * p.k + l) *
           b.at(p.transpose_b ? j * p.k + l : l * p.n + j);
  return sum;
}

void add_peers(experiment& e, const product& p, const tensor& a, const tensor& b) {
  const dtype type = p.accumulate_f32 ? dtype::f32 : p.type;
  void* c = e.zeros(type, {p.m, p.n}).data();
  e.call(p.packed ? "oneDNN packed" : "oneDNN", onednn::matmul(p, a.data(), b.data(), c));
  e.call("OpenBLAS", openblas::matmul(p, a.data(), b.data(), c));
}

void fill_matmul(experiment& e, const product& p) {
  tensor& a = e.random(p.type, {p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k});
  tensor& b = e.random(p.type, {p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n});
  tensor& c = e.zeros(p.type, {p.m, p.n});
  if (p.packed) {
    e.velo("matmul", {{"a", a.view()}, {"packed", packed(e, b.view())}, {"c", c.view()}});
  } else {
    e.velo("matmul", {{"a", a.view()},
                      {"b", b.view()},
                      {"c", c.view()},
                      {"transpose_a", p.transpose_a},
                      {"transpose_b", p.transpose_b}});
  }
  add_peers(e, p, a, b);
  e.check([&a, &b, &c, p] {
    return sampled_error(
        c.count(), [&](std::int64_t i) { return c.at(i); },
        [&](std::int64_t i) { return exact(p, a, b, i); });
  });
}

// grad [n, k] += grad_output^T [n, t] total_input [t, k]: in the words of a product, m = n, n = k,
// k = t.
void fill_add(experiment& e, const product& p) {
  tensor& output = e.random(p.type, {p.k, p.m});
  tensor& input = e.random(p.type, {p.k, p.n});
  tensor& grad = e.zeros(dtype::f32, {p.m, p.n});
  e.velo("matmul_add_fp32",
         {{"total_input", input.view()}, {"grad_output", output.view()}, {"grad", grad.view()}});
  add_peers(e, p, output, input);
  e.check([&e, &output, &input, &grad, p] {
    for (std::int64_t i = 0; i < grad.count(); ++i) grad.set(i, 1.0);
    e.velo_call()();
    return sampled_error(
        grad.count(), [&](std::int64_t i) { return grad.at(i); },
        [&](std::int64_t i) { return 1.0 + exact(p, output, input, i); });
  });
}

void list(const machine& m, const product& p, std::vector<row>& rows) {
  const bool adds = p.accumulate_f32;
  const double flop =
      2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const std::int64_t bytes = (p.m * p.k + p.k * p.n + p.m * p.n) * bytes_of(p.type);
  row made{adds ? "matmul_add_fp32" : (p.packed ? "matmul_packed" : "matmul"),
           p.type,
           text(p),
           bytes > (std::int64_t{32} << 20) ? "dram" : "cache",
           "GF/s",
           flop,
           product_limit(m, p.type),
           adds ? "matmul_add_fp32" : "matmul",
           p.type == dtype::f16 ? ""
           : adds               ? "matmul_add_fp32"
                                : "matmul",
           [p, adds](experiment& e) { adds ? fill_add(e, p) : fill_matmul(e, p); }};
  rows.push_back(std::move(made));
}

template <std::size_t Count>
void list_type(const machine& m, dtype type, const std::int64_t (&shapes)[Count][3],
               std::vector<row>& rows) {
  for (const auto& [rows_m, n, k] : shapes)
    for (bool packed : {false, true}) {
      product p{rows_m, n, k};
      p.type = type;
      p.packed = packed;
      list(m, p, rows);
    }
  product transposed{1024, 1024, 1024};
  transposed.type = type;
  transposed.transpose_b = true;
  list(m, transposed, rows);
  transposed.transpose_a = true;
  transposed.transpose_b = false;
  list(m, transposed, rows);
  product gradient{2048, 2048, 2048};
  gradient.type = type;
  gradient.transpose_a = true;
  gradient.accumulate_f32 = true;
  list(m, gradient, rows);
}

// Products of experts: `groups` weights for m rows.
void fill_grouped(experiment& e, const product& p, std::int64_t groups) {
  tensor& x = e.random(p.type, {p.m, p.k});
  tensor& weight = e.random(p.type, {groups, p.k, p.n});
  tensor& y = e.zeros(p.type, {p.m, p.n});
  const row_groups rows(e, p.m, groups);
  const named_value right = p.packed ? named_value("packed", packed(e, weight.view()))
                                     : named_value("weight", weight.view());
  e.velo("grouped_matmul", {{"x", x.view()}, right, {"y", y.view()}, {"group_list", *rows.list}});
  e.check([&x, &weight, &y, p, rows] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t index) {
          const std::int64_t i = index / p.n, j = index % p.n, group = rows.group_of(i);
          double sum = 0;
          for (std::int64_t l = 0; l < p.k; ++l)
            sum += x.at(i * p.k + l) * weight.at((group * p.k + l) * p.n + j);
          return sum;
        });
  });
}

// The gradients of both factors of these.
void fill_grouped_backward(experiment& e, const product& p, std::int64_t groups) {
  tensor& dy = e.random(p.type, {p.m, p.n});
  tensor& x = e.random(p.type, {p.m, p.k});
  tensor& weight = e.random(p.type, {groups, p.k, p.n});
  tensor& dx = e.zeros(p.type, {p.m, p.k});
  tensor& dweight = e.zeros(p.type, {groups, p.k, p.n});
  const auto [ends, list] = row_groups(e, p.m, groups);
  e.velo("grouped_matmul_backward", {{"dy", dy.view()},
                                     {"x", x.view()},
                                     {"weight", weight.view()},
                                     {"dx", dx.view()},
                                     {"dweight", dweight.view()},
                                     {"group_list", *list}});
  e.check([&dy, &x, &dweight, p, ends = ends] {
    return sampled_error(
        dweight.count(), [&](std::int64_t i) { return dweight.at(i); },
        [&](std::int64_t index) {
          const std::int64_t group = index / (p.k * p.n), l = index / p.n % p.k, j = index % p.n;
          const auto at = static_cast<std::size_t>(group);
          double sum = 0;
          for (std::int64_t i = group == 0 ? 0 : (*ends)[at - 1]; i < (*ends)[at]; ++i)
            sum += x.at(i * p.k + l) * dy.at(i * p.n + j);
          return sum;
        });
  });
}

// The gradients of both factors: twice the work of the product.
void fill_backward(experiment& e, const product& p) {
  tensor& dc = e.random(p.type, {p.m, p.n});
  tensor& a = e.random(p.type, {p.m, p.k});
  tensor& b = e.random(p.type, {p.k, p.n});
  tensor& da = e.zeros(p.type, {p.m, p.k});
  tensor& db = e.zeros(p.type, {p.k, p.n});
  e.velo(
      "matmul_backward",
      {{"dc", dc.view()}, {"a", a.view()}, {"b", b.view()}, {"da", da.view()}, {"db", db.view()}});
  const product of_b{p.k, p.n, p.m, true};
  e.check([&dc, &a, &db, of_b] {
    return sampled_error(
        db.count(), [&](std::int64_t i) { return db.at(i); },
        [&](std::int64_t i) { return exact(of_b, a, dc, i); });
  });
}

void list_backward(const machine& m, dtype type, std::vector<row>& rows) {
  product p{2048, 2048, 2048};
  p.type = type;
  const double flop = 4.0 * static_cast<double>(p.m) * static_cast<double>(p.n * p.k);
  rows.push_back({"matmul_backward", type, text(p), "dram", "GF/s", flop, product_limit(m, type),
                  "matmul_backward", "", [p](experiment& e) { fill_backward(e, p); }});
}

// The product of 2048 rows and a residual of its size.
void list_residual(const machine& m, dtype type, std::vector<row>& rows) {
  product p{2048, 2048, 2048};
  p.type = type;
  const double flop = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n * p.k);
  rows.push_back({"matmul_add", type, text(p), "dram", "GF/s", flop, product_limit(m, type),
                  "matmul_add", "", [p](experiment& e) {
                    tensor& a = e.random(p.type, {p.m, p.k});
                    tensor& b = e.random(p.type, {p.k, p.n});
                    tensor& add = e.random(p.type, {p.m, p.n});
                    tensor& c = e.zeros(p.type, {p.m, p.n});
                    e.velo(
                        "matmul_add",
                        {{"a", a.view()}, {"b", b.view()}, {"add", add.view()}, {"c", c.view()}});
                    e.check([&a, &b, &add, &c, p] {
                      return sampled_error(
                          c.count(), [&](std::int64_t i) { return c.at(i); },
                          [&](std::int64_t i) { return exact(p, a, b, i) + add.at(i); });
                    });
                  }});
}

// Gate and factor of a layer; p.n: the columns of both.
void fill_gated(experiment& e, const product& p) {
  tensor& a = e.random(p.type, {p.m, p.k});
  tensor& b = e.random(p.type, {p.k, p.n});
  tensor& y = e.zeros(p.type, {p.m, p.n / 2});
  e.velo("matmul_swiglu", {{"x", a.view()}, {"weight", b.view()}, {"y", y.view()}});
  e.check([&a, &b, &y, p] {
    const std::int64_t half = p.n / 2;
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          const std::int64_t at = i / half * p.n + i % half;
          const double gate = exact(p, a, b, at);
          return gate / (1 + std::exp(-gate)) * exact(p, a, b, at + half);
        });
  });
}

// Rows that are normed on their way into the product.
void fill_normed(experiment& e, const product& p) {
  tensor& a = e.random(p.type, {p.m, p.k});
  tensor& b = e.random(p.type, {p.k, p.n});
  tensor& gamma = e.zeros(dtype::f32, {p.k});
  for (std::int64_t i = 0; i < gamma.count(); ++i) gamma.set(i, 1.0);
  tensor& c = e.zeros(p.type, {p.m, p.n});
  e.velo("rms_norm_matmul",
         {{"x", a.view()}, {"gamma", gamma.view()}, {"weight", b.view()}, {"y", c.view()}});
  e.check([&a, &b, &c, p] {
    return sampled_error(
        c.count(), [&](std::int64_t i) { return c.at(i); },
        [&](std::int64_t i) {
          double squares = 0;
          for (std::int64_t l = 0; l < p.k; ++l) squares += std::pow(a.at(i / p.n * p.k + l), 2);
          return exact(p, a, b, i) / std::sqrt(squares / static_cast<double>(p.k) + 1e-6);
        });
  });
}

void list_fused(const machine& m, dtype type, std::vector<row>& rows) {
  const auto add = [&](const char* name, std::int64_t n,
                       void (*fill)(experiment&, const product&)) {
    product p{2048, n, 2048};
    p.type = type;
    const double flop = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n * p.k);
    rows.push_back({name, type, text(p), "dram", "GF/s", flop, product_limit(m, type), name, "",
                    [p, fill](experiment& e) { fill(e, p); }});
  };
  add("matmul_swiglu", 11264, fill_gated);
  add("rms_norm_matmul", 2048, fill_normed);
}

void list_grouped(const machine& m, dtype type, std::vector<row>& rows) {
  for (const auto& [groups, m_all, n] :
       {std::array<std::int64_t, 3>{8, 2048, 2048}, {64, 1024, 1408}}) {
    product p{m_all, n, 2048};
    p.type = type;
    const double flop = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n * p.k);
    const std::string shape = text(p) + " " + std::to_string(groups);
    for (const bool packed : {false, true}) {
      p.packed = packed;
      row made{packed ? "grouped_matmul_packed" : "grouped_matmul",
               type,
               shape,
               "dram",
               "GF/s",
               flop,
               product_limit(m, type),
               "grouped_matmul",
               type == dtype::f16 ? "" : "grouped_matmul",
               [p, groups = groups](experiment& e) { fill_grouped(e, p, groups); }};
      rows.push_back(std::move(made));
    }
    const std::string gradient = "grouped_matmul_backward";
    row back{gradient,
             type,
             shape,
             "dram",
             "GF/s",
             2 * flop,
             product_limit(m, type),
             gradient,
             "",
             [p, groups = groups](experiment& e) { fill_grouped_backward(e, p, groups); }};
    rows.push_back(std::move(back));
  }
}

}  // namespace

void list_matmul(const machine& m, std::vector<row>& rows) {
  constexpr std::int64_t shapes[][3] = {{8, 2048, 2048},    {16, 2048, 2048},   {64, 2048, 2048},
                                        {512, 512, 512},    {512, 768, 768},    {512, 2048, 2048},
                                        {1024, 1024, 1024}, {2048, 2048, 2048}, {512, 4096, 4096},
                                        {512, 11008, 4096}, {512, 4096, 11008}, {4096, 4096, 4096}};
  constexpr std::int64_t few[][3] = {
      {8, 2048, 2048}, {16, 2048, 2048}, {512, 2048, 2048}, {2048, 2048, 2048}, {512, 4096, 4096}};
  list_type(m, dtype::f32, shapes, rows);
  list_type(m, dtype::bf16, shapes, rows);
  list_type(m, dtype::f16, few, rows);
  for (dtype type : operator_types) {
    list_backward(m, type, rows);
    list_residual(m, type, rows);
    list_fused(m, type, rows);
    list_grouped(m, type, rows);
  }
}

}  // namespace velo::bench
