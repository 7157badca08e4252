// SPDX-License-Identifier: Apache-2.0
#include "decode/video/ffmpeg_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "decode/video/proof_clip.h"

namespace feedline::decode {
namespace {

constexpr std::string_view kHowToGetIt =
    "; decoding videos requires FFmpeg 5, 6, 7 or 8 (libavformat 59 to 62): install it (Debian, Ubuntu: apt-get "
    "install ffmpeg; Fedora, RHEL: dnf install ffmpeg-libs from RPM Fusion; Alpine: apk add ffmpeg-libs; conda install "
    "-c conda-forge ffmpeg), or name a folder with its libraries in FEEDLINE_FFMPEG";

struct Files {
  std::string util, codec, format, scale;
};

struct Opened {
  void* util = nullptr;
  void* codec = nullptr;
  void* format = nullptr;
  void* scale = nullptr;
};

std::string versioned(const char* library, unsigned major) {
  return "lib" + std::string(library) + ".so." + std::to_string(major);
}

Files files_of(const FfmpegLayout& layout) {
  return {versioned("avutil", layout.util_major), versioned("avcodec", layout.format_major),
          versioned("avformat", layout.format_major), versioned("swscale", layout.scale_major)};
}

// Returns the libraries in a folder, with the least decorated name of each: libavformat.so.61, or
// libavformat-4639def2.so.62.12.102 as Python wheels name them.
std::optional<Files> files_in(const std::string& folder) {
  Files files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".so") == std::string::npos) continue;
    for (const auto& [library, file] : {std::pair<std::string_view, std::string*>{"libavutil", &files.util},
                                        {"libavcodec", &files.codec},
                                        {"libavformat", &files.format},
                                        {"libswscale", &files.scale}}) {
      const bool is_it = name.starts_with(library) && (name[library.size()] == '.' || name[library.size()] == '-');
      if (is_it && (file->empty() || name.size() < std::filesystem::path(*file).filename().string().size()))
        *file = entry.path().string();
    }
  }
  if (files.util.empty() || files.codec.empty() || files.format.empty() || files.scale.empty()) return {};
  return files;
}

std::string numbers_of(unsigned version) {
  return std::to_string(version >> 16U) + "." + std::to_string(version >> 8U & 255U) + "." +
         std::to_string(version & 255U);
}

// Opens the libraries in the order in which they need each other.
bool open_files(const Files& files, Opened& opened) {
  const auto open = [](const std::string& file) { return ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); };
  return (opened.util = open(files.util)) != nullptr && (opened.codec = open(files.codec)) != nullptr &&
         (opened.format = open(files.format)) != nullptr && (opened.scale = open(files.scale)) != nullptr;
}

const char* find_calls(const Opened& opened, FfmpegLibrary& library) {
  const char* missing = nullptr;
#define FEEDLINE_FFMPEG_FIND(from, member, name, signature)                                     \
  library.member = reinterpret_cast<std::add_pointer_t<signature>>(::dlsym(opened.from, name)); \
  if (library.member == nullptr && missing == nullptr) missing = name;
  FEEDLINE_FFMPEG_CALLS(FEEDLINE_FFMPEG_FIND)
#undef FEEDLINE_FFMPEG_FIND
  library.stream_side_data =
      reinterpret_cast<decltype(library.stream_side_data)>(::dlsym(opened.format, "av_stream_get_side_data"));
  return missing;
}

// Opens one version. Returns nullopt if its files do not exist; otherwise kConfig names the version and its fault.
Result<std::optional<FfmpegLibrary>> open_version(const Files& files, const std::string& name) {
  // the level of a library that another module of this process uses is that module's
  const bool is_in_use = ::dlopen(files.util.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr;
  Opened opened;
  if (!open_files(files, opened)) return std::optional<FfmpegLibrary>();
  FfmpegLibrary library;
  library.files = name;
  if (const char* const missing = find_calls(opened, library))
    return config_error(name + " has no " + std::string(missing));
  const unsigned version = library.format_version();
  library.version = "libavformat " + numbers_of(version) + ", libavcodec " + numbers_of(library.codec_version()) +
                    ", libswscale " + numbers_of(library.scale_version());
  const auto layout = std::ranges::find(kFfmpegLayouts, version >> 16U, &FfmpegLayout::format_major);
  if (layout == kFfmpegLayouts.end() || library.codec_version() >> 16U != layout->format_major ||
      library.scale_version() >> 16U != layout->scale_major)
    return config_error(library.version + " is not supported");
  library.layout = *layout;
  constexpr int kQuiet = -8;
  if (!is_in_use) library.log_set_level(kQuiet);
  if (auto proved = prove(library); !proved)
    return config_error(library.version + " does not decode the built-in clip correctly (" + proved.error().what +
                        "), so its structures differ from those of its version");
  return library;
}

std::string dlerror_text() {
  const char* const text = ::dlerror();
  return text != nullptr ? text : "";
}

}  // namespace

std::string FfmpegLibrary::describe(int error) const {
  std::array<char, 128> text{};
  strerror(error, text.data(), text.size());
  return text.data();
}

Result<FfmpegLibrary> open_ffmpeg(const std::string& folder) {
  std::string faults;
  const auto add = [&](const std::string& fault) { faults += (faults.empty() ? "" : "; ") + fault; };
  if (!folder.empty()) {
    const auto files = files_in(folder);
    if (!files)
      return config_error("FEEDLINE_FFMPEG: " + folder + " has no libavformat, libavcodec, libavutil and libswscale" +
                          std::string(kHowToGetIt));
    auto library = open_version(*files, folder);
    if (library && *library) return **library;
    add(library ? "FEEDLINE_FFMPEG: " + folder + " cannot be loaded: " + dlerror_text() : library.error().what);
  } else {
    for (const FfmpegLayout& layout : kFfmpegLayouts) {
      const Files files = files_of(layout);
      auto library = open_version(files, files.format);
      if (library && *library) return **library;
      if (!library) add(library.error().what);
    }
  }
  return config_error((faults.empty() ? "FFmpeg was not found (libavformat.so.62, .61, .60 or .59)" : faults) +
                      std::string(kHowToGetIt));
}

const Result<FfmpegLibrary>& ffmpeg_library() {
  static const Result<FfmpegLibrary> library = [] {
    const char* const folder = std::getenv("FEEDLINE_FFMPEG");
    return open_ffmpeg(folder != nullptr ? folder : "");
  }();
  return library;
}

}  // namespace feedline::decode
