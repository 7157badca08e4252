// SPDX-License-Identifier: Apache-2.0
#include "storage/http/remote_storage.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "storage/http/http_transport.h"
#include "storage/http/listing_file.h"
#include "storage/http/url.h"

namespace feedline::storage {
namespace {

// The number of bytes to read when opening: enough to recognize gzip, tar and the first member of a tar file.
constexpr std::size_t kStartBytes = 4096;
// At 1 GB/s and a latency of 10 ms, reading this many bytes takes twice as long as reading one byte.
constexpr std::size_t kWorthwhileBytes = 8 << 20;

constexpr std::uint64_t kMostListing = std::uint64_t{1} << 30;  // ten million names of 100 bytes

std::string without_end_slash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

struct Start {
  HeldTo held_to;
  std::vector<std::byte> bytes;
};

// A server may reject a range of an empty object without reporting the object's size.
Result<Start> start_of_empty(const Remote& remote, const std::string& path, Error refused) {
  memory::ByteBuffer buffer;
  Transfer whole(*remote.site, remote.limits, path, buffer, 0, {});
  if (!remote.carry_out(whole) || !whole.version()) return std::unexpected(std::move(refused));
  return Start{{whole.version(), whole.etag()}, {}};
}

Result<Start> start_of(const Remote& remote, const std::string& path, std::size_t bytes) {
  Start start;
  start.bytes.resize(bytes);
  Transfer transfer(*remote.site, remote.limits, path, 0, start.bytes, {});
  const auto got = remote.carry_out(transfer);
  if (!got && got.error().system_errno == ERANGE) return start_of_empty(remote, path, got.error());
  if (!got) return std::unexpected(got.error());
  start.held_to = {transfer.version(), transfer.etag()};
  start.bytes.resize(got->size());
  return start;
}

Result<std::span<const std::byte>> read_whole(const Remote& remote, const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most, HeldTo held_to) {
  Transfer transfer(*remote.site, remote.limits, path, buffer, most, std::move(held_to));
  FEEDLINE_TRY(const auto bytes, remote.carry_out(transfer));
  if (remote.reading.compares_sums) remote.traffic->count(transfer);
  return bytes;
}

std::string joined_reads(const Traffic& traffic) {
  const std::uint64_t reads = traffic.reads, requests = traffic.requests;
  const std::uint64_t wanted = traffic.wanted_bytes, asked = traffic.asked_bytes;
  if (requests == 0 || wanted == 0) return {};
  const std::uint64_t hundredths = (asked * 100 + wanted / 2) / wanted;
  return std::to_string(reads) + " ranges prefetched with " + std::to_string(requests) + " requests, which read " +
         std::to_string(hundredths / 100) + "." + std::to_string(hundredths / 10 % 10) +
         std::to_string(hundredths % 10) + " bytes per byte used";
}

}  // namespace

void Traffic::count(const Transfer& whole) { ++(whole.sum() ? compared : without_sum); }

void Remote::prepare(Transfer& transfer) const {
  if (reading.compares_sums) transfer.compare_sums();
  if (reading.hedges) transfer.hedge(traffic->hedges);
}

Result<std::span<const std::byte>> Remote::carry_out(Transfer& transfer) const {
  prepare(transfer);
  return client ? storage::carry_out(*client, transfer) : storage::carry_out(transfer);
}

RemoteReader::RemoteReader(Remote remote, std::string name, HeldTo held_to, std::vector<std::byte> start)
    : remote_(std::move(remote)), name_(std::move(name)), held_to_(std::move(held_to)), start_(std::move(start)) {}

Result<ObjectStat> RemoteReader::stat() const {
  if (remote_.site->names_versions()) return *held_to_.version;
  FEEDLINE_TRY(const Start now, start_of(remote_, name_, 1));
  return *now.held_to.version;
}

std::size_t RemoteReader::worthwhile_bytes() const { return kWorthwhileBytes; }

std::uint64_t RemoteReader::bytes_there(std::uint64_t offset, std::uint64_t bytes) const {
  return std::min(bytes, held_to_.version->bytes - std::min(offset, held_to_.version->bytes));
}

Result<std::size_t> RemoteReader::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  out = out.first(static_cast<std::size_t>(bytes_there(offset, out.size())));
  if (out.empty()) return 0;
  if (offset + out.size() <= start_.size()) {
    std::memcpy(out.data(), start_.data() + offset, out.size());
    return out.size();
  }
  Transfer transfer(*remote_.site, remote_.limits, name_, offset, out, held_to_);
  FEEDLINE_TRY(const auto got, remote_.carry_out(transfer));
  return got.size();
}

Result<std::unique_ptr<Reader>> RemoteStorage::open(const std::string& path, Access /*access*/) const {
  FEEDLINE_TRY(Start start, start_of(remote_, path, kStartBytes));
  return std::make_unique<RemoteReader>(remote_, path, std::move(start.held_to), std::move(start.bytes));
}

