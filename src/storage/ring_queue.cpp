// SPDX-License-Identifier: Apache-2.0
#include "storage/ring_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "storage/local_file.h"

namespace feedline::storage {
namespace {

constexpr unsigned kRequests = 256;  // submitted at once; more go in several calls

__kernel_timespec left_until(FetchQueue::Clock::time_point until) {
  using std::chrono::nanoseconds;
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr nanoseconds kLongest = std::chrono::hours(1);
  const auto now = FetchQueue::Clock::now();
  const auto left = until <= now ? nanoseconds(0) : std::min<nanoseconds>(until - now, kLongest);
  return {.tv_sec = left.count() / kSecond, .tv_nsec = left.count() % kSecond};
}

}  // namespace

std::unique_ptr<RingQueue> RingQueue::make(Submit submit) {
  std::unique_ptr<RingQueue> queue(new RingQueue(submit));
  queue->wake_up_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!queue->wake_up_.valid() || ::io_uring_queue_init(kRequests, &queue->ring_, 0) != 0) return nullptr;
  queue->is_ready_ = true;
  ::io_uring_ring_dontfork(&queue->ring_);
  // 5.11: waiting with a time limit without a request for it. 5.5: nothing completed is ever dropped.
  if ((queue->ring_.features & IORING_FEAT_EXT_ARG) == 0 || (queue->ring_.features & IORING_FEAT_NODROP) == 0)
    return nullptr;
  queue->submit_wake_up();
  return submit(&queue->ring_) == 1 ? std::move(queue) : nullptr;
}

RingQueue::~RingQueue() {
  if (is_ready_) ::io_uring_queue_exit(&ring_);
}

io_uring_sqe* RingQueue::request() {
  io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring_);
  if (sqe != nullptr || submit_(&ring_) <= 0) return sqe;
  return ::io_uring_get_sqe(&ring_);
}

// What found no room before, as far as there is some now.
void RingQueue::submit_deferred() {
  if (std::exchange(wake_up_is_deferred_, false)) submit_wake_up();
  for (std::size_t left = deferred_.size(); left > 0 && ::io_uring_sq_space_left(&ring_) > 0; --left) {
    Running& running = *deferred_.front();
    deferred_.pop_front();
    running.room == 0 ? submit_open(running) : submit_read(running);
  }
}

void RingQueue::submit_wake_up() {
  io_uring_sqe* sqe = request();
  if (sqe == nullptr) {
    wake_up_is_deferred_ = true;
    return;
  }
  ::io_uring_prep_read(sqe, wake_up_.get(), &wake_ups_, sizeof wake_ups_, 0);
  ::io_uring_sqe_set_data(sqe, nullptr);
}

void RingQueue::wake() {
  const std::uint64_t one = 1;
  // fails only where 2^64 - 1 of them were not read yet, or in a child after fork() that has no use for it
  static_cast<void>(!::write(wake_up_.get(), &one, sizeof one));
}

void RingQueue::start(Fetch& fetch) {
  if (free_.empty()) free_.push_back(all_.emplace_back(std::make_unique<Running>()).get());
  Running& running = *free_.back();
  free_.pop_back();
  running = Running{.fetch = &fetch};
  const Piece& piece = fetch.piece;
  if (!piece.reader) return submit_open(running);
  running.descriptor = piece.reader->descriptor();
  running.room = piece.bytes;
  const auto room = fetch.buffer.make_room(piece.bytes, fetch.most_bytes);
  if (!room) return finish(running, std::unexpected(room.error()));
  if (running.descriptor < 0) {
    read_piece(fetch);
    return finish(running, std::move(fetch.bytes));
  }
  // a range that off_t cannot say lies behind every file's end; the kernel would call it invalid
  std::uint64_t end = 0;
  if (room->empty() || __builtin_add_overflow(piece.offset, piece.bytes, &end) ||
      end > std::uint64_t{std::numeric_limits<off_t>::max()})
    return finish(running, room->first(0));
  submit_read(running);
}

void RingQueue::submit_open(Running& running) {
  io_uring_sqe* sqe = request();
  if (sqe == nullptr) return deferred_.push_back(&running);
  // as open_regular_file() does
  ::io_uring_prep_openat(sqe, AT_FDCWD, running.fetch->piece.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                         0);
  ::io_uring_sqe_set_data(sqe, &running);
  running.submission = submission_;
}

void RingQueue::submit_read(Running& running) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // a request says its size in 32 bits
  std::byte* buffer = running.fetch->buffer.resize(running.room).data();
  io_uring_sqe* sqe = request();
  if (sqe == nullptr) return deferred_.push_back(&running);
  ::io_uring_prep_read(sqe, running.descriptor, buffer + running.done,
                       static_cast<unsigned>(std::min(running.room - running.done, kMost)),
                       running.fetch->piece.offset + running.done);
  ::io_uring_sqe_set_data(sqe, &running);
  running.submission = submission_;
}

