// A host as threads of the test: its own collectives over plain memory, any of which may be
// missing, slow, short, wrong or failing on one rank.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "velo/host.h"

namespace velo::testing {

class fake_host {
 public:
  // The scripted answer of a function, instead of its work or before it.
  struct answer {
    bool instead = false;
    std::int64_t returns = 0;
  };
  using injection = std::function<answer(const char* name, int call)>;

  // functions: some of "gather to_all broadcast reduce messages part abort"; of its parts: the
  // same.
  fake_host(int size, const std::string& functions) : fake_host(size, functions, functions) {}
  fake_host(int size, std::string functions, std::string functions_of_parts)
      : functions_(std::move(functions)), functions_of_parts_(std::move(functions_of_parts)) {
    for (int rank = 0; rank < size; ++rank)
      ranks_.push_back(std::make_unique<one_rank>(one_rank{this, rank, {}, 0}));
  }
  int size() const { return static_cast<int>(ranks_.size()); }
  void inject(int rank, injection what) { at(rank).what = std::move(what); }
  int released() {
    const std::lock_guard<std::mutex> held(lock_);
    return released_;
  }
  bool await_released(int count) {
    std::unique_lock<std::mutex> held(lock_);
    return moved_.wait_for(held, std::chrono::seconds(20), [&] { return released_ == count; });
  }
  // The part that was made of these ranks.
  fake_host& part_of(const std::vector<std::int32_t>& ranks) {
    const std::lock_guard<std::mutex> held(lock_);
    return *parts_.at(ranks);
  }
  void name_late_ranks() { names_late_ = true; }  // as velo_host_call.late has it
  void lose_a_rank() {                            // all that wait for the others learn of it
    const std::lock_guard<std::mutex> held(lock_);
    gone_ = true;
    moved_.notify_all();
  }
  int aborted() {
    const std::lock_guard<std::mutex> held(lock_);
    return aborted_;
  }

  velo_host_collectives table(int rank) {
    velo_host_collectives all = VELO_HOST_COLLECTIVES_INIT;
    all.user = &at(rank);
    if (has("gather")) all.all_gather = all_gather;
    if (has("to_all")) all.all_to_all = all_to_all;
    if (has("broadcast")) all.broadcast = broadcast;
    if (has("reduce")) all.all_reduce = all_reduce;
    if (has("messages")) all.send = send, all.receive = receive;
    if (has("part")) all.part = part;
    if (has("abort")) all.abort = abort;
    all.release = release;
    return all;
  }

 private:
  struct one_rank {
    fake_host* host;
    int rank;
    injection what;
    int calls;
  };
  struct offer {
    const char* data = nullptr;
    const std::int64_t* sizes = nullptr;
    std::int64_t bytes = 0;
  };
  one_rank& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  bool has(const char* name) const { return functions_.find(name) != std::string::npos; }

  // A function that waits until its argument holds: whether it did in time, and nothing ended.
  auto waiting(std::unique_lock<std::mutex>& held, const velo_host_call* call) {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(call->timeout_ns);
    return [this, &held, until](auto&& there) {
      return moved_.wait_until(held, until, [&] { return aborted_ > 0 || gone_ || there(); }) &&
             aborted_ == 0 && !gone_;
    };
  }

