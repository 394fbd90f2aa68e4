// Meeting, waiting, and what ends a group over MPI.
#include "comm/transport/mpi/link.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "comm/transport/waiting.hpp"
#include "core/cpu.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

constexpr std::int64_t spin_for = 20000;
constexpr std::int64_t first_rest = 20000, longest_rest = 1000000;  // between looks at what came
constexpr std::size_t least_slot = 8192, most_slot = std::size_t{1} << 30;

// Processes of one host and one space of process numbers say the same.
void name_host(char (&name)[128]) {
  char host[65] = "", boot[40] = "", space[24] = "";
  gethostname(host, sizeof host - 1);
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(boot, sizeof boot, file) == nullptr) boot[0] = 0;
    std::fclose(file);
  }
  boot[std::strcspn(boot, "\n")] = 0;
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = 0;
  std::snprintf(name, sizeof name, "%s %s %s", host, boot, space);
}

void rest(std::int64_t ns) noexcept {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
}

std::vector<int> ranks_of(int size) {
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(rank);
  return all;
}

}  // namespace

// What ranks tell each other when they meet.
struct mpi_link::hello {
  char release[24];
  char host[128];   // as its processes see it
  char place[128];  // the same, unless a test has it otherwise
  std::uint64_t buffer, token;
  std::int64_t process;
};

mpi_link::mpi_link(setting set)
    : hub_(std::move(set.hub)),
      rank_(hub_->rank()),
      size_(hub_->size()),
      timeout_ns_(set.timeout_ns),
      spin_ns_(size_ <= core::usable_threads() ? spin_for : 0),
      members_(ranks_of(size_)),
      left_(new std::atomic<bool>[static_cast<std::size_t>(size_)]()) {
  map(set.buffer);
  number_ = hub_->add(*this);
  try {
    meet(set.buffer);
  } catch (...) {
    hub_->remove(number_);
    throw;
  }
}

mpi_link::~mpi_link() {
  notice leaving;
  leaving.group = number_;
  leaving.from = rank_;
  if (!failed_) hub_->tell(leaving, members_);
  hub_->remove(number_);
}

// Pages that nobody uses are not taken from the system.
void mpi_link::map(std::size_t buffer) {
  const auto peers = static_cast<std::size_t>(std::max(1, size_ - 1));
  slot_ = core::round_up(std::clamp(buffer / peers, least_slot, most_slot), 4096);
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t bytes = 2 * ranks * opening_bytes + 4 * ranks * slot_;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_.reset(static_cast<char*>(memory), [bytes](char* p) { munmap(p, bytes); });
}

void mpi_link::meet(std::size_t buffer) {
  hello mine{};
  std::snprintf(mine.release, sizeof mine.release, "%s", VELO_RELEASE);
  name_host(mine.host);
  const char* place =
      std::getenv("VELO_MPI_HOST");  // ranks of one host that pretend to be of several
  std::snprintf(mine.place, sizeof mine.place, "%s", place != nullptr ? place : mine.host);
  while (getrandom(&mine.token, sizeof mine.token, 0) < 0 && errno == EINTR) {
  }
  mine.buffer = buffer;
  mine.process = getpid();
  batch all;
  all.opens();
  try {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      std::memcpy(opening_to(peer), &mine, sizeof mine);
      receive(all, channel::opening, peer, opening_of(peer), opening_bytes);
      send(all, channel::opening, peer, opening_to(peer), sizeof mine);
    }
    finish(all, fault());
  } catch (...) {
    abandon(all);
    throw;
  }
  std::vector<int> processes(static_cast<std::size_t>(size_), 0);
  for (int peer = 0; peer < size_; ++peer) {
    hello theirs = mine;
    if (peer != rank_) std::memcpy(&theirs, opening_of(peer), sizeof theirs);
    theirs.release[sizeof theirs.release - 1] = 0;
    if (std::strcmp(theirs.release, mine.release) != 0) {
      core::failure other;
      other.code = VELO_ERR_PEER;
      other.rank = peer;
      core::copy_text(other.expected, sizeof other.expected, core::text("velo %s", mine.release));
      core::copy_text(other.got, sizeof other.got,
                      core::text("rank %d with velo %s", peer, theirs.release));
      throw other;
    }
    if (peer != rank_ && std::memcmp(theirs.host, mine.host, sizeof mine.host) == 0)
      processes[static_cast<std::size_t>(peer)] = static_cast<int>(theirs.process);
    theirs.place[sizeof theirs.place - 1] = 0;
    ranks_.push_back({theirs.place, theirs.token});
    if (peer == 0) mine.buffer = theirs.buffer;
  }
  hub_->watch(processes);
  if (mine.buffer != buffer) map(mine.buffer);
}

void mpi_link::send(batch& with, channel on, int to, const char* from, std::int64_t bytes) {
  with.all_.push_back({{}, to, false});
  char why[128] = "";
  if (hub_->mpi().send(hub_->line(), from, static_cast<int>(bytes),
                       members_[static_cast<std::size_t>(to)],
                       hub_->tag(number_, static_cast<int>(on)), &with.all_.back().request, why))
    return;
  fault broken;
  broken.kind = fault::how::ended;
  broken.culprits.add(to);
  core::copy_text(broken.cause, sizeof broken.cause, why);
  end_and_raise(broken);
}

