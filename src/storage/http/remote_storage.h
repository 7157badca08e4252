// SPDX-License-Identifier: Apache-2.0
#pragma once

// Remote objects, read by requests of a Site: the code common to HTTP and S3.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/http/client.h"
#include "storage/http/http_limits.h"
#include "storage/http/site.h"
#include "storage/http/transfer.h"
#include "storage/storage.h"

namespace feedline::storage {

// Prefetched data, and its cost. Thread-safe.
struct Traffic {
  std::atomic<std::uint64_t> reads{0}, requests{0};
  std::atomic<std::uint64_t> wanted_bytes{0}, asked_bytes{0};
  std::atomic<std::uint64_t> compared{0}, without_sum{0};  // whole objects, if checksums are verified

  HedgeCounts hedges;

  // A completed transfer of a whole object.
  void count(const Transfer& whole);
};

// The settings of requests, and the client that sends them.
struct Remote {
  std::shared_ptr<const Site> site;
  HttpLimits limits = http_limits();
  Client* client = nullptr;  // nullptr: the process's client
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
  Reading reading = {};

  // Sets the user's read options. Call before starting.
  void prepare(Transfer& transfer) const;

  Result<std::span<const std::byte>> carry_out(Transfer& transfer) const;
};

// All reads are of the version opened.
class RemoteReader final : public Reader {
 public:
  // start: the object's first bytes, if opening has read them.
  RemoteReader(Remote remote, std::string name, HeldTo held_to, std::vector<std::byte> start);

  Result<ObjectStat> stat() const override;
  Result<ObjectStat> version() const override { return *held_to_.version; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  std::size_t worthwhile_bytes() const override;
  const std::string& name() const override { return name_; }
  // The part of [offset, offset + bytes) inside the object.
  std::uint64_t bytes_there(std::uint64_t offset, std::uint64_t bytes) const;
  const HeldTo& held_to() const { return held_to_; }

 private:
  const Remote remote_;
  const std::string name_;
  const HeldTo held_to_;  // with a version
  const std::vector<std::byte> start_;
};

// Thread-safe.
class RemoteStorage : public Storage {
 public:
  explicit RemoteStorage(Remote remote) : remote_(std::move(remote)) {}

  // Opens with one request, which also reads the object's first bytes.
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  // Sends no request.
  Result<std::unique_ptr<Reader>> open_version(const std::string& path, Access access,
                                               const Version& version) const override;
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override;
  Result<ObjectStat> stat(const std::string& path) const override;
  // Sends one request if checksums are verified.
  Result<std::optional<ObjectSum>> known_sum(const std::string& path, const Version& version) const override;
  bool holds_versions() const override { return true; }
  bool is_remote() const override { return true; }
  bool joins_reads() const override { return true; }
  std::string summary() const override;
  std::optional<SecondRequests> second_requests() const override;
  std::unique_ptr<Transport> own_transport() const override;

 protected:
  Remote remote_so(const Reading& how) const;
  const Remote remote_;
};

// http:// and https://. A URL that ends in a slash is a folder, any other URL is an object; no request is needed to
// distinguish them. HTTP has no listings: a folder's contents are read from a file in it (listing_file.h), if there is
// one.
class HttpStorage final : public RemoteStorage {
 public:
  explicit HttpStorage(HttpLimits limits = http_limits(), Client* client = nullptr);
  explicit HttpStorage(Remote remote) : RemoteStorage(std::move(remote)) {}
  std::shared_ptr<const Storage> reading(const Reading& how) const override;
  bool has_flat_names() const override { return true; }
  // All objects below, at any depth.
  Result<Tree> list_below(const std::string& directory, Depth depth) const override;
  // Paths are file names, percent-encoded here.
  void name_below(const std::string& directory, std::string_view path, std::string& name) const override;
  Result<std::vector<Entry>> list(const std::string& directory) const override;
  Result<bool> is_directory(const std::string& path) const override;
  std::string identity(const std::string& path) const override;
};

// The process's storage.
std::shared_ptr<const Storage> http_storage();

}  // namespace feedline::storage
