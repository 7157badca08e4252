// SPDX-License-Identifier: Apache-2.0
#pragma once

// Remote objects that are read with requests built by a Site: the code that HTTP and S3 share.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/http/client.h"
#include "storage/http/http_limits.h"
#include "storage/http/site.h"
#include "storage/http/transfer.h"
#include "storage/storage.h"

namespace feedline::storage {

// The number of prefetched bytes and requests. Thread-safe.
struct Traffic {
  std::atomic<std::uint64_t> reads{0}, requests{0};
  std::atomic<std::uint64_t> wanted_bytes{0}, asked_bytes{0};
  std::atomic<std::uint64_t> compared{0}, without_sum{0};  // whole objects, if checksums are verified

  HedgeCounts hedges;

  // Counts a completed transfer of a whole object.
  void count(const Transfer& whole);
};

// The settings of requests, and the client that sends them.
struct Remote {
  std::shared_ptr<const Site> site;
  HttpLimits limits = http_limits();
  Client* client = nullptr;  // nullptr: the process's client
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
  Reading reading = {};
  // Reads a whole object that is on this machine, and returns whether it is.
  std::function<bool(Read&)> reads_here = {};

  // Sets the user's options for reading. Call before starting.
  void prepare(Transfer& transfer) const;

  Result<std::span<const std::byte>> carry_out(Transfer& transfer) const;
};

// All reads return data from the version that was opened.
class RemoteReader final : public Reader {
 public:
  // start: the first bytes of the object, if opening has read them.
  RemoteReader(Remote remote, std::string name, HeldTo held_to, std::vector<std::byte> start);

  Result<ObjectStat> stat() const override;
  Result<ObjectStat> version() const override { return *held_to_.version; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  std::size_t worthwhile_bytes() const override;
  const std::string& name() const override { return name_; }
  // Returns how many bytes in [offset, offset + bytes) are inside the object.
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

  // Opens the object with one request, which also reads its first bytes.
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  // Sends no request.
  Result<std::unique_ptr<Reader>> open_version(const std::string& path, Access access,
                                               const Version& version) const override;
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override;
  Result<ObjectStat> stat(const std::string& path) const override;
  // Sends a request if checksums are verified.
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

// http:// and https://. A URL that ends with a slash is a folder, and any other URL is an object; no request is needed
// to distinguish them. HTTP cannot list folders: a folder's contents are read from a file in the folder
// (listing_file.h), if it exists.
class HttpStorage final : public RemoteStorage {
 public:
  explicit HttpStorage(HttpLimits limits = http_limits(), Client* client = nullptr);
  explicit HttpStorage(Remote remote) : RemoteStorage(std::move(remote)) {}
  std::shared_ptr<const Storage> reading(const Reading& how) const override;
  bool has_flat_names() const override { return true; }
  // Lists all objects below a folder, at any depth.
  Result<Tree> list_below(const std::string& directory, Depth depth) const override;
  // Paths are file names, which are percent-encoded here.
  void name_below(const std::string& directory, std::string_view path, std::string& name) const override;
  Result<std::vector<Entry>> list(const std::string& directory) const override;
  Result<bool> is_directory(const std::string& path) const override;
  std::string identity(const std::string& path) const override;
};

// The process's storage.
std::shared_ptr<const Storage> http_storage();

}  // namespace feedline::storage
