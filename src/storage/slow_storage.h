// SPDX-License-Identifier: Apache-2.0
#pragma once

// The wrapper for the fault "slow_storage": makes another storage as slow as a network or a seeking disk, for tests and
// benchmarks of latency.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "storage/storage.h"

namespace feedline::storage {

struct SlowReads {
  std::chrono::microseconds latency{5000};  // of every read, including its open, but not of opening a reader or listing
  std::uint64_t at_once = 64;               // concurrent reads; further reads wait for a slot
  bool own_transport = true;                // false: no asynchronous reads, as if io_uring were unavailable
};

// Thread-safe. Reads are not interrupted: a cancelled read occupies its slot until it completes.
class SlowStorage final : public Storage {
 public:
  SlowStorage(std::shared_ptr<const Storage> storage, SlowReads slow);

  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override;
  Result<std::vector<Entry>> list(const std::string& directory) const override { return storage_->list(directory); }
  bool has_flat_names() const override { return storage_->has_flat_names(); }
  Result<Tree> list_below(const std::string& directory, Depth depth) const override {
    return storage_->list_below(directory, depth);
  }
  void name_below(const std::string& directory, std::string_view path, std::string& name) const override {
    storage_->name_below(directory, path, name);
  }
  Result<ObjectStat> stat(const std::string& path) const override { return storage_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return storage_->is_directory(path); }
  std::string identity(const std::string& path) const override { return storage_->identity(path); }
  bool is_remote() const override { return storage_->is_remote(); }
  std::optional<std::string> local_path(const std::string& path) const override { return storage_->local_path(path); }
  Result<std::optional<ObjectSum>> known_sum(const std::string& path, const Version& version) const override {
    return storage_->known_sum(path, version);
  }
  std::string_view who_knows_sums() const override { return storage_->who_knows_sums(); }
  std::string summary() const override;
  std::unique_ptr<Transport> own_transport() const override;

  // Statistics of reads, for tests: the total number of reads, and the maximum number of concurrent reads.
  struct Counts {
    std::uint64_t reads = 0;
    std::uint64_t most_at_once = 0;
  };
  Counts counts() const;

  class Turns;  // read slots, shared with readers and transports

 private:
  const std::shared_ptr<const Storage> storage_;
  const SlowReads slow_;
  const std::shared_ptr<Turns> turns_;
};

}  // namespace feedline::storage
