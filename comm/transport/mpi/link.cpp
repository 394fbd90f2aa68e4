// Connecting, waiting, and the faults that end a group over MPI.
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

#include "comm/transport/mpi/sent_notes.hpp"
#include "core/host/cpu.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

constexpr std::int64_t default_spin_ns = 20000;
constexpr std::int64_t first_pause = 20000, longest_pause = 1000000;  // between polls
constexpr std::size_t least_slot = 8192, most_slot = std::size_t{1} << 30;

// The name is equal for processes of one host and one PID namespace.
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

void sleep_ns(std::int64_t ns) noexcept {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
}

std::vector<int> ranks_of(int size) {
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(rank);
  return all;
}

}  // namespace

// The first message between two ranks.
struct mpi_link::hello {
  char release[24];
  char host[128];   // as its processes report it
  char place[128];  // equal to `host`, unless a test sets it
  std::uint64_t buffer, token;
  std::int64_t process;
};

mpi_link::mpi_link(setting set)
    : progress_(std::move(set.progress)),
      members_(set.members.empty() ? ranks_of(progress_->size()) : set.members),
      rank_(static_cast<int>(std::find(members_.begin(), members_.end(), progress_->rank()) -
                             members_.begin())),
      size_(static_cast<int>(members_.size())),
      timeout_ns_(set.timeout_ns),
      spin_ns_(size_ <= core::usable_threads() ? default_spin_ns : 0),
      number_(set.number),
      left_(new std::atomic<bool>[members_.size()]()) {
  map(set.buffer);
  const bool whole = set.members.empty();
  if (whole) {
    number_ = progress_->add(*this);
  } else {
    progress_->add_part(number_, *this);
  }
  try {
    meet(set, whole);
  } catch (...) {
    progress_->remove(number_);
    throw;
  }
}

mpi_link::~mpi_link() {
  if (!failed_) progress_->notify({number_, rank_, notice::what::left, 0, {}}, members_);
  progress_->remove(number_);
}

// The system allocates pages only when they are touched.
void mpi_link::map(std::size_t buffer) {
  const auto peers = static_cast<std::size_t>(std::max(1, size_ - 1));
  slot_ = core::round_up(std::clamp(buffer / peers, least_slot, most_slot), 4096);
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t bytes = 2 * ranks * opening_bytes + 8 * ranks * slot_;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_.reset(static_cast<char*>(memory), [bytes](char* p) { munmap(p, bytes); });
}

void mpi_link::meet(const setting& set, bool whole) {
  hello mine{};
  std::snprintf(mine.release, sizeof mine.release, "%s", VELO_RELEASE);
  name_host(mine.host);
  // A test sets this to treat ranks of one host as if they were on several.
  const char* place = std::getenv("VELO_MPI_HOST");
  if (!whole) place = set.place.c_str();
  std::snprintf(mine.place, sizeof mine.place, "%s", place != nullptr ? place : mine.host);
  while (getrandom(&mine.token, sizeof mine.token, 0) < 0 && errno == EINTR) {
  }
  mine.buffer = set.buffer;
  mine.process = getpid();
  batch all;
  all.opens();
  try {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      std::memcpy(opening_to(peer), &mine, sizeof mine);
      receive(all, flow::opening, peer, opening_of(peer), opening_bytes);
      send(all, flow::opening, peer, opening_to(peer), sizeof mine);
    }
    finish(all, fault());
  } catch (...) {
    abandon(all);
    throw;
  }
  is_connected_ = true;
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
      processes[core::at(peer)] = static_cast<int>(theirs.process);
    theirs.place[sizeof theirs.place - 1] = 0;
    ranks_.push_back({theirs.place, theirs.token});
    if (peer == 0) mine.buffer = theirs.buffer;
  }
  if (whole) progress_->watch(processes);
  if (mine.buffer != set.buffer) map(mine.buffer);
}

