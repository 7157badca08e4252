// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/pixel_cache.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/cpus.h"
#include "decode/plugin/plugin_images.h"
#include "device/device.h"
#include "format/pixels/pixel_file.h"
#include "format/sources/source_list.h"
#include "storage/registry.h"

namespace feedline::pipeline {
namespace {

// The fraction of the memory available to this process; the model, batches and other caches need memory too.
constexpr std::uint64_t kMemoryShare = 2;

std::string rounded(std::uint64_t bytes) {
  return bytes < (1u << 20) ? std::to_string((bytes + (1u << 9)) >> 10) + " KiB"
                            : std::to_string((bytes + (1u << 19)) >> 20) + " MiB";
}

// Adds the cache's name and alternatives to a device's error about images that do not fit.
Error not_stored(Error error) {
  error.what = "cache(\"device\"): " + error.what +
               "; place a resize to a smaller size before the cache, free GPU memory, or use cache(\"memory\")";
  return error;
}

// Samples in file lists ("files") have no fingerprint that would identify them.
bool has_fixed_samples(const format::Format& format) { return format.name() != "files"; }

// Returns the same string for all spellings of the path of a dataset or of its part.
std::string location_of(const std::string& source) {
  std::string location;
  for (const std::string& part : format::split_list(source))
    location += (location.empty() ? "" : "::") + storage::identity_of(part);
  return location;
}

// Checks the path of a new cache file: its folder must exist, because a missing folder is usually a typo, and creating
// it would hide the typo.
Result<void> check_file(const std::string& path) {
  if (const std::size_t end = path.find("://"); end != std::string::npos)
    return config_error("cache: '" + path + "': pixels can be cached in memory or in a local file, not at " +
                        path.substr(0, end + 3));
  const auto local = storage::local_storage();
  const auto is_folder = [&](const std::string& name) { return local->is_directory(name).value_or(false); };
  if (is_folder(path))
    return config_error("cache: '" + path + "' is a folder; pass the path of a file in it, such as '" +
                        (std::filesystem::path(path) / "train.pixels").string() + "'");
  // uses the path as written: symbolic links are not resolved
  const auto folder = std::filesystem::path(path).parent_path().string();
  if (!is_folder(folder.empty() ? "." : folder))
    return config_error("cache: '" + path + "': the folder '" + local->identity(folder.empty() ? "." : folder) +
                        "' does not exist; create it first, or correct the path");
  return {};
}

}  // namespace

Result<std::shared_ptr<PixelCache>> PixelCache::make(const std::string& where, std::uint64_t budget,
                                                     const std::string& dataset, const format::RecordFormat& format,
                                                     std::uint64_t fingerprint, std::span<const Operation> operations) {
  if (where.empty()) return config_error("cache: where must be \"memory\", \"device\" or the path of a file");
  if (!has_fixed_samples(format))
    return config_error("cache: \"" + dataset +
                        "\" receives its files while reading; open a folder, tars or TFRecord files to use cache");
  FEEDLINE_TRY(auto preparation, transform::Preparation::compile(operations));
  if (where != "memory" && where != "device") FEEDLINE_CHECK_OK(check_file(where));
  std::string description = preparation->description();
  if (const std::string codecs = decode::plugin_codecs(); !codecs.empty()) description += ", codecs " + codecs;
  format::PixelContents contents{fingerprint,     format.size(),    std::move(description),
                                 format.fields(), format.classes(), location_of(dataset)};
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
  if (store_ != nullptr || is_on_device()) return {};
  if (in_memory()) {
    FEEDLINE_TRY(memory_, format::PixelMemory::join(contents_, budget_));
    store_ = &memory_->store();
  } else {
    FEEDLINE_TRY(file_, format::open_or_fill_pixel_file(where_, contents_, budget_));
    store_ = file_.get();
  }
  return {};
}

void PixelCache::store(std::uint64_t sample, std::span<const std::byte> record) {
  auto added = store_->add(sample, record);
  Result<void> cached;
  if (!added)
    cached = std::unexpected(std::move(added).error());
  else if (*added && !in_memory())
    cached = format::finish_pixel_file(*store_, where_);
  if (cached) return;
  Error error = std::move(cached).error();
  error.what = "the cache cannot store more pixels: " + error.what +
               "; make room, or pass cache a budget or another path: existing entries are reused";
  fail(std::move(error));
}

void PixelCache::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = std::move(error);
  failed_.store(true, std::memory_order_release);
}

Result<std::shared_ptr<PixelCache>> PixelCache::on(device::Device& device, const format::RecordFormat& records) {
  FEEDLINE_CHECK(is_on_device());
  if (device.is_host())
    return config_error(
        "cache(\"device\") stores images on a GPU, but this loader's batches stay on the host: pass loader() "
        "device=\"cuda\", or use cache(\"memory\")");
  if (!device.makes_elements())
    return config_error("cache(\"device\"): kernels do not run on this GPU (" + device.explain() +
                        "); use cache(\"memory\")");
  const std::lock_guard lock(mutex_);
  const auto found = devices_.find(device.name());
  if (found != devices_.end()) return found->second;
  FEEDLINE_TRY(const std::uint64_t bytes, DevicePixels::bytes_needed(records, *preparation_));
  if (budget_ > 0 && bytes > budget_)
    return config_error(
        "cache(\"device\"): the decoded images need " + rounded(bytes) + ", but its budget is " + rounded(budget_) +
        "; place a resize to a smaller size before the cache, raise the budget, or use cache(\"memory\")");
  auto images = device.make_resident_images(bytes);
  if (!images) return std::unexpected(not_stored(std::move(images).error()));
  std::shared_ptr<PixelCache> cache(new PixelCache(where_, budget_, contents_, preparation_));
  cache->on_device_ = std::make_unique<DevicePixels>(std::move(*images), contents_.samples);
  cache->device_ = device.name();
  devices_.emplace(cache->device_, cache);
  return cache;
}

Result<void> PixelCache::store_on_device(std::uint64_t sample, memory::Record& record) {
  auto cached = on_device_->store(sample, contents_.fields, record);
  if (!cached) {
    cached.error() = not_stored(std::move(cached).error());
    fail(cached.error());
  }
  return cached;
}

std::optional<Error> PixelCache::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  return failure_;
}

CacheStats PixelCache::stats() const {
  const std::lock_guard lock(mutex_);
  CacheStats stats{where_, contents_.samples, 0, 0, budget_, false};
  if (on_device_) {
    stats.present = on_device_->present();
    stats.bytes = on_device_->bytes();
  }
  if (store_ == nullptr) return stats;
  stats.present = store_->present();
  stats.bytes = store_->bytes();
  stats.full = store_->is_full();
  return stats;
}

std::string PixelCache::explain() const {
  const CacheStats now = stats();
  if (on_device_)
    return "cache on " + device_ + ": " + std::to_string(now.present) + " of " + std::to_string(now.samples) +
           " samples cached, " + rounded(now.bytes) + " of " + rounded(on_device_->images()->bytes()) +
           " allocated; the operations above run once, on the CPU, and those below for every batch";
  std::string text = "cache in " + (in_memory() ? where_ : "'" + where_ + "'") + ": " + std::to_string(now.present) +
                     " of " + std::to_string(now.samples) + " samples cached, " + rounded(now.bytes);
  if (now.budget_bytes > 0) text += " of at most " + rounded(now.budget_bytes);
  if (now.full) return text + "; it is full: the other samples are read and decoded in every epoch";
  return text + "; the operations above run once, and those below in every epoch";
}

}  // namespace feedline::pipeline
