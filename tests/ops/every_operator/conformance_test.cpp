// The rules that all operators obey, tested on the registry and on a sample of each operator. No
// operator is named here, so that a new one is tested without a change.
#include <jansson.h>

#include <memory>

#include "core/handle/guard.hpp"
#include "core/handle/handle.hpp"
#include "core/stream/stream.hpp"
#include "tests/ops/every_operator/where_to_edit.hpp"
#include "tests/ops/example_call.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

void for_each_example(const std::function<void(example_call&)>& check) {
  for (const hosts::sample& sample : hosts::samples(true)) {
    example_call call(sample);
    INFO(where_to_edit(sample.op) << "\n" << sample.fields());
    REQUIRE(call.spec().name == sample.op);
    check(call);
  }
}

bool names_argument() {
  return last_record().argument.rfind("args.", 0) == 0;
}

// The first `size` bytes of the args in a block of exactly that size, the tail beyond velo's own
// struct filled with zeros and `final`.
std::unique_ptr<unsigned char[]> resized(const example_call& call, std::uint32_t size,
                                         unsigned char final = 0) {
  auto bytes = std::make_unique<unsigned char[]>(size);
  std::memset(bytes.get(), 0, size);
  std::memcpy(bytes.get(), &call.args, std::min(size, call.spec().struct_size));
  std::memcpy(bytes.get(), &size, sizeof size);
  if (size > call.spec().struct_size) bytes[size - 1] = final;
  return bytes;
}

// Whether the integers of a tensor are places, of which some are wrong; those of a quantized tensor
// and of a bias are numbers.
bool holds_indices(example_call& call, std::size_t t) {
  constexpr std::uint32_t numbers = core::dtype_f32 | core::dtype_i8;
  const ops::field& f = call.spec().fields[call.field(t)];
  return call.memory(t).dtype.code == VELO_DTYPE_INT && (f.dtypes & numbers) == 0 &&
         std::string_view(f.name) != "bias";
}

}  // namespace

TEST_CASE("failures of these tests name the files to edit") {
  for (int i = 0; i < ops::op_count(); ++i) {
    const ops::op_spec& spec = ops::spec_of(static_cast<ops::op_id>(i));
    INFO(spec.name);
    CHECK(!source_of(spec).empty());
    CHECK(where_to_edit(spec).find("edit " + source_of(spec)) != std::string::npos);
    CHECK(where_to_edit(spec).find(std::string("abi/spec/ops/") + spec.family + ".json") !=
          std::string::npos);
  }
}

TEST_CASE("every operator has a sample that runs") {
  for (int i = 0; i < ops::op_count(); ++i) {
    const std::string name = ops::spec_of(static_cast<ops::op_id>(i)).name;
    INFO(where_to_edit(name));
    bool runs = hosts::takes_lists(name);
    for (const hosts::sample& s : hosts::samples(true))
      runs = runs || (s.op == name && s.status == VELO_OK);
    CHECK(runs);
  }
}

TEST_CASE("every operator refuses a call with nothing but defaults, by an argument's name") {
  session s;
  for (int i = 0; i < ops::op_count(); ++i) {
    const auto op = static_cast<ops::op_id>(i);
    INFO(where_to_edit(ops::spec_of(op)));
    ops::args_block args;
    ops::set_defaults(ops::spec_of(op), args);
    CHECK(ops::call(op, s.stream(), &args) == VELO_ERR_NULL);
    CHECK(names_argument());
    CHECK(last_record().function == ops::spec_of(op).function);
    CHECK_REFUSED(ops::call(op, s.stream(), nullptr), VELO_ERR_NULL, "args");
    CHECK_REFUSED(ops::call(op, nullptr, &args), VELO_ERR_NULL, "stream");
  }
}

TEST_CASE("a shorter args struct means defaults for the fields it lacks, for every operator") {
  session s;
  for_each_example([&](example_call& call) {
    const ops::args_block whole = call.args;
    for (std::uint32_t size = 8; size < call.spec().struct_size; size += 8) {
      INFO("struct_size " << size);
      call.reset();
      const velo_status status = ops::call(call.op(), s.stream(), resized(call, size).get());
      if (status != VELO_OK) CHECK(names_argument());
      const auto bits = call.result();
      ops::set_defaults(call.spec(), call.args);
      std::memcpy(call.args.values, whole.values, size - 8);
      call.reset();
      CHECK(call.run(s.stream()) == status);
      CHECK(call.result() == bits);
      call.args = whole;
    }
  });
}