Result<std::unique_ptr<Reader>> RemoteStorage::open_version(const std::string& path, Access /*access*/,
                                                            const Version& version) const {
  return std::make_unique<RemoteReader>(remote_, path, HeldTo{version, {}}, std::vector<std::byte>{});
}

Result<std::span<const std::byte>> RemoteStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                           std::uint64_t most) const {
  return read_whole(remote_, path, buffer, most, {});
}

Result<std::span<const std::byte>> RemoteStorage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                               std::uint64_t most, const Version& version) const {
  return read_whole(remote_, path, buffer, most, {version, {}});
}

Result<std::optional<ObjectSum>> RemoteStorage::known_sum(const std::string& path, const Version& version) const {
  if (!remote_.reading.compares_sums) return std::nullopt;
  Transfer transfer(*remote_.site, remote_.limits, path, Transfer::HeadAlone{}, {version, {}});
  const auto done = remote_.carry_out(transfer);
  const bool is_none = remote_.site->may_refuse_heads() && transfer.status() >= 400;
  if (!done && !is_none) return std::unexpected(done.error());
  if (!transfer.sum()) ++remote_.traffic->without_sum;
  return transfer.sum();
}

Remote RemoteStorage::remote_so(const Reading& how) const {
  Remote remote = remote_;
  remote.reading = how;
  remote.traffic = std::make_shared<Traffic>();  // only for the dataset that is read with these options
  return remote;
}

Result<ObjectStat> RemoteStorage::stat(const std::string& path) const {
  FEEDLINE_TRY(const Start start, start_of(remote_, path, 1));
  return *start.held_to.version;
}

std::string RemoteStorage::summary() const {
  std::string text = joined_reads(*remote_.traffic);
  if (remote_.reading.compares_sums)
    text += (text.empty() ? "" : "; ") + std::to_string(remote_.traffic->compared) +
            " whole objects compared with the server's checksums, " + std::to_string(remote_.traffic->without_sum) +
            " had none";
  if (remote_.reading.hedges)
    text += (text.empty() ? "" : "; ") + std::to_string(remote_.traffic->hedges.made) +
            " second requests for late ones, of which " + std::to_string(remote_.traffic->hedges.won) + " were quicker";
  return text;
}

std::optional<SecondRequests> RemoteStorage::second_requests() const {
  if (!remote_.reading.hedges) return std::nullopt;
  const HedgeCounts& hedges = remote_.traffic->hedges;
  return SecondRequests{hedges.made, hedges.won, hedges.dropped_bytes};
}

std::unique_ptr<Transport> RemoteStorage::own_transport() const { return std::make_unique<HttpTransport>(remote_); }

HttpStorage::HttpStorage(HttpLimits limits, Client* client)
    : RemoteStorage({.site = std::make_shared<HttpSite>(), .limits = limits, .client = client}) {}

Result<std::vector<Entry>> HttpStorage::list(const std::string& directory) const {
  FEEDLINE_TRY(const Tree tree, list_below(directory, Depth::kFolder));
  std::map<std::string, bool> entries;  // sorted, without duplicates
  for (const StoredBelow& object : tree.objects) {
    const std::size_t slash = object.path.find('/');
    entries.emplace(object.path.substr(0, slash), slash != object.path.npos);
  }
  for (const std::string& folder : tree.marks) entries.insert_or_assign(folder.substr(0, folder.find('/')), true);
  std::vector<Entry> list;
  for (const auto& [name, is_directory] : entries) list.push_back({name, is_directory});
  return list;
}

Result<Tree> HttpStorage::list_below(const std::string& directory, Depth /*depth*/) const {
  const std::string file = below(without_end_slash(directory), kListingFile);
  memory::ByteBuffer buffer;
  const auto bytes = read_all(file, buffer, kMostListing);
  if (bytes) {
    auto tree = parse_listing_file({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    if (!tree) tree.error().where.shard = file;
    return tree;
  }
  if (bytes.error().system_errno != ENOENT) return std::unexpected(bytes.error());
  auto error = storage_error("HTTP cannot list folders, and this folder has no " + std::string(kListingFile) +
                                 ": create one with `feedline index FOLDER` on the server, or name the shards, as in "
                                 "https://host/{000..146}.tar",
                             ENOTSUP);
  error.error().where.shard = directory;
  return error;
}

std::shared_ptr<const Storage> HttpStorage::reading(const Reading& how) const {
  return std::make_shared<HttpStorage>(remote_so(how));
}

void HttpStorage::name_below(const std::string& directory, std::string_view path, std::string& name) const {
  name = directory + "/" + percent_encoded(path, true);
}

Result<bool> HttpStorage::is_directory(const std::string& path) const {
  const auto parts = parts_of_url(path);
  return parts && parts->path.ends_with('/') && parts->query.empty();
}

std::string HttpStorage::identity(const std::string& path) const { return normal_url(path); }

std::shared_ptr<const Storage> http_storage() {
  static const std::shared_ptr<const Storage> storage = std::make_shared<HttpStorage>();
  return storage;
}

}  // namespace feedline::storage
