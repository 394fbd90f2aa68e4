// An operator's example with sizes beyond all memory.
//
// A tensor of more elements than the example has gets no data, so that an accepted call cannot have
// used it. `answers` makes the call and checks its result.
#pragma once

#include <ctime>

#include "tests/ops/example_call.hpp"

namespace velo::testing {

constexpr std::int64_t boundary_sizes[] = {
    0,
    1,
    2,
    (std::int64_t{1} << 31) - 1,
    std::int64_t{1} << 31,
    std::int64_t{1} << 32,
    std::int64_t{1} << 40,
    std::int64_t{1} << 57,
    std::int64_t{1} << 62,
    INT64_MAX,
};

// The time of this thread, so that other work on the machine does not count.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class huge_call {
 public:
  explicit huge_call(const hosts::sample& sample) : call_(sample) {
    for (std::size_t t = 0; t < call_.tensors(); ++t) sizes_.push_back(call_.memory(t).shape);
  }

  std::size_t tensors() const { return call_.tensors(); }
  std::vector<std::int64_t>& sizes(std::size_t tensor) { return sizes_[tensor]; }
  void restore() {
    for (std::size_t t = 0; t < tensors(); ++t) sizes_[t] = call_.memory(t).shape;
  }
  // Replaces every size `from` of the example.
  void replace(std::int64_t from, std::int64_t to) {
    for (std::size_t t = 0; t < tensors(); ++t)
      for (std::size_t d = 0; d < sizes_[t].size(); ++d)
        if (call_.memory(t).shape[d] == from) sizes_[t][d] = to;
  }

  // Whether the call is accepted. Requires that a refused call has written nothing, that a query of
  // shapes returns, and that a call with an empty tensor returns at once.
  bool answers(const session& s) {
    std::string shapes;
    bool empty = false;
    for (std::size_t t = 0; t < tensors(); ++t) {
      shapes += std::string(" ") + call_.spec().fields[call_.field(t)].name +
                ops::shape_name(static_cast<int>(sizes_[t].size()), sizes_[t].data()).buffer;
      empty = place(t) || empty;
    }
    INFO(shapes);
    call_.reset();
    const auto before = call_.result();
    velo_status status = VELO_OK;
    double seconds = 1;
    for (int attempt = 0; attempt < 3 && seconds > 1e-3; ++attempt) {
      const double start = thread_seconds();
      status = call_.run(s.stream());
      seconds = thread_seconds() - start;
    }
    if (empty) REQUIRE(seconds <= 1e-3);
    if (status != VELO_OK) {
      REQUIRE(last_record().argument.rfind("args.", 0) == 0);
      REQUIRE(call_.result() == before);
    }
    require_shapes(s, status);
    return status == VELO_OK;
  }

 private:
  // Gives a tensor its sizes, and data where it has as many; true when it has no element.
  bool place(std::size_t t) {
    velo_tensor& view = call_.view(t);
    view.shape = sizes_[t].data();
    double count = 1;
    for (const std::int64_t size : sizes_[t]) count *= static_cast<double>(size);
    const bool empty = count == 0;
    const bool fits = !empty && count <= static_cast<double>(call_.memory(t).count());
    view.data = fits ? call_.memory(t).bytes.data() : nullptr;
    return empty;
  }

  void require_shapes(const session& s, velo_status status) const {
    velo_shape shapes[ops::max_fields];
    shapes[0].struct_size = sizeof(velo_shape);
    std::int64_t count = 0;
    for (const bool with_outputs : {false, true}) {
      const auto values = call_.values(with_outputs);
      const velo_status inferred =
          velo_op_infer(s.context(), call_.spec().name, values.data(),
                        static_cast<std::int64_t>(values.size()), shapes, ops::max_fields, &count);
      if (status == VELO_OK) REQUIRE(inferred == VELO_OK);
      char text[8192];
      REQUIRE(velo_op_explain(s.context(), call_.spec().name, values.data(),
                              static_cast<std::int64_t>(values.size()), text, sizeof text,
                              nullptr) == inferred);
    }
  }

  example_call call_;
  std::vector<std::vector<std::int64_t>> sizes_;
};

}  // namespace velo::testing
