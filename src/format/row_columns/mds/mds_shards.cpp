// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/mds/mds_shards.h"

#include <memory>
#include <utility>

#include "format/index/plain_copy.h"
#include "format/row_columns/mds/digest.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

// Computes all supported checksums of one file in one pass.
class Checks {
 public:
  Checks(const MdsFile& file, std::string path) : file_(file), path_(std::move(path)) {
    for (const auto& [algorithm, hex] : file.digests)
      if (auto digest = make_digest(algorithm)) running_.push_back({algorithm, hex, std::move(digest)});
  }
  bool is_any() const { return !running_.empty(); }
  // Returns the names of unsupported algorithms.
  std::string unknown() const {
    std::string names;
    for (const auto& [algorithm, hex] : file_.digests)
      if (!make_digest(algorithm)) names += (names.empty() ? "" : ", ") + algorithm;
    return names;
  }
  void add(Bytes bytes) {
    bytes_ += bytes.size();
    for (Running& one : running_) one.digest->add(bytes);
  }
  // Fails with kData if the size or a checksum differs from the index.
  Result<void> compare() {
    if (bytes_ != file_.bytes)
      return differs("the file has " + std::to_string(bytes_) + " bytes, but the index specifies " +
                     std::to_string(file_.bytes));
    for (Running& one : running_)
      if (const std::string hex = one.digest->hex(); hex != one.wanted)
        return differs("the " + one.algorithm + " is " + hex + ", but the index specifies " + one.wanted);
    return {};
  }

 private:
  struct Running {
    std::string algorithm, wanted;
    std::unique_ptr<RunningDigest> digest;
  };
  std::unexpected<Error> differs(const std::string& how) const {
    auto error = data_error("the shard is damaged: " + how + "; copy or download it again", "format");
    error.error().where.shard = path_;
    return error;
  }

  const MdsFile& file_;
  const std::string path_;
  std::vector<Running> running_;
  std::uint64_t bytes_ = 0;
};

template <typename Take>
Result<void> each_piece(const storage::Reader& reader, Take&& take) {
  std::vector<std::byte> piece(kPieceBytes);
  for (std::uint64_t offset = 0;;) {
    FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, piece));
    if (got == 0) return {};
    FEEDLINE_CHECK_OK(take(offset, Bytes(piece).first(got)));
    offset += got;
  }
}

// Decompresses a file, and compares the checksums of both the compressed and the decompressed file.
Result<void> make_plain(const MdsPart& part, const std::string& path, const storage::Reader& reader,
                        cache::OutputFile& output) {
  const auto located = [&](Error error, std::uint64_t offset) {
    error.where.shard = path;
    error.where.offset = offset;
    return std::unexpected(std::move(error));
  };
  Checks zipped(*part.zip, path), raw(part.raw, path);
  FEEDLINE_TRY(auto stream, StreamDecompression::start(*part.compression, part.raw.bytes));
  const auto take = [&](Bytes plain) {
    raw.add(plain);
    return output.append(plain);
  };
  FEEDLINE_CHECK_OK(each_piece(reader, [&](std::uint64_t offset, Bytes piece) -> Result<void> {
    zipped.add(piece);
    auto fed = stream.feed(piece, take);
    if (!fed && fed.error().code == ErrorCode::kData) return located(std::move(fed).error(), offset);
    return fed;
  }));
  FEEDLINE_CHECK_OK(zipped.compare());
  if (auto ended = stream.finish(take); !ended) {
    if (ended.error().code != ErrorCode::kData) return ended;
    return located(std::move(ended).error(), part.zip->bytes);
  }
  return raw.compare();
}

// Returns whether the uncompressed file exists, which is preferred, as in MosaicML's streaming. Remote datasets never
// have both files.
bool is_there(const storage::Storage& storage, const std::string& path, std::uint64_t bytes) {
  if (storage.is_remote()) return false;
  const auto stat = storage.stat(path);
  return stat && stat->bytes == bytes;
}

