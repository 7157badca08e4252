// SPDX-License-Identifier: Apache-2.0
#pragma once

// Video files that the ffmpeg program makes, and their frames as it decodes them in order.

#include <gtest/gtest.h>

#include <stdlib.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "decode/video/video_file.h"

namespace feedline::decode {

// A folder that is deleted with this object.
class VideoFolder {
 public:
  VideoFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "feedline-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) ? pattern : std::string();
  }
  ~VideoFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  VideoFolder(const VideoFolder&) = delete;
  VideoFolder& operator=(const VideoFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& content) const { std::ofstream(path(name)) << content; }

 private:
  std::string path_;
};

class VideoFiles {
 public:
  static bool can_make() { return std::system("ffmpeg -version >/dev/null 2>&1") == 0; }

  // Runs ffmpeg; OUT in the arguments is the path of the file. Returns the file's bytes, empty if ffmpeg failed.
  std::vector<std::byte> make(const std::string& name, std::string arguments) {
    const std::string path = folder_.path(name);
    if (const std::size_t at = arguments.find("OUT"); at != std::string::npos) arguments.replace(at, 3, path);
    const std::string command = "ffmpeg -v error -y " + arguments + " </dev/null";
    if (std::system(command.c_str()) != 0) return {};
    return read(path);
  }
  std::string path(const std::string& name) const { return folder_.path(name); }

  // All frames of a file as RGB, in order.
  std::vector<std::byte> frames(const std::string& name) {
    return make("frames.rgb",
                "-i " + path(name) + " -an -fps_mode passthrough -sws_flags bilinear -pix_fmt rgb24 -f rawvideo OUT");
  }

  static std::vector<std::byte> read(const std::string& path) {
    std::stringstream stream;
    stream << std::ifstream(path, std::ios::binary).rdbuf();
    const std::string content = stream.str();
    std::vector<std::byte> bytes(content.size());
    std::memcpy(bytes.data(), content.data(), content.size());
    return bytes;
  }

 private:
  VideoFolder folder_;
};

}  // namespace feedline::decode
