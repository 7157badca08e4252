// SPDX-License-Identifier: Apache-2.0
#include "decode/image_formats.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "decode/codec.h"
#include "decode/foreign/foreign_decoder.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/plugin/plugin_table.h"
#include "decode/png/png_decoder.h"
#include "decode/webp/webp_decoder.h"
#include "feedline/image_formats.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

bool has(std::string_view file, std::size_t offset, std::string_view bytes) {
  return file.size() >= offset && file.substr(offset).starts_with(bytes);
}

bool is_webp(std::string_view file) { return has(file, 8, "WEBP"sv); }
// Much other data begins with "BM", so the four reserved bytes must be zero too.
bool has_bmp_zeros(std::string_view file) { return has(file, 6, "\0\0\0\0"sv); }
// Returns whether the file begins with "P1" to "P6" (PBM, PGM, PPM) or "Pf" (PFM), and white space.
bool is_pnm(std::string_view file) {
  constexpr std::string_view kKinds = "123456f", kSpaces = "\n \t\r";
  return file.size() > 2 && kKinds.contains(file[1]) && kSpaces.contains(file[2]);
}

// The first format with a matching signature is chosen, with its first matching signature.
constexpr ImageFormat kFormats[] = {
    {.name = "jpeg",
     .title = "JPEG",
     .extensions = {"jpg", "jpeg", "jpe", "jfif", "mpo"},
     .image_folder = 2,
     .signatures = {{"\xFF\xD8\xFF"sv, "jpg"}},
     .codec = &kJpegCodec},
    {.name = "png",
     .title = "PNG",
     .extensions = {"png"},
     .image_folder = 1,
     .signatures = {{"\x89PNG\r\n\x1A\n"sv, "png"}},
     .codec = &kPngCodec},
    {.name = "webp",
     .title = "WebP",
     .extensions = {"webp"},
     .image_folder = 1,
     .signatures = {{"RIFF"sv, "webp", 0, is_webp}},
     .codec = &kWebpCodec},
    {.name = "gif", .title = "GIF", .extensions = {"gif"}, .signatures = {{"GIF87a"sv, "gif"}, {"GIF89a"sv, "gif"}}},
    {.name = "bmp",
     .title = "BMP",
     .extensions = {"bmp", "dib"},
     .image_folder = 1,
     .signatures = {{"BM"sv, "bmp", 0, has_bmp_zeros}, {"BM"sv}}},
    {.name = "tiff",
     .title = "TIFF",
     .extensions = {"tif", "tiff"},
     .image_folder = 2,
     // the last two are BigTIFF, with 64-bit offsets
     .signatures = {{"II*\0"sv, "tif"}, {"MM\0*"sv, "tif"}, {"II+\0"sv, "tif"}, {"MM\0+"sv, "tif"}},
     .is_rotated_by_pillow = true},
    {.name = "avif",
     .title = "AVIF",
     .extensions = {"avif"},
     .signatures = {{"ftypavi"sv, "avif", 4}},
     .pillow_requires = "Pillow 11.3 or the registered plugin pillow-avif-plugin"},
    {.name = "heif",
     .title = "HEIC/HEIF",
     .extensions = {"heic", "heif"},
     .signatures = {{"ftyphei"sv, "heic", 4}, {"ftypmif1"sv, "heif", 4}},
     .pillow_requires = "the registered plugin pillow-heif"},
    {.name = "jpeg2000",
     .title = "JPEG 2000",
     .extensions = {"jp2", "j2k", "jpx"},
     .signatures = {{"\0\0\0\x0CjP"sv, "jp2"}, {"\xFF\x4F\xFF\x51"sv, "j2k"}}},
    {.name = "jxl",
     .title = "JPEG XL",
     .extensions = {"jxl"},
     .signatures = {{"\0\0\0\x0CJXL "sv, "jxl"}, {"\xFF\x0A"sv}},
     .pillow_requires = "the registered plugin pillow-jxl-plugin"},
    {.name = "psd", .title = "Photoshop", .signatures = {{"8BPS"sv}}},
    {.name = "ppm",
     .title = "PNM",
     .extensions = {"ppm", "pgm", "pnm", "pbm", "pfm"},
     .image_folder = 2,
     .signatures = {{"P"sv, {}, 0, is_pnm}}},
};

// Returns the first result of `find` for a format that is not nullptr; formats of plugins come first.
template <typename Find>
auto first_of_formats(Find&& find) {
  for (const ImageFormat& format : plugin_image_formats())
    if (const auto found = find(format)) return found;
  for (const ImageFormat& format : kFormats)
    if (const auto found = find(format)) return found;
  return decltype(find(kFormats[0]))();
}