  // Every rank offers something, looks at what all have offered, and goes when all have looked.
  template <class Look>
  std::int64_t meet(const one_rank& me, const velo_host_call* call, const char* name,
                    const offer& mine, Look&& look) {
    std::unique_lock<std::mutex> held(lock_);
    const auto wait = waiting(held, call);
    const auto go = [&] {  // what it offered is no longer there for those who come
      gone_ = true;
      for (int rank = 0; names_late_ && rank < size(); ++rank)
        call->late[rank] = offers_.count(rank) == 0 ? 1 : 0;
      return fail(call, "rank missing", -110);
    };
    if (!wait([&] { return !leaving_; })) return fail(call, "rank missing", -110);
    if (offers_.empty()) name_ = name;
    if (name_ != name) return fail(call, "another call", -22);
    offers_[me.rank] = mine;
    moved_.notify_all();
    if (offers_.size() == ranks_.size()) leaving_ = true;
    if (!wait([&] { return leaving_; })) return go();
    const std::int64_t done = look(offers_);
    const int round = round_;
    if (++left_ == size()) {
      offers_.clear();
      left_ = 0;
      leaving_ = false;
      ++round_;
    }
    moved_.notify_all();
    if (!wait([&] { return round_ != round; })) return go();
    return done;
  }
  static std::int64_t fail(const velo_host_call* call, const char* why, std::int64_t code) {
    std::snprintf(call->why, call->capacity, "%s", why);
    return code;
  }
  template <class Body>
  static std::int64_t enter(void* user, const velo_host_call* call, const char* name, Body&& body) {
    one_rank& me = *static_cast<one_rank*>(user);
    if (me.what) {
      const answer instead = me.what(name, me.calls++);
      if (instead.instead) return fail(call, "injected", instead.returns);
    }
    return body(*me.host, me);
  }

  static std::int64_t all_gather(void* user, const velo_host_call* call, const void* in, void* out,
                                 std::int64_t bytes) {
    return enter(user, call, "all_gather", [&](fake_host& host, one_rank& me) {
      const offer mine{static_cast<const char*>(in), nullptr, bytes};
      return host.meet(me, call, "all_gather", mine, [&](const std::map<int, offer>& all) {
        std::int64_t done = 0;
        for (const auto& one : all) {
          if (one.second.bytes != bytes) return fail(call, "another size", -22);
          std::memcpy(static_cast<char*>(out) + done, one.second.data,
                      static_cast<std::size_t>(bytes));
          done += bytes;
        }
        return done;
      });
    });
  }
  static std::int64_t all_to_all(void* user, const velo_host_call* call, const void* in,
                                 const std::int64_t* in_bytes, void* out,
                                 const std::int64_t* out_bytes) {
    return enter(user, call, "all_to_all", [&](fake_host& host, one_rank& me) {
      const offer mine{static_cast<const char*>(in), in_bytes, 0};
      return host.meet(me, call, "all_to_all", mine, [&](const std::map<int, offer>& all) {
        std::int64_t done = 0;
        for (const auto& one : all) {
          std::int64_t begin = 0;
          for (int r = 0; r < me.rank; ++r) begin += one.second.sizes[r];
          const std::int64_t bytes = one.second.sizes[me.rank];
          if (bytes != out_bytes[one.first]) return fail(call, "another size", -22);
          if (bytes > 0)
            std::memcpy(static_cast<char*>(out) + done, one.second.data + begin,
                        static_cast<std::size_t>(bytes));
          done += bytes;
        }
        return done;
      });
    });
  }
  static std::int64_t broadcast(void* user, const velo_host_call* call, std::int32_t root,
                                void* data, std::int64_t bytes) {
    return enter(user, call, "broadcast", [&](fake_host& host, one_rank& me) {
      const offer mine{static_cast<const char*>(data), nullptr, bytes};
      return host.meet(me, call, "broadcast", mine, [&](const std::map<int, offer>& all) {
        const offer& from = all.at(root);
        if (from.bytes != bytes) return fail(call, "another size", -22);
        if (me.rank != root) std::memcpy(data, from.data, static_cast<std::size_t>(bytes));
        return bytes;
      });
    });
  }
  // Sums of float32 alone, in the reverse order of the ranks.
  static std::int64_t all_reduce(void* user, const velo_host_call* call, velo_reduce_op op,
                                 const velo_dtype* dtype, const void* in, void* out,
                                 std::int64_t count) {
    return enter(user, call, "all_reduce", [&](fake_host& host, one_rank& me) -> std::int64_t {
      if (op != VELO_REDUCE_SUM || dtype->code != VELO_DTYPE_FLOAT || dtype->bits != 32)
        return VELO_HOST_DECLINED;
      const offer mine{static_cast<const char*>(in), nullptr, count};
      return host.meet(me, call, "all_reduce", mine, [&](const std::map<int, offer>& all) {
        auto* to = static_cast<float*>(out);
        for (std::int64_t i = 0; i < count; ++i) to[i] = 0;
        for (auto one = all.rbegin(); one != all.rend(); ++one)
          for (std::int64_t i = 0; i < count; ++i)
            to[i] += reinterpret_cast<const float*>(one->second.data)[i];
        return 4 * count;
      });
    });
  }

