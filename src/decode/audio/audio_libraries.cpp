// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/audio_libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "decode/audio/audio_reader.h"
#include "decode/audio/sndfile_library.h"
#include "decode/audio/soxr_library.h"

namespace feedline::decode {
namespace {

struct Packaged {
  ForkMutex mutex;
  std::array<std::string, 2> files;
};

Packaged& packaged() {
  static Packaged all;
  return all;
}

}  // namespace

std::optional<std::string> open_library(std::span<const std::string> files, std::span<const Symbol> symbols) {
  for (const std::string& file : files) {
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    const bool has_all = std::ranges::all_of(symbols, [&](const Symbol& symbol) {
      *symbol.address = ::dlsym(library, symbol.name);
      return *symbol.address != nullptr;
    });
    if (has_all) return file;
  }
  return std::nullopt;
}

std::vector<std::string> library_files(AudioLibrary library, const char* variable,
                                       std::initializer_list<const char*> names) {
  if (const char* const named = std::getenv(variable); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> files(names.begin(), names.end());
  const std::lock_guard lock(packaged().mutex);
  if (const std::string& file = packaged().files[static_cast<std::size_t>(library)]; !file.empty())
    files.push_back(file);
  return files;
}

}  // namespace feedline::decode

namespace feedline {

void set_packaged(AudioLibrary library, const std::string& file) {
  const std::lock_guard lock(decode::packaged().mutex);
  decode::packaged().files[static_cast<std::size_t>(library)] = file;
}

std::vector<std::string> audio_extensions() {
  const auto all = decode::audio_extensions();
  return {all.begin(), all.end()};
}

AudioLibraryState find_library(AudioLibrary library) {
  const auto state_of = [](const auto& found, auto version) {
    return found ? AudioLibraryState{(*found)->file, version(**found), {}}
                 : AudioLibraryState{{}, {}, found.error().what};
  };
  if (library == AudioLibrary::kSndfile)
    return state_of(decode::sndfile_library(), [](const auto& opened) { return opened.version_string(); });
  return state_of(decode::soxr_library(), [](const auto& opened) { return opened.version(); });
}

}  // namespace feedline
