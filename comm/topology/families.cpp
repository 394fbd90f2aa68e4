// The list of families with their axes and parts. Their names are those of Megatron-LM.
#include <algorithm>
#include <utility>

#include "comm/topology/topology.hpp"

namespace velo::comm {

family& topology::add(std::string name, family made) {
  made.name = std::move(name);
  families_.push_back(std::move(made));
  return families_.back();
}

void topology::add_part(std::string name, const layout& of,
                        const std::vector<std::string_view>& axes, std::int64_t inner,
                        std::int64_t length) {
  family& added = add(std::move(name), of.over(axes));
  added.inner = inner;
  added.length = length;
}

void topology::add_twin(const char* name, const char* of) {
  const auto first = std::find_if(families_.begin(), families_.end(),
                                  [&](const family& one) { return one.name == of; });
  if (first == families_.end()) return;
  add(name, family(*first)).twin_of = of;
}

void topology::add_dense() {
  add("tp", dense_.over({"tp"}));
  add("pp", dense_.over({"pp"}));
  add("dp", dense_.over({"dp"}));
  add("cp", dense_.over({"cp"}));
  add("dp-cp", dense_.over({"dp", "cp"}));
  add("tp-cp", dense_.over({"tp", "cp"}));
  add("tp-dp", dense_.over({"tp", "dp"}));
  add("tp-dp-cp", dense_.over({"tp", "dp", "cp"}));
  add("mp", dense_.over({"tp", "pp"}));
  if (dense_.of("gtp").size > 1) add("gtp", dense_.over({"gtp"}));

  // The embedding family has the first and the last stage of a pipeline; the position embedding
  // family has only the first.
  digit stages = dense_.of("pp");
  family ends = dense_.over({"pp"});
  stages.size = std::min<std::int64_t>(stages.extent, 2);
  stages.step = std::max<std::int64_t>(stages.extent - 1, 1);
  ends.members = {};
  ends.members.add(stages);
  add("embedding", ends);
  stages.size = 1;
  stages.step = stages.extent;
  ends.members = {};
  ends.members.add(stages);
  add("position-embedding", ends);
}

void topology::add_experts() {
  add("ep", experts_.over({"ep"}));
  add("etp", experts_.over({"etp"}));
  add("tp-ep", experts_.over({"etp", "ep"}));
  add("tp-ep-pp", experts_.over({"etp", "ep", "pp"}));
  add("edp", experts_.over({"edp"}));
  if (experts_.of("egtp").size > 1) add("egtp", experts_.over({"egtp"}));
}

void topology::add_instances(std::int64_t count) {
  const std::int64_t dense = dense_.over({"dp", "cp"}).size() / count;
  const std::int64_t expert = experts_.of("edp").size / count;
  add_part("intra-dp-cp", dense_, {"dp", "cp"}, 1, dense);
  add_part("inter-dp-cp", dense_, {"dp", "cp"}, dense, count);
  add_part("intra-edp", experts_, {"edp"}, 1, expert);
  add_part("inter-edp", experts_, {"edp"}, expert, count);

  // An instance is a slice of the concatenated tp-ep-pp groups.
  const family models = experts_.over({"etp", "ep", "pp"});
  family all;
  for (const digit& one : models.members) all.members.add(one);
  for (const digit& one : models.others) all.members.add(one);
  all.length = ranks() / count;
  add("optimizer-instance", all);
}

void topology::add_levels(const std::int64_t* sizes, std::int64_t count) {
  std::int64_t inner = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    add_part("cp-level-" + std::to_string(i + 1), dense_, {"cp"}, inner, sizes[i]);
    inner *= sizes[i];
  }
}

void topology::add_hybrid() {
  const std::int64_t all = dense_.over({"dp", "cp"}).size();
  for (std::int64_t size = 2; size <= all / 2; size *= 2)
    add_part("dp-cp-" + std::to_string(size), dense_, {"dp", "cp"}, 1, size);
}

void topology::add_context_parts(std::int64_t ulysses, std::int64_t window) {
  const std::int64_t ring = dense_.of("cp").size / ulysses;
  if (ulysses > 1) {
    add_part("cp-ulysses", dense_, {"cp"}, 1, ulysses);
    add_part("cp-ring", dense_, {"cp"}, ulysses, ring);
  }
  if (window > 1) add_part("cp-ring-intra", dense_, {"cp"}, ulysses, window);
}

void topology::add_tensor_parts(std::int64_t x, std::int64_t y) {
  const std::int64_t tp = dense_.of("tp").size;
  add_part("nd1-dim1", dense_, {"tp"}, 1, x);
  add_part("nd1-dim2", dense_, {"tp"}, x, tp / x);
  add_part("nd2-dim1", dense_, {"tp"}, 1, y);
  add_part("nd2-dim2", dense_, {"tp"}, y, tp / y);
  const layout in_two = dense_.split("tp", x, "x", "y");
  add("tp-x-cp", in_two.over({"x", "cp"}));
  add("tp-y-cp", in_two.over({"y", "cp"}));
}

void topology::add_twins() {
  add_twin("dp-cp-overlap", "dp-cp");
  add_twin("cp-overlap", "cp");
  add_twin("pp-new-stream", "pp");
  add_twin("cp-ring-intra-overlap", "cp-ring-intra");
  add_twin("nd1-dim1-overlap", "nd1-dim1");
  add_twin("nd1-dim2-overlap", "nd1-dim2");
  add_twin("tp-y-cp-overlap", "tp-y-cp");
}

}  // namespace velo::comm