// Other kinds of content that may be found instead of an image; used in messages.
constexpr struct {
  std::size_t offset;
  std::string_view bytes, name;
} kOtherContents[] = {
    {4, "ftyp"sv, "looks like a video"},         {0, "%PDF"sv, "looks like a PDF"},
    {0, "PK\3\4"sv, "looks like a zip archive"}, {0, "\x1F\x8B"sv, "looks like gzip data"},
    {0, "RIFF"sv, "a RIFF file, but not WebP"},
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_text(std::string_view file) {
  constexpr std::size_t kLook = 64;
  return std::ranges::all_of(file.substr(0, kLook), [](unsigned char c) {
    return (c >= 0x20 && c != 0x7F && c < 0xF8) || c == '\n' || c == '\r' || c == '\t';  // 0x80 ... 0xF7: UTF-8
  });
}

std::string describe(std::string_view file) {
  if (file.empty()) return "an empty file";
  for (const auto& other : kOtherContents)
    if (has(file, other.offset, other.bytes)) return "not an image: " + std::string(other.name);
  if (is_text(file)) return "not an image: looks like text";
  if (std::ranges::all_of(file, [](char c) { return c == 0; })) return "not an image: all bytes are zero";
  return "not an image of a known format";
}

struct Match {
  const ImageFormat* format = nullptr;
  const ImageSignature* signature = nullptr;
  explicit operator bool() const { return format != nullptr; }
};

Match match(std::string_view file) {
  return first_of_formats([file](const ImageFormat& format) -> Match {
    for (const ImageSignature& signature : format.signatures) {
      if (signature.bytes.empty()) break;
      if (has(file, signature.offset, signature.bytes) && (signature.also == nullptr || signature.also(file)))
        return {&format, &signature};
    }
    return {};
  });
}

// Returns the format, and the position of the extension in the format's list.
std::pair<const ImageFormat*, std::size_t> find_extension(std::string_view extension) {
  if (extension.empty()) return {};
  const ImageFormat* const format = first_of_formats([&](const ImageFormat& one) {
    return std::ranges::find(one.extensions, extension) != std::end(one.extensions) ? &one : nullptr;
  });
  if (format == nullptr) return {};
  return {format, static_cast<std::size_t>(std::ranges::find(format->extensions, extension) - format->extensions)};
}

}  // namespace

std::span<const ImageFormat> image_formats() { return kFormats; }

const ImageFormat& image_format(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name, &ImageFormat::name);
  FEEDLINE_CHECK(found != std::end(kFormats));
  return *found;
}

const ImageFormat* format_of_extension(std::string_view extension) { return find_extension(extension).first; }

const ImageFormat* format_of(std::span<const std::byte> file) { return match(text_of(file)).format; }

bool is_in_image_folders(std::string_view extension) {
  const auto [format, position] = find_extension(extension);
  return format != nullptr && position < format->image_folder;
}

Result<const ImageFormat*> sniff(std::span<const std::byte> file) {
  const ImageFormat* const format = format_of(file);
  if (format == nullptr) return decode_error(describe(text_of(file)));
  if (format->codec == nullptr && plugin_images_of(*format) == nullptr && !reads_foreign_images())
    return decode_error(std::string(format->title) + " images are not supported");
  return format;
}

std::string_view image_extension(std::span<const std::byte> file) {
  const ImageSignature* const signature = match(text_of(file)).signature;
  return signature == nullptr ? std::string_view() : signature->extension;
}

std::string_view extension_to_store(std::span<const std::byte> image) {
  const std::string_view extension = image_extension(image);
  return extension.empty() ? kFormats[0].extensions[0] : extension;
}

}  // namespace feedline::decode

namespace feedline {

std::vector<ImageFormatDescription> image_formats() {
  std::vector<ImageFormatDescription> described;
  for (const decode::ImageFormat& format : decode::image_formats()) {
    ImageFormatDescription one{format.name,
                               format.title,
                               {},
                               {},
                               format.codec != nullptr,
                               format.pillow_requires,
                               format.is_rotated_by_pillow};
    for (const std::string_view extension : format.extensions) {
      if (extension.empty()) break;
      if (one.extensions.size() < format.image_folder) one.image_folder_extensions.push_back(extension);
      one.extensions.push_back(extension);
    }
    described.push_back(std::move(one));
  }
  return described;
}

std::string_view image_format_of(std::span<const std::byte> encoded) {
  const decode::ImageFormat* const format = decode::format_of(encoded);
  return format == nullptr ? std::string_view() : format->name;
}

std::string_view pillow_mode_of(std::span<const std::byte> encoded) {
  const decode::ImageFormat* const format = decode::format_of(encoded);
  return format == nullptr || format->codec == nullptr ? std::string_view() : format->codec->pillow_mode(encoded);
}

}  // namespace feedline
