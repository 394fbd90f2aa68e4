// Groups by way of the C++ layer that throws.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "velo/velo.hpp"

TEST_CASE("ranks of a group combine what they have") {
  const velo::context first = velo::context::create(), second = velo::context::create();
  const velo::stream queue = velo::stream::create(second);
  const velo_context contexts[] = {first, second};
  const auto ranks = velo::group::create_local<std::vector<velo::group>>(contexts, 2);
  float mine[3] = {1, 2, 3}, others[3] = {5, 5, 5}, out[3] = {};
  const velo::tensor_view theirs(others, {3});
  ranks[1].all_reduce(queue, theirs, theirs, VELO_REDUCE_AVG);
  ranks[1].barrier(queue);
  ranks[0].all_reduce(first.inline_stream(), velo::tensor_view(mine, {3}),
                      velo::tensor_view(out, {3}), VELO_REDUCE_AVG);
  ranks[0].barrier(first.inline_stream());
  CHECK(out[2] == 4);
  ranks[1].receive(queue, 0, theirs);
  ranks[1].send(queue, 0, theirs);
  const velo::stream_ref now = first.inline_stream();
  const velo::tensor_view have(mine, {3}), get(out, {3});
  ranks[0].send(now, 1, have);
  const velo_group_message last = {get, 1, VELO_MESSAGE_RECEIVE};
  ranks[0].exchange(now, &last, 1);
  CHECK(out[2] == 3);
  CHECK(ranks[0].info().finished == 4);
  CHECK(ranks[1].describe<std::string>().find("\"local\"") != std::string::npos);
  ranks[1].abort();
  CHECK_THROWS_AS(ranks[0].barrier(first.inline_stream()), velo::error);
}

TEST_CASE("buckets of gradients are combined, and parameters gathered") {
  const velo::context context = velo::context::create();
  const velo::stream link = velo::stream::create(context);
  const velo::group group = velo::group::create(context);
  float values[3] = {1, 2, 3};
  const std::int64_t counts[] = {1, 2};
  const velo::tensor_view all(values, {3});
  velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
  desc.scale = 2;
  const auto buckets = velo::buckets::create(link, group, all, counts, 2, desc);
  buckets.ready(context.inline_stream(), 0);
  buckets.finish(context.inline_stream());
  CHECK(values[2] == 6);
  buckets.gather(context.inline_stream(), all);
  buckets.wait(context.inline_stream(), 1);
  CHECK(buckets.info().buckets == 1);
  CHECK(buckets.bucket(0).slices == 2);
  CHECK_THROWS_AS(velo::buckets::create(link, group, all, counts, 1), velo::error);
}

TEST_CASE("tokens go to experts and back") {
  const velo::context context = velo::context::create();
  const velo::stream_ref stream = context.inline_stream();
  const velo::group group = velo::group::create(context);
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  desc.experts = 2, desc.top_k = 1;
  const auto layer = velo::dispatcher::create(group, desc);
  CHECK(layer.info().expert_count == 2);
  const auto routing = velo::routing::create(layer);
  std::int32_t chosen[] = {1, 0};
  float values[] = {1, 2}, got[2], weights[] = {3, 4}, dweights[2], back[2];
  const velo::tensor_view choices(chosen, {2, 1}), tokens(values, {2, 1}), rows(got, {2, 1}),
      weight(weights, {2, 1}), dweight(dweights, {2, 1}), result(back, {2, 1});
  routing.set(stream, choices);
  std::int64_t counts[2] = {};
  CHECK(routing.rows_of(counts, 2) == 2);
  CHECK(counts[1] == 1);
  layer.dispatch(stream, routing, tokens, rows);
  CHECK(got[0] == 2);
  const velo_tensor& by = weight;
  layer.combine(stream, routing, rows, &by, result);
  CHECK(back[0] == 3);
  float gradient[2];
  const velo::tensor_view drows(gradient, {2, 1});
  layer.combine_backward(stream, routing, tokens, rows, weight, drows, dweight);
  CHECK(gradient[1] == 3);
  CHECK(dweights[1] == 4);
  layer.combine_backward(stream, routing, tokens, drows);
  CHECK(gradient[1] == 1);
  layer.dispatch_backward(stream, routing, drows, result);
  CHECK(back[1] == 2);
  CHECK_THROWS_AS(routing.rows(), velo::error);
  routing.set(stream, choices);
  routing.forget();
  CHECK_THROWS_AS(velo::routing::create(nullptr), velo::error);
  desc.capacity_rule = VELO_CAPACITY_ROWS, desc.capacity = 1;
  const auto limited = velo::dispatcher::create(group, desc);
  const auto one_each = velo::routing::create(limited);
  std::int32_t same[] = {1, 1};
  float scored[] = {1, 2};
  std::int64_t order[] = {1, 0};
  const velo::tensor_view alike(same, {2, 1}), scores(scored, {2, 1}), places(order, {2});
  one_each.set(stream, alike, &static_cast<const velo_tensor&>(scores),
               &static_cast<const velo_tensor&>(places));
  CHECK(one_each.rows() == 1);
}

