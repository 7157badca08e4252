// SPDX-License-Identifier: Apache-2.0
#include "storage/slow_storage.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

namespace feedline::storage {

class SlowStorage::Turns {
 public:
  explicit Turns(SlowReads slow) : slow_(slow) {}

  bool try_begin() {
    const std::lock_guard lock(mutex_);
    return begin();
  }
  void wait_to_begin() {
    std::unique_lock lock(mutex_);
    free_cv_.wait(lock, [this] { return under_way_ < slow_.at_once; });
    begin();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    --under_way_;
    free_cv_.notify_one();
  }
  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  std::chrono::microseconds latency() const { return slow_.latency; }

  // A blocking read.
  template <typename Read>
  auto slowly(Read read) {
    wait_to_begin();
    std::this_thread::sleep_for(slow_.latency);
    auto got = read();
    end();
    return got;
  }

 private:
  bool begin() {
    if (under_way_ >= slow_.at_once) return false;
    ++counts_.reads;
    counts_.most_at_once = std::max(counts_.most_at_once, ++under_way_);
    return true;
  }

  const SlowReads slow_;
  mutable std::mutex mutex_;
  std::condition_variable free_cv_;
  std::uint64_t under_way_ = 0;
  Counts counts_;
};

namespace {

using Turns = SlowStorage::Turns;

class SlowReader final : public Reader {
 public:
  SlowReader(std::unique_ptr<Reader> reader, std::shared_ptr<Turns> turns)
      : reader_(std::move(reader)), turns_(std::move(turns)) {}

  Result<ObjectStat> stat() const override { return reader_->stat(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    return turns_->slowly([&] { return reader_->read_at(offset, out); });
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const override {
    return reader_->view(offset, bytes);  // mapped data is local and is not delayed
  }
  int descriptor() const override { return reader_->descriptor(); }
  const std::string& name() const override { return reader_->name(); }

 private:
  const std::unique_ptr<Reader> reader_;
  const std::shared_ptr<Turns> turns_;
};

// Delays the results of another transport by the latency.
class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> transport, std::shared_ptr<Turns> turns)
      : transport_(std::move(transport)), turns_(std::move(turns)) {}

  std::string_view name() const override { return transport_->name(); }
  void wake() override { transport_->wake(); }
  void start(Read& read) override {
    const Reader* reader = read.piece.reader.get();
    if (reader == nullptr || reader->descriptor() >= 0) {
      waiting_.push_back(&read);
      return;
    }
    read_piece(read);  // the wrapped storage has no asynchronous reads
    held_.push_back({&read, Clock::now(), false});
  }

  Read* finished(Clock::time_point until) override {
    while (true) {
      begin_waiting();
      const auto first = std::ranges::min_element(held_, {}, &Held::due);
      const bool any = first != held_.end();
      if (any && first->due <= Clock::now()) {
        const Held held = *first;
        held_.erase(first);
        if (held.has_turn) turns_->end();
        held.read->was_near = false;
        return held.read;
      }
      // if all slots are in use, retry within a latency
      auto next = waiting_.empty() ? until : std::min(until, Clock::now() + turns_->latency());
      if (any) next = std::min(next, first->due);
      if (Read* read = transport_->finished(next))
        std::ranges::find(under_way_, read, &Held::read)->is_read = true;
      else if (Clock::now() < next || next == until)
        return nullptr;
      std::erase_if(under_way_, [this](const Held& held) {
        if (held.is_read) held_.push_back(held);
        return held.is_read;
      });
    }
  }

 private:
  struct Held {
    Read* read;
    Clock::time_point due;
    bool has_turn = true;
    bool is_read = false;
  };

  void begin_waiting() {
    while (!waiting_.empty() && turns_->try_begin()) {
      under_way_.push_back({waiting_.front(), Clock::now() + turns_->latency()});
      transport_->start(*waiting_.front());
      waiting_.pop_front();
    }
  }

  const std::unique_ptr<Transport> transport_;
  const std::shared_ptr<Turns> turns_;
  std::deque<Read*> waiting_;    // waiting for a slot
  std::vector<Held> under_way_;  // in transport_
  std::vector<Held> held_;       // complete, but not due yet
};

}  // namespace

SlowStorage::SlowStorage(std::shared_ptr<const Storage> storage, SlowReads slow)
    : storage_(std::move(storage)), slow_(slow), turns_(std::make_shared<Turns>(slow)) {}

Result<std::unique_ptr<Reader>> SlowStorage::open(const std::string& path, Access access) const {
  FEEDLINE_TRY(auto reader, storage_->open(path, access));
  return std::make_unique<SlowReader>(std::move(reader), turns_);
}

Result<std::span<const std::byte>> SlowStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                         std::uint64_t most) const {
  return turns_->slowly([&] { return storage_->read_all(path, buffer, most); });
}

Result<std::span<const std::byte>> SlowStorage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                             std::uint64_t most, const Version& version) const {
  return turns_->slowly([&] { return storage_->read_version(path, buffer, most, version); });
}

std::string SlowStorage::summary() const {
  return "artificially slow: " + std::to_string(slow_.latency.count()) + " us per read, for a test";
}

std::unique_ptr<Transport> SlowStorage::own_transport() const {
  auto transport = slow_.own_transport ? storage_->own_transport() : nullptr;
  return transport ? std::make_unique<SlowTransport>(std::move(transport), turns_) : nullptr;
}

SlowStorage::Counts SlowStorage::counts() const { return turns_->counts(); }

}  // namespace feedline::storage
