// SPDX-License-Identifier: Apache-2.0
// Measures the same reads as curl_reads with the engine's prefetch queue (storage/fetch.h), to compare the client with
// libcurl. Before the timed part, libcurl is loaded, as in curl_reads, and objects are looked up by URL, as when a
// dataset is opened; objects that are read in ranges are also opened.
//
//   feedline_reads AT_ONCE < READS     URLs as for feedline.open()

#include <deque>
#include <map>
#include <memory>

#include "reads.h"
#include "storage/fetch.h"
#include "storage/http/client.h"
#include "storage/registry.h"

namespace {

using namespace feedline;
constexpr std::uint64_t kMost = 64 << 20;

[[noreturn]] void fail(const Error& error) {
  std::fprintf(stderr, "feedline_reads: %s (%s)\n", error.what.c_str(), error.where.shard.c_str());
  std::exit(1);
}

using Readers = std::map<std::string, std::shared_ptr<const storage::Reader>>;

Readers open_ranges(const std::vector<bench::RemoteRead>& reads) {
  Readers readers;
  for (const auto& read : reads) {
    if (!read.is_range || readers.contains(read.url)) continue;
    const auto location = storage::open(read.url);
    if (!location) fail(location.error());
    auto reader = location->storage->open(location->object, storage::Access::kRead);
    if (!reader) fail(reader.error());
    readers.emplace(read.url, std::move(*reader));
  }
  return readers;
}

std::vector<storage::Piece> pieces_of(const std::vector<bench::RemoteRead>& reads, const Readers& readers) {
  std::vector<storage::Piece> pieces;
  for (const auto& read : reads) {
    if (read.is_range) {
      pieces.push_back({readers.at(read.url), "", read.first, read.last - read.first + 1});
      continue;
    }
    auto location = storage::open(read.url);
    if (!location) fail(location.error());
    pieces.push_back({nullptr, std::move(location->object), 0, 0});
  }
  return pieces;
}

void ask(storage::FetchQueue& queue, storage::Fetch& fetch, storage::Piece& piece) {
  fetch.piece = std::move(piece);
  fetch.most_bytes = kMost;
  queue.start(fetch);
}

}  // namespace

int main(int count, char** arguments) {
  const std::size_t at_once = count > 1 ? std::stoul(arguments[1]) : 8;
  const auto reads = bench::remote_reads(std::cin);
  if (reads.empty()) return 0;
  const auto location = storage::open(reads.front().url);
  if (!location) fail(location.error());
  auto pieces = pieces_of(reads, open_ranges(reads));
  if (const auto client = storage::Client::here(); !client) fail(client.error());
  const auto queue = storage::make_fetch_queue(location->storage, storage::QueueKind::kBest);
  std::deque<storage::Fetch> fetches(std::min(at_once, reads.size()));
  std::size_t next = 0, done = 0;
  std::uint64_t bytes = 0;
  const bench::Stopwatch stopwatch;
  for (auto& fetch : fetches) ask(*queue, fetch, pieces[next++]);
  for (; done < reads.size(); ++done) {
    storage::Fetch* const fetch = queue->finished(storage::FetchQueue::Clock::time_point::max());
    if (!fetch->bytes) fail(fetch->bytes.error());
    bytes += fetch->bytes->size();
    if (next < pieces.size()) ask(*queue, *fetch, pieces[next++]);
  }
  stopwatch.print(bytes, reads.size());
  return 0;
}