void RingQueue::opened(Running& running, int result) {
  const std::string& path = running.fetch->piece.path;
  if (result < 0) return finish(running, file_error("cannot open", path, -result));
  running.own = FileDescriptor(result);
  auto status = stat_regular_file(result, path);
  if (!status) return finish(running, std::unexpected(std::move(status).error()));
  // with the flag, a read that has to wait would fail instead on file systems that cannot tell beforehand
  ::fcntl(result, F_SETFL, 0);
  running.descriptor = result;
  running.whole.emplace(static_cast<std::uint64_t>(status->st_size), running.fetch->most_bytes);
  read_whole(running);
}

// From its beginning: into the first room, or one that is larger.
void RingQueue::read_whole(Running& running) {
  auto room = running.whole->take(running.fetch->buffer);
  if (!room) {
    room.error().where.shard = running.fetch->piece.path;
    return finish(running, std::unexpected(std::move(room).error()));
  }
  running.room = room->size();
  running.done = 0;
  submit_read(running);
}

void RingQueue::advance(Running& running, int result) {
  running.has_waited |= !in_submission_ || running.submission + 1 != submission_;
  const bool again = result == -EINTR;
  if (running.room == 0) {
    if (again) return submit_open(running);
    return opened(running, result);
  }
  if (again) return submit_read(running);
  const Piece& piece = running.fetch->piece;
  if (result < 0)
    return finish(running, file_error("cannot read", piece.reader ? piece.reader->name() : piece.path, -result));
  running.done += static_cast<std::size_t>(result);
  const bool is_full = running.done == running.room;
  if (result > 0 && !is_full) return submit_read(running);
  if (is_full && !piece.reader) {  // it grew since it was opened
    running.whole->grow();
    return read_whole(running);
  }
  finish(running, running.fetch->buffer.resize(running.room).first(running.done));
}

void RingQueue::finish(Running& running, Result<std::span<const std::byte>> bytes) {
  Fetch& fetch = *running.fetch;
  fetch.bytes = std::move(bytes);
  fetch.was_near = !running.has_waited;
  finished_.push_back(&fetch);
  running = Running{};  // closes the file
  free_.push_back(&running);
}

// Takes what has completed. false: nothing had.
bool RingQueue::reap() {
  bool any = false;
  io_uring_cqe* cqe = nullptr;
  while (::io_uring_peek_cqe(&ring_, &cqe) == 0 && cqe != nullptr) {
    any = true;
    auto* running = static_cast<Running*>(::io_uring_cqe_get_data(cqe));
    const int result = cqe->res;
    ::io_uring_cqe_seen(&ring_, cqe);
    if (running != nullptr) {
      advance(*running, result);
    } else {
      woken_ = true;
      submit_wake_up();
    }
  }
  return any;
}

void RingQueue::wait(__kernel_timespec longest) {
  io_uring_cqe* cqe = nullptr;
  ::io_uring_wait_cqe_timeout(&ring_, &cqe, &longest);
}

// The call that submits reads what is in the page cache at once: what has completed by its end was near. false: the
// kernel has taken nothing and given nothing.
bool RingQueue::submit_and_reap() {
  const int submitted = submit_(&ring_);
  ++submission_;
  in_submission_ = true;
  const bool any = reap();
  in_submission_ = false;
  return submitted > 0 || any;
}

// The kernel is short of memory (EAGAIN), or has more completions than their ring holds (EBUSY): it is asked again in a
// millisecond. The request that waits for wake() may be among those that it has not taken, so wake() is looked for
// here.
void RingQueue::rest() {
  wait({.tv_sec = 0, .tv_nsec = 1'000'000});
  ::pollfd wake_up{.fd = wake_up_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wake_up, 1, 0) == 1) woken_ = true;
}

Fetch* RingQueue::finished(Clock::time_point until) {
  while (finished_.empty() && !woken_) {
    submit_deferred();
    if (::io_uring_sq_ready(&ring_) > 0) {
      if (submit_and_reap()) continue;
      if (Clock::now() >= until) return nullptr;
      rest();
      continue;
    }
    if (reap()) continue;
    if (Clock::now() >= until) return nullptr;
    wait(left_until(until));
  }
  if (finished_.empty()) {
    woken_ = false;
    return nullptr;
  }
  Fetch* fetch = finished_.front();
  finished_.pop_front();
  return fetch;
}

}  // namespace feedline::storage