void mpi_link::receive(batch& with, channel on, int from, char* to, std::int64_t bytes) {
  with.all_.push_back({{}, from, true});
  char why[128] = "";
  if (hub_->mpi().receive(hub_->line(), to, static_cast<int>(bytes),
                          members_[static_cast<std::size_t>(from)],
                          hub_->tag(number_, static_cast<int>(on)), &with.all_.back().request, why))
    return;
  fault broken;
  broken.kind = fault::how::ended;
  broken.culprits.add(from);
  core::copy_text(broken.cause, sizeof broken.cause, why);
  end_and_raise(broken);
}

// Whether anything was done.
bool mpi_link::advance(batch& all, const fault& doing) {
  const std::size_t before = all.all_.size();
  char why[128] = "";
  for (std::size_t i = 0; i < all.all_.size();) {
    int done = 0;
    if (!hub_->mpi().test(&all.all_[i].request, &done, why)) {
      fault broken = doing;
      broken.kind = fault::how::ended;
      broken.culprits.add(all.all_[i].peer);
      core::copy_text(broken.cause, sizeof broken.cause, why);
      end_and_raise(broken);
    }
    if (done == 0) {
      ++i;
    } else {
      all.all_[i] = all.all_.back();
      all.all_.pop_back();
    }
  }
  return all.all_.size() < before;
}

void mpi_link::finish(batch& all, const fault& doing) {
  for (int i = 0; i < 256; ++i) {  // some ten microseconds
    advance(all, doing);
    if (all.all_.empty()) return;
  }
  std::int64_t since = now_ns(), pause = first_rest;
  while (true) {
    hub_->poll();
    const bool moved = advance(all, doing);
    if (all.all_.empty()) return;
    const std::int64_t now = now_ns();
    if (moved) since = now, pause = first_rest;
    const std::int64_t waited = now - since;
    look_around(all, doing, waited);
    if (waited < spin_ns_) continue;
    if (waited < spin_ns_ + yield_ns) {
      sched_yield();
    } else {
      rest(std::min(pause, std::max(timeout_ns_ - waited, std::int64_t{1})));
      pause = std::min(2 * pause, longest_rest);
    }
  }
}

// What can come instead of the messages: a fault that somebody told, ranks that left or are gone, the
// deadline. Who left has sent before what it owed: the opening, when it came, came first.
void mpi_link::look_around(const batch& all, const fault& doing, std::int64_t waited) {
  raise_if_failed();
  fault why = doing;
  why.timeout_ns = timeout_ns_;
  if (waited < yield_ns) return;
  why.kind = fault::how::left;
  for (const batch::message& one : all.all_)
    if (all.opens_ && one.comes && has_left(one.peer)) why.culprits.add(one.peer);
  if (why.culprits.lowest() >= 0) end_and_raise(why);
  rank_set gone;
  why.kind = fault::how::ended;
  if (hub_->find_gone(gone)) {
    hub_->poll();  // whether they left before they ended
    for (const batch::message& one : all.all_)
      if (gone.has(members_[static_cast<std::size_t>(one.peer)]) && !has_left(one.peer))
        why.culprits.add(one.peer);
  }
  if (why.culprits.lowest() >= 0) {
    std::snprintf(why.cause, sizeof why.cause, "the process of rank %d ended in the group",
                  why.culprits.lowest());
    end_and_raise(why);
  }
  if (waited < timeout_ns_) return;
  why.kind = fault::how::late;
  for (const bool comes : {true, false}) {
    for (const batch::message& one : all.all_)
      if (one.comes == comes) why.culprits.add(one.peer);
    if (why.culprits.lowest() >= 0) end_and_raise(why);
  }
}

void mpi_link::abandon(batch& all) noexcept {
  try {
    mpi_hub::remains rest{{}, memory_};
    for (batch::message& one : all.all_)
      if (!hub_->mpi().cancel(&one.request)) rest.requests.push_back(one.request);
    all.all_.clear();
    if (!rest.requests.empty()) hub_->bury(std::move(rest));
  } catch (const std::bad_alloc&) {  // MPI's for ever
    static_cast<void>(new (std::nothrow) std::shared_ptr<char>(memory_));
  }
}

void mpi_link::note(const fault& why) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  if (fault_.kind != fault::how::none) return;
  fault_ = why;
  failed_.store(true, std::memory_order_release);
  hub_->mpi().doubt();
}

void mpi_link::end(const fault& why) noexcept {
  if (failed_) return;
  note(why);
  notice all;
  all.group = number_;
  all.from = rank_;
  all.why = why;
  hub_->tell(all, members_);
}

void mpi_link::end_and_raise(const fault& why) {
  end(why);
  raise_if_failed();  // another's, if that came first
  why.raise();
}

void mpi_link::read(const notice& one) noexcept {
  if (one.why.kind != fault::how::none) return note(one.why);
  if (one.from >= 0 && one.from < size_)
    left_[static_cast<std::size_t>(one.from)].store(true, std::memory_order_release);
}

bool mpi_link::failed(fault& why) const noexcept {
  hub_->poll();
  if (!failed_.load(std::memory_order_acquire)) return false;
  const std::lock_guard<std::mutex> lock(lock_);
  why = fault_;
  return true;
}

void mpi_link::raise_if_failed() const {
  fault known;
  if (!failed_.load(std::memory_order_acquire)) return;
  failed(known);
  known.raise();
}

}  // namespace velo::comm
