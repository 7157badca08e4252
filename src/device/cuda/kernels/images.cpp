// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/images.h"

#include <zlib.h>

#include <cstddef>

#include "base/check.h"

namespace feedline::device::cuda {
namespace {

struct StoredImage {
  std::string_view name;
  int major, minor;
  bool is_ptx;
  std::size_t bytes;  // decompressed
  const unsigned char* data;
  std::size_t stored;
};

#include "device/cuda/kernels/image_bytes.inc"

std::string inflated(const StoredImage& image) {
  std::string bytes(image.bytes, '\0');
  uLongf length = bytes.size();
  const int status = uncompress(reinterpret_cast<Bytef*>(bytes.data()), &length, image.data, image.stored);
  FEEDLINE_CHECK(status == Z_OK && length == bytes.size());
  return bytes;
}

bool runs_on(const StoredImage& image, int major, int minor) {
  if (image.is_ptx) return major > image.major || (major == image.major && minor >= image.minor);
  return major == image.major && minor >= image.minor;
}

Result<Image> find(int major, int minor, bool with_code) {
  const StoredImage* best = nullptr;
  for (const StoredImage& image : kImages) {
    if (!runs_on(image, major, minor) || (!image.is_ptx && !with_code)) continue;
    // code before PTX; there is one code image per generation
    if (best == nullptr || best->is_ptx) best = &image;
  }
  if (best != nullptr) return Image{best->name, inflated(*best)};
  return config_error("the kernels need a GPU of compute capability 7.0 or later, but this one has " +
                      std::to_string(major) + "." + std::to_string(minor) +
                      "; the CPU does their work, and batches are copied unchanged");
}

}  // namespace

Result<Image> image_for(int major, int minor) { return find(major, minor, true); }

Result<Image> ptx_for(int major, int minor) { return find(major, minor, false); }

std::vector<std::string_view> image_names() {
  std::vector<std::string_view> names;
  for (const StoredImage& image : kImages) names.push_back(image.name);
  return names;
}

std::string_view image_source_digest() { return kSourceDigest; }

}  // namespace feedline::device::cuda
