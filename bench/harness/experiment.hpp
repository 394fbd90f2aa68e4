// One row of the bench and what it needs to run: tensors, the calls of velo and its peers on them,
// and a check of velo's result.
//
// A row says what it is (name, dtype, shape), how much work a call does (bytes moved or flop),
// which limit bounds it, and how to fill an experiment with one set of tensors and the calls bound
// to it. DRAM rows get several sets, used in turn, so that no candidate finds in cache what another
// left there. velo is called through its C++ layer, by the operator's name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/dtype.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/limits/calibration.hpp"
#include "bench/limits/machine.hpp"
#include "bench/peers/peers.hpp"
#include "velo/velo.hpp"

namespace velo::bench {

// velo as its user has it: a context of so many threads and its inline stream.
struct host {
  explicit host(int threads);
  context owner;
  stream_ref stream;
  int threads;
};

bool has_operator(const std::string& name);

class tensor {
 public:
  tensor(dtype type, std::vector<std::int64_t> shape);

  const tensor_view& view() const {
    return view_;
  }  // lives as long as the tensor: named values borrow
  void* data() const { return memory_.data(); }
  std::int64_t count() const { return count_; }
  dtype type() const { return type_; }
  const buffer& memory() const { return memory_; }

  double at(std::int64_t index) const;
  void set(std::int64_t index, double value);

 private:
  dtype type_;
  std::int64_t count_ = 1;
  buffer memory_;
  tensor_view view_;
};

class experiment {
 public:
  explicit experiment(host& velo) : velo_(&velo) {}

  // Tensors of the set being filled; they live as long as the experiment.
  tensor& random(dtype type, std::vector<std::int64_t> shape,
                 double scale = 1.0);  // uniform in +-scale
  tensor& zeros(dtype type, std::vector<std::int64_t> shape);
  tensor& indices(std::vector<std::int64_t> shape, std::int64_t below);

  // Binds a call of `who` ("velo" first) to the set being filled; an empty call is left out.
  void call(const std::string& who, bound_call bound);
  // velo's operator `name` on these values, bound; and the same entered as velo's call.
  bound_call bind(const std::string& name, const std::vector<named_value>& values) const;
  void velo(const std::string& name, const std::vector<named_value>& values);
  void keep(std::shared_ptr<const void> owned) { owned_.push_back(std::move(owned)); }

  // Says how far velo's result on the first set is off, relative to the size of what it should be.
  // A tolerance of 0 is the usual one of the row's dtype.
  void check(std::function<double()> error, double tolerance = 0);
  double error() const { return error_ ? error_() : 0; }
  double tolerance() const { return tolerance_; }

  host& owner() const { return *velo_; }
  std::vector<candidate> candidates() const;
  void begin_set() { ++sets_; }
  const bound_call& velo_call() const { return calls_.front().second.front(); }

 private:
  host* velo_;
  std::function<double()> error_;
  double tolerance_ = 0;
  std::vector<std::shared_ptr<const void>> owned_;
  std::vector<std::unique_ptr<tensor>> tensors_;
  int sets_ = 0;
  std::vector<std::pair<std::string, std::vector<bound_call>>> calls_;
};

struct row {
  std::string name;
  dtype type;
  std::string shape;
  std::string residency;  // "dram" or "cache"
  std::string unit;       // "GB/s" or "GF/s"
  double work;            // bytes or flop of one call
  limit bound;
  std::string op;     // velo's operator
  std::string torch;  // the row's name in bench_torch.py, empty when torch is no peer
  std::function<void(experiment&)> fill;
  std::int64_t footprint = 0;  // bytes of one set; 0 where sets need not rotate
};

// The limit a product is held to: what the widest unit for its dtype can do.
limit product_limit(const machine& m, dtype type);

// The largest difference of `got(i)` from `want(i)` over a sample of [0, count), relative to the
// largest `want`.
double sampled_error(std::int64_t count, const std::function<double(std::int64_t)>& got,
                     const std::function<double(std::int64_t)>& want);
double default_tolerance(dtype type);

}  // namespace velo::bench