TEST_CASE("a longer args struct works while its tail is zero and is refused when it is not") {
  session s;
  for_each_example([&](example_call& call) {
    VELO_RUN(call.run(s.stream()));
    const auto bits = call.result();
    for (const std::uint32_t size : {call.spec().struct_size + 8, core::max_struct_size}) {
      INFO("struct_size " << size);
      call.reset();
      const auto untouched = call.result();
      CHECK_REFUSED(ops::call(call.op(), s.stream(), resized(call, size, 1).get()),
                    VELO_ERR_UNSUPPORTED, "args.struct_size");
      CHECK(call.result() == untouched);
      VELO_RUN(ops::call(call.op(), s.stream(), resized(call, size).get()));
      CHECK(call.result() == bits);
    }
    for (const std::uint32_t size : {4u, 12u, core::max_struct_size + 8}) {
      const auto bytes = resized(call, size);
      CHECK_REFUSED(ops::call(call.op(), s.stream(), bytes.get()), VELO_ERR_STRUCT,
                    "args.struct_size");
    }
  });
}

TEST_CASE("every operator refuses what stands in a reserved field") {
  session s;
  for_each_example([&](example_call& call) {
    const auto untouched = call.result();
    call.args.reserved = 0x80000000u;
    CHECK_REFUSED(call.run(s.stream()), VELO_ERR_ARGUMENT, "args.reserved");
    CHECK_REFUSED(ops::call(call.op(), s.stream(), resized(call, 8).get()), VELO_ERR_ARGUMENT,
                  "args.reserved");
    call.args.reserved = 0;
    auto values = call.values(true);
    values.back().value.reserved = 1;
    CHECK_REFUSED(velo_op_call(s.stream(), call.spec().name, values.data(),
                               static_cast<std::int64_t>(values.size())),
                  VELO_ERR_ARGUMENT, std::string("args.") + values.back().name);
    CHECK(call.result() == untouched);
  });
}

TEST_CASE("every operator refuses each tensor whose data are not aligned to its elements") {
  session s;
  for_each_example([&](example_call& call) {
    for (std::size_t t = 0; t < call.tensors(); ++t) {
      const std::string path = std::string("args.") + call.spec().fields[call.field(t)].name;
      velo_tensor& view = call.view(t);
      if (view.dtype.bits == 8) continue;         // a byte is aligned anywhere
      if (call.memory(t).count() == 0) continue;  // and so is nothing
      const auto untouched = call.result();
      view.byte_offset = 1;
      CHECK_REFUSED(call.run(s.stream()), VELO_ERR_LAYOUT, path + ".data");
      view.byte_offset = 0;
      view.device.type = VELO_DEVICE_CPU + 1;
      CHECK_REFUSED(call.run(s.stream()), VELO_ERR_DEVICE, path + ".device");
      view.device.type = VELO_DEVICE_CPU;
      view.dtype.lanes = 4;
      CHECK_REFUSED(call.run(s.stream()), VELO_ERR_DTYPE, path + ".dtype");
      view.dtype.lanes = 1;
      CHECK(call.result() == untouched);
    }
  });
}

TEST_CASE("every operator gives the same bits inline and on a queue, which needs no args later") {
  session s;
  const velo_stream queue = s.new_stream();
  for_each_example([&](example_call& call) {
    VELO_RUN(call.run(s.stream()));
    const auto bits = call.result();
    call.reset();
    {
      const auto args = resized(call, call.spec().struct_size);
      VELO_RUN(ops::call(call.op(), queue, args.get()));
    }
    VELO_RUN(velo_stream_synchronize(queue));
    CHECK(call.result() == bits);
  });
}

