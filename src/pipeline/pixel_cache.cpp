// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pixel_cache.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/cpus.h"
#include "format/pixels/pixel_file.h"
#include "format/source_list.h"
#include "storage/registry.h"

namespace feedline::pipeline {
namespace {

// Of the memory that this process may use: the model, the batches and the other caches need some too.
constexpr std::uint64_t kMemoryShare = 2;

std::string rounded(std::uint64_t bytes) {
  return bytes < (1u << 20) ? std::to_string((bytes + (1u << 9)) >> 10) + " KiB"
                            : std::to_string((bytes + (1u << 19)) >> 20) + " MiB";
}

// Files that are named one by one while they are read have no fingerprint to know them by again.
bool has_fixed_samples(const format::Format& format) { return format.name() != "files"; }

// The same for every way to write the path of a dataset, or of its parts.
std::string place_of(const std::string& source) {
  std::string place;
  for (const std::string& part : format::split_list(source))
    place += (place.empty() ? "" : "::") + storage::identity_of(part);
  return place;
}

// The file that a cache is going to be: in a folder that is there. A folder that is missing is a mistyped one more
// often than not, and making it would hide that.
Result<void> check_file(const std::string& path) {
  if (const std::size_t end = path.find("://"); end != std::string::npos)
    return config_error("cache: '" + path + "': this version keeps pixels in memory or in a local file, not at " +
                        path.substr(0, end + 3));
  const auto local = storage::local_storage();
  const auto is_folder = [&](const std::string& name) { return local->is_directory(name).value_or(false); };
  if (is_folder(path))
    return config_error("cache: '" + path + "' is a folder; give the path of a file in it, such as '" +
                        (std::filesystem::path(path) / "train.pixels").string() + "'");
  // of the path as it is written: that a file is a link does not move it
  const auto folder = std::filesystem::path(path).parent_path().string();
  if (!is_folder(folder.empty() ? "." : folder))
    return config_error("cache: '" + path + "': the folder '" + local->identity(folder.empty() ? "." : folder) +
                        "' does not exist; make it first, or correct the path");
  return {};
}

}  // namespace

Result<std::shared_ptr<PixelCache>> PixelCache::make(const std::string& where, std::uint64_t budget,
                                                     const std::string& dataset, const format::RecordFormat& format,
                                                     std::uint64_t fingerprint, std::span<const Operation> operations) {
  if (where == "device")
    return config_error(
        "cache: \"device\" would keep the pixels on a GPU, and this version fills batches on the CPU only; use "
        "\"memory\" or a path");
  if (where.empty()) return config_error("cache: where must be \"memory\" or the path of a file");
  if (!has_fixed_samples(format))
    return config_error("cache: \"" + dataset +
                        "\" gets its files while it is read; open a folder, tars or TFRecord files to cache");
  FEEDLINE_TRY(auto preparation, transform::Preparation::compile(operations));
  if (where != "memory") FEEDLINE_CHECK_OK(check_file(where));
  format::PixelContents contents{fingerprint,     format.size(),    preparation->description(),
                                 format.fields(), format.classes(), place_of(dataset)};
  return std::shared_ptr<PixelCache>(new PixelCache(where, budget, std::move(contents), std::move(preparation)));
}

PixelCache::PixelCache(std::string where, std::uint64_t budget, format::PixelContents contents,
                       std::shared_ptr<const transform::Preparation> preparation)
    : where_(std::move(where)),
      budget_(budget == 0 && in_memory() ? base::usable_memory_bytes() / kMemoryShare : budget),
      contents_(std::move(contents)),
      preparation_(std::move(preparation)) {}

Result<void> PixelCache::open() {
  const std::lock_guard lock(mutex_);
  if (store_ != nullptr) return {};
  if (in_memory()) {
    FEEDLINE_TRY(memory_, format::PixelMemory::join(contents_, budget_));
    store_ = &memory_->store();
  } else {
    FEEDLINE_TRY(file_, format::open_or_fill_pixel_file(where_, contents_, budget_));
    store_ = file_.get();
  }
  return {};
}

void PixelCache::keep(std::uint64_t sample, std::span<const std::byte> record) {
  auto added = store_->add(sample, record);
  Result<void> kept;
  if (!added)
    kept = std::unexpected(std::move(added).error());
  else if (*added && !in_memory())
    kept = format::finish_pixel_file(*store_, where_);
  if (kept) return;
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = std::move(kept).error();
  failure_->what = "the cache cannot keep more pixels: " + failure_->what +
                   "; make room, or give cache a budget or another path: what is there is used again";
  failed_.store(true, std::memory_order_release);
}

std::optional<Error> PixelCache::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  return failure_;
}

CacheStats PixelCache::stats() const {
  const std::lock_guard lock(mutex_);
  CacheStats stats{where_, contents_.samples, 0, 0, budget_, false};
  if (store_ == nullptr) return stats;
  stats.present = store_->present();
  stats.bytes = store_->bytes();
  stats.full = store_->is_full();
  return stats;
}

std::string PixelCache::explain() const {
  const CacheStats now = stats();
  std::string text = "cache in " + (in_memory() ? where_ : "'" + where_ + "'") + ": " + std::to_string(now.present) +
                     " of " + std::to_string(now.samples) + " samples kept, " + rounded(now.bytes);
  if (now.budget_bytes > 0) text += " of at most " + rounded(now.budget_bytes);
  if (now.full) return text + "; it is full: the other samples are read and decoded in every epoch";
  return text + "; what is above is done once, what is below in every epoch";
}

}  // namespace feedline::pipeline