TEST_CASE("a rank alone has every collective") {
  const velo::context context = velo::context::create();
  const velo::stream_ref stream = context.inline_stream();
  velo::query(context, VELO_TRANSPORT_SELF);
  const velo::group group = velo::group::create(context);
  CHECK(group.info().size == 1);
  float values[2] = {1, 2}, out[2] = {};
  const std::int64_t two[] = {2}, none[] = {0};
  const velo::tensor_view x(values, {2}), y(out, {2});
  group.reduce(stream, 0, x, y.get(), VELO_REDUCE_MAX);
  group.broadcast(stream, 0, y);
  CHECK(out[1] == 2);
  group.all_gather(stream, x, y);
  group.all_gather(stream, x, two, none, y);
  group.reduce_scatter(stream, x, y, {VELO_REDUCE_SUM, 3});
  CHECK(out[1] == 6);
  const auto never = [](void* user, const void*, void*, int64_t, const velo_dtype*) {
    *static_cast<bool*>(user) = true;
  };
  bool called = false;
  group.reduce_scatter(stream, x, two, y, {never, &called});
  CHECK_FALSE(called);  // there is nobody to combine with
  group.all_to_all(stream, x, y);
  group.all_to_all(stream, x, two, nullptr, two, nullptr, y);
  velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
  desc.kind = VELO_COLLECTIVE_BROADCAST;
  desc.in = x.get();
  const velo::collective copy = velo::collective::create(group, desc);
  copy.start(stream);
  CHECK(copy.describe<std::string>().find("broadcast of 2 float32") != std::string::npos);
  group.measure(stream);
  CHECK(copy.explain<std::string>().find("\"name\":\"copy\",\"chosen\":true") != std::string::npos);
  desc.rank = 7;
  CHECK_THROWS_AS(velo::collective::create(group, desc), velo::error);
  const velo::group across = velo::group::create(context);
  std::int32_t itself[] = {0, 0};
  group.dispatch(stream, across, x, velo::tensor_view(itself, {2}), two, y);
  float sum = 0;
  group.combine_rows(stream, across, y, two, velo::tensor_view(itself, {1, 2}), nullptr,
                     velo::tensor_view(&sum, {1}));
  CHECK(sum == values[0] + values[1]);
  group.gather(stream, 0, x, y.get());
  group.gather(stream, 0, x, two, nullptr, y.get());
  group.scatter(stream, 0, x.get(), y);
  group.scatter(stream, 0, x.get(), two, none, y);
  CHECK(out[1] == 2);
  CHECK_THROWS_AS(group.broadcast(stream, 7, y), velo::error);
  const std::int32_t self[] = {0};
  CHECK(group.part(self, 1).info().size == 1);
  CHECK(group.history<std::string>().find("all_to_all") != std::string::npos);
  CHECK_THROWS_AS(group.shrink(), velo::error);
  group.abort();
  CHECK(group.shrink().info().failed == 0);
}

namespace {

// A host of one rank.
struct lone_host {
  int calls = 0, releases = 0;
  int64_t all_gather(const velo_host_call&, const void* in, void* out, int64_t bytes) {
    ++calls;
    std::memcpy(out, in, static_cast<size_t>(bytes));
    return bytes;
  }
  void release() { ++releases; }
};

}  // namespace

TEST_CASE("a class is a host's collectives") {
  lone_host mine;
  const velo_host_collectives table = velo::host_functions(mine);
  CHECK(table.user == &mine);
  CHECK(table.send == nullptr);
  CHECK(table.abort == nullptr);
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.transport = VELO_TRANSPORT_HOST;
  desc.host = &table;
  desc.rank = 0;
  desc.size = 1;
  {
    const velo::context context = velo::context::create();
    velo::query(context, VELO_TRANSPORT_HOST);
    const velo::group group = velo::group::create(context, desc);
    CHECK(group.info().transport == VELO_TRANSPORT_HOST);
    float values[2] = {1, 2}, out[2] = {};
    group.all_gather(context.inline_stream(), velo::tensor_view(values, {2}),
                     velo::tensor_view(out, {2}));
    CHECK(out[1] == 2);
    CHECK(mine.calls == 2);  // the rendezvous, and the collective
    CHECK(mine.releases == 0);
  }
  CHECK(mine.releases == 1);
}