TEST_CASE("a call that fails on a queue is kept there until the stream is cleared") {
  session s;
  const velo_stream queue = s.new_stream();
  int failed = 0;
  for_each_example([&](example_call& call) {
    VELO_RUN(call.run(s.stream()));
    const auto bits = call.result();
    for (std::size_t t = 0; t < call.tensors(); ++t) {
      const bool output = call.spec().fields[call.field(t)].output;
      if (!holds_indices(call, t) || output) continue;
      call.reset();
      auto& indices = call.memory(t).bytes;
      std::fill(indices.begin(), indices.end(), 0xfb);  // far below zero in either width
      VELO_RUN(call.run(queue));
      const std::string path = std::string("args.") + call.spec().fields[call.field(t)].name;
      for (int i = 0; i < 2; ++i)
        CHECK_REFUSED(velo_stream_synchronize(queue), VELO_ERR_ARGUMENT, path);
      call.reset();
      CHECK_REFUSED(call.run(queue), VELO_ERR_ARGUMENT, path);
      VELO_RUN(velo_stream_clear(queue));
      VELO_RUN(call.run(queue));
      VELO_RUN(velo_stream_synchronize(queue));
      CHECK(call.result() == bits);
      ++failed;
    }
  });
  CHECK(failed >= 4);
}

TEST_CASE("every operator at level 0 chooses its reference") {
  session plain(1, R"({"level": 0})");
  for_each_example([&](example_call& call) {
    const core::context& context = core::resolve<core::stream>(plain.stream(), "stream").owner();
    ops::problem_storage problem;
    ops::check(call.op(), &call.args, context, ops::purpose::run, problem, nullptr);
    CHECK(ops::choose(call.op(), &call.args, problem, context) ==
          ops::definition_of(call.op()).kernels->count - 1);
  });
}

TEST_CASE("the kernel an operator explains is the kernel it runs") {
  session s;
  for_each_example([&](example_call& call) {
    VELO_RUN(call.run(s.stream()));
    const auto bits = call.result();
    const auto values = call.values(true);
    char text[8192];
    VELO_RUN(velo_op_explain(s.context(), call.spec().name, values.data(),
                             static_cast<std::int64_t>(values.size()), text, sizeof text, nullptr));
    json_t* kernels = json_loads(text, 0, nullptr);
    REQUIRE(static_cast<int>(json_array_size(kernels)) ==
            ops::definition_of(call.op()).kernels->count);
    int chosen = 0;
    for (std::size_t i = 0; i < json_array_size(kernels); ++i) {
      const json_t* kernel = json_array_get(kernels, i);
      const std::string name = json_string_value(json_object_get(kernel, "name"));
      INFO("kernel " << name);
      session forced(1, std::string("{\"kernel.") + call.spec().name + "\": \"" + name + "\"}");
      call.reset();
      const velo_status status = call.run(forced.stream());
      const bool is_chosen = json_is_true(json_object_get(kernel, "chosen"));
      CHECK((status == VELO_OK || status == VELO_ERR_UNSUPPORTED));
      if (is_chosen) CHECK(status == VELO_OK);
      if (is_chosen) CHECK(call.result() == bits);
      if (chosen == 0 && !is_chosen) CHECK(status == VELO_ERR_UNSUPPORTED);
      chosen += is_chosen;
    }
    CHECK(chosen == 1);
    json_decref(kernels);
  });
}

TEST_CASE("the shapes an operator infers are those it accepts, and no others") {
  session s;
  for_each_example([&](example_call& call) {
    const auto values = call.values(false);
    velo_shape shapes[ops::max_fields];
    shapes[0].struct_size = sizeof(velo_shape);
    std::int64_t count = 0;
    VELO_RUN(velo_op_infer(s.context(), call.spec().name, values.data(),
                           static_cast<std::int64_t>(values.size()), shapes, ops::max_fields,
                           &count));
    CHECK(count > 0);
    for (std::size_t t = 0; t < call.tensors(); ++t) {
      const ops::field& f = call.spec().fields[call.field(t)];
      if (!f.output) continue;
      INFO(f.name);
      const auto inferred = std::find_if(shapes, shapes + count, [&](const velo_shape& shape) {
        return f.name == std::string(shape.name);
      });
      REQUIRE(inferred != shapes + count);
      velo_tensor& view = call.view(t);
      CHECK(view.ndim == inferred->ndim);
      CHECK(std::equal(inferred->sizes, inferred->sizes + inferred->ndim, view.shape));
      CHECK(ops::operator==(view.dtype, inferred->dtype));

      const velo_tensor before = view;
      std::int64_t longer[8] = {};
      std::copy(view.shape, view.shape + view.ndim, longer);
      longer[view.ndim] = 1;
      view.shape = longer, view.ndim += 1;
      CHECK(call.run(s.stream()) != VELO_OK);
      CHECK(names_argument());
      view = before;
    }
    call.reset();
    VELO_RUN(call.run(s.stream()));
  });
}
