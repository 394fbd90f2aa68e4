// velo explain: the kernel that would run, the reasons against the others, the outputs' shapes and
// the cost of the call.
#include <cstdio>

#include "tools/velo/call.hpp"
#include "tools/velo/commands.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/messages.hpp"
#include "tools/velo/table.hpp"

namespace command {

const char* const explain_help =
    "usage: velo explain NAME field=value.. [--set key=value] [--json]\n\n"
    "Which kernel of an operator would run, why the others would not, the shapes of its outputs, "
    "and\nhow much it computes and moves; with the keys limits.* (velo info --json measures them) "
    "the time\nthat takes at least.\n"
    "Nothing is computed. Values: a tensor f32[8,4096], a number 1e-5, an enumerator's name, a "
    "list\n"
    "[0,4,9], a pack pack:f32[4096,4096] or, of 8 experts, pack:f32[8,64,32]. Outputs need not\n"
    "be given.\n\n"
    "  velo explain rms_norm x=f32[8,4096] gamma=f32[4096] epsilon=1e-5\n"
    "  velo explain matmul a=bf16[512,4096] packed=pack:bf16[4096,4096] --set isa=avx2\n\n"
    "Exits with 2 when no kernel serves: one is forced (--set kernel.NAME=..) and refuses.\n";

namespace {

struct output {
  std::string name, shape;
};

std::vector<output> infer(const velo::context& context, const std::string& op, const call& given) {
  std::vector<velo_shape> shapes(48);
  shapes[0].struct_size = sizeof(velo_shape);
  int64_t count = 0;
  const velo_status status =
      velo_op_infer(context, op.c_str(), given.values().data(), given.count(), shapes.data(),
                    static_cast<int64_t>(shapes.size()), &count);
  if (status != VELO_OK) throw velo::error::last(status);
  std::vector<output> all;
  for (int64_t i = 0; i < count; ++i) {
    const velo_shape& s = shapes[static_cast<std::size_t>(i)];
    all.push_back({s.name, shape_name(s.dtype, s.ndim, s.sizes)});
  }
  return all;
}

json explain_call(const velo::context& context, const std::string& op, const call& given) {
  const auto ask = [&](char* buffer, uint64_t capacity, uint64_t* needed) {
    const velo_status status = velo_op_explain(context, op.c_str(), given.values().data(),
                                               given.count(), buffer, capacity, needed);
    if (status != VELO_OK) throw velo::error::last(status);
  };
  uint64_t needed = 0;
  ask(nullptr, 0, &needed);
  std::string all(needed, 0);
  ask(&all[0], needed, &needed);
  return parse(all);
}

// "2.147e+09 flops, 1.074e+09 of them visible, 8.389e+06 bytes read, 4.194e+06 written".
std::string cost_text(const json_t* cost) {
  const auto of = [cost](const char* name) { return json_number_value(member(cost, name)); };
  std::string line;
  const auto add = [&line](const char* format, double number) {
    char part[96];
    std::snprintf(part, sizeof part, format, number);
    line += part;
  };
  if (of("flops") > 0) add("%.4g flops, ", of("flops"));
  if (of("flops_visible") < of("flops")) add("%.4g of them visible, ", of("flops_visible"));
  add("%.4g bytes read, ", of("bytes_read"));
  add("%.4g written", of("bytes_written"));
  if (of("seconds") > 0) add("; at least %.4g s at the configured limits", of("seconds"));
  return line;
}

bool show(const json_t* kernels, const std::vector<output>& outputs) {
  table list({"kernel", "isa", "", "reason"});
  bool chosen = false;
  std::string cost;
  for (std::size_t i = 0; i < json_array_size(kernels); ++i) {
    const json_t* row = json_array_get(kernels, i);
    const bool here = json_is_true(member(row, "chosen"));
    chosen = chosen || here;
    if (here && member(row, "cost") != nullptr) cost = cost_text(member(row, "cost"));
    list.add({text(row, "name"), text(row, "isa"), here ? "runs" : "-", text(row, "reason")});
  }
  std::printf("%s\n", list.str().c_str());
  table shapes({"output", "shape"});
  for (const output& o : outputs) shapes.add({o.name, o.shape});
  std::printf("%s", shapes.str().c_str());
  if (!cost.empty()) std::printf("\ncost: %s\n", cost.c_str());
  return chosen;
}

bool show_json(const std::string& op, json kernels, const std::vector<output>& outputs) {
  bool chosen = false;
  for (std::size_t i = 0; i < json_array_size(kernels.get()); ++i)
    chosen = chosen || json_is_true(member(json_array_get(kernels.get(), i), "chosen"));
  json shapes(json_array());
  for (const output& o : outputs)
    json_array_append_new(shapes.get(),
                          json_pack("{s:s,s:s}", "name", o.name.c_str(), "shape", o.shape.c_str()));
  const json all(json_pack("{s:s,s:o,s:o}", "op", op.c_str(), "kernels", kernels.release(),
                           "outputs", shapes.release()));
  print(all.get());
  return chosen;
}

// Refuses an operator without fields, which has no shapes.
[[noreturn]] void ask_for_fields(const std::string& op, const json_t* describe) {
  std::string wanted;
  const json_t* fields = member(describe, "fields");
  for (std::size_t i = 0; i < json_array_size(fields); ++i) {
    const json_t* field = json_array_get(fields, i);
    const bool read = text(field, "kind") == "tensor" && text(field, "dir") != "out";
    if (read && !json_is_true(member(field, "optional")))
      wanted += " " + text(field, "name") + "=..";
  }
  throw input_error("explain " + op + " wants" + wanted +
                    ", a tensor as in f32[8,4096]; velo help explain shows more");
}

}  // namespace

int explain(const arguments& given) {
  if (given.words.empty())
    throw input_error("explain wants an operator's name; velo ops lists them");
  velo::context context = velo::context::create();
  configure(context, given.settings);
  const std::string op = given.words[0];
  const json describe = describe_operator(op);
  if (given.words.size() == 1) ask_for_fields(op, describe.get());
  const call values(context, describe.get(), {given.words.begin() + 1, given.words.end()});
  const std::vector<output> outputs = infer(context, op, values);
  json kernels = explain_call(context, op, values);
  const bool chosen =
      given.json ? show_json(op, std::move(kernels), outputs) : show(kernels.get(), outputs);
  if (chosen) return done;
  std::fprintf(stderr, "velo: no kernel of %s serves these values\n", op.c_str());
  return no_solution;
}

}  // namespace command
