// SPDX-License-Identifier: Apache-2.0
#include "decode/foreign/foreign_decoder.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace feedline {
namespace {

// Never destroyed, because threads may still decode while the process exits.
struct Registered {
  std::mutex mutex;
  // guarded by mutex
  std::shared_ptr<const ForeignImages> images;
  std::map<std::string, std::uint64_t> decoded;
};

Registered& registered() {
  static auto* const all = new Registered;
  return *all;
}

std::shared_ptr<const ForeignImages> registered_images() {
  const std::lock_guard lock(registered().mutex);
  return registered().images;
}

}  // namespace

void read_foreign_images_by(std::shared_ptr<const ForeignImages> images) {
  const std::lock_guard lock(registered().mutex);
  registered().images.swap(images);  // the previous decoder is released outside the lock
}

std::map<std::string, std::uint64_t> foreign_images_decoded() {
  const std::lock_guard lock(registered().mutex);
  return registered().decoded;
}

namespace decode {
namespace {

Depth depth_of(const std::string& name) {
  for (const Depth depth : {Depth::k16Bits, Depth::k32Bits, Depth::kFloat})
    if (name == name_of(depth)) return depth;
  return Depth::k8Bits;
}

}  // namespace

bool reads_foreign_images() { return registered_images() != nullptr; }

Result<ImageHeader> ForeignDecoder::open(std::span<const std::byte> bytes) {
  images_ = plugin_ != nullptr ? std::shared_ptr<const ForeignImages>(std::shared_ptr<const void>(), plugin_)
                               : registered_images();
  if (!images_) return decode_error("no decoder for images of this format is available");
  FEEDLINE_TRY(opened_, images_->open(bytes, applies_exif_));
  FEEDLINE_CHECK_OK(check_size(opened_.width, opened_.height));
  if (opened_.orientation < 1 || opened_.orientation > 8) opened_.orientation = 1;
  return ImageHeader{opened_.width, opened_.height, depth_of(opened_.depth)};
}

std::string ForeignDecoder::kind() const {
  std::string kind = opened_.kind;
  for (char& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return kind;
}

Result<void> ForeignDecoder::decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  const auto opened = std::exchange(opened_, {});  // releases the library's image
  const auto images = std::exchange(images_, nullptr);
  auto decoded = images->decode(opened, region, mode, out.row(0), out.stride());
  if (!decoded) decoded.error().what = opened.kind + " image: " + decoded.error().what;
  FEEDLINE_CHECK_OK(std::move(decoded));
  if (images.get() == plugin_) return {};
  const std::lock_guard lock(registered().mutex);
  ++registered().decoded[opened.kind];
  return {};
}

}  // namespace decode
}  // namespace feedline