// A failed call has sent its number all the same, and the next call reads the number that arrived
// too late. That is harmless unless other subgroups were made in between: ranks may then use
// different numbers and fail to connect before the timeout.
mpi_link::setting mpi_link::part(const subgroup_terms& of) {
  setting made{progress_, of.timeout_ns,          of.slot_bytes * 2,
               {},        progress_->next_part(), ranks_[core::at(rank_)].host};
  const auto count = of.ranks.size();
  const auto own = std::make_shared<std::uint64_t>(made.number);
  const auto theirs = std::make_shared<std::vector<std::uint64_t>>(count);
  std::vector<mpi_request> sent(count), comes(count);
  for (std::size_t i = 0; i < count; ++i) {
    made.members.push_back(members_[core::at(of.ranks[i])]);
    if (of.ranks[i] == rank_) continue;
    begin_receive(comes[i], flow::part, of.ranks[i], reinterpret_cast<char*>(&(*theirs)[i]), 8);
    begin_send(sent[i], flow::part, of.ranks[i], reinterpret_cast<char*>(own.get()), 8);
  }
  const std::int64_t since = now_ns();
  fault::how how = fault::how::none;
  rank_set missing;
  while (true) {
    missing = rank_set();
    progress_->poll();
    rank_set away, left;  // a rank may have sent its number before it left
    for (const int rank : of.ranks)
      if (has_left(rank)) away.add(rank);
    for (std::size_t i = 0; i < count; ++i) {
      if (is_done(comes[i], of.ranks[i], fault())) continue;
      missing.add(of.ranks[i]);
      if (away.has(of.ranks[i])) left.add(of.ranks[i]);
    }
    if (missing.lowest() < 0) break;
    if (left.lowest() >= 0) {
      how = fault::how::left;
      missing = left;
    }
    if (how == fault::how::none && now_ns() - since >= of.timeout_ns) how = fault::how::late;
    if (how != fault::how::none || failed_) break;
    pause(now_ns() - since);
  }
  for (mpi_request& one : comes)
    if (!progress_->mpi().cancel(&one)) progress_->adopt({{one}, theirs});
  progress_->adopt({std::move(sent), own});
  raise_if_failed();
  if (how != fault::how::none) of.raise(how, missing, "");
  for (const std::uint64_t one : *theirs) made.number = std::max(made.number, one);
  return made;
}

void mpi_link::begin_send(mpi_request& one, flow on, int to, const char* from, std::int64_t bytes) {
  char why[128] = "";
  if (!progress_->mpi().send(progress_->duplicate(), from, static_cast<int>(bytes),
                             members_[core::at(to)],
                             mpi_progress::tag(number_, static_cast<int>(on)), &one, why))
    end_as_broken(to, fault(), why);
}

void mpi_link::begin_receive(mpi_request& one, flow on, int from, char* to, std::int64_t bytes) {
  char why[128] = "";
  if (!progress_->mpi().receive(progress_->duplicate(), to, static_cast<int>(bytes),
                                members_[core::at(from)],
                                mpi_progress::tag(number_, static_cast<int>(on)), &one, why))
    end_as_broken(from, fault(), why);
}

bool mpi_link::is_done(mpi_request& one, int peer, const fault& doing) {
  char why[128] = "";
  int done = 0;
  if (!progress_->mpi().test(&one, &done, why)) end_as_broken(peer, doing, why);
  return done != 0;
}

void mpi_link::send(batch& with, flow on, int to, const char* from, std::int64_t bytes) {
  with.all_.push_back({{}, to, false});
  begin_send(with.all_.back().request, on, to, from, bytes);
}

void mpi_link::receive(batch& with, flow on, int from, char* to, std::int64_t bytes) {
  with.all_.push_back({{}, from, true});
  begin_receive(with.all_.back().request, on, from, to, bytes);
}

mpi_link::motion mpi_link::advance(batch& all, const fault& doing) {
  const std::size_t before = all.all_.size();
  for (std::size_t i = 0; i < all.all_.size();) {
    if (!is_done(all.all_[i].request, all.all_[i].peer, doing)) {
      ++i;
    } else {
      all.all_[i] = all.all_.back();
      all.all_.pop_back();
    }
  }
  if (all.all_.empty()) return motion::all;
  return all.all_.size() < before ? motion::some : motion::none;
}

void mpi_link::finish(batch& all, const fault& doing) {
  wait(
      doing, [&] { return advance(all, doing); },
      [&] {
        awaited now;
        now.begins = all.opens_;
        for (const batch::message& one : all.all_)
          (one.comes ? now.comes : now.goes).push_back(one.peer);
        return now;
      });
}

void mpi_link::pause(std::int64_t waited) const noexcept {
  if (waited < spin_ns_) return;
  if (waited < spin_ns_ + yield_ns) {
    sched_yield();
  } else {  // twenty polls in the time waited so far
    sleep_ns(std::clamp(std::min(waited / 20, timeout_ns_ - waited), first_pause, longest_pause));
  }
}

// Checks for ranks that left or are gone, and for the timeout. A rank sends everything it owes
// before it leaves, and its opening arrives before its notice. If another thread has read a notice
// since the requests were tested, they are tested again first.
void mpi_link::raise_if_over(const wait_state& now, bool is_late) {
  const awaited& all = now.all;
  fault why = now.doing;
  why.timeout_ns = timeout_ns_;
  why.kind = fault::how::left;
  for (const int peer : all.comes)
    if (all.begins && has_left(peer)) why.culprits.add(peer);
  if (departures() != now.departures_before) return;
  if (why.culprits.lowest() >= 0) end_and_raise(why);
  rank_set gone;
  why.kind = fault::how::ended;
  if (progress_->find_gone(gone)) {
    progress_->poll();  // reads the notices of ranks that left before their processes ended
    for (const std::vector<int>* some : {&all.comes, &all.goes})
      for (const int peer : *some)
        if (gone.has(members_[core::at(peer)]) && !has_left(peer)) why.culprits.add(peer);
  }
  if (why.culprits.lowest() >= 0) {
    std::snprintf(why.cause, sizeof why.cause, "the process of rank %d ended in the group",
                  why.culprits.lowest());
    end_and_raise(why);
  }
  if (!is_late) return;
  why.kind = fault::how::late;
  why.culprits = all.ranks();
  waits_.follow_waits(why);
  end_and_raise(why);
}