Result<ShardFile> locate(const MdsPart& part, const std::string& folder,
                         std::shared_ptr<const storage::Storage> storage, cache::Notes* notes) {
  const std::string raw = storage->below(folder, part.raw.name);
  if (!part.zip || is_there(*storage, raw, part.raw.bytes)) {
    FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(raw, storage::Access::kRead));
    FEEDLINE_TRY(const auto version, reader->version());
    return ShardFile{raw, raw, std::move(storage), version, std::move(reader)};
  }
  const std::string zip = storage->below(folder, part.zip->name);
  const auto make = [&](const storage::Reader& reader, cache::OutputFile& output) {
    return make_plain(part, zip, reader, output);
  };
  FEEDLINE_TRY(std::string plain, made_plain(*storage, zip, ".mds", make, notes));
  FEEDLINE_TRY(const auto version, storage::local_storage()->stat(plain));
  return ShardFile{zip, std::move(plain), storage::local_storage(), version};
}

// Compares the stored file with its checksums.
Result<void> check(const MdsPart& part, const std::string& folder, const storage::Storage& storage,
                   Findings& findings) {
  const bool is_zipped = part.zip && !is_there(storage, storage.below(folder, part.raw.name), part.raw.bytes);
  const MdsFile& file = is_zipped ? *part.zip : part.raw;
  const std::string path = storage.below(folder, file.name);
  Checks checks(file, path);
  if (const std::string names = checks.unknown(); !names.empty())
    findings.add({"unknown_checksum",
                  checks.is_any() ? Severity::kNote : Severity::kWarning,
                  path,
                  "",
                  {},
                  "the index has checksums with the unsupported algorithms " + names + ", which are not compared"});
  if (!checks.is_any()) return {};
  FEEDLINE_TRY(const auto reader, storage.open(path, storage::Access::kRead));
  FEEDLINE_CHECK_OK(each_piece(
      *reader, [&](std::uint64_t, Bytes piece) -> Result<void> { return checks.add(piece), Result<void>(); }));
  if (const auto same = checks.compare(); !same)
    findings.add({"checksum_differs", Severity::kError, path, "", {}, same.error().what});
  return {};
}

// `part` shares ownership of the shard, so that functions in the plan keep the shard alive.
void plan_file(PlannedFile& plan, std::shared_ptr<const MdsPart> part, const std::string& folder,
               const storage::Storage& stored_in) {
  plan.name = folder + "/" + (part->zip ? part->zip->name : part->raw.name);
  plan.plain_bytes = part->raw.bytes;
  if (!part->zip) plan.stored_path = stored_in.below(folder, part->raw.name);
  plan.locate = [part = std::move(part), folder](std::shared_ptr<const storage::Storage> storage, cache::Notes* notes) {
    return locate(*part, folder, std::move(storage), notes);
  };
}

}  // namespace

std::vector<PlannedShard> plan_shards(const std::string& folder, const storage::Storage& stored_in,
                                      std::vector<MdsShard> shards, std::span<const std::size_t> schemas) {
  std::vector<PlannedShard> planned;
  planned.reserve(shards.size());
  for (MdsShard& one : shards) {
    const auto shard = std::make_shared<const MdsShard>(std::move(one));
    PlannedShard plan;
    plan.samples = shard->samples;
    plan.schema = schemas[shard->schema];
    plan_file(plan, {shard, &shard->data}, folder, stored_in);
    if (shard->table) {
      plan.table.emplace().first_sample = shard->header_bytes;
      plan_file(*plan.table, {shard, &*shard->table}, folder, stored_in);
    }
    plan.check = [shard, folder](const storage::Storage& storage, Findings& findings) -> Result<void> {
      FEEDLINE_CHECK_OK(check(shard->data, folder, storage, findings));
      return shard->table ? check(*shard->table, folder, storage, findings) : Result<void>();
    };
    planned.push_back(std::move(plan));
  }
  return planned;
}

}  // namespace feedline::format