  // Whoever sends waits until it has been received.
  static std::int64_t send(void* user, const velo_host_call* call, std::int32_t to,
                           const void* data, std::int64_t bytes) {
    return enter(user, call, "send", [&](fake_host& host, one_rank& me) {
      return host.pass(
          call, me, {me.rank, to},
          [&](offer& box) {
            if (box.data != nullptr || box.bytes != 0) return false;
            box = {static_cast<const char*>(data), nullptr, bytes};
            return true;
          },
          [&](offer& box) { return box.bytes == -1 ? (box = {}, bytes) : 0; });
    });
  }
  static std::int64_t receive(void* user, const velo_host_call* call, std::int32_t from, void* data,
                              std::int64_t bytes) {
    return enter(user, call, "receive", [&](fake_host& host, one_rank& me) {
      return host.pass(
          call, me, {from, me.rank}, [&](offer& box) { return box.bytes > 0; },
          [&](offer& box) {
            const std::int64_t got = std::min(bytes, box.bytes);
            std::memcpy(data, box.data, static_cast<std::size_t>(got));
            box.bytes = -1;
            return got;
          });
    });
  }
  template <class First, class Then>
  std::int64_t pass(const velo_host_call* call, const one_rank& me, std::pair<int, int> way,
                    First&& first, Then&& then) {
    std::unique_lock<std::mutex> held(lock_);
    const auto wait = waiting(held, call);
    offer& box = boxes_[way];
    std::int64_t done = 0;
    const auto miss = [&] {
      call->late[way.first == me.rank ? way.second : way.first] = names_late_ ? 1 : 0;
      return fail(call, "rank missing", -110);
    };
    if (!wait([&] { return first(box); })) return miss();
    moved_.notify_all();
    if (!wait([&] { return (done = then(box)) > 0; })) return miss();
    moved_.notify_all();
    return done;
  }

  static std::int64_t part(void* user, const velo_host_call* call, const std::int32_t* ranks,
                           std::int32_t count, velo_host_collectives* made) {
    return enter(user, call, "part", [&](fake_host& host, one_rank& me) -> std::int64_t {
      const std::lock_guard<std::mutex> held(host.lock_);
      const std::vector<std::int32_t> list(ranks, ranks + count);
      auto& found = host.parts_[list];
      if (found == nullptr) found = std::make_unique<fake_host>(count, host.functions_of_parts_);
      for (std::int32_t place = 0; place < count; ++place)
        if (list[static_cast<std::size_t>(place)] == me.rank) *made = found->table(place);
      return 0;
    });
  }
  static void abort(void* user, const char*) {
    fake_host& host = *static_cast<one_rank*>(user)->host;
    const std::lock_guard<std::mutex> held(host.lock_);
    ++host.aborted_;
    host.moved_.notify_all();
  }
  static void release(void* user) {
    fake_host& host = *static_cast<one_rank*>(user)->host;
    const std::lock_guard<std::mutex> held(host.lock_);
    ++host.released_;
    host.moved_.notify_all();
  }

  const std::string functions_, functions_of_parts_;
  std::vector<std::unique_ptr<one_rank>> ranks_;
  std::mutex lock_;  // guards what follows
  std::condition_variable moved_;
  std::string name_;
  std::map<int, offer> offers_;
  int left_ = 0, round_ = 0, released_ = 0, aborted_ = 0;
  bool leaving_ = false;
  bool gone_ = false;  // a rank, for good
  bool names_late_ = false;
  std::map<std::pair<int, int>, offer> boxes_;
  std::map<std::vector<std::int32_t>, std::unique_ptr<fake_host>> parts_;
};

}  // namespace velo::testing