// When a whole timeout has passed, the rank first waits until all ranks know for whom the others
// wait.
void mpi_link::check_faults(const wait_state& now, sent_wait& note) {
  if (is_connected_) note_wait(now, note);
  raise_if_over(
      now, now.waited >= timeout_ns_ && (!is_connected_ || now_ns() - note.first_ns_ >= notice_ns));
}

// Notes a short wait, too, while another rank is late: its deadline may be before the half of this
// one's.
void mpi_link::note_wait(const wait_state& now, sent_wait& note) noexcept {
  const bool is_long = now.waited >= timeout_ns_ / 2;
  if (!is_long && (now.waited < notice_ns || !waits_.others_are_late())) return;
  const std::int64_t time = now_ns();
  if (note.last_ns_ != 0 && time - note.last_ns_ < sent_notes::renewal_ns(timeout_ns_)) return;
  if (note.first_ns_ == 0) note.first_ns_ = time;
  note.last_ns_ = time;
  fault wait = now.doing;
  wait.timeout_ns = timeout_ns_;
  wait.culprits = now.all.ranks();
  note.note_.renew(wait);
}

void mpi_link::sent_wait::end() noexcept {
  if (last_ns_ != 0) note_.clear();
  first_ns_ = last_ns_ = 0;
}

wait_board mpi_link::make_wait_board() const {
  return wait_board(std::make_shared<sent_notes>(progress_, number_));
}

void mpi_link::check_faults(const fault& doing, const rank_set& waits_for, std::int64_t waited,
                            sent_wait& note) {
  progress_->poll();
  raise_if_failed();
  awaited all;
  for (int peer = 0; peer < size_; ++peer)
    if (waits_for.has(peer)) all.comes.push_back(peer);
  check_faults({all, doing, waited, departures()}, note);
}

rank_set mpi_link::awaited::ranks() const {
  rank_set some;
  for (const int peer : comes.empty() ? goes : comes) some.add(peer);
  return some;
}

void mpi_link::end_as_broken(int peer, const fault& doing, const char* why) {
  fault broken = doing;
  broken.kind = fault::how::ended;
  broken.culprits.add(peer);
  core::copy_text(broken.cause, sizeof broken.cause, why);
  end_and_raise(broken);
}

void mpi_link::abandon(batch& all) noexcept {
  for (batch::message& one : all.all_) abandon(one.request);
  all.all_.clear();
}

void mpi_link::abandon(mpi_request& one) noexcept {
  if (progress_->mpi().cancel(&one)) return;
  try {
    progress_->adopt({{one}, memory_});
  } catch (const std::bad_alloc&) {  // MPI may use the memory for ever
    static_cast<void>(new (std::nothrow) std::shared_ptr<char>(memory_));
  }
  one = mpi_request();
}

void mpi_link::note(const fault& why) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  if (fault_.kind != fault::how::none) return;
  fault_ = why;
  failed_.store(true, std::memory_order_release);
  progress_->mpi().bound_finalize();
}

void mpi_link::end(const fault& why) noexcept {
  if (failed_) return;
  note(why);
  progress_->notify({number_, rank_, notice::what::ended, 0, why}, members_);
}

void mpi_link::end_and_raise(const fault& why) {
  end(why);
  raise_if_failed();  // raises another fault, if that came first
  why.raise();
}

void mpi_link::read(const notice& one) noexcept {
  if (one.kind == notice::what::ended) return note(one.why);
  if (one.kind != notice::what::left || one.from < 0 || one.from >= size_) return;
  departures_.fetch_add(1, std::memory_order_release);
  left_[core::at(one.from)].store(true, std::memory_order_release);
}

bool mpi_link::failed(fault& why) const noexcept {
  progress_->poll();
  if (!failed_.load(std::memory_order_acquire)) return false;
  const std::lock_guard<std::mutex> lock(lock_);
  why = fault_;
  return true;
}

// While ranks connect, a fault of a rank that has already connected to all is left to the first
// call, since that rank has sent everything that the others need to connect.
void mpi_link::raise_if_unconnected() const {
  fault known;
  if (!failed(known)) return;
  if (known.kind == fault::how::late || known.kind == fault::how::ended) known.raise();
}

void mpi_link::raise_if_failed() const {
  fault known;
  if (!failed_.load(std::memory_order_acquire)) return;
  failed(known);
  known.raise();
}

}  // namespace velo::comm
